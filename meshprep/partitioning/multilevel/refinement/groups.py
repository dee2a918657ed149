"""Annealing by groups: each group of neighbouring blocks is a small independent problem.

The objective is a sum over blocks, so groups do not interact: they fit a cache, and the
result does not depend on the number of threads. Blocks at the rim of a group are inside
another group in the next grouping.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float64s, Int32s, Int64s, helper, kernel
from ..coarsening.grouping import Group, Grouping
from ..coarsening.levels import Level
from ..initial.geometry import Sizes
from ..tuning import Phase, SearchTuning
from .centroids import Centroids, find_centroids
from .counts import (
    FIRST,
    MOST,
    ROOM,
    USED,
    WEIGHT,
    Counts,
    count_blocks,
    loads_of,
    no_block,
)
from .sweep import (
    Sweep,
    acceptance_thresholds,
    invalidate_scores,
    new_batch,
    new_candidates,
    sweep_over,
)

# The share of the sweeps after which excess and its price have their last values.
HOLDS = 0.9


class PriceScale(NamedTuple):
    """The properties of a mesh and its blocks that scale the prices of a phase."""

    sizes: Sizes
    # Whether the blocks are of equal size.
    even_sizes: bool
    # Weight of a typical point.
    unit: float
    # Typical points that blocks load for an element, at the start.
    loads_per_element: float
    # Factor of the pull: 0 without, 1 with places that are right.
    guidance: float


class AnnealingSchedule(NamedTuple):
    """Sweeps ``begin`` to ``end`` of ``total``; pairs are for the first and the last sweep.

    The last values hold from the share ``settled`` of all sweeps on, those of ``excess``
    and ``over`` from the share ``HOLDS`` on; sweeps from ``total`` on accept only gains.
    ``cap`` (n_blocks,) is the most that each block may have, ``excess`` the share by which
    it may be over its cap, and ``least`` (n_blocks,) the size that it should have at least.
    Pressure rises in a sweep by ``rate`` for each cap by which a block is fuller than the
    mean; at a pressure of ``halved`` the pull is half. Prices are those of
    :class:`.sweep.Sweep`; ``quantile`` is that of a :class:`.sweep.Batch`.
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

    @classmethod
    def for_phase(
        cls, phase: Phase, tuning: SearchTuning, scale: PriceScale, total: int
    ) -> AnnealingSchedule:
        """All ``total`` sweeps of a phase, with its prices in the points of a mesh."""
        # Heat in proportion to the points that an element loads, so that the same share of
        # moves is accepted on any mesh.
        loads = scale.loads_per_element
        first, last = phase.temperature
        heat = max(1.0, tuning.heat * loads)
        root_of_effort = math.sqrt(tuning.effort)
        # Blocks of unlike sizes have shares to keep to, instead of an even pressure.
        rate = phase.rate / root_of_effort if scale.even_sizes else 0.0
        # The price of the cap grows with the effort, or long searches would fill regions.
        over = (
            min(loads, tuning.most_over * heat)
            * min(2.0, max(1.0, root_of_effort))
            / scale.sizes.mean_weight
        )
        return cls(
            begin=0,
            end=total,
            total=total,
            cap=scale.sizes.cap,
            least=scale.sizes.least,
            settled=phase.settled,
            temperature=(heat * first, heat * last),
            excess=phase.excess,
            pull=(scale.guidance * phase.pull[0], scale.guidance * phase.pull[1]),
            facet=phase.facet,
            over=(phase.over[0] * over, phase.over[1] * over),
            even=tuning.even / scale.sizes.mean_weight,
            rate=rate,
            halved=tuning.halved,
            per_unit=1.0 / scale.unit,
            seed=0,
            quantile=acceptance_thresholds(),
        )


