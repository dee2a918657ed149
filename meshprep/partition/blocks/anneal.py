"""Simulated annealing of the clusters of a group: moves to neighbouring blocks, at first uphill.

A cluster may go to a block of a neighbour that it shares a facet with. The score of a move is the
weight of points saved, in typical points, less prices for facets cut, for blocks over the cap and
for the distance from a block's centroid. A move that costs ``c`` is made with probability
``exp(-c / temperature)``.
"""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, helper, inlined
from .centroids import Centroids, centroid_term, update_centroids
from .counts import COUNT_BITS, FIRST, ROOM, USED, WEIGHT, Counts, move
from .levels import facets_between
from .looks import RUN, Looks, draw_looks, forget_neighbours, place_in_sweep
from .moves import INSIDE, KEPT, LEAST_GAIN, UNKNOWN, Sweep

# What it gains to move from the fullest block to an empty one. Less lets graded meshes fill some
# regions to the cap, and more costs reuse elsewhere.
EVEN_GAIN = 0.7
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
    enough (:mod:`looks`). Moves into full blocks are offered (:mod:`exchange`).
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
