"""Coordinates for a mesh that has none: graph distances from a few elements far apart."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..incidence import transpose


def pivot_coordinates(
    table: NDArray[np.int32], n_points: int, n_pivots: int = 3
) -> NDArray[np.float64]:
    """Distances, in steps from element to element, from ``n_pivots`` elements of each component.

    Each pivot is an element farthest from those before it. Components are set apart along the
    first axis, so that they are cut from each other before they are cut.

    Parameters
    ----------
    table : (n, arity) int32
        With -1 for a point that is named again.
    n_points : int

    Returns
    -------
    (n, n_pivots) float64

    Notes
    -----
    O(n_pivots * n * arity).
    """
    known = table if not table.size or table.min() >= 0 else np.where(table < 0, n_points, table)
    touching = transpose(np.ascontiguousarray(known), n_points + 1)
    return _distances(table, touching.offset, touching.index, n_points, n_pivots)


@njit(cache=True)
def _distances(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    index: NDArray[np.int32],
    n_points: int,
    n_pivots: int,
) -> NDArray[np.float64]:
    n = table.shape[0]
    distance = np.zeros((n, n_pivots), np.float64)
    nearest = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    level = np.full(n, -1, np.int32)
    seen = np.full(n_points, -1, np.int32)
    shift = np.float64(0)
    tick = 0
    for root in range(n):
        if level[root] >= 0:
            continue
        size = _breadth_first(table, offset, index, root, level, queue, seen, tick)
        tick += 1
        nearest[queue[:size]] = n
        pivot, widest = queue[size - 1], 0
        for k in range(n_pivots):
            level[queue[:size]] = -1
            _breadth_first(table, offset, index, pivot, level, queue, seen, tick)
            tick += 1
            for i in queue[:size]:
                distance[i, k] = level[i]
                nearest[i] = min(nearest[i], level[i])
                widest = max(widest, level[i])
            pivot = queue[0]
            for i in queue[:size]:
                if nearest[i] > nearest[pivot]:
                    pivot = i
        distance[queue[:size], 0] += shift
        shift += np.float64(widest + 2)
    return distance


@njit(cache=True)
def _breadth_first(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    index: NDArray[np.int32],
    root: int,
    level: NDArray[np.int32],
    queue: NDArray[np.int32],
    seen: NDArray[np.int32],
    tick: int,
) -> int:
    """Levels from ``root``; each point is opened once. Returns how many elements were reached."""
    queue[0], level[root] = root, 0
    begin, end = 0, 1
    while begin < end:
        i = queue[begin]
        begin += 1
        for j in range(table.shape[1]):
            t = table[i, j]
            if t < 0 or seen[t] == tick:
                continue
            seen[t] = tick
            for p in range(offset[t], offset[t + 1]):
                k = index[p]
                if level[k] < 0:
                    level[k] = level[i] + 1
                    queue[end] = k
                    end += 1
    return end
