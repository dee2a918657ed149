"""Parts of graphs: caps, cuts and special graphs, held against slow and obvious counts."""

import math

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.io.generate import generate
from meshprep.mesh.incidence import point_graph
from meshprep.partitioning import partition_graph
from meshprep.partitioning.graph.graph import WeightedGraph, sizes_of_vertices
from meshprep.partitioning.graph.refinement import Balance, refined
from meshprep.partitioning.graph.tuning import PRESETS
from meshprep_runtime.errors import MeshprepError

EFFORTS = ("fast", "default", "strong")


def graph_of(n, edges):
    """Offsets, neighbours and weights of a graph, from edges (u, v, weight)."""
    rows = [[] for _ in range(n)]
    for u, v, weight in edges:
        rows[u].append((v, weight))
        rows[v].append((u, weight))
    offset = np.cumsum([0] + [len(row) for row in rows])
    pairs = [pair for row in rows for pair in row]
    neighbours = np.array([v for v, _ in pairs], np.int64)
    weights = np.array([weight for _, weight in pairs], np.int64)
    return offset, neighbours, weights


def slow_cut(part, edges):
    """The weight of the edges between parts, edge by edge."""
    return sum(weight for u, v, weight in edges if part[u] != part[v])


def slow_caps(weights, shares, room):
    """What each part may weigh in each column."""
    totals = [sum(column) for column in zip(*weights, strict=True)]
    whole = sum(shares)
    return [
        [math.ceil(round((1 + room) * share / whole * total, 6)) for total in totals]
        for share in shares
    ]


def check_caps(part, weights, shares, room):
    """No part weighs more than it may."""
    for p, cap in enumerate(slow_caps(weights, shares, room)):
        for column, most in enumerate(cap):
            load = sum(row[column] for row, q in zip(weights, part, strict=True) if q == p)
            assert load <= most, (p, column)


def grid(width, height):
    """The edges of a grid."""
    edges = []
    for y in range(height):
        for x in range(width):
            v = y * width + x
            if x + 1 < width:
                edges.append((v, v + 1, 1))
            if y + 1 < height:
                edges.append((v, v + width, 1))
    return edges


def reached(part, edges, start):
    """The vertices of the part of ``start`` that a walk inside the part reaches."""
    beside = [[] for _ in part]
    for u, v, _ in edges:
        if part[u] == part[v]:
            beside[u].append(v)
            beside[v].append(u)
    seen = {start}
    waiting = [start]
    while waiting:
        for v in beside[waiting.pop()]:
            if v not in seen:
                seen.add(v)
                waiting.append(v)
    return seen


@st.composite
def graphs(draw):
    """A random graph, which may have isolated vertices and several components."""
    n = draw(st.integers(1, 60))
    pairs = draw(
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=150)
    )
    weight = st.integers(1, draw(st.sampled_from([1, 5, 10**9])))
    edges = [(u, v, draw(weight)) for u, v in sorted(pairs) if u < v]
    return n, edges


@given(graphs(), st.integers(1, 70), st.integers(0, 2**31 - 1), st.sampled_from(EFFORTS))
@settings(max_examples=effort.examples(100), deadline=None)
def test_vertices_of_weight_one_are_always_within_caps(graph, k, seed, how):
    n, edges = graph
    offset, neighbours, weights = graph_of(n, edges)
    part = partition_graph(
        offset, neighbours, parts=k, edge_weights=weights, seed=seed, effort=how
    )
    assert part.dtype == np.int32
    assert part.shape == (n,)
    assert set(part.tolist()) <= set(range(k))
    assert len(set(part.tolist())) == min(n, k)
    check_caps(part.tolist(), [[1]] * n, [1] * k, 0.03)


