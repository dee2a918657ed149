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
from ..mesh.incidence import (
    count_elements,
    elements_of_points,
    most_on_a_point,
    number_points,
)
from .greedy import WORD, first_fit, first_round
from .saturation import saturate

# Further starts for a block that misses its bound; on shuffled hexahedra a third of these
# blocks then reach it.
RESTARTS = 12
# Distance from start to start, as a share of the block: no two starts come close.
GOLDEN = 0.6180339887498949
# The colours of a block for which a word of bits is not enough, until they are counted.
MANY = WORD + 1


class ThreadColouring(NamedTuple):
    """The colouring of the elements of all blocks, so far.

    ``table`` has the rows of points by block, ``block_offset`` where each block begins,
    ``colour`` the colour of each element, ``n_colours`` the number of colours of each
    block, and ``bound`` the least number that it needs.
    """

    table: Int32s
    block_offset: Int64s
    colour: NDArray[np.uint16]
    n_colours: Int32s
    bound: Int32s


def no_colours(table: Int32s, block_offset: Int64s) -> ThreadColouring:
    """The colouring before the first step."""
    n_blocks = block_offset.size - 1
    # Kernels are compiled apart for arrays that may be written to and for read-only ones.
    return ThreadColouring(
        table=read_only(table),
        block_offset=read_only(block_offset),
        colour=np.zeros(table.shape[0], np.uint16),
        n_colours=np.zeros(n_blocks, np.int32),
        bound=np.zeros(n_blocks, np.int32),
    )


# Each step is a kernel, so that a step that no block needs is not compiled. It takes the
# numbers of the blocks to work on, so that several threads may run it.
@kernel
def colour_threads_first_fit(blocks: Int64s, state: ThreadColouring) -> None:
    """Find the bound of each block, and colour it first-fit in up to two orders.

    The stored order suits ordered meshes; high degrees first suits tetrahedra. A block that
    needs more colours than a word has bits is left open: its number of colours is ``MANY``.
    """
    table = state.table
    block_offset = state.block_offset
    bound = state.bound
    for b in blocks:
        # Number the points of the block; elements on one point need different colours.
        rows = table[block_offset[b] : block_offset[b + 1]]
        points, local = number_points(rows)
        offset = count_elements(local, points.size)
        bound[b] = most_on_a_point(offset)
        state.n_colours[b] = MANY
        # Colour it in the stored order and, where that misses the bound, by degree.
        order = numbers(len(rows))
        for attempt in range(2):
            if attempt == 1:
                order = _high_degree_first(local, offset)
            colour = np.full(len(rows), -1, np.int32)
            waiting = first_round(
                table=local,
                used=np.zeros(points.size, np.uint64),
                order=order,
                colour=colour,
                base=ZERO,
            )
            if waiting.size == 0 and largest(colour) + 1 < state.n_colours[b]:
                _store(b, colour, state)
            if state.n_colours[b] <= bound[b] or state.n_colours[b] == MANY:
                break


@kernel
def colour_threads_in_rounds(blocks: Int64s, state: ThreadColouring) -> None:
    """Colour blocks that were left open, first-fit in up to two orders, with any colours.

    Their bounds are known.
    """
    table = state.table
    block_offset = state.block_offset
    for b in blocks:
        rows = table[block_offset[b] : block_offset[b + 1]]
        points, local = number_points(rows)
        order = numbers(len(rows))
        for attempt in range(2):
            if attempt == 1:
                order = _high_degree_first(local, count_elements(local, points.size))
            colour = np.full(len(rows), -1, np.int32)
            first_fit(
                table=local,
                n_points=points.size,
                order=order,
                colour=colour,
                base=ZERO,
            )
            if attempt == 0 or largest(colour) + 1 < state.n_colours[b]:
                _store(b, colour, state)
            if state.n_colours[b] <= state.bound[b]:
                break


@kernel
def search_thread_colours(blocks: Int64s, state: ThreadColouring) -> None:
    """Colour blocks by saturation from one start after another, until one is optimal."""
    table = state.table
    block_offset = state.block_offset
    count = state.n_colours
    bound = state.bound
    for b in blocks:
        points, local = number_points(table[block_offset[b] : block_offset[b + 1]])
        offset, element = elements_of_points(local, points.size)
        m = len(local)
        # Try from starts that lie far apart; from the second on, neighbours vote.
        target = int(np.int64(bound[b]))
        for attempt in range(RESTARTS + 1):
            if count[b] <= target:
                break
            start = int(attempt * GOLDEN * m) % m
            other = saturate(
                local=local,
                offset=offset,
                element=element,
                start=start,
                palette=target,
                vote=attempt > 0,
            )
            # Saturation finds two colours wherever two suffice: else three are optimal.
            if bound[b] == 2:
                target = int(np.int64(3))
            if smallest(other) >= 0 and largest(other) + 1 < count[b]:
                _store(b, other, state)


@helper
def _store(b: int, colour: Int32s, state: ThreadColouring) -> None:
    """Take the colours of the elements of a block."""
    for e in range(colour.size):
        state.colour[state.block_offset[b] + e] = colour[e]
    state.n_colours[b] = largest(colour) + 1


