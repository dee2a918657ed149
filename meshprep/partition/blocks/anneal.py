"""Moves boundary elements between blocks: always where it gains, with heat also where it costs.

An element goes to the neighbouring block with the best connectivity gain. While hot, a move that
costs ``c`` is made with probability ``exp(-c / heat)``, blocks may exceed the cap a little, so that
full blocks can exchange elements, and elements are pulled to the middle of their block, which
brings round blocks about; all that fades out, and what is over then leaves first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper, inlined
from ..connectivity import Connectivity, move, neighbours
from .crowding import Crowding, colours_changed, count_move
from .pull import Middles, find_middles, pass_on, pulled

# A move must be better than this, in points, when it is free to be left undone.
LEAST_GAIN = 0.5
# What it costs in points to exceed the cap by an element; what it gains to move from the fullest
# block to an empty one.
OVER_COST = 0.5
EVEN_GAIN = 0.3
# The share of the schedule after which the cap holds, and after which nothing is pulled.
CAP_HOLDS = 0.7
PULL_ENDS = 0.6
# What a pull may add to a score at most when it is guessed, in pulls.
USUAL_PULL = 2.0
HOT_EXCESS = 0.03
# How many sweeps an element is not looked at when it is inside its block, or its best move costs
# more than ``HOPELESS`` times the heat.
REST_INSIDE = 3
REST_UNLIKELY = 2
HOPELESS = 2.5
ALLOWANCES = 4096


class Schedule(NamedTuple):
    """Sweeps ``begin`` to ``end`` of ``total``; heat and pull, in points, are those of the start.

    Heat falls to 0 at ``total``; sweeps from there on only gain. ``colour`` is the price of one
    more thread colour in a block, in points.
    """

    heat: float
    pull: float
    colour: float
    begin: int
    end: int
    total: int


class Now(NamedTuple):
    """What holds in one sweep: the caps, what a point weighs, heat and prices."""

    cap: int
    limit: int
    per_unit: float
    even: float
    heat: float
    pull: float
    colour: float


@helper
def allowances() -> NDArray[np.float64]:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    quantile = np.empty(ALLOWANCES, np.float64)
    for k in range(ALLOWANCES):
        quantile[k] = -math.log((k + 0.5) / ALLOWANCES)
    return quantile


@helper
def anneal(
    state: Connectivity,
    middles: Middles,
    crowding: Crowding | None,
    cap: int,
    unit: float,
    schedule: Schedule,
    seed: int,
) -> int:
    """Sweep over the elements as a schedule has it.

    Parameters
    ----------
    state, middles, crowding
        Changed in place; ``crowding`` is None where colours have no price.
    cap : int
        Largest size of a block; a hot one may exceed it by the share ``HOT_EXCESS``.
    unit : float
        Weight of a typical point.
    schedule : Schedule
    seed : int

    Returns
    -------
    int
        By how much the weighted loads fell.

    Notes
    -----
    O(boundary elements * arity * blocks at a point) a sweep. Never empties a block.
    """
    quantile = allowances()
    random = np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
    gained, total = 0, schedule.total
    rest = np.zeros(state.block.size, np.uint8)
    for sweep in range(schedule.begin, schedule.end):
        left = max(0.0, 1.0 - sweep / total)
        excess = HOT_EXCESS * cap * max(0.0, 1.0 - sweep / (CAP_HOLDS * total))
        pull = schedule.pull * max(0.0, 1.0 - sweep / (PULL_ENDS * total))
        if pull > 0.0:
            find_middles(middles, state.block, state.size)
        now = Now(
            cap,
            cap + int(excess),
            1.0 / unit,
            EVEN_GAIN / cap,
            schedule.heat * left,
            pull,
            schedule.colour,
        )
        if sweep == total:
            rest[:] = 0
        backwards, resting = sweep % 2 == 1, sweep < total
        random, gain, moved = _sweep(
            state, middles, crowding, now, backwards, resting, rest, quantile, random
        )
        gained += gain
        if moved == 0 and sweep >= total:
            break
    return gained


@helper
def _sweep(
    state: Connectivity,
    middles: Middles,
    crowding: Crowding | None,
    now: Now,
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
        home = state.block[i]
        if shared < 0 or state.size[home] == 1:
            rest[i] = REST_INSIDE if resting else 0
            continue
        random ^= random << np.uint64(13)
        random ^= random >> np.uint64(7)
        random ^= random << np.uint64(17)
        draw = quantile[(random >> np.uint64(20)) & np.uint64(ALLOWANCES - 1)]
        allowed = now.heat * draw - LEAST_GAIN
        # Most elements at a boundary lose more inside than they can gain: not looked at closer.
        if shared <= inner and state.size[home] <= now.cap and now.colour == 0.0:
            most = (shared - inner) * now.per_unit + EVEN_GAIN + USUAL_PULL * now.pull
            if most + allowed <= 0.0:
                rest[i] = REST_UNLIKELY if resting else 0
                continue
        target, gain, score = _choose(state, middles, crowding, i, now)
        if target < 0:
            continue
        plain = now.pull == 0.0 and now.colour == 0.0
        forced = state.size[home] > now.limit or (
            plain and gain > 0 and state.size[target] < now.cap
        )
        if forced or score + allowed > 0.0:
            if crowding is not None:
                count_move(crowding, state, i, target)
            if now.pull > 0.0:
                pass_on(middles, state.size, i, home, target)
            move(state, i, target)
            gained += gain
            moved += 1
        elif resting and score < -HOPELESS * now.heat:
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
    state: Connectivity, middles: Middles, crowding: Crowding | None, element: int, now: Now
) -> tuple[int, int, float]:
    """The neighbouring block with the best score, -1 for none; the gain in weight; the score."""
    found, freed, total = neighbours(state, element)
    home = state.block[element]
    home_size = state.size[home]
    best, gain, best_score = -1, 0, -np.inf
    for c in range(found):
        b = state.found_block[c]
        size = state.size[b]
        if size >= now.limit:
            continue
        value = freed - (total - state.found_weight[c])
        score = value * now.per_unit + now.even * (home_size - size)
        if now.pull > 0.0:
            score += now.pull * pulled(middles, element, home, b)
        if crowding is not None:
            score -= now.colour * colours_changed(crowding, state, element, b)
        if size >= now.cap:
            score -= OVER_COST
        if home_size > now.cap:
            score += OVER_COST
        if score > best_score:
            best, gain, best_score = b, value, score
    return best, gain, best_score
