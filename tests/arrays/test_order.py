"""Orders of arrays, beside slow versions that look at every pair."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import blocks
from scipy.sparse import diags_array, eye_array, kron
from scipy.spatial import Delaunay

import meshprep
from meshprep import MeshprepError
from meshprep.ordering import METHODS

TRIANGLES = [[0, 1, 2], [1, 3, 2], [3, 4, 2]]


def triangulation(seed, n=60):
    """Points, and a Delaunay triangulation whose rows and numbers are shuffled."""
    points = np.random.default_rng(seed).random((n, 2))
    found = Delaunay(points)
    return points, found.simplices, found.neighbors


def sides_of(cells):
    """By sorted points of a side: the cells that have it, and its number there."""
    found = {}
    for c, row in enumerate(np.asarray(cells).tolist()):
        for side in range(len(row)):
            found.setdefault(frozenset(row[:side] + row[side + 1 :]), []).append((c, side))
    return found


def band(cells):
    """The widest a cell reaches in the numbers of points."""
    return max(max(row) - min(row) for row in np.asarray(cells).tolist())


@given(
    st.integers(0, 50), st.sampled_from(sorted(METHODS)), st.sampled_from(["cpu", "gpu"])
)
def test_arrays_stand_for_the_same_mesh(seed, method, target):
    points, cells, neighbours = triangulation(seed)
    for beyond in (None, neighbours):
        found = meshprep.order(cells, points, beyond, method, target)
        by_cell, by_point = found.ordering["cells"], found.ordering["points"]
        # every number by itself, as its definition says
        for new, old in enumerate(by_cell.new_to_old.tolist()):
            assert by_cell.old_to_new[old] == new
            assert [by_point.new_to_old[p] for p in found.cells[new]] == cells[old].tolist()
            for side, other in enumerate(
                () if beyond is None else neighbours[old].tolist()
            ):
                there = found.neighbours[new, side]
                assert there == (-1 if other < 0 else by_cell.old_to_new[other])
        for new, old in enumerate(by_point.new_to_old.tolist()):
            assert found.points[new].tolist() == points[old].tolist()
        assert (found.neighbours is None) == (beyond is None)


@given(st.integers(0, 50))
def test_neighbours_are_those_of_the_new_cells(seed):
    points, cells, neighbours = triangulation(seed)
    found = meshprep.order(cells, points, neighbours)
    for owners in sides_of(found.cells).values():
        for (c, side), other in zip(owners, owners[::-1], strict=True):
            assert found.neighbours[c, side] == (other[0] if len(owners) == 2 else -1)


@given(st.integers(0, 50))
def test_keys_name_the_same_sides(seed):
    points, cells, neighbours = triangulation(seed)
    keys = np.argwhere(neighbours < 0)
    found = meshprep.order(cells, points, neighbours)
    moved = np.column_stack([found.ordering["cells"].old_to_new[keys[:, 0]], keys[:, 1]])
    assert (found.neighbours[tuple(moved.T)] == -1).all()
    old = {frozenset(np.delete(cells[c], s).tolist()) for c, s in keys.tolist()}
    back = found.ordering["points"].new_to_old
    new = {
        frozenset(back[np.delete(found.cells[c], s)].tolist()) for c, s in moved.tolist()
    }
    assert old == new


@pytest.mark.parametrize("known", [False, True])
def test_the_band_becomes_narrow(known):
    _points, cells, neighbours = triangulation(1, 2000)
    found = meshprep.order(cells, neighbours=neighbours if known else None)
    assert band(found.cells) < 0.2 * band(cells)
    firsts = found.cells.min(axis=1) if not known else np.array([0])
    assert (np.diff(firsts) >= 0).all()


def test_points_that_no_cell_has_stand_last_where_cells_lead():
    found = meshprep.order([[4, 1], [1, 0]], np.zeros((6, 2)), [[-1, 1], [0, -1]])
    assert sorted(found.ordering["points"].new_to_old[:3].tolist()) == [0, 1, 4]
    assert found.ordering["points"].new_to_old[3:].tolist() == [2, 3, 5]


def test_dtypes_and_inputs_stay():
    cells, sides = (
        np.array(TRIANGLES, np.int64),
        np.array([[1, -1, -1], [2, 0, -1], [-1, 1, -1]]),
    )
    copies = cells.copy(), sides.copy()
    found = meshprep.order(cells, neighbours=sides)
    assert (found.cells.dtype, found.neighbours.dtype) == (cells.dtype, sides.dtype)
    assert (cells == copies[0]).all()
    assert (sides == copies[1]).all()
    assert found.points is None
    assert meshprep.order(np.array(TRIANGLES, np.uint16)).cells.dtype == np.uint16


def test_auto_takes_the_best_of_all():
    points, cells, _neighbours = triangulation(2, 500)
    rest = [
        band(meshprep.order(cells, points, method=m).cells)
        for m in ("rcm", "gps", "hilbert")
    ]
    assert band(meshprep.order(cells, points, method="auto").cells) <= max(rest)


def grid_graph(n):
    """A grid of n x n vertices whose numbers are shuffled, as a matrix of SciPy."""
    steps = diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n))
    whole = (kron(eye_array(n), steps) + kron(steps, eye_array(n))).tocsr()
    shuffled = np.random.default_rng(0).permutation(n * n)
    return whole[shuffled][:, shuffled]


def test_edges_may_be_two_rows_of_ends():
    matrix = grid_graph(30)
    ends = matrix.nonzero()
    rows = np.column_stack(ends)
    expected = meshprep.order(rows, method="rcm")
    bandwidth = np.ptp(expected.cells, axis=1).max()
    assert bandwidth < 40 < np.ptp(rows, axis=1).max()
    for edges in (
        {"cells": ends},
        {"edge_index": ends},
        {"edge_index": np.array(ends)},
        {"edge_index": np.array(ends).tolist()},
    ):
        found = meshprep.order(**edges, method="rcm")
        assert found.cells.tolist() == expected.cells.T.tolist()
        for name in ("cells", "points"):
            order = found.ordering[name].new_to_old
            assert order.tolist() == expected.ordering[name].new_to_old.tolist()


def test_two_rows_that_could_be_cells():
    # two triangles that share a side
    assert meshprep.order([[0, 1, 2], [1, 3, 2]]).cells.shape == (2, 3)
    with pytest.raises(MeshprepError, match=r"shape \(2, 4\): .* as edge_index="):
        meshprep.order([[0, 1, 1, 2], [1, 0, 2, 1]])
    few = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])
    assert meshprep.order(few).ordering["cells"].size == 4
    with pytest.raises(MeshprepError, match="4 first and 3 second ends"):
        meshprep.order((few[0], few[1][:3]))


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"hilbert"}))
def test_vertices_without_edges_are_numbered(method):
    graph = networkx.gnm_random_graph(200, 120, seed=3)
    assert networkx.number_of_isolates(graph) > 20
    edges = np.array(graph.edges())
    found = meshprep.order(edges, method=method, n_points=200).ordering["points"]
    assert sorted(found.new_to_old.tolist()) == list(range(200))
    for nothing in ([], np.empty((0, 2), int)):
        found = meshprep.order(nothing, method=method, n_points=4).ordering["points"]
        assert sorted(found.new_to_old.tolist()) == [0, 1, 2, 3]


def test_nothing_at_all():
    found = meshprep.order(np.empty((0, 3), int))
    assert (found.cells.shape, found.ordering["points"].size) == ((0, 3), 0)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (
            {"cells": [0, 1]},
            r"cells have shape \(2,\) and dtype int64, must be whole numbers",
        ),
        ({"cells": [[0.5, np.nan]]}, "dtype float64, must be whole numbers"),
        ({"cells": [[0, -1]]}, "cells name points -1..0, but there are 1"),
        (
            {"cells": [[0, 9]], "points": np.zeros((3, 2))},
            "cells name points 0..9, but there are 3",
        ),
        ({"cells": [[0, 9]], "n_points": 9}, "cells name points 0..9, but there are 9"),
        (
            {"cells": [[0, 1]], "points": np.zeros((3, 2)), "n_points": 4},
            "n_points is 4, but points has 3 rows",
        ),
        ({"cells": [[0, 1]], "points": [1.0, 2.0]}, r"points have shape \(2,\), must be"),
        (
            {"cells": TRIANGLES, "neighbours": [[0, 1, 2]]},
            "neighbours have 1 rows, cells 3",
        ),
        (
            {"cells": TRIANGLES, "neighbours": [[3, 0, 0]] * 3},
            "neighbours name cells 0..3, but there are 3: give -1 where there is none",
        ),
        (
            {"cells": TRIANGLES, "neighbours": [[1, 2], [-1, -1], [-1, -1]]},
            "not name it in turn",
        ),
        (
            {"cells": TRIANGLES, "method": "hilbert"},
            "method 'hilbert' needs coordinates: give points",
        ),
        ({"cells": TRIANGLES, "method": "metis"}, "method 'metis' is unknown"),
        ({"cells": TRIANGLES, "target": "tpu"}, "target 'tpu' is unknown"),
    ],
)
def test_what_is_refused(arrays, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.order(**arrays)


def test_the_graph_of_the_page():
    code = blocks("graphs.md", "py")[0]
    found = {}
    exec(code.replace("2000, 0.04", "200, 0.12"), found)
    assert sorted(found["nodes"]) == list(range(200))
    edges = np.array(found["graph"].edges())
    assert band(np.argsort(found["nodes"])[edges]) < band(edges) / 2
    assert (np.argsort(found["p"]) == np.argsort(found["nodes"])).all()
    again = found["same"].ordering["points"].new_to_old
    assert band(np.argsort(again)[edges]) < band(edges) / 2
    rows, columns = found["narrow"].nonzero()
    assert abs(rows - columns).max() == band(np.argsort(found["nodes"])[edges])


def test_the_page_of_arrays(capsys):
    found = {}
    for code in blocks("arrays.md", "py"):
        exec(code, found)
    assert (found["back"] == found["values"]).all()
    assert found["ordered"].points.shape == found["points"].shape
    assert sorted(found["nodes"]) == list(range(500))
    assert set(found["part"].values()) == {0, 1, 2, 3}
    assert "points on borders" in capsys.readouterr().out
