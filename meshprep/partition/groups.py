"""Refines blocks in groups: each group of neighbouring blocks is a small problem of its own.

The objective is a sum over blocks, so groups do not interact: they fit a cache, run on any number
of threads and give one result. What lies between groups is reached by grouping another way in the
next phase.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from .anneal import Schedule, anneal
from .blocks_of import sort_by
from .connectivity import connect, weighted_loads
from .crowding import crowding_of
from .pull import Middles, Places
from .repair import mend
from .reunite import reunite

# Each worker numbers the points of its group in an array over all points.
MAX_WORKERS = 8
# Points with more elements in a group than this, and than this many blocks hold, are in nearly
# every block anyway: moves do not look at them.
HUB = 1024
HUB_BLOCKS = 8


def refine_groups(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    written: NDArray[np.bool_],
    places: Places,
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    cap: int,
    schedules: list[Schedule],
    seed: int,
) -> NDArray[np.int64]:
    """Anneal every group of blocks on its own; ``block`` is changed in place.

    Parameters
    ----------
    table : (n, arity) int32
        With -1 for a point that is named again.
    weight : (n_points,) int32
    written : (n_points,) bool
        Points that count for the colours.
    places : Places
    block : (n,) int32
    group_of_block : (n_blocks,) int32
    cap : int
        Largest size of a block.
    schedules : list of Schedule
        One for each group, or one for all. Where it ends past its total, no block of a group is
        over the cap afterwards, unless the group has more elements than room.
    seed : int

    Returns
    -------
    (n_groups,) int64
        By how much the weighted loads of each group fell, points at hubs left out.

    Notes
    -----
    O(n * arity) for the grouping and each sweep; 4 bytes a point and worker, at most 8 workers.
    """
    n_groups = int(group_of_block.max(initial=-1)) + 1
    if not block.size:
        return np.zeros(n_groups, np.int64)
    numbers = np.array(schedules, dtype=np.float64)
    numbers = np.ascontiguousarray(np.broadcast_to(numbers, (n_groups, numbers.shape[1])))
    workers = min(MAX_WORKERS, get_num_threads())
    return _refine(
        table, weight, written, places, block, group_of_block, n_groups, cap, unit_of(weight),
        numbers, seed, workers,
    )  # fmt: skip


def reunite_groups(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    cap: int,
    scattered: NDArray[np.bool_],
) -> None:
    """Give the smaller pieces of scattered blocks to their neighbours; ``block`` is changed.

    ``scattered`` (n_blocks,) tells which blocks are in pieces. Groups that would have more of them
    afterwards stay as they are. O(n * arity) for the groups that have any.
    """
    n_groups = int(group_of_block.max(initial=-1)) + 1
    workers = min(MAX_WORKERS, get_num_threads())
    _reunite(table, weight, block, group_of_block, n_groups, cap, scattered, workers)


def unit_of(weight: NDArray[np.int32]) -> float:
    """Weight of a typical point."""
    used = weight[weight > 0]
    return float(used.mean()) if used.size else 1.0


@njit(cache=True, parallel=True)
def _refine(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    written: NDArray[np.bool_],
    places: Places,
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    n_groups: int,
    cap: int,
    unit: float,
    schedules: NDArray[np.float64],
    seed: int,
    workers: int,
) -> NDArray[np.int64]:
    block_offset, blocks, rank = _ranked(group_of_block, n_groups)
    offset, members = sort_by(group_of_block[block], n_groups)
    number = np.full((workers, weight.size), -1, np.int32)
    gained = np.zeros(n_groups, np.int64)
    for w in prange(workers):
        for g in range(w, n_groups, workers):
            inside = members[offset[g] : offset[g + 1]]
            owned = blocks[block_offset[g] : block_offset[g + 1]]
            hub = max(HUB, HUB_BLOCKS * cap)
            rows, points = _extract(table, inside, number[w], 2, hub)
            start = rank[block[inside]]
            own_places = Places(places.coordinates[inside], places.metric[owned])
            gained[g] = _refine_one(
                rows, weight[points], written[points], own_places, start, owned.size, cap, unit,
                schedules[g], seed + g,
            )  # fmt: skip
            for k in range(inside.size):
                block[inside[k]] = owned[start[k]]
    return gained


@njit(cache=True)
def _ranked(
    group_of_block: NDArray[np.int32], n_groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The blocks of each group, and the place of every block in its group."""
    block_offset, blocks = sort_by(group_of_block, n_groups)
    rank = np.empty(group_of_block.size, np.int32)
    for g in range(n_groups):
        for k in range(block_offset[g], block_offset[g + 1]):
            rank[blocks[k]] = k - block_offset[g]
    return block_offset, blocks, rank