@helper
def _high_degree_first(local: Int32s, offset: Int32s) -> Int32s:
    """The elements by the number of elements on their points, most first, stably."""
    m = local.shape[0]
    degree_sum = np.zeros(m, np.int32)
    for e in range(m):
        for p in local[e]:
            degree_sum[e] += offset[p + 1] - offset[p]
    # Sort by counting, from the largest sum down.
    most = largest(degree_sum)
    next_position = np.zeros(most + 2, np.int32)
    for c in degree_sum:
        next_position[most - c + 1] += 1
    scan_offsets(next_position)
    order = np.empty(m, np.int32)
    for e in range(m):
        order[next_position[most - degree_sum[e]]] = e
        next_position[most - degree_sum[e]] += 1
    return order


# Colours of a block, at most.
COLOUR_LIMIT = 65536
# Chunks of blocks for each thread, since some blocks take longer than others.
CHUNKS = 16


@dataclass(frozen=True, eq=False)
class ThreadColours:
    """Colours of the elements inside their blocks."""

    # (n,): from 0 in every block, without gaps; uint16 where a block needs more than 256.
    colour: UInt8s | NDArray[np.uint16]
    # (n_blocks,): the number of colours of each block; 0 for an empty one.
    count: Int32s
    # (n_blocks,): the largest number of the block's elements on one point: no colouring has
    # fewer.
    bound: Int32s


def colour_threads(table: Int32s, n_points: int, block_offset: Int64s) -> ThreadColours:
    """Colour the elements of every block so that no two of one colour share a point.

    Greedy with bit masks [G10 section 9.1] in two orders; a block that misses its bound is
    coloured by saturation, then from other starts, and keeps the best. A point named twice
    by one element is no conflict. Raises MeshprepError when a block needs more than 65,536
    colours. Blocks are independent and run in parallel; the result does not depend on the
    number of threads. O(sum over blocks and their points of elements squared) for points
    with up to 64 of a block's elements, and linear in the incidences for each 64 colours
    beyond.

    ``table`` (n, k) and ``block_offset`` are those of
    :func:`~.block_colours.colour_blocks`.
    """
    # Without points nothing conflicts: a block that has elements has one colour.
    sizes = np.diff(block_offset)
    if table.shape[1] == 0 or n_points == 0:
        used = (sizes > 0).astype(np.int32)
        one_colour = np.zeros(table.shape[0], np.uint8)
        return ThreadColours(colour=one_colour, count=used, bound=used.copy())
    state = no_colours(table, block_offset)
    count = state.n_colours
    bound = state.bound
    # Colour all blocks first-fit, the few that need many colours in rounds, then those that
    # miss their bounds by saturation.
    _each(colour_threads_first_fit, np.flatnonzero(sizes), state)
    _each(colour_threads_in_rounds, np.flatnonzero(count == MANY), state)
    not_optimal = np.flatnonzero((count > bound) & (bound <= WORD))
    _each(search_thread_colours, not_optimal, state)
    # Store the colours in as few bytes as they need.
    most = int(count.max(initial=0))
    if most > COLOUR_LIMIT:
        raise MeshprepError(
            f"block {int(count.argmax())} needs {most} thread colours, more than "
            f"{COLOUR_LIMIT}: lower the block size"
        )
    if most <= 256:
        return ThreadColours(colour=state.colour.astype(np.uint8), count=count, bound=bound)
    return ThreadColours(colour=state.colour, count=count, bound=bound)


def thread_bound(table: Int32s, n_points: int, block_offset: Int64s) -> Int32s:
    """The ``bound`` of :func:`colour_threads` without the colours. O(n k)."""
    if table.shape[1] == 0 or n_points == 0:
        return (np.diff(block_offset) > 0).astype(np.int32)
    return np.concatenate(
        rows_in_pieces(_bounds, read_only(block_offset), read_only(table))
    )


def _each(kernel: Callable[..., None], blocks: Int64s, state: ThreadColouring) -> None:
    """Run a kernel on these blocks, in chunks, on the usual number of threads."""
    if blocks.size == 0:
        return
    threads = thread_count()
    if threads == 1:
        kernel(blocks, state)
    else:
        chunks = np.array_split(blocks, min(blocks.size, CHUNKS * threads))
        each(kernel, [*zip(chunks, repeat(state))])


@kernel
def _bounds(table: Int32s, block_offset: Int64s) -> Int32s:
    """The largest number of elements on a point, for each block."""
    bound = np.zeros(block_offset.size - 1, np.int32)
    for b in range(block_offset.size - 1):
        start = block_offset[b]
        stop = block_offset[b + 1]
        if stop > start:
            points, local = number_points(table[start:stop])
            bound[b] = most_on_a_point(count_elements(local, points.size))
    return bound


def sort_by_colour(colour: NDArray[np.unsignedinteger], block_offset: Int64s) -> Int32s:
    """The order, ``new_to_old``, that sorts the elements of each block by colour."""
    block = np.repeat(np.arange(block_offset.size - 1), np.diff(block_offset))
    return np.lexsort((colour, block)).astype(np.int32)
