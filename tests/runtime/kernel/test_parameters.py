"""Kernels with a parameter for each argument: tuples of rows."""

import ast

import effort
import numba
import numpy as np
import pytest
from cuda_loops import LAYOUT, OFTEN, body, random_plan, run_and_check
from hypothesis import given, settings
from hypothesis import strategies as st
from python_loops import INC, READ, RW, WRITE, edge_plan, reference, res_calc

from meshprep_runtime import Arg, Loop, MeshprepError, ParLoop, Program
from meshprep_runtime._numba.tuples import together
from meshprep_runtime.cpu import executor
from meshprep_runtime.cpu.source.element import CHUNK, LOCAL, ROWS
from meshprep_runtime.cpu.strategies import STRATEGIES
from meshprep_runtime.cuda import program
from meshprep_runtime.kernel.bind import slots
from meshprep_runtime.kernel.full_writes import full_writes
from meshprep_runtime.kernel.lint import lint_kernel
from meshprep_runtime.kernel.parameters import kernel_by_row
from meshprep_runtime.kernel.rows import rows_of
from meshprep_runtime.kernel.sums import may_wait

QUADS = Loop(
    "quads",
    "cells",
    (
        Arg("x", READ, 2, "i8", "cells->nodes", (0, 1, 2, 3)),
        Arg("k", READ, 1, "i8"),
        Arg("f", INC, 2, "i8", "cells->nodes", (0, 1, 2, 3)),
    ),
)


def spread(x, k, f):
    """What each corner has beyond the others, times the cell's number."""
    for i in range(4):
        for j in range(4):
            for c in range(2):
                f[i][c] += k[0] * (i + 1) * (x[i][c] - x[j][c])


def body_by_argument(w, d, x, c, a, b, total, least, most):
    """The body of `cuda_loops`, whose x and a have two rows an element."""
    d[0] += w[0]
    d[1] = 2 * d[0]
    for i in range(2):
        sign = 1 - 2 * i
        for k in range(3):
            if sign > 0:
                a[i][k] += (k + 1) * x[i][0] * c[0]
            else:
                a[i][k] -= x[i][1] + w[0]
    b[0] += w[0] * c[0]
    total[0] += w[0]
    total[-1] -= 2
    least[0] = min(least[0], x[0][1] - w[0])
    most[0] = max(most[0], w[0])


def res_calc_by_argument(x, q, adt, res):
    """Airfoil's flux, operation for operation that of `res_calc`."""
    dx = x[0][0] - x[1][0]
    dy = x[0][1] - x[1][1]
    mu = 0.05 * (adt[0][0] + adt[1][0])
    for k in range(4):
        f = 0.5 * (q[0][k] * dy - q[1][k] * dx) + mu * (q[0][k] - q[1][k])
        res[0][k] += f
        res[1][k] -= f


def quad_plan(slow, n_cells, n_nodes, seed, **options):
    """Quads with four different nodes each, by chance."""
    rng = np.random.default_rng(seed)
    corners = np.array([rng.permutation(n_nodes)[:4] for _ in range(n_cells)])
    sizes = {"cells": n_cells, "nodes": n_nodes}
    tables = {"cells->nodes": corners.reshape(-1, 4).astype(np.int32)}
    return slow.plan(sizes, tables, [QUADS], (8,), seed, **options)["quads"]


def sums_of_numpy(plan, x, k):
    """The same by arrays: `np.add.at` of all corners."""
    corners = plan.maps["cells->nodes"].table
    at_corners = x[corners]
    beyond = 4 * at_corners - at_corners.sum(axis=1, keepdims=True)
    factor = k[:, np.newaxis, np.newaxis] * np.arange(1, 5)[:, np.newaxis]
    f = np.zeros_like(x)
    np.add.at(f, corners, factor * beyond)
    return f


@pytest.mark.parametrize("strategy", effort.first([*STRATEGIES]))
@pytest.mark.parametrize("layout", ["aos", "soa"])
def test_sums_of_tuples_of_rows_are_those_of_numpy(slow, strategy, layout):
    if strategy == "two-step":
        pytest.skip("sums of whole numbers are refused there")
    plan = quad_plan(slow, n_cells=60, n_nodes=40, seed=1)
    rng = np.random.default_rng(2)
    x = rng.integers(-9, 9, (40, 2))
    k = rng.integers(-9, 9, 60)
    f = np.zeros((2, 40) if layout == "soa" else (40, 2), np.int64)
    given_x = np.ascontiguousarray(x.T) if layout == "soa" else x
    soa = {"x": layout, "f": layout}
    ParLoop(spread, plan, strategy=strategy, layout=soa)(x=given_x, k=k, f=f)
    assert np.array_equal(f.T if layout == "soa" else f, sums_of_numpy(plan, x, k))


