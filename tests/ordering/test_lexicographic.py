import effort
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.kernels.arrays import stable_argsort
from meshprep.ordering import from_set_order

from .graphs import tables


def slow(table):
    return sorted(range(len(table)), key=lambda i: sorted(map(int, table[i])))


def test_rows_are_compared_by_their_smallest_point_first():
    table = np.array([[3, 2], [0, 9], [2, 1], [5, 0]], dtype=np.int32)
    assert from_set_order(table).tolist() == [3, 1, 2, 0]


def test_equal_rows_keep_their_order():
    table = np.array([[1, 0], [4, 4], [0, 1], [1, 0]], dtype=np.int32)
    assert from_set_order(table).tolist() == [0, 2, 3, 1]


def test_many_rows_of_one_point():
    random = np.random.default_rng(0)
    star = np.stack([np.full(3000, 7), random.integers(0, 3000, 3000)], axis=1).astype(
        np.int32
    )
    assert from_set_order(star).tolist() == slow(star)


def test_no_rows():
    order = from_set_order(np.empty((0, 4), dtype=np.int32))
    assert order.shape == (0,)
    assert order.dtype == np.int32


@given(tables(max_arity=40))
@settings(deadline=None, max_examples=effort.examples(80))
def test_against_sorted(case):
    assert from_set_order(case[0]).tolist() == slow(case[0])


@given(st.integers(0, 99), st.integers(1, 5), st.sampled_from([1, 2**11, 2**20, 2**31 - 1]))
@settings(deadline=None, max_examples=effort.examples(40))
def test_large_numbers_of_points(seed, arity, highest):
    random = np.random.default_rng(seed)
    table = random.integers(max(highest - 3, 0), highest, (50, arity), endpoint=True)
    table = table.astype(np.int32)
    assert from_set_order(table).tolist() == slow(table)


@given(st.integers(0, 99), st.integers(1, 3))
@settings(deadline=None, max_examples=effort.examples(30))
def test_radix_sort_against_sorted(seed, n_words):
    words = np.random.default_rng(seed).integers(0, 2**64, (60, n_words), dtype=np.uint64)
    words[::3] = words[0]
    words[::2, :-1] = words[0, :-1]
    before = words.copy()
    rows = [tuple(map(int, row)) for row in words]
    assert stable_argsort(words).tolist() == sorted(range(60), key=rows.__getitem__)
    assert (words == before).all()
