"""Bricks of a grid: within the cap whatever its shape, and as few nodes as boxes of S have."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.partitioning import BlockProblem, partition
from meshprep.partitioning.multilevel.initial.bricks import brick_blocks
from meshprep.partitioning.multilevel.initial.geometry import Geometry, block_count
from meshprep.partitioning.multilevel.initial.grid_lines import (
    distinct_places,
    grid_places,
    sortable,
)
from meshprep.partitioning.neighbourhood import facet_graph


def lattice(shape, kept=None):
    """Nodes of the cells of a box, or of those that are kept, and the place of each cell."""
    place = np.stack(np.indices(shape), axis=-1).reshape(-1, 3)
    place = place if kept is None else place[kept]
    corners = place[:, None] + np.stack(np.indices((2, 2, 2)), axis=-1).reshape(1, 8, 3)
    table = np.ravel_multi_index(
        tuple(np.moveaxis(corners, -1, 0)), [side + 1 for side in shape]
    )
    used, table = np.unique(table, return_inverse=True)
    table = np.ascontiguousarray(table.reshape(-1, 8), np.int32)
    return table, used.size, place - place.min(axis=0)


def geometry_of(table, n_points, place):
    ones = np.ones(n_points, np.int32)
    return Geometry.of(table, ones, place.astype(float))


def slow_loads(table, block):
    return sum(np.unique(table[block == b]).size for b in range(block.max() + 1))


def cut(shape, block_size, kept=None, n_blocks=None):
    table, n_points, place = lattice(shape, kept)
    n_blocks = n_blocks or block_count(len(table), block_size)
    geometry = geometry_of(table, n_points, place)
    return (
        table,
        brick_blocks(geometry, place.astype(np.int32), n_blocks, block_size),
        n_blocks,
    )


def bent(shape, seed=None):
    """A quarter of a ring in thin layers, in a random order: no two cells have one shape."""
    table, n_points, place = lattice(shape)
    across, angle, height = (place / np.array(shape)).T
    radius = 1 + np.expm1(4 * across) / np.expm1(4)
    where = np.stack(
        [radius * np.cos(1.5 * angle), radius * np.sin(1.5 * angle), height], axis=1
    )
    order = np.random.default_rng(seed).permutation(len(table))
    return np.ascontiguousarray(table[order]), n_points, where[order]


@pytest.mark.parametrize(
    ("shape", "block_size", "nodes"),
    [
        ((16, 10, 16), 320, 9 * 9 * 6),
        ((16, 16, 16), 512, 9**3),
        ((32, 1, 48), 64, 9 * 9 * 2),
    ],
)
def test_boxes_that_fill_the_grid_are_found(shape, block_size, nodes):
    n_blocks = int(np.prod(shape)) // block_size
    table, block, _ = cut(shape, block_size, n_blocks=n_blocks)
    assert (np.bincount(block) == block_size).all()
    assert slow_loads(table, block) == n_blocks * nodes


@pytest.mark.parametrize("block_size", [128, 256, 320, 512])
def test_steps_inside_a_layer_cost_little(block_size):
    table, block, n_blocks = cut((30, 33, 36), block_size)
    assert np.bincount(block, minlength=n_blocks).max() <= block_size
    side = block_size ** (1 / 3)
    cubes = len(table) / block_size * (side + 1) ** 3
    assert slow_loads(table, block) < 1.03 * cubes


@settings(deadline=None, max_examples=effort.examples(60))
@given(data=st.data())
def test_any_cells_of_a_lattice_are_cut_within_the_cap(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=3, max_size=3)))
    n = int(np.prod(shape))
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    kept[data.draw(st.integers(0, n - 1))] = True
    block_size = data.draw(st.integers(1, 40))
    table, block, n_blocks = cut(shape, block_size, kept)
    sizes = np.bincount(block, minlength=n_blocks)
    assert len(sizes) == n_blocks
    assert sizes.min() >= 1
    assert sizes.max() <= block_size
    assert len(block) == len(table)


def test_a_bent_grid_in_any_order_is_cut_like_a_straight_one(check_blocks):
    shape, found = (24, 25, 26), []
    table, n_points, place = lattice(shape)
    for case in ((table, n_points, place.astype(float)), bent(shape, 1), bent(shape, 2)):
        problem = BlockProblem(case[0], case[1], 320, coordinates=case[2])
        blocks = partition(problem, "blocks")
        check_blocks(blocks, len(case[0]), 320)
        assert blocks.n_blocks == 49
        found.append(case[0].size / blocks.notes["loads"])
    assert min(found) > 5.2
    assert max(found) < 1.01 * min(found)


def test_one_thread_gives_what_two_give():
    table, n_points, where = bent((30, 28, 26), 3)
    problem, threads = (
        BlockProblem(table, n_points, 256, coordinates=where),
        get_num_threads(),
    )
    orders = []
    try:
        for count in (1, min(2, threads)):
            set_num_threads(count)
            orders.append(partition(problem, "blocks").new_to_old)
    finally:
        set_num_threads(threads)
    np.testing.assert_array_equal(*orders)


def test_layers_of_a_ring_are_slabs():
    table, n_points, place = lattice((60, 12, 20))
    # the first column of nodes is the last, too
    closed = place[:, 0] == 59
    first = lattice((60, 12, 20))[0].reshape(60, -1, 8)[0]
    table[closed, 4:] = first[:, :4]
    steps = grid_places(table, facet_graph(table, n_points), n_points).steps
    assert distinct_places(steps)
    assert sorted(np.ptp(steps, axis=0) + 1) == [12, 20, 60]
    turn = place[:, 0] * np.pi / 30
    where = np.stack([np.cos(turn), np.sin(turn), place[:, 2]], axis=1) * (
        9 + place[:, 1:2]
    )
    blocks = partition(BlockProblem(table, n_points, 320, coordinates=where), "blocks")
    assert table.size / blocks.notes["loads"] > 5.15


def sectors(count, side, layers):
    """Parts of ``side`` by ``side`` hexahedra around an axis, where ``count`` lines meet."""
    corner = 2 * np.pi / count * np.arange(count + 1)
    corner = np.stack([np.cos(corner), np.sin(corner)], axis=1)
    u, v, z = (
        np.stack(np.indices((side + 1, side + 1, layers + 1)), axis=-1).reshape(-1, 3).T
    )
    parts = [
        np.column_stack([np.outer(u, corner[k]) + np.outer(v, corner[k + 1]), z])
        for k in range(count)
    ]
    one, n_points, _ = lattice((side, side, layers))
    tables = np.concatenate([one + k * n_points for k in range(count)])
    where, same = np.unique(np.round(np.concatenate(parts), 6), axis=0, return_inverse=True)
    return same.reshape(-1)[tables].astype(np.int32), where


@pytest.mark.parametrize(
    ("count", "distinct", "least"), [(3, True, 5.22), (5, False, 5.05)]
)
def test_blocks_of_a_mesher_may_meet_at_an_edge(check_blocks, count, distinct, least):
    table, where = sectors(count, 16, 20)
    steps = grid_places(table, facet_graph(table, len(where)), len(where)).steps
    assert distinct_places(steps) == distinct
    centroids = where[table].mean(axis=1)
    blocks = partition(
        BlockProblem(table, len(where), 320, coordinates=centroids), "blocks"
    )
    check_blocks(blocks, len(table), 320)
    assert table.size / blocks.notes["loads"] > least


def test_places_are_distinct_however_long_the_grid():
    place = np.array([[70_000, 0, 0], [70_000 - (1 << 16), 0, 0]], np.int32)
    assert [axis.dtype for axis in sortable(place)] == [np.int32] * 3
    assert distinct_places(place)
    assert not distinct_places(np.concatenate([place, place[:1]]))
