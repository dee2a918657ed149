"""Meshes of several components: blocks hold as few of them as possible."""

from __future__ import annotations

import numpy as np

from meshprep_runtime.types.maps import distinct, ranges, read_only

from ....kernels import Bools, Float64s, Int32s, Int64s, kernel
from ..coarsening.levels import Level

# Length of a component along the axis on which components stand in a row, over its length
# along its longest axis.
WITHIN = 1e-3


def components(offset: Int64s, neighbours: Int32s) -> Int32s:
    """The connected component of each vertex, numbered by first appearance. Linear."""
    return _components_within(offset, neighbours, np.zeros(offset.size - 1, np.int32))


def components_of(level: Level) -> Int32s | None:
    """The connected component of each cluster; None if there is only one."""
    component = components(level.offset, level.neighbours)
    if component.any():
        return component
    return None


def more_pieces(pieces: Int64s, component: Int32s, block: Int32s) -> Bools:
    """For each block, whether it has more ``pieces`` than components of the mesh."""
    pairs = distinct(component.astype(np.int64) * pieces.size + block)
    return pieces > np.bincount(pairs % pieces.size, minlength=pieces.size)


def of_several(component: Int32s, block: Int32s) -> Bools:
    """For each block, whether it has clusters of several components."""
    n_blocks = int(block.max()) + 1
    pairs = distinct(component.astype(np.int64) * n_blocks + block)
    return np.bincount(pairs % n_blocks, minlength=n_blocks) > 1


def torn_share(top: Level, block: Int32s, n_blocks: int, component: Int32s | None) -> float:
    """The share of the blocks that hold a ``component`` of the mesh in several pieces."""
    piece = _components_within(top.offset, top.neighbours, block)
    owner = np.empty(int(piece.max()) + 1, np.int32)
    owner[piece] = block
    pieces = np.bincount(owner, minlength=n_blocks)
    if component is None:
        torn = pieces > 1
    else:
        torn = more_pieces(pieces, component, block)
    return float(torn.mean())


