"""The kernels of Gibbs-Poole-Stockmeyer, each against the paper's words in plain Python."""

from itertools import pairwise

import effort
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.kernels.arrays import Adjacency, breadth_first
from meshprep.kernels.compiled import from_python
from meshprep.ordering.gps import Levels, combine
from meshprep.ordering.levels import (
    Effort,
    LevelNumbers,
    Limit,
    candidates,
    components,
    number,
    pseudo_diameter,
)

from .graphs import as_networkx, edges_of, graph, grid, neighbours, slow_envelope

# Python cannot call helpers as they are.
breadth_first = from_python(breadth_first)
candidates = from_python(candidates)
pseudo_diameter = from_python(pseudo_diameter)
combine = from_python(combine)
number = from_python(number)

ROUNDS, MANY = 12, 5
NO_LIMIT = Limit(np.inf, np.inf, False)


def unsigned(graph):
    return Adjacency(graph.offset.view(np.uint64), graph.index.view(np.uint32))


def degree(graph, i):
    return len(neighbours(graph, i))


def slow_levels(graph, root):
    """Vertices in breadth-first order, and the level of each."""
    level, queue = {root: 0}, [root]
    for p in queue:
        for q in neighbours(graph, p):
            if q not in level:
                level[q] = level[p] + 1
                queue.append(q)
    return queue, level


def widths(level):
    return np.bincount(list(level.values())).tolist()


def slow_combine(graph, level, other, depth, prefer_first):
    """[GPS76 algorithm II]; levels counted from the first end."""
    other = {p: max(0, depth - 1 - other[p]) for p in other}
    settled = {p: level[p] for p in level if level[p] == other[p]}
    rest = as_networkx(graph).subgraph(set(level) - set(settled))
    for piece in sorted(nx.connected_components(rest), key=lambda c: (-len(c), min(c))):
        widest = []
        for side in (level, other):
            size = np.bincount(list(settled.values()) + [side[p] for p in piece])
            widest.append(max(size[side[p]] for p in piece))
        first = widest[0] < widest[1] or (widest[0] == widest[1] and prefer_first)
        settled |= {p: (level if first else other)[p] for p in piece}
    return settled


def slow_number(graph, start, level, in_place):
    """[GPS76 algorithm III]; ``in_place`` passes a vertex behind the one that numbered it."""
    order = [start]
    passed = [start]

    def take(p, depth):
        found = [q for q in neighbours(graph, p) if level[q] == depth and q not in order]
        found.sort(key=lambda q: degree(graph, q))
        order.extend(found)
        return found

    for depth in range(max(level.values()) + 1):
        if depth > 0:
            passed = [q for p in passed for q in take(p, depth)]
        members = [p for p in level if level[p] == depth]
        while not set(members) <= set(order):
            before = len(order)
            for p in [p for p in order if level[p] == depth]:
                mates = take(p, depth)
                place = passed.index(p) + 1 if in_place else len(passed)
                passed[place:place] = mates
            if len(order) == before:
                waiting = [p for p in members if p not in order]
                order.append(min(waiting, key=lambda p: (degree(graph, p), p)))
                passed.append(order[-1])
    return order


def connected(case):
    """The case with a chain through all vertices."""
    n, edges = case
    step = 7 if n % 7 else 1
    return n, edges + [(i * step % n, (i + 1) * step % n) for i in range(n - 1)]


def ends(graph, start, rounds=ROUNDS):
    n = graph.n_rows
    levels, queue = np.zeros((3, n), np.int32), np.zeros(n, np.uint32)
    v, u, row_v, row_u, depth, narrow_v = pseudo_diameter(
        unsigned(graph),
        0,
        n,
        start,
        levels,
        queue,
        Effort(rounds, np.empty(MANY, np.uint32)),
    )
    return int(v), int(u), levels[row_v], levels[row_u], depth, narrow_v


