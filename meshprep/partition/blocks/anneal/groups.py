"""Annealing by groups: each group of neighbouring blocks is a small independent problem.

The objective is a sum over blocks, so groups do not interact: they fit a cache, run on any number
of threads and give one result. What lies between groups is reached by grouping another way in the
next phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float32s, Float64s, Int32s, Int64s, helper, kernel
from ....kernels.arrays import breadth_first, scan_offsets
from ..counts import FIRST, MOST, ROOM, USED, WEIGHT, Counts, count_blocks, loads_of, no_block
from ..grouping import Group, Grouping
from ..levels import Level
from .centroids import Centroids, find_centroids
from .moves import INSIDE, Sweep, exchange, invalidate_scores, new_memory
from .sweep import acceptance_thresholds, new_batch, new_candidates, sweep_over

# Most steps of conjugate gradients, which is how many blocks away a surplus is felt.
STEPS = 60
# Added to the facet count of every border, so that one-facet borders get no extreme pressure.
ADDED = 3.0
# Added to the diagonal, in facets, so that blocks without neighbours have a solution.
LEAK = 1e-3


class Borders(NamedTuple):
    """The blocks beside each block: ``beside[offset[b]:offset[b + 1]]``, and ``facets`` there."""

    offset: Int64s
    beside: Int32s
    facets: Float64s


@helper
def borders_of(state: Counts, best: Float32s) -> Borders:
    """The borders between the blocks of a group. O(facets of clusters that are not ``INSIDE``)."""
    n_blocks = state.size.size
    begin = np.zeros(n_blocks + 1, np.int64)
    for i in range(state.block.size):
        if best[i] == INSIDE:
            continue
        own = state.block[i]
        for s in range(state.offset[i], state.offset[i + 1]):
            begin[own + 1] += state.block[state.neighbours[s]] != own
    scan_offsets(begin)
    found, ahead = np.empty(begin[-1], np.int32), begin[:-1].copy()
    count = np.empty(begin[-1], np.float64)
    for i in range(state.block.size):
        if best[i] == INSIDE:
            continue
        own = state.block[i]
        for s in range(state.offset[i], state.offset[i + 1]):
            other = state.block[state.neighbours[s]]
            if other != own:
                found[ahead[own]] = other
                count[ahead[own]] = state.facets[s] if state.facets.size > 0 else 1
                ahead[own] += 1
    return _joined(begin, found, count)


@helper
def _joined(begin: Int64s, found: Int32s, count: Float64s) -> Borders:
    """Borders with the facets of equal neighbours summed; overwrites its arguments."""
    n_blocks, used = begin.size - 1, 0
    at, offset = np.full(n_blocks, -1, np.int64), np.zeros(n_blocks + 1, np.int64)
    for b in range(n_blocks):
        for s in range(begin[b], begin[b + 1]):
            other, facets = found[s], count[s]
            if at[other] < offset[b]:
                at[other] = used
                found[used], count[used] = other, ADDED
                used += 1
            count[at[other]] += facets
        offset[b + 1] = used
    return Borders(offset, found[:used], count[:used])


@helper
def balancing(state: Counts, borders: Borders, left: float) -> Float64s:
    """The pressure of each block at which flows across facets make all as full as the mean.

    The mean is that of connected blocks, whose mean pressure is 0. The square root of ``left`` is
    the share of the surplus that may remain.
    Conjugate gradients, scaled by the facets of each block. O(borders) for each step.
    """
    n_blocks = state.size.size
    scale, r = np.full(n_blocks, LEAK), state.size / state.cap
    _less_mean(borders, r)
    for b in range(n_blocks):
        for s in range(borders.offset[b], borders.offset[b + 1]):
            scale[b] += borders.facets[s]
        r[b] *= state.cap[b]
    pressure, z = np.zeros(n_blocks, np.float64), r / scale
    direction, product = z.copy(), (r * z).sum()
    least = left * product
    for _ in range(STEPS):
        if product <= least:
            break
        image = scale * direction
        for b in range(n_blocks):
            for s in range(borders.offset[b], borders.offset[b + 1]):
                image[b] -= borders.facets[s] * direction[borders.beside[s]]
        step = product / (direction * image).sum()
        pressure += step * direction
        r -= step * image
        z = r / scale
        before, product = product, (r * z).sum()
        direction = z + product / before * direction
    _less_mean(borders, pressure)
    return pressure


@helper
def _less_mean(borders: Borders, value: Float64s) -> None:
    """Subtract from the value of each block the mean of its connected component."""
    n_blocks, graph = value.size, (borders.offset, borders.beside)
    level, queue = np.full(n_blocks, -1, np.int32), np.empty(n_blocks, np.int64)
    for root in range(n_blocks):
        if level[root] < 0:
            end = breadth_first(graph, root, level, queue, n_blocks + 1)[3]
            value[queue[:end]] -= value[queue[:end]].mean()


# The share of the sweeps after which excess and its price have their last values.
HOLDS = 0.9
# Balancing flows: how often they are computed, sweeps between two computations at least, and the
# pressure of an element that crosses one facet.
FLOWS, FLOW_SWEEPS, FLOW = 4, 5, 0.03
# Share of the squared surplus that they may leave.
LEFT = 1e-2


class AnnealingSchedule(NamedTuple):
    """Sweeps ``begin`` to ``end`` of ``total``; pairs are the values of the first and last sweep.

    The last values hold from the share ``settled`` of all sweeps on, those of ``excess`` and
    ``over`` from the share ``HOLDS`` on; sweeps from ``total`` on only gain. ``cap``
    (n_blocks,) is the most that each block may have, ``excess`` the share by which it may be over
    that, and ``least`` (n_blocks,) what it should have. Pressure rises in a sweep by ``rate`` for
    each cap by which a block is fuller than the mean; at a pressure of ``halved`` the pull is
    half. Prices as of :class:`moves.Sweep`.
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
    number, quantile = np.full(point_weight.size, -1, np.int32), acceptance_thresholds()
    gained = 0
    for g in groups:
        group = _group(grouping, g)
        state = _extract(level, point_weight, group, block, number, schedule, pressure)
        count_blocks(state)
        gained += loads_of(state)
        centroids = _centroids(level, group, metric, state, schedule.pull[0])
        random = np.uint64(schedule.seed + g) * np.uint64(2654435761) + np.uint64(88172645463325252)
        candidates = new_candidates(state.size.size)
        memory = new_memory(state)
        batch = new_batch(memory, quantile)
        drift, flows = _press(state, 0.0), np.zeros(state.size.size, np.float64)
        for k in range(schedule.begin, schedule.end):
            if k == schedule.total:
                invalidate_scores(memory)
            elif schedule.rate > 0.0 and _flows_begin(schedule, k):
                state.pressure[:] -= flows
                flows = FLOW * balancing(state, borders_of(state, memory.best), LEFT)
                state.pressure[:] += flows
            sweep = _sweep_at(schedule, k, drift)
            random, moved = sweep_over(state, centroids, sweep, k, batch, candidates, random)
            moved += exchange(state, centroids, sweep, memory)
            if moved == 0 and k >= schedule.total:
                break
            drift = _press(state, schedule.rate)
        gained -= loads_of(state)
        for k in range(group.blocks.size):
            pressure[group.blocks[k]] = state.pressure[k] - flows[k]
        for k in range(group.clusters.size):
            block[group.clusters[k]] = group.blocks[state.block[k]]
    return gained


