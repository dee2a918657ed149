"""Cells that name a node twice, and cells that have the same nodes: in linear time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper, kernel


def first_duplicate(table: NDArray[np.int32]) -> tuple[int, int]:
    """The first cell whose nodes an earlier cell has, after that one; (-1, -1) if there is none.

    Expected O(size).

    Parameters
    ----------
    table : (n, k) int32
        No row may repeat a node.
    """
    first, second = _find_duplicate(table, max(4, (2 * len(table)).bit_length()))
    return int(first), int(second)


@kernel
def first_repeated(table: NDArray[np.int32]) -> tuple[int, int]:
    """Row and column where a row first repeats a node; (-1, -1) if none does. O(size)."""
    n, k = table.shape
    for i in range(n):
        for a in range(k):
            for b in range(a):
                if table[i, b] == table[i, a]:
                    return i, a
    return -1, -1


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
