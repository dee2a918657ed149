"""From the numbers of a file to positions, and distinct values.

MSH 2 repeats an element for each of its physical groups: :func:`merge_copies` makes them
one cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Int32s, Int64s

from ...mesh.assemble import GroupTable
from ..validate import first_equal
from .raw import RawCells


@dataclass(frozen=True, eq=False)
class Lookup:
    """Positions of numbers."""

    low: int  # the number that ``table[0]`` stands for, which is not used
    # Position of every number from ``low`` on, -1 where it is not used, as at both ends.
    table: Int32s
    # (n,) arrays: sorted numbers and their positions, where there is no table; else empty.
    keys: Int64s
    order: Int32s
    size: int  # how many numbers there are
    plain: bool  # whether the numbers are 1, 2, 3, ... in order

    def find(self, numbers: NDArray[np.integer]) -> Int32s:
        """Positions, in the shape of ``numbers``; -1 for those that do not exist.

        O(n), or O(n log n) where the numbers are spread widely.
        """
        if self.keys.size:
            # Numbers spread widely are looked up among the sorted ones, others in a
            # table.
            at = np.minimum(np.searchsorted(self.keys, numbers), self.size - 1)
            return np.where(self.keys[at] == numbers, self.order[at], np.int32(-1))
        return self.table.take(numbers - self.low, mode="clip")

    def find_all(
        self, numbers: NDArray[np.integer], where: str, what: str, advice: str
    ) -> Int32s:
        """Positions as by :meth:`find`; raises MeshprepError where ``what`` lacks one."""
        rows = self.find(numbers)
        if rows.size and rows.min() < 0:
            missing = numbers.reshape(-1)[np.argmax(rows.reshape(-1) < 0)]
            raise MeshprepError(
                f"{where}: {what} {missing} is not in ${what.title()}s: {advice}"
            )
        return rows


def make_lookup(numbers: Int64s) -> tuple[Lookup, int]:
    """The lookup for these numbers, and the position of one that occurs before (-1: none).

    O(n) where they lie within a range of a few n, else O(n log n).
    """
    n = numbers.size
    plain = is_range(numbers, 1)
    none32 = np.full(1, -1, np.int32)
    none64 = np.empty(0, np.int64)
    if plain:
        table = np.arange(-1, n + 1, dtype=np.int32)
        table[-1] = -1
        return Lookup(
            low=0,
            table=table,
            keys=none64,
            order=none32,
            size=n,
            plain=plain,
        ), -1
    # Numbers that lie close together have a table by number.
    low = int(numbers.min())
    high = int(numbers.max())
    if high - low < 4 * n + 1024:
        low -= 1
        table = np.full(high - low + 2, -1, dtype=np.int32)
        # From the last to the first, which stays.
        table[numbers[::-1] - low] = np.arange(n)[::-1]
        again = np.flatnonzero(table[numbers - low] != np.arange(n))
        if again.size:
            twice = int(again[-1])
        else:
            twice = -1
        return Lookup(
            low=low,
            table=table,
            keys=none64,
            order=none32,
            size=n,
            plain=plain,
        ), twice
    # Others are looked up in their sorted order.
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    keys = numbers[order]
    equal = np.flatnonzero(keys[1:] == keys[:-1])
    if equal.size:
        twice = int(order[equal[0] + 1])
    else:
        twice = -1
    return Lookup(
        low=low,
        table=none32,
        keys=keys,
        order=order,
        size=n,
        plain=plain,
    ), twice


def is_range(numbers: Int64s, low: int) -> bool:
    """Whether these are low, low + 1, ... in order."""
    return np.array_equal(numbers, np.arange(low, low + numbers.size))


def unused(taken: Sequence[Int64s], n: int, limit: int) -> Int64s:
    """``n`` unused numbers: after the highest, or in gaps if that passes ``limit``."""
    highest = max((int(t.max()) for t in taken if t.size), default=0)
    if highest + n <= limit:
        return np.arange(highest + 1, highest + n + 1, dtype=np.int64)
    size = sum(t.size for t in taken)
    return np.setdiff1d(np.arange(1, n + size + 1), np.concatenate(taken))[:n]


class Distinct(NamedTuple):
    """Distinct values in rising order, each entry's index among them, and first uses."""

    values: Int64s
    place: Int32s
    first: Int64s


