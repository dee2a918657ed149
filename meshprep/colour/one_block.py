"""The steps to a colouring of the elements of a block, each for the blocks that need it.

Every kernel takes the numbers of some blocks and works on these alone, so that several threads
may run it. A step that no block needs is never compiled.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, Int64s, helper, kernel
from ..kernels.arrays import largest, numbers, smallest
from ..mesh.blockwise import count_elements, elements_of_points, most_on_a_point, number_points
from .greedy import first_fit
from .saturation import saturate

# Fresh starts for a block that misses its bound; on shuffled hexahedra a third of them reach it.
RESTARTS = 12
# Steps through the block to the next start, as a share of it: no two come close.
GOLDEN = 0.6180339887498949


class ThreadColouring(NamedTuple):
    """Rows of points by block; the colours so far, how many a block has, and the least it needs."""

    table: Int32s
    block_offset: Int64s
    colour: NDArray[np.uint16]
    n_colours: Int32s
    bound: Int32s


@kernel
def first_fit_blocks(blocks: Int64s, state: ThreadColouring) -> None:
    """Bound and first-fit: as stored suits ordered meshes, high degrees first tets."""
    table, block_offset, bound = state.table, state.block_offset, state.bound
    for b in blocks:
        rows = table[block_offset[b] : block_offset[b + 1]]
        points, local = number_points(rows)
        offset = count_elements(local, points.size)
        bound[b] = most_on_a_point(offset)
        best = np.full(len(rows), -1, np.int32)
        first_fit(local, points.size, numbers(len(rows)), best, 0)
        if largest(best) >= bound[b]:
            other = np.full(len(rows), -1, np.int32)
            first_fit(local, points.size, _high_degree_first(local, offset), other, 0)
            best = _fewer(best, other)
        _store(b, best, state)


@kernel
def search_blocks(blocks: Int64s, state: ThreadColouring) -> None:
    """Saturation from one start after another, until one reaches the bound."""
    table, block_offset, _colour, count, bound = state
    for b in blocks:
        points, local = number_points(table[block_offset[b] : block_offset[b + 1]])
        offset, element = elements_of_points(local, points.size)
        m, target = len(local), bound[b]
        for attempt in range(RESTARTS + 1):
            if count[b] <= target:
                break
            start = int(attempt * GOLDEN * m) % m
            other = saturate(local, offset, element, start, target, attempt > 0)
            # Saturation finds two colours wherever two suffice: three cannot be bettered.
            if bound[b] == 2:
                target = 3
            if smallest(other) >= 0 and largest(other) + 1 < count[b]:
                _store(b, other, state)


@helper
def _store(b: int, found: Int32s, state: ThreadColouring) -> None:
    for e in range(found.size):
        state.colour[state.block_offset[b] + e] = found[e]
    state.n_colours[b] = largest(found) + 1


@helper
def _fewer(best: Int32s, other: Int32s) -> Int32s:
    """The colouring with fewer colours, where ``other`` is complete."""
    return other if smallest(other) >= 0 and largest(other) < largest(best) else best


@helper
def _high_degree_first(local: Int32s, offset: Int32s) -> Int32s:
    """The elements by the number of elements on their points, most first, else as stored."""
    m = local.shape[0]
    degree_sum = np.zeros(m, np.int32)
    for e in range(m):
        for p in local[e]:
            degree_sum[e] += offset[p + 1] - offset[p]
    most = largest(degree_sum)
    place = np.zeros(most + 2, np.int32)
    for c in degree_sum:
        place[most - c + 1] += 1
    for rank in range(most + 1):
        place[rank + 1] += place[rank]
    order = np.empty(m, np.int32)
    for e in range(m):
        order[place[most - degree_sum[e]]] = e
        place[most - degree_sum[e]] += 1
    return order
