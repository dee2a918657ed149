"""Annealing by groups: each group of neighbouring blocks is a small independent problem.

The objective is a sum over blocks, so groups do not interact: they fit a cache, run on any number
of threads and give one result. What lies between groups is reached by grouping another way in the
next phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float64s, Int32s, Int64s, helper, kernel
from ..counts import FIRST, MOST, ROOM, USED, WEIGHT, Counts, count_blocks, loads_of, no_block
from ..grouping import Group, Grouping
from ..levels import Level
from .centroids import Centroids, find_centroids
from .sweep import (
    Sweep,
    invalidate_scores,
    new_batch,
    new_candidates,
    sweep_over,
)

# The share of the sweeps after which excess and its price have their last values.
HOLDS = 0.9


class AnnealingSchedule(NamedTuple):
    """Sweeps ``begin`` to ``end`` of ``total``; pairs are the values of the first and last sweep.

    The last values hold from the share ``settled`` of all sweeps on, those of ``excess`` and
    ``over`` from the share ``HOLDS`` on; sweeps from ``total`` on only gain. ``cap``
    (n_blocks,) is the most that each block may have, ``excess`` the share by which it may be over
    that, and ``least`` (n_blocks,) what it should have. Pressure rises in a sweep by ``rate`` for
    each cap by which a block is fuller than the mean; at a pressure of ``halved`` the pull is
    half. Prices as of :class:`.sweep.Sweep`; ``quantile`` as of a :class:`.sweep.Batch`.
    """

    begin: int
    end: int
    total: int
    cap: Int64s
    least: Int64s
    settled: float
    temperature: tuple[float, float]
    excess: tuple[float, float]
    pull: tuple[float, float]
    facet: float
    over: tuple[float, float]
    even: float
    rate: float
    halved: float
    per_unit: float
    seed: int
    quantile: Float64s


# the same for kernels
_group = helper(Grouping.group)


@kernel
def anneal_groups(
    level: Level,
    point_weight: Int32s,
    metric: Float64s,
    block: Int32s,
    grouping: Grouping,
    groups: Int64s,
    schedule: AnnealingSchedule,
    pressure: Float64s,
) -> int:
    """Anneal some ``groups`` of a grouping in turn; changes ``block`` and ``pressure`` in place.

    Returns by how much the weighted loads fell, points with thousands of clusters left out.
    O(points of the clusters) for each sweep; 4 bytes a point.
    """
    number, gained = np.full(point_weight.size, -1, np.int32), 0
    for g in groups:
        group = _group(grouping, g)
        state = _extract(level, point_weight, group, block, number, schedule, pressure)
        count_blocks(state)
        gained += loads_of(state)
        centroids = _centroids(level, group, metric, state, schedule.pull[0])
        random = np.uint64(schedule.seed + g) * np.uint64(2654435761) + np.uint64(88172645463325252)
        candidates = new_candidates(state.size.size)
        batch = new_batch(state, schedule.quantile)
        drift = _press(state, 0.0)
        for k in range(schedule.begin, schedule.end):
            if k == schedule.total:
                invalidate_scores(batch.best)
            sweep = _sweep_at(schedule, k, drift)
            random, moved = sweep_over(state, centroids, sweep, k, batch, candidates, random)
            if moved == 0 and k >= schedule.total:
                break
            drift = _press(state, schedule.rate)
        gained -= loads_of(state)
        for k in range(group.blocks.size):
            pressure[group.blocks[k]] = state.pressure[k]
        for k in range(group.clusters.size):
            block[group.clusters[k]] = group.blocks[state.block[k]]
    return gained


@helper
def _press(state: Counts, rate: float) -> float:
    """Raise the pressure of blocks fuller than the mean, lower it in others; its mean square.

    Where blocks gain elements sweep after sweep, it grows until they no longer do; what comes and
    goes by chance adds up to little. Returns its mean square.
    """
    mean, square = 0.0, 0.0
    for b in range(state.size.size):
        mean += state.size[b] / state.cap[b]
    mean /= state.size.size
    for b in range(state.size.size):
        state.pressure[b] += rate * (state.size[b] / state.cap[b] - mean)
        square += state.pressure[b] ** 2
    return square / state.size.size


def unit_of(weight: Int32s) -> float:
    """The mean weight of points that have any; 1 without such points."""
    used = weight[weight > 0]
    return float(used.mean()) if used.size else 1.0


@helper
def _centroids(
    level: Level, group: Group, metric: Float64s, state: Counts, pull: float
) -> Centroids:
    """The centroids of a group's blocks; they are not computed without a pull."""
    n_blocks = group.blocks.size
    own, centroid = np.empty((n_blocks, 6), np.float64), np.empty((n_blocks, 3), np.float64)
    for k in range(n_blocks):
        for a in range(6):
            own[k, a] = metric[group.blocks[k], a]
    centroids = Centroids(level.place, group.clusters, own, centroid)
    if pull > 0.0:
        find_centroids(centroids, state.weight, state.block, state.size)
    return centroids


