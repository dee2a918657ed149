"""Data grouping: points of the same blocks are numbered together [S19 section 2.3.2]."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..kernels import Int32s, Int64s, helper, inlined, kernel
from ..kernels.arrays import largest


def group_points(table: Int32s, n_to: int, block_offset: Int64s) -> Int32s:
    """Sort points by how many blocks access them, then by which blocks, lexicographically.

    Points of one block alone come first, so that its data are contiguous; points on the
    border of the same blocks stand together behind them [S19 section 2.3.2]. Points of the
    same blocks keep their order; unused points come last. The order is ``new_to_old``.
    Raises MeshprepError when the offsets do not rise from 0 to the number of rows.

    Rows of ``table`` are in the order of the blocks, several maps into one set side by
    side; block ``b`` owns rows ``block_offset[b]`` to ``block_offset[b + 1] - 1``.

    By partition refinement (Paige and Tarjan, 1987): points with equally many blocks begin
    as one class; block after block splits the points it accesses off each class, and puts
    them before the others. Among classes of one count that is the lexicographic order.
    O(n_from x arity + n_to).
    """
    offset = np.asarray(block_offset, dtype=np.int64)
    n = table.shape[0]
    has_both_ends = offset.size > 0 and offset[0] == 0 and offset[-1] == n
    if not has_both_ends or (np.diff(offset) < 0).any():
        raise MeshprepError(
            f"grouping: the block offsets must rise from 0 to {n}, one a block"
        )
    return _sorted_by_blocks(table, n_to, offset)


class Classes(NamedTuple):
    """Classes of points, in a ring that gives their order.

    ``ring`` (2, capacity + 1) has the class before and behind each; it begins and ends at
    ``capacity``. ``size`` is the number of points of each class. Class ``c`` was last split
    by the block ``split_by[c]``, into ``part[c]``. The first ``n_free`` (1,) numbers of
    ``free`` are those of unused classes.
    """

    ring: NDArray
    size: NDArray
    split_by: NDArray
    part: NDArray
    free: NDArray
    n_free: NDArray


@kernel
def _sorted_by_blocks(table: NDArray, n_to: int, block_offset: NDArray) -> NDArray:
    """Points by the position of their class in the ring of classes."""
    # Begin with a class for each number of blocks; unused points, of 0, make the last one.
    kind = _block_counts(table, n_to, block_offset)
    n_counts = largest(kind) + 1 if n_to else 1
    for p in range(n_to):
        kind[p] = (n_counts if kind[p] == 0 else kind[p]) - 1
    classes = _new_classes(kind, n_counts)
    # Split the classes by one block after another.
    last = np.full(n_to, -1, np.int32)
    for b in range(block_offset.size - 1):
        for i in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                p = table[i, j]
                if last[p] != b:
                    last[p] = b
                    kind[p] = _split_off(classes, kind[p], b)
    return _sorted_by_class(classes, kind)


@helper
def _block_counts(table: NDArray, n_to: int, block_offset: NDArray) -> NDArray:
    """The number of distinct blocks of each point."""
    count = np.zeros(n_to, np.int32)
    last = np.full(n_to, -1, np.int32)
    for b in range(block_offset.size - 1):
        for i in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                p = table[i, j]
                if last[p] != b:
                    last[p] = b
                    count[p] += 1
    return count


@helper
def _new_classes(kind: NDArray, n_counts: int) -> Classes:
    """The classes of points of one count each, in the order of the counts."""
    # Link the first classes in a ring. There are no more classes than points and first
    # classes, which may be empty.
    capacity = n_counts + kind.size + 1
    ring = np.empty((2, capacity + 1), np.int32)
    for c in range(n_counts):
        ring[0, c] = c - 1
        ring[1, c] = c + 1
    ring[0, 0] = capacity
    ring[1, n_counts - 1] = capacity
    ring[0, capacity] = n_counts - 1
    ring[1, capacity] = 0
    size = np.zeros(capacity, np.int64)
    for c in kind:
        size[c] += 1
    # Stack the numbers that no class has yet, the lowest on top.
    n_free = np.empty(1, np.int64)
    n_free[0] = capacity - n_counts
    free = np.empty(n_free[0], np.int64)
    for i in range(free.size):
        free[i] = capacity - 1 - i
    return Classes(
        ring=ring,
        size=size,
        split_by=np.full(capacity, -1, np.int32),
        part=np.empty(capacity, np.int32),
        free=free,
        n_free=n_free,
    )


@inlined
def _split_off(classes: Classes, old: int, block: int) -> int:
    """Move a point of class ``old`` to the part that a block splits off; its new class."""
    split_by = classes.split_by
    part = classes.part
    size = classes.size
    if split_by[old] != block:
        # The first point of the class: its new class stands before the old one.
        classes.n_free[0] -= 1
        new = classes.free[classes.n_free[0]]
        split_by[old] = block
        part[old] = new
        split_by[new] = -1
        size[new] = 0
        _insert_before(classes.ring, new, old)
    # Move the point; a class that runs empty leaves the ring, and its number is free.
    size[part[old]] += 1
    size[old] -= 1
    if size[old] == 0:
        _remove(classes.ring, old)
        classes.free[classes.n_free[0]] = old
        classes.n_free[0] += 1
    return part[old]


@helper
def _sorted_by_class(classes: Classes, kind: NDArray) -> NDArray:
    """The points by the position of their class in the ring, by a stable counting sort."""
    # Turn the sizes into first positions, along the ring.
    ring = classes.ring
    size = classes.size
    capacity = size.size
    first = 0
    c = ring[1, capacity]
    while c != capacity:
        count = size[c]
        size[c] = first
        first += count
        c = ring[1, c]
    out = np.empty(kind.size, np.int32)
    for p in range(kind.size):
        out[size[kind[p]]] = p
        size[kind[p]] += 1
    return out


@helper
def _insert_before(ring: NDArray, new: int, old: int) -> None:
    """Insert a class before another."""
    before = ring[0, old]
    ring[0, new] = before
    ring[1, new] = old
    ring[1, before] = new
    ring[0, old] = new


@helper
def _remove(ring: NDArray, c: int) -> None:
    """Take a class out of the ring."""
    before = ring[0, c]
    behind = ring[1, c]
    ring[1, before] = behind
    ring[0, behind] = before
