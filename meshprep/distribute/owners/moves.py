"""Moves of border elements: proposals by gain, and an independent set of them."""

from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import Bools

from ...kernels import Int32s, Int64s, UInt64s, inlined, kernel
from ...kernels.arrays import scan_offsets

# Different parts at the points of an element; an element with more does not move.
MOST_PARTS = 64
# In a turn, one element in this many may propose a move.
ASKED = 4
# Numbers of which an element draws one in a turn.
DRAWS = 256
# Allowed losses are counted in this fraction of a price.
FINE = 256


class PointParts(NamedTuple):
    """The parts at every point, and how many of their elements have it.

    Point ``p`` has the parts ``part[offset[p]:offset[p] + used[p]]``.
    """

    offset: Int64s  # (points + 1,): room for as many parts as elements
    part: Int32s
    held: Int32s  # of each entry of ``part``: elements of the part at the point
    used: Int32s  # (points,)


class Prices(NamedTuple):
    """Prices of ghosts: of a node, which is a point below ``nodes``, and of another one."""

    nodes: int
    node: int
    other: int


@kernel
def parts_at_points(table: Int32s, part: Int32s, points: int) -> PointParts:
    """Count the parts at every point. O(table entries)."""
    # Make room at each point for as many parts as it has elements.
    offset = np.zeros(points + 1, np.int64)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                offset[table[i, j] + 1] += 1
    scan_offsets(offset)
    size = offset[-1]
    used = np.zeros(points, np.int32)
    parts_at = PointParts(
        offset=offset,
        part=np.empty(size, np.int32),
        held=np.empty(size, np.int32),
        used=used,
    )
    # Put the elements there one by one.
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                _add_element(parts_at, table[i, j], part[i])
    return parts_at


@inlined
def _add_element(at: PointParts, p: int, part: int) -> None:
    """Count an element of a part at a point."""
    first = at.offset[p]
    for k in range(first, first + at.used[p]):
        if at.part[k] == part:
            at.held[k] += 1
            return
    k = first + at.used[p]
    at.part[k] = part
    at.held[k] = 1
    at.used[p] += 1


@inlined
def _remove_element(at: PointParts, p: int, part: int) -> None:
    """Count an element of a part less at a point; a part without any leaves the point."""
    first = at.offset[p]
    last = at.offset[p] + at.used[p] - 1
    for k in range(first, last + 1):
        if at.part[k] == part:
            at.held[k] -= 1
            # The last part of the list takes the free place.
            if at.held[k] == 0:
                at.part[k] = at.part[last]
                at.held[k] = at.held[last]
                at.used[p] -= 1
            return


@kernel
def at_borders(table: Int32s, own: int, nodes: int, used: Int32s) -> Int32s:
    """The owned elements that share more than nodes with another part."""
    out = np.empty(own, np.int32)
    n = 0
    for i in range(own):
        for j in range(table.shape[1]):
            if table[i, j] >= nodes and used[table[i, j]] > 1:
                out[n] = i
                n += 1
                break
    return out[:n].copy()


