"""Slots that are the same facet: bucket by lowest node, compare or hash in each bucket."""

from typing import Any

import numpy as np

from ..kernels import Int32s, Int64s, UInt8s, helper, inlined, kernel
from ..kernels.arrays import ZERO, sort, sort_by
from ..kernels.parallel import each, in_pieces, pieces
from ..mesh.incidence import SPREAD
from .slots import Slots, cells_before, corner, part_of, read_corners

# The most slots of a bucket that are compared one with another: faster than a table.
FEW = 8


def first_slots(slots: Slots, n_nodes: int) -> Int32s:
    """For every slot, the lowest slot with the same corner nodes in any order.

    A counting sort puts the slots with one lowest node side by side, where a number for
    each tells which may be the same; a small hash table that stays in cache finds them
    where there are many, so that a node that meets a million cells costs no more each. All
    nodes are in 0..n_nodes-1. Expected O(slots + nodes), in parallel; 12 bytes a slot, the
    result included, and 16 a node.
    """
    # Sort the slots by their lowest node; keys stand in ``first`` until it is known.
    first = np.empty(slots.size, np.int32)
    lowest = np.empty(slots.size, np.int32)
    in_pieces(_find_lowest, slots.size, slots, lowest, first)
    offset, order = sort_by(lowest, n_nodes)
    # Frees 4 bytes a slot.
    del lowest

    # Match node by node, in shares of the nodes with about as many slots each.
    shares = np.searchsorted(offset, pieces(order.size)).tolist()
    tasks = [(slots, offset, order, begin, end, first) for begin, end in shares]
    each(_match, tasks)
    return first


@kernel
def number_in_place(first: Int32s) -> UInt8s:
    """Turn first slots into numbers of facets, in order of first appearance.

    ``first[i] <= i`` must hold, and a first slot must name itself. Returns the number of
    slots of each facet, 3 standing for three and more. O(n).
    """
    count = np.zeros(first.size, np.uint8)
    n_numbered = 0
    for i in range(first.size):
        if first[i] == i:
            first[i] = n_numbered
            n_numbered += 1
        else:
            first[i] = first[first[i]]
        count[first[i]] = min(count[first[i]] + 1, 3)
    return count[:n_numbered].copy()


@kernel
def _find_lowest(
    slots: Slots,
    lowest: Int32s,
    key: Int32s,
    begin: int,
    end: int,
) -> None:
    """The lowest node and key of slots of cells that start at ``begin`` to ``end - 1``."""
    for part in range(slots.width.size):
        # Tasks are ranges of cells over all types: take the range of this type.
        first = cells_before(slots, part, begin)
        stop = cells_before(slots, part, end)
        for cell in range(first, stop):
            slot = slots.slot_start[part] + cell * slots.n_local[part]
            for facet in range(slots.n_local[part]):
                lowest[slot + facet], key[slot + facet] = _lowest(
                    slots=slots,
                    part=part,
                    cell=cell,
                    facet=facet,
                )


@inlined
def _lowest(
    slots: Slots,
    part: int,
    cell: int,
    facet: int,
) -> tuple[np.int32, np.int64]:
    """The lowest corner node, and a key of all of them that does not depend on their order.

    The key is the sum of two nodes, or of more nodes that are mixed first.
    """
    low = corner(slots=slots, part=part, cell=cell, facet=facet, j=ZERO)
    key = np.int64(low)
    for j in range(1, slots.local.shape[2]):
        node = corner(slots=slots, part=part, cell=cell, facet=facet, j=j)
        low = min(low, node)
        key += np.int64(node)
    # Sums of three and more neighbouring numbers are often equal: mix their bits.
    if slots.local.shape[2] > 2:
        key = np.int64(0)
        for j in range(slots.local.shape[2]):
            node = corner(slots=slots, part=part, cell=cell, facet=facet, j=j)
            mixed = np.uint64(node) * SPREAD
            upper_32_bits = np.int64(mixed >> np.uint64(32))
            upper_24_bits = np.int64(mixed >> np.uint64(40))
            key += upper_32_bits * upper_24_bits
    return low, key


@kernel
def _match(
    slots: Slots,
    offset: Int64s,
    order: Int32s,
    begin: int,
    end: int,
    first: Int32s,
) -> None:
    """Match slots with lowest nodes ``begin`` to ``end - 1``; ``first`` has their keys."""
    # Room for the longest bucket: the slots with one lowest node.
    longest: Any = np.int64(FEW)
    for node in range(begin, end):
        longest = max(longest, offset[node + 1] - offset[node])
    key = np.empty(longest, np.int32)
    row_in_slot = np.empty(_table_size(longest), np.int32)
    corners = np.empty((2, slots.local.shape[2]), np.int32)
    # The lowest node and the sum of two nodes say which two they are.
    exact = slots.local.shape[2] == 2
    for node in range(begin, end):
        start = offset[node]
        count = offset[node + 1] - offset[node]
        # Take the keys out of ``first``, which gets the result.
        for i in range(count):
            key[i] = first[order[start + i]]
        # Many slots: by a hash table.
        if count > FEW:
            _match_bucket(
                slots=slots,
                bucket=order[start : start + count],
                key=key,
                place=row_in_slot,
                corners=corners,
                first=first,
            )
            continue
        # Few slots: compare each with those before it.
        for i in range(count):
            j = 0
            while j < i and not (
                key[i] == key[j]
                and (
                    exact
                    or _same_corners(
                        slots=slots,
                        one=order[start + i],
                        other=order[start + j],
                        corners=corners,
                    )
                )
            ):
                j += 1
            first[order[start + i]] = order[start + j]


@helper
def _match_bucket(
    slots: Slots,
    bucket: Int32s,
    key: Int32s,
    place: Int32s,
    corners: Int32s,
    first: Int32s,
) -> None:
    """Match the slots of one bucket by a hash table: linear probing, at most half full.

    ``key`` has the key of each slot of ``bucket``; ``place`` and ``corners`` are scratch.
    """
    mask = _table_size(bucket.size) - 1
    exact = corners.shape[1] == 2
    # The first slot of the bucket with each entry's key and corners, -1 for a free entry.
    place[: mask + 1] = -1
    for i in range(bucket.size):
        # Hash by multiplication; step on past entries of other corners.
        spread = np.uint64(np.uint32(key[i])) * SPREAD
        entry = np.int64(spread >> np.uint64(32)) & mask
        while place[entry] >= 0 and not (
            key[i] == key[place[entry]]
            and (
                exact
                or _same_corners(
                    slots=slots,
                    one=bucket[i],
                    other=bucket[place[entry]],
                    corners=corners,
                )
            )
        ):
            entry = (entry + 1) & mask
        # A free entry belongs to the first slot with these corners; the others point to it.
        if place[entry] < 0:
            place[entry] = i
        first[bucket[i]] = bucket[place[entry]]


@helper
def _table_size(n: int) -> int:
    """The power of two that leaves a hash table of ``n`` entries at most half full."""
    size = 2
    while size < 2 * n:
        size *= 2
    return size


@helper
def _same_corners(slots: Slots, one: int, other: int, corners: Int32s) -> bool:
    """Whether two slots have the same corner nodes in any order; ``corners`` is scratch."""
    read_corners(slots=slots, part=part_of(slots, one), slot=one, out=corners[0])
    read_corners(slots=slots, part=part_of(slots, other), slot=other, out=corners[1])
    sort(corners[0], ZERO, corners.shape[1])
    sort(corners[1], ZERO, corners.shape[1])
    same = True
    for k in range(corners.shape[1]):
        same = same and corners[0, k] == corners[1, k]
    return same
