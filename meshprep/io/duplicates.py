"""Cells that name a node twice, and cells that have the same nodes."""

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, Int64s, UInt64s, kernel


@kernel
def hash_cells(table: Int32s, hashes: UInt64s) -> tuple[int, int]:
    """Fill in a number for every row; returns where a row first repeats a node.

    Row and column, or (-1, -1). The numbers do not depend on the order of the nodes; they are good
    where no row repeats one. O(size).
    """
    for i in range(len(table)):
        total = np.uint64(0)
        for a in range(table.shape[1]):
            node = table[i, a]
            for b in range(a):
                if table[i, b] == node:
                    return i, a
            mixed = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
            total += (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes[i] = total
    return -1, -1


def first_duplicate(table: Int32s, hashes: UInt64s) -> tuple[int, int]:
    """The first cell whose nodes an earlier cell has, after that one; (-1, -1) if there is none.

    No row of ``table`` may repeat a node; ``hashes`` are from :func:`hash_cells`. O(n log n) on
    numbers; only cells that share theirs with another one are looked at closely.
    """
    ordered = np.sort(hashes)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    seen: dict[tuple[int, ...], int] = {}
    for row in np.flatnonzero(np.isin(hashes, shared)).tolist() if shared.size else ():
        first = seen.setdefault(tuple(np.sort(table[row]).tolist()), row)
        if first != row:
            return first, row
    return -1, -1


def first_equal(rows: NDArray[np.integer]) -> Int64s:
    """For each row of a table the first one that equals it, which may be itself. O(n log n)."""
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64)
    key = rows.astype(np.uint64) @ factors
    order = np.argsort(key, kind="stable")
    same = np.zeros(len(rows), dtype=bool)
    same[1:] = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    if not np.array_equal(same[1:], key[order[1:]] == key[order[:-1]]):
        # Different rows have one key, by a chance of one in many millions.
        order = np.lexsort(rows.T)
        same[1:] = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    start = np.maximum.accumulate(np.where(same, 0, np.arange(len(rows))))
    first = np.empty(len(rows), dtype=np.int64)
    first[order] = order[start]
    return first
