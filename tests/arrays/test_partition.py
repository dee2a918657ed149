"""Parts of arrays: caps, and cuts counted edge by edge."""

import networkx
import numpy as np
import pytest
from given_arrays import forms_of_graph, graphs, ragged, rows_of, tables
from hypothesis import given as on
from hypothesis import strategies as st
from scipy.spatial import Delaunay

import meshprep
from meshprep import MeshprepError


@on(graphs(), st.integers(1, 6), st.integers(0, 2), st.integers(0, 99))
def test_parts_of_graphs_hold_no_more_than_they_may(graph, parts, columns, seed):
    weights = None
    if columns:
        weights = np.random.default_rng(seed).integers(1, 9, (len(graph), columns))
    room = 0.03 if columns < 2 else 1.0
    owner = meshprep.partition(graph, parts, weights=weights, room=room, seed=seed)
    assert owner.shape == (len(graph),)
    assert set(owner.tolist()) <= set(range(parts))
    if columns < 2:
        weight = np.ones(len(graph)) if weights is None else weights[:, 0]
        held = np.bincount(owner, weights=weight, minlength=parts)
        target = weight.sum() / parts
        assert held.max() <= max(
            np.ceil(1.03 * target - 1e-6), np.ceil(target) + weight.max() - 1
        )
    if len(graph) >= parts:
        assert np.bincount(owner, minlength=parts).min() >= 1


@on(graphs(), st.integers(1, 4))
def test_the_cut_is_counted_edge_by_edge(graph, parts):
    for how in forms_of_graph(graph).values():
        how = {"graph" if k == "given" else k: v for k, v in how.items()}
        owner = meshprep.partition(parts=parts, **how)
        figures = meshprep.check_partition(owner=owner, parts=parts, **how)
        cut = sum(owner[a] != owner[b] for a, b in graph.edges())
        assert figures.cut == figures.shared == cut


@on(st.one_of(tables(), ragged()), st.integers(1, 5))
def test_elements_get_owners(elements_and_size, parts):
    elements, n_points = elements_and_size
    if isinstance(elements, tuple) and elements[0].size == elements[1].size:
        return
    owner = meshprep.partition(elements, parts, n_points=n_points)
    figures = meshprep.check_partition(elements, owner, parts, n_points=n_points)
    owners_of_point = {}
    for row, part in zip(rows_of(elements), owner.tolist(), strict=True):
        for point in row:
            owners_of_point.setdefault(point, set()).add(part)
    assert figures.shared == sum(len(found) > 1 for found in owners_of_point.values())


def test_borders_are_short():
    points = np.random.default_rng(0).random((4000, 2))
    cells = Delaunay(points).simplices
    for known in (points, None):
        owner = meshprep.partition(cells, 8, points=known)
        figures = meshprep.check_partition(cells, owner, 8)
        # squares of equal area would share about this many points
        assert figures.shared < 1.6 * np.sqrt(4000 * 8)
    graph = networkx.grid_2d_graph(40, 40)
    owner = meshprep.partition(graph, 4)
    assert meshprep.check_partition(graph, owner, 4).cut <= 100


def test_shares_and_weights():
    graph = networkx.grid_2d_graph(30, 30)
    owner = meshprep.partition(graph, 3, shares=[1, 1, 2])
    held = np.bincount(owner)
    assert held[2] > 1.8 * held[0]
    meshprep.check_partition(graph, owner, 3, shares=[1, 1, 2])
    weights = np.ones((900, 2))
    weights[:450, 1] = 3
    owner = meshprep.partition(graph, 4, weights=weights, room=0.1)
    assert meshprep.check_partition(graph, owner, 4, weights=weights, room=0.1).imbalance


def test_connected_parts_are_connected():
    graph = networkx.random_geometric_graph(300, 0.12, seed=4)
    assert networkx.is_connected(graph)
    owner = meshprep.partition(graph, 7, connected=True, room=0.2)
    for part in range(7):
        inside = graph.subgraph(np.flatnonzero(owner == part).tolist())
        assert networkx.is_connected(inside)


@pytest.mark.parametrize(
    ("owner", "how", "said"),
    [
        ([0, 0, 0, 1], {"room": 0}, "part 0 holds 3, more than 2"),
        ([0, 1, 0, 1], {"connected": True}, "part 0 is not connected: vertices 0 and 2"),
        ([0, 0, 1, 2], {"parts": 2}, "vertex 3 is in part 2, but there are 2 parts"),
        ([0, 0, 2, 2], {"parts": 3}, "part 1 is empty, of 4 vertices"),
        ([0, 0, 1], {}, "give a whole number for each vertex, 4"),
        ([0, 0, 1, 1], {"weights": [1, 1, 1]}, r"weights have shape \(3,\)"),
        ([0, 0, 1, 1], {"weights": [1, 1, -1, 1]}, "vertex 2 has -1.0"),
        ([0, 0, 1, 1], {"shares": [1]}, "give one for each part, 2"),
        ([0, 0, 1, 1], {"room": -1}, "room is -1"),
    ],
)
def test_what_the_check_refuses(owner, how, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.check_partition(networkx.path_graph(4), owner, **how)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, r"give the number of parts: partition\(graph, 8\)"),
        ({"parts": 0}, "parts is 0, must be a whole number from 1"),
        ({"parts": 2.5}, "parts is 2.5"),
        ({"parts": 2, "effort": "lots"}, "effort 'lots' is unknown"),
        ({"parts": 2, "shares": [0, 0]}, "shares must be numbers from 0"),
    ],
)
def test_what_is_refused(how, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.partition(networkx.path_graph(4), **how)


def test_elements_may_weigh_nothing():
    points = np.random.default_rng(2).random((600, 2))
    cells = Delaunay(points).simplices
    weights = (points[cells].mean(axis=1)[:, 0] > 0.8).astype(int)
    owner = meshprep.partition(cells, 4, points=points, weights=weights)
    held = np.bincount(owner, weights=weights, minlength=4)
    assert held.max() <= np.ceil(1.03 * weights.sum() / 4)


def test_weights_that_lie_apart_are_balanced():
    graph = networkx.grid_2d_graph(30, 30)
    left = np.array([x < 15 for x, _ in graph])
    types = np.column_stack([left, ~left]).astype(int)
    owner = meshprep.partition(graph, 6, weights=types, room=0.1)
    for column in types.T:
        assert np.bincount(owner, weights=column).max() <= np.ceil(1.1 * 450 / 6)


def test_weights_that_are_mixed_are_balanced():
    graph = networkx.grid_2d_graph(40, 40)
    chance = np.random.default_rng(0)
    weights = np.ones((1600, 3))
    weights[:, 1] = chance.integers(1, 5, 1600)
    weights[:, 2] = [x / 8 for x, _ in graph]
    owner = meshprep.partition(graph, 8, weights=weights, room=0.1)
    found = meshprep.check_partition(graph, owner, 8, weights=weights, room=0.1)
    assert found.imbalance < 1.1 + 1e-6
