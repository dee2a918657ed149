"""Simulated annealing of the clusters of a group: one sweep of moves between blocks.

A cluster may go to a block of a neighbour that it shares a facet with. The score of a move
is the weight of points saved, in typical points, less prices for facets cut, for blocks
over the cap and for the distance from a block's centroid. A move that costs ``c`` is made
with probability ``exp(-c / temperature)``.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from meshprep_runtime.types.maps import read_only

from ....kernels import Float32s, Float64s, Int32s, Int64s, UInt32s, helper, inlined
from ....kernels.arithmetic import log
from ..coarsening.levels import facets_between
from .centroids import Centroids, centroid_term, update_centroids
from .counts import COUNT_BITS, FIRST, ROOM, USED, WEIGHT, Counts, move_cluster

# Least score of an accepted move, in points.
LEAST_GAIN = 0.1
# Score of a cluster that must be evaluated.
UNKNOWN = np.float32(np.inf)
# Score of a cluster whose neighbours are all in its block.
INSIDE = np.float32(-np.inf)
# Where counters begin, typed so that helpers are not compiled for a constant first.
NONE: Any = np.int64(0)
# Entries of the table of quantiles, a power of two.
THRESHOLDS = 4096
# Clusters of a batch. Most clusters beside other blocks are skipped, unpredictably: so a
# batch is chosen without branches, and the lists of its points are prefetched together.
BATCH = 256


class Sweep(NamedTuple):
    """The prices and the temperature of one sweep, in points of typical weight.

    ``over`` is the price of an element over a block's cap, which may be exceeded by the
    share ``excess``; an element below a block's least size costs ``LACK`` times as much.
    ``even`` is the gain of moving an element from a full block to an empty one, ``facet``
    the price of a cut facet, and ``pull`` that of a squared block radius. ``per_unit`` is 1
    over the weight of a typical point.
    """

    excess: float
    even: float
    over: float
    temperature: float
    facet: float
    pull: float
    per_unit: float


class Batch(NamedTuple):
    """The clusters of a batch, each evaluated once, with a random draw for each.

    A move may cost the draw times the temperature; draws come from ``quantile``. ``best``
    (clusters,) is the score of each cluster's best move when it was last evaluated.
    ``prefetched`` (1,) only keeps the compiler from dropping the prefetch.
    """

    cluster: UInt32s
    draw: Float64s
    quantile: Float64s
    prefetched: Int64s
    best: Float32s


@helper
def new_batch(state: Counts, quantile: Float64s) -> Batch:
    """An empty batch, with the scores of clusters at a boundary unknown. O(facets).

    It has room for one more cluster, which is written before it is known to be chosen.
    """
    cluster = np.empty(BATCH + 1, np.uint32)
    draw = np.empty(BATCH + 1, np.float64)
    best = np.full(state.block.size, INSIDE, np.float32)
    for i in range(best.size):
        for s in range(state.offset[i], state.offset[i + 1]):
            if state.block[state.neighbours[s]] != state.block[i]:
                best[i] = UNKNOWN
    return Batch(
        cluster=cluster,
        draw=draw,
        quantile=quantile,
        prefetched=np.zeros(1, np.int64),
        best=best,
    )


@helper
def invalidate_scores(best: Float32s) -> None:
    """Make the scores of all boundary clusters unknown."""
    for i in range(best.size):
        if best[i] != INSIDE:
            best[i] = UNKNOWN


@cache
def acceptance_thresholds() -> Float64s:
    """Quantiles of the exponential distribution, from which costs of moves are drawn."""
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
    """Choose the batch from position ``begin`` of a sweep, and prefetch its points.

    A cluster is chosen if its draw and last score could allow a move, and in every
    ``holds``-th sweep; its score then becomes unknown. Returns the random state and the
    number of clusters. O(clusters of the batch + points of those chosen).
    """
    n = state.block.size
    best = batch.best
    # List the clusters at a boundary.
    at_border = NONE
    count = NONE
    for place in range(begin, min(n, begin + BATCH)):
        i: Any = np.uint32(position_in_sweep(n, place, number))
        batch.cluster[at_border] = i
        at_border += best[i] != INSIDE
    # Keep those whose last score, or whose turn, calls for an evaluation.
    for k in range(at_border):
        i = batch.cluster[k]
        batch.cluster[count] = i
        random = _draw(batch, count, random)
        enough = best[i] + sweep.temperature * batch.draw[count] > LEAST_GAIN
        count += enough | ((i + number) % holds == 0)
    for k in range(count):
        best[batch.cluster[k]] = UNKNOWN
    # Read one word of the list of each point, so that the cache has it.
    read = 0
    for k in range(count):
        i = batch.cluster[k]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            read += state.lists[state.points[s] + FIRST]
    batch.prefetched[0] = read
    return random, count


@inlined
def position_in_sweep(n: int, cluster: int, number: int) -> int:
    """The position of a cluster in a sweep, and back: odd sweeps run backwards."""
    if number % 2 == 1:
        return n - 1 - cluster
    return cluster


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

    Neighbours at positions in the range ``ahead`` are appended to the ``count`` clusters of
    the batch. Returns the random state and the new count.
    """
    n = state.block.size
    best = batch.best
    best[cluster] = UNKNOWN
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        j = state.neighbours[s]
        place = position_in_sweep(n, j, number)
        # One of the same batch was passed over with its old score: give it a turn.
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


