import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.ordering import group_points
from meshprep_runtime import MeshprepError

from .graphs import tables


def slow(table, n_to, offset):
    """Sort by (number of accessing blocks, the blocks in ascending order), unused points last."""
    blocks = [[] for _ in range(n_to)]
    for b in range(len(offset) - 1):
        for p in {int(p) for p in table[offset[b] : offset[b + 1]].ravel()}:
            blocks[p].append(b)
    return sorted(range(n_to), key=lambda p: (not blocks[p], len(blocks[p]), blocks[p]))


def test_own_points_then_shared_ones_then_unused():
    # a chain of four elements in two blocks: point 2 is shared, point 5 unused
    table = np.array([[0, 1], [1, 2], [2, 3], [3, 4]], dtype=np.int32)
    assert group_points(table, 6, np.array([0, 2, 4])).tolist() == [0, 1, 3, 4, 2, 5]


def test_blocks_are_compared_in_order_and_ties_keep_their_order():
    # points 0..3 are used by blocks {1,2}, {0,2}, {0,1}, {0,2}; point 4 by all three
    table = np.array([[1, 2, 3, 4], [0, 2, 4, 4], [3, 1, 0, 4]], dtype=np.int32)
    assert group_points(table, 5, np.array([0, 1, 2, 3])).tolist() == [2, 1, 3, 0, 4]


def test_empty_blocks_no_blocks_no_points():
    table = np.array([[1], [0]], dtype=np.int32)
    assert group_points(table, 3, np.array([0, 0, 1, 1, 2])).tolist() == [1, 0, 2]
    assert group_points(table[:0], 3, np.array([0])).tolist() == [0, 1, 2]
    assert group_points(table[:0], 0, np.array([0, 0])).tolist() == []


@pytest.mark.parametrize("offset", [[0, 1], [1, 2], [0, 2, 1, 2], []])
def test_offsets_that_do_not_fit_are_refused(offset):
    table = np.zeros((2, 1), dtype=np.int32)
    with pytest.raises(MeshprepError, match="block offsets must rise from 0 to 2"):
        group_points(table, 1, np.array(offset, dtype=np.int64))


@given(tables(max_rows=60, max_points=30), st.integers(0, 20), st.integers(0, 99))
@settings(deadline=None, max_examples=effort.examples(150))
def test_against_sorted(case, n_cuts, seed):
    table, n_to = case
    cuts = np.random.default_rng(seed).integers(0, len(table), n_cuts, endpoint=True)
    offset = np.sort(np.concatenate([[0], cuts, [len(table)]]))
    assert group_points(table, n_to, offset).tolist() == slow(table, n_to, offset)


def test_a_point_in_every_block_costs_no_more_than_its_incidences():
    # 20,000 blocks that all use point 0: sorting whole lists would look at 2e8 numbers
    n = 20_000
    table = np.stack([np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32)], 1)
    order = group_points(table, n + 1, np.arange(n + 1))
    assert order.tolist() == [*range(1, n + 1), 0]