@given(graphs(), st.integers(2, 8), st.data())
@settings(max_examples=effort.examples(100), deadline=None)
def test_weights_shares_and_columns_never_fail(graph, k, data):
    n, edges = graph
    offset, neighbours, edge_weights = graph_of(n, edges)
    columns = data.draw(st.integers(1, 3))
    weights = data.draw(
        st.lists(
            st.lists(st.integers(0, 20), min_size=columns, max_size=columns),
            min_size=n,
            max_size=n,
        )
    )
    shares = data.draw(st.lists(st.integers(0, 5), min_size=k, max_size=k).filter(any))
    part = partition_graph(
        offset,
        neighbours,
        parts=k,
        vertex_weights=np.array(weights),
        edge_weights=edge_weights,
        shares=np.array(shares),
        connected=data.draw(st.booleans()),
    )
    with_share = {p for p in range(k) if shares[p]}
    assert set(part.tolist()) <= with_share
    assert len(set(part.tolist())) == min(n, len(with_share))


@given(st.integers(2, 9), st.integers(0, 1000), st.sampled_from([0.03, 0.1, 0.5]))
@settings(max_examples=effort.examples(40), deadline=None)
def test_caps_hold_where_the_heaviest_vertex_fits_into_the_room(k, seed, room):
    edges = grid(30, 20)
    offset, neighbours, _ = graph_of(600, edges)
    random = np.random.default_rng(seed)
    heaviest = max(1, int(room * 600 / k))
    weights = random.integers(1, heaviest + 1, 600)
    part = partition_graph(
        offset, neighbours, parts=k, vertex_weights=weights, room=room, seed=seed
    )
    check_caps(part.tolist(), [[w] for w in weights.tolist()], [1] * k, room)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=7), st.integers(0, 1000))
@settings(max_examples=effort.examples(40), deadline=None)
def test_parts_get_their_shares(shares, seed):
    edges = grid(40, 20)
    offset, neighbours, _ = graph_of(800, edges)
    part = partition_graph(
        offset, neighbours, parts=len(shares), shares=shares, seed=seed
    ).tolist()
    check_caps(part, [[1]] * 800, shares, 0.03)


def test_each_of_two_columns_is_balanced():
    edges = grid(40, 40)
    offset, neighbours, _ = graph_of(1600, edges)
    # the second column weighs in one corner alone
    corner = [int(v % 40 < 20 and v < 800) for v in range(1600)]
    weights = [[1, c] for c in corner]
    part = partition_graph(
        offset, neighbours, parts=4, vertex_weights=np.array(weights), room=0.05
    )
    check_caps(part.tolist(), weights, [1] * 4, 0.05)


def test_a_grid_is_cut_straight():
    edges = grid(40, 20)
    offset, neighbours, _ = graph_of(800, edges)
    part = partition_graph(offset, neighbours, parts=2, room=0)
    assert slow_cut(part, edges) == 20


def test_light_edges_are_cut():
    # two squares joined by four light edges; a straight cut through both would cut eight
    square = [(0, 1, 9), (1, 2, 9), (2, 3, 9), (3, 0, 9)]
    edges = [*square, *((u + 4, v + 4, w) for u, v, w in square)]
    edges += [(v, v + 4, 1) for v in range(4)]
    offset, neighbours, weights = graph_of(8, edges)
    part = partition_graph(offset, neighbours, parts=2, edge_weights=weights)
    assert slow_cut(part, edges) == 4
    assert len(set(part[:4].tolist())) == 1


@pytest.mark.parametrize("k", [2, 8, 64])
def test_meshes_are_cut_no_worse_than_by_metis(k):
    pymetis = pytest.importorskip("pymetis")
    mesh = generate("delaunay2d", cells=20_000)
    graph = point_graph(mesh.map("cells->nodes").table, mesh.sets["nodes"].size)
    row = np.repeat(np.arange(graph.n_rows), np.diff(graph.offset))
    adjacency = pymetis.CSRAdjacency(graph.offset, graph.index.astype(np.int64))
    ours = []
    metis = []
    for seed in range(3):
        part = partition_graph(graph.offset, graph.index, parts=k, seed=seed)
        ours.append(np.count_nonzero(part[row] != part[graph.index]))
        _, other = pymetis.part_graph(
            k, adjacency, recursive=False, options=pymetis.Options(ufactor=30, seed=seed)
        )
        other = np.asarray(other)
        metis.append(np.count_nonzero(other[row] != other[graph.index]))
    assert sum(ours) <= sum(metis)


