import effort
import networkx as nx
import numpy as np
from hypothesis import given, settings
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from meshprep.ordering import METHODS, LocalityProblem

from .graphs import as_networkx, envelope, grid, shuffled, slow_envelope, tables


def problem_of(g):
    pairs = np.stack([np.repeat(np.arange(g.n_rows), np.diff(g.offset)), g.index], 1)
    return LocalityProblem(pairs.astype(np.int32), g.n_rows)


def place_of(order):
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(order.size))
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    return place


@given(tables())
@settings(deadline=None, max_examples=effort.examples(80))
def test_each_component_is_numbered_as_cuthill_and_mckee_do(case):
    problem = LocalityProblem(*case)
    order = METHODS["rcm"].function(problem)
    place, net = place_of(order), as_networkx(problem.graph)
    degree = np.diff(problem.graph.offset)
    for piece in nx.connected_components(net):
        # backwards from the highest number, every vertex follows its earliest neighbour,
        # and among the neighbours of one vertex the lower degree comes first
        run = sorted(piece, key=lambda p: -place[p])
        when = {p: i for i, p in enumerate(run)}
        parents = [min((when[q] for q in net[p]), default=0) for p in run[1:]]
        assert parents == sorted(parents)
        for i in range(1, len(parents)):
            if parents[i] == parents[i - 1]:
                assert degree[run[i]] <= degree[run[i + 1]]


@given(tables())
@settings(deadline=None, max_examples=effort.examples(60))
def test_the_start_is_far_from_another_vertex(case):
    problem = LocalityProblem(*case)
    place, net = place_of(METHODS["rcm"].function(problem)), as_networkx(problem.graph)
    for piece in nx.connected_components(net):
        start = max(piece, key=lambda p: place[p])
        far = nx.eccentricity(net.subgraph(piece), start)
        # no vertex of lowest degree in the last level is deeper
        levels = nx.single_source_shortest_path_length(net, start)
        last = [p for p in piece if levels[p] == far]
        degree = min(net.degree(p) for p in last)
        depths = [
            nx.eccentricity(net.subgraph(piece), p) for p in last if net.degree(p) == degree
        ]
        assert min(depths) <= far


def test_no_wider_than_scipy_on_a_shuffled_grid():
    problem = problem_of(shuffled(*grid(9, 31), seed=2))
    graph = problem.graph
    matrix = csr_matrix((np.ones(graph.index.size), graph.index, graph.offset))
    peer = place_of(reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int32))
    ours = place_of(METHODS["rcm"].function(problem))
    assert envelope(graph, ours).bandwidth <= slow_envelope(graph, peer)[0]
    assert envelope(graph, ours).profile <= 1.01 * slow_envelope(graph, peer)[1]
