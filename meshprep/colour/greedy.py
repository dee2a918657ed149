"""First-fit with one word of colours a point, in rounds of 64 colours [G10 section 9.1].

A round hands out the colours ``base`` to ``base + 63``; who finds none waits for the next. The
first round streams through the elements. In later ones each waits in the queue of a point that
turned it away, and a point whose word is full costs nothing: a point with n elements takes
n / 64 rounds, but not n / 64 visits to every element.
"""

import numpy as np

from ..kernels import Int32s, UInt64s, helper
from ..kernels.arrays import ZERO

WORD = 64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
# Every six bits in a row of a de Bruijn word differ: shifted by n, its top ones stand for n.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
TOP_SIX = np.uint64(58)
PLACE = np.empty(WORD, np.uint8)
PLACE[[(0x03F79D71B4CB0A89 << n) % 2**64 >> 58 for n in range(WORD)]] = np.arange(WORD)


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
    alone = word & (~word + ONE)
    return int(PLACE[(alone * DE_BRUIJN) >> TOP_SIX])


@helper
def first_fit(table: Int32s, n_points: int, order: Int32s, colour: Int32s, base: int) -> None:
    """Give every element of colour -1 the lowest colour from ``base`` on that no neighbour has.

    In the first round elements are coloured in ``order``. ``colour`` is changed in place; coloured
    neighbours must have colours below ``base``. O(n k) for the first 64 colours; memory O(n +
    n_points), whatever the number of colours.
    """
    used = np.zeros(n_points, np.uint64)
    waiting = np.empty(order.size, np.int32)
    n_waiting = 0
    for e in order:
        if colour[e] < 0 and not _place(table, used, colour, e, base):
            waiting[n_waiting] = e
            n_waiting += 1
    if n_waiting:
        _queues(table, used, waiting[:n_waiting].copy(), colour, base)


@helper
def _place(table: Int32s, used: UInt64s, colour: Int32s, e: int, base: int) -> bool:
    taken = np.uint64(0)
    for j in range(table.shape[1]):
        taken |= used[table[e, j]]
    if taken == FULL:
        return False
    c = lowest(~taken)
    colour[e] = base + c
    for j in range(table.shape[1]):
        used[table[e, j]] |= bit(c)
    return True


@helper
def _blocker(table: Int32s, used: UInt64s, e: int) -> int:
    for j in range(table.shape[1]):
        if used[table[e, j]] == FULL:
            return table[e, j]
    return table[e, 0]


@helper
def _queues(table: Int32s, used: UInt64s, waiting: Int32s, colour: Int32s, base: int) -> None:
    head = np.full(used.size, -1, np.int32)
    follower = np.empty(colour.size, np.int32)
    active = np.empty(min(used.size, waiting.size), np.int32)
    asked = np.empty(waiting.size, np.int32)
    n_active = _enqueue(table, used, waiting, head, follower, active, ZERO)
    used[:] = 0
    while n_active:
        base += WORD
        n_asked = n_turned_away = 0
        for i in range(n_active):
            point = active[i]
            while head[point] >= 0 and used[point] != FULL:
                e = head[point]
                head[point] = follower[e]
                asked[n_asked] = e
                n_asked += 1
                if not _place(table, used, colour, e, base):
                    waiting[n_turned_away] = e
                    n_turned_away += 1
        n_kept = 0
        for i in range(n_active):
            if head[active[i]] >= 0:
                active[n_kept] = active[i]
                n_kept += 1
        turned_away = waiting[:n_turned_away]
        n_active = _enqueue(table, used, turned_away, head, follower, active, n_kept)
        for e in asked[:n_asked]:
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
    """Put each element in front of the queue of a point that blocks it; the first comes first."""
    for i in range(elements.size - 1, -1, -1):
        e = elements[i]
        point = _blocker(table, used, e)
        if head[point] < 0:
            active[n_active] = point
            n_active += 1
        follower[e] = head[point]
        head[point] = e
    return n_active
