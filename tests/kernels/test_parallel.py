import itertools
import os
import threading
import time

import pytest
from numba import get_num_threads

from meshprep.kernels import parallel
from meshprep.kernels.parallel import WORTHWHILE, at_once, each, on_fewer_cores, pieces


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    monkeypatch.setattr(parallel, "set_num_threads", lambda count: None)
    monkeypatch.setattr(parallel, "core_count", lambda: 1)
    parallel._kept_threads.cache_clear()
    yield
    parallel._kept_threads.cache_clear()


@pytest.mark.parametrize("n", [0, 1, WORTHWHILE - 1, WORTHWHILE, 3 * WORTHWHILE + 1])
def test_pieces_follow_each_other(n):
    parts = pieces(n)
    assert parts[0][0] == 0
    assert parts[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_stand_in_the_order_of_the_tasks(n):
    assert each(lambda x, y: x * y, [(i, 10) for i in range(n)]) == [
        10 * i for i in range(n)
    ]


def test_what_a_thread_raises_arrives():
    with pytest.raises(ZeroDivisionError):
        each(lambda x: 1 // x, [(1,), (0,)])


def test_what_runs_at_once_gives_its_results_in_order():
    assert at_once(lambda: "a", lambda: "b", lambda: "c") == ["a", "b", "c"]


def test_what_began_has_ended_when_an_error_arrives(two_threads):
    def fail(number):
        both.wait(timeout=60)
        if number == 0:
            # still at work when the other one's error is there
            other_failed.wait(timeout=60)
            time.sleep(0.02)
        ended.append(number)
        other_failed.set()
        raise ValueError(number)

    both, other_failed, ended = threading.Barrier(2), threading.Event(), []
    with pytest.raises(ValueError, match="0"):
        each(fail, [(0,), (1,), (2,)])
    assert ended == [1, 0]


def test_tasks_share_two_threads_that_stay(two_threads):
    def meet(number):
        both.wait(timeout=60)
        return threading.get_ident()

    both = threading.Barrier(2)
    first, second = (set(each(meet, [(k,) for k in range(6)])) for _ in range(2))
    assert first == second
    assert threading.get_ident() in first


def test_tasks_of_tasks_end_where_all_threads_are_busy(two_threads):
    def square(k):
        return each(lambda j: each(pow, [(j, 2), (k, 2)]), [(0,), (1,), (2,)])

    found = each(square, [(k,) for k in range(9)])
    assert found == [[[j * j, k * k] for j in range(3)] for k in range(9)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(two_threads):
    each(abs, [(-1,), (-2,)])
    child = os.fork()
    if child == 0:
        both, met = threading.Barrier(2), []
        try:
            met = each(lambda k: both.wait(timeout=60), [(0,), (1,)])
        finally:
            os._exit(len(met))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_what_is_not_urgent_takes_half_of_the_cores():
    before = get_num_threads()
    counts = at_once(get_num_threads, lambda: on_fewer_cores(get_num_threads))
    assert counts == [before, max(1, before // 2)]
    with pytest.raises(ZeroDivisionError):
        on_fewer_cores(lambda: 1 // 0)
    assert get_num_threads() == before