def distinct(ids: NDArray[np.integer]) -> Distinct:
    """Distinct values of one array.

    O(n) where the values lie within a range of a few n, else O(n log n).
    """
    if ids.size == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Distinct(nothing, np.empty(0, dtype=np.int32), nothing)
    low = int(ids.min())
    high = int(ids.max())
    if low == high:
        return Distinct(
            np.array([low]), np.zeros(ids.size, np.int32), np.zeros(1, np.int64)
        )
    copy: Int64s = np.asarray(ids, dtype=np.int64)
    if high - low < 2 * copy.size + 1024:
        first = np.full(high - low + 1, -1, dtype=np.int64)
        first[copy[::-1] - low] = np.arange(copy.size)[::-1]
        place = np.cumsum(first >= 0, dtype=np.int32)[copy - low] - np.int32(1)
        values = np.flatnonzero(first >= 0)
        return Distinct(values + low, place, first[values])
    unique, start, inverse = np.unique(copy, return_index=True, return_inverse=True)
    return Distinct(unique.astype(np.int64), inverse.reshape(-1).astype(np.int32), start)


def distinct_pairs(a: NDArray[np.integer], b: NDArray[np.integer]) -> Distinct:
    """Distinct rows of (a, b): ``values`` has the shape (m, 2)."""
    # Number the pairs by the places of both values, so that they fit into one number
    # each.
    of_a = distinct(a)
    other = distinct(b)
    width = max(other.values.size, 1)
    if other.values.size == 1:
        rows = np.stack([of_a.values, np.full_like(of_a.values, other.values[0])], axis=1)
        return Distinct(rows, of_a.place, of_a.first)
    both = distinct(of_a.place * np.int64(width) + other.place)
    keys = both.values
    rows = np.stack([of_a.values[keys // width], other.values[keys % width]], axis=1)
    return Distinct(rows, both.place, both.first)


def distinct_lists(
    start: Int64s, count: Int64s, flat: Int64s
) -> tuple[list[tuple[int, ...]], Int32s]:
    """Distinct lists among ``flat[start[i]:start[i] + count[i]]``, and each one's index."""
    if not count.any():
        return [()] if count.size else [], np.zeros(count.size, np.int32)
    # Compare lists as rows of one length, with their lengths before them.
    column = np.arange(count.max())
    at = np.minimum(start[:, None] + column, flat.size - 1)
    table = np.where(column < count[:, None], flat[at], 0)
    found = distinct(first_equal(np.column_stack([count, table])))
    lists = [tuple(flat[start[i] : start[i] + count[i]].tolist()) for i in found.values]
    return lists, found.place


def one_each(unique: Int64s, place: Int32s) -> GroupTable:
    """The table in which every cell has one group, or none where the number is 0."""
    held = unique != 0
    offset = np.concatenate([[0], np.cumsum(held)])
    return GroupTable(place, offset, unique[held])


def merge_copies(cells: RawCells, part: Int32s) -> tuple[Int64s | None, GroupTable]:
    """Which cell each element belongs to, and the physical groups of the cells.

    Elements of the same nodes, entity and partitions (``part``: a number for each list of
    these) are one cell where their groups differ; a true duplicate (the same group as well,
    or none) stays a cell of its own. Cells are numbered by their first element; the numbers
    are None where every element is a cell of its own. The groups have one row a cell.
    Expected O(n log n).
    """
    assert cells.physical is not None
    n = cells.physical.size
    physical = cells.physical
    unique, group_index, _ = distinct(physical)
    assignment = distinct_pairs(cells.entity, part)
    if len(distinct_pairs(assignment.place, group_index).values) == len(assignment.values):
        # Every entity has one group, so that no element can be a copy of another.
        return None, one_each(unique, group_index)
    equal = 2 * first_equal(np.column_stack([assignment.place, cells.nodes])) + (
        physical == 0
    )
    # The k-th of equal elements with one group belongs to the k-th cell of these nodes.
    same = distinct_pairs(equal, physical).place
    order = np.argsort(same, kind="stable")
    count = np.bincount(same)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n) - np.repeat(np.cumsum(count) - count, count)
    pairs = distinct_pairs(equal, rank)
    cell = np.argsort(np.argsort(pairs.first))[pairs.place]
    if len(pairs.values) == n:
        return None, one_each(unique, group_index)
    # List the groups of each cell in the order of its elements; 0 is none.
    rows = np.argsort(cell, kind="stable")
    rows = rows[physical[rows] != 0]
    count = np.bincount(cell[rows], minlength=len(pairs.values))
    lists, values = distinct_lists(np.cumsum(count) - count, count, physical[rows])
    return cell, GroupTable.of(lists, values)
