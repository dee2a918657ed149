"""Matrices that loops add to: pattern and places, in the plan's order and the input's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

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


class MatrixNumbers(NamedTuple):
    """The rows and columns of the points of a matrix, -1 for none, and its pattern."""

    row_of: NDArray[np.int32]
    column_of: NDArray[np.int32]
    row_ptr: NDArray[np.int64]
    columns: NDArray[np.int32]


def build_matrices(
    numbering: Numbering, specs: Sequence[LoopSpec]
) -> dict[str, MatrixPlan]:
    """The pattern of each matrix, from all loops that add to it, and their places in it.

    ``numbering`` has the final order of every set. Raises MeshprepError where loops
    disagree about the sets of a matrix, and for groups that the mesh has not. The pattern
    takes time linear in the entries of all elements' matrices, a place logarithmic in the
    length of its row.
    """
    users: dict[str, list[tuple[LoopSpec, Arg]]] = {}
    for spec in specs:
        for arg in spec.loop.matrices:
            users.setdefault(arg.name, []).append((spec, arg))
    return {
        name: _build_matrix(numbering, name, loops_and_args)
        for name, loops_and_args in users.items()
    }


def _build_matrix(
    numbering: Numbering, name: str, users: Sequence[tuple[LoopSpec, Arg]]
) -> MatrixPlan:
    """The pattern of one matrix, and the places of the loops that add to it."""
    # The maps of each loop to the rows and to the columns; all lead to the same two sets.
    maps = []
    for _, arg in users:
        to_rows = numbering.map(str(arg.map))
        to_columns = numbering.map(str(arg.columns))
        maps.append((to_rows, to_columns))
    sets = {(rows.to_set, columns.to_set) for rows, columns in maps}
    dtypes = {arg.dtype for _, arg in users}
    if len(sets) > 1 or len(dtypes) > 1:
        loops = ", ".join(spec.loop.name for spec, _ in users)
        raise MeshprepError(
            f"matrix '{name}' has other sets or another dtype in one of the loops {loops}: "
            "they must agree"
        )

    # Number rows and columns. A square matrix leaves out fixed dofs in both; else every
    # point of the column set has a column.
    row_set, column_set = sets.pop()
    row_of = _row_of_points(numbering, name, users)
    if row_set == column_set:
        column_of = row_of
    else:
        n_columns = numbering.mesh.size(column_set)
        column_of = read_only(np.arange(n_columns, dtype=np.int32))
    names = [spec.loop.name for spec, _ in users]
    return pattern_and_places(
        name=name,
        sets=(row_set, column_set),
        maps=dict(zip(names, maps, strict=True)),
        row_of=row_of,
        column_of=column_of,
    )


def pattern_and_places(
    name: str,
    sets: tuple[str, str],
    maps: Mapping[str, tuple[SetMap, SetMap]],
    row_of: NDArray[np.int32],
    column_of: NDArray[np.int32],
) -> MatrixPlan:
    """The matrix of some loops, from their maps and the numbers of rows and columns."""
    all_elements = _all_elements([*maps.values()], row_of, column_of)
    row_ptr, columns = pattern(*all_elements)
    numbers = (row_of, column_of, row_ptr, columns)
    place = {loop: places(*pair, numbers) for loop, pair in maps.items()}
    row_set, column_set = sets
    return MatrixPlan(name, row_set, column_set, *numbers, place)


def _row_of_points(
    numbering: Numbering, name: str, users: Sequence[tuple[LoopSpec, Arg]]
) -> NDArray[np.int32]:
    """The row of each point in the final order; -1 for those that some loop leaves out."""
    mesh = numbering.mesh
    _, first_arg = users[0]
    points = mesh.map(str(first_arg.map)).to_set
    # A point that any loop holds fixed has no row: all loops add to one matrix.
    is_fixed = np.zeros(mesh.size(points), np.bool_)
    for spec, arg in users:
        if groups := spec.fixed.get(name, ()):
            is_fixed |= constrained_points(mesh, str(arg.map), groups)
    is_free = ~numbering.ordering(points).apply(is_fixed)
    return number_free_points(is_free)


def number_free_points(free: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers of the points that are free, in their order; -1 for the others."""
    number_among_free = np.cumsum(free) - 1
    return read_only(np.where(free, number_among_free, -1).astype(np.int32))


def _all_elements(
    maps: Sequence[tuple[SetMap, SetMap]],
    row_of: NDArray[np.int32],
    column_of: NDArray[np.int32],
) -> tuple[NDArray[np.int32], ...]:
    """The elements of all loops as if they were of one loop.

    Gives the tables to rows and to columns, one loop below the other, and the numbers of
    the points. Short rows of a table are filled up with one point more, whose number is -1.
    """
    if len(maps) == 1:
        to_rows, to_columns = maps[0]
        return to_rows.table, to_columns.table, row_of, column_of
    rows = _stacked_tables([pair[0].table for pair in maps], row_of.size)
    columns = _stacked_tables([pair[1].table for pair in maps], column_of.size)
    none = np.int32(-1)
    return rows, columns, np.append(row_of, none), np.append(column_of, none)


def _stacked_tables(tables: Sequence[Int32s], filling: int) -> Int32s:
    """Tables one below the other, short rows filled up with a number."""
    width = max(table.shape[1] for table in tables)
    n_rows = sum(len(table) for table in tables)
    stacked = np.full((n_rows, width), filling, np.int32)
    begin = 0
    for table in tables:
        end = begin + len(table)
        stacked[begin:end, : table.shape[1]] = table
        begin = end
    return stacked


