"""Bring a block's colouring down to fewer colours by swapping two colours along chains.

A Kempe chain of the colours a and b is a connected part of the elements of these two colours;
swapping them inside it keeps the colouring proper. An element past the palette gets the colour
a when its neighbours of colour a can all be turned into b. With two points an element this is
the alternating path of edge colouring, which always succeeds where the conflicts have no odd
cycle (quads, hexahedra: Koenig's theorem).
"""

from typing import NamedTuple

import numpy as np

from ..kernels import Int32s, Int64s, UInt64s, helper
from ..kernels.arrays import largest
from .bits import bit, first_colours, lowest

# Chain elements visited per element of the block, at most; 15 suffice on every mesh tried.
EFFORT = 50


class Chains(NamedTuple):
    """A block, its colours, and the marks of the search."""

    local: Int32s
    offset: Int32s
    element: Int32s
    colour: Int32s
    used: UInt64s  # the colours on each point
    near: Int32s  # the last element past the palette that had this point
    seen: Int64s  # the last search that reached this element
    chain: Int32s
    clock: Int64s  # number of searches; elements visited


@helper
def repair(local: Int32s, offset: Int32s, element: Int32s, colour: Int32s, palette: int) -> int:
    """Recolour what it can of the elements of colours from ``palette`` on; returns the count.

    ``colour``, (m,) int32 in 0..63, is changed in place; colours stay without a gap.
    O(m k), and at most ``EFFORT`` chain elements an element.
    """
    m = colour.size
    n_points = offset.size - 1
    clock = np.zeros(2, np.int64)
    near, seen = np.full(n_points, -1, np.int32), np.zeros(m, np.int64)
    chain, used = np.empty(m, np.int32), np.zeros(n_points, np.uint64)
    state = Chains(local, offset, element, colour, used, near, seen, chain, clock)
    for e in range(m):
        _put(state, e)
    for e in range(m):
        if colour[e] >= palette:
            _take(state, e)
            colour[e] = _lower_colour(state, e, palette)
            _put(state, e)
    return close_gaps(colour)


@helper
def close_gaps(colour: Int32s) -> int:
    """Renumber the colours, keeping their order, so that each is in use; returns the count."""
    number = np.zeros(largest(colour) + 1, np.int32)
    for c in colour:
        number[c] = 1
    count = 0
    for c in range(number.size):
        count += number[c]
        number[c] = count - 1
    for e in range(colour.size):
        colour[e] = number[colour[e]]
    return count


@helper
def _put(s: Chains, e: int) -> None:
    for j in range(s.local.shape[1]):
        s.used[s.local[e, j]] |= bit(s.colour[e])


@helper
def _take(s: Chains, e: int) -> None:
    for j in range(s.local.shape[1]):
        s.used[s.local[e, j]] &= ~bit(s.colour[e])


@helper
def _lower_colour(s: Chains, e: int, palette: int) -> int:
    wanted = first_colours(palette)
    taken = np.uint64(0)
    for j in range(s.local.shape[1]):
        s.near[s.local[e, j]] = e
        taken |= s.used[s.local[e, j]]
    if ~taken & wanted != 0:
        return lowest(~taken)
    # A single neighbour of colour a succeeds most often: try these first.
    for single in (True, False):
        for a in range(palette):
            n = _neighbours(s, e, a)
            if (n == 1) == single and _free_by_swaps(s, e, n, a, palette):
                return a
    return lowest(~(taken | wanted))


@helper
def _neighbours(s: Chains, e: int, a: int) -> int:
    """Gather the neighbours of ``e`` of colour ``a`` at the front of the chain."""
    s.clock[0] += 1
    n = 0
    for j in range(s.local.shape[1]):
        p = s.local[e, j]
        if s.used[p] & bit(a) != 0:
            n = _append(s, p, a, n)
    return n


@helper
def _append(s: Chains, p: int, colour: int, n: int) -> int:
    for q in range(s.offset[p], s.offset[p + 1]):
        f = s.element[q]
        if s.colour[f] == colour and s.seen[f] != s.clock[0]:
            s.seen[f] = s.clock[0]
            s.chain[n] = f
            n += 1
    return n


@helper
def _free_by_swaps(s: Chains, e: int, n: int, a: int, palette: int) -> bool:
    """Try to turn the first ``n`` of the chain, all of colour ``a``, into another colour."""
    for b in range(palette):
        if b == a:
            continue
        if s.clock[1] > EFFORT * s.colour.size:
            return False
        length = _grow(s, e, n, a, b)
        if length > 0:
            _swap(s, length, a, b)
            return True
    return False


@helper
def _grow(s: Chains, e: int, n: int, a: int, b: int) -> int:
    """Complete the chain of colours ``a`` and ``b``; 0 when it gives a neighbour of ``e`` a."""
    s.clock[0] += 1
    for i in range(n):
        s.seen[s.chain[i]] = s.clock[0]
    i = 0
    while i < n:
        f = s.chain[i]
        i += 1
        s.clock[1] += 1
        other = a + b - s.colour[f]
        for j in range(s.local.shape[1]):
            p = s.local[f, j]
            if s.used[p] & bit(other) != 0:
                known = n
                n = _append(s, p, other, n)
                if other == b and _any_near(s, e, known, n):
                    return 0
    return n


@helper
def _any_near(s: Chains, e: int, start: int, stop: int) -> bool:
    for i in range(start, stop):
        for j in range(s.local.shape[1]):
            if s.near[s.local[s.chain[i], j]] == e:
                return True
    return False


@helper
def _swap(s: Chains, length: int, a: int, b: int) -> None:
    for i in range(length):
        _take(s, s.chain[i])
    for i in range(length):
        s.colour[s.chain[i]] = a + b - s.colour[s.chain[i]]
        _put(s, s.chain[i])
