"""Lines of grids: neighbours on opposite sides of elements, and steps along the lines.

Neighbours on opposite sides of an element share no point. So lines are found by incidence
alone, whatever the shape and the numbering of the mesh.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels import Int32s, Int64s, helper, kernel
from ....kernels.arrays import sort_by
from ....mesh.incidence import Csr

# Axes of an element, each with two sides.
AXES = 3
# Least share of neighbours with an opposite neighbour.
OPPOSITE = 0.5
# Least share of a grid's neighbours that are one step along an axis away; the others are at
# seams.
REGULAR = 0.9
# Most share of elements that end a line where the line beside it goes on. Porous bodies and
# locally refined grids have more: blocks along their lines would be full of steps.
RAGGED = 0.08
# Elements that are sampled for opposite neighbours.
SAMPLE = 1000


class ElementAxes(NamedTuple):
    """Elements with their neighbours, in any order and by axis.

    ``across`` (n, 6) has two neighbours on opposite sides for each axis in turn, -1 for
    none; ``mark`` (n_points,) is scratch.
    """

    table: Int32s
    offset: Int64s
    neighbours: Int32s
    across: Int32s
    mark: Int32s


class GridPlaces(NamedTuple):
    """Places in steps along the lines of a grid, (n, 3); None without a regular grid."""

    steps: Int32s | None = None
    ragged: bool = False


def grid_places(table: Int32s, graph: Csr, n_points: int) -> GridPlaces:
    """Places of the elements of a grid in steps along its lines.

    Components stand beside each other. There are no places where the mesh is no grid, or
    its lines end anywhere. O(n * arity); O(n_points) where a sample shows no grid.
    """
    # Ask a sample first: most meshes are no grids.
    opposite = _opposite_share(
        table=table,
        offset=graph.offset,
        neighbours=graph.index,
        n_points=n_points,
        step=max(1, table.shape[0] // SAMPLE),
    )
    if opposite < OPPOSITE:
        return GridPlaces()
    # Walk along the lines, and count how many of the neighbours are on them.
    across, steps, component = opposite_neighbours(
        table=table, offset=graph.offset, neighbours=graph.index, n_points=n_points
    )
    sides, straight = _straight_steps(across, steps)
    if sides < REGULAR * graph.index.size or straight < REGULAR * sides:
        return GridPlaces()
    # Lines of unlike lengths make bricks with steps in their faces.
    if _ragged_ends(across) > RAGGED * len(table):
        return GridPlaces(ragged=True)
    # Move the components beside each other along the first axis, from 0 on.
    offset, members = sort_by(component, int(component.max()) + 1)
    low = np.minimum.reduceat(steps[members], offset[:-1], axis=0)
    high = np.maximum.reduceat(steps[members], offset[:-1], axis=0)
    width = high[:, 0] - low[:, 0] + 2
    low[:, 0] -= np.cumsum(width) - width
    steps -= low[component]
    return GridPlaces(steps)


def distinct_places(place: Int32s) -> bool:
    """Whether no two elements are at the same place.

    Two may be where blocks of a grid meet.
    """
    steps = sortable(place)
    order = np.lexsort(steps)
    same = np.ones(max(0, order.size - 1), np.bool_)
    for axis in steps:
        same &= axis[order[1:]] == axis[order[:-1]]
    return not same.any()


def sortable(place: Int32s) -> list[NDArray[np.integer]]:
    """The places by axis, in 16 bits if possible: NumPy sorts these by their digits."""
    narrow = int(place.max(initial=0)) < 1 << 16
    return [axis.astype(np.uint16 if narrow else np.int32) for axis in place.T]


@kernel
def _ragged_ends(across: Int32s) -> int:
    """The number of elements that end a line on a side where a line beside it goes on."""
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
    """The number of neighbours, and how many are one step along their axis away."""
    sides = 0
    straight = 0
    for i in range(across.shape[0]):
        for s in range(2 * AXES):
            j = across[i, s]
            if j < 0:
                continue
            off = 0
            for a in range(AXES):
                # Sides of an axis are even forwards and odd backwards; any other difference
                # is a seam.
                along = 1 - 2 * (s & 1) if a == s >> 1 else 0
                off |= place[j, a] - place[i, a] - along
            sides += 1
            straight += off == 0
    return sides, straight


@kernel
def opposite_neighbours(
    table: Int32s, offset: Int64s, neighbours: Int32s, n_points: int
) -> tuple[Int32s, Int32s, Int32s]:
    """Neighbours of each element by axis, places in steps, and components. O(n * arity).

    Neighbours are (n, 6): two on opposite sides for each axis in turn, -1 for none. Axes
    are carried from element to element: where two elements are neighbours along one axis,
    their neighbours along another axis are neighbours, too, which shows the axes that are
    the same. Places (n, 3) count the steps along the axes from the first element of each
    component, whose numbers are the third array, (n,).
    """
    n = table.shape[0]
    steps = np.zeros((n, AXES), np.int32)
    component = np.zeros(n, np.int32)
    count = 0
    across = np.full((n, 2 * AXES), -1, np.int32)
    reached = np.zeros(n, np.bool_)
    queue = np.empty(n, np.int32)
    # Sides 2a and 2a + 1 of ``across`` are the two neighbours along axis ``a``.
    axes = ElementAxes(
        table=table,
        offset=offset,
        neighbours=neighbours,
        across=across,
        mark=np.full(n_points, -1, np.int32),
    )
    for start in range(n):
        if reached[start]:
            continue
        # Choose the axes of the first element of a component.
        reached[start] = True
        queue[0] = start
        ahead = 0
        end = 1
        component[start] = count
        count += 1
        _first_axes(axes, start)
        # Carry them to all others, breadth-first.
        while ahead < end:
            i = queue[ahead]
            ahead += 1
            for s in range(2 * AXES):
                j = across[i, s]
                if j >= 0 and not reached[j]:
                    reached[j] = True
                    queue[end] = j
                    end += 1
                    component[j] = component[i]
                    # The neighbour stands one step further along the axis.
                    for a in range(AXES):
                        steps[j, a] = steps[i, a]
                    steps[j, s >> 1] += 1 - 2 * (s & 1)
                    _carry_axes(axes, i, s)
    return across, steps, component


@kernel
def _opposite_share(
    table: Int32s, offset: Int64s, neighbours: Int32s, n_points: int, step: int
) -> float:
    """The share of neighbours with an opposite one, for every ``step``-th element."""
    nothing = np.empty((0, 2 * AXES), np.int32)
    axes = ElementAxes(
        table=table,
        offset=offset,
        neighbours=neighbours,
        across=nothing,
        mark=np.full(n_points, -1, np.int32),
    )
    # Count the neighbours of the sampled elements that have one.
    opposite = 0
    count = 0
    for i in range(0, table.shape[0], step):
        for s in range(offset[i], offset[i + 1]):
            opposite += opposite_in(axes, i, neighbours[s]) >= 0
            count += 1
    return opposite / max(1, count)


@helper
def opposite_in(axes: ElementAxes, element: int, neighbour: int) -> int:
    """The only neighbour of an element that shares no point with the given neighbour.

    -1 if there is none, or if there are several.
    """
    table = axes.table
    mark = axes.mark
    # Mark the points of the given neighbour.
    for k in range(table.shape[1]):
        if table[neighbour, k] >= 0:
            mark[table[neighbour, k]] = neighbour
    # Look for neighbours without a marked point; in a grid there is one.
    opposite = -1
    count = 0
    for s in range(axes.offset[element], axes.offset[element + 1]):
        j = axes.neighbours[s]
        apart = True
        for k in range(table.shape[1]):
            t = table[j, k]
            if t >= 0 and mark[t] == neighbour:
                apart = False
                break
        if apart:
            opposite = j
            count += 1
    if count == 1:
        return opposite
    return -1


@helper
def _first_axes(axes: ElementAxes, element: int) -> None:
    """Number the axes of an element as its pairs of opposite neighbours are met."""
    axis = 0
    for s in range(axes.offset[element], axes.offset[element + 1]):
        j = axes.neighbours[s]
        if axis == AXES or _is_across(axes.across, element, j):
            continue
        axes.across[element, 2 * axis] = j
        axes.across[element, 2 * axis + 1] = opposite_in(axes, element, j)
        axis += 1


@helper
def _carry_axes(axes: ElementAxes, element: int, side: int) -> None:
    """Number the axes of the neighbour on one side like those of the element."""
    offset = axes.offset
    neighbours = axes.neighbours
    across = axes.across
    # Along the axis of the step, the line goes straight on.
    j = across[element, side]
    across[j, side ^ 1] = element
    across[j, side] = opposite_in(axes, j, element)
    # Find the side across each other axis: the neighbour there and that of the element are
    # neighbours of each other, since four elements meet at an edge of the grid.
    for other in range(2 * AXES):
        k = across[element, other]
        if other >> 1 == side >> 1 or k < 0 or across[j, other] >= 0:
            continue
        for s in range(offset[j], offset[j + 1]):
            e = neighbours[s]
            if e == element or _is_across(across, j, e):
                continue
            if _are_neighbours(offset=offset, neighbours=neighbours, one=k, other=e):
                across[j, other] = e
                across[j, other ^ 1] = opposite_in(axes, j, e)
                break


@helper
def _is_across(across: Int32s, element: int, other: int) -> bool:
    """Whether an element already has another one across a side."""
    is_across = False
    for s in range(2 * AXES):
        is_across |= across[element, s] == other
    return is_across


@helper
def _are_neighbours(offset: Int64s, neighbours: Int32s, one: int, other: int) -> bool:
    """Whether two elements are neighbours in the graph."""
    are_neighbours = False
    for s in range(offset[one], offset[one + 1]):
        are_neighbours |= neighbours[s] == other
    return are_neighbours