# Price of an element below a block's least size, over that of an element above the cap. At
# the same price small blocks would dissolve, since their border costs more than their
# inside.
LACK = 4
# Sweeps after which a cluster is evaluated again in any case: sizes and prices change.
HOLDS = 8
# Most candidates of a cluster, its own block included; further blocks share this dummy row.
DUMMY = 65
# Independent accumulators, so that additions form no dependency chain: one for each entry
# of a list that is always read, and one for all others.
SUMS = ROOM + 1


class Candidates(NamedTuple):
    """Scratch of one cluster: row 0 is its own block, rows 1.. the neighbouring blocks.

    ``points`` (in ``SUMS`` accumulators) and ``facets`` are the shared weight and facets of
    each row; ``row[b]`` finds the row of block b. Between clusters all are ``DUMMY`` and 0.
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
    return Candidates(
        block=np.empty(DUMMY + 1, np.uint32), points=points, facets=facets, row=row
    )


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
    """Evaluate moves of all boundary clusters.

    The cost that a move may have is drawn first, so that only clusters that could move at
    this cost are evaluated. No block is emptied. Returns the random state and the number of
    moves. O(clusters at a boundary + those evaluated * points * blocks at a point).
    """
    n = state.block.size
    moved = 0
    best = batch.best
    end = NONE
    count = NONE
    drawn = NONE
    k = NONE
    while k < count or end < n:
        # The batch is done: choose the next one.
        if k == count:
            random, drawn = choose_batch(
                state=state,
                batch=batch,
                sweep=sweep,
                number=number,
                holds=HOLDS,
                begin=end,
                random=random,
            )
            end = min(n, end + BATCH)
            count = drawn
            k = 0
            continue
        # Find the blocks beside the cluster; inside its block there are none.
        i = batch.cluster[k]
        allowed = sweep.temperature * batch.draw[k]
        k += 1
        n_rows = _find_candidates(state, candidates, i)
        if n_rows == 1:
            best[i] = INSIDE
            candidates.row[state.block[i]] = DUMMY
            candidates.facets[0] = 0
            continue
        # Weigh the moves to them; the last element of a block does not leave.
        source = state.block[i]
        weight = state.weight[i]
        target, gain, score = _best_move(
            state=state,
            centroids=centroids,
            sweep=sweep,
            candidates=candidates,
            cluster=i,
            n_rows=n_rows,
        )
        possible = target >= 0 and state.size[source] - weight > 0
        best[i] = score if possible else UNKNOWN
        if not possible:
            continue
        # Move if the block is too full, if points are saved when cold, or if the draw
        # allows the cost.
        clear = sweep.temperature == 0.0 and gain > 0 and score > 0.0
        forced = state.size[source] > _limit(state.cap[source], sweep)
        if forced or clear or score + allowed > LEAST_GAIN:
            if sweep.pull > 0.0:
                update_centroids(
                    centroids=centroids,
                    size=state.size,
                    cluster=i,
                    weight=weight,
                    source=source,
                    target=target,
                )
            move_cluster(state, i, target)
            # Neighbours of clusters that were appended wait for the next sweep.
            if k <= drawn:
                after_it = position_in_sweep(n, i, number) + 1
            else:
                after_it = end
            random, count = invalidate_neighbours(
                state=state,
                batch=batch,
                cluster=i,
                ahead=(after_it, end),
                number=number,
                count=count,
                random=random,
            )
            moved += 1
    return random, moved


@inlined
def _best_move(
    state: Counts,
    centroids: Centroids,
    sweep: Sweep,
    candidates: Candidates,
    cluster: int,
    n_rows: int,
) -> tuple[int, int, float]:
    """The block to which a move scores most, the weight it saves, and its score.

    The block is -1 where none has room. The ``n_rows`` rows of the candidates are empty
    afterwards.
    """
    target = NONE - 1
    gain = 0
    score = -np.inf
    source = state.block[cluster]
    weight = state.weight[cluster]
    lost = _weigh_points(state, candidates, cluster)
    # Terms of the source block, which all moves share.
    source_cap = state.cap[source]
    stays = state.size[source] - weight
    over = min(weight, max(0, state.size[source] - source_cap))
    over -= LACK * min(weight, max(0, state.least[source] - stays))
    price = sweep.over * over
    fullness = state.size[source] / source_cap
    inner = candidates.facets[0]
    candidates.row[source] = DUMMY
    candidates.facets[0] = 0
    for c in range(1, n_rows):
        # Points and facets; the row is emptied for the next cluster.
        b = candidates.block[c]
        candidates.row[b] = DUMMY
        after = state.size[b] + weight
        cap = state.cap[b]
        saved = -lost
        for z in range(SUMS):
            saved += candidates.points[np.uint32(c * SUMS + z)]
            candidates.points[np.uint32(c * SUMS + z)] = 0
        new = saved * sweep.per_unit + sweep.facet * (candidates.facets[c] - inner)
        candidates.facets[c] = 0
        if sweep.pull > 0.0:
            new += sweep.pull * centroid_term(
                centroids=centroids, cluster=cluster, source=source, target=b
            )
        if after > _limit(cap, sweep):
            continue
        # Sizes of both blocks.
        new += price + sweep.even * weight * (fullness - after / cap)
        new += weight * (state.pressure[source] - state.pressure[b])
        over = min(weight, max(0, after - cap))
        over -= LACK * min(weight, max(0, state.least[b] - state.size[b]))
        new -= sweep.over * over
        if new > score:
            target = b
            gain = saved
            score = new
    return target, gain, score


@inlined
def _limit(cap: int, sweep: Sweep) -> int:
    """The cap of a block in this sweep, with its excess."""
    return cap + int(sweep.excess * cap)


@inlined
def _find_candidates(state: Counts, candidates: Candidates, cluster: int) -> int:
    """Fill the rows of the blocks that a cluster has facets with; returns their number."""
    block = candidates.block
    facets = candidates.facets
    row = candidates.row
    n_rows = 1
    row[state.block[cluster]] = 0
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        b = state.block[state.neighbours[s]]
        # Open a row for a block that is met first; too many share the last row.
        fresh = row[b] == DUMMY and n_rows < DUMMY
        if fresh:
            own_row = n_rows
        else:
            own_row = row[b]
        facets[own_row] += facets_between(state, s)
        block[own_row] = b
        row[b] = own_row
        n_rows += fresh
    return n_rows


@inlined
def _weigh_points(state: Counts, candidates: Candidates, cluster: int) -> int:
    """Sum the weights of shared points by row; returns the weight that the block keeps."""
    # A point whose entry is ``alone`` has no other cluster of the block: it is freed.
    lists = state.lists
    lost = 0
    alone = (state.block[cluster] << COUNT_BITS) + 1
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        p = state.points[s]
        weight = lists[p + WEIGHT]
        lost += weight
        # Entries that each list has come first, in a loop of fixed length.
        for z in range(ROOM):
            lost -= _add_weight(
                candidates=candidates,
                entry=lists[p + FIRST + z],
                weight=weight,
                alone=alone,
                which=z,
            )
        # Few points have more entries than these.
        for z in range(FIRST + ROOM, FIRST + lists[p + USED]):
            lost -= _add_weight(
                candidates=candidates,
                entry=lists[p + z],
                weight=weight,
                alone=alone,
                which=int(np.int64(ROOM)),
            )
    return lost


@inlined
def _add_weight(
    candidates: Candidates, entry: int, weight: int, alone: int, which: int
) -> int:
    """Add a point's weight to a row, branch-free; returns it if the entry is ``alone``."""
    row = candidates.row[np.uint32(entry) >> COUNT_BITS]
    candidates.points[np.uint32(row * SUMS + which)] += weight
    return weight * (entry == alone)
