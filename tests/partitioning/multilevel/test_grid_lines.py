"""Lines of grids: found in any numbering and shape; meshes that are none are told."""

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.partitioning import BlockProblem, partition
from meshprep.partitioning.multilevel.initial.grid_lines import (
    GridPlaces,
    _ragged_ends,
    grid_places,
    opposite_neighbours,
)
from meshprep.partitioning.neighbourhood import facet_graph


def hexes(m):
    """An m^3 grid in a random order, bent around an axis."""
    mesh = generate("box", nx=m, ny=m, nz=m, type="hexahedron", shuffle=True)
    table = mesh.map("cells->nodes").table
    x, y, z = next(d.values for d in mesh.dats if d.set == "nodes").T
    bent = np.stack([(1 + x) * np.cos(y), (1 + x) * np.sin(y), z], axis=1)
    return table, mesh.size("nodes"), bent[table].mean(axis=1)


def test_opposite_neighbours_share_no_point_and_name_each_other():
    table, n_points, _ = hexes(9)
    graph = facet_graph(table, n_points)
    across, steps, component = opposite_neighbours(
        table, graph.offset, graph.index, n_points
    )
    assert component.max() == 0
    assert sorted(map(tuple, steps - steps.min(axis=0))) == [
        (*p,) for p in np.ndindex(9, 9, 9)
    ]
    points = [set(row.tolist()) for row in table]
    assert (across >= 0).sum() == graph.index.size
    for i, row in enumerate(across):
        for s, j in enumerate(row):
            if j < 0:
                continue
            assert len(points[i] & points[j]) == 4
            assert across[j, s ^ 1] == i
            if row[s ^ 1] >= 0:
                assert not points[j] & points[row[s ^ 1]]


def test_grids_without_coordinates_are_cut_as_those_with(check_blocks):
    table, n_points, where = hexes(24)
    twice = np.concatenate([table, table + n_points]).astype(np.int32)
    graph = facet_graph(twice, 2 * n_points)
    place = grid_places(twice, graph, 2 * n_points).steps
    assert len(np.unique(place, axis=0)) == len(twice)
    free, known = (
        partition(BlockProblem(table, n_points, 256, coordinates=given), "blocks")
        for given in (None, where)
    )
    check_blocks(free, len(table), 256)
    assert free.notes["loads"] < 1.01 * known.notes["loads"]


@pytest.mark.parametrize(("nx", "ny"), [(12, 60), (60, 12)])
def test_long_grids_stand_beside_each_other(nx, ny):
    mesh = generate("box", nx=nx, ny=ny, nz=0, type="quad")
    table, n_points = mesh.map("cells->nodes").table, mesh.size("nodes")
    twice = np.concatenate([table, table + n_points]).astype(np.int32)
    place = grid_places(twice, facet_graph(twice, 2 * n_points), 2 * n_points).steps
    assert len(np.unique(place, axis=0)) == len(twice)


def test_triangles_are_no_grid():
    mesh = generate("delaunay2d", cells=500)
    table = mesh.map("cells->nodes").table
    grid = grid_places(table, facet_graph(table, mesh.size("nodes")), mesh.size("nodes"))
    assert grid == GridPlaces(None, False)


def test_a_body_full_of_holes_is_no_grid_to_follow():
    table, n_points, _ = hexes(24)
    whole = grid_places(table, facet_graph(table, n_points), n_points)
    assert not whole.ragged
    porous = table[(whole.steps // 3).sum(axis=1) % 4 > 0]
    assert len(porous) == 0.75 * len(table)
    assert grid_places(porous, facet_graph(porous, n_points), n_points) == GridPlaces(
        None, True
    )


def test_ragged_ends_are_those_beside_a_line_that_goes_on():
    # rows of 4, 4 and 3 quads: the last of the second row ends where the first row ends, too
    place = [(x, y) for y, length in enumerate((4, 4, 3)) for x in range(length)]
    number = {cell: k for k, cell in enumerate(place)}
    across = np.full((len(place), 6), -1, np.int32)
    for (x, y), k in number.items():
        beside = ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
        across[k, :4] = [number.get(cell, -1) for cell in beside]
    found = sum(
        (
            (x + 1, y) not in number
            and any(
                (x + 1, y + off) in number and (x, y + off) in number for off in (-1, 1)
            )
        )
        or (
            (x, y + 1) not in number
            and any(
                (x + off, y + 1) in number and (x + off, y) in number for off in (-1, 1)
            )
        )
        for x, y in place
    )
    assert _ragged_ends(across) == found == 2
