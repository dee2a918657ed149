"""Plates, sticks and rows of elements of grids, with fewer thread colours than round blocks.

A block one element thick has 4 elements at a point instead of 8, a row of elements has 2 [S19
figures 20 and 21]. Single moves do not lead from a round block to a plate. So layers and rows are
found in the mesh, whatever its shape, by neighbours on opposite sides. Wedges have such neighbours
along one axis.
"""

from collections.abc import Iterator

import numpy as np

from meshprep_runtime.maps import offsets_of, read_only, rows_of_entries

from ...kernels import Bools, Int32s, Int64s, kernel
from ...mesh.incidence import Csr
from ..blocks_of import sort_by
from .geometry import Geometry
from .grids import AXES, OPPOSITE, ElementAxes, opposite_in, opposite_neighbours
from .rows import rows

# By what share blocks may be more than needed before layers are cut into runs.
SPARE = 0.08


def layered_blocks(geometry: Geometry, graph: Csr, cap: int) -> Iterator[tuple[Int32s, int]]:
    """Blocks of at most ``cap`` elements that are plates, then sticks, and their number.

    Nothing where elements have no opposite neighbours. Plates lie in layers along two axes, sticks
    along one; of the directions that is taken which loads least. Elements between two points are
    put into rows. A block may hold several pieces that do not touch. O(n * arity) for each
    direction.
    """
    if geometry.table.shape[1] == 2:
        found_rows = rows(geometry.table, graph, geometry.weight.size)
        if found_rows is not None:
            yield _cut_layers(geometry, *found_rows, cap)
        return
    entry_row = rows_of_entries(graph.offset)
    opposite = _have_opposite(geometry.table, graph.offset, graph.index, geometry.weight.size)
    along = np.bincount(entry_row[opposite], minlength=len(geometry.table))
    if (along > 0).mean() >= OPPOSITE > (along > 2).mean():
        for kept in (~opposite, opposite):
            count = np.bincount(entry_row[kept], minlength=along.size)
            yield _cut_layers(geometry, count, graph.index[kept], cap)
        return
    across, _, _ = opposite_neighbours(
        geometry.table, graph.offset, graph.index, geometry.weight.size
    )
    both = (across[:, ::2] >= 0) & (across[:, 1::2] >= 0)
    if both.any(axis=1).mean() < OPPOSITE:
        return
    n_axes = AXES if (across[:, 4:] >= 0).any() else 2
    for length in range(n_axes - 1, 0, -1):
        found = []
        for axis in range(n_axes):
            along = np.array([(a != axis) == (length == 2) for a in range(AXES)])
            beside = (across >= 0) & np.repeat(along, 2)
            found.append(_cut_layers(geometry, beside.sum(axis=1), across[beside], cap))
        yield min(found, key=lambda cut: geometry.loads(*cut))


def _cut_layers(
    geometry: Geometry, beside: Int64s, neighbours: Int32s, cap: int
) -> tuple[Int32s, int]:
    """Blocks of layers; those of one class touch no other layer of it.

    An element has so many ``neighbours`` in its layer, one element's after the other's.
    """
    layer, count, order = _layers(offsets_of(beside), read_only(neighbours))
    offset, members = sort_by(layer, count)
    kind = _classes(geometry.table, offset, members, geometry.weight.size)
    size = np.diff(offset)
    parts = -(-size // cap)
    if parts.sum() <= (1 + SPARE) * -(-layer.size // cap):
        first = np.concatenate([[0], np.cumsum(parts)])
        block = np.empty(layer.size, np.int32)
        for k in range(count):
            inside = members[offset[k] : offset[k + 1]]
            block[inside] = first[k] + geometry.part(inside, int(parts[k]))
        return block, int(first[-1])
    rank = np.lexsort((order, layer, kind[layer]))
    begin = np.flatnonzero(np.diff(kind[layer][rank], prepend=-1))
    place = np.arange(rank.size)
    since = place - np.repeat(begin, np.diff(np.append(begin, rank.size)))
    fresh = since % cap == 0
    block = np.empty(rank.size, np.int32)
    block[rank] = np.cumsum(fresh) - 1
    return block, int(fresh.sum())


@kernel
def _have_opposite(table: Int32s, offset: Int64s, neighbours: Int32s, n_points: int) -> Bools:
    """Which entries lead to a neighbour with one opposite, seen from either of the two elements."""
    nothing = np.empty((0, 2 * AXES), np.int32)
    axes = ElementAxes(table, offset, neighbours, nothing, np.full(n_points, -1, np.int32))
    found = np.zeros(neighbours.size, np.bool_)
    for i in range(table.shape[0]):
        for s in range(offset[i], offset[i + 1]):
            if found[s] or opposite_in(axes, i, neighbours[s]) < 0:
                continue
            found[s] = True
            for back in range(offset[neighbours[s]], offset[neighbours[s] + 1]):
                found[back] |= neighbours[back] == i
    return found


@kernel
def _layers(offset: Int64s, neighbours: Int32s) -> tuple[Int32s, int, Int32s]:
    """The layer of each element, all that its neighbours lead to; how many; their order.

    Rows are ordered from one end to the other.
    """
    n = offset.size - 1
    layer, order, queue = np.full(n, -1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    count, done = 0, 0
    for ends_first in range(2):
        for start in range(n):
            if layer[start] >= 0 or (ends_first == 0 and offset[start + 1] - offset[start] > 1):
                continue
            layer[start], queue[0], ahead, end = count, start, 0, 1
            while ahead < end:
                i = queue[ahead]
                ahead += 1
                order[i] = done
                done += 1
                for j in neighbours[offset[i] : offset[i + 1]]:
                    if layer[j] < 0:
                        layer[j], queue[end] = count, j
                        end += 1
            count += 1
    return layer, count, order


@kernel
def _classes(table: Int32s, offset: Int64s, members: Int32s, n_points: int) -> Int32s:
    """Classes of layers, first fit, such that those of one class share no point; 62 at most."""
    taken, kind = np.zeros(n_points, np.int64), np.zeros(offset.size - 1, np.int32)
    for k in range(offset.size - 1):
        used = 0
        for m in range(offset[k], offset[k + 1]):
            for a in range(table.shape[1]):
                t = table[members[m], a]
                if t >= 0:
                    used |= taken[t]
        while kind[k] < 62 and (used >> kind[k]) & 1:
            kind[k] += 1
        for m in range(offset[k], offset[k + 1]):
            for a in range(table.shape[1]):
                t = table[members[m], a]
                if t >= 0:
                    taken[t] |= 1 << kind[k]
    return kind
