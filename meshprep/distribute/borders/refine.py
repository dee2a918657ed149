"""Parts with shorter borders, found by all ranks in turns and with one result for any of them.

In each turn some elements at borders propose to move to the part that has most of their points.
What they may lose is drawn by a temperature that falls. Of those that share a point the one with
the highest key moves, so that what a move costs is exact. Keys, draws and caps depend on the
elements' numbers in the mesh and on counts over all ranks only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import INDEX_LIMIT, Float64s, SetMap, distinct, offsets_of

from ...kernels import Bools, Int32s, Int64s, kernel
from ...kernels.arithmetic import log
from ...kernels.parallel import each, pieces
from ...mesh.incidence import SPREAD
from ..ranks import Ranks, exchanged, holder
from ..slices.homes import Homes, Places, blocks, joined
from ..subject import SplitSubject
from .moves import DRAWS, FINE, Prices, at_borders, move, parts_at_points, propose, winners

# Rows of the leading map that are looked at, for each element.
MOST_ROWS = 32


class PointTable(NamedTuple):
    """The points of elements: nodes, then rows of the leading map."""

    table: NDArray[np.integer]  # (n, k) integers: -1 where an element has fewer
    nodes: int  # points below it are nodes
    size: int  # points of the whole mesh


def points_of_elements(subject: SplitSubject, ranks: Ranks) -> PointTable:
    """The points of the elements of the leading set at home here. O(n / ranks log n)."""
    name, leading = subject.leading_set, subject.leading_map
    assert leading is not None
    nodes = subject.maps.get(f"{name}->nodes")
    first = 0 if nodes is None else subject.sizes["nodes"]
    size = first + subject.sizes[leading.from_set]
    rows = _rows_that_reach(leading, subject.sizes, ranks)
    kind = np.dtype(np.int32 if size <= INDEX_LIMIT else np.int64)
    rows = np.where(rows < 0, rows, rows + kind.type(first)) if first else rows.astype(kind)
    return PointTable(rows if nodes is None else np.hstack([nodes.table, rows]), first, size)


def _rows_that_reach(m: SetMap, sizes: Mapping[str, int], ranks: Ranks) -> Int32s:
    """The rows of a map that reach each element at home here, ascending."""
    homes, rows_at = Homes(sizes[m.to_set], ranks), Homes(sizes[m.from_set], ranks)
    pieces = []
    for rows in blocks(ranks, m.size):
        element = m.table[rows].reshape(-1)
        row = np.repeat(np.arange(rows.start, rows.stop) + rows_at.own.start, m.arity)
        order = np.argsort(element, kind="stable")
        pairs = np.stack([element, row.astype(np.int32)], axis=1)[order]
        pieces += exchanged(ranks, homes.pieces(pairs[:, 0], pairs))
    own = homes.own
    count = np.zeros(len(own), np.int64)
    for piece in pieces:
        count += np.bincount(piece[:, 0] - own.start, minlength=count.size)
    width = min(MOST_ROWS, max(ranks.allgather(int(count.max(initial=0)))))
    out = np.full((len(own), width), -1, np.int32)
    for piece in pieces:
        _fill_rows(piece, own.start, out)
    return out


@kernel
def _fill_rows(pairs: Int32s, first: int, out: Int32s) -> None:
    """Give each element its rows, each once, and the lowest where there is no room for all."""
    width = out.shape[1]
    for i in range(pairs.shape[0]):
        at, row, last = pairs[i, 0] - first, pairs[i, 1], 0
        for j in range(width):
            last = j
            if out[at, j] == row or out[at, j] < 0:
                break
        if out[at, last] >= 0 and out[at, last] != row:
            for j in range(width):
                last = j if out[at, j] > out[at, last] else last
            if out[at, last] < row:
                continue
        out[at, last] = row


@dataclass(frozen=True, eq=False)
class BorderElements:
    """Local elements: owned first, then ghosts."""

    ids: Int64s  # (n,): numbers of the mesh; the first ``n_owned`` are owned
    part: Int32s  # (n,): changes as elements move
    table: Int32s  # (n, k): points of owned elements; -1 for others
    n_owned: int
    # Points here; those below ``nodes`` are nodes.
    points: int
    nodes: int
    ranks: Ranks
    # Owned elements that each rank has as ghosts.
    sent: Sequence[NDArray[np.integer]] = field(default_factory=list)
    # (ranks + 1,): copies of elements of rank ``r`` stand from ``received[r]`` to below
    # ``received[r + 1]``.
    received: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def update(self, values: NDArray[Any]) -> None:
        """Update the values of ghosts from their owners."""
        if self.ranks.size > 1:
            came = self.ranks.alltoall([values[some] for some in self.sent])
            for (low, high), rows in zip(pairwise(self.received), came, strict=True):
                values[low:high] = rows


def border_elements(
    points: PointTable, part: Int32s, own: range, parts: int, ranks: Ranks
) -> BorderElements:
    """Elements sent from their home ranks to the ranks that own their parts.

    ``points``, the parts ``part`` and the numbers ``own`` are of the elements at home here. O(n /
    ranks log n).
    """
    to = holder(ranks, part, parts)
    chosen = [np.flatnonzero(to == rank) for rank in range(ranks.size)]
    ids = joined(exchanged(ranks, [one + own.start for one in chosen]))
    here = joined(exchanged(ranks, [part[one] for one in chosen]))
    table = joined(exchanged(ranks, [points.table[one] for one in chosen]))
    del to, chosen
    known = distinct(table)
    places = Places.among(known[known >= 0])
    nodes = int(np.searchsorted(places.points, points.nodes))
    table = places.known(table)
    # what a turn looks at stands together: the borders of a part, and so their points
    order = np.argsort(2 * here + _inside(table, here, nodes, places.points.size), kind="stable")
    ids, here, table = ids[order], here[order], table[order]
    number = np.full(places.points.size, -1, np.int32)
    _number_by_use(table.reshape(-1), nodes, number)
    owned = BorderElements(ids, here, table, ids.size, number.size, nodes, ranks)
    return owned if ranks.size == 1 else _with_copies(owned, places, number, points.size)


@kernel
def _inside(table: Int32s, part: Int32s, nodes: int, points: int) -> Bools:
    """The elements that share no more than nodes with elements of other parts here."""
    only = np.full(points, -1, np.int32)
    for i in range(part.size):
        for j in range(table.shape[1]):
            p = table[i, j]
            if p >= nodes:
                same = only[p] == -1 or only[p] == part[i]
                only[p] = part[i] if same else -2
    inside = np.ones(part.size, np.bool_)
    for i in range(part.size):
        for j in range(table.shape[1]):
            if table[i, j] >= nodes and only[table[i, j]] == -2:
                inside[i] = False
    return inside


@kernel
def _number_by_use(table: Int32s, nodes: int, number: Int32s) -> None:
    """Number points in ``table`` as elements come to them, nodes first: parts stand together."""
    next_node, next_other = 0, nodes
    for i in range(table.size):
        p = table[i]
        if p < 0:
            continue
        if number[p] < 0 and p < nodes:
            number[p] = next_node
            next_node += 1
        elif number[p] < 0:
            number[p] = next_other
            next_other += 1
        table[i] = number[p]


def _with_copies(
    owned: BorderElements, places: Places, number: Int32s, size: int
) -> BorderElements:
    """The same with ghosts: elements of other ranks that share points with owned ones.

    ``places`` are those of the points of the mesh, which has ``size``; ``number`` is what the
    points at these places are called here.
    """
    ranks, sent = owned.ranks, []
    for shared in _shared_points(places.points, Homes(size, ranks)):
        marked = np.zeros(owned.points + 1, np.bool_)
        marked[number[places.of(shared)]] = True
        sent.append(np.flatnonzero(marked[owned.table].any(axis=1)))
    # the last one stands for none
    number = np.append(number, np.int32(-1))
    outside = np.full(number.size, -1, places.points.dtype)
    outside[number[:-1]] = places.points
    ids, part = (exchanged(ranks, [of[one] for one in sent]) for of in (owned.ids, owned.part))
    tables = exchanged(ranks, [outside[owned.table[one]] for one in sent])
    received = owned.n_owned + offsets_of([len(one) for one in ids])
    return BorderElements(
        np.concatenate([owned.ids, *ids]),
        np.concatenate([owned.part, *part]),
        np.concatenate([owned.table, *(number[places.known(one)] for one in tables)]),
        owned.n_owned, owned.points, owned.nodes, ranks, sent, received.astype(np.int64),
    )  # fmt: skip


def _shared_points(known: NDArray[np.integer], homes: Homes) -> list[NDArray[np.integer]]:
    """The points that each other rank has, too; ascending."""
    ranks = homes.ranks
    wishes = exchanged(ranks, homes.pieces(known, known))
    point, rank = np.concatenate(wishes), np.repeat(np.arange(ranks.size), list(map(len, wishes)))
    order = np.lexsort((rank, point))
    point, rank = point[order], rank[order]
    found = []
    for shift in range(1, ranks.size):
        same = np.flatnonzero(point[shift:] == point[:-shift])
        if not same.size:
            break
        both = np.stack([rank[same], rank[same + shift]], axis=1)
        found += [(point[same], *both.T), (point[same], *both[:, ::-1].T)]
    nothing = point[:0], rank[:0], rank[:0]
    shared, one, other = (np.concatenate(column) for column in zip(nothing, *found, strict=True))
    pairs = np.stack([shared, other], axis=1)
    came = np.concatenate(exchanged(ranks, [pairs[one == r] for r in range(ranks.size)]))
    return [distinct(came[came[:, 1] == r, 0]).astype(known.dtype) for r in range(ranks.size)]


# A part may hold so many times its share, and should not hold less than this of it.
MOST, LEAST = 1.03, 0.9
# Turns, after how many of them borders are looked for anew, first and last temperature in copies
# of a point, and turns without any at the end.
TURNS, FRESH, HOT, COLD, LAST = 240, 4, 0.55, 0.05, 16
# Prices of copies: of nodes, of other points beside nodes, and of these where there are no nodes.
NODE, OTHER, ONLY = 10, 3, 10
LOG_OF_DRAW = np.array([log((draw + 0.5) / DRAWS) for draw in range(DRAWS)])


def refined(subject: SplitSubject, part: Int32s, shares: Float64s, ranks: Ranks) -> Int32s:
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
    local = border_elements(points, part, homes.own, shares.size, ranks)
    prices = Prices(local.nodes, NODE, OTHER if points.nodes else ONLY)
    del points
    _anneal(local, prices, _Sizes.of(local, shares, n))
    out = np.empty_like(part)
    homes.put(out, local.ids[: local.n_owned], local.part[: local.n_owned])
    return out


def _anneal(local: BorderElements, prices: Prices, sizes: "_Sizes") -> None:
    """Move elements of borders, turn after turn."""
    at = parts_at_points(local.table, local.part, local.points)
    n = local.ids.size
    key, target = np.zeros(n, np.uint64), np.empty(n, np.int32)
    best, border = np.zeros(local.points, np.uint64), np.empty(0, np.int32)
    elements, copies = (
        (local.ids, local.part, local.table),
        np.arange(local.n_owned, n, dtype=np.int32),
    )
    for turn in range(TURNS):
        if turn % FRESH == 0:
            border = at_borders(local.table, local.n_owned, local.nodes, at.used)
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
        local.update(key)
        others = copies[key[local.n_owned :] != 0]
        chosen = winners(wishes, others, local.table, key, best)
        key[wishes] = 0
        chosen = sizes.admitted(chosen, local, target, turn)
        before = local.part[local.n_owned :].copy()
        move(chosen, target, local.part, local.table, at)
        after = local.part.copy() if copies.size else local.part
        local.update(after)
        moved = copies[after[local.n_owned :] != before]
        move(moved, after, local.part, local.table, at)


def _allowed(turn: int) -> Int64s:
    """Largest accepted loss of a move, by the number drawn; it grows with the temperature."""
    cooling = min(1.0, turn / max(1, TURNS - LAST - 1))
    heat = 0.0 if turn >= TURNS - LAST else HOT + (COLD - HOT) * cooling
    return np.rint(-heat * NODE * FINE * LOG_OF_DRAW).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Elements of every part on all ranks, and how many there may be."""

    count: Int64s
    most: Int64s
    least: Int64s
    ranks: Ranks

    @classmethod
    def of(cls, local: BorderElements, shares: Float64s, n: int) -> "_Sizes":
        count = np.bincount(local.part[: local.n_owned], minlength=shares.size)
        wanted = shares * n
        most = np.maximum(np.floor(MOST * wanted + 1e-6), np.ceil(wanted - 1e-6)).astype(np.int64)
        least = np.floor(LEAST * wanted).astype(np.int64)
        return cls(np.sum(local.ranks.allgather(count), axis=0), most, least, local.ranks)

    @property
    def full(self) -> Bools:
        return self.count >= self.most

    def admitted(self, chosen: Int32s, local: BorderElements, target: Int32s, turn: int) -> Int32s:
        """Subset of the moves that keeps all sizes; it is counted as made.

        Where more elements come or leave than may, about half as many as may are drawn. Where
        these are too many, none is taken.
        """
        into, out = self._counts(chosen, local, target)
        room, spare = self.most - self.count, self.count - self.least
        if (into > room).any() or (out > spare).any():
            ids = local.ids[chosen]
            spread = (ids.astype(np.uint64) + np.uint64(turn)) * SPREAD
            drawn = (spread >> np.uint64(11)).astype(np.float64) / float(1 << 53)
            share = np.minimum(_half(room, into), 1.0), np.minimum(_half(spare, out), 1.0)
            source = local.part[chosen]
            keep = (drawn < share[0][target[chosen]]) & (drawn < share[1][source])
            chosen = chosen[keep]
            into, out = self._counts(chosen, local, target)
            wrong = (into > room)[target[chosen]] | (out > spare)[local.part[chosen]]
            chosen = chosen[~wrong]
            into, out = self._counts(chosen, local, target)
        self.count[:] += into - out
        return chosen

    def _counts(
        self, chosen: Int32s, local: BorderElements, target: Int32s
    ) -> tuple[Int64s, Int64s]:
        parts = self.count.size
        owned = np.stack([np.bincount(of[chosen], minlength=parts) for of in (target, local.part)])
        into, out = np.sum(self.ranks.allgather(owned), axis=0)
        return into, out


def _half(room: Int64s, count: Int64s) -> Float64s:
    return np.where(count > room, np.maximum(room, 0) / (2 * np.maximum(count, 1)), 1.0)