@pytest.mark.parametrize("how", EFFORTS)
def test_the_same_seed_gives_the_same_parts(how):
    offset, neighbours, _ = graph_of(1200, grid(40, 30))

    def cut(seed):
        return partition_graph(offset, neighbours, parts=7, seed=seed, effort=how).tolist()

    assert cut(5) == cut(5)
    assert cut(5) != cut(6)


def test_more_effort_cuts_less():
    edges = grid(90, 70)
    offset, neighbours, _ = graph_of(6300, edges)
    cuts = []
    for how in EFFORTS:
        parts = [
            partition_graph(offset, neighbours, parts=16, effort=how, seed=seed)
            for seed in range(3)
        ]
        cuts.append(sum(slow_cut(part, edges) for part in parts))
    assert cuts[0] > cuts[1] > cuts[2]


def test_parts_are_connected_where_that_is_asked():
    edges = grid(50, 40)
    offset, neighbours, _ = graph_of(2000, edges)
    for seed in range(4):
        part = partition_graph(
            offset, neighbours, parts=23, connected=True, seed=seed, room=0.1
        )
        for p in range(23):
            members = set(np.flatnonzero(part == p).tolist())
            assert reached(part, edges, min(members)) == members


SPECIAL = {
    "nothing": (0, []),
    "a vertex": (1, []),
    "isolated vertices": (500, []),
    "a star": (3000, [(0, v, 1) for v in range(1, 3000)]),
    "a path": (3000, [(v, v + 1, 1) for v in range(2999)]),
    "a clique": (60, [(u, v, 1) for v in range(60) for u in range(v)]),
    "cliques": (300, [(u, v, 1) for v in range(300) for u in range(v // 10 * 10, v)]),
    "a bipartite graph": (200, [(u, v, 1) for u in range(20) for v in range(20, 200)]),
}


@pytest.mark.parametrize("k", [1, 2, 7, 100])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs_are_cut(name, k):
    n, edges = SPECIAL[name]
    offset, neighbours, _ = graph_of(n, edges)
    part = partition_graph(offset, neighbours, parts=k)
    assert len(set(part.tolist())) == min(n, k)
    check_caps(part.tolist(), [[1]] * n, [1] * k, 0.03)


def test_a_path_is_cut_once_for_each_part():
    n, edges = SPECIAL["a path"]
    offset, neighbours, _ = graph_of(n, edges)
    part = partition_graph(offset, neighbours, parts=4)
    assert slow_cut(part, edges) <= 5


def test_cliques_are_not_cut():
    n, edges = SPECIAL["cliques"]
    offset, neighbours, _ = graph_of(n, edges)
    part = partition_graph(offset, neighbours, parts=3)
    assert slow_cut(part, edges) == 0


def test_arrays_that_cannot_be_written_are_taken():
    offset, neighbours, _ = graph_of(100, grid(10, 10))
    expected = partition_graph(offset, neighbours, parts=3)
    offset.flags.writeable = False
    narrow = neighbours.astype(np.int32)
    narrow.flags.writeable = False
    assert (partition_graph(offset, narrow, parts=3) == expected).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parts": 0}, "parts is 0"),
        ({"offset": [0, 1, 1]}, "offset must rise from 0 to 2"),
        ({"offset": []}, "have shapes"),
        ({"neighbours": [1, 2]}, "neighbours name vertices 1..2, but there are 2"),
        ({"neighbours": [1.0, 0.0]}, "neighbours have dtype float64"),
        ({"neighbours": [1, 1]}, "stands at one of its ends alone"),
        ({"vertex_weights": [1, 2, 3]}, "vertex_weights have shape"),
        ({"vertex_weights": [1, -2]}, "vertex_weights have -2"),
        ({"vertex_weights": [2**60, 2**60]}, "add up to 2\\^53 or more"),
        ({"edge_weights": [0, 0]}, "edge_weights have 0"),
        ({"edge_weights": [1, 1, 1]}, "edge_weights have shape"),
        ({"edge_weights": [1, 2]}, "has another weight"),
        ({"shares": [1.0]}, "shares have shape"),
        ({"shares": [0.0, 0.0]}, "shares must be numbers from 0"),
        ({"room": -0.1}, "room is -0.1"),
        ({"effort": "much"}, "effort 'much' is unknown"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    fitting = {"offset": [0, 1, 2], "neighbours": [1, 0], "parts": 2}
    with pytest.raises(MeshprepError, match=message):
        partition_graph(**(fitting | arguments))


def relative_cut(weights, k, room=0.03):
    """The cut of a grid with these columns of weights, over that without weights."""
    edges = grid(70, 50)
    offset, neighbours, _ = graph_of(3500, edges)
    part = partition_graph(offset, neighbours, parts=k, vertex_weights=weights, room=room)
    check_caps(part.tolist(), weights.tolist(), [1] * k, room)
    plain = partition_graph(offset, neighbours, parts=k)
    return slow_cut(part, edges) / slow_cut(plain, edges)


@pytest.mark.parametrize("k", [4, 16])
def test_mixed_columns_of_weights_cut_few_more_edges(k):
    random = np.random.default_rng(7)
    ones = np.ones(3500, np.int64)
    one_in_three = (random.random(3500) < 1 / 3).astype(np.int64)
    assert relative_cut(np.column_stack([ones, one_in_three]), k, room=0.05) < 1.3
    assert relative_cut(random.integers(1, 10, (3500, 2)), k, room=0.05) < 1.3
    assert relative_cut(random.integers(1, 10, (3500, 3)), k, room=0.05) < 1.3


def test_a_column_that_grows_from_side_to_side_is_balanced():
    place = np.arange(3500) % 70
    weights = np.column_stack([np.ones(3500, np.int64), 1 + place // 4])
    assert relative_cut(weights, 16) < 3


def test_heavy_vertices_do_not_scatter_parts():
    # a few vertices weigh more than the room of a part, which no parts can balance
    weights = np.ones((3500, 2), np.int64)
    weights[::97, 1] = 200
    edges = grid(70, 50)
    offset, neighbours, _ = graph_of(3500, edges)
    part = partition_graph(offset, neighbours, parts=16, vertex_weights=weights)
    load = np.bincount(part, weights[:, 1])
    assert load.max() <= weights[:, 1].sum() / 16 + 200
    plain = partition_graph(offset, neighbours, parts=16)
    assert slow_cut(part, edges) < 2 * slow_cut(plain, edges)


@given(graphs(), st.integers(2, 9), st.integers(0, 2**31 - 1), st.data())
@settings(max_examples=effort.examples(100), deadline=None)
def test_figures_of_refined_parts_are_those_of_a_slow_count(graph, k, seed, data):
    n, edges = graph
    offset, neighbours, edge_weights = graph_of(n, edges)
    weights = data.draw(
        st.lists(
            st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=n, max_size=n
        )
    )
    part = np.array(
        data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)), np.int32
    )
    cap = np.full((k, 2), data.draw(st.integers(0, 60)))
    vertex_weight = np.array(weights, np.int64)
    weighted = WeightedGraph(
        offset=offset,
        neighbour=neighbours.astype(np.int32),
        edge_weight=edge_weights,
        vertex_weight=vertex_weight,
        size=sizes_of_vertices(vertex_weight),
    )
    balance = Balance(aim=cap, cap=cap)
    excess_before = slow_excess(part, weights, cap)
    figures = refined(weighted, part, balance, PRESETS["default"].parts, seed)
    assert figures.cut == 2 * slow_cut(part, edges)
    assert figures.excess == slow_excess(part, weights, cap) <= excess_before
    # another round from there cuts no more
    again = refined(weighted, part, balance, PRESETS["default"].parts, seed)
    assert again.cut <= figures.cut or again.excess < figures.excess


def slow_excess(part, weights, cap):
    """How much parts are over their caps, part by part and column by column."""
    excess = 0
    for p, most in enumerate(cap.tolist()):
        for column, cap_of_column in enumerate(most):
            load = sum(row[column] for row, q in zip(weights, part, strict=True) if q == p)
            excess += max(0, load - cap_of_column)
    return excess
