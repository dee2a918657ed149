from itertools import pairwise

import effort
import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from meshprep.colouring import BlockColours, colour_blocks
from meshprep.colouring.block_colours import (
    _by_saturation,
    _order,
    block_conflicts,
    colour_blocks_first_fit,
    neighbours,
)
from meshprep.kernels.compiled import from_python

# Python cannot call helpers as they are.
neighbours = from_python(neighbours)


def _points_of_blocks(table: np.ndarray, block_offset: np.ndarray) -> list[set[int]]:
    pairs = pairwise(block_offset)
    return [set(table[a:b].ravel().tolist()) for a, b in pairs]


def _graph(table: np.ndarray, block_offset: np.ndarray) -> nx.Graph:
    points = _points_of_blocks(table, block_offset)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(points)))
    graph.add_edges_from(
        (a, b) for a in range(len(points)) for b in range(a) if points[a] & points[b]
    )
    return graph


def _check(table: np.ndarray, block_offset: np.ndarray, found: BlockColours) -> None:
    points = _points_of_blocks(table, block_offset)
    assert sorted(found.order.tolist()) == list(range(len(points)))
    assert found.offset[0] == 0
    assert found.offset[-1] == len(points)
    assert (np.diff(found.offset) > 0).all()
    for c in range(found.count):
        group = found.order[found.offset[c] : found.offset[c + 1]].tolist()
        assert group == sorted(group)
        touched = [p for b in group for p in points[b]]
        assert len(touched) == len(set(touched))


@settings(deadline=None, max_examples=effort.examples(150))
@given(*(st.integers(1, high) for high in (120, 4, 150, 12)), st.integers(0, 10**6))
def test_proper_with_no_more_than_the_fullest_neighbourhood(
    n, k, n_points, block_size, seed
):
    table = np.random.default_rng(seed).integers(0, n_points, (n, k), dtype=np.int32)
    block_offset = np.append(np.arange(0, n, block_size), n).astype(np.int64)
    found = colour_blocks(table, n_points, block_offset)
    _check(table, block_offset, found)
    graph = _graph(table, block_offset)
    assert found.count <= 1 + max(dict(graph.degree).values())


