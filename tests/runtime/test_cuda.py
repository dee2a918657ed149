"""The CUDA text of every strategy, run on the CPU, against np.add.at."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, OFTEN, SUMS, WAYS, arrays, random_plan, run_and_check
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep_cuda_check.checked import run_checked
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.cuda import STRATEGIES, DeviceFunction, program
from meshprep_runtime.cuda.device import use


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(("strategy", "commit"), effort.some(WAYS, OFTEN))
def test_exactly_the_sums_of_numpy(strategy, commit, slow):
    """Blocks of 4 to 32 take the same text: one for ranges, one for lists of elements."""
    texts = {}

    @settings(max_examples=effort.examples(16), deadline=None)
    @given(
        n=st.integers(1, 90),
        n_points=st.integers(1, 60),
        block_size=st.integers(4, 32),
        seed=st.integers(0, 99),
        lists=st.booleans(),
    )
    def run(n, n_points, block_size, seed, lists):
        plan = random_plan(slow, n, n_points, block_size, seed, lists=lists)
        made = program(BODY, plan, strategy, commit=commit, layout=LAYOUT, threads=32)
        run_and_check(made, plan, seed=seed)
        texts.setdefault(lists, set()).add(made.text)

    run()
    assert [len(found) for found in texts.values()] == [1] * len(texts)
    # Who lists no elements gets the text of before; strategies without blocks know no lists.
    same = strategy == "block-permute" or not STRATEGIES[strategy].blocks
    assert len(set().union(*texts.values())) == (1 if same else len(texts))


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("layout", effort.first([dict.fromkeys("dxa", "soa"), {}]))
def test_layouts(layout, slow):
    plan = random_plan(slow, 70, 40, 16, 3)
    run_and_check(
        program(BODY, plan, "hierarchical", layout=layout, threads=32), plan, layout, 4
    )


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("place", effort.first([61, 0]))
def test_a_nan_that_a_kernel_leaves_stays(place, slow):
    names = {"least": Access.MIN, "most": Access.MAX}
    args = [Arg(name, access, 1, "f4", is_global=True) for name, access in names.items()]
    loop = Loop("lost", "cells", (Arg("v", Access.READ, 1, "f4"), *args))
    plan = slow.plan({"cells": 90}, {}, [loop], (16,))["lost"]
    text = """\
__device__ void lost(const float* v, float* least, float* most) {
  least[0] = v[0] < least[0] || v[0] != v[0] ? v[0] : least[0];
  most[0] = v[0] > most[0] || v[0] != v[0] ? v[0] : most[0];
}
"""
    v = np.arange(90, dtype="f4")
    v[place] = np.nan
    found = {name: np.full(1, 50, "f4") for name in names}
    with use(EmulatedDevice()) as device:
        given = {name: device.array(value) for name, value in found.items()}
        ParLoop(DeviceFunction("lost", text), plan)(v=device.array(v), **given)
        assert np.isnan([given[name].get() for name in names]).all()
    run_checked(program(DeviceFunction("lost", text), plan, "global-atomics"), v=v, **found)
    assert np.isnan([*found.values()]).all()


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("threads", effort.first([37, 1]))
def test_any_number_of_threads(threads, slow):
    """Reductions halve it again and again."""
    plan = random_plan(slow, 90, 40, 16, 3)
    made = program(BODY, plan, "global-atomics", threads=threads)
    assert made.parts == -(-90 // threads)
    run_and_check(made, plan, {}, 1)


@pytest.mark.usefixtures("needs_gxx")
def test_the_numbers_of_the_cpu_runtime(airfoil):
    """Doubles, two sets staged, several warps' worth of shared memory."""

    def flow(x1, x2, q1, q2, adt1, adt2, res1, res2):
        for k in range(4):
            f = (q1[k] - q2[k]) * (x1[0] - x2[1]) + 0.5 * (adt1[0] + adt2[0])
            res1[k] += f
            res2[k] -= f

    function = DeviceFunction(
        "flow",
        """\
__device__ void flow(const double* x1, const double* x2, const double* q1, const double* q2,
                     const double* adt1, const double* adt2, double* res1, double* res2) {
  for (int k = 0; k < 4; ++k) {
    const double f = (q1[k] - q2[k]) * (x1[0] - x2[1]) + 0.5 * (adt1[0] + adt2[0]);
    res1[k] += f;
    res2[k] -= f;
  }
}
""",
    )
    rng = np.random.default_rng(5)
    shapes = {"x": (35, 2), "q": (24, 4), "adt": (24, 1), "res": (24, 4)}
    ours = {k: rng.standard_normal(shape) for k, shape in shapes.items()}
    theirs = {k: v.copy() for k, v in ours.items()}
    made = program(function, airfoil["res_calc"], variant="s8")
    run_checked(made, **ours)
    ParLoop(flow, airfoil["res_calc"], strategy="sequential")(**theirs)
    np.testing.assert_allclose(ours["res"], theirs["res"], rtol=1e-13, atol=1e-13)
    # The largest block: x 2 doubles a node; q 4, res 4 and adt 1 a cell, in whole pieces of two.
    staging = airfoil["res_calc"].variants["s8"].staging
    nodes, cells = (np.diff(staging[s].point_offset) for s in ("nodes", "cells"))
    assert made.shared_bytes == max(8 * (2 * nodes + 10 * cells))