@njit(cache=True)
def _extract(
    table: NDArray[np.int32],
    inside: NDArray[np.int32],
    number: NDArray[np.int32],
    least: int,
    most: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rows of some elements with points numbered as they appear, and these points.

    Points with fewer than ``least`` or more than ``most`` of the elements become -1. ``number`` is
    -1 again afterwards.
    """
    arity = table.shape[1]
    rows = np.empty((inside.size, arity), np.int32)
    points = np.empty(inside.size * arity, np.int32)
    degree = np.zeros(inside.size * arity, np.int32)
    count = 0
    for k in range(inside.size):
        for j in range(arity):
            t = table[inside[k], j]
            if t >= 0 and number[t] < 0:
                number[t] = count
                points[count] = t
                count += 1
            rows[k, j] = number[t] if t >= 0 else -1
            if t >= 0:
                degree[number[t]] += 1
    for k in range(inside.size):
        for j in range(arity):
            p = rows[k, j]
            if p >= 0 and (degree[p] < least or degree[p] > most):
                rows[k, j] = -1
    for p in range(count):
        number[points[p]] = -1
    return rows, points[:count].copy()


@njit(cache=True)
def _refine_one(
    rows: NDArray[np.int32],
    weight: NDArray[np.int32],
    written: NDArray[np.bool_],
    places: Places,
    block: NDArray[np.int32],
    n_blocks: int,
    cap: int,
    unit: float,
    numbers: NDArray[np.float64],
    seed: int,
) -> int:
    begin, end, total = int(numbers[3]), int(numbers[4]), int(numbers[5])
    schedule = Schedule(numbers[0], numbers[1], numbers[2], begin, end, total)
    state = connect(rows, weight, block, n_blocks)
    middle = np.empty((n_blocks, places.coordinates.shape[1]))
    middles = Middles(places.coordinates, places.metric, middle)
    crowding = crowding_of(state, written, cap, schedule.colour > 0.0)
    gained = anneal(state, middles, crowding, cap, unit, schedule, seed)
    if end <= total or state.size.max() <= cap or n_blocks * cap < block.size:
        return gained
    before = weighted_loads(state)
    mend(rows, weight, block, n_blocks, cap)
    return gained + before - weighted_loads(connect(rows, weight, block, n_blocks))


@njit(cache=True, parallel=True)
def _reunite(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    n_groups: int,
    cap: int,
    scattered: NDArray[np.bool_],
    workers: int,
) -> None:
    block_offset, blocks, rank = _ranked(group_of_block, n_groups)
    offset, members = sort_by(group_of_block[block], n_groups)
    number = np.full((workers, weight.size), -1, np.int32)
    for w in prange(workers):
        for g in range(w, n_groups, workers):
            owned = blocks[block_offset[g] : block_offset[g + 1]]
            if not scattered[owned].any():
                continue
            inside = members[offset[g] : offset[g + 1]]
            rows, points = _extract(table, inside, number[w], 2, table.size)
            found = rank[block[inside]]
            if reunite(rows, weight[points], found, owned.size, cap):
                for k in range(inside.size):
                    block[inside[k]] = owned[found[k]]
