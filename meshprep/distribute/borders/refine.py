"""Parts with shorter borders, found by all ranks in turns and with one result for any of them.

In each turn some elements at borders propose to move to the part that has most of their points.
What they may lose is drawn by a temperature that falls. Of those that share a point the one with
the highest key moves, so that what a move costs is exact. Keys, draws and caps depend on the
elements' numbers in the mesh and on counts over all ranks only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels import Int32s, Int64s
from ...kernels.arithmetic import log
from ...kernels.parallel import each, pieces
from ...mesh.blockwise import SPREAD
from ..ranks import Ranks
from ..slices.homes import Homes
from ..subject import SplitSubject
from .cared import CaredElements, cared_elements
from .moves import DRAWS, FINE, Prices, at_borders, move, parts_at_points, propose, winners
from .points import points_of_elements

# A part may hold so many times its share, and should not hold less than this of it.
MOST, LEAST = 1.03, 0.9
# Turns, after how many of them borders are looked for anew, first and last temperature in copies
# of a point, and turns without any at the end.
TURNS, FRESH, HOT, COLD, LAST = 240, 4, 0.55, 0.05, 16
# Prices of copies: of nodes, of other points beside nodes, and of these where there are no nodes.
NODE, OTHER, ONLY = 10, 3, 10


def refined(
    subject: SplitSubject,
    part: NDArray[np.int32],
    shares: NDArray[np.float64],
    ranks: Ranks,
) -> NDArray[np.int32]:
    """Parts of the leading set with fewer copies of nodes, or of rows of the leading map.

    The tables of ``subject``, and ``part``, are those of the elements at home here. ``shares`` add
    up to 1, and ``part`` holds about these; then no part has more than :data:`MOST` times its
    share, or than it had. O(n / ranks log n), and :data:`TURNS` passes over the elements at
    borders, each with two messages to neighbours and one sum over all ranks of two numbers a part.
    """
    if subject.leading_map is None:
        return part
    n = subject.sizes[subject.leading_set]
    homes = Homes(n, ranks)
    points = points_of_elements(subject, ranks)
    cared = cared_elements(points, part, homes.own, shares.size, ranks)
    prices = Prices(cared.nodes, NODE, OTHER if points.nodes else ONLY)
    del points
    _anneal(cared, prices, _Sizes.of(cared, shares, n))
    out = np.empty_like(part)
    homes.put(out, cared.ids[: cared.own], cared.part[: cared.own])
    return out


def _anneal(cared: CaredElements, prices: Prices, sizes: "_Sizes") -> None:
    """Move elements of borders, turn after turn."""
    at = parts_at_points(cared.table, cared.part, cared.points)
    n = cared.ids.size
    key, target = np.zeros(n, np.uint64), np.empty(n, np.int32)
    best, border = np.zeros(cared.points, np.uint64), np.empty(0, np.int32)
    elements, copies = (cared.ids, cared.part, cared.table), np.arange(cared.own, n, dtype=np.int32)
    for turn in range(TURNS):
        if turn % FRESH == 0:
            border = at_borders(cared.table, cared.own, cared.nodes, at.used)
        allowed, full = _allowed(turn), sizes.full
        wishes = np.concatenate(
            each(
                propose,
                [
                    (border[a:b], elements, at, prices, full, allowed, turn, (key, target))
                    for a, b in pieces(border.size)
                ],
            )
        )
        cared.update(key)
        others = copies[key[cared.own :] != 0]
        chosen = winners(wishes, others, cared.table, key, best)
        key[wishes] = 0
        chosen = sizes.admitted(chosen, cared, target, turn)
        before = cared.part[cared.own :].copy()
        move(chosen, target, cared.part, cared.table, at)
        after = cared.part.copy() if copies.size else cared.part
        cared.update(after)
        moved = copies[after[cared.own :] != before]
        move(moved, after, cared.part, cared.table, at)


def _allowed(turn: int) -> Int64s:
    """What a move may cost, by the number drawn; ascending temperatures allow more."""
    cooling = min(1.0, turn / max(1, TURNS - LAST - 1))
    heat = 0.0 if turn >= TURNS - LAST else HOT + (COLD - HOT) * cooling
    draws = ((draw + 0.5) / DRAWS for draw in range(DRAWS))
    return np.array([round(-heat * NODE * FINE * log(u)) for u in draws], np.int64)


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Elements of every part on all ranks, and how many there may be."""

    count: Int64s
    most: Int64s
    least: Int64s
    ranks: Ranks

    @classmethod
    def of(cls, cared: CaredElements, shares: NDArray[np.float64], n: int) -> "_Sizes":
        count = np.bincount(cared.part[: cared.own], minlength=shares.size)
        wanted = shares * n
        most = np.maximum(np.floor(MOST * wanted + 1e-6), np.ceil(wanted - 1e-6)).astype(np.int64)
        least = np.floor(LEAST * wanted).astype(np.int64)
        return cls(np.sum(cared.ranks.allgather(count), axis=0), most, least, cared.ranks)

    @property
    def full(self) -> NDArray[np.bool_]:
        return self.count >= self.most

    def admitted(self, chosen: Int32s, cared: CaredElements, target: Int32s, turn: int) -> Int32s:
        """Those of some moves that keep all sizes; they count as made.

        Where more elements come or leave than may, about half as many as may are drawn. Where
        these are too many, none is taken.
        """
        into, out = self._counts(chosen, cared, target)
        room, spare = self.most - self.count, self.count - self.least
        if (into > room).any() or (out > spare).any():
            drawn = _fractions(cared.ids[chosen], turn)
            share = np.minimum(_half(room, into), 1.0), np.minimum(_half(spare, out), 1.0)
            source = cared.part[chosen]
            keep = (drawn < share[0][target[chosen]]) & (drawn < share[1][source])
            chosen = chosen[keep]
            into, out = self._counts(chosen, cared, target)
            wrong = (into > room)[target[chosen]] | (out > spare)[cared.part[chosen]]
            chosen = chosen[~wrong]
            into, out = self._counts(chosen, cared, target)
        self.count[:] += into - out
        return chosen

    def _counts(
        self, chosen: Int32s, cared: CaredElements, target: Int32s
    ) -> tuple[Int64s, Int64s]:
        parts = self.count.size
        mine = np.stack([np.bincount(of[chosen], minlength=parts) for of in (target, cared.part)])
        into, out = np.sum(self.ranks.allgather(mine), axis=0)
        return into, out


def _half(room: Int64s, count: Int64s) -> NDArray[np.float64]:
    return np.where(count > room, np.maximum(room, 0) / (2 * np.maximum(count, 1)), 1.0)


def _fractions(ids: Int64s, turn: int) -> NDArray[np.float64]:
    """A number below 1 for each element."""
    spread = (ids.astype(np.uint64) + np.uint64(turn)) * SPREAD
    return (spread >> np.uint64(11)).astype(np.float64) / float(1 << 53)
