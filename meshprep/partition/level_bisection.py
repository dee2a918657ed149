"""Recursive bisection of a mesh without coordinates: cuts halfway between two far ends."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from ..incidence import transpose
from .bisection import descend, select

MAX_WORKERS = 8
SMOOTHING = 12


def bisect_by_levels(table: NDArray[np.int32], n_points: int, n_blocks: int) -> NDArray[np.int32]:
    """Cut elements into ``n_blocks`` parts whose sizes differ by at most one or two.

    A part is cut by the difference of the graph distances from two of its ends, component after
    component, so that parts which do not hang together come apart first.

    Parameters
    ----------
    table : (n, arity) int32
        With -1 for a point that is named again.
    n_points : int
    n_blocks : int
        From 1 to n, or anything where n is 0.

    Returns
    -------
    (n,) int32
        Parts are numbered along the tree.

    Notes
    -----
    O(n arity log n_blocks); the same result for any number of threads.
    """
    part = np.zeros(table.shape[0], dtype=np.int32)
    if n_blocks > 1 and part.size:
        touching = transpose(np.where(table < 0, n_points, table).astype(np.int32), n_points + 1)
        workers = min(MAX_WORKERS, get_num_threads())
        _bisect(table, touching.offset, touching.index, n_points, n_blocks, workers, part)
    return part


@njit(cache=True, parallel=True)
def _bisect(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    index: NDArray[np.int32],
    n_points: int,
    n_blocks: int,
    workers: int,
    part: NDArray[np.int32],
) -> None:
    n = part.size
    order = np.arange(n).astype(np.int32)
    owner = np.zeros(n, np.int32)
    level = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    key = np.empty(n, np.float64)
    seen = np.zeros((workers, n_points), np.int64)
    mean = np.zeros((workers, n_points), np.float64)
    count_at = np.zeros((workers, n_points), np.int32)
    tick = np.zeros(workers, np.int64)
    node = np.zeros((n_blocks, 4), np.int64)
    child = np.zeros((n_blocks, 4), np.int64)
    middle = np.zeros(n_blocks, np.int64)
    node[0, 1], node[0, 3] = n, n_blocks
    count = 1
    while count > 0:
        for k in range(count):
            for i in range(node[k, 0], node[k, 1]):
                owner[order[i]] = k
        for w in prange(workers):
            for k in range(w, count, workers):
                low, high, parts = node[k, 0], node[k, 1], node[k, 3]
                tick[w] = _rank(
                    table, offset, index, order[low:high], owner, level, queue[low:high],
                    key[low:high], seen[w], tick[w],
                )  # fmt: skip
                for _ in range(SMOOTHING):
                    tick[w] += 1
                    _smooth(
                        table,
                        order[low:high],
                        key[low:high],
                        mean[w],
                        count_at[w],
                        seen[w],
                        tick[w],
                    )
                middle[k] = low + ((high - low) * (parts // 2) + parts // 2) // parts
                select(key, order, low, high, middle[k])
        count = descend(node, middle, count, child, order, part)
        node, child = child, node


@njit(cache=True)
def _rank(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    index: NDArray[np.int32],
    elements: NDArray[np.int32],
    owner: NDArray[np.int32],
    level: NDArray[np.int32],
    queue: NDArray[np.int32],
    key: NDArray[np.float64],
    seen: NDArray[np.int64],
    tick: int,
) -> int:
    """Give each element its key, component by component; ``elements`` is put in that order."""
    m = elements.size
    level[elements] = -1
    done = 0
    for root in elements.copy():
        if level[root] >= 0:
            continue
        size = _spread(table, offset, index, root, owner, level, queue, seen, tick + 1)
        _forget(level, queue, size)
        end = queue[size - 1]
        _spread(table, offset, index, end, owner, level, queue, seen, tick + 2)
        for k in range(size):
            elements[done + k] = queue[k]
            # Ties are broken by the place in the queue, which keeps neighbours together.
            key[done + k] = 4.0 * m * done + level[queue[k]] + (k + 0.5) / (2.0 * size)
        end = queue[size - 1]
        _forget(level, queue, size)
        _spread(table, offset, index, end, owner, level, queue, seen, tick + 3)
        for k in range(size):
            key[done + k] -= level[elements[done + k]]
        done += size
        tick += 3
    return tick


@njit(cache=True)
def _smooth(
    table: NDArray[np.int32],
    elements: NDArray[np.int32],
    key: NDArray[np.float64],
    mean: NDArray[np.float64],
    count: NDArray[np.int32],
    seen: NDArray[np.int64],
    tick: int,
) -> None:
    """Each key becomes the mean of its points' means. O(elements * arity)."""
    for k in range(elements.size):
        for j in range(table.shape[1]):
            t = table[elements[k], j]
            if t < 0:
                continue
            if seen[t] != tick:
                seen[t], mean[t], count[t] = tick, 0.0, 0
            count[t] += 1
            mean[t] += (key[k] - mean[t]) / count[t]
    for k in range(elements.size):
        total, points = 0.0, 0
        for j in range(table.shape[1]):
            if table[elements[k], j] >= 0:
                total += mean[table[elements[k], j]]
                points += 1
        if points > 0:
            key[k] = total / points


@njit(cache=True)
def _forget(level: NDArray[np.int32], queue: NDArray[np.int32], size: int) -> None:
    for k in range(size):
        level[queue[k]] = -1


@njit(cache=True)
def _spread(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    index: NDArray[np.int32],
    root: int,
    owner: NDArray[np.int32],
    level: NDArray[np.int32],
    queue: NDArray[np.int32],
    seen: NDArray[np.int64],
    tick: int,
) -> int:
    """Levels from ``root`` among the elements of its owner; returns how many were reached."""
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
                if owner[k] == owner[root] and level[k] < 0:
                    level[k] = level[i] + 1
                    queue[end] = k
                    end += 1
    return end
