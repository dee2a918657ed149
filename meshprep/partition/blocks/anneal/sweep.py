"""Simulated annealing of the clusters of a group: moves to neighbouring blocks, at first uphill.

A cluster may go to a block of a neighbour that it shares a facet with. The score of a move is the
weight of points saved, in typical points, less prices for facets cut, for blocks over the cap and
for the distance from a block's centroid. A move that costs ``c`` is made with probability
``exp(-c / temperature)``.
"""

from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float64s, Int32s, Int64s, UInt32s, helper, inlined
from ....kernels.arithmetic import log
from ..counts import COUNT_BITS, FIRST, ROOM, USED, WEIGHT, Counts, move
from ..levels import facets_between
from .centroids import Centroids, centroid_term, update_centroids
from .moves import INSIDE, KEPT, LEAST_GAIN, UNKNOWN, MoveMemory, Sweep

# Most clusters beside other blocks are passed over, and a processor guesses badly which. So a run
# of them is drawn without a branch, and the lists of the points of those drawn are read at once:
# one by one, each look would wait for memory.
THRESHOLDS = 4096
# Clusters of a run.
RUN = 256

# the same for kernels
_log = inlined(log)


class Looks(NamedTuple):
    """The clusters of a run that are looked at, each once, and what is drawn for each.

    What a move may cost is that times the temperature. ``quantile`` is what is drawn from, and
    ``memory`` has the scores. Nobody reads ``ready`` (1,): without it, a compiler would leave out
    what makes memory ready.
    """

    cluster: UInt32s
    draw: Float64s
    quantile: Float64s
    ready: Int64s
    memory: MoveMemory


@helper
def new_looks(memory: MoveMemory, quantile: Float64s) -> Looks:
    """Room for a run, and for one more, which is written before it is known to be looked at."""
    cluster, draw = np.empty(RUN + 1, np.uint32), np.empty(RUN + 1, np.float64)
    return Looks(cluster, draw, quantile, np.zeros(1, np.int64), memory)


@helper
def acceptance_thresholds() -> Float64s:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    quantile = np.empty(THRESHOLDS, np.float64)
    for k in range(THRESHOLDS):
        quantile[k] = -_log((k + 0.5) / THRESHOLDS)
    return quantile


