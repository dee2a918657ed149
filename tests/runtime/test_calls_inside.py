"""Loops that are called while one of the same thread is under way, as by a signal handler."""

import signal
import sys
import weakref

import numpy as np
import pytest
from python_loops import INC, READ, edge_plan

from meshprep_runtime import Arg, MeshprepError, ParLoop
from meshprep_runtime.cpu import executor, pool
from meshprep_runtime.cpu.pool import SETTLED

# As many calls as find out all that a loop finds out.
SETTLES = 2 * SETTLED


def add_scaled(x, scale, y1, y2):
    y1[0] += scale[0] * x[0]
    y2[0] -= scale[0] * x[0]


@pytest.fixture
def plan(slow):
    return edge_plan(
        slow,
        *(Arg("x", READ), Arg("scale", READ, is_global=True)),
        Arg("y", INC, 1, "f8", "edges->cells", (0, 1)),
    )


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Further forms are compiled and tried from the first call on."""
    monkeypatch.setattr(executor, "PATIENT_CALLS", 0)


class Sums:
    """A loop on arrays of its own, and what its calls must give."""

    def __init__(self, plan):
        table = plan.maps["edges->cells"].table
        self.x = np.arange(1.0, len(table) + 1)
        self.y = np.zeros(plan.rows_of("cells"))
        self.one = self.y.copy()
        np.add.at(self.one, table[:, 0], self.x)
        np.add.at(self.one, table[:, 1], -self.x)
        self.loop = ParLoop(add_scaled, plan)
        self.scales = 0.0

    def call(self, scale):
        self.loop(x=self.x, y=self.y, scale=scale)
        self.scales += scale

    def check(self):
        assert np.array_equal(self.y, self.scales * self.one)


def at_each_line(file, function, called):
    """Run ``function``, and ``called`` at each line of a file that it comes to."""

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            called()
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_at_any_line_of_another_leaves_it_as_it_is(plan, monkeypatch, threads):
    monkeypatch.setattr(pool, "thread_count", lambda: threads)
    outer, inner = Sums(plan), Sums(plan)
    for _ in range(SETTLES):
        outer.call(1.0)
        inner.call(1.0)
    ran = 0

    def inside():
        nonlocal ran
        # the same loop on the same arrays with another number, and another loop
        outer.call(3.0)
        inner.call(5.0)
        ran += 1

    for _ in range(3):
        at_each_line(pool.__file__, lambda: outer.call(2.0), inside)
    assert ran > 10
    outer.check()
    inner.check()
    assert not pool._pool.own.inside.locked()


def test_a_call_between_two_parts_of_another_is_refused(plan):
    outer, inner = Sums(plan), Sums(plan)
    for _ in range(SETTLES):
        inner.call(1.0)
    refused = []

    def inside():
        try:
            inner.call(1.0)
        except MeshprepError as error:
            refused.append(str(error))

    # the first calls try forms of the code, turn by turn
    at_each_line(executor.__file__, lambda: outer.call(1.0), inside)
    assert len(refused) > 3
    assert all("another one of the same thread has run in part" in text for text in refused)
    outer.check()
    inner.check()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of the system")
def test_a_signal_handler_may_run_loops(plan):
    outer, inner = Sums(plan), Sums(plan)
    for _ in range(SETTLES):
        outer.call(1.0)
        inner.call(1.0)
    before = signal.signal(signal.SIGALRM, lambda *_: inner.call(1.0))
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        while inner.scales < SETTLES + 20:
            outer.call(1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    outer.check()
    inner.check()


def test_finalizers_may_run_loops(plan):
    class Mesh:
        pass

    outer, inner = Sums(plan), Sums(plan)
    for _ in range(SETTLES):
        outer.call(1.0)
        inner.call(1.0)
    held = [Mesh()]
    weakref.finalize(held[0], inner.call, 1.0)
    with pool._pool.turn, pool._pool.own.inside:
        held.clear()
    inner.check()
    assert inner.scales == SETTLES + 1


def test_chains_inside_of_a_call_run_on_one_thread():
    ran = []
    with pool._pool.own.inside:
        pool.share(ran.append, 4)
    assert ran == [0]
    with (
        pool._pool.own.half_done,
        pytest.raises(MeshprepError, match="has run in part"),
    ):
        pool.share(ran.append, 4)
