"""Simulated annealing of the clusters of a group: moves to neighbouring blocks, at first uphill.

A cluster may go to a block of a neighbour that it shares a facet with. The score of a move is the
weight of points saved, in typical points, less prices for facets cut, for blocks over the cap and
for the distance from a block's centroid. A move that costs ``c`` is made with probability
``exp(-c / temperature)``.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from meshprep_runtime.types.maps import read_only

from ....kernels import Float32s, Float64s, Int32s, Int64s, UInt32s, helper, inlined
from ....kernels.arithmetic import log
from ..counts import COUNT_BITS, FIRST, ROOM, USED, WEIGHT, Counts, move
from ..levels import facets_between
from .centroids import Centroids, centroid_term, update_centroids

# Least score of an accepted move, in points.
LEAST_GAIN = 0.1
# Scores of a cluster that must be evaluated, and of one whose neighbours are all in its block.
UNKNOWN, INSIDE = np.float32(np.inf), np.float32(-np.inf)
# Nothing yet. Typed, so that helpers are not compiled for a constant first.
NONE: Any = np.int64(0)
# Entries of the table of quantiles, a power of two.
THRESHOLDS = 4096
# Clusters of a batch. Most clusters beside other blocks are skipped, and which is unpredictable: a
# batch is chosen without branches, and the lists of its points are prefetched together.
BATCH = 256


class Sweep(NamedTuple):
    """The prices and the temperature of one sweep, in points of typical weight.

    ``over`` is the price of an element over a block's cap, which may be exceeded by the share
    ``excess``; one below its least size costs ``LACK`` times as much. ``even`` is the gain of
    moving an element from a full block to an empty one, ``facet`` the price of a cut facet, and
    ``pull`` that of a squared block radius. ``per_unit`` is 1 over the weight of a typical point.
    """

    excess: float
    even: float
    over: float
    temperature: float
    facet: float
    pull: float
    per_unit: float


class Batch(NamedTuple):
    """The clusters of a batch that are evaluated, each once, with a random draw for each.

    A move may cost the draw times the temperature; draws come from ``quantile``. ``best``
    (clusters,) is the score of the best move of each when it was last evaluated.
    ``prefetched`` (1,) only keeps the compiler from dropping the prefetch.
    """

    cluster: UInt32s
    draw: Float64s
    quantile: Float64s
    prefetched: Int64s
    best: Float32s


@helper
def new_batch(state: Counts, quantile: Float64s) -> Batch:
    """Room for a batch and one more cluster, written before it is known whether it is chosen.

    Scores of clusters at a boundary are unknown. O(facets).
    """
    cluster, draw = np.empty(BATCH + 1, np.uint32), np.empty(BATCH + 1, np.float64)
    best = np.full(state.block.size, INSIDE, np.float32)
    for i in range(best.size):
        for s in range(state.offset[i], state.offset[i + 1]):
            if state.block[state.neighbours[s]] != state.block[i]:
                best[i] = UNKNOWN
    return Batch(cluster, draw, quantile, np.zeros(1, np.int64), best)


@helper
def invalidate_scores(best: Float32s) -> None:
    """Make the scores of all boundary clusters unknown."""
    for i in range(best.size):
        if best[i] != INSIDE:
            best[i] = UNKNOWN


@cache
def acceptance_thresholds() -> Float64s:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    return read_only(np.array([-log((k + 0.5) / THRESHOLDS) for k in range(THRESHOLDS)]))


@inlined
def choose_batch(
    state: Counts,
    batch: Batch,
    sweep: Sweep,
    number: int,
    holds: int,
    begin: int,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Choose the batch from position ``begin`` of sweep ``number``, and prefetch its points.

    A cluster is chosen if its draw and last score could allow a move, and in every ``holds``-th
    sweep; its score is then unknown. Returns the random state and the number of clusters.
    O(clusters of the batch + points of those chosen).
    """
    n, best = state.block.size, batch.best
    at_border, count = NONE, NONE
    for place in range(begin, min(n, begin + BATCH)):
        i: Any = np.uint32(position_in_sweep(n, place, number))
        batch.cluster[at_border] = i
        at_border += best[i] != INSIDE
    for k in range(at_border):
        i = batch.cluster[k]
        batch.cluster[count] = i
        random = _draw(batch, count, random)
        enough = best[i] + sweep.temperature * batch.draw[count] > LEAST_GAIN
        count += enough | ((i + number) % holds == 0)
    for k in range(count):
        best[batch.cluster[k]] = UNKNOWN
    read = 0
    for k in range(count):
        i = batch.cluster[k]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            read += state.lists[state.points[s] + FIRST]
    batch.prefetched[0] = read
    return random, count


