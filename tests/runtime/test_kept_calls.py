"""What is kept of a call for the next one must not show: each call is as if it were the first."""

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from python_loops import INC, READ, RW, edge_plan

from meshprep_runtime import Arg, Loop, MeshprepError, ParLoop, Program
from meshprep_runtime.program.replay import LOOKS

# Calls after which the form of a loop is known, and the call kept.
MANY = 20
N = 20


def add_weighted(x, c, a, b):
    a[0] += c[0] * x[0]
    b[0] += c[0] * x[0]


@pytest.fixture
def plan(slow):
    grid = slow.quads(5, 4)
    args = (
        Arg("x", READ, 1, "f8"),
        Arg("c", READ, 1, "f8", is_global=True),
        Arg("y", INC, 1, "f8", "edges->cells", (0, 1)),
    )
    return slow.plan(grid.sizes, grid.tables, [Loop("add", "edges", args)], (4,))


@pytest.fixture
def edges(plan):
    return plan.sizes["edges"]


class Solver:
    """One loop and its arrays, called in one of three ways."""

    def __init__(self, plan, how):
        self.x = np.arange(1.0, plan.sizes["edges"] + 1)
        self.y = np.zeros(plan.sizes["cells"])
        self.once = expected(plan, self.x, 0.5)
        program = Program(plan)
        x = program.dat("edges", values=self.x)
        y = program.dat("cells", values=self.y)
        in_program = program.loop(add_weighted, "add")
        alone = ParLoop(add_weighted, plan["add"])
        if how == "loop":
            self.call = lambda: alone(x=self.x, c=0.5, y=self.y)
        elif how == "program":
            self.call = lambda: in_program(x=x, c=0.5, y=y)
        else:
            self.call = program.replay(lambda: in_program(x=x, c=0.5, y=y))
        for _ in range(LOOKS[1] + 6):
            self.call()
        self.y[:] = 0


def expected(plan, x, c):
    """What a call adds, point by point."""
    found = np.zeros(plan.sizes["cells"])
    for one, (a, b) in zip(x, plan.maps["edges->cells"].table, strict=True):
        found[a] += c * one
        found[b] += c * one
    return found


EACH = pytest.mark.parametrize("how", ["loop", "program", "replay"])


# --- Numbers ---


def test_arrays_of_another_call_with_its_number(plan, edges):
    loop = ParLoop(add_weighted, plan["add"])
    x, first, second = np.ones(edges), np.zeros(N), np.zeros(N)
    for _ in range(MANY):
        loop(x=x, c=0.5, y=first)
    loop(x=x, c=100.0, y=first)
    loop(x=x, c=0.5, y=second)
    assert second.sum() == 2 * edges * 0.5


@pytest.mark.parametrize("number", [float, np.float64, lambda v: np.array([v])])
def test_two_fields_in_two_stages(slow, number):
    """Each stage has a number of its own, and the fields take turns."""
    grid = slow.quads(5, 4)
    args = (
        Arg("q", READ, 1, "f8", "edges->cells", (0, 1)),
        Arg("r", INC, 1, "f8", "edges->cells", (0, 1)),
        Arg("w", READ, 1, "f8", is_global=True),
    )
    flux_loop = Loop("flux", "edges", args)
    step_loop = Loop("step", "cells", (Arg("q", RW, 1, "f8"), Arg("r", RW, 1, "f8")))
    plan = slow.plan(grid.sizes, grid.tables, [flux_loop, step_loop], (4,))

    def flux(q1, q2, r1, r2, w):
        r1[0] += w[0] * (q2[0] - q1[0])
        r2[0] -= w[0] * (q2[0] - q1[0])

    def step(q, r):
        q[0] += r[0]
        r[0] = 0.0

    def solve(again):
        fields = [np.sin(np.arange(N) * 0.1), np.cos(np.arange(N) * 0.3)]
        rates = np.zeros((2, N))
        loops = [ParLoop(flux, plan["flux"]), ParLoop(step, plan["step"])]
        for _ in range(MANY):
            for q, r in zip(fields, rates, strict=True):
                for w in (0.1, 0.3):
                    if again:
                        loops = [ParLoop(flux, plan["flux"]), ParLoop(step, plan["step"])]
                    loops[0](q=q, r=r, w=number(w))
                    loops[1](q=q, r=r)
        return fields

    for kept, new in zip(solve(False), solve(True), strict=True):
        np.testing.assert_array_equal(kept, new)