@given(edges_of())
@settings(deadline=None, max_examples=effort.examples(60))
def test_components(case):
    g = graph(*case)
    order, bound, far = components(*unsigned(g))
    found = [order[a:b].tolist() for a, b in pairwise(bound)]
    expected = sorted(nx.connected_components(as_networkx(g)), key=min)
    assert [set(c) for c in found] == expected
    for vertices, last in zip(found, far.tolist(), strict=True):
        queue, level = slow_levels(g, vertices[0])
        assert vertices == queue
        last_level = [p for p in queue if level[p] == max(level.values())]
        assert last == min(last_level, key=lambda p: degree(g, p))


@given(edges_of(), st.integers(0, 99), st.integers(2, 12))
@settings(deadline=None, max_examples=effort.examples(60))
def test_breadth_first_and_its_width_limit(case, root, limit):
    g = graph(*case)
    root %= g.n_rows
    queue, level = slow_levels(g, root)
    width = widths(level)
    found, out = np.full(g.n_rows, -1, np.int32), np.zeros(g.n_rows, np.uint32)
    depth, widest, last, size = breadth_first(unsigned(g), root, found, out, g.n_rows + 1)
    assert (depth, widest, size) == (len(width), max(width), len(queue))
    assert last == size - width[-1]
    assert out[:size].tolist() == queue
    assert {p: int(found[p]) for p in queue} == level
    found[:] = -1
    depth = breadth_first(unsigned(g), root, found, out, limit)[0]
    assert depth == (len(width) if max(width) < limit else -1)


@given(edges_of(), st.integers(1, 6))
@settings(deadline=None, max_examples=effort.examples(40))
def test_candidates_are_the_lowest_degrees(case, count):
    g = graph(*case)
    vertices = np.random.default_rng(0).permutation(g.n_rows).astype(np.uint32)
    chosen = np.zeros(count, np.uint32)
    n = candidates(unsigned(g)[0], vertices, chosen)
    expected = sorted(vertices.tolist(), key=lambda p: degree(g, p))[:count]
    assert chosen[:n].tolist() == expected


def test_the_diameter_of_a_comb_is_found_from_its_middle():
    # a spine 0..9 with teeth of length 3 at both ends: the ends are the tips of the teeth
    spine = [(i, i + 1) for i in range(9)]
    g = graph(16, [*spine, (0, 10), (10, 11), (11, 12), (9, 13), (13, 14), (14, 15)])
    v, u, _, _, depth, _ = ends(g, 5)
    assert {v, u} == {12, 15}
    assert depth == 16


@given(edges_of(), st.integers(0, 99))
@settings(deadline=None, max_examples=effort.examples(80))
def test_pseudo_diameter(case, start):
    g = graph(*connected(case))
    v, u, level_v, level_u, depth, narrow_v = ends(g, start % g.n_rows)
    queue, from_v = slow_levels(g, v)
    _, from_u = slow_levels(g, u)
    assert level_v.tolist() == [from_v[p] for p in range(g.n_rows)]
    assert level_u.tolist() == [from_u[p] for p in range(g.n_rows)]
    assert max(from_v.values()) == max(from_u.values()) == from_v[u] == depth - 1
    assert narrow_v == (max(widths(from_v)) <= max(widths(from_u)))
    # u is the narrowest of the candidates
    last = [p for p in queue if from_v[p] == depth - 1]
    tried = sorted(last, key=lambda p: degree(g, p))[:MANY]
    assert max(widths(from_u)) == min(max(widths(slow_levels(g, p)[1])) for p in tried)


