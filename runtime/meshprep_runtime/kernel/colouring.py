"""Colours of a whole set, for the strategies that use neither blocks nor atomics."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ..plan import LoopPlan
from ..plan.conflicts import written_columns


def colour_elements(plan: LoopPlan) -> NDArray[np.int32]:
    """A colour for each element; elements that write a common point get different colours.

    First-fit in storage order with bit masks, 64 colours a round [G10 section 9.1].
    O(elements x written columns) for each round.
    """
    n = plan.sizes[plan.loop.over]
    columns, n_points = written_columns(plan.loop, plan.maps, plan.sizes)
    colour = np.full(n, -1, np.int32)
    first_fit(columns, n_points, colour)
    return colour


@numba.njit(cache=True)
def first_fit(columns: NDArray[Any], n_points: int, colour: NDArray[Any]) -> None:
    """Fill in ``colour``, which is -1 everywhere. O(n k) for a round of 64 colours."""
    base = 0
    left = True
    while left:
        left = False
        # Bit ``c`` of a point: an element that writes it has colour ``base + c``.
        colours_of_point = np.zeros(n_points, np.uint64)
        for e in range(columns.shape[0]):
            if colour[e] >= 0:
                continue
            mask = np.uint64(0)
            for p in columns[e]:
                mask |= colours_of_point[p]
            if mask == np.uint64(0xFFFFFFFFFFFFFFFF):
                # All colours of this round are taken.
                left = True
                continue
            c = 0
            while (mask >> np.uint64(c)) & np.uint64(1):
                c += 1
            colour[e] = base + c
            for p in columns[e]:
                colours_of_point[p] |= np.uint64(1) << np.uint64(c)
        base += 64


def first_fit_rows(
    row_ptr: NDArray[np.integer], columns: NDArray[np.int32]
) -> NDArray[np.int32]:
    """For each row the lowest colour that no neighbour has so far. O(nonzeros)."""
    rows = row_ptr.size - 1
    colour = np.full(rows, -1, np.int32)
    first_fit_ready_rows(row_ptr, columns, np.arange(rows), colour)
    return colour


@numba.njit(cache=True)
def first_fit_ready_rows(
    row_ptr: NDArray[np.integer],
    columns: NDArray[np.int32],
    number: NDArray[np.int64],
    colour: NDArray[np.int32],
) -> int:
    """Colour the rows whose neighbours of lower number have a colour; returns what is left.

    ``number`` and ``colour`` are of the columns, of which the first are the rows, with
    ascending numbers. A row without a colour has -1. O(nonzeros).
    """
    rows = row_ptr.size - 1
    left = 0
    longest = 0
    for i in range(rows):
        longest = max(longest, row_ptr[i + 1] - row_ptr[i])
    # By colour, the last row that has a neighbour of this colour. A row has no more
    # neighbours than entries, so that one of the first colours is free.
    taken_by = np.full(longest + 1, -1, np.int32)
    for i in range(rows):
        if colour[i] >= 0:
            continue
        is_ready = True
        for j in range(row_ptr[i], row_ptr[i + 1]):
            neighbour = columns[j]
            c = colour[neighbour]
            if c < 0 and number[neighbour] < number[i]:
                is_ready = False
            if 0 <= c <= longest:
                taken_by[c] = i
        if not is_ready:
            left += 1
            continue
        c = 0
        while taken_by[c] == i:
            c += 1
        colour[i] = c
    return left
