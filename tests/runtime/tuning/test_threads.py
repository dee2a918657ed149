"""Numbers of threads of a GPU's thread block: when they are tried, and what the plan remembers."""

from dataclasses import replace

import pytest

from meshprep_runtime import Access, Arg, Loop
from meshprep_runtime.plan.records import from_json, to_json
from meshprep_runtime.plan.tuned import CPU, GPU, Machine, Trial
from meshprep_runtime.tuning.machines import (
    Backend,
    fewer_threads,
    variants_on_cpu,
    variants_on_gpu,
)
from meshprep_runtime.tuning.tune import tune

ADD = Loop(
    "add",
    "edges",
    (
        Arg("x", Access.READ, 2, "f8", "edges->nodes", (0, 1)),
        Arg("res", Access.INC, 3, "f8", "edges->cells", (0, 1)),
    ),
)
THERE = Backend(Machine(GPU, "there"), ("hierarchical", "global-atomics"), variants_on_gpu)
HERE = Backend(Machine(CPU, "here", 2), ("hierarchical",), variants_on_cpu)


def add(x1, x2, res1, res2):
    """It does not run."""


@pytest.fixture(scope="module")
def plan(slow):
    grid = slow.quads(12, 12)
    return slow.plan(grid.sizes, grid.tables, [ADD], (64, 130))["add"]


def seconds(candidate):
    found = {None: 1.0, 96: 0.7, 64: 0.8}[candidate.threads]
    return (
        found + 0.1 * (candidate.variant != "s130") + 0.1 * (candidate.commit == "colours")
    )


def test_whole_warps_and_two_of_them_at_least(slow, plan):
    """Half of 130 is 65, in whole warps 96; a quarter is 64. Half of 64 is one warp."""
    assert fewer_threads(plan.variants["s130"]) == [96, 64]
    assert fewer_threads(plan.variants["s64"]) == []
    sizes = {
        512: [256, 128],
        256: [128, 64],
        128: [64],
        96: [64],
        80: [64],
        1024: [512, 256],
    }
    for size, threads in sizes.items():
        assert fewer_threads(replace(plan.variants["s64"], block_size=size)) == threads


def test_the_best_of_each_block_size_is_tried_with_fewer_threads(plan, scripted):
    prepared, told = scripted(seconds), []
    found = tune(
        add,
        plan,
        {},
        backend=THERE,
        layouts=["aos"],
        runs=1,
        progress=lambda done, total, what: told.append((done, total)),
    )
    fewer = {(c.variant, c.commit, c.threads) for c in prepared if c.threads}
    # Where there are no blocks, there is nothing to divide.
    assert fewer == {("s130", "atomics", 96), ("s130", "atomics", 64)}
    assert (found.best.variant, found.best.threads) == ("s130", 96)
    assert found.best.seconds == pytest.approx(0.7)
    # All were counted before the first one ran.
    assert told == [(i, 7) for i in range(7)]


def test_layouts_are_tried_with_the_best_threads(plan, scripted):
    prepared = scripted(lambda c: seconds(c) - 0.1 * (c.soa == ("x",)))
    found = tune(add, plan, {}, backend=THERE, runs=1)
    assert {c.threads for c in prepared if len(c.soa) == 1} == {96}
    assert (found.best.threads, found.best.soa) == (96, ("x",))
    best = next(c for c in prepared if (c.threads, c.soa) == (96, ("x",)))
    assert str(best) == "hierarchical s130 by 96 threads atomics, SoA x"


def test_a_processor_has_no_threads_of_a_block(plan, scripted):
    prepared = scripted(seconds)
    tune(add, plan, {}, backend=HERE, runs=1)
    assert {c.threads for c in prepared} == {None}


def test_threads_in_a_plan_file():
    """Who tuned none finds the words of before."""
    made = Trial("hierarchical", "s8", (), 1.0, 1.0, 0.0, 3)
    assert "threads" not in to_json(made)
    for trial in (made, replace(made, threads=128)):
        assert from_json(Trial, to_json(trial), "a trial") == trial
