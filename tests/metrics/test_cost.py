"""When a plan pays, and what its figures rest on."""

from dataclasses import replace

import pytest

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.metrics.cost import Cost, Measured, cost_of
from meshprep.reporting.compare import Comparison, compare
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.metrics import (
    Metrics,
    SectorCounts,
    StagedBytes,
    ThreadColourMetrics,
    VariantMetrics,
)
from meshprep_runtime.plan.tuned import Machine, Trial, Tuned

SIDE = VariantMetrics(
    block_size=256,
    partitioner="blocks",
    accesses=3600,
    loads=1000,
    reuse=3.6,
    blocks=5,
    block_colours=0,
    staged_bytes=StagedBytes(max=8192),
    thread_colours=ThreadColourMetrics(mean=3.0),
    traffic={"aos": SectorCounts(3000, 1000), "soa": SectorCounts(4000, 1000)},
)
CPU_SIDE = replace(SIDE, target="cpu")


@pytest.fixture(scope="module")
def plan():
    mesh = generate("delaunay2d", cells=400)
    return prepare(mesh, ["edges->cells"], Options(block_size=64)).plan


def _with_seconds(plan, seconds):
    return replace(plan, metrics=replace(plan.metrics, seconds={"blocks": seconds}))


def test_measured_times_say_when_a_plan_pays(plan):
    comparison = compare(plan, {"edges->cells": (5.0, 2.0)})
    (column,), found = comparison.columns(), comparison.figures()
    assert " as measured: its loop moves its data in 2 ms" in comparison.conclusion(
        "plan 1"
    )
    rows = {r["figure"]: (r["before"], r["after"]) for r in found}
    assert rows["measured ms a call"] == (5.0, 2.0)
    moved = column.after.useful_bytes
    assert rows["measured useful GB/s"] == pytest.approx((moved / 5e6, moved / 2e6))
    times = {"edges->cells": Measured.given(5.0, 2.0)}
    cost = cost_of(_with_seconds(plan, 3.0), times)
    assert (cost.seconds, cost.timed, cost.loops, cost.calls) == (3.0, 1, 1, 1000)
    assert cost.measured.before.least == pytest.approx(5e-3)
    assert cost.measured.saved == pytest.approx(3e-3)


def test_a_plan_that_saves_nothing_is_never_repaid(plan):
    cost = cost_of(_with_seconds(plan, 3.0), {"edges->cells": Measured.given(2.0, 2.5)})
    assert (cost.measured.saved, cost.calls) == (pytest.approx(-5e-4), None)
    alike = Measured.given(1000.0, 1000.0)
    assert Cost(seconds=3.0, measured=alike, timed=1, loops=1).calls is None
    nothing = Cost(seconds=0, measured=None, timed=0, loops=0)
    assert cost_of(replace(plan, metrics=Metrics()), {}) == nothing


def test_savings_of_several_loops_count_together():
    mesh = generate("delaunay2d", cells=400)
    plan = prepare(mesh, ["edges->cells", "cells->nodes"], Options(block_size=64)).plan
    times = {
        "edges->cells": Measured.given(5.0, 2.0),
        "cells->nodes": Measured.given(4.0, 3.0),
    }
    cost = cost_of(_with_seconds(plan, 2.0), times)
    assert (cost.measured.saved, cost.calls, cost.loops) == (
        pytest.approx(4e-3),
        500,
        2,
    )


def test_bad_times_are_refused(plan):
    with pytest.raises(MeshprepError, match="loop 'edges->cells': milliseconds"):
        compare(plan, {"edges->cells": (0.0, 1.0)})


def test_what_was_tuned_is_told(plan):
    loop = plan["edges->cells"]
    cpu = Tuned(
        Machine("cpu", "A chip", 2),
        "k",
        True,
        (Trial("sequential", "", (), 2e-3, 2e-3, 0.1, 9),),
    )
    trial = Trial("hierarchical", "s64", ("q", "r"), 1.5e-5, 1.5e-5, 0.0, 0, threads=32)
    gpu = Tuned(Machine("gpu", "H200"), "", False, (trial,))
    changed = replace(plan, loops={"edges->cells": replace(loop, tuned=(cpu, gpu))})
    said = Comparison(("a",), (changed,)).columns()[0].verdict
    # what an older version ranked without a GPU is left out
    assert said.endswith("; tuned for A chip, 2 threads: sequential AoS, 2 ms a call")
