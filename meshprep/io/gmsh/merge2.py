"""MSH 2 repeats an element for each of its physical groups: make one cell of the copies."""

import numpy as np
from numpy.typing import NDArray

from ...mesh.assemble import GroupTable
from ..validate import first_equal
from .numbering import distinct, distinct_pairs
from .raw import RawCells


def one_each(unique: NDArray[np.int64], place: NDArray[np.int32]) -> GroupTable:
    """The table in which every cell has one group, or none where the number is 0."""
    held = unique != 0
    offset = np.concatenate([[0], np.cumsum(held)])
    return GroupTable(place, offset, unique[held])


def merge_copies(
    cells: RawCells, part: NDArray[np.int32], *, apart: bool = False
) -> tuple[NDArray[np.int64] | None, GroupTable]:
    """Which cell each element belongs to, and the physical groups of the cells.

    Elements of the same nodes, entity and partitions (``part``: a number for each list of these)
    are one cell where their groups differ; a true duplicate (the same group as well, or none) stays
    a cell of its own, and so do all with ``apart``. Cells are numbered by their first element; the
    numbers are None where every element is a cell of its own. The groups have one row a cell.
    Expected O(n).
    """
    unique, place, _ = distinct(cells.physical)
    assignment = distinct_pairs(cells.entity, part)
    if apart or len(distinct_pairs(assignment.place, place).values) == len(assignment.values):
        # Every entity has one group, so that no element can be a copy of another.
        return None, one_each(unique, place)
    first = first_equal(np.column_stack([assignment.place, cells.nodes]))
    again = np.flatnonzero(first != np.arange(first.size))
    if not again.size:
        return None, one_each(unique, place)
    return _attach(cells.physical, first, again)


def _attach(
    physical: NDArray[np.int64], first: NDArray[np.int64], again: NDArray[np.int64]
) -> tuple[NDArray[np.int64], GroupTable]:
    """Give the k-th copy with a group to the k-th cell of its equals. O(copies) dict steps."""
    cells: dict[int, list[tuple[int, list[int]]]] = {}
    count: dict[tuple[int, int], int] = {}
    owner = np.arange(first.size)
    for row, leader, group in zip(
        again.tolist(), first[again].tolist(), physical[again].tolist(), strict=True
    ):
        if leader not in cells:
            start = int(physical[leader])
            cells[leader] = [(leader, [start])] if start else []
            count[leader, start] = 1
        if group == 0:
            continue
        # The cells that have this group are always the first ones.
        k = count.get((leader, group), 0)
        count[leader, group] = k + 1
        if k == len(cells[leader]):
            cells[leader].append((row, [group]))
        else:
            owner[row] = cells[leader][k][0]
            cells[leader][k][1].append(group)
    kept = owner == np.arange(first.size)
    cell = (np.cumsum(kept) - 1)[owner]
    unique, place, _ = distinct(physical[kept])
    lists: dict[tuple[int, ...], int] = {}
    rows = [lists.setdefault((int(i),) if i else (), len(lists)) for i in unique]
    place = np.asarray(rows, dtype=np.int32)[place]
    for members in cells.values():
        for row, held in members:
            place[cell[row]] = lists.setdefault(tuple(held), len(lists))
    return cell, GroupTable.of(lists, place)
