"""Replayed loops: the same results as their calls, whatever happens to their dats in between."""

import copy
from functools import partial

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_loops import DIMS, LOOPS, SETS
from rank_programs import KERNELS, call, make_loops, on_one_rank, random_mesh, start_values
from slow_parts import World

from meshprep_runtime import (
    Access,
    Arg,
    DistributedPlan,
    Loop,
    MeshprepError,
    Program,
    run_ranks,
)
from meshprep_runtime.kernel.analysis import DeviceFunction
from meshprep_runtime.program.replay import LOOKS

GLOBALS = {"total": 2, "least": 1, "largest": 1}


@pytest.fixture(scope="module")
def plan(slow):
    sizes, tables = random_mesh(np.random.default_rng(3), 9)
    return slow.plan(sizes, tables, list(LOOPS.values()), (4,))


class Case:
    """A program with its dats, and globals as arrays and as the program's own."""

    def __init__(self, plan, **options):
        self.program = Program(plan, **options)
        values = start_values(np.random.default_rng(4), plan.sizes)
        self.dats = {
            n: self.program.dat(SETS.get(n, "cells"), DIMS[n], "i8", values=v.copy())
            for n, v in values.items()
        }
        self.reduced = self.program.reduced([5, 6], 2, "i8")
        self.globals = {n: np.arange(dim) for n, dim in GLOBALS.items()}
        self.loops = {
            n: self.program.loop(k, n, strategy="sequential") for n, k in KERNELS.items()
        }

    def call(self, name):
        args = LOOPS[KERNELS[name]].args
        values = {a.name: self.dats.get(a.name) for a in args if not a.is_global}
        values |= {a.name: self.globals[a.name][: a.dim] for a in args if a.is_global}
        if name == "update":
            values["total"] = self.reduced
        self.loops[name](**values)

    def state(self):
        found = {n: d.values().tolist() for n, d in self.dats.items()}
        found |= {n: v.tolist() for n, v in self.globals.items()}
        return found | {"reduced": self.reduced.value.tolist()}


def change(case):
    case.dats["q"].values(write=True)[0] = 77


def another_array(case):
    case.dats["res"].array = case.dats["res"].array + 1


def swap(case):
    q, old = case.dats["q"], case.dats["qold"]
    q.array, old.array = old.array, q.array


def another_global(case):
    case.globals["total"][0] = 40


def reset(case):
    case.program.reset()


BETWEEN = (None, None, None, change, another_array, swap, another_global, reset)
NAMES = st.lists(st.sampled_from(sorted(KERNELS)), min_size=1, max_size=6)


@settings(max_examples=effort.examples(20))
@given(names=NAMES, between=st.lists(st.sampled_from(BETWEEN), min_size=14, max_size=14))
def test_replays_are_the_same_calls(plan, names, between):
    called, replayed = Case(plan), Case(plan)
    again = replayed.program.replay(lambda: [replayed.call(n) for n in names])
    for what in between:
        for name in names:
            called.call(name)
        again()
        for case in (called, replayed) if what else ():
            what(case)
        assert replayed.state() == called.state()
    calls = [
        {n: loop.times.calls for n, loop in c.loops.items()} for c in (called, replayed)
    ]
    assert calls[0] == calls[1]


def warm(case, names=("flux", "update", "spread")):
    again = case.program.replay(lambda: [case.call(n) for n in names])
    for _ in range(LOOKS[0]):
        again()
    return again


def test_short_loops_are_run_by_one_call(plan, monkeypatch):
    case = Case(plan)
    again = warm(case)
    before = case.state(), case.dats["res"].version
    for loop in case.loops.values():
        monkeypatch.setattr(loop, "runner", None)
    again()
    assert case.state() != before[0]
    assert case.dats["res"].version == before[1] + 1


def test_numbers_stay_and_arrays_do_not(slow):
    grid = slow.quads(3, 2)
    loop = Loop(
        "step",
        "cells",
        (
            Arg("u", Access.RW, 1, "f8"),
            Arg("dt", Access.READ, 1, "f8", is_global=True),
            Arg("more", Access.READ, 1, "f8", is_global=True),
        ),
    )
    program = Program(slow.plan(grid.sizes, grid.tables, [loop], (4,)))
    u, dt, more = program.dat("cells"), 0.5, np.array([1.0])

    def step(u, dt, more):
        u[0] += dt[0] * more[0]

    made = program.loop(step, "step")
    again = program.replay(lambda: made(u=u, dt=dt, more=more))
    for _ in range(LOOKS[0] + 4):
        again()
    more[0] = 10.0
    again()
    assert set(u.values()) == {0.5 * (LOOKS[0] + 4) + 5.0}


def test_loops_that_take_long_are_called(plan, monkeypatch):
    """They take several threads."""
    case, called = Case(plan), Case(plan)
    monkeypatch.setattr(case.loops["update"], "alone", lambda given: [])
    again, ran = warm(case), []
    run = case.loops["update"].runner.on_host
    monkeypatch.setattr(
        case.loops["update"].runner,
        "on_host",
        lambda *given, **named: (ran.append(1), run(*given, **named)),
    )
    again()
    for _ in range(LOOKS[0] + 1):
        for name in ("flux", "update", "spread"):
            called.call(name)
    assert ran == [1]
    assert case.state() == called.state()


