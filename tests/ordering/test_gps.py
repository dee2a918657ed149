import effort
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.spatial import Delaunay

from meshprep.mesh.incidence import Csr, point_graph
from meshprep.ordering import METHODS, LocalityProblem, figures, gps
from meshprep.ordering.gps import order_ranges
from meshprep_runtime import Ordering

from .graphs import Envelope, as_networkx, edges_of, envelope, graph, grid, shuffled


def measured(graph):
    """The envelope after gps; checks on the way that the order is a permutation."""
    order = gps(graph)
    assert order.dtype == np.int32
    assert (np.bincount(order, minlength=graph.n_rows) == 1).all()
    place = np.empty(graph.n_rows, np.int32)
    place[order] = np.arange(graph.n_rows, dtype=np.int32)
    return envelope(graph, place)


def from_pairs(n, a, b):
    """A symmetric graph of many edges, each given once."""
    pairs = np.stack([a, b], 1).astype(np.int32)
    return point_graph(pairs, n)


def test_a_shuffled_path_is_straightened():
    edges = [(i, i + 1) for i in range(49)]
    assert measured(shuffled(50, edges)) == Envelope(1, 49)


def test_a_ring_has_bandwidth_two():
    edges = [(i, (i + 1) % 40) for i in range(40)]
    assert measured(shuffled(40, edges)).bandwidth == 2


@pytest.mark.parametrize("size", [(3, 30), (7, 11), (10, 10)])
def test_a_shuffled_grid_comes_near_the_best(size):
    # the best bandwidth of a grid is its short side; levels along the diagonal reach it
    assert measured(shuffled(*grid(*size), seed=3)).bandwidth <= min(size) + 1


def star(leaves, first=0):
    return [(first, first + i) for i in range(1, leaves + 1)]


def test_a_star_of_few_leaves_is_cut_in_halves():
    # half the bandwidth, and not yet many times the profile
    assert measured(graph(9, star(8))) == Envelope(4, 14)


# Each with the least profile that its rows allow, and what cutting it in halves gave.
HUBS = {
    "star": (2001, star(2000), 2000, 501_500),
    "two stars": (1002, [*star(500), *star(500, 501), (0, 501)], 1001, 63_000),
    "caterpillar": (
        2020,
        [
            *((hub, hub + 101) for hub in range(0, 1919, 101)),
            *(edge for hub in range(0, 2020, 101) for edge in star(100, hub)),
        ],
        2019,
        50_000,
    ),
}


@pytest.mark.parametrize("name", HUBS)
def test_no_profile_is_given_away_for_half_the_bandwidth(name):
    n, edges, least, halved = HUBS[name]
    found = measured(shuffled(n, edges, seed=2))
    order = METHODS["rcm"].function(LocalityProblem(np.array(edges, np.int32), n))
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    of_rcm = envelope(graph(n, edges), place)
    assert least <= found.profile <= min(1.1 * of_rcm.profile, halved / 10)
    assert found.bandwidth <= of_rcm.bandwidth


def test_leaves_of_both_sides_still_share_a_ladder():
    """Two vertices with the same thousand neighbours: halves are better in both figures."""
    edges = [(hub, leaf) for hub in (0, 1) for leaf in range(2, 1002)]
    assert measured(graph(1002, edges)) <= Envelope(501, 126_751)


def test_a_complete_graph():
    edges = [(i, j) for i in range(9) for j in range(i)]
    assert measured(graph(9, edges)) == Envelope(8, 36)