def reunited(level: Level, block: Int32s, component: Int32s | None) -> Int32s:
    """Blocks of clusters without fragments, as far as these have neighbours elsewhere.

    Of each ``component`` (None for only one) in a block, all pieces but the largest go to
    the block that they share most facets with, whatever its size: annealing then restores
    the sizes. Linear.
    """
    offset = level.offset
    neighbours = level.neighbours
    n_blocks = int(block.max(initial=-1)) + 1
    piece = _components_within(offset, neighbours, block)
    count = int(piece.max(initial=-1)) + 1
    if count == n_blocks:
        return block
    # The largest piece of each component in a block stays.
    example = np.empty(count, np.int64)
    example[piece] = np.arange(piece.size)
    whole = block[example].astype(np.int64)
    if component is not None:
        whole += n_blocks * component[example].astype(np.int64)
    weight_of_piece = np.bincount(piece, level.weight)
    order = np.lexsort((-weight_of_piece, whole))
    moves = np.ones(count, np.bool_)
    is_first_of_whole = np.diff(whole[order], prepend=-1) > 0
    moves[order[is_first_of_whole]] = False
    # Sum the facets that each other piece shares with each block.
    rows = np.flatnonzero(moves[piece])
    degree = offset[rows + 1] - offset[rows]
    beside = ranges(offset[rows], degree)
    source = np.repeat(piece[rows], degree)
    target = block[neighbours[beside]]
    if level.facets.size:
        facets = level.facets[beside]
    else:
        facets = np.ones(beside.size, np.int32)
    outside = target != block[example[source]]
    key = source[outside].astype(np.int64) * n_blocks + target[outside]
    pairs, inverse = np.unique(key, return_inverse=True)
    # It goes to the block with the most: the last one written.
    shared_facets = np.bincount(inverse, facets[outside], pairs.size)
    order = np.argsort(shared_facets, kind="stable")
    best = block[example]
    best[pairs[order] // n_blocks] = pairs[order] % n_blocks
    return best[piece]


def apart_first(
    component: Int32s, table: Int32s, where: Float64s, position: Float64s, frame: Float64s
) -> tuple[Float64s, Float64s, Float64s]:
    """Coordinates and directions with one more axis, along which components stand in a row.

    Elements have hardly any width along it, so that bisection cuts across it first: few
    blocks hold two components. A cut inside a component runs across its longest axis.
    """
    # Components stand further apart than any is long; a point has the height of its own.
    widths = np.ptp(where, axis=0)
    longest = int(np.argmax(widths))
    height = component * max(1.0, float(widths[longest]))
    # A point is at the height of the component that its elements are in.
    height_of_point = np.zeros(len(position))
    is_point = table >= 0
    heights = np.broadcast_to(height[:, None], table.shape)
    height_of_point[table[is_point]] = heights[is_point]
    # Inside a component let the height grow a little along its longest axis, so that a cut
    # across the row runs across that axis.
    height += WITHIN * (where[:, longest] - where[:, longest].min())
    directions = np.eye(len(frame) + 1)
    directions[:-1, :-1] = frame
    return (
        np.column_stack([where, height]),
        np.column_stack([position, height_of_point]),
        directions,
    )


def moved_together(
    levels: list[Level], labels: list[Int32s], block: Int32s, component: Int32s
) -> list[Level]:
    """Levels with components translated, so that those that share a block touch each other.

    ``block`` has the blocks of the largest clusters, cut after :func:`apart_first`: the
    last block of a component may hold some of the next component. Without the translation
    its centroid would be in neither, and would draw nothing. ``labels`` has the cluster of
    each level's members in the next level.
    """
    shift = _shifts(levels[-1], block, component)
    moved = []
    for k in range(len(levels) - 1, -1, -1):
        if k < len(labels):
            component = component[labels[k]]
        place = read_only(levels[k].place + shift[component])
        moved.append(levels[k]._replace(place=place))
    return moved[::-1]


def _shifts(top: Level, block: Int32s, component: Int32s) -> Float64s:
    """The translation of each component, (components, d)."""
    # The mean place of each component in each of its blocks.
    n_blocks = int(block.max()) + 1
    key = component.astype(np.int64) * n_blocks + block
    pair, inverse = np.unique(key, return_inverse=True)
    size = np.bincount(inverse, top.weight)
    sums = [np.bincount(inverse, top.weight * axis) for axis in top.place.T]
    middle = np.stack(sums, axis=1) / size[:, None]
    # Where a component begins in the last block of the one before, both places meet.
    owner, number = np.divmod(pair, n_blocks)
    begins = np.flatnonzero(np.diff(owner)) + 1
    shared = (number[begins] == number[begins - 1])[:, None]
    step = np.where(shared, middle[begins - 1] - middle[begins], 0.0)
    first_stays = np.zeros_like(middle[:1])
    return np.concatenate([first_stays, np.cumsum(step, axis=0)])


@kernel
def _components_within(offset: Int64s, neighbours: Int32s, kind: Int32s) -> Int32s:
    """The connected component of each vertex in the graph without edges between kinds."""
    # Search breadth-first from each vertex that no component has yet.
    n = kind.size
    component = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    count = 0
    for root in range(n):
        if component[root] >= 0:
            continue
        # Open a component, with the root alone in the queue.
        component[root] = count
        queue[0] = root
        ahead = 0
        end = 1
        while ahead < end:
            i = np.uint32(queue[ahead])
            ahead += 1
            for s in range(np.uint64(offset[i]), np.uint64(offset[i + 1])):
                j = np.uint32(neighbours[s])
                # An edge between kinds leads nowhere.
                if component[j] < 0 and kind[j] == kind[i]:
                    component[j] = count
                    queue[end] = j
                    end += 1
        count += 1
    return component
