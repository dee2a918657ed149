"""Facets of cells in slices, in the order in which :mod:`meshprep.topology` numbers them.

Each rank matches the facets of the cells at home there. Ranks can share a facet only where
they share all of its corners: such facets are sent to a rank that a hash of the corners
chooses, and matched there.
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
from ..homes import ROWS, Homes, Places, blocks, joined
from ..ranks import Ranks, exchanged


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

    ends: Int64s  # (types + 1,): offsets of the facets by the type of their lowest cell
    first: Int32s  # (n,): the first slot of each, among the slots of this rank
    cells: Int32s  # (n, 2): the lowest cell and another, -1 for none
    count: UInt8s  # (n,): cells of each facet, 3 for more
    slots: Slots  # of this rank, in numbers of its own
    nodes: NDArray[np.integer]  # (m,) integers: the nodes by these numbers

    def chosen(self, keep: Bools) -> "FacetSlice":
        """The facets of a mask."""
        return FacetSlice(
            ends=offsets_of(keep)[self.ends],
            first=self.first[keep],
            cells=self.cells[keep],
            count=self.count[keep],
            slots=self.slots,
            nodes=self.nodes,
        )

    def corners(self) -> Int32s:
        """Nodes (n, arity) as the lowest cell has them."""
        return self.nodes[corners_of(self.slots, self.first)].astype(np.int32)

    def within(self, marked: Bools) -> Int32s:
        """The facets whose corners are all marked; ``marked`` is of the nodes here."""
        facets = [np.empty(0, np.int64)]
        for begin in range(0, self.first.size, ROWS):
            marks = marked[corners_of(self.slots, self.first[begin : begin + ROWS])]
            facets.append(np.flatnonzero(marks.all(axis=1)) + begin)
        return np.concatenate(facets).astype(np.int32)

    def names(self, which: Int32s) -> Int32s:
        """The nodes of some facets, ascending in each."""
        corners = self.nodes[corners_of(self.slots, self.first[which])]
        return np.sort(corners, axis=1).astype(np.int32)


def facet_slice(cells: Sequence[CellSlice], nodes: Homes) -> FacetSlice:
    """Match the facets with one number of corners of these types of cells.

    O(n / ranks log n), and messages of the facets between nodes that several ranks have.
    """
    # Match the facets of the cells at home here, with the nodes in local numbers.
    nodes_of_cells = [of_type.table.reshape(-1) for of_type in cells]
    points = distinct(np.concatenate(nodes_of_cells))
    places = Places.among(points)
    parts = []
    for of_type in cells:
        columns = range(len(of_type.local))
        parts.append(Part(places.of(of_type.table), of_type.local, columns))
    arity = len(cells[0].local[0])
    matched = find_facets(parts, arity, points.size)
    slots = matched.slots
    count = matched.n_cells
    # The lowest cell of each facet and the next one, in numbers of the mesh.
    first, second = _two_slots(matched.number, count.size)
    first_cell = _cells_of_slots(first, slots.slot_start, cells)
    second_cell = _cells_of_slots(second, slots.slot_start, cells)
    pair = np.stack([first_cell, second_cell], axis=1)
    facets = FacetSlice(
        ends=np.searchsorted(first, slots.slot_start),
        first=first,
        cells=pair,
        count=count,
        slots=slots,
        nodes=points,
    )
    # Match those at borders with the facets of other ranks: the lowest cell keeps the
    # facet.
    for chosen, corners in _borders(facets, _shared(points, nodes), nodes.ranks):
        rows = np.column_stack([pair[chosen], count[chosen]])
        second_and_count = _second_cells(rows.astype(np.int64), corners, nodes.ranks)
        pair[chosen, 1] = second_and_count[:, 0]
        count[chosen] = second_and_count[:, 1]
    return facets.chosen(count > 0)


def _two_slots(number: Int32s, facets: int) -> tuple[Int32s, Int32s]:
    """The first and the second slot of every facet; -1 where there is no second."""
    first = np.empty(facets, np.int32)
    second = np.full(facets, -1, np.int32)
    slots = np.arange(number.size, dtype=np.int32)
    # Of several values written to one place the last stays: slots backwards leave the
    # first.
    first[number[::-1]] = slots[::-1]
    others = slots[first[number] != slots][::-1]
    second[number[others]] = others
    return first, second


def _shared(points: NDArray[np.integer], nodes: Homes) -> Bools:
    """Mask of these nodes: True if another rank has the node, too."""
    # Count the ranks of each node at its home, and tell them.
    nodes_of_ranks = exchanged(nodes.ranks, nodes.pieces(points, points))
    n_ranks = np.zeros(len(nodes.own), np.int32)
    for points_of_rank in nodes_of_ranks:
        n_ranks[points_of_rank - nodes.own.start] += 1
    answers = [n_ranks[numbers - nodes.own.start] > 1 for numbers in nodes_of_ranks]
    return joined(exchanged(nodes.ranks, answers))


def _cells_of_slots(slots: Int32s, start: Int64s, cells: Sequence[CellSlice]) -> Int32s:
    """The cells of slots of this rank, by their numbers in the mesh; -1 stays."""
    out = np.full(slots.size, -1, np.int32)
    for of_type, (low, high) in zip(cells, pairwise(start), strict=True):
        chosen = (slots >= low) & (slots < high)
        cell_here = (slots[chosen] - low) // len(of_type.local)
        first_here = of_type.first + of_type.own.start
        out[chosen] = cell_here + first_here
    return out


def _borders(
    facets: FacetSlice, shared: Bools, ranks: Ranks
) -> Iterator[tuple[Int32s, Int32s]]:
    """The facets that other ranks may have, and their corners, some in each turn.

    A facet that several ranks have comes in the same turn on all of them.
    """
    # All corners of these are shared.
    border_facets = [np.empty(0, np.int32)]
    for rows in blocks(ranks, facets.first.size):
        local = corners_of(facets.slots, facets.first[rows])
        all_shared = np.flatnonzero(shared[local].all(axis=1))
        border_facets.append((all_shared + rows.start).astype(np.int32))
    border = np.concatenate(border_facets)
    # The corners choose the turn; its few bits are sorted in linear time.
    turns = max(ranks.allgather(-(-border.size // ROWS)))
    turn = np.empty(border.size, np.uint16)
    for rows in blocks(ranks, border.size):
        # what is left of the hash when it has chosen the rank
        rank_hash = _rank_hash(facets.names(border[rows]))
        turn[rows] = rank_hash // np.uint64(ranks.size) % np.uint64(turns)
    ends = np.cumsum(np.bincount(turn, minlength=turns))
    border = border[np.argsort(turn, kind="stable")]
    for chosen in np.split(border, ends[:-1]):
        yield chosen, facets.names(chosen)


def _hashed(corners: NDArray[np.integer]) -> UInt64s:
    """A 64-bit hash of each row of corners."""
    value = np.zeros(len(corners), np.uint64)
    for column in corners.T:
        value = (value ^ column.astype(np.uint64)) * SPREAD
        value ^= value >> np.uint64(32)
    return value


def _rank_hash(corners: NDArray[np.integer]) -> UInt64s:
    """A hash below 2^31 of each row, which chooses the rank where a facet's cells meet."""
    return _hashed(corners) >> np.uint64(33)


