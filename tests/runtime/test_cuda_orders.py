"""Strategies that change the order of the elements, or take two kernels."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, arrays, expected, random_plan, run_and_check

from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_runtime.cuda import program
from meshprep_runtime.kernel.colouring import colour_elements


@pytest.fixture(scope="module")
def plan(slow):
    return random_plan(slow, 90, 60, 16, 5)


def beside(tables, transposed=False):
    """What the rows of the loop need of its maps, in their order: an element loads it at once."""
    points, parents = (tables[name] for name in ("elements->points", "elements->parents"))
    if transposed:
        points, parents = points.T, parents.T
    return np.column_stack([points[:, [2, 0, 1]], parents[:, 0]])


def test_blocks_by_thread_colour(plan):
    made, v = program(BODY, plan, "block-permute"), plan.variant()
    order, colour = made.arrays["order"], made.arrays["thread_colour"]
    assert np.array_equal(colour, v.thread_colour[order])
    for a, b in zip(v.block_offset[:-1], v.block_offset[1:], strict=True):
        assert np.array_equal(np.sort(order[a:b]), np.arange(a, b))
        assert (np.diff(colour[a:b].astype(int)) >= 0).all()
    assert np.array_equal(made.arrays["local0"], beside(v.local, transposed=True)[order])
    # As hierarchical has it, in shared memory, too.
    assert made.shared_bytes == program(BODY, plan, "hierarchical").shared_bytes


def test_maps_in_the_order_of_the_colours(plan):
    made = program(BODY, plan, "full-permute", threads=32)
    other = program(BODY, plan, "global-colouring", threads=32)
    order = made.arrays["order"]
    tables = beside({name: m.table for name, m in plan.maps.items()})
    assert np.array_equal(made.arrays["map0"], tables[order])
    assert np.array_equal(other.arrays["map0"], tables)
    assert np.array_equal(order, other.arrays["order"])
    assert made.launches == other.launches
    colour = colour_elements(plan)
    assert [len(set(colour[order[x.first : x.last]])) for x in made.launches] == [1] * len(
        made.launches
    )


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("layout", effort.first([LAYOUT, {}]))
def test_two_steps(layout, plan):
    made = program(BODY, plan, "two-step", layout=layout, threads=32)
    n = plan.sizes["elements"]
    assert made.scratch == {"t4": (np.dtype("f8"), 2 * 3 * n), "t5": (np.dtype("i4"), n)}
    assert [t.name for t in made.then] == ["meshprep_sum"] * 2
    assert [t.launches[0].last for t in made.then] == [60, 60]
    run_and_check(made, plan, layout)


@pytest.mark.usefixtures("needs_gxx")
def test_a_place_past_the_temporary_array(plan):
    made = program(BODY, plan, "two-step", threads=32)
    place = made.then[0].arrays["place"].copy()
    place[3] = 10**6
    broken = replace(made.then[0], arrays={**made.then[0].arrays, "place": place})
    with pytest.raises(CheckError, match="out of bounds: t4, index"):
        run_checked(replace(made, then=(broken, *made.then[1:])), **arrays(plan))


@pytest.mark.usefixtures("needs_gxx")
def test_what_nobody_left_is_no_sum(plan):
    """An element too few in the first step: its part of the temporary array is never set."""
    made = program(BODY, plan, "two-step", threads=32)
    short = replace(made.launches[0], last=made.launches[0].last - 1)
    ours = arrays(plan)
    run_checked(replace(made, launches=(short,)), **ours)
    assert not np.array_equal(ours["a"], expected(plan, arrays(plan))["a"])
