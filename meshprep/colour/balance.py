"""Hand out block colours, and even out how many blocks each has.

A colour with a handful of blocks leaves a device idle for a whole launch.
"""

import numpy as np

from ..kernels import Int32s, Int64s, UInt64s, helper, kernel
from ..kernels.arrays import smallest
from .bits import FULL, ONE, WORD, bit, lowest
from .conflicts import Conflicts, neighbours

PASSES = 10


@kernel
def first_fit_blocks(conflicts: Conflicts, order: Int32s) -> tuple[Int32s, int, UInt64s]:
    """Give each block, in ``order``, the lowest colour that no neighbour has.

    Also gives the number of colours, and as bits the colours on each point of high degree.
    """
    colour = np.full(order.size, -1, np.int32)
    high_degree_colours = np.zeros((conflicts.n_high_degree, conflicts.n_words), np.uint64)
    seen, found = np.full(colour.size, -1, np.int32), np.empty(colour.size, np.int32)
    taken = np.empty(conflicts.n_words, np.uint64)
    n_colours = 0
    for b in order:
        _taken(conflicts, b, colour, high_degree_colours, seen, found, taken)
        w = 0
        while taken[w] == FULL:
            w += 1
        colour[b] = w * WORD + lowest(~taken[w])
        n_colours = max(n_colours, colour[b] + 1)
        _flip(conflicts, b, colour[b], high_degree_colours)
    return colour, n_colours, high_degree_colours


@kernel
def balance(
    conflicts: Conflicts, colour: Int32s, n_colours: int, high_degree_colours: UInt64s
) -> None:
    """Move blocks from large classes to the least-used colour that admits them.

    ``colour`` and ``high_degree_colours`` are changed in place; the number of colours stays,
    and no class runs empty. At most ``PASSES`` passes, each O(light pairs + n_blocks x n_colours).
    """
    size = np.zeros(n_colours, np.int64)
    for c in colour:
        size[c] += 1
    seen, found = np.full(colour.size, -1, np.int32), np.empty(colour.size, np.int32)
    taken = np.empty(conflicts.n_words, np.uint64)
    for _ in range(PASSES):
        moved = 0
        seen[:] = -1
        for b in range(colour.size):
            old = colour[b]
            # A class within one of the smallest has nothing to give.
            if size[old] <= smallest(size) + 1:
                continue
            _taken(conflicts, b, colour, high_degree_colours, seen, found, taken)
            new = _least_used(taken, size)
            if new >= 0 and size[new] + 1 < size[old]:
                _flip(conflicts, b, old, high_degree_colours)
                _flip(conflicts, b, new, high_degree_colours)
                size[old] -= 1
                size[new] += 1
                colour[b] = new
                moved += 1
        if not moved:
            break


@helper
def _taken(
    conflicts: Conflicts,
    b: int,
    colour: Int32s,
    high_degree_colours: UInt64s,
    seen: Int32s,
    found: Int32s,
    taken: UInt64s,
) -> None:
    """Set ``taken`` to the colours of the other blocks that ``b`` shares a point with."""
    for w in range(taken.size):
        taken[w] = 0
    if conflicts.n_high_degree:
        for i in range(conflicts.point_offset[b], conflicts.point_offset[b + 1]):
            if conflicts.point[i] < 0:
                for w in range(taken.size):
                    taken[w] |= high_degree_colours[-1 - conflicts.point[i], w]
    for other in found[: neighbours(conflicts, b, seen, found)]:
        if colour[other] >= 0:
            taken[colour[other] // WORD] |= bit(colour[other] % WORD)


@helper
def _flip(conflicts: Conflicts, b: int, colour: int, high_degree_colours: UInt64s) -> None:
    for i in range(conflicts.point_offset[b], conflicts.point_offset[b + 1]):
        if conflicts.point[i] < 0:
            high_degree_colours[-1 - conflicts.point[i], colour // WORD] ^= bit(colour % WORD)


@helper
def _least_used(taken: UInt64s, size: Int64s) -> int:
    best = -1
    for w in range((size.size + WORD - 1) // WORD):
        free = ~taken[w]
        while free != 0:
            c = w * WORD + lowest(free)
            if c >= size.size:
                break
            if best < 0 or size[c] < size[best]:
                best = c
            free &= free - ONE
    return best
