from itertools import pairwise

import effort
import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from meshprep.colouring import colour_threads, thread_bound
from meshprep_runtime.errors import MeshprepError


@st.composite
def cut_tables(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    """A random table, and blocks of random sizes, some of them empty."""
    n, k = draw(st.integers(0, 80)), draw(st.integers(1, 5))
    n_points = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    cuts = draw(st.lists(st.integers(0, n), max_size=5))
    block_offset = np.array([0, *sorted(cuts), n], dtype=np.int64)
    return rng.integers(0, n_points, (n, k), dtype=np.int32), n_points, block_offset


@settings(deadline=None, max_examples=effort.examples(150))
@given(cut_tables())
def test_proper_without_gaps_and_not_below_the_bound(proper, max_degree, case):
    table, n_points, block_offset = case
    found = colour_threads(table, n_points, block_offset)
    assert proper(table, block_offset, found.colour)
    assert found.bound.tolist() == thread_bound(table, n_points, block_offset).tolist()
    for b, (start, stop) in enumerate(pairwise(block_offset)):
        assert found.bound[b] == max_degree(table[start:stop])
        used = np.unique(found.colour[start:stop])
        assert used.tolist() == list(range(found.count[b]))
        assert found.bound[b] <= found.count[b]


def test_fewer_colours_than_networkx():
    rng = np.random.default_rng(11)
    ours = theirs = 0
    for _ in range(40):
        rows = rng.integers(
            0, rng.integers(4, 40), (60, rng.integers(2, 5)), dtype=np.int32
        )
        ours += int(colour_threads(rows, 40, np.array([0, 60])).count[0])
        theirs += _networkx_colours(rows)
    assert ours <= theirs


def _networkx_colours(rows: np.ndarray) -> int:
    graph = nx.Graph()
    graph.add_nodes_from(range(len(rows)))
    for p in np.unique(rows):
        on = np.flatnonzero((rows == p).any(axis=1)).tolist()
        graph.add_edges_from((a, b) for a in on for b in on if a < b)
    colours = nx.greedy_color(graph, strategy="saturation_largest_first")
    return 1 + max(colours.values(), default=-1)


@settings(deadline=None, max_examples=effort.examples(150))
@given(st.integers(1, 300), st.integers(1, 30), st.integers(1, 30), st.integers(0, 10**6))
def test_two_sided_conflicts_reach_the_bound(proper, n, left, right, seed):
    # Koenig: the edges of a bipartite graph need as many colours as its fullest vertex.
    rng = np.random.default_rng(seed)
    sides = [rng.integers(0, left, n), left + rng.integers(0, right, n)]
    table = np.stack(sides, axis=1).astype(np.int32)
    block_offset = np.array([0, n], dtype=np.int64)
    found = colour_threads(table, left + right, block_offset)
    assert proper(table, block_offset, found.colour)
    if found.bound[0] <= 64:
        assert found.count[0] == found.bound[0]


@pytest.mark.parametrize("mixed", [False, True])
def test_quad_edges_reach_the_bound_in_every_block(proper, quad_edges, shuffled, mixed):
    table = quad_edges(75, 15)
    block_offset = np.append(np.arange(0, len(table), 448), len(table)).astype(np.int64)
    table = shuffled(table, block_offset) if mixed else table
    found = colour_threads(table, 75 * 75, block_offset)
    assert proper(table, block_offset, found.colour)
    assert found.count.tolist() == found.bound.tolist()
    assert found.bound.max() == 4


@pytest.mark.parametrize("mixed", [False, True])
def test_hexahedra_take_eight_colours(proper, hexes, shuffled, mixed):
    one = hexes(8, 8, 5)
    n_points = int(one.max()) + 1
    table = np.concatenate([one + i * n_points for i in range(40)]).astype(np.int32)
    block_offset = np.arange(0, len(table) + 1, 320, dtype=np.int64)
    table = shuffled(table, block_offset) if mixed else table
    found = colour_threads(table, 40 * n_points, block_offset)
    assert proper(table, block_offset, found.colour)
    assert found.bound.tolist() == [8] * 40
    assert np.count_nonzero(found.count == 8) >= 0.95 * 40
    assert found.count.max() <= 9


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_simplices_come_within_a_tenth_of_the_bound(proper, shuffled, dim, pairs, mixed):
    points = np.random.default_rng(4).random((900, dim))
    made = Delaunay(points[np.lexsort(np.floor(points.T * 5))])
    table, n_points = made.simplices, len(points)
    if pairs:
        sides = np.repeat(np.arange(len(table)), dim + 1), made.neighbors.ravel()
        table, n_points = np.stack(sides, axis=1)[sides[0] < sides[1]], len(table)
    # Blocks of neighbours: the elements by the place of their points.
    table = table[np.argsort(table.mean(axis=1))].astype(np.int32)
    block_offset = np.append(np.arange(0, len(table), 256), len(table)).astype(np.int64)
    table = shuffled(table, block_offset) if mixed else table
    found = colour_threads(table, n_points, block_offset)
    assert proper(table, block_offset, found.colour)
    assert found.count.mean() <= 1.1 * found.bound.mean()
    assert not pairs or (found.count <= found.bound + 1).all()


def test_a_triangle_of_edges_needs_one_more_than_its_bound():
    table = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)
    found = colour_threads(table, 3, np.array([0, 3]))
    assert sorted(found.colour.tolist()) == [0, 1, 2]
    assert (found.count.tolist(), found.bound.tolist()) == ([3], [2])


