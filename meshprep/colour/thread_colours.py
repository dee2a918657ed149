"""Thread colours: inside a block, no two elements of one colour write the same point."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cpu.cores import thread_count
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import read_only

from ..kernels import Int32s, Int64s, UInt8s, kernel
from ..kernels.parallel import each, rows_in_pieces
from ..mesh.blockwise import count_elements, most_on_a_point, number_points
from .bits import WORD
from .one_block import ThreadColouring, first_fit_blocks, search_blocks

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
    pieces = rows_in_pieces(read_only(block_offset))
    return np.concatenate(each(_bounds, [(read_only(table), piece) for piece in pieces]))


def _each(kernel: Callable[..., None], blocks: Int64s, state: ThreadColouring) -> None:
    """Run a kernel on these blocks, in chunks that as many threads take as numba would."""
    threads = thread_count()
    if threads == 1:
        kernel(blocks, state)
    elif blocks.size:
        chunks = np.array_split(blocks, min(blocks.size, CHUNKS * threads))
        each(kernel, [(chunk, state) for chunk in chunks])


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
    """The order, ``new_to_old``, that sorts each block by colour; stable, blocks stay in place.

    O(n + sum over blocks of the colours).
    """
    return _sort(np.ascontiguousarray(colour), block_offset)


@kernel
def _sort(colour: NDArray[np.unsignedinteger], block_offset: Int64s) -> Int32s:
    new_to_old = np.empty(colour.size, np.int32)
    place = np.zeros(np.iinfo(np.uint16).max + 2, np.int64)
    for b in range(block_offset.size - 1):
        start, stop = block_offset[b], block_offset[b + 1]
        most = np.int64(0)
        for e in range(start, stop):
            most = max(most, np.int64(colour[e]))
        place[: most + 2] = 0
        for e in range(start, stop):
            place[np.int64(colour[e]) + 1] += 1
        place[0] = start
        for c in range(most + 1):
            place[c + 1] += place[c]
        for e in range(start, stop):
            own = np.int64(colour[e])
            new_to_old[place[own]] = e
            place[own] += 1
    return new_to_old
