"""Data grouping: points that the same blocks use stand together [S19 section 2.3.2]."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..kernels import Int32s, Int64s, helper, kernel
from ..kernels.arrays import largest


def group_points(table: Int32s, n_to: int, block_offset: Int64s) -> Int32s:
    """Sort points by how many blocks access them, then by which blocks, lexicographically.

    Points that one block alone uses come first, so that its data are contiguous; points on the
    border of the same blocks stand together behind [S19 section 2.3.2]. Points of the same blocks
    keep their order; unused points come last. The order is ``new_to_old``. Raises MeshprepError
    when the offsets do not rise from 0 to the number of rows. Partition refinement: points with
    equally many blocks begin as one class; block after block splits off, ahead of the rest of each
    class, the points it accesses. Among classes of one count that is the lexicographic order.
    O(n_from x arity + n_to).

    Rows of ``table`` are in the order of the blocks, several maps into one set side by side; block
    ``b`` owns rows ``block_offset[b]`` to ``block_offset[b + 1] - 1``.
    """
    offset = np.asarray(block_offset, dtype=np.int64)
    n = table.shape[0]
    if offset.size < 1 or offset[0] != 0 or offset[-1] != n or (np.diff(offset) < 0).any():
        raise MeshprepError(f"grouping: the block offsets must rise from 0 to {n}, one a block")
    return _sorted_by_blocks(table, n_to, offset)


@kernel
def _sorted_by_blocks(table: NDArray, n_to: int, block_offset: NDArray) -> NDArray:
    """Points by the place of their class in the ring of classes; counting sort, stable."""
    # the number of distinct blocks of each point
    kind, last = np.zeros(n_to, np.int32), np.full(n_to, -1, np.int32)
    for b in range(block_offset.size - 1):
        for i in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                p = table[i, j]
                if last[p] != b:
                    last[p] = b
                    kind[p] += 1
    n_counts = largest(kind) + 1 if n_to else 1
    # unused points, of count 0, make the last class
    for p in range(n_to):
        kind[p] = (n_counts if kind[p] == 0 else kind[p]) - 1
    # no more classes than points hold one, and those that begin empty
    capacity = n_counts + n_to + 1
    ring, size = _class_ring(n_counts, capacity), np.zeros(capacity, np.int64)
    for c in kind:
        size[c] += 1
    free, n_free = np.empty(capacity - n_counts, np.int64), capacity - n_counts
    for i in range(n_free):
        free[i] = capacity - 1 - i
    split_by, part = np.full(capacity, -1, np.int32), np.empty(capacity, np.int32)
    last[:] = -1
    for b in range(block_offset.size - 1):
        for i in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                p = table[i, j]
                if last[p] == b:
                    continue
                last[p] = b
                old = kind[p]
                if split_by[old] != b:
                    n_free -= 1
                    new = free[n_free]
                    split_by[old], part[old], split_by[new], size[new] = b, new, -1, 0
                    _insert_before(ring, new, old)
                kind[p] = part[old]
                size[part[old]] += 1
                size[old] -= 1
                if size[old] == 0:
                    _remove(ring, old)
                    free[n_free] = old
                    n_free += 1
    at, c = 0, ring[1, capacity]
    while c != capacity:
        at, size[c] = at + size[c], at
        c = ring[1, c]
    out = np.empty(n_to, np.int32)
    for p in range(n_to):
        out[size[kind[p]]] = p
        size[kind[p]] += 1
    return out


@helper
def _class_ring(n: int, capacity: int) -> NDArray:
    """Classes 0..n-1 in a ring, which begins and ends at ``capacity``: before, behind."""
    ring = np.empty((2, capacity + 1), np.int32)
    for c in range(n):
        ring[0, c], ring[1, c] = c - 1, c + 1
    ring[0, 0] = ring[1, n - 1] = capacity
    ring[0, capacity], ring[1, capacity] = n - 1, 0
    return ring


@helper
def _insert_before(ring: NDArray, new: int, old: int) -> None:
    before = ring[0, old]
    ring[0, new], ring[1, new] = before, old
    ring[1, before] = ring[0, old] = new


@helper
def _remove(ring: NDArray, c: int) -> None:
    before, behind = ring[0, c], ring[1, c]
    ring[1, before], ring[0, behind] = behind, before
