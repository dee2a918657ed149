"""Loops that write through maps without adding: in turns, colour by colour."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from cuda_loops import check
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.cuda import STRATEGIES, program
from meshprep_runtime.cuda.strategies import ONE_AT_A_TIME

COLOURED = [name for name, s in STRATEGIES.items() if s.adds in ONE_AT_A_TIME]
TURNS = Loop(
    "turns",
    "elements",
    (
        Arg("w", Access.READ, 1, "i8"),
        Arg("v", Access.RW, 2, "i8", "elements->points", (1, 0)),
        Arg("a", Access.INC, 1, "i8", "elements->points", (0,)),
        Arg("z", Access.READ, 1, "i8", "elements->points", (2,)),
        Arg("mark", Access.WRITE, 3, "i4", "elements->parents", (0,)),
        Arg("seen", Access.WRITE, 1, "i8"),
        Arg("total", Access.INC, 1, "i8", is_global=True),
    ),
)


def body(w, v1, v0, a, z, mark, seen, total):
    """Each element sees what those before it did to its points; the order does not matter."""
    v1[0] += w[0]
    v1[1] = max(v1[1], w[0] + z[0])
    v0[0] += 2 * w[0]
    a[0] += w[0] * w[0]
    mark[0] = 7
    mark[2] = 9
    seen[0] = w[0] + 1
    total[0] += w[0]


def turns_plan(slow, n, n_points, block_size, seed, **options):
    rng = np.random.default_rng(seed)
    near = np.linspace(0, n_points - 1, n).astype(int)[:, None] + rng.integers(
        -4, 5, (n, 3)
    )
    near = np.clip(near, 0, n_points - 1)
    # No element has one point twice: it would be two rows of one value.
    near[:, 1] = np.where(near[:, 1] == near[:, 0], (near[:, 1] + 1) % n_points, near[:, 1])
    tables = {"elements->points": near, "elements->parents": near[:, :1] // 2}
    sizes = {"elements": n, "points": n_points, "parents": n_points}
    return slow.plan(sizes, tables, [TURNS], (block_size,), seed, **options)["turns"]


def arrays(plan, seed):
    rng = np.random.default_rng(seed)
    n, n_points = plan.sizes["elements"], plan.sizes["points"]
    shapes = {"w": (n, 1), "v": (n_points, 2), "a": (n_points, 1), "z": (n_points, 1)}
    shapes |= {"mark": (plan.sizes["parents"], 3), "seen": (n, 1), "total": (1,)}
    return {
        k: rng.integers(-50, 50, shape).astype("i4" if k == "mark" else "i8")
        for k, shape in shapes.items()
    }


def expected(plan, given):
    out = {k: v.copy() for k, v in given.items()}
    points = plan.maps["elements->points"].table
    w = given["w"][:, 0]
    np.add.at(out["v"][:, 0], points[:, 1], w)
    np.add.at(out["v"][:, 0], points[:, 0], 2 * w)
    np.maximum.at(out["v"][:, 1], points[:, 1], w + given["z"][points[:, 2], 0])
    np.add.at(out["a"][:, 0], points[:, 0], w * w)
    # What the kernel leaves alone stays.
    out["mark"][plan.maps["elements->parents"].table[:, 0], 0] = 7
    out["mark"][plan.maps["elements->parents"].table[:, 0], 2] = 9
    out["seen"][:, 0] = w + 1
    out["total"] += w.sum()
    return out


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("strategy", effort.first(COLOURED))
def test_exactly_what_numpy_makes_of_it(strategy, slow):
    @settings(max_examples=effort.examples(8), deadline=None)
    @given(
        n=st.integers(1, 90),
        n_points=st.integers(2, 60),
        block_size=st.integers(4, 32),
        seed=st.integers(0, 99),
        lists=st.booleans(),
    )
    def run(n, n_points, block_size, seed, lists):
        plan = turns_plan(slow, n, n_points, block_size, seed, lists=lists)
        ours = arrays(plan, seed)
        theirs = expected(plan, ours)
        run_checked(program(body, plan, strategy, threads=32), **ours)
        check(ours, theirs)

    run()


@pytest.mark.parametrize("lists", [False, True])
def test_the_cpu_does_the_same(slow, lists):
    plan = turns_plan(slow, 80, 30, 16, 1, lists=lists)
    ours = arrays(plan, 2)
    theirs = expected(plan, ours)
    ParLoop(body, plan, strategy="hierarchical")(**ours)
    check(ours, theirs)


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s not in COLOURED])
def test_other_strategies_refuse(strategy, slow):
    plan = turns_plan(slow, 20, 20, 8, 0)
    with pytest.raises(
        MeshprepError, match="'v' is rw through a map, which takes commit 'colours'"
    ):
        program(body, plan, strategy)


def test_one_launch_for_all_blocks_is_refused(slow):
    plan = turns_plan(slow, 20, 20, 8, 0)
    with pytest.raises(
        MeshprepError, match="one of hierarchical, hierarchical-inc, hierarchical-coll"
    ):
        program(body, plan, "hierarchical", commit="atomics")


@pytest.mark.usefixtures("needs_gxx")
def test_one_wrong_colour_is_a_race(slow):
    plan = turns_plan(slow, 60, 40, 16, 3)
    made = program(body, plan)
    points = plan.maps["elements->points"].table[:16, :2]
    e, f = next(
        (e, f) for e in range(16) for f in range(e) if set(points[e]) & set(points[f])
    )
    colour = made.arrays["thread_colour"].copy()
    colour[e] = colour[f]
    with pytest.raises(CheckError, match="race inside a block"):
        run_checked(
            replace(made, arrays={**made.arrays, "thread_colour": colour}),
            **arrays(plan, 0),
        )


@pytest.mark.usefixtures("needs_gxx")
def test_points_of_another_block_are_not_even_read(slow):
    """Point 0 is in every staging list; one block writes it, in the same launch as others."""
    element = np.arange(24)
    points = np.column_stack([2 * element + 1, 2 * element + 2, 0 * element])
    points[0, 0] = 0
    tables = {"elements->points": points, "elements->parents": element[:, None]}
    sizes = {"elements": 24, "points": 50, "parents": 24}
    plan = slow.plan(sizes, tables, [TURNS], (8,))["turns"]
    assert plan.variant().n_block_colours == 1
    made = program(body, plan)
    ours = arrays(plan, 0)
    ours["z"][:] = 0
    theirs = expected(plan, ours)
    run_checked(made, **ours)
    assert np.array_equal(ours["v"], theirs["v"])
    guard = "if (is0 == 1) {"
    assert guard in made.text
    broken = made.text.replace(guard, "if (i < many0) {", 1)
    with pytest.raises(CheckError, match="race between blocks"):
        run_checked(replace(made, text=broken), **ours)