def test_in_a_chain_they_wait_with_the_others(plan, monkeypatch):
    case, called, names = Case(plan), Case(plan), ("update", "spread")
    again = warm(case, names)
    for name in names * LOOKS[0]:
        called.call(name)
    before = case.loops["spread"].times.calls
    with case.program.chain():
        case.call("areas")
        again()
        assert case.loops["spread"].times.calls == before
    for name in ("areas", *names):
        called.call(name)
    assert case.state() == called.state()
    for loop in case.loops.values():
        monkeypatch.setattr(loop, "runner", None)
    again()


def test_with_checkpoints_all_are_called(plan, tmp_path):
    case, called = Case(plan, checkpoint=tmp_path / "a.h5"), Case(plan)
    warm(case)()
    for _ in range(LOOKS[0] + 1):
        for name in ("flux", "update", "spread"):
            called.call(name)
    assert case.state() == called.state()


def test_on_a_gpu_all_are_called(slow, device):
    """Of a kernel in CUDA C, too, which has no code for the host."""
    grid = slow.quads(3, 2)
    loop = Loop("add", "cells", (Arg("u", Access.RW, 1, "f8"),))
    program = Program(slow.plan(grid.sizes, grid.tables, [loop], (4,)))
    u = program.dat("cells", values=device.array(np.zeros(6)))
    kernel = DeviceFunction("add", "__device__ void add(double* u) { u[0] += 1; }")
    made = program.loop(kernel, "add")
    again = program.replay(lambda: made(u=u))
    for _ in range(LOOKS[0] + 2):
        again()
    assert set(u.array.get()) == {LOOKS[0] + 2}


def test_a_kernel_that_fails(slow):
    """What it raises arrives; dats count as changed, loops after it have not run."""
    grid = slow.quads(3, 2)
    one = Loop("one", "cells", (Arg("u", Access.RW, 1, "i8"),))
    two = Loop(
        "two", "cells", (Arg("u", Access.READ, 1, "i8"), Arg("v", Access.RW, 1, "i8"))
    )
    program = Program(slow.plan(grid.sizes, grid.tables, [one, two], (4,)))
    u, v = (program.dat("cells", dtype="i8") for _ in range(2))

    def add(u):
        if u[0] == 9:
            raise ValueError("nine")
        u[0] += 1

    def copy_row(u, v):
        v[0] = u[0]

    loops = program.loop(add, "one"), program.loop(copy_row, "two")
    again = program.replay(lambda: (loops[0](u=u), loops[1](u=u, v=v)))
    for _ in range(9):
        again()
    version = u.version
    with pytest.raises(ValueError, match="nine"):
        again()
    assert u.version > version
    assert set(v.values()) == {9}


def test_copies_work_on_arrays_of_their_own(plan):
    case = Case(plan)
    again = warm(case)
    state = case.state()
    other = copy.deepcopy(again)
    for _ in range(LOOKS[0] + 1):
        other()
    assert case.state() == state


class Other:
    """An array of another library, which may be given other memory."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **words):
        return self.values.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def test_arrays_of_others_are_looked_at_in_every_call(plan):
    case = Case(plan)
    other = Other(case.dats["qold"].values().copy())
    given = {n: case.dats[n] for n in ("q", "res", "a")} | {
        "total": case.reduced,
        "qold": other,
    }
    again = case.program.replay(lambda: case.loops["update"](**given))
    for _ in range(LOOKS[0] + 1):
        again()
    other.values = np.full_like(other.values, 3)
    again()
    expected = (3 + case.dats["a"].values()) % 1009
    np.testing.assert_array_equal(case.dats["q"].values(), np.repeat(expected, 2, axis=1))


def on_rank(parts, values, names, comm):
    plan = DistributedPlan(parts[comm.rank], comm)
    program = Program(plan)
    dats = {
        n: program.dat(of, DIMS[n], "i8", values=v[plan.numbers(of)])
        for n, v in values.items()
        for of in [SETS.get(n, "cells")]
    }
    loops = make_loops(program, names, "sequential", ())
    again = program.replay(lambda: [call(loops, dats, n, 7) for n in names])
    for _ in range(LOOKS[0] + 2):
        again()
    return {n: plan.fetch(d) for n, d in dats.items()}


def test_on_ranks_all_are_called(slow):
    rng, names = np.random.default_rng(8), ["update", "spread", "areas"]
    sizes, tables = random_mesh(rng, 20)
    values = start_values(rng, sizes)
    owner = {s: rng.integers(0, 3, n) for s, n in sizes.items()}
    world = World(sizes, tables, list(LOOPS.values()), owner, 3)
    parts = [world.part(p, slow.variant) for p in range(3)]
    found, *_ = run_ranks(3, partial(on_rank, parts, values, names))
    expected, _ = on_one_rank(sizes, tables, values, names * (LOOKS[0] + 2))
    assert {n: v.tolist() for n, v in found.items()} == expected


@pytest.mark.parametrize(
    ("period", "said"),
    [
        (
            lambda case: None,
            "no loop of this program was called: give a function that calls it",
        ),
        (
            lambda case: case.loops["mark"](q=case.dats["q"]),
            "no argument 'flag'|needs 'flag'|flag",
        ),
    ],
)
def test_refused(plan, period, said):
    case = Case(plan)
    with pytest.raises(MeshprepError, match=said):
        case.program.replay(lambda: period(case))
    assert case.program.active is None
    with case.program.chain(), pytest.raises(MeshprepError, match="a chain is under way"):
        case.program.replay(lambda: case.call("update"))