def _meeting_rank(corners: NDArray[np.integer], ranks: Ranks) -> UInt64s:
    """The rank where the cells of each facet meet."""
    return _rank_hash(corners) % np.uint64(ranks.size)


def by_hash(
    corners: NDArray[np.integer], rows: NDArray[Any], ranks: Ranks
) -> list[NDArray[Any]]:
    """Rows that go with these facets, by the rank where the cells of each facet meet."""
    to = _meeting_rank(corners, ranks)
    order = np.argsort(to, kind="stable")
    ends = np.searchsorted(to[order], np.arange(1, ranks.size))
    return np.split(rows[order], ends)


def _second_cells(rows: Int64s, corners: Int32s, ranks: Ranks) -> Int64s:
    """Second cell and cell count of facets whose cells are on several ranks.

    Rows are lowest cell, next cell, and number of cells. Only the rank with the lowest cell
    gets them; on the others there are no cells.
    """
    # Send rows and corners to the ranks where the facets meet.
    order = np.argsort(_meeting_rank(corners, ranks), kind="stable")
    rows_of_ranks = exchanged(ranks, by_hash(corners, rows, ranks))
    corners_of_ranks = exchanged(ranks, by_hash(corners, corners, ranks))
    rows_met = np.concatenate(rows_of_ranks)
    corners_met = np.concatenate(corners_of_ranks)
    # Sort them by hash, in the bits that did not choose the rank, and merge those of a
    # facet.
    index = np.arange(len(rows_met), dtype=np.uint64)
    key = _hashed(corners_met) << np.uint64(32) | index
    merged = np.zeros((len(rows_met), 2), np.int64)
    _merge(key=np.sort(key), rows=rows_met, corners=corners_met, out=merged)
    # Send the results back.
    ends = np.cumsum([len(rows_of_rank) for rows_of_rank in rows_of_ranks])[:-1]
    out = np.empty((len(corners), 2), np.int64)
    out[order] = np.concatenate(exchanged(ranks, np.split(merged, ends)))
    return out


@kernel
def _merge(key: UInt64s, rows: Int64s, corners: Int32s, out: Int64s) -> None:
    """Merge the rows of each facet into ``out``: second cell, number of cells (3: more).

    ``key`` has hashes in its upper bits, ascending, and rows in its lower ones. The row
    with the lowest cell gets the result, the others of a facet stay 0. Of facets of more
    than two cells only the number counts.
    """
    row_bits = np.uint64(0xFFFFFFFF)
    hash_shift = np.uint64(32)
    # Rows that no facet has taken.
    left = np.ones(key.size, np.bool_)
    for i in range(key.size):
        if not left[i]:
            continue
        row = key[i] & row_bits
        # The row with the lowest cell of the facet, so far.
        lead = row
        lowest = rows[row, 0]
        second = rows[row, 1]
        count = rows[row, 2]
        # Rows of one facet have one hash; corners tell facets with one hash apart.
        for j in range(i + 1, key.size):
            other = key[j] & row_bits
            if key[j] >> hash_shift != key[i] >> hash_shift:
                break
            if not left[j] or not _same_corners(corners[row], corners[other]):
                continue
            left[j] = False
            count += rows[other, 2]
            if rows[other, 0] < lowest:
                second = lowest
                lowest = rows[other, 0]
                lead = other
            else:
                second = rows[other, 0]
        out[lead, 0] = second
        out[lead, 1] = min(count, 3)


@inlined
def _same_corners(first: Int32s, second: Int32s) -> bool:
    same = True
    for k in range(first.size):
        same = same and first[k] == second[k]
    return same