@helper
def _sweep_at(schedule: AnnealingSchedule, k: int, drift: float) -> Sweep:
    """Prices and temperature of sweep ``k``; ``drift`` is the mean square of the pressure."""
    even = schedule.even
    if k >= schedule.total:
        return Sweep(0.0, even, schedule.over[1], 0.0, schedule.facet, 0.0, schedule.per_unit)
    share = min(1.0, k / (schedule.settled * schedule.total))
    temperature = schedule.temperature[0] + share * (
        schedule.temperature[1] - schedule.temperature[0]
    )
    held = min(1.0, k / (HOLDS * schedule.total))
    excess = schedule.excess[0] + held * (schedule.excess[1] - schedule.excess[0])
    over = schedule.over[0] + held * (schedule.over[1] - schedule.over[0])
    pull = schedule.pull[0] + share * (schedule.pull[1] - schedule.pull[0])
    # where pressure must hold elements back, centroids are no guide
    pull /= 1.0 + (drift / schedule.halved**2) ** 2
    return Sweep(excess, even, over, temperature, schedule.facet, pull, schedule.per_unit)


@helper
def _extract(
    level: Level,
    point_weight: Int32s,
    group: Group,
    block: Int32s,
    number: Int32s,
    schedule: AnnealingSchedule,
    pressure: Float64s,
) -> Counts:
    """Counts of a group, with local numbers of points, neighbours and blocks.

    Points with one cluster, or with more than a slot can count, are left out, and so are
    neighbours in other groups. ``number`` is -1 for all before and afterwards; in between it has
    where the list of each point begins.
    """
    clusters = group.clusters
    pairs, links = 0, 0
    for c in clusters:
        pairs += level.point_offset[c + 1] - level.point_offset[c]
        links += level.offset[c + 1] - level.offset[c]
    met, degree = np.empty(pairs, np.int32), np.zeros(pairs, np.int32)
    count = 0
    for c in clusters:
        for s in range(np.uint64(level.point_offset[c]), np.uint64(level.point_offset[c + 1])):
            p = np.uint32(level.points[s])
            fresh = number[p] < 0
            at = np.uint32(count if fresh else number[p])
            number[p], met[count] = at, p
            count += fresh
            degree[at] += 1
    kept, words, starts = 0, 0, np.empty(count, np.int32)
    for k in range(count):
        keeps = 2 <= degree[k] <= MOST
        number[met[k]] = words if keeps else -1
        if keeps:
            met[kept], starts[kept] = met[k], words
            words += FIRST + max(ROOM, degree[k])
            kept += 1
    begin = starts[:kept].copy()
    state = Counts(
        np.zeros(clusters.size + 1, np.uint32),
        np.empty(pairs, np.uint32),
        np.zeros(clusters.size + 1, np.uint32),
        np.empty(links, np.uint32),
        np.empty(links if level.facets.size > 0 else 0, np.int32),
        np.empty(clusters.size, np.int32),
        np.empty(clusters.size, np.uint32),
        np.zeros(group.blocks.size, np.int64),
        _of_blocks(schedule.cap, group.blocks),
        _of_blocks(schedule.least, group.blocks),
        begin,
        np.full(words, no_block(group.blocks.size), np.int32),
        _of_blocks(pressure, group.blocks),
    )
    for k in range(kept):
        state.lists[begin[k] + WEIGHT], state.lists[begin[k] + USED] = point_weight[met[k]], 0
    # points, neighbours, weights and blocks, in local numbers
    pairs, links = 0, 0
    for k in range(clusters.size):
        c = clusters[k]
        state.weight[k] = level.weight[c]
        state.block[k] = group.rank_of_block[block[c]]
        for s in range(np.uint64(level.point_offset[c]), np.uint64(level.point_offset[c + 1])):
            first = number[np.uint32(level.points[s])]
            if first >= 0:
                state.points[pairs] = first
                pairs += 1
        for s in range(np.uint64(level.offset[c]), np.uint64(level.offset[c + 1])):
            j = np.uint32(level.neighbours[s])
            rank = np.uint32(group.rank_of_cluster[j])
            if rank < clusters.size and np.uint32(clusters[rank]) == j:
                state.neighbours[links] = rank
                if level.facets.size > 0:
                    state.facets[links] = level.facets[s]
                links += 1
        state.point_offset[k + 1], state.offset[k + 1] = pairs, links
    for k in range(kept):
        number[met[k]] = -1
    return state


@helper
def _of_blocks(values: Any, blocks: Int32s) -> Any:
    """The values of a group's blocks."""
    own = np.empty(blocks.size, values.dtype)
    for k in range(blocks.size):
        own[k] = values[blocks[k]]
    return own