def test_the_text_for_cuda(slow):
    """Whole without a GPU's tools: headers, launch bounds, no aliases."""
    made = program(
        BODY, random_plan(slow, 70, 40, 16, 3), "staged-gather", commit="atomics"
    )
    assert made.threads == 32
    assert "__launch_bounds__(threads)" in made.cuda
    assert "MP_KERNEL(32) meshprep_loop(" in made.cuda
    assert "const T* __restrict__" in made.cuda
    assert made.cuda.index("#define MP_ADD") < made.cuda.index("__device__ void body")
    assert len(made.launches) == 1


def test_what_cannot_be_written(slow):
    plan = random_plan(slow, 40, 20, 8, 0)

    def changed(at, **fields):
        args = list(SUMS.args)
        args[at] = replace(args[at], **fields)
        return replace(plan, loop=replace(SUMS, args=tuple(args)))

    with pytest.raises(MeshprepError, match="'warp' is unknown: use hierarchical,"):
        program(BODY, plan, "warp")
    with pytest.raises(
        MeshprepError, match="commit 'now' is unknown: use colours, atomics"
    ):
        program(BODY, plan, commit="now")
    with pytest.raises(MeshprepError, match="threads is 2000, must be 1 to 1024"):
        program(BODY, plan, "global-atomics", threads=2000)
    small = changed(5, dtype="i2")
    assert program(BODY, small).threads == 32
    for ways in ({"strategy": "shared-atomics"}, {"commit": "atomics"}):
        with pytest.raises(
            MeshprepError, match="'b' has dtype i2, which CUDA has no atomics for"
        ):
            program(BODY, small, **ways)
    large = replace(plan.variant(), block_size=2048)
    with pytest.raises(MeshprepError, match="at most 1024 threads: take another variant"):
        program(BODY, replace(plan, variants={plan.default: large}))
    with pytest.raises(MeshprepError, match="no blocks in this plan: use 'global-atomics'"):
        program(BODY, replace(plan, variants={}))


def test_functions_are_named_in_their_text():
    with pytest.raises(MeshprepError, match="'other' does not stand in its text"):
        DeviceFunction("other", BODY.text)
    with pytest.raises(MeshprepError, match="'a b': not a name that C takes"):
        DeviceFunction("a b", BODY.text)


@pytest.mark.usefixtures("needs_gxx")
def test_text_that_does_not_compile(slow):
    plan = random_plan(slow, 40, 20, 8, 0)
    broken = DeviceFunction("body", BODY.text.replace("w[0] * c[0]", "nothing"))
    with pytest.raises(MeshprepError, match=r"does not compile: .*nothing.* not declared"):
        run_checked(program(broken, plan), **arrays(plan))
