"""The order of a from-set that follows the order of the points it reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, kernel
from ..kernels.arrays import sort
from .radix import stable_argsort

# Up to this arity an insertion sort of a row is several times faster than the general one.
SHORT = 32


def from_set_order(table: Int32s) -> Int32s:
    """Sort elements by their points, lexicographically [S19 section 2.3.1].

    Parameters
    ----------
    table : (n_from, arity) int32
        The points of each element in the new numbering, not negative.

    Returns
    -------
    new_to_old : (n_from,) int32
        Ascending by the row of each element with its points in ascending order; elements with
        the same points keep their order.

    Rows are packed into as few 64-bit words as hold them. O(n_from x arity), apart from sorting
    inside a row.
    """
    n, arity = table.shape
    if n == 0:
        return np.empty(0, dtype=np.int32)
    bits = max(int(table.max()).bit_length(), 1)
    per_word = 64 // bits
    return stable_argsort(_packed_rows(table, bits, per_word, -(-arity // per_word)))


def order_by_ends(table: Int32s) -> Int32s:
    """Sort elements by the lowest and then the highest of their points.

    For a loop that streams: what an element reaches in between was touched, or will be, by its
    neighbours in the order. With two points an element the same as :func:`from_set_order`.

    Parameters
    ----------
    table : (n_from, arity) int32
        The points of each element in the new numbering, not negative.

    Returns
    -------
    new_to_old : (n_from,) int32
        Elements with the same two points keep their order. O(n_from x arity).
    """
    if table.shape[1] <= 2:
        return from_set_order(table)
    return from_set_order(np.stack([table.min(axis=1), table.max(axis=1)], axis=1))


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
