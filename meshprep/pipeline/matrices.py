"""Matrices that loops add to: pattern and places, in the plan's numbering and the input's."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.matrices import MatrixPlan, with_places
from meshprep_runtime.plan.model import PlanContent
from meshprep_runtime.types.loops import Arg
from meshprep_runtime.types.maps import INDEX_LIMIT, SetMap, offsets_of, read_only

from ..kernels import Int32s, kernel
from ..kernels.arrays import first_not_below
from ..kernels.parallel import in_pieces
from ..loops.requests import LoopSpec
from ..mesh.incidence import transpose
from ..topology import constrained_points
from .numbering import Numbering


def build_matrices(numbering: Numbering, specs: Sequence[LoopSpec]) -> dict[str, MatrixPlan]:
    """The pattern of each matrix, which all its loops make, and their places in it.

    Raises MeshprepError where loops disagree about the sets of a matrix, and for groups that the
    mesh has not. The pattern is linear in the entries of all elements' matrices, a place
    logarithmic in the length of its row.

    ``numbering`` has the final order of every set.
    """
    users: dict[str, list[tuple[LoopSpec, Arg]]] = {}
    for spec in specs:
        for arg in spec.loop.matrices:
            users.setdefault(arg.name, []).append((spec, arg))
    return {name: _matrix(numbering, name, found) for name, found in users.items()}


def _matrix(numbering: Numbering, name: str, users: Sequence[tuple[LoopSpec, Arg]]) -> MatrixPlan:
    maps = [(numbering.map(str(a.map)), numbering.map(str(a.columns))) for _, a in users]
    sets = {(rows.to_set, columns.to_set) for rows, columns in maps}
    if len(sets) > 1 or len({a.dtype for _, a in users}) > 1:
        loops = ", ".join(spec.loop.name for spec, _ in users)
        raise MeshprepError(
            f"matrix '{name}' has other sets or another dtype in one of the loops {loops}: "
            "they must agree"
        )
    row_set, column_set = sets.pop()
    row_of = _row_of(numbering, name, users)
    n_columns = numbering.mesh.size(column_set)
    square = row_set == column_set
    column_of = row_of if square else read_only(np.arange(n_columns, dtype=np.int32))
    by_loop = {spec.loop.name: pair for (spec, _), pair in zip(users, maps, strict=True)}
    return pattern_and_places(name, (row_set, column_set), by_loop, row_of, column_of)


def pattern_and_places(
    name: str,
    sets: tuple[str, str],
    maps: Mapping[str, tuple[SetMap, SetMap]],
    row_of: NDArray[np.int32],
    column_of: NDArray[np.int32],
) -> MatrixPlan:
    """The matrix of some loops, from their maps to rows and columns and the numbers of both."""
    row_ptr, columns = pattern(*_all_elements([*maps.values()], row_of, column_of))
    numbers = (row_of, column_of, row_ptr, columns)
    place = {loop: places(*pair, numbers) for loop, pair in maps.items()}
    row_set, column_set = sets
    return MatrixPlan(name, row_set, column_set, *numbers, place)


def _row_of(
    numbering: Numbering, name: str, users: Sequence[tuple[LoopSpec, Arg]]
) -> NDArray[np.int32]:
    """The row of each point in the final order; -1 for those that some loop leaves out."""
    points = numbering.mesh.map(str(users[0][1].map)).to_set
    fixed = np.zeros(numbering.mesh.size(points), np.bool_)
    for spec, arg in users:
        if groups := spec.fixed.get(name, ()):
            fixed |= constrained_points(numbering.mesh, str(arg.map), groups)
    return numbered(~numbering.ordering(points).apply(fixed))


def numbered(free: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers of the points that are free, in their order; -1 for the others."""
    return read_only(np.where(free, np.cumsum(free) - 1, -1).astype(np.int32))


def _all_elements(
    maps: Sequence[tuple[SetMap, SetMap]], row_of: NDArray[np.int32], column_of: NDArray[np.int32]
) -> tuple[NDArray[np.int32], ...]:
    """The elements of all loops as one's: rows and columns, filled up, and their numbers."""
    if len(maps) == 1:
        return maps[0][0].table, maps[0][1].table, row_of, column_of
    tables = []
    for side, size in ((0, row_of.size), (1, column_of.size)):
        own = [pair[side].table for pair in maps]
        width = max(t.shape[1] for t in own)
        filled = [np.pad(t, ((0, 0), (0, width - t.shape[1])), constant_values=size) for t in own]
        tables.append(np.concatenate(filled))
    return (*tables, *(np.append(numbers, np.int32(-1)) for numbers in (row_of, column_of)))


