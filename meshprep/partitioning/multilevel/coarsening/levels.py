"""Levels of a mesh: its elements, clusters of these, and clusters of clusters.

Clusters grow by size-constrained label propagation on the facet graph (Meyerhenke, Sanders
and Schulz, 2014): each member joins the neighbouring cluster that it shares most facets
with and that is not too large. Clusters grown in this way are round; clusters from matching
are not.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from meshprep_runtime.types.maps import distinct, offsets_of, read_only, rows_of_entries

from ....kernels import Bools, Float64s, Int32s, Int64s, helper, inlined, kernel
from ....kernels.arrays import sort_by
from ....kernels.parallel import each, in_pieces, take
from ....mesh.incidence import Csr
from ..initial.pivots import pivot_coordinates, smoothed
from ..tuning import SearchTuning

# Coarsening for stand-in coordinates.
# Members of the first clusters, at most.
FIRST_CLUSTER_SIZE = 4.0
# Size of clusters over that of the clusters one level below.
LEVEL_RATIO = 3.3
# Coarsening stops at this number of clusters,
STOP_BELOW = 600
# or where a level keeps more than this share of the clusters below.
STOP_IF_SHARE_KEPT = 0.9
# Smoothing steps of the coordinates on each level.
SMOOTHING_STEPS = 4

# Rounds of label propagation.
ROUNDS = 2
# Clusters grow inside runs of at most this many members, so that threads share the work;
RUN = 60_000
# a level of at most this many members is one run.
LONE_RUN = 6_000
# Each worker marks the points that it has met in an array over all points: this bounds
# their number.
MAX_WORKERS = 8
# Fewer new clusters than this are contracted by one worker.
SHARED = 3_000


class Level(NamedTuple):
    """The clusters of one level, with their points, neighbours, weights and places.

    Cluster ``c`` has the points ``points[point_offset[c]:point_offset[c + 1]]`` and the
    neighbours ``neighbours[offset[c]:offset[c + 1]]``. ``facets`` is the number of facets
    that it shares with each neighbour, empty where all numbers are 1. ``weight`` is the
    number of its elements, ``place`` their mean, (clusters, d) with at most three
    dimensions, and ``example`` one of them.
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
    sizes = []
    size = cap / tuning.block_to_cluster
    while size >= tuning.least_cluster:
        sizes.append(round(size))
        size /= tuning.level_ratio
    return sizes[::-1]


def element_level(
    table: Int32s, graph: Csr, coordinates: Float64s, weight: Int32s | None = None
) -> Level:
    """The finest level: every element is a cluster.

    Elements weigh 1 where ``weight`` is left out. ``table`` has -1 for a repeated point; at
    most three ``coordinates`` are used.
    """
    # Rows with a repeated point are shorter; else the table is shared, not copied.
    n, arity = table.shape
    if table.min(initial=0) < 0:
        is_point = table >= 0
        point_offset = offsets_of(np.count_nonzero(is_point, axis=1))
        points = table[is_point]
    else:
        point_offset = np.arange(n + 1, dtype=np.int64)
        points = table.reshape(-1)
        point_offset *= arity
    one_each = np.empty(0, np.int32)
    each_element = np.arange(n, dtype=np.int32)
    if weight is None:
        weight = np.ones(n, np.int32)
    element_place = read_only(np.ascontiguousarray(coordinates[:, :3]))
    return Level(
        point_offset=point_offset,
        points=read_only(points),
        offset=graph.offset,
        neighbours=graph.index,
        facets=one_each,
        weight=weight,
        place=element_place,
        example=each_element,
    )


def in_space(place: Float64s) -> Float64s:
    """A copy of places with three coordinates; missing ones are 0."""
    full = np.zeros((len(place), 3))
    full[:, : place.shape[1]] = place
    return full


@inlined
def facets_between(level: Any, s: int) -> int:
    """The facets that a cluster shares with neighbour ``s`` of a level, or of a group."""
    if level.facets.size > 0:
        return level.facets[s]
    return 1


