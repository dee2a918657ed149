import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.colour import colour_whole_set


@settings(deadline=None, max_examples=150)
@given(*(st.integers(1, high) for high in (400, 4, 40)), st.integers(0, 10**6))
def test_proper_without_gaps(proper, n, k, n_points, seed):
    # Up to 400 elements on one point: several rounds of 64 colours.
    table = np.random.default_rng(seed).integers(0, n_points, (n, k), dtype=np.int32)
    found = colour_whole_set(table, n_points)
    assert proper(table, np.array([0, n]), found.colour)
    assert np.unique(found.colour).tolist() == list(range(found.count))


def test_ordered_quads_take_four(proper, quad_edges):
    table = quad_edges(30, 30)
    found = colour_whole_set(table, 900)
    assert proper(table, np.array([0, len(table)]), found.colour)
    assert found.count == 4


@pytest.mark.parametrize("n", [64, 65, 1000, 100_000])
def test_a_star_takes_a_colour_for_each_element(n):
    table = np.stack([np.zeros(n), 1 + np.arange(n) // 3], axis=1).astype(np.int32)
    found = colour_whole_set(table, n)
    assert found.count == n
    assert np.unique(found.colour).size == n


def test_stars_that_share_elements(proper):
    centre = np.arange(900) % 3
    other = (centre + 1 + np.arange(900) % 2) % 3
    table = np.stack([centre, other, 3 + np.arange(900) // 2], axis=1).astype(np.int32)
    found = colour_whole_set(table, 453)
    assert proper(table, np.array([0, 900]), found.colour)
    assert found.count == 900


def test_nothing_written_and_no_elements():
    assert colour_whole_set(np.empty((4, 0), np.int32), 0).count == 1
    assert colour_whole_set(np.empty((0, 2), np.int32), 5).count == 0
    assert colour_whole_set(np.empty((0, 0), np.int32), 0).count == 0
