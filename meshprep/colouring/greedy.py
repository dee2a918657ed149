"""First-fit with one word of colours a point, in rounds of 64 colours [G10 section 9.1].

A round hands out the colours ``base`` to ``base + 63``; an element that finds none waits
for the next round. The first round streams through the elements. In later rounds each
element waits in the queue of a point without free colours, and a point whose word is full
costs nothing: a point with n elements takes n / 64 rounds, but not n / 64 visits to each
element.
"""

import numpy as np

from ..kernels import Int32s, UInt64s, helper
from ..kernels.arrays import ZERO

# Colours of a word.
WORD = 64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
# In a de Bruijn word all sequences of six bits differ: its top six bits after a shift by n
# tell n (Leiserson, Prokop and Randall, 1998).
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
TOP_SIX = np.uint64(58)
# The shift by the top six bits.
SHIFT_OF = np.empty(WORD, np.uint8)
SHIFT_OF[[(0x03F79D71B4CB0A89 << n) % 2**64 >> 58 for n in range(WORD)]] = np.arange(WORD)


@helper
def bit(colour: int) -> np.uint64:
    """The word with only the bit of ``colour``, 0..63."""
    return ONE << np.uint64(colour)


@helper
def first_colours(count: int) -> np.uint64:
    """The word with the lowest ``count`` bits, 1..64."""
    return FULL >> np.uint64(WORD - count)


@helper
def lowest(word: np.uint64) -> int:
    """The number of the lowest bit set; ``word`` is not 0."""
    # The product with a power of two is a shift.
    alone = word & (~word + ONE)
    return int(SHIFT_OF[(alone * DE_BRUIJN) >> TOP_SIX])


@helper
def first_fit(
    table: Int32s,
    n_points: int,
    order: Int32s,
    colour: Int32s,
    base: int,
) -> None:
    """Give each element of colour -1 the lowest colour from ``base`` that no neighbour has.

    In the first round elements are coloured in ``order``. ``colour`` is changed in place;
    coloured neighbours must have colours below ``base``. O(n k) for the first 64 colours;
    memory O(n + n_points), whatever the number of colours.
    """
    used = np.zeros(n_points, np.uint64)
    waiting = first_round(table=table, used=used, order=order, colour=colour, base=base)
    if waiting.size:
        _colour_in_queues(
            table=table,
            used=used,
            waiting=waiting,
            colour=colour,
            base=base,
        )


@helper
def first_round(
    table: Int32s,
    used: UInt64s,
    order: Int32s,
    colour: Int32s,
    base: int,
) -> Int32s:
    """Colour elements in ``order``; returns those that find none of the first 64 colours.

    ``used`` is 0, and receives the colours on each point, a bit for each.
    """
    waiting = np.empty(order.size, np.int32)
    n_waiting = 0
    for e in order:
        if colour[e] < 0 and not _colour_element(
            table=table,
            used=used,
            colour=colour,
            e=e,
            base=base,
        ):
            waiting[n_waiting] = e
            n_waiting += 1
    return waiting[:n_waiting].copy()


@helper
def _colour_element(
    table: Int32s,
    used: UInt64s,
    colour: Int32s,
    e: int,
    base: int,
) -> bool:
    """Give an element the lowest free colour of the round; False if there is none.

    ``used`` has the colours of the round on each point, a bit for each.
    """
    forbidden = np.uint64(0)
    for j in range(table.shape[1]):
        forbidden |= used[table[e, j]]
    if forbidden == FULL:
        return False
    c = lowest(~forbidden)
    colour[e] = base + c
    for j in range(table.shape[1]):
        used[table[e, j]] |= bit(c)
    return True


@helper
def _blocker(table: Int32s, used: UInt64s, e: int) -> int:
    """The first point of an element without free colours, or else its first point."""
    for j in range(table.shape[1]):
        if used[table[e, j]] == FULL:
            return table[e, j]
    return table[e, 0]


@helper
def _colour_in_queues(
    table: Int32s,
    used: UInt64s,
    waiting: Int32s,
    colour: Int32s,
    base: int,
) -> None:
    """Colour the waiting elements, round by round, from the queues of their points."""
    # The queue of a point is a list: its head, and the follower of each element.
    head = np.full(used.size, -1, np.int32)
    follower = np.empty(colour.size, np.int32)
    # Points with a queue.
    active = np.empty(min(used.size, waiting.size), np.int32)
    # Elements that were looked at in a round.
    visited = np.empty(waiting.size, np.int32)
    n_active = _enqueue(
        table=table,
        used=used,
        elements=waiting,
        head=head,
        follower=follower,
        active=active,
        n_active=ZERO,
    )
    used[:] = 0
    while n_active:
        base += WORD
        # Serve the queues of all points that have free colours.
        n_visited = 0
        n_turned_away = 0
        for i in range(n_active):
            point = active[i]
            while head[point] >= 0 and used[point] != FULL:
                e = head[point]
                head[point] = follower[e]
                visited[n_visited] = e
                n_visited += 1
                coloured = _colour_element(
                    table=table,
                    used=used,
                    colour=colour,
                    e=e,
                    base=base,
                )
                if not coloured:
                    waiting[n_turned_away] = e
                    n_turned_away += 1
        # Points with a queue stay active; elements without a colour enter another queue.
        n_left = ZERO
        for i in range(n_active):
            if head[active[i]] >= 0:
                active[n_left] = active[i]
                n_left += 1
        turned_away = waiting[:n_turned_away]
        n_active = _enqueue(
            table=table,
            used=used,
            elements=turned_away,
            head=head,
            follower=follower,
            active=active,
            n_active=n_left,
        )
        # The next round begins with no colours in use.
        for e in visited[:n_visited]:
            for j in range(table.shape[1]):
                used[table[e, j]] = 0


@helper
def _enqueue(
    table: Int32s,
    used: UInt64s,
    elements: Int32s,
    head: Int32s,
    follower: Int32s,
    active: Int32s,
    n_active: int,
) -> int:
    """Put each element first in the queue of a point that blocks it, in reverse order.

    Returns the number of active points, which have queues.
    """
    for i in range(elements.size - 1, -1, -1):
        e = elements[i]
        point = _blocker(table, used, e)
        if head[point] < 0:
            active[n_active] = point
            n_active += 1
        follower[e] = head[point]
        head[point] = e
    return n_active
