"""Which slots are the same facet: bucket by lowest node, then compare or hash in the bucket."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..kernels import Int32s, Int64s, UInt8s, helper, inlined, kernel
from ..kernels.parallel import each, pieces
from .slots import Slots, corner, part_cells, part_of, read_corners

# Slots of so few are compared one with another, which is faster than a table.
FEW = 8


def first_slots(slots: Slots, n_nodes: int) -> Int32s:
    """For every slot, the lowest slot with the same corner nodes in any order.

    A counting sort puts the slots with one lowest node side by side, where a small hash table
    that stays in cache matches them; a node that meets a million cells costs no more each.
    Expected O(slots + nodes), in parallel; 8 bytes a slot, the result included, and 8 a node.

    Parameters
    ----------
    n_nodes : int
        All nodes are in 0..n_nodes-1.

    Returns
    -------
    (n_slots,) int32
    """
    offset, order = _by_lowest_node(slots, n_nodes)
    first = np.empty(order.size, np.int32)
    shares = np.searchsorted(offset, [0, *(end for _, end in pieces(order.size))])
    each(_match, [(slots, offset, order, a, b, first) for a, b in pairwise(shares.tolist())])
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
def _by_lowest_node(slots: Slots, n_nodes: int) -> tuple[Int64s, Int32s]:
    """Slots sorted by lowest corner node, ascending under one node, and where each node starts."""
    offset = np.zeros(n_nodes + 2, np.int64)
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for facet in range(slots.n_local[part]):
                offset[_lowest(slots, part, cell, facet) + 2] += 1
    for node in range(n_nodes):
        offset[node + 2] += offset[node + 1]
    order = np.empty(slots.slot_start[-1], np.int32)
    slot = 0
    # offset[node + 1] runs from the start of the node's bucket to its end while it fills.
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for facet in range(slots.n_local[part]):
                low = _lowest(slots, part, cell, facet)
                order[offset[low + 1]] = slot
                offset[low + 1] += 1
                slot += 1
    return offset[:-1], order


@inlined
def _lowest(slots: Slots, part: int, cell: int, facet: int) -> np.int32:
    low = corner(slots, part, cell, facet, 0)
    for j in range(1, slots.local.shape[2]):
        low = min(low, corner(slots, part, cell, facet, j))
    return low


@kernel
def _match(
    slots: Slots, offset: Int64s, order: Int32s, begin: int, end: int, first: Int32s
) -> None:
    """Match the slots of the lowest nodes ``begin`` to ``end - 1``."""
    longest = FEW
    for node in range(begin, end):
        longest = max(longest, offset[node + 1] - offset[node])
    key = np.empty((longest, slots.local.shape[2]), np.int32)
    place = np.empty(_table_size(longest), np.int32)
    for node in range(begin, end):
        count = offset[node + 1] - offset[node]
        if count > FEW:
            _match_bucket(slots, order[offset[node] : offset[node + 1]], key, place, first)
        elif count > 0:
            _match_few(slots, order[offset[node] : offset[node + 1]], key, first)


@helper
def _match_few(slots: Slots, bucket: Int32s, key: Int32s, first: Int32s) -> None:
    for i in range(bucket.size):
        slot = bucket[i]
        read_corners(slots, part_of(slots, slot), slot, key[i])
        _sort(key[i])
        j = 0
        while not _equal(key[j], key[i]):
            j += 1
        first[slot] = bucket[j]


@helper
def _match_bucket(slots: Slots, bucket: Int32s, key: Int32s, place: Int32s, first: Int32s) -> None:
    """Open addressing with linear probing, at most half full; ``place`` is scratch."""
    mask = _table_size(bucket.size) - 1
    place[: mask + 1] = -1
    for i in range(bucket.size):
        slot = bucket[i]
        read_corners(slots, part_of(slots, slot), slot, key[i])
        _sort(key[i])
        at = _hash(key[i]) & mask
        while place[at] >= 0 and not _equal(key[place[at]], key[i]):
            at = (at + 1) & mask
        if place[at] < 0:
            place[at] = i
        first[slot] = bucket[place[at]]


@helper
def _table_size(n: int) -> int:
    size = 2
    while size < 2 * n:
        size *= 2
    return size


@helper
def _sort(key: Int32s) -> None:
    for i in range(1, key.size):
        value = key[i]
        j = i - 1
        while j >= 0 and key[j] > value:
            key[j + 1] = key[j]
            j -= 1
        key[j + 1] = value


@helper
def _hash(key: Int32s) -> np.int64:
    """Multiply and fold: neighbouring node numbers must not make runs in the table."""
    h = np.uint64(0)
    for i in range(1, key.size):
        h = (h ^ np.uint64(key[i])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(32)
    return np.int64(h & np.uint64(0x7FFFFFFF))


@helper
def _equal(a: Int32s, b: Int32s) -> bool:
    # The lowest node, in column 0, is the bucket's and the same in all.
    same = True
    for i in range(1, a.size):
        same = same and a[i] == b[i]
    return same
