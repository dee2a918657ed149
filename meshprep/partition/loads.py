"""The objective: how many points the blocks load."""

import numpy as np

from ..kernels import Int32s, Int64s, kernel
from ..kernels.parallel import each, rows_in_pieces
from .blocks_of import sort_by


def loads(table: Int32s, n_points: int, block_offset: Int64s) -> int:
    """The sum over blocks of the number of distinct points a block touches.

    Rows of ``table`` are in the order of the blocks. The sum is at least the number of points in
    use, and at most ``n * arity``; the reuse factor is ``table.size / loads`` [S19]. O(n * arity +
    n_points).
    """
    return int(_loads(table, n_points, block_offset))


@kernel
def _loads(table: Int32s, n_points: int, block_offset: Int64s) -> int:
    seen = np.full(n_points, -1, np.int64)
    count = 0
    for b in range(block_offset.size - 1):
        for i in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                if seen[table[i, j]] != b:
                    seen[table[i, j]] = b
                    count += 1
    return count


def weighted_loads_of(table: Int32s, weight: Int32s, block: Int32s, n_blocks: int) -> int:
    """The weight of the distinct points of all blocks, as of :func:`staged_bytes`."""
    return int(staged_bytes(table, weight, block, n_blocks).sum())


def staged_bytes(table: Int32s, weight: Int32s, block: Int32s, n_blocks: int) -> Int64s:
    """The weight of the distinct points of each block, for elements in any order.

    ``table`` may have -1 for no point. Returns (n_blocks,). O(n * arity + n_points + n_blocks).
    """
    offset, member = sort_by(block, n_blocks)
    shares = [(table, weight, member, piece) for piece in rows_in_pieces(offset)]
    return np.concatenate(each(_staged_bytes, shares))


@kernel
def _staged_bytes(table: Int32s, weight: Int32s, member: Int32s, offset: Int64s) -> Int64s:
    seen = np.full(weight.size, -1, np.int32)
    total = np.zeros(offset.size - 1, np.int64)
    for b in range(offset.size - 1):
        found = np.int64(0)
        for k in range(np.uint64(offset[b]), np.uint64(offset[b + 1])):
            for j in range(table.shape[1]):
                t = table[np.uint32(member[k]), j]
                if t >= 0:
                    p = np.uint32(t)
                    found += weight[p] * (seen[p] != b)
                    seen[p] = b
        total[b] = found
    return total
