"""Threads that sleep, how many of them a loop takes, and how many there may be."""

import linecache
import os
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from meshprep_runtime import ParLoop
from meshprep_runtime.cpu import pool
from meshprep_runtime.cpu.pool import (
    AGAIN,
    RECENT,
    SETTLED,
    SOON,
    Team,
    core_count,
    share,
    thread_count,
)
from meshprep_runtime.cpu.source.text import LaunchCounter, Launched

TAKES_SEVERAL = Team._takes_several
PATIENCE = 60


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(pool, "thread_count", lambda: 2)


@pytest.fixture
def no_environment(monkeypatch):
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pool, "_asked_for", pool._asked_for.__wrapped__)
    return monkeypatch


# ---------------------------------------------------------------- sharing work
def test_each_thread_has_a_number_of_its_own():
    met, numbers = threading.Barrier(3), []

    def work(who):
        met.wait(PATIENCE)
        numbers.append(who)

    share(work, 3)
    assert sorted(numbers) == [0, 1, 2]


def test_nobody_waits_for_a_thread_that_comes_late():
    begun, go = threading.Event(), threading.Event()

    def hold(who):
        if who:
            begun.set()
            go.wait(PATIENCE)
        else:
            begun.wait(PATIENCE)

    ran = []
    share(hold, 2, waits=False)
    try:
        share(ran.append, 2)
        assert ran == [0]
    finally:
        go.set()
    (helper,) = pool._pool.some(1)
    with helper.busy:
        assert (helper.job, helper.running) == (None, None)
    share(lambda who: None, 2)
    assert ran == [0]


def test_what_began_has_ended_when_an_error_arrives():
    met, ended = threading.Barrier(2), []

    def work(who):
        met.wait(PATIENCE)
        if who == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        ended.append(who)

    stopped = []
    with pytest.raises(KeyboardInterrupt):
        share(work, 2, lambda: stopped.append(1), waits=False)
    assert (ended, stopped) == ([1], [1])


def test_a_sleeping_thread_keeps_no_arrays():
    class Held:
        pass

    gone = threading.Event()
    held = Held()
    share(lambda who, held=held: None, 2)
    weakref.finalize(held, gone.set)
    del held
    # the helper may be on its way to sleep
    assert gone.wait(PATIENCE)


def test_without_threads_the_caller_does_all(monkeypatch):
    def refuse(number):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool, "_pool", pool._Pool())
    monkeypatch.setattr(pool, "_Helper", refuse)
    ran = []
    share(ran.append, 4)
    assert ran == [0]


# ---------------------------------------------------------------- without Python
class Step:
    """A step whose helper comes late, or not."""

    def __init__(self, done, **said):
        self.counters = np.zeros(64, np.int64)
        for name, value in said.items():
            self.counters[LaunchCounter[name]] = value
        self.done = done
        self.launches = 0
        self.returned = []

    def lend(self):
        return SimpleNamespace(call=self.call, counters=self.counters, step=self)

    def call(self, *_):
        self.launches += 1
        return self.done

    def take_back(self, lent):
        self.returned.append(lent)


@pytest.fixture
def one_helper():
    made = pool._Pool()
    made._helpers = [None]
    return made


def test_what_a_late_thread_may_look_at_is_kept(one_helper):
    late = Step(Launched.MORE, LATE=1, LEFT=1)
    assert one_helper.launch(late, 2) == -1
    assert [lent.step for lent in one_helper._held] == [late]
    assert late.returned == []
    # the next one is left in peace, and the late one still there
    other = Step(Launched.MORE, LEFT=1)
    one_helper.launch(other, 2)
    assert late in [lent.step for lent in one_helper._held]
    assert len(other.returned) == 1
    failed = Step(Launched.MORE, FAILED=1, WHERE=7)
    assert one_helper.launch(failed, 2) == 7
    assert one_helper._held == []
    one_helper.launch(Step(Launched.FINE), 2)
    assert one_helper._held == []


