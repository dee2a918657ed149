"""Facets of cells that ranks hold slices of, numbered as :mod:`meshprep.topology` numbers them.

Each rank matches the facets of its own cells. Two ranks can share a facet only where they share all
of its corners: such facets go to the home of their lowest node, where those of all ranks meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...topology.facets import find_facets
from ...topology.slots import Part, corners_of
from ..ranks import exchanged
from .homes import Homes, joined


@dataclass(frozen=True, eq=False)
class CellSlice:
    """The cells of one type that are at home here.

    Parameters
    ----------
    table : (n, k) int32
        Nodes of the cells.
    local : sequence of corner numbers
        Columns of ``table`` that make each facet.
    own : range
        Which cells of the type these are.
    first : int
        Number of the first cell of the type in the set ``cells``.
    size : int
        Cells of the type on all ranks.
    """

    table: NDArray[np.int32]
    local: Sequence[tuple[int, ...]]
    own: range
    first: int
    size: int


@dataclass(frozen=True, eq=False)
class FacetSlice:
    """The facets whose lowest cell is at home here, in the order of their first slots.

    A slot is a facet of one cell; slots are numbered cell by cell, type after type.

    Parameters
    ----------
    ends : (types + 1,) int64
        Facets by the type of their lowest cell.
    cells : (n, 2) int64
        The lowest cell and the next, -1 for none.
    corners : (n, arity) int32
        Nodes as the lowest cell has them.
    count : (n,) int64
        Cells of each facet.
    """

    ends: NDArray[np.int64]
    cells: NDArray[np.int64]
    corners: NDArray[np.int32]
    count: NDArray[np.int64]

    def chosen(self, count: int) -> FacetSlice:
        """Those of so many cells."""
        keep = self.count == count
        ends = np.append(0, np.cumsum(keep))[self.ends]
        return FacetSlice(ends, self.cells[keep], self.corners[keep], self.count[keep])


def facet_slice(cells: Sequence[CellSlice], nodes: Homes) -> FacetSlice:
    """Match the facets with one number of corners of these types of cells.

    O(n / ranks log n), and messages of the facets between nodes that several ranks have.
    """
    points = np.unique(np.concatenate([one.table.reshape(-1) for one in cells]))
    parts = [
        Part(np.searchsorted(points, one.table).astype(np.int32), one.local, range(len(one.local)))
        for one in cells
    ]
    found = find_facets(parts, len(cells[0].local[0]), points.size)
    first, second = _two_slots(found.number, found.count.size)
    ends = np.searchsorted(first, found.slots.slot_start)
    corners = corners_of(found.slots, first.astype(np.int32))
    shared = _shared(points, nodes)[corners].all(axis=1)
    corners = points[corners].astype(np.int32)
    slots = _GlobalSlots.of(cells, found.slots.slot_start)
    rows = np.stack([slots.number(first), slots.number(second), found.count], axis=1)
    rows[shared] = _met(rows[shared], np.sort(corners[shared], axis=1), nodes)
    keep = rows[:, 2] > 0
    ends = np.append(0, np.cumsum(keep))[ends]
    return FacetSlice(ends, slots.cell(rows[keep, :2]), corners[keep], rows[keep, 2])


def _two_slots(
    number: NDArray[np.int32], facets: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the second slot of every facet; -1 where there is no second."""
    last = number[::-1]
    first, second = np.empty(facets, np.int64), np.full(facets, -1, np.int64)
    # of several values for one place, the one written last stays
    first[last] = np.arange(number.size - 1, -1, -1)
    others = np.flatnonzero(first[number] != np.arange(number.size))[::-1]
    second[number[others]] = others
    return first, second


def _shared(points: NDArray[np.integer], nodes: Homes) -> NDArray[np.bool_]:
    """Which of these nodes other ranks have, too."""
    wishes = exchanged(nodes.ranks, nodes.pieces(points, points))
    users = np.zeros(len(nodes.own), np.int32)
    for wish in wishes:
        users[wish - nodes.own.start] += 1
    return joined(exchanged(nodes.ranks, [users[w - nodes.own.start] > 1 for w in wishes]))


@dataclass(frozen=True, eq=False)
class _GlobalSlots:
    """Slots of this rank among those of all ranks, and their cells."""

    local: NDArray[np.int64]
    shift: NDArray[np.int64]
    start: NDArray[np.int64]
    facets: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, cells: Sequence[CellSlice], local: NDArray[np.int64]) -> _GlobalSlots:
        facets = np.array([len(one.local) for one in cells])
        start = np.append(0, np.cumsum([one.size for one in cells] * facets))[:-1]
        begin = np.array([one.own.start for one in cells]) * facets
        first = np.array([one.first for one in cells])
        return cls(local, start + begin - local[:-1], start, facets, first)

    def number(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of local slots on all ranks; -1 stays."""
        part = np.searchsorted(self.local, slots, side="right") - 1
        return np.where(slots < 0, -1, slots + self.shift[part])

    def cell(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of slots; -1 stays."""
        part = np.searchsorted(self.start, numbers, side="right") - 1
        cell = self.first[part] + (numbers - self.start[part]) // self.facets[part]
        return np.where(numbers < 0, -1, cell)


def _met(rows: NDArray[np.int64], corners: NDArray[np.int32], nodes: Homes) -> NDArray[np.int64]:
    """Facets that other ranks may have: first slot, second slot and cells of all ranks together.

    Only the rank with the first slot gets them; on the others there are no cells.
    """
    order = np.argsort(corners[:, 0], kind="stable")
    lowest = corners[order, 0]
    given = exchanged(nodes.ranks, nodes.pieces(lowest, rows[order]))
    names = exchanged(nodes.ranks, nodes.pieces(lowest, corners[order]))
    merged = _merged(np.concatenate(given), np.concatenate(names))
    ends = np.cumsum([len(one) for one in given])[:-1]
    out = np.empty_like(rows)
    out[order] = np.concatenate(exchanged(nodes.ranks, np.split(merged, ends)))
    return out


def _merged(rows: NDArray[np.int64], corners: NDArray[np.int32]) -> NDArray[np.int64]:
    """Rows of one facet become one: that with the first slot; the others count no cells."""
    order = np.lexsort((rows[:, 0], *corners.T))
    rows, corners = rows[order], corners[order]
    new = np.append(True, (corners[1:] != corners[:-1]).any(axis=1))[: len(rows)]
    leads = np.flatnonzero(new)
    out = np.zeros_like(rows)
    if leads.size:
        next_first = np.full(len(rows), np.iinfo(np.int64).max)
        next_first[:-1][~new[1:]] = rows[1:, 0][~new[1:]]
        own_second = np.where(rows[:, 1] < 0, np.iinfo(np.int64).max, rows[:, 1])
        second = np.minimum(next_first, own_second)[leads]
        out[leads, 0] = rows[leads, 0]
        out[leads, 1] = np.where(second == np.iinfo(np.int64).max, -1, second)
        out[leads, 2] = np.add.reduceat(rows[:, 2], leads)
    back = np.empty_like(out)
    back[order] = out
    return back
