"""Tuning: what it tries and keeps, with scripted times."""

from dataclasses import replace
from itertools import cycle

import numba
import numpy as np
import pytest
from flux_loop import FLUX, flux, with_tuned

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.cuda.device import use
from meshprep_runtime.cuda.strategies import hopeless
from meshprep_runtime.plan.tuned import CPU, GPU, Machine
from meshprep_runtime.tuning.lookup import processor_name
from meshprep_runtime.tuning.machines import (
    Backend,
    grid,
    on_gpu,
    variants_on_cpu,
    variants_on_gpu,
)
from meshprep_runtime.tuning.tune import TuningCandidate, synthetic, tune

HERE = Backend(
    Machine(CPU, "here", 2), ("hierarchical", "sequential", "two-step"), variants_on_cpu
)


@pytest.fixture
def plan(flux_plan):
    return flux_plan


def scored(candidate):
    base = {"hierarchical": 1.0, "sequential": 1.2, "two-step": 4.0}[candidate.strategy]
    base += {"s4": 0.2, "s8": 0.0, "": 0.0}[candidate.variant]
    cost = {"x": 0.05, "q": -0.1, "res": 0.3}
    return base + sum(cost[dat] for dat in candidate.soa)


def test_every_way_is_tried_and_the_layout_of_each_dat_alone(plan, scripted):
    scripted(scored)
    found = tune(flux, plan, {}, backend=HERE, runs=4)
    best = found.best
    # q is better off as SoA although all three together are not.
    assert (best.strategy, best.variant, best.soa) == ("hierarchical", "s8", ("q",))
    assert best.seconds == pytest.approx(0.9)
    tried = {TuningCandidate(t.strategy, t.variant, t.soa) for t in found.trials}
    whole = {
        TuningCandidate(s, v, soa)
        for s, vs in {
            "hierarchical": ("s4", "s8"),
            "sequential": ("",),
            "two-step": ("",),
        }.items()
        for v in vs
        for soa in ((), ("x", "q", "res"))
    }
    single = {TuningCandidate("hierarchical", "s8", (d,)) for d in ("x", "q", "res")}
    assert tried == whole | single
    seconds = [t.seconds for t in found.trials]
    assert seconds == sorted(seconds)
    assert (found.machine, found.kernel, found.measured) == (HERE.machine, "flux", True)


def test_two_dats_that_pay_are_put_together(plan, scripted):
    scripted(lambda c: 1.0 - 0.1 * len({"x", "q"} & set(c.soa)) + ("res" in c.soa))
    found = tune(flux, plan, {}, backend=HERE, strategies=["sequential"])
    assert found.best.soa == ("x", "q")


def test_what_is_clearly_slower_is_given_up(plan, scripted):
    scripted(scored)
    found = tune(flux, plan, {}, backend=HERE, runs=4, patience=1.5, layouts=["aos"])
    runs = {t.strategy: t.runs for t in found.trials if t.variant != "s4"}
    # The fastest three run again in the end.
    assert runs == {"hierarchical": 8, "sequential": 8, "two-step": 3}


def test_what_is_as_fast_within_the_noise(plan, scripted):
    """Runs of hierarchical differ by 30 %; two-step takes twice as long and is given up."""
    times = {
        "hierarchical": [1.3, 1.0, 1.1],
        "sequential": [1.2, 1.25, 1.2],
        "two-step": [2.6],
    }
    runs = {name: cycle(values) for name, values in times.items()}
    scripted(lambda c: next(runs[c.strategy]) + 0.4 * (c.variant == "s4"))
    found = tune(flux, plan, {}, backend=HERE, runs=6, layouts=["aos"])
    assert (found.best.strategy, found.best.seconds) == ("hierarchical", 1.0)
    assert found.best.spread == pytest.approx(0.3)
    assert [(t.strategy, t.seconds) for t in found.equals] == [("sequential", 1.2)]
    # Without noise there is no doubt, and the traffic model knows none.
    runs = {name: cycle([min(values)]) for name, values in times.items()}
    assert tune(flux, plan, {}, backend=HERE, runs=6, layouts=["aos"]).equals == ()
    assert replace(found, measured=False).equals == ()


def test_a_hiccup_in_the_first_run_costs_nobody_the_place(plan, scripted):
    hiccups = iter([50.0, 0.5])
    scripted(lambda c: next(hiccups, 0.5) if c.strategy == "sequential" else 1.0)
    asked = {"backend": HERE, "runs": 4, "layouts": ["aos"]}
    assert (
        tune(
            flux, plan, {}, strategies=["hierarchical", "sequential"], **asked
        ).best.seconds
        == 0.5
    )


def test_the_fastest_run_counts_and_the_spread_is_told(plan, scripted):
    times = iter([3.0, 1.0, 2.0, 1.5, 1.2, 1.1])
    scripted(lambda c: next(times))
    found = tune(
        flux, plan, {}, backend=HERE, runs=3, strategies=["sequential"], layouts=["aos"]
    )
    (trial,) = found.trials
    assert (trial.seconds, trial.median, trial.spread, trial.runs) == (1.0, 1.35, 2.0, 6)


