"""Colour the elements of one block, the most constrained element first.

The method is DSATUR: Brelaz, *New methods to color the vertices of a graph*, CACM 22, 1979.

First-fit in the stored order is good on ordered meshes and poor on others; the order by
saturation hardly depends on the stored order.
"""

import numpy as np

from ..kernels import Int32s, UInt64s, helper
from ..kernels.arrays import ZERO
from .greedy import ONE, WORD, bit, first_colours, lowest

# Bits of a counter of votes: an element has at most 64 neighbours for each of its points.
COUNTER = 16


@helper
def saturate(
    local: Int32s,
    offset: Int32s,
    element: Int32s,
    start: int,
    palette: int,
    vote: bool,
) -> Int32s:
    """Colours 0..63 of a block's elements; -1 where these do not suffice.

    Next comes the element that sees the most colours; among equals, the one that has waited
    longest, from ``start`` on in the stored order: another start gives another colouring.
    ``palette`` is the number of colours aimed at, 1..64. O(sum over points of elements
    squared).

    ``offset`` and ``element`` are the elements on each point, at most 64 on a point. With
    ``vote``, where several colours of the palette are free, an element takes the colour
    that is forbidden to most of its uncoloured neighbours, instead of the lowest. That
    takes more time, but regular blocks more often get the fewest colours.
    """
    # The rank of an element is its saturation: the number of colours that it sees.
    m, k = local.shape
    colour = np.full(m, -1, np.int32)
    forbidden = np.zeros(m, np.uint64)
    rank = np.zeros(m, np.int32)
    votes = np.zeros(COUNTER, np.uint64)
    following, previous = one_queue(m, start)
    in_palette = first_colours(palette)
    top = ZERO
    for _ in range(m):
        # Take the most saturated element; one without a free colour gets none.
        e, top = take_first(following, previous, top)
        free = ~forbidden[e]
        if free == 0:
            rank[e] = -1
            continue
        # Choose its colour.
        if vote and free & in_palette != 0:
            free = _elect(
                local=local,
                offset=offset,
                element=element,
                e=e,
                free=free & in_palette,
                colour=colour,
                forbidden=forbidden,
                votes=votes,
            )
        colour[e] = lowest(free)
        mine = bit(colour[e])
        # Its neighbours see the colour: those that did not before rise by a rank.
        for j in range(k):
            p = local[e, j]
            for q in range(offset[p], offset[p + 1]):
                f = element[q]
                if forbidden[f] & mine == 0 and colour[f] < 0 and rank[f] >= 0:
                    forbidden[f] |= mine
                    rank[f] += 1
                    move_to_back(
                        following=following,
                        previous=previous,
                        f=f,
                        sentinel=m + rank[f],
                    )
                    top = max(top, rank[f])
    return colour


@helper
def one_queue(m: int, start: int) -> tuple[Int32s, Int32s]:
    """Rings for the ranks 0 to 64, with all elements in the first.

    The ring of rank r begins and ends at the sentinel m + r.
    """
    # Empty rings: each sentinel follows itself.
    following = np.empty(m + WORD + 1, np.int32)
    previous = np.empty(m + WORD + 1, np.int32)
    for s in range(m, m + WORD + 1):
        following[s] = s
        previous[s] = s
    # Put all elements into the ring of rank 0.
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
    """Take out the first element of the highest rank up to ``top``; it, and its rank."""
    m = following.size - (WORD + 1)
    while following[m + top] == m + top:
        top -= 1
    e = following[m + top]
    following[previous[e]] = following[e]
    previous[following[e]] = previous[e]
    return e, top


@helper
def move_to_back(
    following: Int32s,
    previous: Int32s,
    f: int,
    sentinel: int,
) -> None:
    """Move element ``f`` to the end of another ring, before its sentinel."""
    # Take it out of its ring.
    following[previous[f]] = following[f]
    previous[following[f]] = previous[f]
    # Put it between the last element and the sentinel.
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
    """The free colours that are forbidden to most uncoloured neighbours, as a word."""
    if free & (free - ONE) == 0:
        return free
    # votes[i] holds bit i of 64 counters, one a colour, all counted at once.
    votes[:] = 0
    for j in range(local.shape[1]):
        p = local[e, j]
        for q in range(offset[p], offset[p + 1]):
            f = element[q]
            # Add its bits to the counters: a carry goes on to the next higher bit.
            carry = forbidden[f] & free
            if colour[f] >= 0 or f == e:
                carry = np.uint64(0)
            i = 0
            while carry != 0 and i < COUNTER:
                overflow = votes[i] & carry
                votes[i] ^= carry
                carry = overflow
                i += 1
    # Keep the colours with the most votes, from the highest bit on.
    for i in range(COUNTER - 1, -1, -1):
        if free & votes[i] != 0:
            free &= votes[i]
    return free
