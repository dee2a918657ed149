"""The five kernels, from Python, in the CUDA text of every strategy: numbers, and registers."""

import effort
import numpy as np
import pytest

from kernels import airfoil, bookleaf, lulesh, miniaero, volna
from meshprep_cuda_check.checked import run_checked
from meshprep_runtime.cuda import STRATEGIES, program

KERNELS = {
    "airfoil": (airfoil.res_calc, "box", {"nx": 9, "ny": 7, "type": "quad"}),
    "volna": (volna.space_discretization, "delaunay2d", {"cells": 150}),
    "bookleaf": (bookleaf.getacc_scatter, "box", {"nx": 9, "ny": 7, "type": "quad"}),
    "lulesh": (
        lulesh.integrate_stress,
        "box",
        {"nx": 4, "ny": 4, "nz": 3, "type": "hexahedron"},
    ),
    "miniaero": (
        miniaero.compute_face_flux,
        *("box", {"nx": 4, "ny": 3, "nz": 3, "type": "hexahedron"}),
    ),
}
# Small, so that a square root of what is extrapolated with them stays real.
SMALL = ("gradient", "centre", "middle")
# Checked on other loops.
LONG = ("hierarchical-collapsed", "hierarchical-unstaged")
LATER = [pytest.param(name, marks=pytest.mark.long) for name in LONG]
EVERY = [name for name in STRATEGIES if name not in LONG]
# The commit changes a kernel's end, whatever the strategy before it.
WAYS = [*((name, "colours") for name in STRATEGIES), ("hierarchical-inc", "atomics")]


# They differ in what they compute; all strategies are checked on other loops, too.
@pytest.fixture(scope="module", params=effort.first(KERNELS))
def case(request, prepared):
    """A kernel and its plan in blocks of 40, as two warps take them."""
    kernel, kind, options = KERNELS[request.param]
    plan = prepared(request.param, kind, **options).plan[kernel.__name__]
    return kernel, plan


@pytest.fixture(scope="module")
def large(prepared):
    """The same in blocks of up to 512, which leave a thread 128 registers."""

    def make(name):
        kernel, kind, options = KERNELS[name]
        return kernel, prepared(name, kind, block_size=512, **options).plan[kernel.__name__]

    return make


@pytest.fixture(scope="module")
def all_of_airfoil(prepared):
    kind, options = KERNELS["airfoil"][1:]
    return prepared("airfoil", kind, **options).plan


def arrays(made):
    """From 1 to 2, or small."""
    rng = np.random.default_rng(3)
    return {
        s.name: (0.1 * (s.name in SMALL) * rng.random(s.shape) + (s.name not in SMALL)
                 * (1 + rng.random(s.shape))).astype(s.dtype)
        for s in made.slots
    }  # fmt: skip


def in_python(kernel, plan, given):
    """One element after the other, on rows that are views."""
    for e in range(plan.sizes[plan.loop.over]):
        rows = []
        for arg in plan.loop.args:
            array = given[arg.name]
            if arg.is_global:
                rows.append(array)
            elif arg.map is None:
                rows.append(array[e])
            else:
                rows += [array[plan.maps[arg.map].table[e, k]] for k in arg.index]
        kernel(*rows)


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("strategy", [*effort.first(EVERY), *LATER])
def test_the_numbers_of_plain_python(strategy, case):
    same_numbers(*case, strategy, 64)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_gxx")
def test_several_elements_a_thread(case):
    """Blocks of 40 by 16 threads: three rounds."""
    assert same_numbers(*case, "block-permute", 16).threads == 16


def same_numbers(kernel, plan, strategy, threads):
    made = program(kernel, plan, strategy, threads=threads)
    ours = arrays(made)
    theirs = {k: v.copy() for k, v in ours.items()}
    run_checked(made, **ours)
    in_python(kernel, plan, theirs)
    changed = 0
    for slot in made.slots:
        found, wanted = ours[slot.name], theirs[slot.name]
        tolerance = 40 * np.finfo(slot.dtype).eps * np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, err_msg=slot.name)
        changed += not np.array_equal(wanted, arrays(made)[slot.name])
    assert changed == sum(slot.written for slot in made.slots)
    return made


@pytest.mark.slow
@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("kernel", ["save_soln", "adt_calc", "bres_calc", "update"])
def test_the_other_loops_of_airfoil(kernel, all_of_airfoil, compiled):
    """Helpers, a global array, a branch, a reduction, loops without maps."""
    plan = all_of_airfoil[kernel]
    made = program(getattr(airfoil, kernel), plan, "global-atomics", threads=64)
    ours = arrays(made)
    # Enough energy for a pressure; walls and the far field.
    ours["q"][:, 3] += 5
    if "bound" in ours:
        ours["bound"][:, 0] = airfoil.WALL + np.arange(ours["bound"].size) % 2
    before = {k: v.copy() for k, v in ours.items()}
    theirs = {k: v.copy() for k, v in ours.items()}
    run_checked(made, **ours)
    in_python(getattr(airfoil, kernel), plan, theirs)
    for slot in made.slots:
        found, wanted = ours[slot.name], theirs[slot.name]
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13, err_msg=slot.name)
        assert slot.written != np.array_equal(found, before[slot.name])
    assert compiled(made).spilled == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_no_register_is_spilled(name, large, compiled):
    """Every strategy; `make bench-registers` has older devices, all commits and SoA."""
    kernel, plan = large(name)
    spilled = {}
    for strategy, commit in WAYS:
        made = program(kernel, plan, strategy, commit=commit, threads=512)
        for one in (made, *made.then):
            found = compiled(one)
            assert 0 < found.registers <= 128
            if found.spilled:
                spilled[strategy, commit, one.name] = found.spilled
    assert spilled == {}
