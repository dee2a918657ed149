"""Blocks from outside: taken as they are, refused over the cap, repaired where that is asked."""

import effort
import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meshprep
from meshprep import LoopRequest, Options, prepare
from meshprep.io.generate import generate
from meshprep.io.original_ids import read_vector
from meshprep.partitioning import BlockProblem
from meshprep.partitioning.given import taken
from meshprep.pipeline.steps import cut_and_colour, order
from meshprep_runtime.errors import MeshprepError

GRID = generate("box", nx=12, ny=8, type="quad", shuffle=True)
N = GRID.sizes["cells"]
LOOP = "cells->nodes"
# Bricks of 4 by 4 cells, by their centres.
CENTRE = GRID.coordinates[GRID.map(LOOP).table].mean(axis=1)
BRICK = (CENTRE[:, 0] * 12 // 4 + 3 * (CENTRE[:, 1] * 8 // 4)).astype(int)


def same_blocks(one, other):
    """Whether two numbers for each element make the same blocks, element by element."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return pairs == np.unique(one).size == np.unique(other).size


def blocks_in_mesh_order(plan):
    """The block of each element, in the order of the mesh."""
    order = plan.ordering["cells"]
    return order.restore(plan[LOOP].variant().block_of_element())


@pytest.mark.parametrize(
    "make", [meshprep.plan, lambda *a, **k: prepare(*a, Options(**k)).plan]
)
@pytest.mark.parametrize("number", [BRICK, 1000 * BRICK[::-1] + 7])
def test_an_array_gives_the_blocks_of_a_plan(make, number):
    plan = make(GRID, [LOOP], partition=number, block_size=16)
    variant = plan[LOOP].variant()
    assert same_blocks(blocks_in_mesh_order(plan), number)
    assert (variant.partitioner, variant.n_blocks) == ("given", 6)
    assert plan.verify() == []
    assert plan.options["partition"] == "given"
    # 4 by 4 cells have 5 by 5 corners, each in a brick of four that is not at a border alone.
    table = GRID.map(LOOP).table
    slow = sum(np.unique(table[number == one]).size for one in np.unique(number))
    assert plan.metrics.loops[LOOP].variants["s16"].after.loads == slow


@settings(deadline=None, max_examples=effort.examples(40))
@given(data=st.data())
def test_blocks_are_those_given_or_refused_or_within_the_cap(data, tables, check_blocks):
    table, n_points = data.draw(tables())
    n, cap = len(table), data.draw(st.integers(1, 8))
    number = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), int)
    problem = BlockProblem(table, n_points, cap, given=number)
    largest = np.bincount(number).max(initial=0)
    if largest > cap:
        with pytest.raises(MeshprepError, match=f"has {largest} elements, more than the"):
            taken(problem, {"repair": False})
    else:
        assert n == 0 or same_blocks(
            taken(problem, {"repair": False}).block_of_element, number
        )
    repaired = taken(problem, {"repair": True})
    check_blocks(repaired, n, cap)
    slivers = (np.bincount(number)[number] * 4 < cap).any()
    if n and largest <= cap and not slivers:
        assert same_blocks(repaired.block_of_element, number)
        assert repaired.notes["moved"] == 0


def test_files_give_the_same_blocks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("b.npy", BRICK)
    np.savetxt("b.part", BRICK, "%d")
    with h5py.File("b.h5", "w") as file:
        file["own/part_6"] = BRICK.astype("i4")[:, None]
        file["x"] = CENTRE
    for name in ("b.npy", "b.part", "b.h5", f"{tmp_path}/b.h5:own/part_6"):
        plan = meshprep.plan(GRID, [LOOP], partition=f"file:{name}", block_size=16)
        assert same_blocks(blocks_in_mesh_order(plan), BRICK)
        shown = name.removeprefix(f"{tmp_path}/b.h5:own/")
        assert plan[LOOP].variant().partitioner == f"file:{shown}"
    own = LoopRequest(LOOP, {
        "over": "cells",
        "args": [{"dat": "q", "map": LOOP, "access": "inc"}],
        "partition": "file:b.npy",
        "block_size": 16,
    })  # fmt: skip
    # In a table of its own, beside a loop that is cut by meshprep.
    plan = meshprep.plan(GRID, [own, "edges->cells"], partition="blocks")
    assert same_blocks(blocks_in_mesh_order(plan), BRICK)
    assert plan["edges->cells"].variant().partitioner == "blocks"


def test_blocks_end_with_each_group():
    """A block that reaches over two groups of a file becomes two, as groups stay together."""
    group = np.arange(N) % 5 // 3
    chosen = Options(partition=BRICK, block_size=16)
    plan = cut_and_colour(order(GRID, [LOOP], chosen, groups={"cells": group}), chosen)
    assert same_blocks(blocks_in_mesh_order(plan), BRICK + 6 * group)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"partition": BRICK}, "block 0 has 16 elements, more than the block size 8: raise"),
        ({"partition": BRICK[1:]}, "has 95 numbers, but loop 'cells->nodes' runs over 96 cells"),
        ({"partition": BRICK - 1}, r"element \d+ is in block -1: number blocks from 0"),
        ({"partition": BRICK / 2}, "must be a row of whole numbers"),
        ({"partition": "file:none.npy"}, "none.npy: does not exist"),
        ({"partition": BRICK, "effort": "fast"}, "'given' has no option 'effort': choose rep"),
        ({"partition": "file"}, "partitioner 'file' is unknown"),
    ],
)  # fmt: skip
def test_blocks_that_do_not_fit_are_refused(chosen, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.plan(GRID, [LOOP], block_size=8, **chosen)


def test_a_repair_is_only_made_where_it_is_asked_for():
    plan = meshprep.plan(GRID, [LOOP], block_size=12, partition=BRICK, repair=True)
    after = plan.metrics.loops[LOOP].variants["s12"].after
    found = blocks_in_mesh_order(plan)
    assert np.bincount(found).max() <= 12
    assert after.partition.other["moved"] >= 6 * 4 - 12
    assert plan.verify() == []


def test_a_file_with_several_datasets_wants_a_name(tmp_path):
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = BRICK, BRICK
    with pytest.raises(MeshprepError, match=r"holds 2 datasets of whole numbers \(a, b\)"):
        read_vector(tmp_path / "two.h5")
    with pytest.raises(MeshprepError, match=r"has no dataset 'c' of whole numbers: use a"):
        read_vector(tmp_path / "two.h5:c")
    (tmp_path / "no.h5").write_text("1 2 3")
    with pytest.raises(MeshprepError, match=r"no.h5: not a readable HDF5 file"):
        read_vector(tmp_path / "no.h5")