def interrupted_at(line, function, *args):
    """True for a call that was still running, and was interrupted, at this line that it came to."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename != pool.__file__:
            return None
        # No interrupt arrives where a ``with`` begins or ends, but these are traced, too.
        source = linecache.getline(pool.__file__, frame.f_lineno).strip()
        if event == "line" and not source.startswith(("with ", "try:")):
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        function(*args)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_an_interrupt_at_any_line_leaves_what_late_threads_look_at(one_helper):
    line, after = 1, 0
    step = Step(Launched.MORE, LATE=1, LEFT=1)
    while interrupted_at(line, one_helper.launch, step, 2):
        if step.launches:
            after += 1
            assert step in [lent.step for lent in one_helper._held]
            # nobody gets the counters that a helper may still change
            assert step.returned == []
        one_helper._held.clear()
        step.launches = 0
        line += 1
    assert after >= 4


def test_an_interrupt_at_any_line_waits_for_threads_that_began(monkeypatch):
    monkeypatch.setattr(pool, "_pool", pool._Pool())
    line, interrupted = 1, True
    while interrupted:
        under_way, stopped = [], threading.Event()
        met = threading.Event()

        def work(who, under_way=under_way, stopped=stopped, met=met):
            if who == 0:
                met.wait(0.01)
                return
            under_way.append(who)
            met.set()
            stopped.wait(0.02)
            under_way.clear()

        interrupted = interrupted_at(line, share, work, 2, stopped.set)
        assert under_way == []
        line += 1
    assert line > 20


def test_threads_that_listen_or_sleep_miss_nothing(airfoil, monkeypatch):
    """More threads than cores, and pauses after which they sleep."""
    monkeypatch.setattr(pool, "thread_count", lambda: 5)
    plan = airfoil["res_calc"]

    def count(x1, x2, q1, q2, adt1, adt2, res1, res2):
        res1[0] += 1
        res2[0] += 1

    loop = ParLoop(count, plan)
    arrays = {s.name: np.zeros(s.shape, s.dtype) for s in loop.slots}
    expected = np.zeros(arrays["res"].shape[0])
    np.add.at(expected, plan.maps["edges->cells"].table.ravel(), 1)
    rng = np.random.default_rng(5)
    for n in range(1, 400):
        loop(**arrays)
        assert np.array_equal(arrays["res"][:, 0], n * expected)
        if n % 3 == 0:
            time.sleep(rng.choice([0, 1e-5, 1e-4, 2e-3]))


# ---------------------------------------------------------------- how many threads
@pytest.fixture
def machine(monkeypatch, two_threads):
    """A clock, and what calls take on it by one thread and by two; what ran lies in ``ran``.

    The first call of either way after the other takes ``moved`` more.
    """
    found = SimpleNamespace(now=0.0, one=1.0, two=1.0, moved=0.0, ran=[])

    def on_two(step, threads):
        found.now += found.two + found.moved * (found.ran[-1:] == [1])
        found.ran.append(threads)
        return -1

    def on_one():
        found.now += found.one + found.moved * (found.ran[-1:] == [2])
        found.ran.append(1)

    monkeypatch.setattr(Team, "_takes_several", TAKES_SEVERAL)
    monkeypatch.setattr(pool._pool, "launch", on_two)
    monkeypatch.setattr(pool, "time", SimpleNamespace(perf_counter=lambda: found.now))
    found.alone = SimpleNamespace(run_or_raise=on_one)
    return found


def taken(machine, team, calls, ranges=50):
    """How many of some calls ran on two threads."""
    machine.ran.clear()
    for _ in range(calls):
        team.run(ranges, [None], machine.alone)
    return machine.ran.count(2)


def test_several_threads_where_they_are_faster(machine):
    team, machine.one, machine.two = Team(), 3e-3, 1.6e-3
    taken(machine, team, SETTLED)
    # one thread is tried twice after 8, 16, 32, 64 and then each 128 calls
    assert taken(machine, team, 10 * AGAIN) == 10 * AGAIN - 2 * 12


def test_what_comes_after_the_other_way_is_not_compared(machine):
    """Dats that lie in the caches of other cores do not make one thread look slow for ever."""
    team, machine.one, machine.two, machine.moved = Team(), 3e-3, 2e-3, 1e-3
    taken(machine, team, 2 * RECENT * AGAIN)
    machine.two = 3.2e-3
    taken(machine, team, RECENT * AGAIN)
    assert taken(machine, team, 10 * AGAIN) < 30


def test_the_machine_gets_busy_and_idle_again(machine):
    team, machine.one, machine.two = Team(), 3e-3, 1.6e-3
    taken(machine, team, 100)
    machine.one, machine.two = 6e-3, 20e-3
    taken(machine, team, 2 * RECENT)
    assert taken(machine, team, 10 * AGAIN) == 2 * 10
    machine.one, machine.two = 3e-3, 1.6e-3
    taken(machine, team, AGAIN + RECENT)
    assert taken(machine, team, AGAIN) == AGAIN - 2


def test_small_loops_run_on_one_thread(machine):
    team, machine.one, machine.two = Team(), 9e-6, 3e-6
    assert taken(machine, team, 1000) == 0


def test_pieces_of_a_loop_are_compared_by_their_size(machine):
    """As while messages travel: a piece is small, the rest is not."""
    team, machine.one, machine.two = Team(), 9e-6, 3e-6
    assert taken(machine, team, 100, ranges=2) == 0
    machine.one, machine.two = 3e-3, 1.6e-3
    taken(machine, team, SETTLED, ranges=200)
    assert taken(machine, team, SOON - 1, 200) == SOON - 1


def test_pieces_of_one_turn_say_nothing_of_the_others(machine):
    """They run on one thread, and are not taken for a machine that has no second one."""
    team, machine.one, machine.two = Team(), 3e-3, 1.6e-3
    taken(machine, team, SETTLED, ranges=200)
    known = [*team._took[1]]
    assert taken(machine, team, 3 * RECENT, ranges=1) == 0
    assert [*team._took[1]] == known


def test_no_more_threads_than_asked_for(machine):
    machine.one = machine.two = 1e-3
    assert taken(machine, Team(1), 100) == 0


def test_one_core_runs_one_thread(machine, monkeypatch):
    monkeypatch.setattr(pool, "thread_count", lambda: 1)
    assert taken(machine, Team(), 100) == 0


def test_an_exception_on_another_thread_arrives(airfoil, flow, monkeypatch, two_threads):
    """Whoever runs the range: the second of two threads, too."""

    def spoils(x1, x2, q1, q2, adt1, adt2, res1, res2):
        if max(q1[0], q2[0]) > 1e9:
            raise ValueError("q is spoilt")
        res1[0] += 1.0

    loop = ParLoop(spoils, airfoil["res_calc"], strategy="hierarchical")
    arrays = {name: value.copy() for name, value in flow.items()}
    loop(**arrays)
    arrays["q"][-1, 0] = 1e10
    for _ in range(20):
        with pytest.raises(ValueError, match="q is spoilt"):
            loop(**arrays)
    arrays["q"][-1, 0] = 1.0
    arrays["res"][:] = 0.0
    loop(**arrays)
    assert arrays["res"][:, 0].sum() == airfoil["res_calc"].sizes["edges"]


# ---------------------------------------------------------------- how many there may be
@pytest.mark.parametrize(
    ("said", "count"),
    [
        ({"NUMBA_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"OMP_NUM_THREADS": " 5,2"}, 5),
        ({"NUMBA_NUM_THREADS": "0", "OMP_NUM_THREADS": "7"}, 7),
        ({"NUMBA_NUM_THREADS": "", "OMP_NUM_THREADS": "-1"}, None),
        ({"NUMBA_NUM_THREADS": "many", "OMP_NUM_THREADS": "\N{SUPERSCRIPT TWO}"}, None),
    ],
)
def test_what_the_environment_asks_for(no_environment, said, count):
    no_environment.setattr(pool, "_affinity", lambda: 11)
    no_environment.setattr(pool, "_quota", lambda: 11.0)
    for name, value in said.items():
        no_environment.setenv(name, value)
    assert core_count() == (count or 11)


def test_the_cores_that_a_process_may_run_on(no_environment):
    no_environment.setattr(pool, "_quota", lambda: float("inf"))
    no_environment.setattr(
        os, "sched_getaffinity", lambda process: {3, 5, 8}, raising=False
    )
    assert core_count() == 3


@pytest.mark.parametrize(
    ("quota", "count"), [(0.5, 1), (1.0, 1), (1.5, 2), (2.0, 2), (64.0, 4)]
)
def test_a_quota_of_their_time(no_environment, quota, count):
    no_environment.setattr(pool, "_affinity", lambda: 4)
    no_environment.setattr(pool, "_quota", lambda: quota)
    assert core_count() == count


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        # version 2: the least of a group and those above it
        ("0::/a/b\n", {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000"}, 1.5),
        ("0::/a/b\n", {"a/cpu.max": "400000 100000", "a/b/cpu.max": "50000 100000"}, 0.5),
        # a container sees its group as the topmost, under the name that the host gives it
        ("0::/docker/123\n", {"cpu.max": "200000 100000"}, 2.0),
        ("0::/\n", {"unified/cpu.max": "200000 100000"}, 2.0),
        # version 1
        (
            "4:cpu,cpuacct:/a\n3:cpuset:/x\n",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "300000\n",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
                "cpuset/x/cpu.max": "1 100000",
            },
            3.0,
        ),
        (
            "1:cpu:/\n",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            None,
        ),
        ("0::/a\n", {"a/cpu.max": "none of it"}, None),
        ("", {}, None),
    ],
)
def test_the_quota_of_control_groups(tmp_path, own, files, quota):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = pool._quota.__wrapped__(tmp_path / "groups", tmp_path / "own")
    assert found == (quota or float("inf"))


def test_no_control_groups(tmp_path):
    assert pool._quota.__wrapped__(tmp_path, tmp_path / "none") == float("inf")


def test_the_number_of_numba_counts(no_environment):
    no_environment.setattr(pool, "core_count", lambda: 64)
    assert thread_count() == numba.get_num_threads()

    def refuse():
        raise ValueError("No threading layer could be loaded.")

    no_environment.setattr(numba, "get_num_threads", refuse)
    assert thread_count() == numba.config.NUMBA_NUM_THREADS


def test_bits_do_not_depend_on_the_threads(airfoil, flow, monkeypatch):
    """Sums of whole numbers in f8 are exact: all elements ran, each of them once."""

    def count(x1, x2, q1, q2, adt1, adt2, res1, res2):
        res1[0] += 1.0
        res2[1] -= 1.0

    table = airfoil["res_calc"].maps["edges->cells"].table
    wanted = np.zeros((24, 2))
    np.add.at(wanted[:, 0], table[:, 0], 1.0)
    np.add.at(wanted[:, 1], table[:, 1], -1.0)
    for threads in (1, 2, 5):
        monkeypatch.setattr(pool, "thread_count", lambda threads=threads: threads)
        loop = ParLoop(count, airfoil["res_calc"], strategy="hierarchical", variant="s8")
        for _ in range(30):
            res = np.zeros_like(flow["res"])
            loop(**{**flow, "res": res})
            np.testing.assert_array_equal(res[:, :2], wanted)