@pytest.mark.parametrize("seed", [315, 885, 1789, 2702])
def test_every_pass_over_lists_of_points_asks_afresh(seed):
    """Of 3,000 random cases those in which a pass that trusts the last one's marks goes wrong."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(70, 400)), int(rng.integers(1, 4))
    n_points = int(rng.integers(n // 6 + 2, 2 * n))
    table = rng.integers(0, n_points, (n, k), dtype=np.int32)
    if seed % 3 == 0:
        table[:, 0] = np.minimum(rng.geometric(0.05, n), n_points - 1)
    block_offset = np.arange(n + 1, dtype=np.int64)
    assert block_conflicts(table, n_points, block_offset).meets.size == 0
    _check(table, block_offset, colour_blocks(table, n_points, block_offset))


@settings(deadline=None, max_examples=effort.examples(60))
@given(*(st.integers(1, high) for high in (120, 4, 60, 6)), st.integers(0, 10**6))
@example(84, 3, 3, 1, 3)  # of more than 64 colours
def test_by_saturation_the_next_block_sees_the_most_colours(
    n, k, n_points, block_size, seed
):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, n_points, (n, k), dtype=np.int32)
    block_offset = np.append(np.arange(0, n, block_size), n).astype(np.int64)
    conflicts = block_conflicts(table, n_points, block_offset)
    # blocks on points that too many share are not coloured in this order
    assume(not conflicts.n_high_degree)
    given_order = rng.permutation(block_offset.size - 1).astype(np.int32)
    order = _by_saturation(conflicts, given_order).tolist()
    assert sorted(order) == list(range(block_offset.size - 1))
    graph, sees, colour = _graph(table, block_offset), {b: set() for b in order}, {}
    first = set(range(64))
    for i, b in enumerate(order):
        assert len(sees[b] & first) == max(len(sees[other] & first) for other in order[i:])
        colour[b] = next(c for c in range(n) if c not in sees[b])
        for other in graph[b]:
            sees[other].add(colour[b])


def test_two_colours_where_two_are_enough():
    """Smallest-last order takes more on a bipartite graph; by saturation there are two."""
    torus = nx.grid_2d_graph(12, 16, periodic=True)
    number = dict(
        zip(torus, np.random.default_rng(1).permutation(192).tolist(), strict=True)
    )
    graph = nx.relabel_nodes(torus, number)
    pairs = np.array(graph.edges)
    block, point = pairs.ravel(), np.repeat(np.arange(len(pairs), dtype=np.int32), 2)
    table = point[np.argsort(block, kind="stable")][:, None]
    offset = np.append(0, np.cumsum(np.bincount(block)))
    found = colour_blocks(table, len(pairs), offset)
    _check(table, offset, found)
    assert found.count == 2
    conflicts = block_conflicts(table, len(pairs), offset)
    assert colour_blocks_first_fit(conflicts, _order(conflicts))[1] > 2


def test_as_few_colours_as_networkx_smallest_last():
    rng = np.random.default_rng(5)
    ours = theirs = 0
    for _ in range(40):
        n_points = int(rng.integers(60, 300))
        table = rng.integers(0, n_points, (150, 2), dtype=np.int32)
        block_offset = np.arange(0, 151, 3, dtype=np.int64)
        ours += colour_blocks(table, n_points, block_offset).count
        peer = nx.greedy_color(_graph(table, block_offset), strategy="smallest_last")
        theirs += 1 + max(peer.values())
    assert ours <= 1.02 * theirs


@pytest.mark.parametrize(("k", "dense"), [(2, False), (12, True)])
def test_neighbours_by_points_and_by_rows_of_bits(k, dense):
    n = 800
    spread = np.random.default_rng(3).integers(0, k * 2, (n, k))
    table = ((np.arange(n)[:, None] + spread) % n).astype(np.int32)
    block_offset = np.arange(0, n + 1, 2, dtype=np.int64)
    conflicts = block_conflicts(table, n, block_offset)
    assert bool(conflicts.meets.size) == dense
    graph = _graph(table, block_offset)
    seen, found = np.full(400, -1, np.int32), np.empty(400, np.int32)
    for b in range(400):
        count = neighbours(conflicts, b, seen, found)
        assert sorted(found[:count].tolist()) == sorted(graph[b])
    _check(table, block_offset, colour_blocks(table, n, block_offset))


def test_classes_are_even_and_few_on_a_mesh(quad_edges):
    table = quad_edges(100, 8)
    block_offset = np.append(np.arange(0, len(table), 128), len(table)).astype(np.int64)
    found = colour_blocks(table, 10_000, block_offset)
    _check(table, block_offset, found)
    size = np.diff(found.offset)
    assert size.max() - size.min() <= 1
    peer = nx.greedy_color(_graph(table, block_offset), strategy="smallest_last")
    assert found.count <= 1 + max(peer.values()) + 1


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("kind", effort.first(["shuffled", "points", "sides"]))
def test_classes_of_simplices_are_even_and_few(dim, kind):
    points = np.random.default_rng(dim).random((2500, dim))
    made = Delaunay(points[np.lexsort(np.floor(points.T * 6))])
    table, n_points = made.simplices, len(points)
    if kind == "sides":
        sides = np.repeat(np.arange(len(table)), dim + 1), made.neighbors.ravel()
        table, n_points = np.stack(sides, axis=1)[sides[0] < sides[1]], len(table)
    table = table[np.argsort(table.mean(axis=1))].astype(np.int32)
    if kind == "shuffled":
        table = np.random.default_rng(1).permutation(table)
    block_offset = np.append(np.arange(0, len(table), 40), len(table)).astype(np.int64)
    found = colour_blocks(table, n_points, block_offset)
    _check(table, block_offset, found)
    peer = nx.greedy_color(_graph(table, block_offset), strategy="smallest_last")
    assert found.count <= 1 + max(peer.values()) + 2
    size = np.diff(found.offset)
    assert size.min() >= 0.5 * size.mean()


@pytest.mark.parametrize("n_blocks", [64, 65, 66, 300])
def test_a_point_on_every_block_takes_a_colour_for_each(n_blocks):
    table = np.stack([np.zeros(3 * n_blocks), 1 + np.arange(3 * n_blocks)], axis=1)
    block_offset = np.arange(0, 3 * n_blocks + 1, 3, dtype=np.int64)
    found = colour_blocks(table.astype(np.int32), 3 * n_blocks + 1, block_offset)
    assert found.count == n_blocks
    assert found.order.tolist() != []
    _check(table.astype(np.int32), block_offset, found)


def test_few_heavy_points_among_light_ones_are_balanced():
    # 100 of 400 blocks meet on one point; each block also meets its two neighbours.
    chain = np.stack([np.arange(400), np.arange(1, 401), np.arange(400)], axis=1)
    chain[::4, 2] = 401
    table, block_offset = chain.astype(np.int32), np.arange(401, dtype=np.int64)
    assert block_conflicts(table, 402, block_offset).n_high_degree == 1
    found = colour_blocks(table, 402, block_offset)
    _check(table, block_offset, found)
    assert found.count == 100
    assert np.diff(found.offset).tolist() == [4] * 100


def test_many_heavy_points_do_not_take_memory_for_each():
    # Each of 700 points is on 73 blocks: their sets of colours would outweigh the points.
    spread = np.random.default_rng(0).permutation(6400 * 8) % 700
    table = spread.reshape(6400, 8).astype(np.int32)
    block_offset = np.arange(6401, dtype=np.int64)
    assert block_conflicts(table, 700, block_offset).n_high_degree == 0
    found = colour_blocks(table, 700, block_offset)
    _check(table, block_offset, found)


def test_nothing_written_is_one_colour():
    found = colour_blocks(np.empty((5, 0), np.int32), 0, np.array([0, 2, 4, 5]))
    assert found.order.tolist() == [0, 1, 2]
    assert found.offset.tolist() == [0, 3]


def test_no_blocks_and_empty_blocks():
    assert colour_blocks(np.empty((0, 2), np.int32), 3, np.array([0])).count == 0
    found = colour_blocks(np.array([[0]], dtype=np.int32), 1, np.array([0, 0, 1, 1]))
    assert found.offset.tolist() == [0, 3]