@helper
def _flows_begin(schedule: AnnealingSchedule, k: int) -> bool:
    """Whether balancing flows are computed again before sweep ``k``."""
    times = min(FLOWS, max(1, schedule.total // FLOW_SWEEPS))
    now, before = times * k // schedule.total, times * (k - 1) // schedule.total
    return k < schedule.total and (k == schedule.begin or now > before)


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
    _copy(level, group, block, number, state)
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


@helper
def _copy(level: Level, group: Group, block: Int32s, number: Int32s, state: Counts) -> None:
    """Copy points, neighbours, weights and blocks of a group's clusters in local numbers."""
    pairs, links = 0, 0
    for k in range(group.clusters.size):
        c = group.clusters[k]
        state.weight[k] = level.weight[c]
        state.block[k] = group.rank_of_block[block[c]]
        for s in range(np.uint64(level.point_offset[c]), np.uint64(level.point_offset[c + 1])):
            begin = number[np.uint32(level.points[s])]
            if begin >= 0:
                state.points[pairs] = begin
                pairs += 1
        for s in range(np.uint64(level.offset[c]), np.uint64(level.offset[c + 1])):
            j = np.uint32(level.neighbours[s])
            rank = np.uint32(group.rank_of_cluster[j])
            if rank < group.clusters.size and np.uint32(group.clusters[rank]) == j:
                state.neighbours[links] = rank
                if level.facets.size > 0:
                    state.facets[links] = level.facets[s]
                links += 1
        state.point_offset[k + 1], state.offset[k + 1] = pairs, links
