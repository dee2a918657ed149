import effort
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.colouring import sort_by_colour


@settings(deadline=None, max_examples=effort.examples(100))
@given(st.integers(0, 60), st.lists(st.integers(0, 60), max_size=5), st.integers(0, 10**6))
def test_each_block_is_sorted_and_equals_keep_their_order(n, cuts, seed):
    colour = np.random.default_rng(seed).integers(0, 6, n, dtype=np.uint8)
    block_offset = np.array([0, *sorted(min(c, n) for c in cuts), n], dtype=np.int64)
    block = np.repeat(np.arange(block_offset.size - 1), np.diff(block_offset))
    new_to_old = sort_by_colour(colour, block_offset)
    assert new_to_old.dtype == np.int32
    assert new_to_old.tolist() == np.lexsort((np.arange(n), colour, block)).tolist()


def test_wide_colours():
    colour = np.array([65535, 0, 300, 300, 1], dtype=np.uint16)
    assert sort_by_colour(colour, np.array([0, 4, 5])).tolist() == [1, 2, 3, 0, 4]
