"""Structure found in shuffled meshes by their coordinates, and cut along its axes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.partition import BlockProblem, loads, partition
from meshprep.partition.structured import best_tile, lattice_of_centroids
from meshprep_runtime.errors import MeshprepError


def grid(*extent):
    """Cells -> nodes of a grid, the centroids at i + j/100 squared and so on: uneven lines."""
    nodes = np.arange(math.prod(e + 1 for e in extent)).reshape([e + 1 for e in extent])
    corners = []
    for step in itertools.product((0, 1), repeat=len(extent)):
        at = tuple(slice(s, s + e) for s, e in zip(step, extent, strict=True))
        corners.append(nodes[at].ravel())
    cell = np.stack(np.unravel_index(np.arange(math.prod(extent)), extent), axis=1)
    return np.stack(corners, axis=1).astype(np.int32), nodes.size, cell


def pairs(*extent):
    """Interior facets -> cells, and twice their centroid, odd between two cells."""
    cell = np.arange(math.prod(extent)).reshape(extent)
    where = np.stack(np.unravel_index(cell.ravel(), extent), axis=1)
    tables = []
    for axis in range(len(extent)):
        low = np.take(cell, range(extent[axis] - 1), axis).ravel()
        tables.append(np.stack([low, np.take(cell, range(1, extent[axis]), axis).ravel()], axis=1))
    table = np.concatenate(tables).astype(np.int32)
    return table, cell.size, where[table].sum(axis=1)


def shuffle(table, *others, seed=0):
    order = np.random.default_rng(seed).permutation(len(table))
    return [a[order] for a in (table, *others)]


def reuse(table, n_points, blocks):
    return table.size / loads(table[blocks.new_to_old], n_points, blocks.block_offset)


@pytest.mark.parametrize("extent", [(7,), (5, 9), (2, 11), (4, 3, 6), (1, 8, 5)])
def test_cells_stand_where_their_centroids_say(extent):
    table, _, cell = grid(*extent)
    table, cell = shuffle(table, cell)
    found = lattice_of_centroids(cell**1.3 + 1e-12 * table[:, :1])
    kept = [i for i, e in enumerate(extent) if e > 1]
    assert (found.position == cell[:, kept]).all()
    assert found.per_site == 1


@pytest.mark.parametrize(("extent", "kinds"), [((5, 9), 2), ((4, 3, 6), 3), ((4, 1, 6), 2)])
def test_facets_share_the_site_of_the_cell_before_them(extent, kinds):
    _, _, twice = pairs(*extent)
    (twice,) = shuffle(twice)
    found = lattice_of_centroids(twice / 2)
    kept = [i for i, e in enumerate(extent) if e > 1]
    assert (found.position == twice[:, kept] // 2).all()
    assert found.per_site == kinds


def test_the_triangles_of_split_squares_share_a_site():
    _, _, cell = grid(6, 5)
    centre = np.concatenate([cell + np.array([1, 2]) / 3, cell + np.array([2, 1]) / 3])
    found = lattice_of_centroids(centre)
    assert (found.position == np.concatenate([cell, cell])).all()
    assert found.per_site == 2


def test_scattered_and_repeated_centroids_are_no_lattice():
    random = np.random.default_rng(0)
    assert lattice_of_centroids(random.random((500, 2))) is None
    assert lattice_of_centroids(np.repeat(grid(6, 6)[2], 2, axis=0).astype(float)) is None
    assert lattice_of_centroids(np.zeros((9, 2))) is None


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(1, 40), st.booleans())
def test_tiles_cut_no_more_than_any_others_do(extent, sites, layers):
    tiles = best_tile(extent, sites, layers)
    whole = math.prod(extent)

    def cut(counts):
        return sum((c - 1) * whole / e for c, e in zip(counts, extent, strict=True))

    def fits(counts):
        sizes = [-(-e // c) for c, e in zip(counts, extent, strict=True)]
        thin = len(extent) < 3 or not layers or 1 in sizes
        return math.prod(sizes) <= sites and thin

    everything = itertools.product(*(range(1, e + 1) for e in extent))
    assert fits(tiles)
    assert cut(tiles) <= min(cut(c) for c in everything if fits(c)) + 1e-9


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_blocks_of_any_shape_are_boxes_within_the_cap(data, check_blocks):
    extent = data.draw(st.lists(st.integers(2, 9), min_size=2, max_size=3))
    table, n_points, cell = grid(*extent)
    table, cell = shuffle(table, cell, seed=data.draw(st.integers(0, 9)))
    cap, shape = data.draw(st.integers(1, 60)), data.draw(st.sampled_from(["rectangle", "brick"]))
    where = cell.astype(float)
    blocks = partition(
        BlockProblem(table, n_points, cap, coordinates=where), "structured", {"shape": shape}
    )
    check_blocks(blocks, len(table), cap)
    for a, b in itertools.pairwise(blocks.block_offset) if 1 < cap < len(table) else ():
        box = np.ptp(cell[blocks.new_to_old[a:b]], axis=0) + 1
        assert math.prod(box.tolist()) == b - a
        assert shape == "brick" or len(extent) == 2 or 1 in box


def test_lines_fill_their_blocks_along_the_longest_axis():
    table, n_points, cell = grid(6, 30)
    table, cell = shuffle(table, cell)
    problem = BlockProblem(table, n_points, 10, coordinates=cell.astype(float))
    blocks = partition(problem, "structured", {"shape": "line"})
    assert (np.diff(blocks.block_offset) == 10).all()
    for a, b in itertools.pairwise(blocks.block_offset):
        assert np.ptp(cell[blocks.new_to_old[a:b]], axis=0).tolist() == [0, 9]


def test_explicit_sizes_follow_the_axes_of_the_coordinates():
    table, n_points, cell = grid(8, 12, 10)
    table, cell = shuffle(table, cell)
    problem = BlockProblem(table, n_points, 60, coordinates=cell.astype(float))
    blocks = partition(problem, "structured", {"shape": "4x3x5"})
    assert blocks.n_blocks == 2 * 4 * 2
    for a, b in itertools.pairwise(blocks.block_offset):
        assert (np.ptp(cell[blocks.new_to_old[a:b]], axis=0) == [3, 2, 4]).all()


def test_bricks_of_hexes_and_of_their_faces_reach_the_reuse_counted_by_hand():
    table, n_points, cell = grid(16, 16, 16)
    table, cell = shuffle(table, cell)
    where = cell.astype(float)
    options = {"shape": "8x8x4"}
    blocks = partition(BlockProblem(table, n_points, 256, coordinates=where), "structured", options)
    assert reuse(table, n_points, blocks) == pytest.approx(8 * 256 / (9 * 9 * 5))
    table, n_points, twice = pairs(16, 16, 16)
    table, twice = shuffle(table, twice)
    where = twice / 2
    problem = BlockProblem(table, n_points, 192, coordinates=where)
    blocks = partition(problem, "structured", {"shape": "4x4x4"})
    # 64 brick interiors, and a layer of cells beyond each side of 4 but the last.
    assert loads(table[blocks.new_to_old], n_points, blocks.block_offset) == 64 * 64 + 3 * 48 * 16


def test_more_elements_on_a_site_than_the_cap_are_moved_on(check_blocks):
    table, n_points, twice = pairs(5, 5, 5)
    for cap in (2, 3, 4):
        blocks = partition(BlockProblem(table, n_points, cap, coordinates=twice / 2), "structured")
        check_blocks(blocks, len(table), cap)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("cube", "option 'shape' is 'cube', must be line, rectangle, brick or sizes such as 8x8x4"),
        ("0x4", "must be line"),
        ("2x2x2x2", "must be line"),
        ("4x4x4", "shape '4x4x4' has 3 sizes, but the mesh is structured along 2: .* 6x30 sites"),
        ("6x4", "shape '6x4' has up to 24 elements, more than the block size of 20"),
    ],
)
def test_shapes_that_do_not_fit_say_what_would(shape, message):
    table, n_points, cell = grid(6, 30)
    problem = BlockProblem(table, n_points, 20, coordinates=cell.astype(float))
    with pytest.raises(MeshprepError, match=message):
        partition(problem, "structured", {"shape": shape})


def test_no_structure_says_what_is_missing_and_what_to_choose():
    random = np.random.default_rng(0)
    table = random.integers(0, 90, (100, 3)).astype(np.int32)
    with pytest.raises(MeshprepError, match=r"100 elements: there are no coord.*such as blocks"):
        partition(BlockProblem(table, 90, 10), "structured")
    where = random.random((100, 2))
    with pytest.raises(MeshprepError, match="centroids are on no lattice: choose"):
        partition(BlockProblem(table, 90, 10, coordinates=where), "structured")
    table[0, 0] = 5
    assert partition(BlockProblem(table[:9], 90, 10), "structured").n_blocks == 1