# Grouping.group, for kernels.
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
    """Anneal some ``groups`` of a grouping, one after another.

    ``block`` (clusters,) and ``pressure`` (n_blocks,) are changed in place. Returns the
    fall of the weighted loads, points with thousands of clusters left out. O(points of the
    clusters) for each sweep; 4 bytes a point.
    """
    number = np.full(point_weight.size, -1, np.int32)
    gained = 0
    for g in groups:
        # Copy the group into arrays of its own, and count the blocks at its points.
        group = _group(grouping, g)
        state = _extract(
            level=level,
            point_weight=point_weight,
            group=group,
            block=block,
            number=number,
            schedule=schedule,
            pressure=pressure,
        )
        count_blocks(state)
        gained += loads_of(state)
        centroids = _centroids(
            level=level, group=group, metric=metric, state=state, pull=schedule.pull[0]
        )
        # The state of the random numbers is never 0, which xorshift would keep.
        random = np.uint64(schedule.seed + g) * np.uint64(2654435761) + np.uint64(
            88172645463325252
        )
        candidates = new_candidates(state.size.size)
        batch = new_batch(state, schedule.quantile)
        drift = _press(state, 0.0)
        for k in range(schedule.begin, schedule.end):
            # Cold sweeps have prices of their own: forget the scores. They end with the
            # first sweep that moves nothing.
            if k == schedule.total:
                invalidate_scores(batch.best)
            sweep = _sweep_at(schedule, k, drift)
            random, moved = sweep_over(
                state=state,
                centroids=centroids,
                sweep=sweep,
                number=k,
                batch=batch,
                candidates=candidates,
                random=random,
            )
            if moved == 0 and k >= schedule.total:
                break
            drift = _press(state, schedule.rate)
        gained -= loads_of(state)
        # Write the blocks of the clusters and the pressure back.
        for k in range(group.blocks.size):
            pressure[group.blocks[k]] = state.pressure[k]
        for k in range(group.clusters.size):
            block[group.clusters[k]] = group.blocks[state.block[k]]
    return gained


@helper
def _press(state: Counts, rate: float) -> float:
    """Raise the pressure of blocks fuller than the mean, and lower it in others.

    It grows in blocks that gain elements sweep after sweep, until they no longer do;
    changes by chance add up to little. Returns the mean square of the pressure.
    """
    mean = 0.0
    square = 0.0
    for b in range(state.size.size):
        mean += state.size[b] / state.cap[b]
    mean /= state.size.size
    for b in range(state.size.size):
        state.pressure[b] += rate * (state.size[b] / state.cap[b] - mean)
        square += state.pressure[b] ** 2
    return square / state.size.size


def unit_of(weight: Int32s) -> float:
    """The mean weight of the points whose weight is not 0; 1 without such points."""
    used = weight[weight > 0]
    if used.size:
        return float(used.mean())
    return 1.0


@helper
def _centroids(
    level: Level, group: Group, metric: Float64s, state: Counts, pull: float
) -> Centroids:
    """The metrics of a group's blocks, and their centroids if there is a pull."""
    n_blocks = group.blocks.size
    group_metric = np.empty((n_blocks, 6), np.float64)
    centroid = np.empty((n_blocks, 3), np.float64)
    for k in range(n_blocks):
        for a in range(6):
            group_metric[k, a] = metric[group.blocks[k], a]
    centroids = Centroids(
        place=level.place, row=group.clusters, metric=group_metric, centroid=centroid
    )
    if pull > 0.0:
        find_centroids(
            centroids=centroids, weight=state.weight, block=state.block, size=state.size
        )
    return centroids