@pytest.mark.parametrize("between", [True, False])
def test_a_replay_keeps_its_number_when_the_loop_is_called_with_another(
    plan, edges, between
):
    program = Program(plan)
    x = program.dat("edges", values=np.ones(edges))
    y = program.dat("cells")
    loop = program.loop(add_weighted, "add")
    again = program.replay(lambda: loop(x=x, c=0.5, y=y))
    for _ in range(LOOKS[1] + 6):
        again()
        if between:
            loop(x=x, c=7.0, y=y)
    loop(x=x, c=7.0, y=y)
    y.values(write=True)[:] = 0
    again()
    assert y.values().sum() == 2 * edges * 0.5


def test_numbers_of_several_kinds_in_turn(plan, edges):
    loop = ParLoop(add_weighted, plan["add"])
    x, y = np.ones(edges), np.zeros(N)
    held = np.array([0.25])
    numbers = [0.5, 2, np.float64(4.0), np.float32(0.5), np.int64(3), True, held, -0.0, 1]
    for _ in range(MANY):
        for number in numbers:
            y[:] = 0
            loop(x=x, c=number, y=y)
            assert y.sum() == 2 * edges * float(np.ravel(number)[0])
        held[0] += 0.25


def test_a_zero_keeps_its_sign(slow):
    plan = edge_plan(slow, Arg("v", RW, 1, "f8"), Arg("c", READ, 1, "f8", is_global=True))

    def fill(v, c):
        v[0] = c[0]

    loop, v = ParLoop(fill, plan, strategy="sequential"), np.ones(plan.sizes["edges"])
    for number in (0.0, -0.0, 0.0, np.float64(-0.0)):
        loop(v=v, c=number)
        assert np.signbit(v).all() == np.signbit(number)


def test_threads_that_call_one_loop_with_numbers_and_arrays_of_their_own(plan, edges):
    loop = ParLoop(add_weighted, plan["add"])
    x = np.ones(edges)

    def work(number):
        found = set()
        for k in range(200):
            if k % 3 == 0:
                y = np.zeros(N)
            y[:] = 0
            loop(x=x, c=number + k, y=y)
            found.add(y.sum() - 2 * edges * (number + k))
        return found

    with ThreadPoolExecutor(4) as pool:
        assert set().union(*pool.map(work, [0.5, 1000.5, 2000.5, 3000.5])) == {0.0}


# --- Arrays that change in place ---


def move(array):
    """Other memory under the same object, with zeros."""
    n = array.size
    array.resize(1000 * n, refcheck=False)
    array.resize(n, refcheck=False)
    array[:] = 0


@EACH
def test_an_array_that_was_moved(plan, how):
    solver = Solver(plan, how)
    for _ in range(LOOKS[0] + 2):
        # the system may give the next of them the old place
        move(solver.y)
        held = np.full(solver.y.size, 7.0)
        solver.call()
        np.testing.assert_array_equal(solver.y, solver.once)
        assert (held == 7.0).all()


def longer(array):
    array.resize(array.size + 1, refcheck=False)


def shorter(array):
    array.resize(array.size - 1, refcheck=False)


def whole_numbers(array):
    array.dtype = "i8"


def byte_order(array):
    array.dtype = array.dtype.newbyteorder()


def square(array):
    array.shape = (5, 4)


def backwards(array):
    array.strides = (0,)


def read_only(array):
    array.flags.writeable = False


