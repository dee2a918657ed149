"""Components of a graph: what is in two of them shares nothing, wherever it is."""

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, kernel


@kernel
def components_within(offset: Int64s, neighbours: Int32s, kind: Int32s) -> Int32s:
    """The component of each vertex, where edges between two kinds do not count; from 0. Linear."""
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


def side_by_side(place: Float64s, weight: Int32s, block: Int32s, component: Int32s) -> Float64s:
    """How far to move each component so that what one block has of two of them is in one place.

    Of blocks that :func:`apart_first` has led to: the last one of a component may hold some of the
    next one. What is moved as a whole keeps its own distances. Returns (components, d).
    """
    key = component.astype(np.int64) * (int(block.max()) + 1) + block
    pair, inverse = np.unique(key, return_inverse=True)
    size = np.bincount(inverse, weight)
    middle = np.stack([np.bincount(inverse, weight * axis) / size for axis in place.T], axis=1)
    owner, number = np.divmod(pair, int(block.max()) + 1)
    begins = np.flatnonzero(np.diff(owner)) + 1
    step = np.where((number[begins] == number[begins - 1])[:, None], middle[begins - 1] - middle[begins], 0)
    return np.concatenate([np.zeros((1, place.shape[1])), np.cumsum(step, axis=0)])


def torn_blocks(piece: Int32s, component: Int32s, block: Int32s) -> int:
    """Blocks in several pieces of one component of the mesh.

    ``piece`` has the components inside blocks, ``component`` those of the mesh.
    """
    first = np.unique(piece, return_index=True)[1]
    pairs = block[first].astype(np.int64) * (int(component.max(initial=0)) + 1) + component[first]
    found, count = np.unique(pairs, return_counts=True)
    return int(np.unique(found[count > 1] // (int(component.max(initial=0)) + 1)).size)


def apart_first(
    table: Int32s, where: Float64s, position: Float64s, frame: Float64s, component: Int32s
) -> tuple[Float64s, Float64s, Float64s]:
    """Places of elements and points, and directions, with one more axis: the components.

    Along it elements have no width, so that bisection cuts across it first, and at most one block
    holds what is left of two components that follow each other.
    """
    place = component * max(1.0, float(np.ptp(where, axis=0).max()))
    of_points, known = np.zeros(len(position)), table >= 0
    of_points[table[known]] = np.broadcast_to(place[:, None], table.shape)[known]
    directions = np.eye(len(frame) + 1)
    directions[:-1, :-1] = frame
    return np.column_stack([where, place]), np.column_stack([position, of_points]), directions
