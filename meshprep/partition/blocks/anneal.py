"""Simulated annealing: moves boundary elements between blocks, at first also where it costs.

An element goes to the neighbouring block with the best connectivity gain. A move that costs ``c``
is made with probability ``exp(-c / temperature)``. While the temperature is high, blocks may exceed
the cap a little, so that full blocks can exchange elements, and a term draws elements to the
centroid of their block, which makes blocks round. Both fade out; then blocks over the cap lose
elements first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper, inlined
from ..connectivity import Connectivity, move, neighbours
from .centroids import Centroids, centroid_term, find_centroids, update_centroids
from .point_degrees import DegreeCounts, colours_changed, count_move

# A move must be better than this, in points, when it is free to be left undone.
LEAST_GAIN = 0.5
# What it costs in points to exceed the cap by an element; what it gains to move from the fullest
# block to an empty one.
OVER_COST = 0.5
EVEN_GAIN = 0.3
# The share of the schedule after which the cap holds, and after which the
# centroid term is 0.
CAP_HOLDS = 0.7
CENTROID_TERM_ENDS = 0.6
# Upper bound of the centroid term, used to skip elements early, in multiples of its weight.
USUAL_CENTROID_TERM = 2.0
HOT_EXCESS = 0.03
# How many sweeps an element is not looked at when it is inside its block, or its best move costs
# more than ``HOPELESS`` times the temperature.
REST_INSIDE = 3
REST_UNLIKELY = 2
HOPELESS = 2.5
THRESHOLDS = 4096


class AnnealingSchedule(NamedTuple):
    """Sweeps ``begin`` to ``end`` of ``total``; temperature and centroid weight of sweep 0.

    These two are in points. The temperature falls to 0 at ``total``; sweeps from there on only
    gain. ``colour`` is the price of one more thread colour in a block, in points.
    """

    temperature: float
    centroid_weight: float
    colour: float
    begin: int
    end: int
    total: int


class SweepParameters(NamedTuple):
    """What holds in one sweep: the caps, what a point weighs, temperature and prices."""

    cap: int
    limit: int
    per_unit: float
    even: float
    temperature: float
    centroid_weight: float
    colour: float


@helper
def acceptance_thresholds() -> NDArray[np.float64]:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    quantile = np.empty(THRESHOLDS, np.float64)
    for k in range(THRESHOLDS):
        quantile[k] = -math.log((k + 0.5) / THRESHOLDS)
    return quantile


@helper
def anneal(
    state: Connectivity,
    centroids: Centroids,
    degrees: DegreeCounts | None,
    cap: int,
    unit: float,
    schedule: AnnealingSchedule,
    seed: int,
) -> int:
    """Sweep over the elements as a schedule has it.

    Parameters
    ----------
    state, centroids, degrees
        Changed in place; ``degrees`` is None where colours have no price.
    cap : int
        Largest size of a block; a hot one may exceed it by the share ``HOT_EXCESS``.
    unit : float
        Weight of a typical point.
    schedule : AnnealingSchedule
    seed : int

    Returns
    -------
    int
        By how much the weighted loads fell.

    Notes
    -----
    O(boundary elements * arity * blocks at a point) a sweep. Never empties a block.
    """
    quantile = acceptance_thresholds()
    random = np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
    gained, total = 0, schedule.total
    rest = np.zeros(state.block.size, np.uint8)
    for sweep in range(schedule.begin, schedule.end):
        left = max(0.0, 1.0 - sweep / total)
        excess = HOT_EXCESS * cap * max(0.0, 1.0 - sweep / (CAP_HOLDS * total))
        centroid_weight = schedule.centroid_weight * max(
            0.0, 1.0 - sweep / (CENTROID_TERM_ENDS * total)
        )
        if centroid_weight > 0.0:
            find_centroids(centroids, state.block, state.size)
        parameters = SweepParameters(
            cap,
            cap + int(excess),
            1.0 / unit,
            EVEN_GAIN / cap,
            schedule.temperature * left,
            centroid_weight,
            schedule.colour,
        )
        if sweep == total:
            rest[:] = 0
        backwards, resting = sweep % 2 == 1, sweep < total
        random, gain, moved = _sweep(
            state, centroids, degrees, parameters, backwards, resting, rest, quantile, random
        )
        gained += gain
        if moved == 0 and sweep >= total:
            break
    return gained


@helper
def _sweep(
    state: Connectivity,
    centroids: Centroids,
    degrees: DegreeCounts | None,
    parameters: SweepParameters,
    backwards: bool,
    resting: bool,
    rest: NDArray[np.uint8],
    quantile: NDArray[np.float64],
    random: np.uint64,
) -> tuple[np.uint64, int, int]:
    n = state.block.size
    gained, moved = 0, 0
    for k in range(n):
        i = n - 1 - k if backwards else k
        if rest[i] > 0:
            rest[i] -= 1
            continue
        shared, inner = _shared_and_inner(state, i)
        source = state.block[i]
        if shared < 0 or state.size[source] == 1:
            rest[i] = REST_INSIDE if resting else 0
            continue
        random ^= random << np.uint64(13)
        random ^= random >> np.uint64(7)
        random ^= random << np.uint64(17)
        draw = quantile[(random >> np.uint64(20)) & np.uint64(THRESHOLDS - 1)]
        threshold = parameters.temperature * draw - LEAST_GAIN
        # Most elements at a boundary lose more inside than they can gain: not looked at closer.
        if shared <= inner and state.size[source] <= parameters.cap and parameters.colour == 0.0:
            most = (
                (shared - inner) * parameters.per_unit
                + EVEN_GAIN
                + USUAL_CENTROID_TERM * parameters.centroid_weight
            )
            if most + threshold <= 0.0:
                rest[i] = REST_UNLIKELY if resting else 0
                continue
        target, gain, score = _choose(state, centroids, degrees, i, parameters)
        if target < 0:
            continue
        plain = parameters.centroid_weight == 0.0 and parameters.colour == 0.0
        forced = state.size[source] > parameters.limit or (
            plain and gain > 0 and state.size[target] < parameters.cap
        )
        if forced or score + threshold > 0.0:
            if degrees is not None:
                count_move(degrees, state, i, target)
            if parameters.centroid_weight > 0.0:
                update_centroids(centroids, state.size, i, source, target)
            move(state, i, target)
            gained += gain
            moved += 1
        elif resting and score < -HOPELESS * parameters.temperature:
            rest[i] = REST_UNLIKELY
    return random, gained, moved


@inlined
def _shared_and_inner(state: Connectivity, element: int) -> tuple[int, int]:
    """Weight of an element's points at a boundary, and of the others; (-1, 0) where none is."""
    shared, inner, found = 0, 0, False
    for j in range(state.table.shape[1]):
        t = state.table[element, j]
        if t >= 0:
            if state.used[t] > 1:
                shared += state.weight[t]
                found = True
            else:
                inner += state.weight[t]
    return (shared, inner) if found else (-1, 0)


@inlined
def _choose(
    state: Connectivity,
    centroids: Centroids,
    degrees: DegreeCounts | None,
    element: int,
    parameters: SweepParameters,
) -> tuple[int, int, float]:
    """The neighbouring block with the best score, -1 for none; the gain in weight; the score."""
    found, freed, total = neighbours(state, element)
    source = state.block[element]
    source_size = state.size[source]
    best, gain, best_score = -1, 0, -np.inf
    for c in range(found):
        b = state.found_block[c]
        size = state.size[b]
        if size >= parameters.limit:
            continue
        value = freed - (total - state.found_weight[c])
        score = value * parameters.per_unit + parameters.even * (source_size - size)
        if parameters.centroid_weight > 0.0:
            score += parameters.centroid_weight * centroid_term(centroids, element, source, b)
        if degrees is not None:
            score -= parameters.colour * colours_changed(degrees, state, element, b)
        if size >= parameters.cap:
            score -= OVER_COST
        if source_size > parameters.cap:
            score += OVER_COST
        if score > best_score:
            best, gain, best_score = b, value, score
    return best, gain, best_score
