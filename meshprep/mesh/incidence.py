"""Incidence: transposed and renumbered maps, the graphs of elements and of points.

All linear in the size of the result; indices are int32, offsets int64.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, offsets_of, read_only

from ..kernels import Int32s, Int64s, helper, kernel
from ..kernels.arrays import scan_offsets, sort
from ..kernels.parallel import in_pieces


@dataclass(frozen=True, eq=False)
class Csr:
    """Rows of different lengths: row ``i`` is ``index[offset[i]:offset[i + 1]]``."""

    offset: Int64s
    index: Int32s

    @property
    def n_rows(self) -> int:
        return int(self.offset.size) - 1


def transpose(table: Int32s, n_to: int) -> Csr:
    """The elements that touch each of ``n_to`` points, ascending.

    -1 in ``table`` is no point. An element that names a point twice is listed twice.
    """
    return Csr(*_transpose(table, n_to))


def stack(tables: Sequence[Int32s], sizes: Sequence[int]) -> tuple[Int32s, int]:
    """Maps of one from-set as one table into the disjoint union of their to-sets.

    Gives the table and the size of the union.
    """
    base = offsets_of(sizes)
    size = int(base[-1])
    if size > INDEX_LIMIT:
        raise MeshprepError(f"the to-sets have {size} elements together, past 2^31-1")
    if len(tables) == 1:
        return tables[0], size
    # Points of to-set k are numbered from base[k] on.
    shifted = [t + np.int32(b) for t, b in zip(tables, base, strict=False)]
    stacked = np.hstack(shifted)
    return np.ascontiguousarray(stacked), size


def as_csr(table: Int32s) -> Csr:
    """A map's table seen as rows; shares its memory."""
    n, arity = table.shape
    offset = np.arange(n + 1, dtype=np.int64) * arity
    index = np.ascontiguousarray(table).reshape(-1)
    return Csr(offset, index)


def renumber_table(
    table: Int32s, new_to_old: Int32s | None, old_to_new: Int32s | None
) -> Int32s:
    """A map's table in a new order of its elements, with new numbers of its points.

    ``new_to_old`` is of the elements and ``old_to_new`` of the points; None where they
    stay. O(n x arity), in parallel.
    """
    # Kernels take an empty array for an order that stays.
    if new_to_old is None:
        new_to_old = np.empty(0, np.int32)
    if old_to_new is None:
        old_to_new = np.empty(0, np.int32)
    out = np.empty(table.shape, np.int32)
    arrays = (read_only(table), read_only(new_to_old), read_only(old_to_new))
    in_pieces(_renumber_rows, len(table), *arrays, out)
    return out


def point_graph(table: Int32s, n_to: int) -> Csr:
    """Points are neighbours when an element has both [S19 section 2.3.1]; rows ascend."""
    arity = table.shape[1]
    if arity not in (2, 3):
        return _two_steps(transpose(table, n_to), as_csr(table))
    # Edges are the graph itself, and triangles have a side for each pair of their points;
    # a side between two triangles comes from both.
    if arity == 2:
        pairs = table
    else:
        three_sides = [0, 1, 1, 2, 2, 0]
        pairs = table[:, three_sides].reshape(-1, 2)
    offset, index = _graph_of_pairs(read_only(pairs), n_to)
    return Csr(offset, index[: offset[-1]])


def element_graph(table: Int32s, n_to: int) -> Csr:
    """Elements are neighbours when they share a point [S19 section 2.3]; rows ascend."""
    return _two_steps(as_csr(table), transpose(table, n_to))


def _two_steps(first: Csr, second: Csr) -> Csr:
    """The other rows that each row reaches by one step along each graph, ascending."""
    arrays = [
        read_only(a) for a in (first.offset, first.index, second.offset, second.index)
    ]
    # Count the neighbours of each row; without room for them, none is written.
    count = np.zeros(first.n_rows + 1, np.int64)
    no_room = np.empty(0, np.int32)
    in_pieces(_visit_two_steps, first.n_rows, *arrays, count, no_room)

    # Write them where the counts say that each row begins.
    offset = offsets_of(count[:-1])
    index = np.empty(offset[-1], np.int32)
    in_pieces(_visit_two_steps, first.n_rows, *arrays, offset, index)
    return Csr(offset, index)


@kernel
def _renumber_rows(
    table: Int32s,
    new_to_old: Int32s,
    old_to_new: Int32s,
    out: Int32s,
    begin: int,
    end: int,
) -> None:
    """Rows ``begin`` to ``end - 1``; an empty array stands for numbers that stay."""
    for i in range(begin, end):
        row = new_to_old[i] if new_to_old.size else i
        for j in range(table.shape[1]):
            point = table[row, j]
            if old_to_new.size:
                out[i, j] = old_to_new[point]
            else:
                out[i, j] = point


@kernel
def _transpose(table: Int32s, n_to: int) -> tuple[Int64s, Int32s]:
    """:func:`transpose` as a counting sort: its offset and index."""
    n, arity = table.shape
    # Count the elements on each point: entry t + 2 for point t, so that -1, which is no
    # point, falls into entry 1.
    offset = np.zeros(n_to + 2, np.int64)
    for i in range(n):
        for j in range(arity):
            offset[table[i, j] + 2] += 1
    offset[1] = 0
    scan_offsets(offset[1:])

    # List them, in ascending order as they are visited so.
    fill = offset[1:].copy()
    index = np.empty(offset[n_to + 1], np.int32)
    for i in range(n):
        for j in range(arity):
            t = table[i, j]
            if t >= 0:
                index[fill[t]] = i
                fill[t] += 1
    return offset[1:], index


