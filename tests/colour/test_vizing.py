"""Two points an element: never more colours than Vizing's theorem says."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.colour import colour_threads
from meshprep.colour.vizing import multiplicity, recolour_edges
from meshprep.kernels.compiled import from_python

# Python cannot call helpers as they are.
multiplicity, recolour_edges = map(from_python, (multiplicity, recolour_edges))


def _most_parallel(table: np.ndarray) -> int:
    """The largest number of elements on the same two points, at least 1."""
    twins = Counter(frozenset(row) for row in table.tolist() if row[0] != row[1])
    return max(twins.values(), default=1)


def _random_edges(n_points: int, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_points, (n, 2), dtype=np.int32)


def _one_block(table: np.ndarray) -> np.ndarray:
    return np.array([0, len(table)], dtype=np.int64)


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 14), st.integers(1, 120), st.integers(0, 10**6))
def test_any_colouring_comes_down_to_the_bound_and_the_multiplicity(
    proper, max_degree, n_points, n, seed
):
    table = _random_edges(n_points, n, seed)
    palette = max_degree(table) + _most_parallel(table)
    assert multiplicity(table, n_points) == _most_parallel(table)
    for colour in (np.arange(n, dtype=np.int32), palette + np.arange(n, dtype=np.int32)):
        recolour_edges(table, colour, palette)
        assert proper(table, _one_block(table), colour)
        assert colour.max() < palette


@settings(deadline=None, max_examples=150)
@given(st.integers(2, 12), st.integers(1, 60), st.integers(0, 10**6), st.integers(0, 2))
def test_with_fewer_colours_the_colouring_stays_proper(
    proper, max_degree, n_points, n, seed, extra
):
    table = _random_edges(n_points, n, seed)
    colour = np.arange(n, dtype=np.int32)
    recolour_edges(table, colour, max_degree(table) + extra)
    assert proper(table, _one_block(table), colour)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 60), st.integers(1, 300), st.integers(0, 10**6))
def test_blocks_of_edges_keep_to_the_bound_and_the_multiplicity(proper, n_points, n, seed):
    table = _random_edges(n_points, n, seed)
    found = colour_threads(table, n_points, _one_block(table))
    assert proper(table, _one_block(table), found.colour)
    assert found.count[0] <= found.bound[0] + _most_parallel(table)


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 90), st.floats(0.02, 1), st.integers(0, 10**6))
def test_simple_graphs_take_at_most_one_colour_more_than_the_bound(n_points, density, seed):
    pairs = np.array(list(combinations(range(n_points), 2)), dtype=np.int32)
    rng = np.random.default_rng(seed)
    table = rng.permutation(pairs)[: max(1, int(density * len(pairs)))]
    found = colour_threads(rng.permuted(table, axis=1), n_points, _one_block(table))
    assert found.count[0] <= found.bound[0] + 1
    assert len(np.unique(found.colour)) == found.count[0]


@pytest.mark.parametrize("n_points", [5, 9, 65, 67, 131])
def test_complete_graphs_of_odd_order_need_the_one_more(proper, n_points):
    table = np.array(list(combinations(range(n_points), 2)), dtype=np.int32)
    found = colour_threads(table, n_points, _one_block(table))
    assert proper(table, _one_block(table), found.colour)
    assert (found.count[0], found.bound[0]) == (n_points, n_points - 1)


def test_the_petersen_graph_needs_four_colours():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    star = [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    table = np.array(ring + star + [(i, i + 5) for i in range(5)], dtype=np.int32)
    found = colour_threads(table, 10, _one_block(table))
    assert (found.count.tolist(), found.bound.tolist()) == ([4], [3])


@pytest.mark.parametrize("copies", [1, 4, 40])
def test_a_fat_triangle_needs_shannons_number(proper, copies):
    table = np.repeat(np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32), copies, axis=0)
    found = colour_threads(table, 3, _one_block(table))
    assert proper(table, _one_block(table), found.colour)
    assert (found.count[0], found.bound[0]) == (3 * copies, 2 * copies)
