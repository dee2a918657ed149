"""Blocks of arrays under their caps."""

import numpy as np
import pytest
from given_arrays import ragged, rows_of, tables
from hypothesis import given as on
from hypothesis import strategies as st
from scipy.spatial import Delaunay

import meshprep
from meshprep import MeshprepError


def triangulation(n=3000, seed=0):
    points = np.random.default_rng(seed).random((n, 2))
    return points, Delaunay(points).simplices


def points_of_blocks(rows, block):
    """The number of different points of each block."""
    found = [set() for _ in range(max(block) + 1)]
    for row, b in zip(rows, block, strict=True):
        found[b] |= row
    return [len(points) for points in found]


@on(st.one_of(tables(), ragged()), st.integers(1, 12), st.booleans())
def test_both_caps_hold(elements_and_size, size, capped):
    elements, n_points = elements_and_size
    if isinstance(elements, tuple) and elements[0].size == elements[1].size:
        return
    cap = 8 if capped else None
    block = meshprep.blocks(elements, size, staged_points=cap, n_points=n_points)
    counts = np.bincount(block)
    assert counts.min() >= 1
    assert counts.max() <= size
    if capped:
        assert max(points_of_blocks(rows_of(elements), block.tolist())) <= cap


@pytest.mark.parametrize("known", [True, False])
def test_blocks_touch_few_points_in_any_order(known):
    points, cells = triangulation()
    rows = rows_of(cells)
    runs = np.arange(len(cells)) // 64
    block = meshprep.blocks(cells, 64, points=points if known else None)
    touched = sum(points_of_blocks(rows, block.tolist()))
    assert touched < 0.55 * sum(points_of_blocks(rows, runs.tolist()))
    assert block.max() + 1 <= np.ceil(np.ceil(len(cells) / 64) * 1.01) + 1


def test_meshlets_have_at_most_their_points():
    _, cells = triangulation(1000)
    block = meshprep.blocks(cells, 126, staged_points=64)
    assert np.bincount(block).max() <= 126
    assert max(points_of_blocks(rows_of(cells), block.tolist())) <= 64


def test_the_same_seed_gives_the_same_blocks():
    _, cells = triangulation(800)
    first = meshprep.blocks(cells, 32, seed=3)
    assert (meshprep.blocks(cells.copy(), 32, seed=3) == first).all()


def test_nothing_gives_nothing():
    assert meshprep.blocks(np.empty((0, 3), int)).tolist() == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"size": 0}, "block size is 0"),
        ({"staged_points": 0}, "staged_points is 0, must be at least 1"),
        ({"staged_points": 2}, "2"),
        ({"effort": "lots"}, "lots"),
    ],
)
def test_what_is_refused(how, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.blocks([[0, 1, 2], [1, 2, 3]], **how)
