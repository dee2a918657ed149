"""Simulated annealing of the clusters of a group: moves to neighbouring blocks, at first uphill.

A cluster may go to a block of a neighbour that it shares a facet with. The score of a move is the
weight of points saved, in typical points, less prices for facets cut, for blocks over the cap and
for the distance from a block's centroid. A move that costs ``c`` is made with probability
``exp(-c / temperature)``.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, helper, inlined
from .centroids import Centroids, centroid_term, update_centroids
from .counts import COUNT_BITS, FIRST, ROOM, USED, WEIGHT, Counts, move
from .levels import facets_between
from .moves import INSIDE, KEPT, LEAST_GAIN, UNKNOWN, MoveMemory, Sweep
from .point_degrees import DegreeCounts, colours_changed, count_move, soften

# What it gains to move from the fullest block to an empty one. Less lets graded meshes fill some
# regions to the cap, and more costs reuse elsewhere.
EVEN_GAIN = 0.7
# What an element costs that a block lacks, by the price of one over the cap. A small block would
# dissolve at the price of one: its border costs more than it has inside.
LACK = 4
# The best score of a cluster holds until a neighbour moves, and for so many sweeps at most: sizes
# and prices change, and with colours more than that.
HOLDS, HOLDS_WITH_COLOURS = 8, 2
THRESHOLDS = 4096
# Blocks around a cluster that are looked at, its own one first; the place of all others.
NOWHERE = 65
COPIES = 4
TOGETHER = 256


class Candidates(NamedTuple):
    """Scratch: a cluster's block and those beside it, its points and facets there.

    ``place`` is where each block is, and that of no block; ``NOWHERE`` between two clusters, when
    points and facets are 0.
    """

    block: Int32s
    points: Int64s
    facets: Int64s
    place: Int32s


@helper
def acceptance_thresholds() -> Float64s:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    quantile = np.empty(THRESHOLDS, np.float64)
    for k in range(THRESHOLDS):
        quantile[k] = -math.log((k + 0.5) / THRESHOLDS)
    return quantile


@helper
def new_candidates(n_blocks: int) -> Candidates:
    """Scratch for a group with so many blocks."""
    place = np.full(n_blocks + 1, NOWHERE, np.int32)
    points = np.zeros((NOWHERE + 1) * COPIES, np.int64)
    facets = np.zeros(NOWHERE + 1, np.int64)
    return Candidates(np.empty(NOWHERE + 1, np.int32), points, facets, place)


@inlined
def sweep_over(
    state: Counts,
    centroids: Centroids,
    degrees: DegreeCounts | None,
    sweep: Sweep,
    number: int,
    memory: MoveMemory,
    found_there: Candidates,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Give every cluster a chance to move; returns the next random state and the moves.

    What a move may cost is drawn first, so that clusters are looked at only where that may be
    enough. Moves into full blocks are offered (:mod:`exchange`), but where colours have a price.
    O(clusters at a boundary + those looked at * points * blocks at a point). Never empties a block.
    """
    n, moved = state.block.size, 0
    if degrees is not None:
        soften(degrees, sweep.softness)
    best, looks, draws = memory.best, memory.looks, memory.draws
    holds = HOLDS if degrees is None else HOLDS_WITH_COLOURS
    count, listed, next_one, begin = 0, 0, 0, 0
    while True:
        if next_one == count:
            if begin == n:
                break
            random, count = _choose_looks(n, begin, sweep, number, holds, memory, random)
            begin, next_one, listed = min(n, begin + TOGETHER), 0, count
            _ask_ahead(state, memory, count)
            continue
        i, draw = looks[next_one], draws[next_one]
        next_one += 1
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
            for z in range(COPIES):
                value += found_there.points[np.uint32(c * COPIES + z)]
                found_there.points[np.uint32(c * COPIES + z)] = 0
            new = value * sweep.per_unit + sweep.facet * (found_there.facets[c] - inner)
            found_there.facets[c] = 0
            if sweep.pull > 0.0:
                new += sweep.pull * centroid_term(centroids, i, source, b)
            if degrees is None and after > cap and new > wish:
                full, wish = b, new
            if after > _limit(cap, sweep):
                continue
            new += price + sweep.even * weight * (fullness - after / cap)
            new += weight * (state.pressure[source] - state.pressure[b])
            over = min(weight, max(0, after - cap))
            over -= LACK * min(weight, max(0, state.least[b] - state.size[b]))
            new -= sweep.over * over
            if degrees is not None:
                risen = colours_changed(degrees, state, i, b, sweep.softness)
                new -= sweep.colour * risen
            if new > score:
                target, gain, score = b, value, new
        known = (target >= 0 or full >= 0) and stays > 0
        best[i] = max(score, wish) if known else UNKNOWN
        if not known:
            continue
        clear = sweep.temperature == 0.0 and gain > 0 and score > 0.0
        forced = state.size[source] > _limit(source_cap, sweep)
        if target >= 0 and (forced or clear or score + allowed > LEAST_GAIN):
            if degrees is not None:
                count_move(degrees, state, i, target)
            if sweep.pull > 0.0:
                update_centroids(centroids, state.size, i, weight, source, target)
            move(state, i, target)
            best[i] = UNKNOWN
            for s in range(state.offset[i], state.offset[i + 1]):
                j = state.neighbours[s]
                at = n - 1 - j if number % 2 == 1 else j
                place = n - 1 - i if number % 2 == 1 else i
                if (best[j] != UNKNOWN) & (at > place) & (at < begin) & (next_one <= listed):
                    random = _next_random(random)
                    looks[count], draws[count] = j, _draw(memory, random)
                    count += 1
                best[j] = UNKNOWN
            moved += 1
        elif full >= 0 and wish + allowed > LEAST_GAIN:
            at = memory.made[source] & (KEPT - 1)
            memory.offered[source, at], memory.target[source, at] = i, full
            memory.draw[source, at] = draw
            memory.made[source] += 1
    return random, moved


