"""Which slots are the same facet: bucket by lowest node, then compare or hash in the bucket."""

import numpy as np

from ..kernels import Int32s, Int64s, UInt8s, helper, inlined, kernel
from ..kernels.arrays import sort, sort_by
from ..kernels.parallel import each, in_pieces, pieces
from ..mesh.incidence import SPREAD
from .slots import Slots, cells_before, corner, part_of, read_corners

# Slots of so few are compared one with another, which is faster than a table.
FEW = 8


def first_slots(slots: Slots, n_nodes: int) -> Int32s:
    """For every slot, the lowest slot with the same corner nodes in any order.

    A counting sort puts the slots with one lowest node side by side, where a number for each tells
    which may be the same; a small hash table that stays in cache finds them where there are many,
    so that a node that meets a million cells costs no more each. All nodes are in 0..n_nodes-1.
    Expected O(slots + nodes), in parallel; 12 bytes a slot, the result included, and 16 a node.
    """
    first = np.empty(slots.size, np.int32)
    lowest = np.empty(slots.size, np.int32)
    in_pieces(_find_lowest, slots.size, slots, lowest, first)
    offset, order = sort_by(lowest, n_nodes)
    del lowest
    shares = np.searchsorted(offset, pieces(order.size))
    each(_match, [(slots, offset, order, *share, first) for share in shares.tolist()])
    return first


@kernel
def number_in_place(first: Int32s) -> UInt8s:
    """Turn first slots into numbers of facets, in order of first appearance.

    ``first[i] <= i`` must hold, and a first slot must name itself. Returns the number of slots of
    each facet, 3 standing for three and more. O(n).
    """
    count = np.zeros(first.size, np.uint8)
    found = 0
    for i in range(first.size):
        if first[i] == i:
            first[i] = found
            found += 1
        else:
            first[i] = first[first[i]]
        count[first[i]] = min(count[first[i]] + 1, 3)
    return count[:found].copy()


@kernel
def _find_lowest(slots: Slots, lowest: Int32s, key: Int32s, begin: int, end: int) -> None:
    """The lowest node and the key of the slots of cells that start at ``begin`` to ``end - 1``."""
    for part in range(slots.width.size):
        for cell in range(cells_before(slots, part, begin), cells_before(slots, part, end)):
            slot = slots.slot_start[part] + cell * slots.n_local[part]
            for facet in range(slots.n_local[part]):
                lowest[slot + facet], key[slot + facet] = _lowest(slots, part, cell, facet)


@inlined
def _lowest(slots: Slots, part: int, cell: int, facet: int) -> tuple[np.int32, np.int64]:
    """The lowest corner node, and a number of the others whatever their order: a sum, or mixed."""
    low = corner(slots, part, cell, facet, 0)
    key = np.int64(low)
    for j in range(1, slots.local.shape[2]):
        node = corner(slots, part, cell, facet, j)
        low = min(low, node)
        key += np.int64(node)
    if slots.local.shape[2] > 2:
        key = np.int64(0)
        for j in range(slots.local.shape[2]):
            mixed = np.uint64(corner(slots, part, cell, facet, j)) * SPREAD
            key += np.int64(mixed >> np.uint64(32)) * np.int64(mixed >> np.uint64(40))
    return low, key


@kernel
def _match(
    slots: Slots, offset: Int64s, order: Int32s, begin: int, end: int, first: Int32s
) -> None:
    """Match the slots of the lowest nodes ``begin`` to ``end - 1``, whose keys are in ``first``."""
    longest = FEW
    for node in range(begin, end):
        longest = max(longest, offset[node + 1] - offset[node])
    key, place = np.empty(longest, np.int32), np.empty(_table_size(longest), np.int32)
    corners, exact = np.empty((2, slots.local.shape[2]), np.int32), slots.local.shape[2] == 2
    for node in range(begin, end):
        start, count = offset[node], offset[node + 1] - offset[node]
        for i in range(count):
            key[i] = first[order[start + i]]
        if count > FEW:
            _match_bucket(slots, order[start : start + count], key, place, corners, first)
            continue
        for i in range(count):
            j = 0
            while j < i and not (
                key[i] == key[j]
                and (exact or _same_corners(slots, order[start + i], order[start + j], corners))
            ):
                j += 1
            first[order[start + i]] = order[start + j]


@helper
def _match_bucket(
    slots: Slots, bucket: Int32s, key: Int32s, place: Int32s, corners: Int32s, first: Int32s
) -> None:
    """Open addressing with linear probing, at most half full; ``place`` is scratch."""
    mask, exact = _table_size(bucket.size) - 1, corners.shape[1] == 2
    place[: mask + 1] = -1
    for i in range(bucket.size):
        at = np.int64((np.uint64(np.uint32(key[i])) * SPREAD) >> np.uint64(32)) & mask
        while place[at] >= 0 and not (
            key[i] == key[place[at]]
            and (exact or _same_corners(slots, bucket[i], bucket[place[at]], corners))
        ):
            at = (at + 1) & mask
        if place[at] < 0:
            place[at] = i
        first[bucket[i]] = bucket[place[at]]


@helper
def _table_size(n: int) -> int:
    size = 2
    while size < 2 * n:
        size *= 2
    return size


@helper
def _same_corners(slots: Slots, one: int, other: int, corners: Int32s) -> bool:
    read_corners(slots, part_of(slots, one), one, corners[0])
    read_corners(slots, part_of(slots, other), other, corners[1])
    sort(corners[0], 0, corners.shape[1])
    sort(corners[1], 0, corners.shape[1])
    same = True
    for k in range(corners.shape[1]):
        same = same and corners[0, k] == corners[1, k]
    return same