@settings(max_examples=effort.examples(20), deadline=None)
@given(
    st.integers(1, 50),
    st.integers(4, 30),
    st.integers(0, 2**31),
    st.booleans(),
    st.sampled_from(["auto", "sequential", "hierarchical", "global-colouring"]),
)
def test_sums_on_random_quads(slow, n_cells, n_nodes, seed, lists, strategy):
    plan = quad_plan(slow, n_cells, n_nodes, seed, lists=lists)
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, (n_nodes, 2))
    k = rng.integers(-9, 9, n_cells)
    f = np.zeros_like(x)
    ParLoop(spread, plan, strategy=strategy)(x=x, k=k, f=f)
    assert np.array_equal(f, sums_of_numpy(plan, x, k))


def test_tuples_of_rows_give_the_bits_of_single_rows(airfoil):
    plan = airfoil["res_calc"]
    rng = np.random.default_rng(3)
    arrays = {}
    loop = ParLoop(res_calc_by_argument, plan)
    for slot in loop.slots:
        arrays[slot.name] = rng.random(slot.shape)
    theirs = {name: value.copy() for name, value in arrays.items()}
    loop(**arrays)
    ParLoop(res_calc, plan)(**theirs)
    assert np.array_equal(arrays["res"], theirs["res"])


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(("strategy", "commit"), effort.first(OFTEN))
def test_the_same_on_a_gpu_that_is_emulated(strategy, commit, slow):
    plan = random_plan(slow, 90, 50, 16, 2)
    for kernel in (body, body_by_argument):
        made = program(kernel, plan, strategy, commit=commit, layout=LAYOUT, threads=32)
        run_and_check(made, plan, seed=3)


def test_machine_code_for_a_gpu(slow, compiled):
    made = program(body_by_argument, random_plan(slow, 90, 50, 16, 2), "hierarchical")
    assert compiled(made, "sm_90").registers > 0


def furthest(rows, side):
    return max(rows[side][0], rows[side - 1][0])


def all_that_tuples_do(x, k, f):
    """Each way to take a tuple apart; the first index is not known to the compiler."""
    a, b, c, d = f
    for row in x[1:3]:
        first_and_row = (x[0], row)
        a[0] += first_and_row[k[0] % 2][1]
    for row, to in zip(x, f):  # noqa: B905 - numba knows no `strict`
        to[1] += row[0] + len(x)
    b[0] += x[k[0] % 4][0] + x[-1 - k[0] % 4][1]
    c[0] += furthest(x, k[0] % 4)
    (f + f)[2 + k[0] % 4][1] += 1
    d[0] += k[0]


@pytest.mark.parametrize("form", [ROWS, LOCAL, CHUNK])
@pytest.mark.parametrize("layout", ["aos", "soa"])
def test_compiled_tuples_are_those_of_python(slow, monkeypatch, form, layout):
    monkeypatch.setattr(executor, "forms", lambda **_: (form,))
    plan = quad_plan(slow, n_cells=60, n_nodes=40, seed=1)
    rng = np.random.default_rng(2)
    arrays = {s.name: rng.integers(0, 9, s.shape) for s in slots(plan)}
    given = {name: value.copy() for name, value in arrays.items()}
    if layout == "soa":
        given["x"] = np.ascontiguousarray(given["x"].T)
        given["f"] = np.ascontiguousarray(given["f"].T)
    loop = ParLoop(all_that_tuples_do, plan, layout={"x": layout, "f": layout})
    loop(**given)
    reference(kernel_by_row(all_that_tuples_do, plan.loop), plan, arrays)
    assert np.array_equal(given["f"].T if layout == "soa" else given["f"], arrays["f"])