def test_a_binary_tree():
    edges = [(i, (i - 1) // 2) for i in range(1, 127)]
    # at least (127 - 1) / (2 x 6) = 10.5; as stored 64
    assert 11 <= measured(shuffled(127, edges)).bandwidth <= 32


def test_components_stand_one_after_the_other_and_isolated_vertices_last():
    # vertex 0 and 5 alone; 1-4-7, 2-3 and 6-8-9
    g = graph(10, [(7, 1), (1, 4), (2, 3), (9, 6), (6, 8)])
    order = gps(g).tolist()
    assert [set(order[:3]), set(order[3:5]), set(order[5:8])] == [
        {1, 4, 7},
        {2, 3},
        {6, 8, 9},
    ]
    assert order[8:] == [0, 5]
    assert measured(g) == Envelope(1, 5)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_no_edges(n):
    assert gps(graph(n, [])).tolist() == list(range(n))


def test_loops_do_no_harm():
    edges = [(i, i + 1) for i in range(9)] + [(3, 3), (9, 9), (10, 10)]
    assert measured(graph(11, edges)) == Envelope(1, 9)


def test_the_graph_is_left_alone_and_the_order_repeats():
    g = shuffled(*grid(9, 9))
    before = g.index.copy()
    g.index.flags.writeable = g.offset.flags.writeable = False
    first = gps(g)
    assert (gps(g) == first).all()
    assert (g.index == before).all()


@given(edges_of(max_n=60, max_edges=120))
@settings(deadline=None, max_examples=effort.examples(100))
def test_random_graphs(case):
    g = graph(*case)
    found, order = measured(g), gps(g)
    # nothing is below the bound that a ball of radius one gives
    largest = max((len(set(g.index[a:b]) - {i}) for i, (a, b) in rows(g)), default=0)
    assert found.bandwidth >= -(-largest // 2)
    # components are ranges in the order of their first vertices, isolated vertices apart
    order_of = {p: i for i, p in enumerate(order.tolist())}
    pieces = sorted(nx.connected_components(as_networkx(g)), key=min)
    expected = 0
    for piece in [c for c in pieces if g.offset[min(c)] < g.offset[min(c) + 1]]:
        assert sorted(order_of[p] for p in piece) == [
            *range(expected, expected + len(piece))
        ]
        expected += len(piece)


def rows(g):
    return list(enumerate(zip(g.offset[:-1], g.offset[1:], strict=True)))


@given(edges_of(max_n=60, max_edges=120))
@settings(deadline=None, max_examples=effort.examples(60))
def test_with_the_search_for_ends_cut_short_it_is_still_a_permutation(case):
    n, edges = case
    g = graph(n, [*edges, *((i, i + 1) for i in range(n - 1))])
    bound, far = np.array([0, n]), np.array([n // 2], np.uint32)
    order = order_ranges(g.offset.view(np.uint64), g.index.view(np.uint32), bound, far, 1)
    assert sorted(order.tolist()) == list(range(n))


def test_a_large_grid_in_any_numbering():
    # past the budget for several tries, and past the gap where the graph is renumbered first
    n, edges = grid(150, 1000)
    assert measured(from_pairs(n, *edges.T)).bandwidth <= 152
    number = np.random.default_rng(4).permutation(n)
    assert measured(from_pairs(n, *number[edges].T)).bandwidth <= 152


@pytest.mark.parametrize(("dimension", "n"), [(2, 30_000), (3, 10_000)])
def test_neighbours_of_a_mesh_stand_on_few_lines(dimension, n):
    """Where a mesh has more neighbours than the smallest graphs, and is shuffled."""
    points = np.random.default_rng(2).random((n, dimension))
    cells = Delaunay(points).simplices.astype(np.int32)
    problem = LocalityProblem(cells, n, target="cpu", block_size=2048)
    found = {}
    for method in ("gps", "rcm"):
        new_to_old = METHODS[method].function(problem)
        old_to_new = Ordering.from_new_to_old(new_to_old).old_to_new
        found[method] = figures(problem, old_to_new)
    assert found["gps"].bandwidth < 0.95 * found["rcm"].bandwidth
    assert found["gps"].lines <= 1.05 * found["rcm"].lines


def test_a_million_vertices_in_a_path_and_in_a_star():
    n = 1_000_000
    path = np.random.default_rng(5).permutation(n)
    assert measured(from_pairs(n, path[:-1], path[1:])) == Envelope(1, n - 1)
    offset = np.concatenate([[0, n - 1], np.arange(n, 2 * n - 1)]).astype(np.int64)
    index = np.concatenate([np.arange(1, n), np.zeros(n - 1)]).astype(np.int32)
    assert measured(Csr(offset, index)).profile == n - 1


def test_a_hundred_thousand_components():
    number = np.random.default_rng(6).permutation(300_000).reshape(3, -1)
    found = measured(from_pairs(300_000, *np.hstack([number[:2], number[1:]])))
    assert found == Envelope(1, 200_000)


def test_a_complete_graph_of_three_thousand():
    n = 3000
    index = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))[~np.eye(n, dtype=bool)]
    assert (
        measured(Csr(np.arange(n + 1, dtype=np.int64) * (n - 1), index)).bandwidth == n - 1
    )