@kernel
def _graph_of_pairs(table: Int32s, n_to: int) -> tuple[Int64s, Int32s]:
    """The two ends of each row are neighbours; there may be room behind the last row."""
    # Count the neighbours of each point, those that come twice counted twice.
    offset = np.zeros(n_to + 1, np.int64)
    for i in range(table.shape[0]):
        if table[i, 0] != table[i, 1]:
            offset[table[i, 0] + 1] += 1
            offset[table[i, 1] + 1] += 1
    scan_offsets(offset)

    # Each end of a pair is a neighbour of the other.
    fill = offset[:-1].copy()
    index = np.empty(offset[n_to], np.int32)
    for i in range(table.shape[0]):
        first = table[i, 0]
        other = table[i, 1]
        if first != other:
            index[fill[first]] = other
            index[fill[other]] = first
            fill[first] += 1
            fill[other] += 1

    # Sort each row and keep one of equal neighbours: rows move to the front.
    end = 0
    for t in range(n_to):
        begin = offset[t]
        stop = offset[t + 1]
        sort(index, begin, stop)
        offset[t] = end
        for k in range(begin, stop):
            if end == offset[t] or index[end - 1] != index[k]:
                index[end] = index[k]
                end += 1
    offset[n_to] = end
    return offset, index


@kernel
def _visit_two_steps(
    offset1: Int64s,
    index1: Int32s,
    offset2: Int64s,
    index2: Int32s,
    offset: Int64s,
    index: Int32s,
    start: int,
    stop: int,
) -> None:
    """Fill rows ``start`` to ``stop - 1``; without room, ``offset`` gets their lengths."""
    filling = index.size > 0
    # The last row that reached each row j: a neighbour on several ways is listed once.
    last_row = np.full(offset1.size - 1, -1, np.int32)
    for i in range(start, stop):
        # No row is its own neighbour.
        last_row[i] = i
        entry = offset[i]
        for p in range(offset1[i], offset1[i + 1]):
            t = index1[p]
            for q in range(offset2[t], offset2[t + 1]):
                j = index2[q]
                if last_row[j] != i:
                    last_row[j] = i
                    if filling:
                        index[entry] = j
                    entry += 1
        if filling:
            sort(index, offset[i], entry)
        else:
            offset[i] = entry


# 2^64 divided by the golden ratio: spreads consecutive numbers over a power of two.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


@helper
def _find(slot: Int32s, points: Int32s, point: int) -> np.int64:
    """The entry of the open hash ``slot`` for the position of ``point`` in ``points``.

    Multiplicative hashing, linear probing; the entry is -1 where the point is not there.
    """
    mask = slot.size - 1
    spread = np.uint64(point) * SPREAD
    entry = np.int64(spread >> np.uint64(32)) & mask
    while slot[entry] >= 0 and points[slot[entry]] != point:
        entry = (entry + 1) & mask
    return entry


@helper
def number_points(rows: Int32s) -> tuple[Int32s, Int32s]:
    """The distinct points of a block by first touch, and its rows in these local numbers.

    ``rows`` (m, k) are those of the table that belong to the block: ``points[local]`` gives
    them again. O(m k), without arrays as long as the mesh.
    """
    m, k = rows.shape
    # A power of two that leaves the hash table at most half full.
    size = 2
    while size < 2 * m * k:
        size *= 2
    slot = np.full(size, -1, np.int32)
    # Give each point the next local number when it is first touched.
    points = np.empty(m * k, np.int32)
    local = np.empty((m, k), np.int32)
    count = 0
    for e in range(m):
        for j in range(k):
            point = rows[e, j]
            slot_of_point = _find(slot, points, point)
            if slot[slot_of_point] < 0:
                slot[slot_of_point] = count
                points[count] = point
                count += 1
            local[e, j] = slot[slot_of_point]
    return points[:count], local


@helper
def count_elements(local: Int32s, n_points: int) -> Int32s:
    """The offsets of a list of the elements on each point of a block, each once."""
    m, k = local.shape
    offset = np.zeros(n_points + 1, np.int32)
    # The last element on each point: one that names a point twice counts once.
    last = np.full(n_points, -1, np.int32)
    for e in range(m):
        for j in range(k):
            p = local[e, j]
            if last[p] != e:
                last[p] = e
                offset[p + 1] += 1
    scan_offsets(offset)
    return offset


@helper
def elements_of_points(local: Int32s, n_points: int) -> tuple[Int32s, Int32s]:
    """The elements on each point of a block, ascending, each once: (offset, element)."""
    m, k = local.shape
    offset = count_elements(local, n_points)
    # An element that names a point twice is listed once: remember who came last.
    last = np.full(n_points, -1, np.int32)
    element = np.empty(offset[n_points], np.int32)
    fill = offset[:-1].copy()
    for e in range(m):
        for j in range(k):
            p = local[e, j]
            if last[p] != e:
                last[p] = e
                element[fill[p]] = e
                fill[p] += 1
    return offset, element


@helper
def most_on_a_point(offset: Int32s) -> int:
    """The largest number of elements on one point: no block has fewer thread colours."""
    most = 0
    for p in range(offset.size - 1):
        most = max(most, offset[p + 1] - offset[p])
    return most