@inlined
def _splitmix64(element: int, turn: int) -> np.uint64:
    """A hash of an element and a turn; in a turn no two elements have the same.

    Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014, with
    a second odd factor for the turn.
    """
    of_element = np.uint64(element) * np.uint64(0x9E3779B97F4A7C15)
    of_turn = np.uint64(turn) * np.uint64(0xD1B54A32D192ED03)
    z = of_element + of_turn
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
    """The elements of ``some`` that propose to move; ``proposal`` gets keys and targets.

    One element in :data:`ASKED` may propose. Its target is the part with the highest price
    of its points that is not full. It proposes to move there if it loses less than one of
    the ``allowed`` numbers, which it draws. O(elements, and parts at their points).
    """
    ids, part, table = elements
    key, target = proposal
    out = np.empty(some.size, np.int32)
    n = 0
    # the parts around an element, and the prices of its points that each has
    near = np.empty(MOST_PARTS, np.int32)
    price_near = np.empty(MOST_PARTS, np.int64)
    for i in some:
        # One hash decides whether it may propose, and draws the loss that it accepts.
        drawn = _splitmix64(ids[i], turn)
        if drawn % np.uint64(ASKED) != np.uint64(0):
            continue
        draw = (drawn // np.uint64(ASKED)) % np.uint64(DRAWS)
        limit = allowed[np.int64(draw)]
        # Most elements at a border have one point there: a bound of their loss rules them
        # out.
        if _least_loss(table=table, i=i, at=at, prices=prices) * FINE >= limit:
            continue
        kinds, cost = _around(
            table=table,
            i=i,
            own=part[i],
            at=at,
            prices=prices,
            near=near,
            price_near=price_near,
        )
        # Choose the target, of equals the lowest part.
        best = -1
        for k in range(kinds):
            better = best < 0 or price_near[k] > price_near[best]
            if best >= 0 and price_near[k] == price_near[best]:
                better = near[k] < near[best]
            if better and not full[near[k]]:
                best = k
        if best >= 0 and (cost - price_near[best]) * FINE < limit:
            key[i] = drawn
            target[i] = near[best]
            out[n] = i
            n += 1
    return out[:n].copy()


@inlined
def _least_loss(table: Int32s, i: int, at: PointParts, prices: Prices) -> int:
    """A lower bound of the loss of a move: as if the target had all points at borders."""
    loss = 0
    for j in range(table.shape[1]):
        p = table[i, j]
        if p < 0:
            continue
        if p < prices.nodes:
            price = prices.node
        else:
            price = prices.other
        if at.used[p] > 1:
            loss -= price
        elif at.held[at.offset[p]] > 1:
            loss += price
    return loss


@inlined
def _around(
    table: Int32s,
    i: int,
    own: int,
    at: PointParts,
    prices: Prices,
    near: Int32s,
    price_near: Int64s,
) -> tuple[int, int]:
    """Number of other parts at an element's points, and the loss of a move to none of them.

    ``near`` gets these parts, ``price_near`` the prices of the points that each has.
    """
    # Count the loss of a move to a part that has none of the points: a ghost of each.
    kinds = 0
    cost = 0
    for j in range(table.shape[1]):
        p = table[i, j]
        if p < 0:
            continue
        if p < prices.nodes:
            price = prices.node
        else:
            price = prices.other
        cost += price
        for k in range(at.offset[p], at.offset[p] + at.used[p]):
            if at.part[k] == own:
                # the last element of a part takes its ghost away
                if at.held[k] == 1:
                    cost -= price
                continue
            row = 0
            while row < kinds and near[row] != at.part[k]:
                row += 1
            if row == MOST_PARTS:
                # which parts are among the first ones depends on their order here
                return 0, 0
            if row == kinds:
                near[row] = at.part[k]
                price_near[row] = 0
                kinds += 1
            price_near[row] += price
    return kinds, cost


@kernel
def winners(
    some: Int32s,
    others: Int32s,
    table: Int32s,
    key: UInt64s,
    best: UInt64s,
) -> Int32s:
    """The elements of ``some`` whose key is the highest at each of their points.

    ``others`` are ghosts that propose to move. ``best`` (points,) is 0 before and after.
    """
    # Find the highest key at each point.
    for group in (some, others):
        for i in group:
            for j in range(table.shape[1]):
                p = table[i, j]
                if p >= 0:
                    best[p] = max(best[p], key[i])
    # An element wins where that is its own at all of its points.
    out = np.empty(some.size, np.int32)
    n = 0
    for i in some:
        wins = True
        for j in range(table.shape[1]):
            p = table[i, j]
            wins = wins and (p < 0 or best[p] == key[i])
        if wins:
            out[n] = i
            n += 1
    # Leave the array as it was.
    for group in (some, others):
        for i in group:
            for j in range(table.shape[1]):
                if table[i, j] >= 0:
                    best[table[i, j]] = np.uint64(0)
    return out[:n].copy()


@kernel
def move(
    some: Int32s,
    target: Int32s,
    part: Int32s,
    table: Int32s,
    at: PointParts,
) -> None:
    """Put elements into their target parts."""
    for i in some:
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                _remove_element(at, table[i, j], part[i])
                _add_element(at, table[i, j], target[i])
        part[i] = target[i]
