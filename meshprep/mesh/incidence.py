"""Incidence: the transpose of a map, its renumbering, and the graphs of elements and of points.

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
    """Rows of indices of different lengths: row ``i`` is ``index[offset[i]:offset[i + 1]]``."""

    offset: Int64s
    index: Int32s

    @property
    def n_rows(self) -> int:
        return int(self.offset.size) - 1


def transpose(table: Int32s, n_to: int) -> Csr:
    """The elements that touch each of ``n_to`` points, ascending; -1 in ``table`` is no point.

    An element that repeats a point stands there twice.
    """
    return Csr(*_transpose(table, n_to))


def stack(tables: Sequence[Int32s], sizes: Sequence[int]) -> tuple[Int32s, int]:
    """Maps of one from-set as a table into the disjoint union of their to-sets, and its size."""
    base = offsets_of(sizes)
    if base[-1] > INDEX_LIMIT:
        raise MeshprepError(f"the to-sets have {base[-1]} elements together, past 2^31-1")
    if len(tables) == 1:
        return tables[0], int(base[-1])
    shifted = [t + np.int32(b) for t, b in zip(tables, base, strict=False)]
    return np.ascontiguousarray(np.hstack(shifted)), int(base[-1])


def as_csr(table: Int32s) -> Csr:
    """A map's table seen as rows; shares its memory."""
    n, arity = table.shape
    return Csr(np.arange(n + 1, dtype=np.int64) * arity, np.ascontiguousarray(table).reshape(-1))


def renumber_table(table: Int32s, new_to_old: Int32s | None, old_to_new: Int32s | None) -> Int32s:
    """A map's table in a new order of its elements, with new numbers of its points.

    ``new_to_old`` is of the elements and ``old_to_new`` of the points; None where they stay. O(n x
    arity), in parallel.
    """
    nothing, out = np.empty(0, np.int32), np.empty(table.shape, np.int32)
    rows = nothing if new_to_old is None else new_to_old
    points = nothing if old_to_new is None else old_to_new
    arrays = read_only(table), read_only(rows), read_only(points)
    in_pieces(_renumber_rows, len(table), *arrays, out)
    return out


def point_graph(table: Int32s, n_to: int) -> Csr:
    """Points are neighbours when an element has both [S19 section 2.3.1]; rows ascend."""
    if table.shape[1] in (2, 3):
        # the sides of triangles, each from both of its cells
        pairs = table if table.shape[1] == 2 else table[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        offset, index = _graph_of_pairs(read_only(pairs), n_to)
        return Csr(offset, index[: offset[-1]])
    return _two_steps(transpose(table, n_to), as_csr(table))


def element_graph(table: Int32s, n_to: int) -> Csr:
    """Elements are neighbours when they share a point [S19 section 2.3]; rows ascend."""
    return _two_steps(as_csr(table), transpose(table, n_to))


def _two_steps(first: Csr, second: Csr) -> Csr:
    arrays = [read_only(a) for a in (first.offset, first.index, second.offset, second.index)]
    end, nothing = np.zeros(first.n_rows + 1, np.int64), np.empty(0, np.int32)
    in_pieces(_visit_two_steps, first.n_rows, *arrays, end, nothing)
    offset = offsets_of(end[:-1])
    index = np.empty(offset[-1], np.int32)
    in_pieces(_visit_two_steps, first.n_rows, *arrays, offset, index)
    return Csr(offset, index)


@kernel
def _renumber_rows(
    table: Int32s, new_to_old: Int32s, old_to_new: Int32s, out: Int32s, begin: int, end: int
) -> None:
    """Rows ``begin`` to ``end - 1``; an empty array stands for numbers that stay."""
    for i in range(begin, end):
        row = new_to_old[i] if new_to_old.size else i
        for j in range(table.shape[1]):
            point = table[row, j]
            out[i, j] = old_to_new[point] if old_to_new.size else point


@kernel
def _transpose(table: Int32s, n_to: int) -> tuple[Int64s, Int32s]:
    n, arity = table.shape
    # counts of -1 are in front
    offset = np.zeros(n_to + 2, np.int64)
    for i in range(n):
        for j in range(arity):
            offset[table[i, j] + 2] += 1
    offset[1] = 0
    scan_offsets(offset[1:])
    fill, index = offset[1:].copy(), np.empty(offset[n_to + 1], np.int32)
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
    offset = np.zeros(n_to + 1, np.int64)
    for i in range(table.shape[0]):
        if table[i, 0] != table[i, 1]:
            offset[table[i, 0] + 1] += 1
            offset[table[i, 1] + 1] += 1
    scan_offsets(offset)
    fill, index = offset[:-1].copy(), np.empty(offset[n_to], np.int32)
    for i in range(table.shape[0]):
        one, other = table[i, 0], table[i, 1]
        if one != other:
            index[fill[one]], index[fill[other]] = other, one
            fill[one] += 1
            fill[other] += 1
    end = 0
    for t in range(n_to):
        begin, stop = offset[t], offset[t + 1]
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
    """Fill rows ``start`` to ``stop - 1``; without room, add the length of each to ``offset``."""
    filling = index.size > 0
    seen = np.full(offset1.size - 1, -1, np.int32)
    for i in range(start, stop):
        seen[i] = i
        at = offset[i]
        for p in range(offset1[i], offset1[i + 1]):
            t = index1[p]
            for q in range(offset2[t], offset2[t + 1]):
                j = index2[q]
                if seen[j] != i:
                    seen[j] = i
                    if filling:
                        index[at] = j
                    at += 1
        if filling:
            sort(index, offset[i], at)
        else:
            offset[i] = at


# 2^64 divided by the golden ratio: spreads consecutive numbers over a power of two.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


@helper
def _find(slot: Int32s, points: Int32s, point: int) -> np.int64:
    """Where the open hash ``slot`` keeps the position of ``point`` in ``points``, or would."""
    mask = slot.size - 1
    at = np.int64((np.uint64(point) * SPREAD) >> np.uint64(32)) & mask
    while slot[at] >= 0 and points[slot[at]] != point:
        at = (at + 1) & mask
    return at


@helper
def number_points(rows: Int32s) -> tuple[Int32s, Int32s]:
    """The distinct points of a block in the order of first touch, and its rows in these numbers.

    ``points[local]`` is ``rows``, those rows (m, k) of the table that belong to the block. O(m k),
    and no array as long as the mesh.
    """
    m, k = rows.shape
    size = 2
    while size < 2 * m * k:
        size *= 2
    slot = np.full(size, -1, np.int32)
    points = np.empty(m * k, np.int32)
    local = np.empty((m, k), np.int32)
    count = 0
    for e in range(m):
        for j in range(k):
            point = rows[e, j]
            at = _find(slot, points, point)
            if slot[at] < 0:
                slot[at] = count
                points[count] = point
                count += 1
            local[e, j] = slot[at]
    return points[:count], local


@helper
def count_elements(local: Int32s, n_points: int) -> Int32s:
    """Where the elements on each point of a block would begin in one list, each counted once."""
    m, k = local.shape
    offset = np.zeros(n_points + 1, np.int32)
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
    """The elements on each point of a block, ascending and once, as ``(offset, element)``."""
    m, k = local.shape
    offset, last = count_elements(local, n_points), np.full(n_points, -1, np.int32)
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