@inlined
def _choose_looks(
    n: int, begin: int, sweep: Sweep, number: int, holds: int, memory: MoveMemory, random: np.uint64
) -> tuple[np.uint64, int]:
    """The clusters of a run that are to be looked at; the next random state and their number."""
    best, looks, draws = memory.best, memory.looks, memory.draws
    at_border, count = 0, 0
    for k in range(begin, min(n, begin + TOGETHER)):
        i: Any = np.uint32(n - 1 - k if number % 2 == 1 else k)
        looks[at_border] = i
        at_border += best[i] != INSIDE
    for k in range(at_border):
        i = looks[k]
        random = _next_random(random)
        looks[count], draws[count] = i, _draw(memory, random)
        count += (best[i] + sweep.temperature * draws[count] > LEAST_GAIN) | (
            (i + number) % holds == 0
        )
    for k in range(count):
        best[looks[k]] = UNKNOWN
    return random, count


@inlined
def _next_random(random: np.uint64) -> np.uint64:
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


@inlined
def _draw(memory: MoveMemory, random: np.uint64) -> float:
    return memory.quantile[(random >> np.uint64(20)) & np.uint64(THRESHOLDS - 1)]


@inlined
def _ask_ahead(state: Counts, memory: MoveMemory, count: int) -> None:
    """Ask for the lists of the points of the clusters that are looked at next."""
    read = 0
    for k in range(count):
        i = memory.looks[k]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            read += state.lists[state.points[s] + FIRST]
    memory.looks[2 * TOGETHER] = read


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
def _weigh(found_there: Candidates, entry: int, weight: int, alone: int, copy: int) -> int:
    """Weigh a point in the block of an entry; returns its weight where that is ``alone``.

    Nothing is asked of the block, since no processor guesses the answer: there is a place for
    blocks that were not found.
    """
    at = found_there.place[np.uint32(entry) >> COUNT_BITS]
    found_there.points[np.uint32(at * COPIES + copy)] += weight
    return weight * (entry == alone)