@pytest.mark.parametrize("is_row_tuple", [False, True])
def test_no_jump_chooses_a_row(is_row_tuple):
    """Without jumps LLVM unrolls the loop over the corners, and computes elements in vectors."""

    @numba.njit
    def value_at(rows, corner):
        return rows[corner][0]

    @numba.njit
    def of_tuple(a, b, c, corner):
        return value_at((a, b, c), corner)

    @numba.njit
    def of_row_tuple(a, b, c, corner):
        return value_at(together((a, b, c)), corner)

    function = of_row_tuple if is_row_tuple else of_tuple
    rows = [np.full(1, float(value)) for value in range(3)]
    assert [function(*rows, corner) for corner in (0, 1, 2, -1)] == [0.0, 1.0, 2.0, 2.0]
    (code,) = value_at.inspect_llvm().values()
    assert ("switch" in code) != is_row_tuple


def data_choose_the_row(x, k, f):
    f[k[0]][0] += 1


@pytest.mark.parametrize("form", [ROWS, LOCAL, CHUNK])
@pytest.mark.parametrize(
    ("row", "fits"), [(3, True), (-4, True), (4, False), (-5, False), (2**40, False)]
)
def test_compiled_code_refuses_rows_beyond_the_tuple(slow, monkeypatch, form, row, fits):
    """Where no element of the sample takes them."""
    monkeypatch.setattr(executor, "forms", lambda **_: (form,))
    monkeypatch.setattr(executor.Executor, "check_sample", lambda *given: None)
    plan = quad_plan(slow, n_cells=60, n_nodes=40, seed=1)
    arrays = {s.name: np.zeros(s.shape, s.dtype) for s in slots(plan)}
    arrays["k"][7] = row
    loop = ParLoop(data_choose_the_row, plan)
    if not fits:
        with pytest.raises(IndexError, match="tuple index out of range"):
            loop(**arrays)
        return
    loop(**arrays)
    corners = plan.maps["cells->nodes"].table
    chosen = corners[np.arange(60), np.where(np.arange(60) == 7, row, 0)]
    counted = np.bincount(chosen, minlength=40)
    assert np.array_equal(arrays["f"][:, 0], counted)


def test_tiles_take_tuples_of_rows(airfoil):
    """The same loop twice, in tiles and one call after the other."""
    rng = np.random.default_rng(5)
    found = []
    values = {}
    for tiled in (False, True):
        flow = Program(airfoil)
        dats = {}
        for slot in ParLoop(res_calc, airfoil["res_calc"]).slots:
            values.setdefault(slot.name, rng.random(slot.shape))
            start = values[slot.name].copy()
            dats[slot.name] = flow.dat(slot.rows, slot.dim, values=start)
        loop = flow.loop(res_calc_by_argument, "res_calc")
        if tiled:
            with flow.chain():
                loop(**dats)
                loop(**dats)
        else:
            loop(**dats)
            loop(**dats)
        found.append(dats["res"].values())
    np.testing.assert_allclose(*found, rtol=1e-13, atol=1e-13)


def past_the_rows(x, k, f):
    for i in range(5):
        f[i][0] += k[0]


def past_the_components(x, k, f):
    f[3][2] += k[0]


def sets_what_it_adds_to(x, k, f):
    f[1][0] = k[0]


def sets_what_it_reads(x, k, f):
    x[1][0] = k[0]


def multiplies_in_a_helper(x, k, f):
    for i in range(4):
        multiply(f[i], k[0])


def multiply(row, value):
    row[0] *= value


def sets_a_row(x, k, f):
    f[0] += x[0]


def takes_two_indices(x, k, f):
    f[0][0] += x[0, 1]


def sets_by_two_indices(x, k, f):
    f[0, 1] += x[0][1]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (sets_a_row, r"'f', index 0: .* sets the row 'f\[0\]' as a whole: set f\[0\]\[0\]"),
        (takes_two_indices, r"'x', index 0: .* takes two indices .*: write x\[0\]\[1\]"),
        (sets_by_two_indices, r"'f', index 0: .* takes two indices .*: write f\[0\]\[1\]"),
        (past_the_rows, "'f', index 0: .* takes row 4 of a tuple of 4 rows"),
        (past_the_components, "'f', index 3: .* reaches component 2 of a row of dim 2"),
        (sets_what_it_adds_to, "'f', index 1: .* sets a row that is only added to"),
        (sets_what_it_reads, "'x', index 1: .* sets a row that is only read"),
        (multiplies_in_a_helper, "'f', index 0: kernel 'multiply' .* does more than add"),
    ],
)
def test_a_fault_in_the_source_names_the_row_of_the_tuple(slow, kernel, message):
    plan = quad_plan(slow, n_cells=6, n_nodes=9, seed=1)
    with pytest.raises(MeshprepError, match=message):
        ParLoop(kernel, plan)


