"""Levels of a mesh: its elements, clusters of these, and clusters of clusters.

Clusters grow by label propagation on the facet graph: each joins the neighbour that it shares most
facets with, while that is not too large. Such clusters are round, which matching does not give.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from meshprep_runtime.types.maps import distinct, offsets_of, read_only, rows_of_entries

from ...kernels import Bools, Float64s, Int32s, Int64s, helper, inlined, kernel
from ...kernels.arrays import sort_by
from ...kernels.parallel import each, in_pieces, take
from ...mesh.incidence import Csr
from .bisect.pivots import pivot_coordinates, smoothed
from .tuning import SearchTuning

# Of members without places, the first clusters have so many at most, and each level so many times
# as many; they grow until there are few or hardly fewer than before. How often places are smoothed
# on each level.
STAND_INS, GROWTH, FEW_CLUSTERS, LEAST_FALL, SMOOTHING = 4.0, 3.3, 600, 0.9, 4
# How often labels are propagated.
ROUNDS = 2
# Clusters grow inside runs of at most so many members, each on any thread; fewer than the second
# number are one run.
RUN, LONE_RUN = 60_000, 6_000
# Each worker notes the points that it has met in an array over all points. Fewer new clusters than
# the second number are contracted by one.
MAX_WORKERS, SHARED = 8, 3_000


class Level(NamedTuple):
    """The clusters of one level, with their points, neighbours, weights and places.

    Cluster ``c`` has the points ``points[point_offset[c]:point_offset[c + 1]]``, and beside it
    ``neighbours[offset[c]:offset[c + 1]]``, with so many ``facets`` in common; none are given where
    all have 1. ``weight`` is its number of elements, ``place`` their mean, (clusters, d) with at
    most three dimensions, and ``example`` one of them.
    """

    point_offset: Int64s
    points: Int32s
    offset: Int64s
    neighbours: Int32s
    facets: Int32s
    weight: Int32s
    place: Float64s
    example: Int32s


def cluster_sizes(cap: int, tuning: SearchTuning) -> list[int]:
    """The largest size of a cluster on each level, ascending."""
    sizes, size = [], cap / tuning.block_to_cluster
    while size >= tuning.least_cluster:
        sizes.append(round(size))
        size /= tuning.level_ratio
    return sizes[::-1]


def element_level(
    table: Int32s, graph: Csr, coordinates: Float64s, weight: Int32s | None = None
) -> Level:
    """The finest level: every element is a cluster, which counts 1 where ``weight`` is left out.

    ``table`` has -1 for a point named again; at most three ``coordinates`` are used.
    """
    n, arity = table.shape
    if table.min(initial=0) < 0:
        there = table >= 0
        point_offset, points = offsets_of(np.count_nonzero(there, axis=1)), table[there]
    else:
        point_offset, points = np.arange(n + 1, dtype=np.int64), table.reshape(-1)
        point_offset *= arity
    one_each, each_element = np.empty(0, np.int32), np.arange(n, dtype=np.int32)
    weight = np.ones(n, np.int32) if weight is None else weight
    place = read_only(np.ascontiguousarray(coordinates[:, :3]))
    return Level(
        point_offset, read_only(points), graph.offset, graph.index, one_each, weight, place,
        each_element,
    )  # fmt: skip


def in_space(place: Float64s) -> Float64s:
    """A copy of places with three coordinates; missing ones are 0."""
    full = np.zeros((len(place), 3))
    full[:, : place.shape[1]] = place
    return full


@inlined
def facets_between(level: Any, s: int) -> int:
    """How many facets a cluster shares with neighbour ``s`` of the level, or of a group of it."""
    return level.facets[s] if level.facets.size > 0 else 1


def stand_in_places(graph: Csr) -> Float64s:
    """Graph distances as places of elements, (n, 3), see :func:`places_of_clusters`. Linear."""
    n = graph.n_rows
    return places_of_clusters(element_level(np.empty((n, 0), np.int32), graph, np.zeros((n, 1))))


def places_of_clusters(level: Level) -> Float64s:
    """Graph distances between large clusters, smoothed, as places of the clusters of a level.

    Distances of few clusters give the coarse shape; smoothing on every finer level gives the rest.
    Returns (clusters, 3) float64. Linear.
    """
    n, most = level.weight.size, STAND_INS * level.weight.max(initial=0)
    no_points, labels = np.empty(0, np.int32), list[Int32s]()
    levels = [level._replace(point_offset=np.zeros(n + 1, np.int64), points=read_only(no_points))]
    while levels[-1].weight.size > FEW_CLUSTERS:
        larger, label = coarsen(levels[-1], 0, round(most))
        if larger.weight.size > LEAST_FALL * levels[-1].weight.size:
            break
        most *= GROWTH
        levels.append(larger)
        labels.append(label)
    top = Csr(levels[-1].offset, levels[-1].neighbours)
    return smoothed_places(levels, labels, pivot_coordinates(top))


def smoothed_places(levels: list[Level], labels: list[Int32s], place: Float64s) -> Float64s:
    """Places on the first level from places on the last, smoothed on every level. Linear."""
    for finer, label in zip(levels[-2::-1], labels[::-1], strict=True):
        place = smoothed(Csr(finer.offset, finer.neighbours), place[label], SMOOTHING)
    return place


def in_other_places(levels: list[Level], labels: list[Int32s], places: Float64s) -> list[Level]:
    """The same levels with other places of the elements. Linear."""
    found = [levels[0]._replace(place=places)]
    for level, label in zip(levels[1:], labels, strict=True):
        below, n = found[-1], level.weight.size
        sums = [np.bincount(label, below.weight * axis, n) for axis in below.place.T]
        place = read_only(np.stack(sums, axis=1) / level.weight[:, None])
        found.append(level._replace(place=place))
    return found


def rows_of(level: Level, arity: int) -> Int32s:
    """The points of each cluster as rows padded by -1; a view if all rows are full."""
    width = np.diff(level.point_offset)
    if level.points.size == width.size * arity:
        return level.points.reshape(-1, arity)
    rows = np.full((width.size, arity), -1, np.int32)
    rows[np.arange(arity) < width[:, None]] = level.points
    return rows


def coarsen(level: Level, n_points: int, most: int) -> tuple[Level, Int32s]:
    """Clusters of at most ``most`` elements, and the cluster of every member. Linear."""
    n = level.weight.size
    # the number of runs does not depend on the number of threads
    label, runs = np.empty(n, np.int32), 2 * -(-n // (2 * RUN)) if n > LONE_RUN else 1
    ends = [(k * n // runs, (k + 1) * n // runs) for k in range(runs)]
    counts = each(_grow, [(level, most, ROUNDS, *run, label) for run in ends])
    first = np.concatenate([[0], np.cumsum(counts)])
    for (begin, end), shift in zip(ends, first[:-1], strict=True):
        label[begin:end] += np.int32(shift)
    return contract(level, n_points, label), label


def contract(level: Level, n_points: int, label: Int32s) -> Level:
    """The next level, from the cluster of every member. Linear."""
    count = int(label.max(initial=-1)) + 1
    offset, members = sort_by(label, count)
    given = level, label, offset, members, _shared_points(level, label, n_points)
    joined = _joined(in_pieces(_contract, count, *given, least=SHARED, most=MAX_WORKERS))
    # as those of elements, so that kernels are compiled once
    return joined._replace(points=read_only(joined.points), place=read_only(joined.place))


def refined(block: Int32s, labels: list[Int32s]) -> Int32s:
    """The blocks of elements, from those of the largest clusters."""
    for label in reversed(labels):
        block = take(block, label)
    return block


def cost_of_clusters(level: Level, block: Int32s, weight: Int32s, facet: float) -> float:
    """The weighted loads and the price of cut facets, up to a constant."""
    n_blocks = block.max() + 1
    owner = block[rows_of_entries(level.point_offset)]
    pairs = distinct(level.points.astype(np.int64) * n_blocks + owner)
    loads = weight[pairs // n_blocks].sum(dtype=np.int64)
    apart = block[rows_of_entries(level.offset)] != block[level.neighbours]
    facets = level.facets[apart].sum(dtype=np.int64) if level.facets.size else apart.sum()
    return float(loads + facet * facets / 2)


def hollow(level: Level) -> Level:
    """A level that is to be contracted again: only the sizes of its arrays are left."""
    return Level._make(np.broadcast_to(a.dtype.type(0), a.shape) for a in level)


def _joined(parts: list[Level]) -> Level:
    """The concatenation of levels whose offsets begin at 0 each."""
    fields, joined = [list(arrays) for arrays in zip(*parts, strict=True)], []
    # together they are as large as the result: each goes when it is in there
    parts.clear()
    for name in Level._fields:
        arrays = fields.pop(0)
        if name.endswith("offset"):
            ends = np.cumsum([0] + [int(a[-1]) for a in arrays])
            moved = [a[1:] + end for a, end in zip(arrays, ends[:-1], strict=True)]
            joined.append(np.concatenate([np.zeros(1, np.int64), *moved]))
        else:
            joined.append(np.concatenate(arrays))
    return Level(*joined)


@kernel
def _grow(level: Level, most: int, rounds: int, begin: int, end: int, label: Int32s) -> int:
    """Labels of the members ``begin`` to ``end - 1`` by propagation, and their number."""
    n = end - begin
    weight, shared = np.empty(n, np.int32), np.zeros(n, np.int32)
    met = np.empty(n, np.int32)
    root = np.empty(most + 1, np.float64)
    for k in range(most + 1):
        root[k] = math.sqrt(k)
    for k in range(n):
        label[begin + k], weight[k] = k, level.weight[begin + k]
    for _ in range(rounds):
        for i in range(begin, end):
            found, home, own = 0, label[i], level.weight[i]
            for s in range(np.uint64(level.offset[i]), np.uint64(level.offset[i + 1])):
                j = np.uint32(level.neighbours[s])
                if j < begin or j >= end:
                    continue
                other = np.uint32(label[j])
                met[found] = other
                found += shared[other] == 0
                shared[other] += facets_between(level, s)
            alone, best, best_value = weight[home] == own, home, float(shared[home])
            for k in range(found):
                other = np.uint32(met[k])
                if other != home and weight[other] + own <= most:
                    value = shared[other] / (root[np.uint32(weight[other])] if alone else 1.0)
                    if value > best_value:
                        best, best_value = other, value
                shared[other] = 0
            weight[home] -= own
            weight[best] += own
            label[i] = best
    return _renumbered(label, begin, end)


@helper
def _renumbered(label: Int32s, begin: int, end: int) -> int:
    """Labels numbered by first appearance."""
    number, count = np.full(end - begin, -1, np.int32), 0
    for i in range(begin, end):
        if number[label[i]] < 0:
            number[label[i]] = count
            count += 1
        label[i] = number[label[i]]
    return count


@kernel
def _shared_points(level: Level, label: Int32s, n_points: int) -> Bools:
    """For each point, whether several clusters have it."""
    last, shared = np.full(n_points, -1, np.int32), np.zeros(n_points, np.bool_)
    for i in range(label.size):
        own = label[i]
        for s in range(np.uint64(level.point_offset[i]), np.uint64(level.point_offset[i + 1])):
            p = np.uint32(level.points[s])
            before = last[p]
            shared[p] |= (before >= 0) & (before != own)
            last[p] = own
    return shared


@kernel
def _contract(
    level: Level, label: Int32s, begin: Int64s, members: Int32s, shared: Bools, low: int, high: int
) -> Level:
    """The clusters ``low`` to ``high - 1`` of the next level, with the points they share.

    Branch-free: points and neighbours are written before it is known whether they are new, and
    facets inside a cluster add to a dummy entry.
    """
    count, n_points, n_facets = high - low, 0, 0
    for k in range(begin[low], begin[high]):
        i = np.uint32(members[k])
        n_points += level.point_offset[i + 1] - level.point_offset[i]
        n_facets += level.offset[i + 1] - level.offset[i]
    out = Level(
        np.zeros(count + 1, np.int64),
        np.empty(n_points, np.int32),
        np.zeros(count + 1, np.int64),
        np.empty(n_facets + 1, np.int32),
        np.empty(n_facets + 1, np.int32),
        np.zeros(count, np.int32),
        np.zeros((count, level.place.shape[1])),
        np.zeros(count, np.int32),
    )
    seen = np.full(shared.size, -1, np.int32)
    where = np.full(begin.size - 1, -1, np.int64)
    inside, n_points, n_facets = np.int64(n_facets), 0, 0
    for c in range(low, high):
        k, start = c - low, n_facets
        where[c] = inside
        for m in range(np.uint64(begin[c]), np.uint64(begin[c + 1])):
            i, weight = np.uint32(members[m]), level.weight[np.uint32(members[m])]
            out.weight[k] += weight
            for a in range(level.place.shape[1]):
                out.place[k, a] += weight * level.place[i, a]
            for s in range(np.uint64(level.point_offset[i]), np.uint64(level.point_offset[i + 1])):
                p = np.uint32(level.points[s])
                out.points[n_points] = p
                n_points += shared[p] & (seen[p] != c)
                seen[p] = c
            for s in range(np.uint64(level.offset[i]), np.uint64(level.offset[i + 1])):
                other = np.uint32(label[np.uint32(level.neighbours[s])])
                fresh = where[other] < start
                at = np.uint64(n_facets if fresh else where[other])
                where[other], out.neighbours[at] = at, other
                out.facets[at] = (0 if fresh else out.facets[at]) + facets_between(level, s)
                n_facets += fresh
        for a in range(level.place.shape[1]):
            out.place[k, a] /= out.weight[k]
        where[c] = -1
        middle = members[(begin[c] + begin[c + 1]) >> 1]
        out.example[k] = level.example[middle]
        out.point_offset[k + 1], out.offset[k + 1] = n_points, n_facets
    # what is left of these arrays was never written to, and takes no memory
    return Level(
        out.point_offset, out.points[:n_points], out.offset, out.neighbours[:n_facets],
        out.facets[:n_facets], out.weight, out.place, out.example,
    )  # fmt: skip
