"""Moves boundary elements between blocks: always where it gains, with heat also where it costs.

An element goes to the neighbouring block with the best connectivity gain. While hot, a move that
costs ``c`` is made with probability ``exp(-c / heat)``, and blocks may exceed the cap a little, so
that full blocks can exchange elements; both fade out, and what is over then leaves first.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .connectivity import Connectivity, move, neighbours

# A move must be better than this, in points, when it is free to be left undone.
LEAST_GAIN = 0.5
# What it costs in points to exceed the cap by an element; what it gains to move from the fullest
# block to an empty one.
OVER_COST = 0.5
EVEN_GAIN = 0.3
# The share of the schedule after which the cap holds.
CAP_HOLDS = 0.7
HOT_EXCESS = 0.03
ALLOWANCES = 4096


@njit(cache=True)
def allowances() -> NDArray[np.float64]:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    quantile = np.empty(ALLOWANCES)
    for k in range(ALLOWANCES):
        quantile[k] = -math.log((k + 0.5) / ALLOWANCES)
    return quantile


@njit(cache=True)
def anneal(
    state: Connectivity,
    cap: int,
    unit: float,
    heat: float,
    begin: int,
    end: int,
    total: int,
    seed: int,
) -> int:
    """Sweep over the elements, ``begin`` to ``end`` of a schedule of ``total`` sweeps.

    Parameters
    ----------
    state : Connectivity
        Changed in place.
    cap : int
        Largest size of a block; a hot one may exceed it by the share ``HOT_EXCESS``.
    unit : float
        Weight of a typical point.
    heat : float
        At the start of the schedule, in typical points; it falls to 0 at its end, and sweeps from
        there on only gain.
    begin, end, total : int
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
    gained = 0
    for sweep in range(begin, end):
        left = max(0.0, 1.0 - sweep / total)
        limit = cap + int(HOT_EXCESS * cap * max(0.0, 1.0 - sweep / (CAP_HOLDS * total)))
        random, gain, moved = _sweep(
            state, cap, limit, unit, heat * left, sweep % 2 == 1, quantile, random
        )
        gained += gain
        if moved == 0 and sweep >= total:
            break
    return gained


@njit(cache=True)
def _sweep(
    state: Connectivity,
    cap: int,
    limit: int,
    unit: float,
    heat: float,
    backwards: bool,
    quantile: NDArray[np.float64],
    random: np.uint64,
) -> tuple[np.uint64, int, int]:
    n = state.block.size
    gained, moved = 0, 0
    per_unit, even = 1.0 / unit, EVEN_GAIN / cap
    for k in range(n):
        i = n - 1 - k if backwards else k
        if not _on_boundary(state, i) or state.size[state.block[i]] == 1:
            continue
        target, gain, score = _choose(state, i, cap, limit, per_unit, even)
        if target < 0:
            continue
        random ^= random << np.uint64(13)
        random ^= random >> np.uint64(7)
        random ^= random << np.uint64(17)
        draw = quantile[(random >> np.uint64(20)) & np.uint64(ALLOWANCES - 1)]
        forced = state.size[state.block[i]] > limit or (gain > 0 and state.size[target] < cap)
        if forced or score + heat * draw > LEAST_GAIN:
            move(state, i, target)
            gained += gain
            moved += 1
    return random, gained, moved


@njit(cache=True, inline="always")
def _on_boundary(state: Connectivity, element: int) -> bool:
    for j in range(state.table.shape[1]):
        t = state.table[element, j]
        if t >= 0 and state.used[t] > 1:
            return True
    return False


@njit(cache=True, inline="always")
def _choose(
    state: Connectivity, element: int, cap: int, limit: int, per_unit: float, even: float
) -> tuple[int, int, float]:
    """The neighbouring block with the best score, -1 for none; the gain in weight; the score."""
    found, freed, total = neighbours(state, element)
    home = state.size[state.block[element]]
    best, gain, best_score = -1, 0, -np.inf
    for c in range(found):
        b = state.found_block[c]
        size = state.size[b]
        if size >= limit:
            continue
        value = freed - (total - state.found_weight[c])
        score = value * per_unit + even * (home - size)
        if size >= cap:
            score -= OVER_COST
        if home > cap:
            score += OVER_COST
        if score > best_score:
            best, gain, best_score = b, value, score
    return best, gain, best_score
