"""Corners of elements of second order: found by what neighbours share, annealed first."""

from itertools import combinations

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.partitioning import BlockProblem, loads, partition
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel import partitioner
from meshprep.partitioning.multilevel.refinement.corners import Corners, corners_of
from meshprep.partitioning.neighbourhood import facet_graph


def with_points_on(table, points, sides):
    """The elements with one more point on each of their sides, which are columns, in its middle."""
    ends = np.sort(np.stack([table[:, list(side)] for side in sides], axis=1), axis=2)
    found, inverse = np.unique(ends.reshape(-1, ends.shape[2]), axis=0, return_inverse=True)
    more = len(points) + inverse.reshape(len(table), -1)
    places = np.concatenate([points, points[found].mean(axis=1)])
    return np.column_stack([table, more]).astype(np.int32), places


def simplices(kind, cells):
    mesh = generate(kind, cells=cells, seed=3, shuffle=False)
    return mesh.map("cells->nodes").table, mesh.coordinates


def corners_in(table, weight=None):
    table = distinct_rows(table)
    return corners_of(table, weight, facet_graph(table, int(table.max()) + 1))


@pytest.mark.parametrize(
    ("kind", "sides"),
    [
        ("delaunay2d", [2]),
        ("delaunay3d", [2]),
        ("delaunay3d", [3]),
        ("delaunay3d", [2, 3]),
    ],
)
def test_corners_are_the_columns_of_the_linear_elements(kind, sides):
    table, points = simplices(kind, 2000)
    corners = table.shape[1]
    full = table
    for size in sides:
        full, points = with_points_on(
            full, points, list(combinations(range(corners), size))
        )
    shuffled = np.random.default_rng(1).permutation(full.shape[1])
    found = corners_in(np.ascontiguousarray(full[:, shuffled]))
    assert np.array_equal(np.sort(found.table, axis=1), np.sort(table, axis=1))
    assert found.unit == 1.0


@pytest.mark.parametrize("kind", ["tetra", "hexahedron", "wedge"])
def test_linear_elements_need_all_points(kind):
    mesh = generate("box", nx=6, ny=7, nz=8, type=kind)
    assert corners_in(mesh.map("cells->nodes").table) is None


def test_corners_without_weight_tell_nothing():
    table, points = with_points_on(
        *simplices("delaunay3d", 2000), list(combinations(range(4), 2))
    )
    weight = np.full(len(points), 8, np.int32)
    assert corners_in(table, weight).unit == 8.0
    weight[table[:, 0]] = 0
    assert corners_in(table, weight) is None


def test_points_named_again_are_no_corners():
    table, _ = with_points_on(
        *simplices("delaunay3d", 2000), list(combinations(range(4), 2))
    )
    twice = np.column_stack([table, table[:, :4]])
    assert np.array_equal(corners_in(twice).table, table[:, :4])


def test_corners_loaded_are_counted_by_element():
    table = np.array([[0, 1], [1, 2], [2, 3], [3, -1]], np.int32)
    block, weight = np.array([0, 0, 1, 1], np.int32), np.array([2, 2, 4, 4], np.int32)
    # 0 and 1 and 2 by one block, 2 and 3 by the other
    assert Corners(table, 2.0).loaded(weight, block, 2) == (2 + 2 + 4 + 4 + 4) / 2.0 / 4


def test_corners_first_give_more_reuse(monkeypatch, check_blocks):
    table, points = simplices("delaunay3d", 25_000)
    sides = list(combinations(range(4), 2)), list(combinations(range(4), 3))
    for more in sides:
        table, points = with_points_on(table, points, more)
    problem = BlockProblem(table, len(points), 256, coordinates=points[table].mean(axis=1))

    swept = []

    def reuse(effort):
        blocks = partition(problem, "blocks", {"effort": effort})
        check_blocks(blocks, len(table), 256)
        swept.append(blocks.notes["sweeps"])
        return table.size / loads(
            table[blocks.new_to_old], len(points), blocks.block_offset
        )

    first = reuse("fast"), reuse("default")
    monkeypatch.setattr(partitioner, "corners_of", lambda *known, **named: None)
    whole = reuse("fast"), reuse("default")
    assert first[0] > 1.005 * whole[0]
    assert first[1] > 1.002 * whole[1]
    # of 44 at the default 26 with corners, 13 with all points; of 13 by fast 8 and 4
    assert swept == [12, 39, 13, 44]