def stand_in_places(graph: Csr) -> Float64s:
    """Graph distances as places (n, 3), by :func:`places_of_clusters`. Linear."""
    n = graph.n_rows
    no_points = np.empty((n, 0), np.int32)
    nowhere = np.zeros((n, 1))
    return places_of_clusters(element_level(no_points, graph, nowhere))


def places_of_clusters(level: Level) -> Float64s:
    """Smoothed graph distances between large clusters, as places of a level's clusters.

    Distances between few clusters give the coarse shape; smoothing on every finer level
    gives the fine one. Returns (clusters, 3) float64. Linear.
    """
    n = level.weight.size
    most = FIRST_CLUSTER_SIZE * level.weight.max(initial=0)
    # Coarsen without points: distances need nothing but the facet graph.
    no_points = np.empty(0, np.int32)
    labels = list[Int32s]()
    levels = [
        level._replace(point_offset=np.zeros(n + 1, np.int64), points=read_only(no_points))
    ]
    # Let clusters grow until few are left, or until they hardly grow any more.
    while levels[-1].weight.size > STOP_BELOW:
        larger, label = coarsen(levels[-1], 0, round(most))
        if larger.weight.size > STOP_IF_SHARE_KEPT * levels[-1].weight.size:
            break
        most *= LEVEL_RATIO
        levels.append(larger)
        labels.append(label)
    # Measure distances where they are cheap, and smooth them on the way down.
    top = Csr(levels[-1].offset, levels[-1].neighbours)
    return smoothed_places(levels, labels, pivot_coordinates(top))


def smoothed_places(levels: list[Level], labels: list[Int32s], place: Float64s) -> Float64s:
    """Places on the first level from those on the last, smoothed on every level. Linear."""
    for finer, label in zip(levels[-2::-1], labels[::-1], strict=True):
        graph = Csr(finer.offset, finer.neighbours)
        place = smoothed(graph, place[label], SMOOTHING_STEPS)
    return place


def in_other_places(
    levels: list[Level], labels: list[Int32s], places: Float64s
) -> list[Level]:
    """The same levels with other places of the elements. Linear."""
    placed = [levels[0]._replace(place=places)]
    for level, label in zip(levels[1:], labels, strict=True):
        below = placed[-1]
        n = level.weight.size
        sums = [np.bincount(label, below.weight * axis, n) for axis in below.place.T]
        mean = np.stack(sums, axis=1) / level.weight[:, None]
        placed.append(level._replace(place=read_only(mean)))
    return placed


def rows_of(level: Level, arity: int) -> Int32s:
    """The points of each cluster as rows padded by -1; a view if all rows are full."""
    width = np.diff(level.point_offset)
    if level.points.size == width.size * arity:
        return level.points.reshape(-1, arity)
    rows = np.full((width.size, arity), -1, np.int32)
    is_point = np.arange(arity) < width[:, None]
    rows[is_point] = level.points
    return rows


