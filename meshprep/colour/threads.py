"""Thread colours: inside a block, no two elements of one colour write the same point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..blockwise import elements_of_points, most_on_a_point, number_points
from .bits import WORD
from .greedy import first_fit
from .kempe import repair
from .saturation import saturate

# Fresh starts for a block that misses its bound; on shuffled hexahedra half of them reach it.
RESTARTS = 6
# Steps through the block to the next start, as a share of it: no two come close.
GOLDEN = 0.6180339887498949
COLOUR_LIMIT = 65536


@dataclass(frozen=True, eq=False)
class ThreadColours:
    """Colours of the elements inside their blocks.

    Parameters
    ----------
    colour : (n,) uint8, or uint16 when a block needs more than 256
        From 0 in every block, without gaps.
    count : (n_blocks,) int32
        Colours of each block; 0 for an empty one.
    bound : (n_blocks,) int32
        The largest number of the block's elements on one point: no colouring has fewer.
    """

    colour: NDArray[np.uint8] | NDArray[np.uint16]
    count: NDArray[np.int32]
    bound: NDArray[np.int32]


def colour_threads(
    table: NDArray[np.int32], n_points: int, block_offset: NDArray[np.int64]
) -> ThreadColours:
    """Colour the elements of every block so that no two of one colour share a point.

    Greedy with bit masks [G10 section 9.1] in two orders; a block that misses its bound is
    coloured by saturation, then with Kempe chains, then from other starts, and keeps the best.
    A point named twice by one element is no conflict.

    Parameters
    ----------
    table : (n, k) int32
        Only the columns that the loop writes through, stacked over the to-sets; k may be 0.
    n_points : int
        Points of the stacked to-sets.
    block_offset : (n_blocks + 1,) int64
        Block ``b`` owns the rows ``block_offset[b]`` to ``block_offset[b + 1] - 1``.

    Raises
    ------
    MeshprepError
        When a block needs more than 65,536 colours.

    Notes
    -----
    Blocks are independent and run in parallel; the result does not depend on the number of
    threads. O(sum over blocks and their points of elements squared) for points with up to 64 of
    a block's elements, and linear in the incidences for each 64 colours beyond.
    """
    n_blocks = block_offset.size - 1
    sizes = np.diff(block_offset)
    if table.shape[1] == 0 or n_points == 0:
        used = (sizes > 0).astype(np.int32)
        return ThreadColours(np.zeros(table.shape[0], np.uint8), used, used.copy())
    colour = np.zeros(table.shape[0], np.uint16)
    count = np.zeros(n_blocks, np.int32)
    bound = np.zeros(n_blocks, np.int32)
    _colour_blocks(np.ascontiguousarray(table), block_offset, colour, count, bound)
    most = int(count.max(initial=0))
    if most > COLOUR_LIMIT:
        raise MeshprepError(
            f"block {int(count.argmax())} needs {most} thread colours, more than {COLOUR_LIMIT}: "
            "lower the block size"
        )
    return ThreadColours(colour.astype(np.uint8) if most <= 256 else colour, count, bound)


def thread_bound(
    table: NDArray[np.int32], n_points: int, block_offset: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The ``bound`` of :func:`colour_threads` without the colours. O(n k)."""
    if table.shape[1] == 0 or n_points == 0:
        return (np.diff(block_offset) > 0).astype(np.int32)
    bound = np.zeros(block_offset.size - 1, np.int32)
    _bounds(np.ascontiguousarray(table), block_offset, bound)
    return bound


@njit(cache=True, parallel=True)
def _colour_blocks(
    table: NDArray[np.int32],
    block_offset: NDArray[np.int64],
    colour: NDArray[np.uint16],
    count: NDArray[np.int32],
    bound: NDArray[np.int32],
) -> None:
    for b in prange(block_offset.size - 1):
        start, stop = block_offset[b], block_offset[b + 1]
        if stop > start:
            points, local = number_points(table[start:stop])
            offset, element = elements_of_points(local, points.size)
            most = most_on_a_point(offset)
            bound[b] = most
            found = _colour_block(local, offset, element, most)
            for e in range(stop - start):
                colour[start + e] = found[e]
                count[b] = max(count[b], found[e] + 1)


@njit(cache=True)
def _bounds(
    table: NDArray[np.int32], block_offset: NDArray[np.int64], bound: NDArray[np.int32]
) -> None:
    for b in range(block_offset.size - 1):
        start, stop = block_offset[b], block_offset[b + 1]
        if stop > start:
            points, local = number_points(table[start:stop])
            offset, _ = elements_of_points(local, points.size)
            bound[b] = most_on_a_point(offset)


@njit(cache=True)
def _colour_block(
    local: NDArray[np.int32], offset: NDArray[np.int32], element: NDArray[np.int32], bound: int
) -> NDArray[np.int32]:
    m = local.shape[0]
    n_points = offset.size - 1
    # First-fit is cheapest; storage order suits ordered meshes, crowded points first tets.
    best = np.full(m, -1, np.int32)
    first_fit(local, n_points, _as_stored(m), best, 0)
    if best.max() >= bound:
        other = np.full(m, -1, np.int32)
        first_fit(local, n_points, _crowded_first(local, offset), other, 0)
        best = _fewer(best, other)
    if best.max() < bound or bound > WORD:
        return best
    target = bound
    for attempt in range(RESTARTS + 1):
        if best.max() < target:
            break
        start = np.int64(attempt * GOLDEN * m) % m
        other = saturate(local, offset, element, start, target, attempt > 0)
        # Saturation finds two colours wherever two suffice, so that three cannot be bettered.
        if bound == 2:
            target = 3
        if other.min() >= 0 and other.max() >= target:
            repair(local, offset, element, other, target)
        best = _fewer(best, other)
    return best


@njit(cache=True)
def _fewer(best: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """The colouring with fewer colours, where ``other`` is complete."""
    return other if other.min() >= 0 and other.max() < best.max() else best


@njit(cache=True)
def _as_stored(m: int) -> NDArray[np.int32]:
    order = np.empty(m, np.int32)
    for e in range(m):
        order[e] = e
    return order


@njit(cache=True)
def _crowded_first(local: NDArray[np.int32], offset: NDArray[np.int32]) -> NDArray[np.int32]:
    """The elements by the number of elements on their points, most first, else as stored."""
    m = local.shape[0]
    crowd = np.zeros(m, np.int32)
    for e in range(m):
        for p in local[e]:
            crowd[e] += offset[p + 1] - offset[p]
    most = crowd.max()
    place = np.zeros(most + 2, np.int32)
    for c in crowd:
        place[most - c + 1] += 1
    for rank in range(most + 1):
        place[rank + 1] += place[rank]
    order = np.empty(m, np.int32)
    for e in range(m):
        order[place[most - crowd[e]]] = e
        place[most - crowd[e]] += 1
    return order