def pattern(
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    row_of: NDArray[np.int32],
    column_of: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The nonzeros of a matrix, row after row, ascending in each. Linear in the entries.

    Columns are visited in ascending order, and each is put behind the rows that it meets, so that
    nothing is sorted. ``row_of`` and ``column_of`` are -1 for points without a number; the others
    count up from 0. Gives row_ptr (rows + 1,) and the columns (nonzeros,).
    """
    touching = transpose(columns, column_of.size)
    offset, elements = read_only(touching.offset), read_only(touching.index)
    given = (offset, elements, read_only(rows), read_only(row_of), read_only(column_of))
    end, nothing = np.zeros(int((row_of >= 0).sum()), np.int64), np.empty(0, np.int32)
    _visit_entries(*given, end, nothing)
    row_ptr = offsets_of(end)
    if row_ptr[-1] > INDEX_LIMIT:
        raise MeshprepError(f"a matrix has {row_ptr[-1]} nonzeros, past 2^31-1: split the mesh")
    found = np.empty(int(row_ptr[-1]), np.int32)
    _visit_entries(*given, row_ptr[:-1].copy(), found)
    return read_only(row_ptr), read_only(found)


def places(
    rows: SetMap, columns: SetMap, numbers: Sequence[NDArray[np.integer]]
) -> NDArray[np.int32]:
    """The nonzero of each entry by row_of, column_of, row_ptr and columns; -1 for none."""
    place = np.empty((rows.size, rows.arity * columns.arity), np.int32)
    given = tuple(map(read_only, numbers))
    in_pieces(_fill_places, rows.size, given, rows.table, columns.table, place)
    return read_only(place)


@kernel
def _visit_entries(
    offset: NDArray[np.int64],
    elements: NDArray[np.int32],
    rows: NDArray[np.int32],
    row_of: NDArray[np.int32],
    column_of: NDArray[np.int32],
    end: NDArray[np.int64],
    columns: NDArray[np.int32],
) -> None:
    """Put each column at ``end`` of the rows that it meets; without room, only move the ends."""
    filling = columns.size > 0
    seen = np.full(end.size, -1, np.int32)
    for point in range(column_of.size):
        c = column_of[point]
        if c < 0:
            continue
        for q in range(offset[point], offset[point + 1]):
            for i in range(rows.shape[1]):
                r = row_of[rows[elements[q], i]]
                if r >= 0 and seen[r] != c:
                    seen[r] = c
                    if filling:
                        columns[end[r]] = c
                    end[r] += 1


@kernel
def _fill_places(
    numbers: tuple, rows: Int32s, columns: Int32s, place: Int32s, begin: int, end: int
) -> None:
    row_of, column_of, row_ptr, nonzeros = numbers
    for e in range(begin, end):
        for i in range(rows.shape[1]):
            r = row_of[rows[e, i]]
            for j in range(columns.shape[1]):
                c = column_of[columns[e, j]]
                k = i * columns.shape[1] + j
                if r < 0 or c < 0:
                    place[e, k] = -1
                else:
                    place[e, k] = first_not_below(nonzeros, row_ptr[r], row_ptr[r + 1], c)


def input_maps(plan: PlanContent, loop_plan: LoopPlan) -> dict[str, SetMap]:
    """The maps of a loop in the numbering of the input mesh."""
    found = {}
    for name in loop_plan.loop.maps:
        m = loop_plan.maps[name]
        rows, points = plan.ordering[m.from_set], plan.ordering[m.to_set]
        table = points.new_to_old[m.table[rows.old_to_new]]
        found[name] = SetMap(name, m.from_set, m.to_set, table)
    return found


def input_reach(plan: PlanContent, loop_plan: LoopPlan) -> tuple[dict[str, SetMap], dict[str, int]]:
    """The maps of a loop and the sizes of sets, with its places in matrices, in that numbering."""
    matrices = {name: _in_input(plan, m) for name, m in loop_plan.matrices.items()}
    maps = input_maps(plan, loop_plan)
    return with_places(loop_plan.loop, maps, loop_plan.sizes, matrices)


def _in_input(plan: PlanContent, matrix: MatrixPlan) -> MatrixPlan:
    """The matrix as it would be without the order of the plan. Linear in the entries."""
    maps = {}
    for loop in matrix.place:
        own = input_maps(plan, plan[loop])
        (arg,) = (a for a in plan[loop].loop.matrices if a.name == matrix.name)
        maps[loop] = own[str(arg.map)], own[str(arg.columns)]
    row_of = numbered(plan.ordering[matrix.row_set].restore(matrix.row_of >= 0))
    column_of = row_of
    if matrix.column_of is not matrix.row_of:
        column_of = numbered(plan.ordering[matrix.column_set].restore(matrix.column_of >= 0))
    sets = matrix.row_set, matrix.column_set
    return pattern_and_places(matrix.name, sets, maps, row_of, column_of)
