"""Thread colours: inside a block, no two elements of one colour write the same point."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import read_only

from ..kernels import Int32s, Int64s, UInt8s, helper, kernel
from ..kernels.arrays import ZERO, largest, numbers, scan_offsets, smallest
from ..kernels.parallel import each, rows_in_pieces
from ..mesh.incidence import count_elements, elements_of_points, most_on_a_point, number_points
from .greedy import WORD, first_fit
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


# Kernels take the numbers of some blocks and work on these alone, so that several threads may run
# them. A step that no block needs is never compiled.
@kernel
def first_fit_blocks(blocks: Int64s, state: ThreadColouring) -> None:
    """Bound and first-fit: as stored suits ordered meshes, high degrees first tets."""
    table, block_offset, bound = state.table, state.block_offset, state.bound
    for b in blocks:
        rows = table[block_offset[b] : block_offset[b + 1]]
        points, local = number_points(rows)
        offset = count_elements(local, points.size)
        bound[b] = most_on_a_point(offset)
        order = numbers(len(rows))
        for attempt in range(2):
            if attempt == 1:
                order = _high_degree_first(local, offset)
            found = np.full(len(rows), -1, np.int32)
            first_fit(local, points.size, order, found, ZERO)
            if attempt == 0 or largest(found) + 1 < state.n_colours[b]:
                _store(b, found, state)
            if state.n_colours[b] <= bound[b]:
                break


@kernel
def search_blocks(blocks: Int64s, state: ThreadColouring) -> None:
    """Saturation from one start after another, until one reaches the bound."""
    table, block_offset, _colour, count, bound = state
    for b in blocks:
        points, local = number_points(table[block_offset[b] : block_offset[b + 1]])
        offset, element = elements_of_points(local, points.size)
        m, target = len(local), int(np.int64(bound[b]))
        for attempt in range(RESTARTS + 1):
            if count[b] <= target:
                break
            start = int(attempt * GOLDEN * m) % m
            other = saturate(local, offset, element, start, target, attempt > 0)
            # Saturation finds two colours wherever two suffice: three cannot be bettered.
            if bound[b] == 2:
                target = int(np.int64(3))
            if smallest(other) >= 0 and largest(other) + 1 < count[b]:
                _store(b, other, state)


@helper
def _store(b: int, found: Int32s, state: ThreadColouring) -> None:
    for e in range(found.size):
        state.colour[state.block_offset[b] + e] = found[e]
    state.n_colours[b] = largest(found) + 1


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
    scan_offsets(place)
    order = np.empty(m, np.int32)
    for e in range(m):
        order[place[most - degree_sum[e]]] = e
        place[most - degree_sum[e]] += 1
    return order


COLOUR_LIMIT = 65536
# Chunks of blocks a thread: some blocks take longer than others.
CHUNKS = 16


@dataclass(frozen=True, eq=False)
class ThreadColours:
    """Colours of the elements inside their blocks."""

    # (n,): from 0 in every block, without gaps; uint16 where a block needs more than 256.
    colour: UInt8s | NDArray[np.uint16]
    count: Int32s  # (n_blocks,): colours of each block; 0 for an empty one
    # (n_blocks,): the largest number of the block's elements on one point: no colouring has fewer.
    bound: Int32s


def colour_threads(table: Int32s, n_points: int, block_offset: Int64s) -> ThreadColours:
    """Colour the elements of every block so that no two of one colour share a point.

    Greedy with bit masks [G10 section 9.1] in two orders; a block that misses its bound is coloured
    by saturation, then from other starts, and keeps the best. A point named twice by one element is
    no conflict. Raises MeshprepError when a block needs more than 65,536 colours. Blocks are
    independent and run in parallel; the result does not depend on the number of threads. O(sum over
    blocks and their points of elements squared) for points with up to 64 of a block's elements, and
    linear in the incidences for each 64 colours beyond.

    ``table`` (n, k) and ``block_offset`` are those of :func:`~.block_colours.colour_blocks`.
    """
    n_blocks = block_offset.size - 1
    sizes = np.diff(block_offset)
    if table.shape[1] == 0 or n_points == 0:
        used = (sizes > 0).astype(np.int32)
        return ThreadColours(np.zeros(table.shape[0], np.uint8), used, used.copy())
    colour = np.zeros(table.shape[0], np.uint16)
    count = np.zeros(n_blocks, np.int32)
    bound = np.zeros(n_blocks, np.int32)
    # Arrays that may be written and arrays that may not would be compiled for apart.
    state = ThreadColouring(read_only(table), read_only(block_offset), colour, count, bound)
    _each(first_fit_blocks, np.flatnonzero(sizes), state)
    _each(search_blocks, np.flatnonzero((count > bound) & (bound <= WORD)), state)
    most = int(count.max(initial=0))
    if most > COLOUR_LIMIT:
        raise MeshprepError(
            f"block {int(count.argmax())} needs {most} thread colours, more than {COLOUR_LIMIT}: "
            "lower the block size"
        )
    return ThreadColours(colour.astype(np.uint8) if most <= 256 else colour, count, bound)


def thread_bound(table: Int32s, n_points: int, block_offset: Int64s) -> Int32s:
    """The ``bound`` of :func:`colour_threads` without the colours. O(n k)."""
    if table.shape[1] == 0 or n_points == 0:
        return (np.diff(block_offset) > 0).astype(np.int32)
    return np.concatenate(rows_in_pieces(_bounds, read_only(block_offset), read_only(table)))


def _each(kernel: Callable[..., None], blocks: Int64s, state: ThreadColouring) -> None:
    """Run a kernel on these blocks, in chunks that as many threads take as numba would."""
    threads = thread_count()
    if threads == 1:
        kernel(blocks, state)
    elif blocks.size:
        chunks = np.array_split(blocks, min(blocks.size, CHUNKS * threads))
        each(kernel, [*zip(chunks, repeat(state))])


@kernel
def _bounds(table: Int32s, block_offset: Int64s) -> Int32s:
    bound = np.zeros(block_offset.size - 1, np.int32)
    for b in range(block_offset.size - 1):
        start, stop = block_offset[b], block_offset[b + 1]
        if stop > start:
            points, local = number_points(table[start:stop])
            bound[b] = most_on_a_point(count_elements(local, points.size))
    return bound


def sort_by_colour(colour: NDArray[np.unsignedinteger], block_offset: Int64s) -> Int32s:
    """The order, ``new_to_old``, that sorts each block by colour, stably; blocks stay in place."""
    block = np.repeat(np.arange(block_offset.size - 1), np.diff(block_offset))
    return np.lexsort((colour, block)).astype(np.int32)
