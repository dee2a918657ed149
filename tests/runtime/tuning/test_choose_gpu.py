"""What ``strategy="auto"`` takes on a GPU."""

import re
from dataclasses import replace

import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, loop_of, random_plan

from meshprep_runtime import Access, Arg, Loop, ParLoop, PlanError
from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.plan.tuned import Machine, Trial, Tuned
from meshprep_runtime.tuning.choose_gpu import choose, staged_bytes

pytestmark = pytest.mark.usefixtures("needs_gxx")


def chosen(plan, layout=LAYOUT, most_shared=227 * 1024, **asked):
    loop = ParLoop(BODY, plan, layout=layout)
    return choose(plan, loop._slots, most_shared, **asked)


def test_auto_stages_what_is_read_twice(slow, plan):
    """Elements of `plan` share points with few others; those of the second all have the same."""
    assert chosen(plan).strategy == "hierarchical-inc"
    reason = r"by rule, not measured: all that is read, 1\.\d times, is not worth staging"
    assert re.fullmatch(reason, chosen(plan).because)
    dense = random_plan(slow, 90, 8, 32, 5)
    found = chosen(dense)
    assert (found.strategy, found.variant, found.commit) == (
        "hierarchical",
        "s32",
        "colours",
    )
    reason = r"by rule, not measured: elements read each staged value \d+\.\d times"
    assert re.fullmatch(reason, found.because)
    need = program(BODY, dense, "hierarchical", layout=LAYOUT).shared_bytes
    slots = loop_of(dense)._slots
    assert staged_bytes(dense, slots, dense.variant()) == need
    only = program(BODY, dense, "hierarchical-inc", layout=LAYOUT).shared_bytes
    increments = staged_bytes(dense, slots, dense.variant(), reads=False)
    # Reductions take eight bytes a thread, after the increments.
    assert max(increments, 32 * 8) == only
    assert chosen(dense, most_shared=need - 1).strategy == "hierarchical-inc"
    assert chosen(dense, most_shared=increments - 1).strategy == "global-atomics"


def test_auto_takes_blocks_for_a_gpu(slow):
    plan = random_plan(slow, 90, 8, 32, 5)
    (large,) = plan.variants.values()
    cpu = replace(large, name="s4096", block_size=4096, target="cpu")
    both = replace(plan, variants={"s4096": cpu, "s32": large}, default="s4096")
    assert chosen(both).variant == "s32"
    only = replace(plan, variants={"s4096": cpu}, default="s4096")
    assert chosen(only) == chosen(replace(plan, variants={}, default=""))
    assert chosen(only).strategy == "global-atomics"
    assert chosen(both, strategy="global-colouring").variant is None


def test_auto_takes_what_was_tuned_on_this_device(slow, device):
    plan = random_plan(slow, 90, 8, 32, 5)
    soa = tuple(LAYOUT)

    def tuned(name, kernel, *best):
        trials = (Trial(*best, soa, 1e-5, 1e-5, 0.0, 9),)
        return Tuned(Machine("gpu", name), kernel, True, trials)

    known = replace(
        plan,
        tuned=(
            tuned("emulated", "body", "staged-gather", "s32"),
            tuned("emulated", "other", "shared-atomics", "s32"),
            tuned("another", "body", "global-atomics", ""),
        ),
    )
    assert loop_of(known, strategy="auto").on_gpu.strategy == "staged-gather"
    assert chosen(known, device="another", kernel="body").strategy == "global-atomics"
    assert chosen(known, device="another", kernel="body").variant is None
    assert chosen(known, device="unknown", kernel="body") == chosen(plan)
    assert chosen(known, layout="aos", device="emulated") == chosen(plan, layout="aos")
    foreign = replace(plan, tuned=(tuned("emulated", "", "warps", ""),))
    with pytest.raises(
        PlanError, match="tuned for strategy 'warps', which is unknown here: name"
    ):
        chosen(foreign, device="emulated")


def test_auto_without_writes_through_maps(slow, device):
    args = (
        Arg("x", Access.READ, 1, "f8", "elements->points", (0, 1)),
        Arg("mean", Access.WRITE, 1, "f8"),
    )
    table = np.random.default_rng(0).integers(0, 20, (50, 2))
    loop = Loop("mean", "elements", args)
    plan = slow.plan({"elements": 50, "points": 20}, {"elements->points": table}, [loop])[
        "mean"
    ]
    text = "__device__ void f(const double* a, const double* b, double* m) "
    text += "{ m[0] = 0.5 * (a[0] + b[0]); }"
    run = ParLoop(DeviceFunction("f", text), plan)
    x, mean = device.array(np.arange(20.0)), device.array(np.zeros(50))
    run(x=x, mean=mean)
    assert np.array_equal(mean.get(), table.mean(axis=1))
    assert run.on_gpu.strategy == "global-atomics"
