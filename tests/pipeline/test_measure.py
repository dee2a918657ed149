"""The stand-in for a solver moves what NumPy moves, in both orders."""

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.measure import (
    CALLS,
    _StandIn,
    gather,
    gather_direct,
    measure,
    scatter,
    scatter_direct,
)
from meshprep.pipeline.steps import prepare
from meshprep.staging.matrices import input_maps

TYPES = ("f4", "f8", "i4", "i8")
COMPONENTS = (0, 1, 2, 3)


def some(dtype, *shape):
    return np.random.default_rng(5).integers(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_read_is_what_numpy_reads(dtype):
    table, rows, sums = some("i4", 20, 3), some(dtype, 30, 4), np.ones(9)
    gather(table[5:], (0, 2), COMPONENTS, rows, 5, 12, sums)
    wanted = 1.0 + rows[table[5:12, [0, 2]]].sum(axis=(1, 2))
    assert np.array_equal(sums, [*wanted, 1, 1])
    gather_direct(COMPONENTS, rows, 5, 12, sums)
    assert np.array_equal(sums, [*(wanted + rows[5:12].sum(axis=1)), 1, 1])


@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_added_is_what_numpy_adds(dtype):
    table, rows, sums = some("i4", 20, 3), some(dtype, 30, 4), some("f8", 9)
    wanted = rows.copy()
    np.add.at(wanted, table[5:12][:, [0, 2]], sums[:7, None, None].astype(dtype))
    scatter(table[5:], (0, 2), COMPONENTS, rows, 5, 12, sums)
    assert np.array_equal(rows, wanted)
    wanted[5:12] += sums[:7, None].astype(dtype)
    scatter_direct(COMPONENTS, rows, 5, 12, sums)
    assert np.array_equal(rows, wanted)


ARGS = [
    {"dat": "q", "map": "edges->cells", "dim": 3, "access": "read"},
    {"dat": "w", "access": "read", "dtype": "f4"},
    {"global": "least", "access": "min"},
    {"dat": "r", "map": "edges->cells", "access": "inc", "dim": 2, "dtype": "i8"},
]


@pytest.fixture(scope="module")
def plan():
    mesh = generate("delaunay2d", cells=3000, seed=4)
    step = {"over": "cells", "args": [{"dat": "q", "access": "rw"}]}
    requests = [LoopRequest("flux", {"over": "edges", "args": ARGS}, "here")]
    return prepare(mesh, [*requests, LoopRequest("step", step, "here")]).plan


def test_both_orders_are_those_of_the_mesh_and_of_the_plan(plan):
    loop_plan = plan["flux"]
    before, after = _StandIn(plan, loop_plan).tables(range(100, 700))
    wanted = input_maps(plan, loop_plan)["edges->cells"].table[100:700]
    assert np.array_equal(before["edges->cells"], wanted)
    assert np.array_equal(
        after["edges->cells"], loop_plan.maps["edges->cells"].table[100:700]
    )


def test_a_call_moves_all_arguments_of_all_elements(plan):
    stand_in, n = _StandIn(plan, plan["flux"]), plan.sizes["edges"]
    for rows in stand_in._rows.values():
        rows[:] = some(rows.dtype, *rows.shape)
    q, w, r = (stand_in._rows[name].copy() for name in ("q", "w", "r"))
    _, after = stand_in.tables(range(n))
    stand_in.run(after, range(n))
    table = after["edges->cells"]
    sums = q[table].sum(axis=(1, 2)) + w[:, 0]
    np.add.at(r, table, sums[:, None, None].astype("i8"))
    assert np.array_equal(stand_in._rows["r"], r)
    assert np.array_equal(stand_in._rows["q"], q)
    assert n > 4096


def test_loops_through_maps_are_measured_in_turn(plan):
    found = measure(plan, 60.0)
    assert list(found) == ["flux"]
    assert found["flux"].before.runs == found["flux"].after.runs == CALLS
    assert measure(plan, 0.0) == {}