@inlined
def draw_looks(
    state: Counts,
    looks: Looks,
    sweep: Sweep,
    number: int,
    holds: int,
    begin: int,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Draw for the run from place ``begin`` of sweep ``number``; the random state, how many.

    A cluster is looked at where what is drawn and its score may be enough, and in every
    ``holds``-th sweep. Its score is unknown from then on. O(clusters of the run + points of those
    looked at).
    """
    n, best, at_border, count = state.block.size, looks.memory.best, 0, 0
    for place in range(begin, min(n, begin + RUN)):
        i: Any = np.uint32(place_in_sweep(n, place, number))
        looks.cluster[at_border] = i
        at_border += best[i] != INSIDE
    for k in range(at_border):
        i = looks.cluster[k]
        looks.cluster[count] = i
        random = _draw(looks, count, random)
        enough = best[i] + sweep.temperature * looks.draw[count] > LEAST_GAIN
        count += enough | ((i + number) % holds == 0)
    for k in range(count):
        best[looks.cluster[k]] = UNKNOWN
    read = 0
    for k in range(count):
        i = looks.cluster[k]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            read += state.lists[state.points[s] + FIRST]
    looks.ready[0] = read
    return random, count


@inlined
def place_in_sweep(n: int, cluster: int, number: int) -> int:
    """When a cluster's turn is, or whose turn it is: every second sweep runs backwards."""
    return n - 1 - cluster if number % 2 == 1 else cluster


@inlined
def forget_neighbours(
    state: Counts,
    looks: Looks,
    cluster: int,
    ahead: tuple[int, int],
    number: int,
    count: int,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """The scores of a moved cluster and its neighbours are unknown; those ``ahead`` are looked at.

    These have their turn from one place up to another, and are entered behind the ``count`` ones
    that are there. Returns the random state and the new count.
    """
    n, best = state.block.size, looks.memory.best
    best[cluster] = UNKNOWN
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        j = state.neighbours[s]
        place = place_in_sweep(n, j, number)
        if (best[j] != UNKNOWN) & (place >= ahead[0]) & (place < ahead[1]):
            looks.cluster[count] = j
            random = _draw(looks, count, random)
            count += 1
        best[j] = UNKNOWN
    return random, count


@inlined
def _draw(looks: Looks, k: int, random: np.uint64) -> np.uint64:
    """Draw for the ``k``-th cluster; returns the next random state."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    looks.draw[k] = looks.quantile[(random >> np.uint64(20)) & np.uint64(THRESHOLDS - 1)]
    return random


# What an element costs that a block lacks, by the price of one over the cap. A small block would
# dissolve at the price of one: its border costs more than it has inside.
LACK = 4
# The best score of a cluster holds until a neighbour moves, and for so many sweeps at most: sizes
# and prices change.
HOLDS = 8
# Blocks around a cluster that are looked at, its own one first; the place of all others.
NOWHERE = 65
# What is added up in so many sums, since an addition to a number waits for the one before: one for
# each entry of a list that is read in any case, and one for the others.
SUMS = ROOM + 1


class Candidates(NamedTuple):
    """Scratch: a cluster's block and those beside it, its points, in ``SUMS``, and facets there.

    ``place`` is where each block is, and that of no block; ``NOWHERE`` between two clusters, when
    points and facets are 0.
    """

    block: Int32s
    points: Int64s
    facets: Int64s
    place: Int32s


@helper
def new_candidates(n_blocks: int) -> Candidates:
    """Scratch for a group with so many blocks."""
    place = np.full(n_blocks + 1, NOWHERE, np.int32)
    points = np.zeros((NOWHERE + 1) * SUMS, np.int64)
    facets = np.zeros(NOWHERE + 1, np.int64)
    return Candidates(np.empty(NOWHERE + 1, np.int32), points, facets, place)


@inlined
def sweep_over(
    state: Counts,
    centroids: Centroids,
    sweep: Sweep,
    number: int,
    looks: Looks,
    found_there: Candidates,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Give every cluster a chance to move; returns the next random state and the moves.

    What a move may cost is drawn first, so that clusters are looked at only where that may be
    enough. Moves into full blocks are offered (:func:`moves.exchange`).
    O(clusters at a boundary + those looked at * points * blocks at a point). Never empties a block.
    """
    n, moved = state.block.size, 0
    memory, best = looks.memory, looks.memory.best
    end, count, drawn, k = 0, 0, 0, 0
    while k < count or end < n:
        if k == count:
            random, drawn = draw_looks(state, looks, sweep, number, HOLDS, end, random)
            end, count, k = min(n, end + RUN), drawn, 0
            continue
        i, draw = looks.cluster[k], looks.draw[k]
        k += 1
        allowed = sweep.temperature * draw
        found = _beside(state, found_there, i)
        if found == 1:
            best[i] = INSIDE
            found_there.place[state.block[i]], found_there.facets[0] = NOWHERE, 0
            continue
        source, weight = state.block[i], state.weight[i]
        lost = _share_points(state, found_there, i)
        target, gain, score = -1, 0, -np.inf
        full, wish = -1, -np.inf
        source_cap, stays = state.cap[source], state.size[source] - weight
        over = min(weight, max(0, state.size[source] - source_cap))
        over -= LACK * min(weight, max(0, state.least[source] - stays))
        price, fullness = sweep.over * over, state.size[source] / source_cap
        inner = found_there.facets[0]
        found_there.place[source], found_there.facets[0] = NOWHERE, 0
        for c in range(1, found):
            b = found_there.block[c]
            found_there.place[b] = NOWHERE
            after, cap = state.size[b] + weight, state.cap[b]
            value = -lost
            for z in range(SUMS):
                value += found_there.points[np.uint32(c * SUMS + z)]
                found_there.points[np.uint32(c * SUMS + z)] = 0
            new = value * sweep.per_unit + sweep.facet * (found_there.facets[c] - inner)
            found_there.facets[c] = 0
            if sweep.pull > 0.0:
                new += sweep.pull * centroid_term(centroids, i, source, b)
            if after > cap and new > wish:
                full, wish = b, new
            if after > _limit(cap, sweep):
                continue
            new += price + sweep.even * weight * (fullness - after / cap)
            new += weight * (state.pressure[source] - state.pressure[b])
            over = min(weight, max(0, after - cap))
            over -= LACK * min(weight, max(0, state.least[b] - state.size[b]))
            new -= sweep.over * over
            if new > score:
                target, gain, score = b, value, new
        known = (target >= 0 or full >= 0) and stays > 0
        best[i] = max(score, wish) if known else UNKNOWN
        if not known:
            continue
        clear = sweep.temperature == 0.0 and gain > 0 and score > 0.0
        forced = state.size[source] > _limit(source_cap, sweep)
        if target >= 0 and (forced or clear or score + allowed > LEAST_GAIN):
            if sweep.pull > 0.0:
                update_centroids(centroids, state.size, i, weight, source, target)
            move(state, i, target)
            # of those that were entered late, neighbours wait for the next sweep
            after_it = place_in_sweep(n, i, number) + 1 if k <= drawn else end
            random, count = forget_neighbours(
                state, looks, i, (after_it, end), number, count, random
            )
            moved += 1
        elif full >= 0 and wish + allowed > LEAST_GAIN:
            at = memory.made[source] & (KEPT - 1)
            memory.offered[source, at], memory.target[source, at] = i, full
            memory.draw[source, at] = draw
            memory.made[source] += 1
    return random, moved


@inlined
def _limit(cap: int, sweep: Sweep) -> int:
    """The most elements that a block may have in a sweep."""
    return cap + int(sweep.excess * cap)


@inlined
def _beside(state: Counts, found_there: Candidates, cluster: int) -> int:
    """Find the blocks that a cluster has facets with, its own one first; their number."""
    block, facets, place = found_there.block, found_there.facets, found_there.place
    found = 1
    place[state.block[cluster]] = 0
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        b = state.block[state.neighbours[s]]
        fresh = place[b] == NOWHERE and found < NOWHERE
        at = found if fresh else place[b]
        facets[at] += facets_between(state, s)
        block[at], place[b] = b, at
        found += fresh
    return found


@inlined
def _share_points(state: Counts, found_there: Candidates, cluster: int) -> int:
    """Weigh the cluster's points in each block found; returns what stays behind at home."""
    lists, lost = state.lists, 0
    alone = (state.block[cluster] << COUNT_BITS) + 1
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        p = state.points[s]
        weight = lists[p + WEIGHT]
        lost += weight
        for z in range(ROOM):
            lost -= _weigh(found_there, lists[p + FIRST + z], weight, alone, z)
        for z in range(FIRST + ROOM, FIRST + lists[p + USED]):
            lost -= _weigh(found_there, lists[p + z], weight, alone, ROOM)
    return lost


@inlined
def _weigh(found_there: Candidates, entry: int, weight: int, alone: int, which: int) -> int:
    """Weigh a point in the block of an entry; returns its weight where that is ``alone``.

    Nothing is asked of the block, since no processor guesses the answer: there is a place for
    blocks that were not found.
    """
    at = found_there.place[np.uint32(entry) >> COUNT_BITS]
    found_there.points[np.uint32(at * SUMS + which)] += weight
    return weight * (entry == alone)
