"""Connected components of blocks: a fragmented block loads more points than it need."""

from typing import Any

import numpy as np

from ...kernels import Int32s, Int64s, helper, kernel
from ...kernels.arrays import numbers
from ...kernels.parallel import each, rows_in_pieces
from ..blocks_of import sort_by


def count_components(table: Int32s, n_points: int, block: Int32s, n_blocks: int) -> Int64s:
    """Number of components of every block, 0 for an empty one, for elements in any order."""
    offset, member = sort_by(block, n_blocks)
    shares = [(table, n_points, member, piece) for piece in rows_in_pieces(offset)]
    return np.concatenate(each(_count_components, shares))


@kernel
def _count_components(
    table: Int32s, n_points: int, new_to_old: Int32s, block_offset: Int64s
) -> Int64s:
    n = new_to_old.size
    parent = numbers(n)
    first = np.full(n_points, -1, np.int32)
    components = np.empty(block_offset.size - 1, np.int64)
    for b in range(block_offset.size - 1):
        low, high = block_offset[b], block_offset[b + 1]
        components[b] = high - low
        for k in range(np.uint64(low), np.uint64(high)):
            i, one = np.uint32(new_to_old[k]), int(k)
            for j in range(table.shape[1]):
                if table[i, j] < 0:
                    continue
                t = np.uint32(table[i, j])
                # What an earlier block left at the point is out of date.
                if first[t] < low:
                    first[t] = k
                    continue
                one, other = _root(parent, one), _root(parent, first[t])
                if one != other:
                    parent[one] = other
                    components[b] -= 1
    return components


@helper
def _root(parent: Int32s, k: int) -> int:
    i: Any = np.uint32(k)
    while parent[i] != i:
        parent[i] = parent[np.uint32(parent[i])]
        i = np.uint32(parent[i])
    return int(i)
