"""Facets of cells that ranks hold slices of, numbered as :mod:`meshprep.topology` numbers them.

Each rank matches the facets of its own cells. Two ranks can share a facet only where they share all
of its corners: such facets go to a rank that a hash of the corners names, where those of all meet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Bools, UInt8s, distinct, offsets_of

from ...kernels import Int32s, Int64s, UInt64s, inlined, kernel
from ...mesh.incidence import SPREAD
from ...topology.facets import find_facets
from ...topology.slots import Part, Slots, corners_of
from ..ranks import Ranks, exchanged
from .homes import ROWS, Homes, Places, blocks, joined


@dataclass(frozen=True, eq=False)
class CellSlice:
    """The cells of one type that are at home here."""

    table: Int32s  # (n, k): nodes of the cells
    local: Sequence[tuple[int, ...]]  # columns of ``table`` that make each facet
    own: range  # which cells of the type these are
    first: int  # number of the first cell of the type in the set ``cells``
    size: int  # cells of the type on all ranks


@dataclass(frozen=True, eq=False)
class FacetSlice:
    """The facets whose lowest cell is at home here, in the order of their first slots.

    A slot is a facet of one cell; slots are numbered cell by cell, type after type.
    """

    ends: Int64s  # (types + 1,): facets by the type of their lowest cell
    first: Int32s  # (n,): the first slot of each, among the slots of this rank
    cells: Int32s  # (n, 2): the lowest cell and another, -1 for none
    count: UInt8s  # (n,): cells of each facet, 3 for more
    slots: Slots  # of this rank, in numbers of its own
    nodes: NDArray[np.integer]  # (m,) integers: the nodes that these stand for

    def chosen(self, keep: Bools) -> "FacetSlice":
        ends = offsets_of(keep)[self.ends]
        rest = self.first[keep], self.cells[keep], self.count[keep]
        return FacetSlice(ends, *rest, self.slots, self.nodes)

    def corners(self) -> Int32s:
        """Nodes (n, arity) as the lowest cell has them."""
        return self.nodes[corners_of(self.slots, self.first)].astype(np.int32)

    def within(self, marked: Bools) -> Int32s:
        """The facets whose corners are all marked, of the nodes here."""
        found = [np.empty(0, np.int64)]
        for begin in range(0, self.first.size, ROWS):
            rows = marked[corners_of(self.slots, self.first[begin : begin + ROWS])]
            found.append(np.flatnonzero(rows.all(axis=1)) + begin)
        return np.concatenate(found).astype(np.int32)

    def names(self, which: Int32s) -> Int32s:
        """The nodes of some facets, ascending in each."""
        found = np.sort(self.nodes[corners_of(self.slots, self.first[which])], axis=1)
        return found.astype(np.int32)


def facet_slice(cells: Sequence[CellSlice], nodes: Homes) -> FacetSlice:
    """Match the facets with one number of corners of these types of cells.

    O(n / ranks log n), and messages of the facets between nodes that several ranks have.
    """
    points = distinct(np.concatenate([one.table.reshape(-1) for one in cells]))
    places = Places.among(points)
    parts = [Part(places.of(one.table), one.local, range(len(one.local))) for one in cells]
    found = find_facets(parts, len(cells[0].local[0]), points.size)
    slots, count = found.slots, found.n_cells
    first, second = _two_slots(found.number, count.size)
    pair = np.stack([_cells(one, slots.slot_start, cells) for one in (first, second)], axis=1)
    ends = np.searchsorted(first, slots.slot_start)
    mine = FacetSlice(ends, first, pair, count, slots, points)
    for chosen, corners in _borders(mine, _shared(points, nodes), nodes.ranks):
        rows = np.column_stack([pair[chosen], count[chosen]]).astype(np.int64)
        pair[chosen, 1], count[chosen] = _second_cells(rows, corners, nodes.ranks).T
    return mine.chosen(count > 0)


def _two_slots(number: Int32s, facets: int) -> tuple[Int32s, Int32s]:
    """The first and the second slot of every facet; -1 where there is no second."""
    first, second = np.empty(facets, np.int32), np.full(facets, -1, np.int32)
    slots = np.arange(number.size, dtype=np.int32)
    # of several values for one place, the one written last stays
    first[number[::-1]] = slots[::-1]
    others = slots[first[number] != slots][::-1]
    second[number[others]] = others
    return first, second


def _shared(points: NDArray[np.integer], nodes: Homes) -> Bools:
    """Mask of these nodes: True if another rank has the node, too."""
    wishes = exchanged(nodes.ranks, nodes.pieces(points, points))
    users = np.zeros(len(nodes.own), np.int32)
    for wish in wishes:
        users[wish - nodes.own.start] += 1
    return joined(exchanged(nodes.ranks, [users[w - nodes.own.start] > 1 for w in wishes]))


def _cells(slots: Int32s, start: Int64s, cells: Sequence[CellSlice]) -> Int32s:
    """The cells of slots of this rank, as numbered in the mesh; -1 stays."""
    out = np.full(slots.size, -1, np.int32)
    for one, (low, high) in zip(cells, pairwise(start), strict=True):
        here = (slots >= low) & (slots < high)
        out[here] = (slots[here] - low) // len(one.local) + one.first + one.own.start
    return out


def _borders(facets: FacetSlice, shared: Bools, ranks: Ranks) -> Iterator[tuple[Int32s, Int32s]]:
    """The facets that other ranks may have, and their corners, some at a time.

    A facet that several ranks have comes at the same time on all of them.
    """
    found = [np.empty(0, np.int32)]
    for rows in blocks(ranks, facets.first.size):
        local = corners_of(facets.slots, facets.first[rows])
        found.append((np.flatnonzero(shared[local].all(axis=1)) + rows.start).astype(np.int32))
    border = np.concatenate(found)
    turns = max(ranks.allgather(-(-border.size // ROWS)))
    # few bits, which are sorted in linear time
    turn = np.empty(border.size, np.uint16)
    for rows in blocks(ranks, border.size):
        turn[rows] = (
            _rank_hash(facets.names(border[rows])) // np.uint64(ranks.size) % np.uint64(turns)
        )
    ends = np.cumsum(np.bincount(turn, minlength=turns))
    border = border[np.argsort(turn, kind="stable")]
    for chosen in np.split(border, ends[:-1]):
        yield chosen, facets.names(chosen)


def _hashed(corners: NDArray[np.integer]) -> UInt64s:
    """A 64-bit hash of each row of corners."""
    found = np.zeros(len(corners), np.uint64)
    for column in corners.T:
        found = (found ^ column.astype(np.uint64)) * SPREAD
        found ^= found >> np.uint64(32)
    return found


def _rank_hash(corners: NDArray[np.integer]) -> UInt64s:
    """A hash below 2^31 of each row, which chooses the rank where a facet's cells meet."""
    return _hashed(corners) >> np.uint64(33)