def data_past_the_rows(x, k, f):
    f[k[0]][0] += 1


def data_past_the_components(x, k, f):
    f[3][k[0]] += 1


def data_sets_what_it_adds_to(x, k, f):
    f[k[0] - 6][1] = x[0][0]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (data_past_the_rows, "IndexError.*: an argument has as many rows as its index has"),
        (data_past_the_components, "'f', index 3: the kernel reaches component 7, but its"),
        (data_sets_what_it_adds_to, "'f', index 1, component 1: what is added depends"),
    ],
)
def test_a_fault_that_data_decide_is_seen_in_the_sample(slow, kernel, message):
    plan = quad_plan(slow, n_cells=6, n_nodes=9, seed=1)
    loop = ParLoop(kernel, plan)
    arrays = {s.name: np.full(s.shape, 7, s.dtype) for s in loop.slots}
    with pytest.raises(MeshprepError, match=message):
        loop.check_access(**arrays)
    with pytest.raises(MeshprepError, match=message):
        loop(**arrays)


def adds_twice(x, k, f):
    for i in (0, 1, 2, 3, 0):
        f[i][0] += k[0]


def adds_a_fraction(x, k, f):
    for i in range(4):
        add(f[i], 0.5 * x[i][0])


def add(row, value):
    row[0] += value


@pytest.mark.parametrize("kernel", [spread, adds_twice, adds_a_fraction])
def test_sums_that_may_not_wait(slow, kernel):
    """`spread` adds to a component three times, others twice, or fractions to integers."""
    plan = quad_plan(slow, n_cells=6, n_nodes=9, seed=1)
    by_row = kernel_by_row(kernel, plan.loop)
    assert not may_wait(by_row, rows_of(plan.loop, slots(plan)))


def test_sums_of_each_row_of_a_tuple_may_wait(airfoil):
    plan = airfoil["res_calc"]
    by_row = kernel_by_row(res_calc_by_argument, plan.loop)
    assert may_wait(by_row, rows_of(plan.loop, slots(plan)))


def test_another_number_of_parameters_names_both_ways(slow):
    plan = quad_plan(slow, n_cells=6, n_nodes=9, seed=1)

    def two(x, f):
        pass

    with pytest.raises(MeshprepError) as error:
        ParLoop(two, plan)
    assert str(error.value) == (
        "kernel 'two' has 2 parameters, but loop 'quads' hands it 9: x[0], x[1], x[2], x[3], "
        "k, f[0], f[1], f[2], f[3]; or 3, tuples of rows: x, k, f"
    )


def test_a_kernel_of_rows_stays_what_it_is(airfoil):
    assert kernel_by_row(res_calc, airfoil["res_calc"].loop) is res_calc


def test_rows_beside_tuples_are_read_in_the_source(slow):
    plan = edge_plan(
        slow,
        Arg("q", READ, 1, "f8", "edges->cells", (0, 1)),
        Arg("jump", WRITE, 2, "f8"),
        Arg("seen", RW, 1, "f8"),
    )

    def whole(q, jump, seen):
        jump[0] = q[1][0] - q[0][0]
        jump[1] = 0.0
        seen[0] += 1.0

    def past(q, jump, seen):
        jump[0] = q[1][0]
        jump[2] = q[0][0]

    assert full_writes(whole, plan.loop) == {"jump"}
    with pytest.raises(
        MeshprepError, match=r"'jump': .*reaches component 2 of a row of dim 2"
    ):
        ParLoop(past, plan)
    text = "def f(q, jump, seen):\n    jump[0] = q[1][0]\n    seen[0] += 1\n"
    (finding,) = lint_kernel(ast.parse(text).body[0], plan.loop, {})
    assert finding.what == "component 1 is not set: set it, or use rw"


def test_a_program_takes_tuples_of_rows(airfoil):
    rng = np.random.default_rng(4)
    flow = Program(airfoil)
    dats = {}
    arrays = {}
    for slot in ParLoop(res_calc, airfoil["res_calc"]).slots:
        arrays[slot.name] = rng.random(slot.shape)
        dats[slot.name] = flow.dat(slot.rows, slot.dim, values=arrays[slot.name].copy())
    flow.loop(res_calc_by_argument, "res_calc")(**dats)
    reference(res_calc, airfoil["res_calc"], arrays)
    np.testing.assert_allclose(dats["res"].values(), arrays["res"], rtol=1e-14, atol=1e-14)
