"""Refines blocks in groups: each group of neighbouring blocks is a small problem of its own.

The objective is a sum over blocks, so groups do not interact: they fit a cache, run on any number
of threads and give one result. What lies between groups is reached by grouping another way in the
next phase.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from .anneal import anneal
from .blocks_of import sort_by
from .connectivity import connect, weighted_loads
from .repair import mend

# Each worker numbers the points of its group in an array over all points.
MAX_WORKERS = 8


def refine_groups(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    cap: int,
    schedule: tuple[float, int, int, int],
    seed: int,
) -> int:
    """Anneal every group of blocks on its own; ``block`` is changed in place.

    Parameters
    ----------
    table : (n, arity) int32
        With -1 for a point that is named again.
    weight : (n_points,) int32
    block : (n,) int32
    group_of_block : (n_blocks,) int32
    cap : int
        Largest size of a block.
    schedule : (heat, begin, end, total)
        Sweeps ``begin`` to ``end`` of ``total``; past ``total`` they only gain, and no block of a
        group is over the cap afterwards, unless the group has more elements than room.
    seed : int

    Returns
    -------
    int
        By how much the weighted loads fell.

    Notes
    -----
    O(n * arity) for the grouping and each sweep; 4 bytes a point and worker, at most 8 workers.
    """
    if not block.size:
        return 0
    used = weight[weight > 0]
    unit = float(used.mean()) if used.size else 1.0
    workers = min(MAX_WORKERS, get_num_threads())
    heat, begin, end, total = schedule
    gained = _refine(
        table, weight, block, group_of_block, cap, unit, heat, begin, end, total, seed, workers
    )
    return int(gained.sum())


@njit(cache=True, parallel=True)
def _refine(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    cap: int,
    unit: float,
    heat: float,
    begin: int,
    end: int,
    total: int,
    seed: int,
    workers: int,
) -> NDArray[np.int64]:
    n_groups = 0
    for b in range(group_of_block.size):
        n_groups = max(n_groups, group_of_block[b] + 1)
    block_offset, blocks = sort_by(group_of_block, n_groups)
    rank = np.empty(group_of_block.size, np.int32)
    for g in range(n_groups):
        for k in range(block_offset[g], block_offset[g + 1]):
            rank[blocks[k]] = k - block_offset[g]
    offset, members = sort_by(group_of_block[block], n_groups)
    number = np.full((workers, weight.size), -1, np.int32)
    gained = np.zeros(n_groups, np.int64)
    for w in prange(workers):
        for g in range(w, n_groups, workers):
            inside = members[offset[g] : offset[g + 1]]
            owned = blocks[block_offset[g] : block_offset[g + 1]]
            rows, own_weight = _extract(table, weight, inside, number[w])
            start = rank[block[inside]]
            found = _refine_one(
                rows, own_weight, start, owned.size, cap, unit, heat, begin, end, total, seed + g
            )
            gained[g] = found
            for k in range(inside.size):
                block[inside[k]] = owned[start[k]]
    return gained


@njit(cache=True)
def _extract(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    inside: NDArray[np.int32],
    number: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rows of some elements with points numbered as they appear; ``number`` is -1 again."""
    arity = table.shape[1]
    rows = np.empty((inside.size, arity), np.int32)
    points = np.empty(inside.size * arity, np.int32)
    count = 0
    for k in range(inside.size):
        for j in range(arity):
            t = table[inside[k], j]
            if t >= 0 and number[t] < 0:
                number[t] = count
                points[count] = t
                count += 1
            rows[k, j] = number[t] if t >= 0 else -1
    own_weight = np.empty(count, np.int32)
    for p in range(count):
        own_weight[p] = weight[points[p]]
        number[points[p]] = -1
    return rows, own_weight


@njit(cache=True)
def _refine_one(
    rows: NDArray[np.int32],
    weight: NDArray[np.int32],
    block: NDArray[np.int32],
    n_blocks: int,
    cap: int,
    unit: float,
    heat: float,
    begin: int,
    end: int,
    total: int,
    seed: int,
) -> int:
    state = connect(rows, weight, block, n_blocks)
    gained = anneal(state, cap, unit, heat, begin, end, total, seed)
    if end <= total or state.size.max() <= cap or n_blocks * cap < block.size:
        return gained
    before = weighted_loads(state)
    mend(rows, weight, block, n_blocks, cap)
    return gained + before - weighted_loads(connect(rows, weight, block, n_blocks))
