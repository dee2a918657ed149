"""Colour the elements of one block, the most constrained element first (Brelaz's DSATUR).

First-fit in storage order is good where the mesh is ordered and poor where it is not; the order
by saturation does not depend on how the block is stored.
"""

import numpy as np

from ..kernels import Int32s, UInt64s, helper
from ..kernels.arrays import ZERO
from .greedy import ONE, WORD, bit, first_colours, lowest

# Bits of a counter of votes: an element has at most 64 neighbours a column.
COUNTER = 16


@helper
def saturate(
    local: Int32s, offset: Int32s, element: Int32s, start: int, palette: int, vote: bool
) -> Int32s:
    """Colours 0..63 of a block's elements; -1 where these do not suffice.

    Next comes the element that sees the most colours; among equals, the one that has waited
    longest, from ``start`` on in storage order: another start gives another colouring. ``palette``
    is the number of colours aimed at, 1..64. O(sum over points of elements squared).

    ``offset`` and ``element`` are the elements on each point, at most 64 on one. With ``vote``,
    where several colours of the palette are free, an element takes the one that most of the
    uncoloured neighbours cannot have anyway, instead of the lowest. That is dearer; regular blocks
    come out with the fewest colours more often.
    """
    m, k = local.shape
    colour = np.full(m, -1, np.int32)
    forbidden = np.zeros(m, np.uint64)
    rank = np.zeros(m, np.int32)
    votes = np.zeros(COUNTER, np.uint64)
    following, previous = one_queue(m, start)
    wanted = first_colours(palette)
    top = ZERO
    for _ in range(m):
        e, top = take_first(following, previous, top)
        free = ~forbidden[e]
        if free == 0:
            rank[e] = -1
            continue
        if vote and free & wanted != 0:
            free = _elect(local, offset, element, e, free & wanted, colour, forbidden, votes)
        colour[e] = lowest(free)
        mine = bit(colour[e])
        for j in range(k):
            for q in range(offset[local[e, j]], offset[local[e, j] + 1]):
                f = element[q]
                if forbidden[f] & mine == 0 and colour[f] < 0 and rank[f] >= 0:
                    forbidden[f] |= mine
                    rank[f] += 1
                    move_to_back(following, previous, f, m + rank[f])
                    top = max(top, rank[f])
    return colour


@helper
def one_queue(m: int, start: int) -> tuple[Int32s, Int32s]:
    """Rings of rank 0 to 64, through sentinels from ``m`` on; all elements are in the first."""
    following = np.empty(m + WORD + 1, np.int32)
    previous = np.empty(m + WORD + 1, np.int32)
    for s in range(m, m + WORD + 1):
        following[s] = previous[s] = s
    last = m
    for i in range(m):
        e = (start + i) % m
        following[last] = e
        previous[e] = last
        last = e
    following[last] = m
    previous[m] = last
    return following, previous


@helper
def take_first(following: Int32s, previous: Int32s, top: int) -> tuple[int, int]:
    """Take out the first element of the highest rank, ``top`` at most; that element and rank."""
    # the queue of rank r is a ring through the sentinel m + r
    m = following.size - (WORD + 1)
    while following[m + top] == m + top:
        top -= 1
    e = following[m + top]
    following[previous[e]] = following[e]
    previous[following[e]] = previous[e]
    return e, top


@helper
def move_to_back(following: Int32s, previous: Int32s, f: int, sentinel: int) -> None:
    """Put ``f`` last into another ring."""
    following[previous[f]] = following[f]
    previous[following[f]] = previous[f]
    last = previous[sentinel]
    following[last] = f
    previous[f] = last
    following[f] = sentinel
    previous[sentinel] = f


@helper
def _elect(
    local: Int32s,
    offset: Int32s,
    element: Int32s,
    e: int,
    free: np.uint64,
    colour: Int32s,
    forbidden: UInt64s,
    votes: UInt64s,
) -> np.uint64:
    """The colours of ``free`` that most uncoloured neighbours are forbidden, as a word."""
    if free & (free - ONE) == 0:
        return free
    # votes[i] holds bit i of 64 counters, one a colour, all counted at once.
    votes[:] = 0
    for j in range(local.shape[1]):
        for q in range(offset[local[e, j]], offset[local[e, j] + 1]):
            f = element[q]
            carry = forbidden[f] & free
            if colour[f] >= 0 or f == e:
                carry = np.uint64(0)
            i = 0
            while carry != 0 and i < COUNTER:
                votes[i], carry = votes[i] ^ carry, votes[i] & carry
                i += 1
    for i in range(COUNTER - 1, -1, -1):
        if free & votes[i] != 0:
            free &= votes[i]
    return free
