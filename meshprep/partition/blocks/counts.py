"""Blocks of one group of clusters, and how many clusters of each block touch each point.

A point keeps a short list of (block, count), as long as its clusters, so that a gain costs the
blocks around a cluster, not the clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, helper, inlined

# A block and a count share an int32. Points with more clusters than fit are in nearly every block
# anyway: moves do not look at them.
COUNT_BITS = 12
MOST = (1 << COUNT_BITS) - 1
# Columns of a point's record: where its list begins, how long it is, what the point weighs.
BEGIN, USED, WEIGHT = 0, 1, 2


class Counts(NamedTuple):
    """Clusters of a group, their blocks and the counts that follow from them.

    Clusters, points and blocks have numbers of the group. Points with one cluster are left out: no
    move changes what they cost. ``record`` (points, 3) and ``slots`` are the lists of
    (block, count) at the points; ``size`` is the number of elements of each block, ``cap`` the
    most that it may have, and ``least`` what it should have.
    """

    point_offset: Int32s
    points: Int32s
    offset: Int32s
    neighbours: Int32s
    facets: Int32s
    weight: Int32s
    block: Int32s
    size: Int64s
    cap: Int64s
    least: Int64s
    record: Int32s
    slots: Int32s


@helper
def count_blocks(state: Counts) -> None:
    """Fill the sizes and the lists of all points, which are empty. O(pairs * blocks at a point)."""
    for i in range(state.block.size):
        state.size[state.block[i]] += state.weight[i]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            _change(state, state.points[s], state.block[i], 1)


@inlined
def _change(state: Counts, point: int, block: int, by: int) -> None:
    """Count one cluster of a block more or less at a point."""
    begin = state.record[point, BEGIN]
    end = begin + state.record[point, USED]
    s = begin
    while s < end and state.slots[s] >> COUNT_BITS != block:
        s += 1
    if s == end:
        state.slots[s] = block << COUNT_BITS
        state.record[point, USED] += 1
    state.slots[s] += by
    if state.slots[s] & MOST == 0:
        state.record[point, USED] -= 1
        state.slots[s] = state.slots[end - 1]


@inlined
def move(state: Counts, cluster: int, target: int) -> None:
    """Give a cluster to another block. O(its points * blocks at each)."""
    source = state.block[cluster]
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        # Leaving first keeps the list within the point's slots.
        _change(state, state.points[s], source, -1)
        _change(state, state.points[s], target, 1)
    state.block[cluster] = target
    state.size[source] -= state.weight[cluster]
    state.size[target] += state.weight[cluster]


@helper
def loads_of(state: Counts) -> int:
    """The weight of every (point, block) pair, as the lists have it."""
    total = 0
    for p in range(state.record.shape[0]):
        total += np.int64(state.record[p, WEIGHT]) * state.record[p, USED]
    return total