@pytest.mark.parametrize("n", [63, 64, 65, 200, 5000])
def test_a_star_needs_a_colour_for_each_element(n):
    ray = np.arange(n)
    table = np.stack([np.zeros(n), 1 + ray, 1 + (ray + 1) % n], axis=1).astype(np.int32)
    found = colour_threads(table, n + 1, np.array([0, n]))
    assert sorted(found.colour.tolist()) == list(range(n))
    assert found.colour.dtype == (np.uint8 if n <= 256 else np.uint16)
    assert (found.count.tolist(), found.bound.tolist()) == ([n], [n])


def test_more_than_64_colours_where_no_point_is_crowded():
    # Each two of 70 elements share a point of their own: the bound is 2, the need 70.
    pairs = [(a, b) for a in range(70) for b in range(a)]
    rows = [[i for i, pair in enumerate(pairs) if e in pair] for e in range(70)]
    found = colour_threads(np.array(rows, dtype=np.int32), len(pairs), np.array([0, 70]))
    assert sorted(found.colour.tolist()) == list(range(70))
    assert found.bound.tolist() == [2]


def test_an_element_does_not_conflict_with_itself():
    table = np.array([[0, 0], [1, 1], [2, 2]], dtype=np.int32)
    found = colour_threads(table, 3, np.array([0, 3]))
    assert found.colour.tolist() == [0, 0, 0]
    assert (found.count.tolist(), found.bound.tolist()) == ([1], [1])


def test_nothing_written_is_one_colour_a_block():
    found = colour_threads(np.empty((5, 0), np.int32), 0, np.array([0, 3, 3, 5]))
    assert found.colour.tolist() == [0] * 5
    assert found.colour.dtype == np.uint8
    assert found.count.tolist() == found.bound.tolist() == [1, 0, 1]


def test_no_elements_and_no_blocks():
    found = colour_threads(np.empty((0, 2), np.int32), 4, np.array([0]))
    assert found.colour.size == found.count.size == found.bound.size == 0


def test_more_colours_than_uint16_holds_are_refused_with_the_block():
    table = np.zeros((65538, 1), np.int32)
    with pytest.raises(
        MeshprepError, match=r"block 1 needs 65537 thread colours.*lower the block"
    ):
        colour_threads(table, 1, np.array([0, 1, 65538]))
    found = colour_threads(table[:65536], 1, np.array([0, 65536]))
    assert np.unique(found.colour).size == 65536


def test_the_number_of_threads_changes_nothing(hexes, shuffled):
    block_offset = np.append(np.arange(0, 1000, 96), 1000).astype(np.int64)
    table = shuffled(hexes(10, 10, 10), block_offset)
    many = colour_threads(table, 1331, block_offset)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        one = colour_threads(table, 1331, block_offset)
    finally:
        numba.set_num_threads(before)
    assert one.colour.tolist() == many.colour.tolist()


def test_input_is_not_changed_and_may_be_read_only():
    table = np.array([[0, 1], [1, 2]], dtype=np.int32)
    table.flags.writeable = False
    assert colour_threads(table, 3, np.array([0, 2])).count.tolist() == [2]
