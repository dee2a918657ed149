"""Components of a mesh: elements of two of them share nothing, wherever they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshprep_runtime.maps import distinct, read_only

from ...kernels import Bools, Float64s, Int32s, Int64s, kernel
from .levels import Level
from .packing import packed
from .sizes import Sizes


def components(offset: Int64s, neighbours: Int32s) -> Int32s:
    """The component of each vertex of a graph, numbered as they appear. Linear."""
    return _components_within(offset, neighbours, np.zeros(offset.size - 1, np.int32))


def more_pieces(pieces: Int64s, component: Int32s, block: Int32s) -> Bools:
    """Whether each block has more ``pieces`` than there are components of the mesh in it."""
    pairs = distinct(component.astype(np.int64) * pieces.size + block)
    return pieces > np.bincount(pairs % pieces.size, minlength=pieces.size)


def torn_share(top: Level, block: Int32s, n_blocks: int) -> float:
    """The share of the blocks that are in several pieces of one component of the mesh."""
    piece = _components_within(top.offset, top.neighbours, block)
    owner = block[np.unique(piece, return_index=True)[1]]
    pieces = np.bincount(owner, minlength=n_blocks)
    torn = more_pieces(pieces, components(top.offset, top.neighbours), block)
    return float(torn.mean())


class ComponentRow(NamedTuple):
    """Components in a row: that of each of the largest clusters, and how large blocks of it are."""

    component: Int32s
    share: Int64s

    @classmethod
    def of(cls, top: Level, sizes: Sizes) -> ComponentRow:
        """Packed where blocks are alike, but for components that share points with others."""
        component, share = components(top.offset, top.neighbours), sizes.share
        if component.any() and not sizes.least.any():
            size = np.bincount(component, top.weight).astype(np.int64)
            alone = _share_nothing(top, component)
            rank, share = packed(size, alone, share.size, int(sizes.cap[0]))
            component = rank[component]
        return cls(component, share)


def _share_nothing(top: Level, component: Int32s) -> Bools:
    """Whether each component has no point of another one, as cells that share an edge have."""
    rows = np.repeat(component, np.diff(top.point_offset))
    other = np.empty(int(top.points.max(initial=-1)) + 1, np.int32)
    other[top.points] = rows
    other = other[top.points]
    alone = np.ones(int(component.max()) + 1, np.bool_)
    alone[rows[other != rows]] = alone[other[other != rows]] = False
    return alone


def apart_first(
    row: ComponentRow, table: Int32s, where: Float64s, position: Float64s, frame: Float64s
) -> tuple[Float64s, Float64s, Float64s]:
    """Places of elements and points, and directions, with one more axis: the row of components.

    Along it elements have no width, so that bisection cuts across it first: few blocks hold some
    of two components. Nothing is added where there is but one.
    """
    component = row.component
    if not component.any():
        return where, position, frame
    place = component * max(1.0, float(np.ptp(where, axis=0).max()))
    of_points, known = np.zeros(len(position)), table >= 0
    of_points[table[known]] = np.broadcast_to(place[:, None], table.shape)[known]
    directions = np.eye(len(frame) + 1)
    directions[:-1, :-1] = frame
    return np.column_stack([where, place]), np.column_stack([position, of_points]), directions


def moved_together(
    levels: list[Level], labels: list[Int32s], block: Int32s, row: ComponentRow
) -> list[Level]:
    """Levels with components moved, so that what a block has of two of them is in one place.

    ``block`` has those that :func:`apart_first` led to, of the largest clusters: the last one of a
    component may hold some of the next one. Otherwise its centroid would be in neither, and would
    draw nothing. ``labels`` has the clusters of each level's members in the next one.
    """
    component = row.component
    if not component.any():
        return levels
    shift, moved = _shifts(levels[-1], block, component), []
    for k in range(len(levels) - 1, -1, -1):
        component = component[labels[k]] if k < len(labels) else component
        place = read_only(levels[k].place + shift[component])
        moved.append(levels[k]._replace(place=place))
    return moved[::-1]


def _shifts(top: Level, block: Int32s, component: Int32s) -> Float64s:
    """How far each component is to be moved, (components, d)."""
    n_blocks = int(block.max()) + 1
    key = component.astype(np.int64) * n_blocks + block
    pair, inverse = np.unique(key, return_inverse=True)
    size = np.bincount(inverse, top.weight)
    sums = [np.bincount(inverse, top.weight * axis) for axis in top.place.T]
    middle = np.stack(sums, axis=1) / size[:, None]
    owner, number = np.divmod(pair, n_blocks)
    begins = np.flatnonzero(np.diff(owner)) + 1
    shared = (number[begins] == number[begins - 1])[:, None]
    step = np.where(shared, middle[begins - 1] - middle[begins], 0.0)
    return np.concatenate([np.zeros_like(middle[:1]), np.cumsum(step, axis=0)])


@kernel
def _components_within(offset: Int64s, neighbours: Int32s, kind: Int32s) -> Int32s:
    """The component of each vertex where edges between two kinds do not count."""
    n = kind.size
    component, queue, count = np.full(n, -1, np.int32), np.empty(n, np.int32), 0
    for root in range(n):
        if component[root] >= 0:
            continue
        component[root], queue[0], ahead, end = count, root, 0, 1
        while ahead < end:
            i = queue[ahead]
            ahead += 1
            for s in range(offset[i], offset[i + 1]):
                j = neighbours[s]
                if component[j] < 0 and kind[j] == kind[i]:
                    component[j], queue[end] = count, j
                    end += 1
        count += 1
    return component