CHANGES = {
    longer: "'y' has shape (21,), must be (20, 1) or (20,), one row an element of 'cells'",
    shorter: "'y' has shape (19,), must be (20, 1) or (20,), one row an element of 'cells'",
    whole_numbers: "'y' has dtype int64, must be float64",
    byte_order: "'y' has dtype >f8, must be float64",
    square: "'y' has shape (5, 4), must be (20, 1) or (20,), one row an element of 'cells'",
    backwards: "'y' is not contiguous: pass np.ascontiguousarray of it",
    read_only: "'y' is read-only, but the loop changes it (inc)",
}


@EACH
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_an_array_that_does_not_fit_any_more_is_refused(plan, how, change):
    solver = Solver(plan, how)
    with warnings.catch_warnings():
        # NumPy wants views instead
        warnings.simplefilter("ignore", DeprecationWarning)
        change(solver.y)
    before = solver.y.tobytes()
    for _ in range(2):
        with pytest.raises(MeshprepError) as error:
            solver.call()
        assert str(error.value) == f"loop 'add': argument {CHANGES[change]}"
    assert solver.y.tobytes() == before


@EACH
def test_a_column_is_as_good_as_before(plan, how):
    solver = Solver(plan, how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        solver.y.shape = (N, 1)
    solver.call()
    np.testing.assert_array_equal(solver.y[:, 0], solver.once)


def test_what_is_written_again_after_it_was_read_only(plan):
    solver = Solver(plan, "replay")
    read_only(solver.y)
    with pytest.raises(MeshprepError, match="'y' is read-only"):
        solver.call()
    solver.y.flags.writeable = True
    for k in range(LOOKS[0] + 2):
        solver.call()
        np.testing.assert_array_equal(solver.y, (k + 1) * solver.once)


def test_views_that_are_made_anew(plan, edges):
    """Of the same memory, or beside it."""
    loop = ParLoop(add_weighted, plan["add"])
    x, memory = np.ones(edges), np.zeros(2 * N)
    for _ in range(MANY):
        loop(x=x[:], c=0.5, y=memory[:N])
    memory[:] = 0
    loop(x=x[:], c=0.5, y=memory[N:])
    assert memory[:N].sum() == 0
    loop(x=x[:], c=2.0, y=memory[:N].reshape(N, 1))
    assert memory[:N].sum() == 4 * memory[N:].sum() == 2 * edges * 2.0


# --- Loops that are more than one ---


def test_two_loops_of_one_plan(plan, edges):
    first, second = (ParLoop(add_weighted, plan["add"]) for _ in range(2))
    x, y = np.ones(edges), np.zeros(N)
    for k in range(MANY):
        first(x=x, c=1.0, y=y)
        second(x=x, c=float(-k), y=y)
        assert y.sum() == 2 * edges * (1 - k)
        y[:] = 0


def test_kernels_that_differ_in_a_closure(plan, edges):
    def scaled(by):
        def kernel(x, c, a, b):
            a[0] += by * c[0] * x[0]
            b[0] += by * c[0] * x[0]

        return kernel

    loops = [ParLoop(scaled(by), plan["add"]) for by in (1.0, 3.0)]
    x, y = np.ones(edges), np.zeros(N)
    for _ in range(MANY):
        for loop, by in zip(loops, (1.0, 3.0), strict=True):
            y[:] = 0
            loop(x=x, c=0.5, y=y)
            assert y.sum() == edges * by


AGAIN = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda loop: pickle.loads(pickle.dumps(loop)),
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_copies_know_nothing_of_the_calls(plan, edges, again):
    loop = ParLoop(add_weighted, plan["add"])
    x, y = np.ones(edges), np.zeros(N)
    for _ in range(MANY):
        loop(x=x, c=0.5, y=y)
    other, theirs = again(loop), np.zeros(N)
    for k in range(MANY):
        theirs[:] = 0
        other(x=x, c=float(k), y=theirs)
        loop(x=x, c=100.0, y=y)
        assert theirs.sum() == 2 * edges * k
