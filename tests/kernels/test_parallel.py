import itertools
import time

import pytest
from numba import get_num_threads

from meshprep.kernels import parallel
from meshprep.kernels.parallel import WORTHWHILE, at_once, each, on_fewer_cores, pieces


@pytest.mark.parametrize("n", [0, 1, WORTHWHILE - 1, WORTHWHILE, 3 * WORTHWHILE + 1])
def test_pieces_follow_each_other(n):
    parts = pieces(n)
    assert parts[0][0] == 0
    assert parts[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_stand_in_the_order_of_the_tasks(n):
    assert each(lambda x, y: x * y, [(i, 10) for i in range(n)]) == [10 * i for i in range(n)]


def test_what_a_thread_raises_arrives():
    with pytest.raises(ZeroDivisionError):
        each(lambda x: 1 // x, [(1,), (0,)])


def test_what_runs_at_once_gives_its_results_in_order():
    assert at_once(lambda: "a", lambda: "b", lambda: "c") == ["a", "b", "c"]


def test_what_runs_at_once_has_ended_when_an_error_arrives(monkeypatch):
    def slow():
        time.sleep(0.05)
        ended.append(True)

    ended = []
    monkeypatch.setattr(parallel, "get_num_threads", lambda: 2)
    monkeypatch.setattr(parallel, "set_num_threads", lambda count: None)
    with pytest.raises(ZeroDivisionError):
        at_once(lambda: 1 // 0, slow)
    assert ended == [True]


def test_what_is_not_urgent_takes_half_of_the_cores():
    before = get_num_threads()
    counts = at_once(get_num_threads, lambda: on_fewer_cores(get_num_threads))
    assert counts == [before, max(1, before // 2)]
    with pytest.raises(ZeroDivisionError):
        on_fewer_cores(lambda: 1 // 0)
    assert get_num_threads() == before
