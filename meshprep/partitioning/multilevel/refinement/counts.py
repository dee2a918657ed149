"""Counts of a group: how many clusters of each block touch each point.

A point keeps a short list of (block, count) with room for as many entries as it has
clusters, so that a gain costs the blocks around a cluster, not the clusters.
"""

from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float64s, Int32s, Int64s, UInt32s, helper, inlined

# A block and a count share an int32; these are the bits of the count.
COUNT_BITS = 12
# Points with more clusters than this are in nearly every block: moves leave them out.
MOST = (1 << COUNT_BITS) - 1
# Words of a point's list: the weight of the point,
WEIGHT = 0
# the number of entries in use,
USED = 1
# and the first entry.
FIRST = 2
# Every list has room for at least this many entries, which are read whether they are in use
# or not: unused ones name no block. Few points have more.
ROOM = 3
# Changes of a count, typed so that the helper is compiled once for both.
ENTER: Any = np.int64(1)
LEAVE: Any = np.int64(-1)


class Counts(NamedTuple):
    """Clusters of a group, their blocks and the counts that follow from them.

    Clusters and blocks are numbered in the group. The number of a point is the position in
    ``lists`` where its list of (block, count) begins; ``begin`` has the numbers of all
    points. Points with one cluster are left out: no move changes their cost. ``facets`` is
    empty where each is 1. ``size`` is the number of elements of each block, ``cap`` the
    most that it may have, and ``least`` the number below which it should not fall. A move
    gains the ``pressure`` of the block that the element leaves, less that of the other.

    Arrays of indices are unsigned: numba tests a signed index for being negative.
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
    """An entry that is not in use: it names the block after the last one."""
    return n_blocks << COUNT_BITS


@helper
def count_blocks(state: Counts) -> None:
    """Fill the empty lists of all points, and the sizes. O(pairs * blocks at a point)."""
    for i in range(state.block.size):
        state.size[state.block[i]] += state.weight[i]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            _change(
                state=state,
                point=state.points[s],
                block=int(np.int64(state.block[i])),
                by=ENTER,
            )


@inlined
def _change(state: Counts, point: int, block: int, by: int) -> None:
    """Add ``by`` (1 or -1) to the count of a block at a point."""
    lists = state.lists
    s = point + FIRST
    end = s + lists[point + USED]
    # Find the entry of the block in the list, or open one behind it.
    while s < end and lists[s] >> COUNT_BITS != block:
        s += 1
    if s == end:
        lists[s] = block << COUNT_BITS
        lists[point + USED] += 1
    lists[s] += by
    # A block without clusters at the point leaves: the last entry fills the gap.
    if lists[s] & MOST == 0:
        lists[point + USED] -= 1
        lists[s] = lists[end - 1]
        lists[end - 1] = no_block(state.size.size)


@inlined
def move_cluster(state: Counts, cluster: int, target: int) -> None:
    """Move a cluster to another block. O(its points * blocks at each)."""
    source = state.block[cluster]
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        # Leaving first keeps the list within the point's slots.
        _change(state=state, point=state.points[s], block=int(np.int64(source)), by=LEAVE)
        _change(state=state, point=state.points[s], block=int(np.int64(target)), by=ENTER)
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