def _meeting_rank(corners: NDArray[np.integer], ranks: Ranks) -> UInt64s:
    return _rank_hash(corners) % np.uint64(ranks.size)


def by_hash(corners: NDArray[np.integer], rows: NDArray[Any], ranks: Ranks) -> list[NDArray[Any]]:
    """Rows of facets with these corners, for the rank where each facet's cells meet."""
    to = _meeting_rank(corners, ranks)
    order = np.argsort(to, kind="stable")
    return np.split(rows[order], np.searchsorted(to[order], np.arange(1, ranks.size)))


def _second_cells(rows: Int64s, corners: Int32s, ranks: Ranks) -> Int64s:
    """Second cell and cell count of facets whose cells are on several ranks.

    Rows are lowest cell, next cell, and number of cells. Only the rank with the lowest cell gets
    them; on the others there are no cells.
    """
    order = np.argsort(_meeting_rank(corners, ranks), kind="stable")
    given = exchanged(ranks, by_hash(corners, rows, ranks))
    names = exchanged(ranks, by_hash(corners, corners, ranks))
    met, of = np.concatenate(given), np.concatenate(names)
    merged = np.zeros((len(met), 2), np.int64)
    # rows of one facet have one hash, in bits that did not choose the rank
    key = _hashed(of) << np.uint64(32) | np.arange(len(met), dtype=np.uint64)
    _merge(np.sort(key), met, of, merged)
    ends = np.cumsum([len(one) for one in given])[:-1]
    out = np.empty((len(corners), 2), np.int64)
    out[order] = np.concatenate(exchanged(ranks, np.split(merged, ends)))
    return out


@kernel
def _merge(key: UInt64s, rows: Int64s, corners: Int32s, out: Int64s) -> None:
    """Rows in the order of their hashes; of facets of many cells only their number counts."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    left = np.ones(key.size, np.bool_)
    for i in range(key.size):
        if not left[i]:
            continue
        one = key[i] & low
        lead, lowest, second, count = one, rows[one, 0], rows[one, 1], rows[one, 2]
        for j in range(i + 1, key.size):
            other = key[j] & low
            if key[j] >> half != key[i] >> half:
                break
            if not left[j] or not _same(corners[one], corners[other]):
                continue
            left[j] = False
            count += rows[other, 2]
            if rows[other, 0] < lowest:
                lead, lowest, second = other, rows[other, 0], lowest
            else:
                second = rows[other, 0]
        out[lead, 0], out[lead, 1] = second, min(count, 3)


@inlined
def _same(one: Int32s, other: Int32s) -> bool:
    same = True
    for k in range(one.size):
        same = same and one[k] == other[k]
    return same
