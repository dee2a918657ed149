"""The order of a from-set that follows the order of the points it reaches."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import read_only

from ..kernels import Int32s, Int64s, helper, kernel
from ..kernels.arrays import sort, sort_by, stable_argsort
from ..kernels.parallel import rows_in_pieces

# Up to so many rows of one lowest point are sorted among each other, and up to so many points a row
# have a place in a table.
FEW, SPARSE = 1024, 8
ROW_BITS = 32
# Up to this arity an insertion sort of a row is several times faster than the general one.
SHORT = 32


def from_set_order(table: Int32s) -> Int32s:
    """Sort elements by their points, lexicographically [S19 section 2.3.1].

    The points of each element in ``table`` are in the new numbering, not negative. The order,
    ``new_to_old``, ascends by the row of each element with its points in ascending order; elements
    with the same points keep their order.

    Rows of up to two points are sorted by the lower one, and those of one point among each other,
    in parallel. Other rows are packed into as few 64-bit words as hold them. O(n_from x arity),
    apart from sorting inside a row.
    """
    n, arity = table.shape
    if n == 0:
        return np.empty(0, dtype=np.int32)
    highest = int(table.max())
    if arity <= 2:
        return _order_of_pairs(read_only(table), highest + 1)
    bits = max(highest.bit_length(), 1)
    per_word = 64 // bits
    return stable_argsort(_packed_rows(table, bits, per_word, -(-arity // per_word)))


def order_by_ends(table: Int32s) -> Int32s:
    """Sort elements by the lowest and then the highest of their points.

    For a loop that streams: what an element reaches in between was touched, or will be, by its
    neighbours in the order. Takes and returns what :func:`from_set_order` does, and with two points
    an element the same; elements with the same two points keep their order. O(n_from x arity).
    """
    if table.shape[1] <= 2:
        return from_set_order(table)
    # columns at a time: NumPy is slow along short rows
    ends = reduce(np.minimum, table.T), reduce(np.maximum, table.T)
    return from_set_order(np.stack(ends, axis=1))


def _order_of_pairs(table: Int32s, n_points: int) -> Int32s:
    """The order of rows of one or two points."""
    if n_points <= SPARSE * len(table):
        # rows by their lowest point, ascending under one
        offset, order = sort_by(np.minimum(table[:, 0], table[:, -1]), n_points)
        if int(np.diff(offset).max()) <= FEW:
            rows_in_pieces(_sort_rows, offset, table, order)
            return order
    return np.lexsort(np.sort(table, axis=1).T[::-1]).astype(np.int32)


@kernel
def _sort_rows(table: Int32s, order: Int32s, offset: Int64s) -> None:
    """Sort the rows of each point by the other one; those with the same keep their order."""
    last, key = table.shape[1] - 1, np.empty(FEW, np.int64)
    for p in range(offset.size - 1):
        begin, count = offset[p], offset[p + 1] - offset[p]
        for k in range(count):
            row = np.int64(order[begin + k])
            key[k] = (np.int64(max(table[row, 0], table[row, last])) << ROW_BITS) + row
        sort(key, 0, count)
        for k in range(count):
            order[begin + k] = key[k] & ((1 << ROW_BITS) - 1)


@kernel
def _packed_rows(table: NDArray, bits: int, per_word: int, n_words: int) -> NDArray:
    n, arity = table.shape
    words = np.zeros((n, n_words), np.uint64)
    row = np.empty(arity, np.int32)
    for i in range(n):
        for j in range(arity):
            row[j] = table[i, j]
        _sort_row(row)
        for j in range(arity):
            word = words[i, j // per_word]
            words[i, j // per_word] = (word << np.uint64(bits)) | np.uint64(row[j])
    return words


@helper
def _sort_row(row: NDArray) -> None:
    if row.size > SHORT:
        sort(row, 0, row.size)
        return
    for j in range(1, row.size):
        value, at = row[j], j
        while at > 0 and row[at - 1] > value:
            row[at] = row[at - 1]
            at -= 1
        row[at] = value