def test_strategies_that_cannot_run_the_loop_are_left_out(slow, scripted):
    scripted(lambda c: 1.0)
    grid = slow.quads(3, 3)
    args = (Arg("q", Access.RW, 1, "f8", "edges->cells", (0, 1)),)
    plan = slow.plan(grid.sizes, grid.tables, [Loop("relax", "edges", args)], (4,))["relax"]
    found = tune(flux, plan, {}, backend=HERE)
    assert {t.strategy for t in found.trials} == {"hierarchical", "sequential"}
    with pytest.raises(MeshprepError, match="none of two-step can run it"):
        tune(flux, plan, {}, backend=HERE, strategies=["two-step"])


def test_what_it_refuses(plan):
    with pytest.raises(MeshprepError, match="strategy 'magic' is unknown here: use hier"):
        tune(flux, plan, {}, backend=HERE, strategies=["magic"])
    with pytest.raises(MeshprepError, match="layout 'rows' is unknown: use aos, soa"):
        tune(flux, plan, {}, backend=HERE, layouts=["rows"])
    with pytest.raises(MeshprepError, match="runs is 0"):
        tune(flux, plan, {}, backend=HERE, runs=0)


def test_loops_really_run_and_the_values_stay(plan):
    values = synthetic(plan)
    before = {k: v.copy() for k, v in values.items()}
    found = tune(flux, plan, values, strategies=["sequential"], layouts=["aos"], runs=2)
    assert found.machine == Machine(CPU, processor_name(), numba.get_num_threads())
    assert all(t.seconds > 0 for t in found.trials)
    for name, value in values.items():
        np.testing.assert_array_equal(value, before[name])


def test_made_up_values_suit_the_loop(plan):
    values = synthetic(plan)
    ParLoop(flux, plan, strategy="sequential")(**values)
    assert np.isfinite(values["res"]).all()
    assert values["q"].min() >= 0.5


def test_what_a_gpu_may_try(plan, slow):
    assert variants_on_gpu(plan, "hierarchical") == [
        ("s4", "colours"),
        ("s8", "colours"),
        ("s4", "atomics"),
        ("s8", "atomics"),
    ]
    assert variants_on_gpu(plan, "global-atomics") == [("", "colours")]
    large = replace(plan.variants["s8"], block_size=2000)
    large = replace(plan, variants={**plan.variants, "s8": large})
    assert ("s8", "colours") not in variants_on_gpu(large, "hierarchical")
    grid = slow.quads(3, 3)
    read_only = Loop("look", "edges", (FLUX[0], Arg("out", Access.WRITE, 1, "f8")))
    direct = slow.plan(grid.sizes, grid.tables, [read_only], (4,))["look"]
    assert variants_on_gpu(direct, "hierarchical") == [("s4", "colours")]


def test_atomics_of_shared_memory_are_tried_when_asked_for(plan):
    """On f8 they are loops of the device; on f4 they are instructions."""
    assert hopeless(plan.loop, "shared-atomics")
    assert not hopeless(plan.loop, "global-atomics")
    assert not hopeless(plan.loop, "sequential")
    args = tuple(replace(a, dtype="f4") for a in plan.loop.args)
    assert not hopeless(replace(plan.loop, args=args), "shared-atomics")
    device = EmulatedDevice()
    backend = on_gpu(device, device.array, lambda array, values: None, device.synchronize)
    tried = {c.strategy for c in grid(plan, backend, None, [()])}
    assert "shared-atomics" not in tried
    assert tried > {"hierarchical", "global-atomics", "staged-gather"}
    assert {c.strategy for c in grid(plan, backend, ["shared-atomics"], [()])} == {
        "shared-atomics"
    }


@pytest.mark.usefixtures("needs_gxx")
def test_on_what_stands_for_a_gpu(plan):
    device = EmulatedDevice()
    backend = on_gpu(
        device, device.array, lambda array, values: array.set(values), device.synchronize
    )
    values = synthetic(plan)
    with use(device):
        found = tune(
            FLUX_IN_C,
            plan,
            values,
            backend=backend,
            strategies=["hierarchical", "global-atomics"],
            layouts=["aos"],
            runs=1,
        )
        assert found.machine == Machine(GPU, "emulated")
        assert found.kernel == "flux"
        assert {(t.strategy, t.variant, t.commit) for t in found.trials} == {
            ("global-atomics", "", "colours"),
            *(("hierarchical", v, c) for v in ("s4", "s8") for c in ("colours", "atomics")),
        }
        best = found.best
        chosen = ParLoop(FLUX_IN_C, with_tuned(plan, found)).on_gpu
        assert (chosen.strategy, chosen.variant or "", chosen.commit) == (
            best.strategy,
            best.variant,
            best.commit,
        )


FLUX_IN_C = DeviceFunction(
    "flux",
    """
__device__ void flux(const double* x1, const double* x2, const double* q1, const double* q2,
                     const double* w, double* res1, double* res2) {
  for (int k = 0; k < 3; ++k) {
    const double f = w[0] * (x1[0] - x2[1]) * (q1[k] + q2[k]);
    res1[k] += f;
    res2[k] -= f;
  }
}
""",
)
