"""Meshes of several components: blocks hold as few of them as possible."""

from __future__ import annotations

import numpy as np

from meshprep_runtime.types.maps import distinct, ranges, read_only

from ....kernels import Bools, Float64s, Int32s, Int64s, kernel
from ..levels import Level

# Length of a component along the axis of components, over that along its longest axis.
WITHIN = 1e-3


def components(offset: Int64s, neighbours: Int32s) -> Int32s:
    """The connected component of each vertex, numbered by first appearance. Linear."""
    return _components_within(offset, neighbours, np.zeros(offset.size - 1, np.int32))


def components_of(level: Level) -> Int32s | None:
    """The connected component of each cluster; None if there is only one."""
    component = components(level.offset, level.neighbours)
    return component if component.any() else None


def more_pieces(pieces: Int64s, component: Int32s, block: Int32s) -> Bools:
    """For each block, whether its ``pieces`` are more than the components it holds."""
    pairs = distinct(component.astype(np.int64) * pieces.size + block)
    return pieces > np.bincount(pairs % pieces.size, minlength=pieces.size)


def of_several(component: Int32s, block: Int32s) -> Bools:
    """For each block, whether it has clusters of several components."""
    n_blocks = int(block.max()) + 1
    pairs = distinct(component.astype(np.int64) * n_blocks + block)
    return np.bincount(pairs % n_blocks, minlength=n_blocks) > 1


def torn_share(top: Level, block: Int32s, n_blocks: int, component: Int32s | None) -> float:
    """The share of the blocks that are in several pieces of one ``component`` of the mesh."""
    piece = _components_within(top.offset, top.neighbours, block)
    owner = np.empty(int(piece.max()) + 1, np.int32)
    owner[piece] = block
    pieces = np.bincount(owner, minlength=n_blocks)
    return float(
        (pieces > 1 if component is None else more_pieces(pieces, component, block)).mean()
    )


def reunited(level: Level, block: Int32s, component: Int32s | None) -> Int32s:
    """Blocks of clusters without fragments, except those without neighbours in other blocks.

    Of each ``component`` (None for only one) in a block, all pieces but the largest go to the block
    that they share most facets with, whatever its size: annealing then restores sizes.
    Linear.
    """
    offset, neighbours, n_blocks = level.offset, level.neighbours, int(block.max(initial=-1)) + 1
    piece = _components_within(offset, neighbours, block)
    count = int(piece.max(initial=-1)) + 1
    if count == n_blocks:
        return block
    example = np.empty(count, np.int64)
    example[piece] = np.arange(piece.size)
    whole = block[example].astype(np.int64)
    if component is not None:
        whole += n_blocks * component[example].astype(np.int64)
    order = np.lexsort((-np.bincount(piece, level.weight), whole))
    moves = np.ones(count, np.bool_)
    moves[order[np.diff(whole[order], prepend=-1) > 0]] = False
    rows = np.flatnonzero(moves[piece])
    degree = offset[rows + 1] - offset[rows]
    beside = ranges(offset[rows], degree)
    source, target = np.repeat(piece[rows], degree), block[neighbours[beside]]
    facets = level.facets[beside] if level.facets.size else np.ones(beside.size, np.int32)
    outside = target != block[example[source]]
    key = source[outside].astype(np.int64) * n_blocks + target[outside]
    pairs, inverse = np.unique(key, return_inverse=True)
    order = np.argsort(np.bincount(inverse, facets[outside], pairs.size), kind="stable")
    best = block[example]
    # the last one written is that of most facets
    best[pairs[order] // n_blocks] = pairs[order] % n_blocks
    return best[piece]


def apart_first(
    component: Int32s, table: Int32s, where: Float64s, position: Float64s, frame: Float64s
) -> tuple[Float64s, Float64s, Float64s]:
    """Coordinates and directions with one more axis, along which components stand in a row.

    Elements have hardly any width along it, so that bisection cuts across it first: few blocks hold
    two components. A cut inside a component runs across its longest axis.
    """
    widths = np.ptp(where, axis=0)
    longest = int(np.argmax(widths))
    place = component * max(1.0, float(widths[longest]))
    of_points, known = np.zeros(len(position)), table >= 0
    of_points[table[known]] = np.broadcast_to(place[:, None], table.shape)[known]
    place += WITHIN * (where[:, longest] - where[:, longest].min())
    directions = np.eye(len(frame) + 1)
    directions[:-1, :-1] = frame
    return np.column_stack([where, place]), np.column_stack([position, of_points]), directions


def moved_together(
    levels: list[Level], labels: list[Int32s], block: Int32s, component: Int32s
) -> list[Level]:
    """Levels with components translated, so that those that share a block touch each other.

    ``block`` has those that :func:`apart_first` led to, of the largest clusters: the last one of a
    component may hold some of the next one. Otherwise its centroid would be in neither, and would
    draw nothing. ``labels`` has the clusters of each level's members in the next one.
    """
    shift, moved = _shifts(levels[-1], block, component), []
    for k in range(len(levels) - 1, -1, -1):
        component = component[labels[k]] if k < len(labels) else component
        place = read_only(levels[k].place + shift[component])
        moved.append(levels[k]._replace(place=place))
    return moved[::-1]


def _shifts(top: Level, block: Int32s, component: Int32s) -> Float64s:
    """The translation of each component, (components, d)."""
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
    """The connected component of each vertex in the graph without edges between kinds."""
    n = kind.size
    component, queue, count = np.full(n, -1, np.int32), np.empty(n, np.int32), 0
    for root in range(n):
        if component[root] >= 0:
            continue
        component[root], queue[0], ahead, end = count, root, 0, 1
        while ahead < end:
            i = np.uint32(queue[ahead])
            ahead += 1
            for s in range(np.uint64(offset[i]), np.uint64(offset[i + 1])):
                j = np.uint32(neighbours[s])
                if component[j] < 0 and kind[j] == kind[i]:
                    component[j], queue[end] = count, j
                    end += 1
        count += 1
    return component
