import effort
import networkx as nx
import numpy as np
from hypothesis import given, settings

from meshprep.mesh.incidence import Csr
from meshprep.ordering import METHODS, LocalityProblem
from meshprep.ordering.sloan import _sloan

from .graphs import (
    as_networkx,
    edges_of,
    envelope,
    graph,
    neighbours,
    shuffled,
    slow_envelope,
)
from .test_rcm import place_of, problem_of


def slow_sloan(g, start, distance):
    """One component, searching all vertices for the highest priority, the latest of equals."""
    n = g.n_rows
    near = [neighbours(g, p) for p in range(n)]
    priority = {p: distance[p] - 2 * (len(near[p]) + 1) for p in range(n)}
    state, since, clock, out = ["inactive"] * n, [0] * n, 0, []

    def rise(p):
        nonlocal clock
        if state[p] == "done":
            return
        if state[p] == "inactive":
            state[p] = "preactive"
        clock += 1
        since[p] = clock
        priority[p] += 2

    rise(start)
    while len(out) < n:
        ready = [p for p in range(n) if state[p] in ("preactive", "active")]
        p = max(ready, key=lambda p: (priority[p], since[p]))
        was = state[p]
        state[p] = "waiting"
        if was == "preactive":
            for q in near[p]:
                if q != p:
                    rise(q)
        state[p] = "done"
        out.append(p)
        for q in near[p]:
            if state[q] == "preactive":
                state[q] = "active"
                rise(q)
                for r in near[q]:
                    rise(r)
    return out


@given(edges_of(max_n=16, max_edges=40))
@settings(deadline=None, max_examples=effort.examples(80))
def test_one_component_against_the_slow_version(case):
    n, edges = case
    edges = [(a, b) for a, b in edges if a != b]
    g = graph(n, [*edges, *((i, i + 1) for i in range(n - 1))])
    offset, index = g.offset.view(np.uint64), g.index.view(np.uint32)
    found = _sloan(offset, index, np.array([0, n]), np.array([n // 2], np.uint32)).tolist()
    net = as_networkx(g)
    # the search for ends is tested on its own: the numbering must be right from these
    start = found[0]
    candidates = [nx.single_source_shortest_path_length(net, end) for end in range(n)]
    far = max(d[start] for d in candidates)
    assert any(found == slow_sloan(g, start, d) for d in candidates if d[start] == far)


@given(edges_of(max_n=40, max_edges=80))
@settings(deadline=None, max_examples=effort.examples(60))
def test_components_are_ranges_and_isolated_vertices_last(case):
    problem = problem_of(graph(*case))
    place = place_of(METHODS["sloan"].function(problem))
    expected = 0
    pieces = sorted(nx.connected_components(as_networkx(problem.graph)), key=min)
    for piece in [p for p in pieces if len(p) > 1]:
        assert sorted(place[list(piece)].tolist()) == [
            *range(expected, expected + len(piece))
        ]
        expected += len(piece)


def test_a_lower_profile_than_gps_at_more_bandwidth():
    g = shuffled(127, [(i, (i - 1) // 2) for i in range(1, 127)])
    gps, sloan = (place_of(METHODS[m].function(problem_of(g))) for m in ("gps", "sloan"))
    (narrow, high), (wide, low) = slow_envelope(g, gps), slow_envelope(g, sloan)
    assert low < high
    assert wide > narrow


def test_a_star_and_a_complete_graph():
    n = 200_000
    offset = np.concatenate([[0, n - 1], np.arange(n, 2 * n - 1)]).astype(np.int64)
    index = np.concatenate([np.arange(1, n), np.zeros(n - 1)]).astype(np.int32)
    star = Csr(offset, index)
    order = _sloan(
        offset.view(np.uint64),
        index.view(np.uint32),
        np.array([0, n]),
        np.array([5], np.uint32),
    )
    # the hub waits until one leaf is left: no leaf but that one reaches back
    assert envelope(star, place_of(order.view(np.int32))).profile == n - 1
    rows = np.array([list(range(300))], np.int32)
    complete = place_of(METHODS["sloan"].function(LocalityProblem(rows, 300)))
    assert envelope(rows, complete).profile == 300 * 299 // 2
