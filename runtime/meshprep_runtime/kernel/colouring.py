"""Colours of a whole set, for the strategies that use neither blocks nor atomics."""

from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ..plan import LoopPlan


def colour_elements(plan: LoopPlan) -> NDArray[np.int32]:
    """Colour of each element: two that write one point through maps get different ones.

    First-fit in storage order with bit masks, 64 colours a round [G10 section 9.1].
    O(elements written columns), once more for each further 64 colours.
    """
    n = plan.sizes[plan.loop.over]
    columns, n_points = written_columns(plan)
    colour = np.full(n, -1, np.int32)
    first_fit(columns, n_points, colour)
    return colour


def written_columns(plan: LoopPlan) -> tuple[NDArray[np.int32], int]:
    """The (n, k) columns that the loop writes through, all sets stacked, and the points."""
    start, total = _stacked(plan)
    found = [
        plan.maps[name].table[:, list(columns)] + np.int32(start[plan.maps[name].to_set])
        for name, columns in plan.loop.conflict_columns.items()
    ]
    none = np.zeros((plan.sizes[plan.loop.over], 0), np.int32)
    return np.concatenate([none, *found], axis=1), total


def _stacked(plan: LoopPlan) -> tuple[Mapping[str, int], int]:
    """Where the points of each set that is written begin, and how many there are."""
    start, total = {}, 0
    for name in plan.loop.conflict_columns:
        to_set = plan.maps[name].to_set
        if to_set not in start:
            start[to_set] = total
            total += plan.sizes[to_set]
    return start, total


@numba.njit(cache=True)
def first_fit(columns: NDArray[Any], n_points: int, colour: NDArray[Any]) -> None:
    """Fill in ``colour``, which is -1 everywhere. O(n k) a round of 64 colours."""
    base, left = 0, True
    while left:
        left = False
        taken = np.zeros(n_points, np.uint64)
        for e in range(columns.shape[0]):
            if colour[e] >= 0:
                continue
            mask = np.uint64(0)
            for p in columns[e]:
                mask |= taken[p]
            if mask == np.uint64(0xFFFFFFFFFFFFFFFF):
                left = True
                continue
            c = 0
            while (mask >> np.uint64(c)) & np.uint64(1):
                c += 1
            colour[e] = base + c
            for p in columns[e]:
                taken[p] |= np.uint64(1) << np.uint64(c)
        base += 64


@numba.njit(cache=True)
def first_fit_rows(row_ptr: NDArray[np.integer], columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """The lowest colour that no neighbour before has, row after row. O(nonzeros)."""
    rows = row_ptr.size - 1
    colour = np.full(rows, -1, np.int32)
    # the last row that a neighbour of which has the colour
    taken_by = np.full(rows + 1, -1, np.int32)
    for i in range(rows):
        for j in range(row_ptr[i], row_ptr[i + 1]):
            if colour[columns[j]] >= 0:
                taken_by[colour[columns[j]]] = i
        c = 0
        while taken_by[c] == i:
            c += 1
        colour[i] = c
    return colour
