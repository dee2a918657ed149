"""Moves of clusters between blocks: their score, and exchanges between full blocks."""

from typing import NamedTuple

import numpy as np

from ....kernels import Float32s, Int32s, helper, inlined
from ..counts import COUNT_BITS, FIRST, MOST, USED, WEIGHT, Counts, move
from ..levels import facets_between
from .centroids import Centroids, centroid_term, update_centroids

# Least score of an accepted move, in points.
LEAST_GAIN = 0.1
# Latest offers that a block keeps, a power of two.
KEPT = 16
# Scores of a cluster that must be evaluated, and of one whose neighbours are all in its block.
UNKNOWN, INSIDE = np.float32(np.inf), np.float32(-np.inf)


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


class MoveMemory(NamedTuple):
    """Scores and offers that last from sweep to sweep.

    ``best`` (clusters,) is the score of the best move of each when it was last evaluated; caps do
    not count. ``offered`` (n_blocks, KEPT) has clusters of each block that would go to the full
    block ``target``, -1 for none; such a move may cost ``draw`` times the temperature. ``made``
    (n_blocks,) counts all offers, ``done`` those that were tried.
    """

    best: Float32s
    offered: Int32s
    target: Int32s
    draw: Float32s
    made: Int32s
    done: Int32s


@helper
def new_memory(state: Counts) -> MoveMemory:
    """Memory without offers, in which boundary clusters are unknown. O(facets)."""
    n_blocks, best = state.size.size, np.full(state.block.size, INSIDE, np.float32)
    for i in range(best.size):
        for s in range(state.offset[i], state.offset[i + 1]):
            if state.block[state.neighbours[s]] != state.block[i]:
                best[i] = UNKNOWN
    return MoveMemory(
        best,
        np.full((n_blocks, KEPT), -1, np.int32),
        np.empty((n_blocks, KEPT), np.int32),
        np.empty((n_blocks, KEPT), np.float32),
        np.zeros(n_blocks, np.int32),
        np.zeros(n_blocks, np.int32),
    )


@helper
def invalidate_scores(memory: MoveMemory) -> None:
    """Make the scores of all boundary clusters unknown."""
    for i in range(memory.best.size):
        if memory.best[i] != INSIDE:
            memory.best[i] = UNKNOWN


@inlined
def score_of(state: Counts, centroids: Centroids, sweep: Sweep, cluster: int, target: int) -> float:
    """The score of a move without prices of sizes; -inf if the target is not adjacent."""
    home, cut, joined, weight_gained = state.block[cluster], 0, 0, 0
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        b = state.block[state.neighbours[s]]
        cut += facets_between(state, s) if b == home else 0
        joined += facets_between(state, s) if b == target else 0
    if joined == 0:
        return -np.inf
    for s in range(state.point_offset[cluster], state.point_offset[cluster + 1]):
        p = state.points[s]
        weight = state.lists[p + WEIGHT]
        weight_gained -= weight
        for z in range(p + FIRST, p + FIRST + state.lists[p + USED]):
            b = state.lists[z] >> COUNT_BITS
            if b == target or (b == home and state.lists[z] & MOST == 1):
                weight_gained += weight
    score = weight_gained * sweep.per_unit + sweep.facet * (joined - cut)
    if sweep.pull > 0.0:
        score += sweep.pull * centroid_term(centroids, cluster, home, target)
    return score


# Most blocks are at the cap or near it. A cluster that may not move into a full block is kept as an
# offer, and moves if an older offer of that block can leave for where the cluster comes from, or
# for a block with room. Each of the two moves must be allowed by itself, so that annealing goes on
# as if there were no caps.
@inlined
def exchange(state: Counts, centroids: Centroids, sweep: Sweep, memory: MoveMemory) -> int:
    """Exchange clusters of full blocks that were offered; returns the number of exchanges."""
    moved = 0
    for source in range(state.size.size):
        end = memory.made[source]
        for n in range(max(memory.done[source], end - KEPT), end):
            offer = n & (KEPT - 1)
            cluster, full = memory.offered[source, offer], memory.target[source, offer]
            if cluster < 0 or state.block[cluster] != source:
                continue
            weight = state.weight[cluster]
            if state.size[source] == weight:
                continue
            spare = state.size[source] - weight >= state.least[source]
            for k in range(KEPT):
                other, target = memory.offered[full, k], memory.target[full, k]
                if other < 0 or state.block[other] != full or state.weight[other] != weight:
                    continue
                room = spare and state.size[target] + weight <= state.cap[target]
                if target != source and not room:
                    continue
                allowed = sweep.temperature * memory.draw[full, k]
                memory.offered[full, k] = -1
                if score_of(state, centroids, sweep, other, target) + allowed <= LEAST_GAIN:
                    continue
                allowed = sweep.temperature * memory.draw[source, offer]
                memory.offered[source, offer] = -1
                if score_of(state, centroids, sweep, cluster, full) + allowed <= LEAST_GAIN:
                    break
                for step in range(2):
                    moves, block = (cluster, full) if step == 0 else (other, target)
                    if sweep.pull > 0.0:
                        update_centroids(
                            centroids, state.size, moves, weight, state.block[moves], block
                        )
                    move(state, moves, block)
                    memory.best[moves] = UNKNOWN
                    for s in range(state.offset[moves], state.offset[moves + 1]):
                        memory.best[state.neighbours[s]] = UNKNOWN
                moved += 1
                break
        memory.done[source] = end
    return moved