@inlined
def position_in_sweep(n: int, cluster: int, number: int) -> int:
    """The position of a cluster in a sweep, or the cluster there: odd sweeps run backwards."""
    return n - 1 - cluster if number % 2 == 1 else cluster


@inlined
def invalidate_neighbours(
    state: Counts,
    batch: Batch,
    cluster: int,
    ahead: tuple[int, int],
    number: int,
    count: int,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Invalidate the scores of a moved cluster and its neighbours.

    Neighbours at positions in the range ``ahead`` are appended to the ``count`` clusters of the
    batch. Returns the random state and the new count.
    """
    n, best = state.block.size, batch.best
    best[cluster] = UNKNOWN
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        j = state.neighbours[s]
        place = position_in_sweep(n, j, number)
        if (best[j] != UNKNOWN) & (place >= ahead[0]) & (place < ahead[1]):
            batch.cluster[count] = j
            random = _draw(batch, count, random)
            count += 1
        best[j] = UNKNOWN
    return random, count


@inlined
def _draw(batch: Batch, k: int, random: np.uint64) -> np.uint64:
    """Draw a quantile for entry ``k`` (xorshift64); returns the next random state."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    batch.draw[k] = batch.quantile[(random >> np.uint64(20)) & np.uint64(THRESHOLDS - 1)]
    return random


# Price of an element below the least size, in prices of one over the cap. At the same price small
# blocks would dissolve, since their border costs more than their inside.
LACK = 4
# Sweeps after which a cluster is evaluated again in any case: sizes and prices change.
HOLDS = 8
# Most candidates of a cluster, its own block included; further blocks share this dummy row.
DUMMY = 65
# Independent accumulators, so that additions form no dependency chain: one for each entry of a list
# that is always read, and one for the others.
SUMS = ROOM + 1


class Candidates(NamedTuple):
    """Scratch of one cluster: row 0 is its own block, rows 1.. the neighbouring blocks.

    ``points`` (in ``SUMS`` accumulators) and ``facets`` are the shared weight and facets of each
    row; ``row[b]`` finds the row of block b. Between clusters all are ``DUMMY`` and 0.
    """

    block: UInt32s
    points: Int64s
    facets: Int64s
    row: Int32s


@helper
def new_candidates(n_blocks: int) -> Candidates:
    """Empty scratch for a group of ``n_blocks`` blocks."""
    row = np.full(n_blocks + 1, DUMMY, np.int32)
    points = np.zeros((DUMMY + 1) * SUMS, np.int64)
    facets = np.zeros(DUMMY + 1, np.int64)
    return Candidates(np.empty(DUMMY + 1, np.uint32), points, facets, row)


@inlined
def sweep_over(
    state: Counts,
    centroids: Centroids,
    sweep: Sweep,
    number: int,
    batch: Batch,
    candidates: Candidates,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Evaluate moves of all boundary clusters; returns the random state and the number of moves.

    The cost that a move may have is drawn first, so that only clusters it could move are
    evaluated. No block is emptied.
    O(clusters at a boundary + those evaluated * points * blocks at a point).
    """
    n, moved = state.block.size, 0
    best = batch.best
    end, count, drawn, k = NONE, NONE, NONE, NONE
    while k < count or end < n:
        if k == count:
            random, drawn = choose_batch(state, batch, sweep, number, HOLDS, end, random)
            end, count, k = min(n, end + BATCH), drawn, 0
            continue
        i, draw = batch.cluster[k], batch.draw[k]
        k += 1
        allowed = sweep.temperature * draw
        found = _find_candidates(state, candidates, i)
        if found == 1:
            best[i] = INSIDE
            candidates.row[state.block[i]], candidates.facets[0] = DUMMY, 0
            continue
        source, weight = state.block[i], state.weight[i]
        lost = _weigh_points(state, candidates, i)
        target, gain, score = NONE - 1, 0, -np.inf
        source_cap, stays = state.cap[source], state.size[source] - weight
        over = min(weight, max(0, state.size[source] - source_cap))
        over -= LACK * min(weight, max(0, state.least[source] - stays))
        price, fullness = sweep.over * over, state.size[source] / source_cap
        inner = candidates.facets[0]
        candidates.row[source], candidates.facets[0] = DUMMY, 0
        for c in range(1, found):
            b = candidates.block[c]
            candidates.row[b] = DUMMY
            after, cap = state.size[b] + weight, state.cap[b]
            value = -lost
            for z in range(SUMS):
                value += candidates.points[np.uint32(c * SUMS + z)]
                candidates.points[np.uint32(c * SUMS + z)] = 0
            new = value * sweep.per_unit + sweep.facet * (candidates.facets[c] - inner)
            candidates.facets[c] = 0
            if sweep.pull > 0.0:
                new += sweep.pull * centroid_term(centroids, i, source, b)
            if after > _limit(cap, sweep):
                continue
            new += price + sweep.even * weight * (fullness - after / cap)
            new += weight * (state.pressure[source] - state.pressure[b])
            over = min(weight, max(0, after - cap))
            over -= LACK * min(weight, max(0, state.least[b] - state.size[b]))
            new -= sweep.over * over
            if new > score:
                target, gain, score = b, value, new
        known = target >= 0 and stays > 0
        best[i] = score if known else UNKNOWN
        if not known:
            continue
        clear = sweep.temperature == 0.0 and gain > 0 and score > 0.0
        forced = state.size[source] > _limit(source_cap, sweep)
        if forced or clear or score + allowed > LEAST_GAIN:
            if sweep.pull > 0.0:
                update_centroids(centroids, state.size, i, weight, source, target)
            move(state, i, target)
            # neighbours of clusters that were appended wait for the next sweep
            after_it = position_in_sweep(n, i, number) + 1 if k <= drawn else end
            random, count = invalidate_neighbours(
                state, batch, i, (after_it, end), number, count, random
            )
            moved += 1
    return random, moved


@inlined
def _limit(cap: int, sweep: Sweep) -> int:
    """The cap of a block in this sweep, with its excess."""
    return cap + int(sweep.excess * cap)


@inlined
def _find_candidates(state: Counts, candidates: Candidates, cluster: int) -> int:
    """Fill the rows of the blocks that a cluster has facets with; returns the number of rows."""
    block, facets, row = candidates.block, candidates.facets, candidates.row
    found = 1
    row[state.block[cluster]] = 0
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        b = state.block[state.neighbours[s]]
        fresh = row[b] == DUMMY and found < DUMMY
        at = found if fresh else row[b]
        facets[at] += facets_between(state, s)
        block[at], row[b] = b, at
        found += fresh
    return found


@inlined
def _weigh_points(state: Counts, candidates: Candidates, cluster: int) -> int:
    """Sum the weights of shared points by row; returns that of points the block keeps."""
    lists, lost = state.lists, 0
    alone = (state.block[cluster] << COUNT_BITS) + 1
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        p = state.points[s]
        weight = lists[p + WEIGHT]
        lost += weight
        for z in range(ROOM):
            lost -= _add_weight(candidates, lists[p + FIRST + z], weight, alone, z)
        for z in range(FIRST + ROOM, FIRST + lists[p + USED]):
            lost -= _add_weight(candidates, lists[p + z], weight, alone, int(np.int64(ROOM)))
    return lost


@inlined
def _add_weight(candidates: Candidates, entry: int, weight: int, alone: int, which: int) -> int:
    """Add a point's weight to its row, branch-free; returns it if the entry is ``alone``."""
    at = candidates.row[np.uint32(entry) >> COUNT_BITS]
    candidates.points[np.uint32(at * SUMS + which)] += weight
    return weight * (entry == alone)
