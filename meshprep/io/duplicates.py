"""Cells that name a node twice, and cells that have the same nodes: in linear time.

Nearly every mesh has none, so that the first passes only look for cells that might be equal: a
number that does not depend on the order of the nodes sets a bit, and who finds it set is looked
at closely. That needs a hash table for one cell in 30, where a table for all of them would be
walked through at the speed of the memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper, kernel
from ..kernels.parallel import each, pieces

# Bits for each cell, so that about one in 64 finds its own set by another.
_BITS = 32
# The second field of bits is smaller by 2**_COARSER.
_COARSER = 4


def hash_cells(table: NDArray[np.int32]) -> tuple[NDArray[np.uint32], tuple[int, int]]:
    """A number for every row, and where a row first repeats a node: row and column, or (-1, -1).

    The numbers do not depend on the order of the nodes; they are good where no row repeats one.
    O(size).
    """
    hashes = np.empty(len(table), dtype=np.uint32)
    found = each(_hash_rows, [(table, start, stop, hashes) for start, stop in pieces(len(table))])
    bad = [(int(row), int(column)) for row, column in found if row >= 0]
    return hashes, bad[0] if bad else (-1, -1)


def first_duplicate(table: NDArray[np.int32], hashes: NDArray[np.uint32]) -> tuple[int, int]:
    """The first cell whose nodes an earlier cell has, after that one; (-1, -1) if there is none.

    Expected O(size).

    Parameters
    ----------
    table : (n, k) int32
        No row may repeat a node.
    hashes : (n,) uint32
        From :func:`hash_cells`.
    """
    rows = _suspects(hashes)
    if rows.size < 2:
        return -1, -1
    few = table[rows]
    first, second = _find_duplicate(few, max(4, int(2 * len(few)).bit_length()))
    return (int(rows[first]), int(rows[second])) if first >= 0 else (-1, -1)


def _suspects(hashes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Rows in rising order: all that share their hash with another one, and some that do not."""
    bits = min(32, max(12, (_BITS * hashes.size - 1).bit_length()))
    coarse = np.zeros(1 << (bits - _COARSER - 6), np.uint64)
    # On one core: two would wait for the same memory.
    _mark(hashes, bits, np.zeros(1 << (bits - 6), np.uint64), coarse)
    return _collect(hashes, bits, coarse)


@kernel
def _hash_rows(
    table: NDArray[np.int32], start: int, stop: int, hashes: NDArray[np.uint32]
) -> tuple[np.int64, np.int64]:
    """Fill the hashes of these rows; returns the place of the first repeated node."""
    k = np.uint64(table.shape[1])
    # Unsigned: numba tests signed positions for being negative.
    for i in range(np.uint64(start), np.uint64(stop)):
        total = np.uint64(0)
        for a in range(k):
            node = table[i, a]
            for b in range(a):
                if table[i, b] == node:
                    return np.int64(i), np.int64(a)
            mixed = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
            total += mixed ^ (mixed >> np.uint64(32))
        hashes[i] = np.uint32((total * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32))
    return np.int64(-1), np.int64(-1)


@kernel
def _mark(
    hashes: NDArray[np.uint32], bits: int, fine: NDArray[np.uint64], coarse: NDArray[np.uint64]
) -> None:
    """Set the bit of every hash; where it is set already, that of the second field."""
    shift, one, six = np.uint64(32 - bits), np.uint64(1), np.uint64(6)
    for i in range(np.uint64(hashes.size)):
        at = np.uint64(hashes[i]) >> shift
        bit = one << (at & np.uint64(63))
        old = fine[at >> six]
        if old & bit:
            at >>= np.uint64(_COARSER)
            coarse[at >> six] |= one << (at & np.uint64(63))
        else:
            fine[np.uint64(hashes[i]) >> shift >> six] = old | bit


@kernel
def _collect(
    hashes: NDArray[np.uint32], bits: int, coarse: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """The rows whose bit of the second field is set."""
    shift, one = np.uint64(32 - bits + _COARSER), np.uint64(1)
    # Pages that are never written cost nothing.
    rows, n = np.empty(hashes.size, dtype=np.int64), np.uint64(0)
    for i in range(np.uint64(hashes.size)):
        at = np.uint64(hashes[i]) >> shift
        rows[n] = i
        n += (coarse[at >> np.uint64(6)] >> (at & np.uint64(63))) & one
    return rows[:n].copy()


@kernel
def _find_duplicate(table: NDArray[np.int32], bits: int) -> tuple[int, int]:
    # Open addressing on a sum of mixed node numbers, which does not depend on their order.
    n, k = table.shape
    mask = np.uint64((1 << bits) - 1)
    slots = np.full(1 << bits, -1, np.int32)
    key = np.empty(n, np.uint64)
    for i in range(n):
        total = np.uint64(0)
        for j in range(k):
            total += _mix(np.uint64(table[i, j]))
        key[i] = total
        at = _mix(total) & mask
        while slots[at] >= 0:
            other = slots[at]
            if key[other] == total and _same_nodes(table, other, i):
                return other, i
            at = (at + np.uint64(1)) & mask
        slots[at] = i
    return -1, -1


@helper
def _mix(x: np.uint64) -> np.uint64:
    # Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014: the finaliser.
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@helper
def _same_nodes(table: NDArray[np.int32], first: int, second: int) -> bool:
    # Nodes inside a cell are distinct by now, so that one inclusion is enough.
    k = table.shape[1]
    for a in range(k):
        found = False
        for b in range(k):
            if table[first, a] == table[second, b]:
                found = True
                break
        if not found:
            return False
    return True
