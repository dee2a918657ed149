"""Counts of a group: how many clusters of each block touch each point.

A point keeps a short list of (block, count), as long as its clusters, so that a gain costs the
blocks around a cluster, not the clusters.
"""

from typing import Any, NamedTuple

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, UInt32s, helper, inlined

# A block and a count share an int32. Points with more clusters than fit are in nearly every block
# anyway: moves do not look at them.
COUNT_BITS = 12
MOST = (1 << COUNT_BITS) - 1
# Words of a point's list: what the point weighs, how many entries are in use, the first entry.
WEIGHT, USED, FIRST = 0, 1, 2
# Every list has room for so many entries, which are read without asking how many are in use: those
# that are not name no block. Few points have more.
ROOM = 3
# Changes of a count. Typed, so that the helper is compiled once for both.
ENTER: Any = np.int64(1)
LEAVE: Any = np.int64(-1)


class Counts(NamedTuple):
    """Clusters of a group, their blocks and the counts that follow from them.

    Clusters and blocks have numbers of the group, a point that of the word in ``lists`` where its
    list of (block, count) begins; ``begin`` has these of all points. Points with one cluster are
    left out: no move changes what they cost. No ``facets`` are given where all have 1. ``size`` is
    the number of elements of each block, ``cap`` the most that it may have, and ``least`` what it
    should have. An element gains the ``pressure`` of the block that it leaves, less the other's.

    What leads to other arrays is unsigned: of a signed index numba asks whether it is negative.
    """

    point_offset: UInt32s
    points: UInt32s
    offset: UInt32s
    neighbours: UInt32s
    facets: Int32s
    weight: Int32s
    block: UInt32s
    size: Int64s
    cap: Int64s
    least: Int64s
    begin: Int32s
    lists: Int32s
    pressure: Float64s


@inlined
def no_block(n_blocks: int) -> int:
    """The entry of a list that is not in use."""
    return n_blocks << COUNT_BITS


@helper
def count_blocks(state: Counts) -> None:
    """Fill the sizes and the lists of all points, which are empty. O(pairs * blocks at a point)."""
    for i in range(state.block.size):
        state.size[state.block[i]] += state.weight[i]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            _change(state, state.points[s], int(np.int64(state.block[i])), ENTER)


@inlined
def _change(state: Counts, point: int, block: int, by: int) -> None:
    """Add ``by`` (1 or -1) to the count of a block at a point."""
    lists, s = state.lists, point + FIRST
    end = s + lists[point + USED]
    while s < end and lists[s] >> COUNT_BITS != block:
        s += 1
    if s == end:
        lists[s] = block << COUNT_BITS
        lists[point + USED] += 1
    lists[s] += by
    if lists[s] & MOST == 0:
        lists[point + USED] -= 1
        lists[s] = lists[end - 1]
        lists[end - 1] = no_block(state.size.size)


@inlined
def move(state: Counts, cluster: int, target: int) -> None:
    """Move a cluster to another block. O(its points * blocks at each)."""
    source = state.block[cluster]
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        # Leaving first keeps the list within the point's slots.
        _change(state, state.points[s], int(np.int64(source)), LEAVE)
        _change(state, state.points[s], int(np.int64(target)), ENTER)
    state.block[cluster] = target
    state.size[source] -= state.weight[cluster]
    state.size[target] += state.weight[cluster]


@helper
def loads_of(state: Counts) -> int:
    """The weighted loads: the weight of all (point, block) pairs of the lists."""
    total = 0
    for p in state.begin:
        total += np.int64(state.lists[p + WEIGHT]) * state.lists[p + USED]
    return total
