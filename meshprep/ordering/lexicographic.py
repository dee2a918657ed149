"""The order of a from-set that follows the order of the points it reaches."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import read_only

from ..kernels import Int32s, Int64s, helper, kernel
from ..kernels.arrays import ZERO, sort, sort_by, stable_argsort
from ..kernels.parallel import rows_in_pieces

# Rows with the same lowest point that are sorted among each other, at most.
FEW = 1024
# Points for each row up to which rows are counted by point.
SPARSE = 8
# Bits of a row's number in a key.
ROW_BITS = 32
# Up to this arity an insertion sort of a row is several times faster than the general one.
SHORT = 32


def from_set_order(table: Int32s) -> Int32s:
    """Sort elements by their points, lexicographically [S19 section 2.3.1].

    The points of each element in ``table`` are in the new numbering, not negative. The
    order, ``new_to_old``, ascends by the row of each element with its points in ascending
    order; elements with the same points keep their order.

    Rows of up to two points are sorted by the lower one, and those of one point among each
    other, in parallel. Other rows are packed into as few 64-bit words as hold them.
    O(n_from x arity), apart from sorting inside a row.
    """
    n, arity = table.shape
    if n == 0:
        return np.empty(0, dtype=np.int32)
    highest = int(table.max())
    if arity <= 2:
        return _order_of_pairs(read_only(table), highest + 1)
    # Pack as many points into a word as their bits allow, and sort the words.
    bits = max(highest.bit_length(), 1)
    per_word = 64 // bits
    n_words = -(-arity // per_word)
    words = _packed_rows(table=table, bits=bits, per_word=per_word, n_words=n_words)
    return stable_argsort(words)


def order_by_ends(table: Int32s) -> Int32s:
    """Sort elements by the lowest and then the highest of their points.

    For a loop that streams: the points in between are touched by the neighbours of an
    element in the order, too. The argument and the result are those of
    :func:`from_set_order`; with two points an element, the orders are the same. Elements
    with the same two ends keep their order. O(n_from x arity).
    """
    if table.shape[1] <= 2:
        return from_set_order(table)
    # column by column, as NumPy is slow along short rows
    ends = reduce(np.minimum, table.T), reduce(np.maximum, table.T)
    return from_set_order(np.stack(ends, axis=1))


def _order_of_pairs(table: Int32s, n_points: int) -> Int32s:
    """The order of rows of one or two points."""
    if n_points <= SPARSE * len(table):
        # Sort rows by their lowest point, then by the other point.
        lowest = np.minimum(table[:, 0], table[:, -1])
        offset, order = sort_by(lowest, n_points)
        most_at_a_point = int(np.diff(offset).max())
        if most_at_a_point <= FEW:
            rows_in_pieces(_sort_rows, offset, table, order)
            return order
    # Very many points, or very many rows at one: sort by comparing.
    rows = np.sort(table, axis=1)
    return np.lexsort(rows.T[::-1]).astype(np.int32)


@kernel
def _sort_rows(table: Int32s, order: Int32s, offset: Int64s) -> None:
    """Sort the rows of each lowest point by the other point, stably."""
    last = table.shape[1] - 1
    key = np.empty(FEW, np.int64)
    for p in range(offset.size - 1):
        begin = offset[p]
        count = offset[p + 1] - offset[p]
        # A key is the other point in the upper bits, and the row in the lower ones.
        for k in range(count):
            row = np.int64(order[begin + k])
            other = np.int64(max(table[row, 0], table[row, last]))
            key[k] = (other << ROW_BITS) + row
        sort(key, ZERO, count)
        for k in range(count):
            order[begin + k] = key[k] & ((1 << ROW_BITS) - 1)


@kernel
def _packed_rows(
    table: NDArray,
    bits: int,
    per_word: int,
    n_words: int,
) -> NDArray:
    """The sorted points of each row in ``n_words`` words, the lowest in the first word."""
    n, arity = table.shape
    words = np.zeros((n, n_words), np.uint64)
    row = np.empty(arity, np.int32)
    for i in range(n):
        for j in range(arity):
            row[j] = table[i, j]
        _sort_row(row)
        # Each point shifts those before it to higher bits.
        for j in range(arity):
            w = j // per_word
            words[i, w] = (words[i, w] << np.uint64(bits)) | np.uint64(row[j])
    return words


@helper
def _sort_row(row: NDArray) -> None:
    """Sort a row in place."""
    if row.size > SHORT:
        sort(row, ZERO, row.size)
        return
    for j in range(1, row.size):
        value = row[j]
        hole = j
        while hole > 0 and row[hole - 1] > value:
            row[hole] = row[hole - 1]
            hole -= 1
        row[hole] = value