@helper
def _sweep_at(schedule: AnnealingSchedule, k: int, drift: float) -> Sweep:
    """The prices of sweep ``k``; ``drift`` is the mean square of the pressure."""
    even = schedule.even
    # Past the end only moves that gain are made, within the caps and without the pull.
    if k >= schedule.total:
        return Sweep(
            excess=0.0,
            even=even,
            over=schedule.over[1],
            temperature=0.0,
            facet=schedule.facet,
            pull=0.0,
            per_unit=schedule.per_unit,
        )
    # Cool linearly, and stay at the last temperature once settled.
    share = min(1.0, k / (schedule.settled * schedule.total))
    temperature = schedule.temperature[0] + share * (
        schedule.temperature[1] - schedule.temperature[0]
    )
    # Tighten the caps sooner than the temperature falls: blocks that are too full can still
    # give elements away while it is warm.
    cap_share = min(1.0, k / (HOLDS * schedule.total))
    excess = schedule.excess[0] + cap_share * (schedule.excess[1] - schedule.excess[0])
    over = schedule.over[0] + cap_share * (schedule.over[1] - schedule.over[0])
    pull = schedule.pull[0] + share * (schedule.pull[1] - schedule.pull[0])
    # Where pressure must hold elements back, centroids are no guide.
    pull /= 1.0 + (drift / schedule.halved**2) ** 2
    return Sweep(
        excess=excess,
        even=even,
        over=over,
        temperature=temperature,
        facet=schedule.facet,
        pull=pull,
        per_unit=schedule.per_unit,
    )


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

    Points with one cluster, or with more than a count can hold, are left out, and so are
    neighbours in other groups. ``number`` (n_points,) is scratch: it is -1 for all points
    before and afterwards; in between it has the position where a point's list begins.
    """
    # Lay out the lists of the points, and make room for the facets of all clusters.
    clusters = group.clusters
    points, degree = _points_of_clusters(level, clusters, number)
    n_listed, begin, words = _begin_lists(points, degree, number)
    links = 0
    for c in clusters:
        links += level.offset[c + 1] - level.offset[c]
    state = Counts(
        point_offset=np.zeros(clusters.size + 1, np.uint32),
        points=np.empty(points.size, np.uint32),
        offset=np.zeros(clusters.size + 1, np.uint32),
        neighbours=np.empty(links, np.uint32),
        facets=np.empty(links if level.facets.size > 0 else 0, np.int32),
        weight=np.empty(clusters.size, np.int32),
        block=np.empty(clusters.size, np.uint32),
        size=np.zeros(group.blocks.size, np.int64),
        cap=_of_blocks(schedule.cap, group.blocks),
        least=_of_blocks(schedule.least, group.blocks),
        begin=begin,
        lists=np.full(words, no_block(group.blocks.size), np.int32),
        pressure=_of_blocks(pressure, group.blocks),
    )
    # Fill in points and clusters; leave the scratch as it was.
    for k in range(n_listed):
        state.lists[begin[k] + WEIGHT] = point_weight[points[k]]
        state.lists[begin[k] + USED] = 0
    _fill_clusters(level=level, group=group, block=block, number=number, state=state)
    for k in range(n_listed):
        number[points[k]] = -1
    return state


@helper
def _points_of_clusters(
    level: Level, clusters: Int32s, number: Int32s
) -> tuple[Int32s, Int32s]:
    """The points of some clusters, and how many of these clusters have each of them.

    Both arrays have room for every (cluster, point) pair; a degree of 0 ends the points.
    ``number`` receives the position of each point in them.
    """
    # Make room for the points of all clusters, counted as often as they occur.
    pairs = 0
    for c in clusters:
        pairs += level.point_offset[c + 1] - level.point_offset[c]
    points = np.empty(pairs, np.int32)
    degree = np.zeros(pairs, np.int32)
    # Number each point when it is met first, without a branch.
    count = 0
    for c in clusters:
        for s in range(
            np.uint64(level.point_offset[c]), np.uint64(level.point_offset[c + 1])
        ):
            p = np.uint32(level.points[s])
            fresh = number[p] < 0
            position = np.uint32(count if fresh else number[p])
            number[p] = position
            points[count] = p
            count += fresh
            degree[position] += 1
    return points, degree


@helper
def _begin_lists(points: Int32s, degree: Int32s, number: Int32s) -> tuple[int, Int32s, int]:
    """Lay out the lists of points with several clusters, but not too many to count.

    These points move to the front of ``points``, and ``number`` receives where the list of
    each begins, -1 for all others. Returns their number, where the lists begin, and the
    words of all lists.
    """
    n_listed = 0
    words = 0
    starts = np.empty(points.size, np.int32)
    for k in range(points.size):
        if degree[k] == 0:
            break
        # A point of one cluster has no list, as no move changes its cost.
        if 2 <= degree[k] <= MOST:
            number[points[k]] = words
            points[n_listed] = points[k]
            starts[n_listed] = words
            words += FIRST + max(ROOM, degree[k])
            n_listed += 1
        else:
            number[points[k]] = -1
    return n_listed, starts[:n_listed].copy(), words


@helper
def _fill_clusters(
    level: Level, group: Group, block: Int32s, number: Int32s, state: Counts
) -> None:
    """Fill in the points, neighbours, weights and blocks of a group's clusters."""
    clusters = group.clusters
    pairs = 0
    links = 0
    for k in range(clusters.size):
        c = clusters[k]
        state.weight[k] = level.weight[c]
        state.block[k] = group.rank_of_block[block[c]]
        # Its points that have lists.
        for s in range(
            np.uint64(level.point_offset[c]), np.uint64(level.point_offset[c + 1])
        ):
            first = number[np.uint32(level.points[s])]
            if first >= 0:
                state.points[pairs] = first
                pairs += 1
        # Its neighbours in the group: their rank there leads back to them.
        for s in range(np.uint64(level.offset[c]), np.uint64(level.offset[c + 1])):
            j = np.uint32(level.neighbours[s])
            rank = np.uint32(group.rank_of_cluster[j])
            if rank < clusters.size and np.uint32(clusters[rank]) == j:
                state.neighbours[links] = rank
                if level.facets.size > 0:
                    state.facets[links] = level.facets[s]
                links += 1
        state.point_offset[k + 1] = pairs
        state.offset[k + 1] = links


@helper
def _of_blocks(values: Any, blocks: Int32s) -> Any:
    """The values of a group's blocks."""
    group_values = np.empty(blocks.size, values.dtype)
    for k in range(blocks.size):
        group_values[k] = values[blocks[k]]
    return group_values
