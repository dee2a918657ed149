"""Moves of border elements: proposals by gain, and an independent set of them."""

from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import Bools

from ...kernels import Int32s, Int64s, UInt64s, inlined, kernel
from ...kernels.arrays import scan_offsets

# Parts around an element that are looked at.
MOST_PARTS = 64
# One element in so many is asked in a turn, and draws one of so many numbers.
ASKED, DRAWS = 4, 256
# Allowed costs are in these parts of a price.
FINE = 256


class PointParts(NamedTuple):
    """The parts at every point, ``part[offset[p]:offset[p] + used[p]]``, and their elements."""

    offset: Int64s
    part: Int32s
    held: Int32s
    used: Int32s


class Prices(NamedTuple):
    """Prices of a copy of a node and of another point; points below ``nodes`` are nodes."""

    nodes: int
    node: int
    other: int


@kernel
def parts_at_points(table: Int32s, part: Int32s, points: int) -> PointParts:
    """Count the parts at every point. O(table entries)."""
    offset = np.zeros(points + 1, np.int64)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                offset[table[i, j] + 1] += 1
    scan_offsets(offset)
    size, used = offset[-1], np.zeros(points, np.int32)
    at = PointParts(offset, np.empty(size, np.int32), np.empty(size, np.int32), used)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                _add_element(at, table[i, j], part[i])
    return at


@inlined
def _add_element(at: PointParts, p: int, part: int) -> None:
    first = at.offset[p]
    for k in range(first, first + at.used[p]):
        if at.part[k] == part:
            at.held[k] += 1
            return
    k = first + at.used[p]
    at.part[k], at.held[k] = part, 1
    at.used[p] += 1


@inlined
def _remove_element(at: PointParts, p: int, part: int) -> None:
    first, last = at.offset[p], at.offset[p] + at.used[p] - 1
    for k in range(first, last + 1):
        if at.part[k] == part:
            at.held[k] -= 1
            if at.held[k] == 0:
                at.part[k], at.held[k] = at.part[last], at.held[last]
                at.used[p] -= 1
            return


@kernel
def at_borders(table: Int32s, own: int, nodes: int, used: Int32s) -> Int32s:
    """The elements decided here that share more than nodes with another part."""
    out, n = np.empty(own, np.int32), 0
    for i in range(own):
        for j in range(table.shape[1]):
            if table[i, j] >= nodes and used[table[i, j]] > 1:
                out[n] = i
                n += 1
                break
    return out[:n].copy()


@inlined
def _splitmix64(element: int, turn: int) -> np.uint64:
    """A number for each element and turn (splitmix64), different for different elements."""
    z = np.uint64(element) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(turn) * np.uint64(
        0xD1B54A32D192ED03
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def propose(
    some: Int32s,
    elements: tuple[Int64s, Int32s, Int32s],
    at: PointParts,
    prices: Prices,
    full: Bools,
    allowed: Int64s,
    turn: int,
    proposal: tuple[UInt64s, Int32s],
) -> Int32s:
    """Proposed moves of these elements: element, key and target part.

    An element in :data:`ASKED` is asked. It takes the part that has most of its points, unless
    that is full, and moves where that costs less than one of the ``allowed`` numbers, which is
    drawn. O(elements, and parts at their points).
    """
    (ids, part, table), (key, target) = elements, proposal
    out, n = np.empty(some.size, np.int32), 0
    near, there = np.empty(MOST_PARTS, np.int32), np.empty(MOST_PARTS, np.int64)
    for i in some:
        drawn = _splitmix64(ids[i], turn)
        if drawn % np.uint64(ASKED) != np.uint64(0):
            continue
        limit = allowed[np.int64((drawn // np.uint64(ASKED)) % np.uint64(DRAWS))]
        # most elements at a border have one point there: what they lose is known at once
        if _least_loss(table, i, at, prices) * FINE >= limit:
            continue
        kinds, cost = _around(table, i, part[i], at, prices, near, there)
        best = -1
        for k in range(kinds):
            better = best < 0 or there[k] > there[best]
            if best >= 0 and there[k] == there[best]:
                better = near[k] < near[best]
            if better and not full[near[k]]:
                best = k
        if best >= 0 and (cost - there[best]) * FINE < limit:
            key[i], target[i] = drawn, near[best]
            out[n] = i
            n += 1
    return out[:n].copy()


@inlined
def _least_loss(table: Int32s, i: int, at: PointParts, prices: Prices) -> int:
    """Lower bound of the loss of a move: the target has all points at borders."""
    loss = 0
    for j in range(table.shape[1]):
        p = table[i, j]
        if p < 0:
            continue
        price = prices.node if p < prices.nodes else prices.other
        if at.used[p] > 1:
            loss -= price
        elif at.held[at.offset[p]] > 1:
            loss += price
    return loss


@inlined
def _around(
    table: Int32s, i: int, own: int, at: PointParts, prices: Prices, near: Int32s, there: Int64s
) -> tuple[int, int]:
    """The other parts at an element's points with their prices, and that of a part with none."""
    kinds, cost = 0, 0
    for j in range(table.shape[1]):
        p = table[i, j]
        if p < 0:
            continue
        price = prices.node if p < prices.nodes else prices.other
        cost += price
        for k in range(at.offset[p], at.offset[p] + at.used[p]):
            if at.part[k] == own:
                cost -= price if at.held[k] == 1 else 0
                continue
            place = 0
            while place < kinds and near[place] != at.part[k]:
                place += 1
            if place == MOST_PARTS:
                # which of them are looked at would depend on their order here
                return 0, 0
            if place == kinds:
                near[place], there[place] = at.part[k], 0
                kinds += 1
            there[place] += price
    return kinds, cost


@kernel
def winners(some: Int32s, others: Int32s, table: Int32s, key: UInt64s, best: UInt64s) -> Int32s:
    """Candidates whose key is maximal at each of their points; ``best`` is 0 and stays so."""
    for group in (some, others):
        for i in group:
            for j in range(table.shape[1]):
                p = table[i, j]
                if p >= 0:
                    best[p] = max(best[p], key[i])
    out, n = np.empty(some.size, np.int32), 0
    for i in some:
        wins = True
        for j in range(table.shape[1]):
            wins = wins and (table[i, j] < 0 or best[table[i, j]] == key[i])
        if wins:
            out[n] = i
            n += 1
    for group in (some, others):
        for i in group:
            for j in range(table.shape[1]):
                if table[i, j] >= 0:
                    best[table[i, j]] = np.uint64(0)
    return out[:n].copy()


@kernel
def move(some: Int32s, target: Int32s, part: Int32s, table: Int32s, at: PointParts) -> None:
    """Put elements into other parts."""
    for i in some:
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                _remove_element(at, table[i, j], part[i])
                _add_element(at, table[i, j], target[i])
        part[i] = target[i]
