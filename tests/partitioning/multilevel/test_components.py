"""Components of a mesh: found, cut from each other first, and moved together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meshprep.io.generate import generate
from meshprep.mesh.incidence import Csr
from meshprep.partitioning import BlockProblem, partition
from meshprep.partitioning.multilevel.balancing.components import (
    apart_first,
    components,
    components_of,
    more_pieces,
    moved_together,
    of_several,
    reunited,
    torn_share,
)
from meshprep.partitioning.multilevel.coarsening.levels import coarsen, element_level
from meshprep.partitioning.multilevel.initial.bisection import bisect
from meshprep.partitioning.neighbourhood import facet_graph


def slow_components(n, pairs):
    component = list(range(n))
    for _ in range(n):
        for a, b in pairs:
            component[a] = component[b] = min(component[a], component[b])
    return component


def graph_of(n, pairs):
    rows = [
        sorted({b for a, b in pairs if a == k} | {a for a, b in pairs if b == k})
        for k in range(n)
    ]
    offset = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Csr(offset, np.array([j for row in rows for j in row], np.int32))


@given(data=st.data())
def test_components_and_torn_blocks_are_those_of_a_slow_search(data):
    n = data.draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(vertex, vertex), max_size=14))
    pairs = [(a, b) for a, b in pairs if a != b]
    graph, slow = graph_of(n, pairs), slow_components(n, pairs)
    found = components(graph.offset, graph.index)
    assert found.tolist() == [sorted(set(slow)).index(c) for c in slow]
    block = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int32
    )
    inside = slow_components(n, [(a, b) for a, b in pairs if block[a] == block[b]])
    pieces = [len({inside[k] for k in range(n) if block[k] == b}) for b in range(3)]
    kinds = [len({slow[k] for k in range(n) if block[k] == b}) for b in range(3)]
    torn = [p > k for p, k in zip(pieces, kinds, strict=True)]
    assert more_pieces(np.array(pieces), found, block).tolist() == torn
    nothing = np.zeros((n, 1), np.int32)
    level = element_level(nothing, graph, np.zeros((n, 2)))
    assert torn_share(level, block, 3, components_of(level)) == np.mean(torn)
    several = of_several(found, block).tolist()
    assert several == [kinds[b] > 1 for b in range(len(several))]


@given(data=st.data())
def test_fragments_go_to_the_neighbour_that_they_share_most_facets_with(data):
    n = data.draw(st.integers(2, 14))
    vertex = st.integers(0, n - 1)
    drawn = data.draw(st.lists(st.tuples(vertex, vertex), max_size=24))
    pairs = {(min(a, b), max(a, b)) for a, b in drawn if a != b}
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    # no block is empty
    block = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    graph, whole = graph_of(n, pairs), slow_components(n, pairs)
    level = element_level(np.zeros((n, 1), np.int32), graph, np.zeros((n, 2)))
    found = reunited(level, block, components_of(level))
    inside = slow_components(n, [(a, b) for a, b in pairs if block[a] == block[b]])
    for name in set(inside):
        piece = [k for k in range(n) if inside[k] == name]
        b, size = block[name], len(piece)
        others = {
            inside[k]
            for k in range(n)
            if block[k] == b and whole[k] == whole[name] and k not in piece
        }
        target = {int(found[k]) for k in piece}
        assert len(target) == 1, "a piece stays together"
        larger = [o for o in others if inside.count(o) > size]
        if not any(inside.count(o) >= size for o in others):
            assert target == {b}, "the largest piece stays"
        facets = [
            block[j] for i in piece for j in range(n)
            if (min(i, j), max(i, j)) in pairs and j not in piece
        ]  # fmt: skip
        if larger and facets:
            most = max(facets.count(t) for t in facets)
            assert facets.count(*target) == most


def two_squares(side):
    """Two grids of quads in the same place, which share nothing."""
    mesh = generate("box", nx=side, ny=side, type="quad")
    table, n_points = mesh.map("cells->nodes").table, mesh.size("nodes")
    where = mesh.dat("coordinates", "nodes").values[:, :2]
    both = np.concatenate([table, table + n_points]).astype(np.int32)
    points = np.concatenate([where, where])
    return both, points, points[both].mean(axis=1)


def test_components_are_cut_from_each_other_before_they_are_cut():
    table, points, where = two_squares(8)
    level = element_level(table, facet_graph(table, len(points)), where)
    component = components_of(level)
    places = apart_first(component, table, where, points, np.eye(2))
    assert [a.shape[1] for a in places] == [3, 3, 3]
    part = bisect(table, places[1], places[0], places[2], 5)
    shared = set(part[:64].tolist()) & set(part[64:].tolist())
    assert len(shared) == 1
    # a cut inside a component is a line across its longest axis, not a deal
    (b,) = shared
    one, other = part[:64] == b, part[64:] == b
    assert where[:64][one, 0].min() >= where[:64][~one, 0].max()
    assert where[64:][other, 0].max() <= where[64:][~other, 0].min()


def test_what_a_block_has_of_two_components_is_in_one_place():
    table, points, where = two_squares(8)
    graph = facet_graph(table, len(points))
    levels, labels = [element_level(table, graph, where)], []
    level, label = coarsen(levels[0], len(points), 4)
    levels, labels = [*levels, level], [label]
    component, some = components_of(level), level.example
    places = apart_first(component, table[some], where[some], points, np.eye(2))
    block = bisect(table[some], places[1], places[0], places[2], 5, weight=level.weight)
    moved = moved_together(levels, labels, block, component)
    of_elements, second = block[label], np.arange(128) >= 64
    (b,) = set(of_elements[second].tolist()) & set(of_elements[~second].tolist())
    middles = [
        moved[0].place[(of_elements == b) & (second == k)].mean(axis=0) for k in (0, 1)
    ]
    np.testing.assert_allclose(*middles, atol=1e-12)
    off = moved[0].place - where
    assert np.ptp(off[:64], axis=0).max() < 1e-12
    assert np.ptp(off[64:], axis=0).max() < 1e-12


def test_a_connected_mesh_has_no_components():
    table, points, where = (
        array[:64] if k != 1 else array for k, array in enumerate(two_squares(8))
    )
    level = element_level(table, facet_graph(table, len(points)), where)
    assert components_of(level) is None
    assert torn_share(level, np.repeat(np.arange(4, dtype=np.int32), 16), 4, None) == 0.0


def test_bodies_in_the_same_place_have_the_blocks_of_bodies_apart(check_blocks):
    mesh = generate("delaunay3d", cells=1_500, seed=1, shuffle=False)
    table, n_points, bodies = mesh.map("cells->nodes").table, mesh.size("nodes"), 12
    where = mesh.dat("coordinates", "nodes").values[table].mean(axis=1)
    many = np.concatenate([table + k * n_points for k in range(bodies)]).astype(np.int32)
    loads = []
    for distance in (0.0, 2.0):
        moved = [where + distance * np.array([k, 0, 0]) for k in range(bodies)]
        places = np.concatenate(moved)
        found = partition(
            BlockProblem(many, bodies * n_points, 256, coordinates=places), "blocks"
        )
        check_blocks(found, len(many), 256)
        loads.append(found.notes["loads"])
    assert loads[0] < 1.06 * loads[1]