def coarsen(level: Level, n_points: int, most: int) -> tuple[Level, Int32s]:
    """Clusters of at most ``most`` elements, and the cluster of every member. Linear."""
    n = level.weight.size
    label = np.empty(n, np.int32)
    # Share the members out in runs: the number of runs does not depend on that of threads.
    runs = 2 * -(-n // (2 * RUN)) if n > LONE_RUN else 1
    ends = [(k * n // runs, (k + 1) * n // runs) for k in range(runs)]
    tasks = [(level, most, ROUNDS, *run, label) for run in ends]
    counts = each(_grow, tasks)
    # Number the clusters of all runs one after another.
    first = np.concatenate([[0], np.cumsum(counts)])
    for (begin, end), shift in zip(ends, first[:-1], strict=True):
        label[begin:end] += np.int32(shift)
    return contract(level, n_points, label), label


def contract(level: Level, n_points: int, label: Int32s) -> Level:
    """The next level, from the cluster of every member. Linear."""
    count = int(label.max(initial=-1)) + 1
    offset, members = sort_by(label, count)
    shared = _shared_points(level, label, n_points)
    arrays = level, label, offset, members, shared
    joined = _concatenate_levels(
        in_pieces(_contract, count, *arrays, least=SHARED, most=MAX_WORKERS)
    )
    # read-only as those of elements, so that kernels are compiled once
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
    if level.facets.size:
        facets = level.facets[apart].sum(dtype=np.int64)
    else:
        facets = apart.sum()
    return float(loads + facet * facets / 2)


def hollow(level: Level) -> Level:
    """The level with arrays that have their sizes, but take no memory."""
    return Level._make(np.broadcast_to(a.dtype.type(0), a.shape) for a in level)


def _concatenate_levels(parts: list[Level]) -> Level:
    """The concatenation of levels whose offsets begin at 0 each."""
    fields = [list(arrays) for arrays in zip(*parts, strict=True)]
    joined = []
    # The parts take as much memory as the result: drop each field once it is joined.
    parts.clear()
    for name in Level._fields:
        arrays = fields.pop(0)
        if name.endswith("offset"):
            ends = np.cumsum([0] + [int(a[-1]) for a in arrays])
            moved = [a[1:] + end for a, end in zip(arrays, ends[:-1], strict=True)]
            zero = np.zeros(1, np.int64)
            joined.append(np.concatenate([zero, *moved]))
        else:
            joined.append(np.concatenate(arrays))
    return Level(*joined)


@kernel
def _grow(level: Level, most: int, rounds: int, begin: int, end: int, label: Int32s) -> int:
    """Labels of the members ``begin`` to ``end - 1`` by propagation, and their number."""
    # Each member is a cluster of its own at first.
    n = end - begin
    weight = np.empty(n, np.int32)
    shared = np.zeros(n, np.int32)
    met = np.empty(n, np.int32)
    root = np.empty(most + 1, np.float64)
    for k in range(most + 1):
        root[k] = math.sqrt(k)
    for k in range(n):
        label[begin + k] = k
        weight[k] = level.weight[begin + k]
    for _ in range(rounds):
        for i in range(begin, end):
            # Sum the facets shared with each neighbouring cluster.
            n_met = 0
            home = label[i]
            member_weight = level.weight[i]
            for s in range(np.uint64(level.offset[i]), np.uint64(level.offset[i + 1])):
                j = np.uint32(level.neighbours[s])
                if j < begin or j >= end:
                    continue
                other = np.uint32(label[j])
                met[n_met] = other
                n_met += shared[other] == 0
                shared[other] += facets_between(level, s)
            # Join the best of them that has room; a lone member prefers small ones.
            alone = weight[home] == member_weight
            best = home
            best_value = float(shared[home])
            for k in range(n_met):
                other = np.uint32(met[k])
                if other != home and weight[other] + member_weight <= most:
                    value = shared[other] / (
                        root[np.uint32(weight[other])] if alone else 1.0
                    )
                    if value > best_value:
                        best = other
                        best_value = value
                shared[other] = 0
            weight[home] -= member_weight
            weight[best] += member_weight
            label[i] = best
    return _renumbered(label, begin, end)


@helper
def _renumbered(label: Int32s, begin: int, end: int) -> int:
    """Renumber the labels by first appearance; returns their number."""
    number = np.full(end - begin, -1, np.int32)
    count = 0
    for i in range(begin, end):
        if number[label[i]] < 0:
            number[label[i]] = count
            count += 1
        label[i] = number[label[i]]
    return count


@kernel
def _shared_points(level: Level, label: Int32s, n_points: int) -> Bools:
    """For each point, whether several clusters have it."""
    last = np.full(n_points, -1, np.int32)
    shared = np.zeros(n_points, np.bool_)
    for i in range(label.size):
        cluster = label[i]
        for s in range(
            np.uint64(level.point_offset[i]), np.uint64(level.point_offset[i + 1])
        ):
            p = np.uint32(level.points[s])
            # A point that another cluster had before is shared.
            before = last[p]
            shared[p] |= (before >= 0) & (before != cluster)
            last[p] = cluster
    return shared


@kernel
def _contract(
    level: Level,
    label: Int32s,
    begin: Int64s,
    members: Int32s,
    shared: Bools,
    low: int,
    high: int,
) -> Level:
    """The clusters ``low`` to ``high - 1`` of the next level, with the points they share.

    Branch-free: points and neighbours are written before they are known to be new, and
    facets inside a cluster add to a dummy entry.
    """
    # Make room for all points and neighbours of the members.
    count = high - low
    n_points = 0
    n_facets = 0
    for k in range(begin[low], begin[high]):
        i = np.uint32(members[k])
        n_points += level.point_offset[i + 1] - level.point_offset[i]
        n_facets += level.offset[i + 1] - level.offset[i]
    out = Level(
        point_offset=np.zeros(count + 1, np.int64),
        points=np.empty(n_points, np.int32),
        offset=np.zeros(count + 1, np.int64),
        neighbours=np.empty(n_facets + 1, np.int32),
        facets=np.empty(n_facets + 1, np.int32),
        weight=np.zeros(count, np.int32),
        place=np.zeros((count, level.place.shape[1])),
        example=np.zeros(count, np.int32),
    )
    # Neighbours of the cluster at hand have their entry in ``entry_of``. Entries of the
    # clusters before it lie below its start, so that nothing needs to be reset; its own
    # facets go to the spare last entry.
    last_cluster = np.full(shared.size, -1, np.int32)
    entry_of = np.full(begin.size - 1, -1, np.int64)
    inside = np.int64(n_facets)
    n_points = 0
    n_facets = 0
    for c in range(low, high):
        k = c - low
        start = n_facets
        entry_of[c] = inside
        # Add up the members of the cluster: weight, place, points and facets.
        for m in range(np.uint64(begin[c]), np.uint64(begin[c + 1])):
            i = np.uint32(members[m])
            weight = level.weight[np.uint32(members[m])]
            out.weight[k] += weight
            for a in range(level.place.shape[1]):
                out.place[k, a] += weight * level.place[i, a]
            # Keep points that several clusters have, each once: no move changes the others.
            for s in range(
                np.uint64(level.point_offset[i]), np.uint64(level.point_offset[i + 1])
            ):
                p = np.uint32(level.points[s])
                out.points[n_points] = p
                n_points += shared[p] & (last_cluster[p] != c)
                last_cluster[p] = c
            # Keep neighbouring clusters, each once, with the facets in common.
            for s in range(np.uint64(level.offset[i]), np.uint64(level.offset[i + 1])):
                other = np.uint32(label[np.uint32(level.neighbours[s])])
                fresh = entry_of[other] < start
                entry = np.uint64(n_facets if fresh else entry_of[other])
                entry_of[other] = entry
                out.neighbours[entry] = other
                out.facets[entry] = (0 if fresh else out.facets[entry]) + facets_between(
                    level, s
                )
                n_facets += fresh
        for a in range(level.place.shape[1]):
            out.place[k, a] /= out.weight[k]
        # Close the cluster; its middle member stands for it in samples of elements.
        entry_of[c] = -1
        middle = members[(begin[c] + begin[c + 1]) >> 1]
        out.example[k] = level.example[middle]
        out.point_offset[k + 1] = n_points
        out.offset[k + 1] = n_facets
    # The unused ends of these arrays were never written to, and take no memory.
    return Level(
        point_offset=out.point_offset,
        points=out.points[:n_points],
        offset=out.offset,
        neighbours=out.neighbours[:n_facets],
        facets=out.facets[:n_facets],
        weight=out.weight,
        place=out.place,
        example=out.example,
    )
