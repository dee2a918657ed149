"""Lines of grids: an element's neighbours on opposite sides, and places in steps along the lines.

Neighbours on opposite sides of an element share no point. So lines are found in the mesh itself,
whatever its shape and numbering.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels import Int32s, Int64s, helper, kernel
from ....kernels.arrays import sort_by
from ....mesh.incidence import Csr

AXES = 3
# Least share of neighbours that have one on the opposite side.
OPPOSITE = 0.5
# Least share of a grid's neighbours that are one step along an axis away; the others are at seams.
REGULAR = 0.9
# Most share of a grid's elements that may end a line where the next line goes on: blocks along the
# lines of porous bodies and locally refined grids are full of steps.
RAGGED = 0.08
# Elements that are sampled for opposite neighbours.
SAMPLE = 1000


class ElementAxes(NamedTuple):
    """Elements with their neighbours, those ``across`` by axis, and scratch for points."""

    table: Int32s
    offset: Int64s
    neighbours: Int32s
    across: Int32s
    mark: Int32s


class GridPlaces(NamedTuple):
    """Places in steps along the lines of a grid, (n, 3), None for no grid or a ragged one."""

    steps: Int32s | None = None
    ragged: bool = False


def grid_places(table: Int32s, graph: Csr, n_points: int) -> GridPlaces:
    """Places of the elements of a grid in steps along its lines; none where these end anywhere.

    Components stand beside each other. O(n * arity); O(n_points) where a sample shows no grid.
    """
    step = max(1, table.shape[0] // SAMPLE)
    if _opposite_share(table, graph.offset, graph.index, n_points, step) < OPPOSITE:
        return GridPlaces()
    across, place, component = opposite_neighbours(table, graph.offset, graph.index, n_points)
    sides, straight = _straight_steps(across, place)
    if sides < REGULAR * graph.index.size or straight < REGULAR * sides:
        return GridPlaces()
    if _ragged_ends(across) > RAGGED * len(table):
        return GridPlaces(ragged=True)
    offset, members = sort_by(component, int(component.max()) + 1)
    low, high = (
        edge.reduceat(place[members], offset[:-1], axis=0) for edge in (np.minimum, np.maximum)
    )
    width = high[:, 0] - low[:, 0] + 2
    low[:, 0] -= np.cumsum(width) - width
    place -= low[component]
    return GridPlaces(place)


def distinct_places(place: Int32s) -> bool:
    """Whether no two elements are at the same place; where blocks of a grid meet they may be."""
    steps = sortable(place)
    order = np.lexsort(steps)
    same = np.ones(max(0, order.size - 1), np.bool_)
    for axis in steps:
        same &= axis[order[1:]] == axis[order[:-1]]
    return not same.any()


def sortable(place: Int32s) -> list[NDArray[np.integer]]:
    """The places by axis, in 16 bits where that is enough: NumPy sorts these by their digits."""
    narrow = int(place.max(initial=0)) < 1 << 16
    return [axis.astype(np.uint16 if narrow else np.int32) for axis in place.T]


@kernel
def _ragged_ends(across: Int32s) -> int:
    """Elements that end a line on a side where a neighbour along another axis goes on."""
    count = 0
    for i in range(across.shape[0]):
        ragged = False
        for s in range(2 * AXES):
            if across[i, s] >= 0 or across[i, s ^ 1] < 0:
                continue
            for t in range(2 * AXES):
                j = across[i, t]
                ragged |= t >> 1 != s >> 1 and j >= 0 and across[j, s] >= 0
        count += ragged
    return count


@kernel
def _straight_steps(across: Int32s, place: Int32s) -> tuple[int, int]:
    """Neighbours across, and how many of them are one step along their axis away, and no other."""
    sides, straight = 0, 0
    for i in range(across.shape[0]):
        for s in range(2 * AXES):
            j = across[i, s]
            if j < 0:
                continue
            off = 0
            for a in range(AXES):
                wanted = 1 - 2 * (s & 1) if a == s >> 1 else 0
                off |= place[j, a] - place[i, a] - wanted
            sides += 1
            straight += off == 0
    return sides, straight


@kernel
def opposite_neighbours(
    table: Int32s, offset: Int64s, neighbours: Int32s, n_points: int
) -> tuple[Int32s, Int32s, Int32s]:
    """Neighbours of each element by axis, (n, 6): two on opposite sides in turn, -1 for none.

    Axes are carried from element to element: where two elements are beside each other along one
    axis, those beside both along another show which of the axes are the same. So are steps along
    them, which the second array counts, (n, 3), from the first element of each component; the third
    has the components, (n,). O(n * arity).
    """
    n = table.shape[0]
    steps, component, count = np.zeros((n, AXES), np.int32), np.zeros(n, np.int32), 0
    across = np.full((n, 2 * AXES), -1, np.int32)
    seen, queue = np.zeros(n, np.bool_), np.empty(n, np.int32)
    axes = ElementAxes(table, offset, neighbours, across, np.full(n_points, -1, np.int32))
    for start in range(n):
        if seen[start]:
            continue
        seen[start], queue[0], ahead, end = True, start, 0, 1
        component[start] = count
        count += 1
        _first_axes(axes, start)
        while ahead < end:
            i = queue[ahead]
            ahead += 1
            for s in range(2 * AXES):
                j = across[i, s]
                if j >= 0 and not seen[j]:
                    seen[j], queue[end] = True, j
                    end += 1
                    component[j] = component[i]
                    for a in range(AXES):
                        steps[j, a] = steps[i, a]
                    steps[j, s >> 1] += 1 - 2 * (s & 1)
                    _carry_axes(axes, i, s)
    return across, steps, component


@kernel
def _opposite_share(
    table: Int32s, offset: Int64s, neighbours: Int32s, n_points: int, step: int
) -> float:
    """The share of the neighbours of every ``step``-th element that have an opposite one."""
    nothing = np.empty((0, 2 * AXES), np.int32)
    axes = ElementAxes(table, offset, neighbours, nothing, np.full(n_points, -1, np.int32))
    found, count = 0, 0
    for i in range(0, table.shape[0], step):
        for s in range(offset[i], offset[i + 1]):
            found += opposite_in(axes, i, neighbours[s]) >= 0
            count += 1
    return found / max(1, count)


@helper
def opposite_in(axes: ElementAxes, element: int, one: int) -> int:
    """The neighbour of an element that shares no point with another neighbour of it; -1: none."""
    table, mark = axes.table, axes.mark
    for k in range(table.shape[1]):
        if table[one, k] >= 0:
            mark[table[one, k]] = one
    found, count = -1, 0
    for s in range(axes.offset[element], axes.offset[element + 1]):
        j, apart = axes.neighbours[s], True
        for k in range(table.shape[1]):
            t = table[j, k]
            if t >= 0 and mark[t] == one:
                apart = False
                break
        if apart:
            found = j
            count += 1
    return found if count == 1 else -1


@helper
def _first_axes(axes: ElementAxes, element: int) -> None:
    """Give the axes of an element numbers, pair by pair."""
    axis = 0
    for s in range(axes.offset[element], axes.offset[element + 1]):
        j = axes.neighbours[s]
        if axis == AXES or _has(axes.across, element, j):
            continue
        axes.across[element, 2 * axis] = j
        axes.across[element, 2 * axis + 1] = opposite_in(axes, element, j)
        axis += 1


@helper
def _carry_axes(axes: ElementAxes, element: int, side: int) -> None:
    """Give the axes of the neighbour on one side the numbers that they have in an element."""
    offset, neighbours, across = axes.offset, axes.neighbours, axes.across
    j = across[element, side]
    across[j, side ^ 1] = element
    across[j, side] = opposite_in(axes, j, element)
    for other in range(2 * AXES):
        k = across[element, other]
        if other >> 1 == side >> 1 or k < 0 or across[j, other] >= 0:
            continue
        for s in range(offset[j], offset[j + 1]):
            e = neighbours[s]
            if e == element or _has(across, j, e):
                continue
            if _beside(offset, neighbours, k, e):
                across[j, other] = e
                across[j, other ^ 1] = opposite_in(axes, j, e)
                break


@helper
def _has(across: Int32s, element: int, other: int) -> bool:
    found = False
    for s in range(2 * AXES):
        found |= across[element, s] == other
    return found


@helper
def _beside(offset: Int64s, neighbours: Int32s, one: int, other: int) -> bool:
    found = False
    for s in range(offset[one], offset[one + 1]):
        found |= neighbours[s] == other
    return found
