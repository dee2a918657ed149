"""Which blocks hang together: a block in several pieces loads more than it need."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def scattered_blocks(
    table: NDArray[np.int32],
    n_points: int,
    new_to_old: NDArray[np.int32],
    block_offset: NDArray[np.int64],
) -> int:
    """How many blocks consist of pieces that share no point.

    Parameters
    ----------
    table : (n, arity) int32
        In the order before the blocks; -1 for no point.
    n_points : int
    new_to_old : (n,) int32
    block_offset : (n_blocks + 1,) int64

    Returns
    -------
    int
        0 at best. Blocks across pieces of the mesh that do not touch are counted too.

    Notes
    -----
    O(n * arity), a union of elements by their points.
    """
    return int(_scattered(table, n_points, new_to_old, block_offset))


@njit(cache=True)
def _scattered(
    table: NDArray[np.int32],
    n_points: int,
    new_to_old: NDArray[np.int32],
    block_offset: NDArray[np.int64],
) -> int:
    n = new_to_old.size
    parent = np.arange(n).astype(np.int32)
    first = np.full(n_points, -1, np.int32)
    count = 0
    for b in range(block_offset.size - 1):
        low, high = block_offset[b], block_offset[b + 1]
        pieces = high - low
        for k in range(low, high):
            for j in range(table.shape[1]):
                t = table[new_to_old[k], j]
                if t < 0:
                    continue
                # What an earlier block left at the point is out of date.
                if first[t] < low:
                    first[t] = k
                    continue
                one, other = _root(parent, k), _root(parent, first[t])
                if one != other:
                    parent[one] = other
                    pieces -= 1
        count += pieces > 1
    return count


@njit(cache=True)
def _root(parent: NDArray[np.int32], k: int) -> int:
    while parent[k] != k:
        parent[k] = parent[parent[k]]
        k = parent[k]
    return k