@given(edges_of(), st.integers(0, 99), st.sampled_from([1, ROUNDS]), st.booleans())
@settings(deadline=None, max_examples=effort.examples(150))
def test_combine_and_number(case, start, rounds, in_place):
    g = graph(*connected(case))
    n = g.n_rows
    v, u, level, other, depth, narrow_v = ends(g, start % n, rounds)
    expected = slow_combine(
        g, dict(enumerate(level)), dict(enumerate(other)), depth, narrow_v
    )
    size, state = np.zeros(depth, np.int32), np.zeros(n, np.int32)
    scratch = np.zeros(n, np.uint32), np.zeros(n + 1, np.int32)
    combine(unsigned(g), 0, n, Levels(level, other, state), *scratch, size, narrow_v)
    assert level.tolist() == [expected[p] for p in range(n)]
    assert size.tolist() == np.bincount(level, minlength=depth).tolist()
    assert (level[v], level[u]) == (0, depth - 1)

    out = np.zeros(n, np.uint32)
    numbers = LevelNumbers(out, level.copy(), np.zeros(n, np.uint32))
    width, less, reverse = number(unsigned(g), v, 0, numbers, size, in_place, NO_LIMIT)
    assert out.tolist() == slow_number(g, v, expected, in_place)
    bandwidth, profile = slow_envelope(g, np.argsort(out))
    assert slow_envelope(g, np.argsort(out[::-1]))[0] == bandwidth
    reverse_profile = slow_envelope(g, np.argsort(out[::-1]))[1]
    assert (width, less) == (bandwidth, min(profile, reverse_profile))
    assert reverse == (reverse_profile < profile)

    # An order that comes to the limit is given up, and no other.
    for bandwidth_limit in (bandwidth, bandwidth - 1):
        numbers = LevelNumbers(out, level.copy(), np.zeros(n, np.uint32))
        limit = Limit(np.inf, float(bandwidth_limit), False)
        limited = number(unsigned(g), v, 0, numbers, size, in_place, limit)
        assert limited[0] == (bandwidth if bandwidth_limit == bandwidth else np.inf)


def test_pieces_go_to_the_side_that_stays_narrow():
    # a star: all leaves but the two ends are undecided between the first and the last level
    g = graph(8, [(0, i) for i in range(1, 8)])
    _, _, level, other, depth, narrow_v = ends(g, 1)
    size, n = np.zeros(depth, np.int32), 8
    state, scratch = (
        np.zeros(n, np.int32),
        (np.zeros(n, np.uint32), np.zeros(n + 1, np.int32)),
    )
    _, pieces = combine(
        unsigned(g), 0, n, Levels(level, other, state), *scratch, size, narrow_v
    )
    assert sorted(size.tolist()) == [1, 3, 4]
    assert pieces == 5


@pytest.mark.parametrize("many", [30, 200])
def test_children_are_numbered_by_degree_however_many(many):
    # vertex 0 with children of degrees that fall; both ways of sorting must agree
    edges = [(0, i) for i in range(1, many + 1)]
    edges += [
        (i, j) for i in range(1, many + 1) for j in range(many + 1, many + 1 + many - i)
    ]
    g = graph(2 * many + 1, edges)
    used = max(map(max, edges)) + 1
    _, level = slow_levels(g, 0)
    level = {p: level.get(p, 0) for p in range(used)}
    out, size = (
        np.zeros(used, np.uint32),
        np.bincount(list(level.values())).astype(np.int32),
    )
    kernel = np.array([level[p] for p in range(used)], dtype=np.int32)
    number(
        unsigned(g),
        0,
        0,
        LevelNumbers(out, kernel, np.zeros_like(out)),
        size,
        False,
        NO_LIMIT,
    )
    assert out[1 : many + 1].tolist() == sorted(
        range(1, many + 1), key=lambda p: degree(g, p)
    )


def test_a_grid_keeps_its_short_side():
    g = graph(*grid(4, 20))
    _, _, level, other, depth, narrow_v = ends(g, 33)
    assert depth == 4 + 20 - 1
    size, n = np.zeros(depth, np.int32), 80
    state, scratch = (
        np.zeros(n, np.int32),
        (np.zeros(n, np.uint32), np.zeros(n + 1, np.int32)),
    )
    combine(unsigned(g), 0, n, Levels(level, other, state), *scratch, size, narrow_v)
    assert size.max() == 4