def pattern(
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    row_of: NDArray[np.int32],
    column_of: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The nonzeros of a matrix [R14 3.2], row after row, ascending in each.

    Linear in the entries of the elements' matrices.

    Columns are visited in ascending order, and each is appended to the rows that it meets,
    so that nothing is sorted. ``row_of`` and ``column_of`` are -1 for points without a
    number; the others count up from 0. Gives row_ptr (rows + 1,) and the columns
    (nonzeros,).
    """
    # List the elements that touch each column.
    touching = transpose(columns, column_of.size)
    offset = read_only(touching.offset)
    elements = read_only(touching.index)
    entries = (offset, elements, read_only(rows), read_only(row_of), read_only(column_of))

    # Count the nonzeros of each row, then write them.
    n_rows = int((row_of >= 0).sum())
    length = np.zeros(n_rows, np.int64)
    no_room = np.empty(0, np.int32)
    _visit_entries(*entries, length, no_room)
    row_ptr = offsets_of(length)
    if row_ptr[-1] > INDEX_LIMIT:
        raise MeshprepError(
            f"a matrix has {row_ptr[-1]} nonzeros, past 2^31-1: split the mesh"
        )
    nonzeros = np.empty(int(row_ptr[-1]), np.int32)
    next_free = row_ptr[:-1].copy()
    _visit_entries(*entries, next_free, nonzeros)
    return read_only(row_ptr), read_only(nonzeros)


def places(
    rows: SetMap, columns: SetMap, numbers: Sequence[NDArray[np.integer]]
) -> NDArray[np.int32]:
    """The nonzero of each entry by row_of, column_of, row_ptr and columns; -1 for none."""
    entry_of_pair = np.empty((rows.size, rows.arity * columns.arity), np.int32)
    numbers_and_pattern = MatrixNumbers(*map(read_only, numbers))
    in_pieces(
        _fill_places,
        rows.size,
        numbers_and_pattern,
        rows.table,
        columns.table,
        entry_of_pair,
    )
    return read_only(entry_of_pair)


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
    """Append each column to the rows that it meets, at their ``end``, which moves on.

    Without room in ``columns`` only the ends move: they count.
    """
    filling = columns.size > 0
    # The last column that each row met: elements that share both points meet it again.
    last_column = np.full(end.size, -1, np.int32)
    for point in range(column_of.size):
        c = column_of[point]
        if c < 0:
            continue
        for q in range(offset[point], offset[point + 1]):
            for i in range(rows.shape[1]):
                r = row_of[rows[elements[q], i]]
                if r >= 0 and last_column[r] != c:
                    last_column[r] = c
                    if filling:
                        columns[end[r]] = c
                    end[r] += 1


@kernel
def _fill_places(
    numbers: MatrixNumbers,
    rows: Int32s,
    columns: Int32s,
    place: Int32s,
    begin: int,
    end: int,
) -> None:
    """Write the places of the elements ``begin`` to ``end - 1``."""
    row_ptr = numbers.row_ptr
    for e in range(begin, end):
        for i in range(rows.shape[1]):
            # Rows and columns that are constrained are not in the matrix.
            r = numbers.row_of[rows[e, i]]
            for j in range(columns.shape[1]):
                c = numbers.column_of[columns[e, j]]
                k = i * columns.shape[1] + j
                if r < 0 or c < 0:
                    place[e, k] = -1
                else:
                    # Columns of a row ascend: search for this one.
                    place[e, k] = first_not_below(
                        values=numbers.columns,
                        begin=row_ptr[r],
                        end=row_ptr[r + 1],
                        value=c,
                    )


def input_maps(plan: PlanContent, loop_plan: LoopPlan) -> dict[str, SetMap]:
    """The maps of a loop in the numbering of the input mesh."""
    maps = {}
    for name in loop_plan.loop.maps:
        in_plan = loop_plan.maps[name]
        elements = plan.ordering[in_plan.from_set]
        points = plan.ordering[in_plan.to_set]
        rows_of_input = in_plan.table[elements.old_to_new]
        maps[name] = replace(in_plan, table=points.new_to_old[rows_of_input])
    return maps


def input_reach(
    plan: PlanContent, loop_plan: LoopPlan
) -> tuple[dict[str, SetMap], dict[str, int]]:
    """The maps of a loop in the numbering of the input, and the sizes of sets.

    The loop's places in matrices are among them, as maps into their nonzeros.
    """
    matrices = {name: _in_input(plan, m) for name, m in loop_plan.matrices.items()}
    maps = input_maps(plan, loop_plan)
    return with_places(
        loop=loop_plan.loop,
        maps=maps,
        sizes=loop_plan.sizes,
        matrices=matrices,
    )


def _in_input(plan: PlanContent, matrix: MatrixPlan) -> MatrixPlan:
    """The matrix as it would be without the order of the plan. Linear in the entries."""
    # The maps to rows and columns of the loops that add to it.
    maps = {}
    for loop in matrix.place:
        maps_of_loop = input_maps(plan, plan[loop])
        (arg,) = (a for a in plan[loop].loop.matrices if a.name == matrix.name)
        to_rows = maps_of_loop[str(arg.map)]
        to_columns = maps_of_loop[str(arg.columns)]
        maps[loop] = to_rows, to_columns

    # Rows and columns are numbered in the order of the input.
    has_row = plan.ordering[matrix.row_set].restore(matrix.row_of >= 0)
    row_of = number_free_points(has_row)
    column_of = row_of
    if matrix.column_of is not matrix.row_of:
        has_column = plan.ordering[matrix.column_set].restore(matrix.column_of >= 0)
        column_of = number_free_points(has_column)
    return pattern_and_places(
        name=matrix.name,
        sets=(matrix.row_set, matrix.column_set),
        maps=maps,
        row_of=row_of,
        column_of=column_of,
    )
