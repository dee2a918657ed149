"""Assembly into rows of one length, whose entries are summed or stand apart [R14 3.2.3].

A loop adds to places in the flat array of the values: entry ``k`` of row ``i`` is at
``k * rows + i``.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..plan import LoopPlan
from ..plan.matrices import MatrixPlan
from ..types.loops import Arg
from ..types.maps import INDEX_LIMIT, offsets_of, read_only, rows_of_entries
from .stores import Ellpack


def empty_ellpack(plan: LoopPlan, arg: Arg) -> tuple[Ellpack, LoopPlan]:
    """A matrix of zeros with an entry for each nonzero, and the loop that adds to it."""
    matrix = plan.matrices[arg.name]
    # Where each nonzero lies among the values; -1 stays -1.
    row = rows_of_entries(matrix.row_ptr)
    entry = np.arange(matrix.columns.size) - matrix.row_ptr[row]
    place_of_nonzero = np.append(entry * matrix.shape[0] + row, -1)
    places = place_of_nonzero[matrix.place[plan.loop.name]]
    width = int(np.diff(matrix.row_ptr).max(initial=0))
    empty = _zeros(matrix, arg, width, place_of_nonzero[:-1], matrix.columns)
    return empty, _with_places(plan, matrix, places, empty)


def empty_lazy_ellpack(plan: LoopPlan, arg: Arg) -> tuple[Ellpack, LoopPlan]:
    """The same with an entry for each entry of each element, so that nothing is summed."""
    matrix = plan.matrices[arg.name]
    places, width = lazy_places(plan, arg)
    columns = matrix.column_of[plan.maps[str(arg.columns)].table]
    n_local_rows = plan.maps[str(arg.map)].arity
    column_of_entry = np.tile(columns, n_local_rows).reshape(places.shape)
    has_place = places >= 0
    empty = _zeros(matrix, arg, width, places[has_place], column_of_entry[has_place])
    return empty, _with_places(plan, matrix, places, empty)


def lazy_places(plan: LoopPlan, arg: Arg) -> tuple[NDArray[np.int64], int]:
    """A place of its own for each entry of each element, and the length of the longest row.

    (elements, local rows * local columns), -1 where the row or column is constrained. The
    entries of a row stand in the order of the elements. O(n log n) for the n local rows of
    all elements.
    """
    matrix = plan.matrices[arg.name]
    rows = matrix.row_of[plan.maps[str(arg.map)].table]
    has_column = matrix.column_of[plan.maps[str(arg.columns)].table] >= 0
    # A local row takes as many entries of its row as its element has columns.
    n_columns = np.broadcast_to(has_column.sum(axis=1)[:, None], rows.shape).reshape(-1)
    row = rows.reshape(-1)
    order = np.argsort(row, kind="stable")
    begin_in_order = offsets_of(n_columns[order])[:-1]
    # The entries of a row begin where the first of its local rows begins.
    first_of_row = np.searchsorted(row[order], row)
    first_entry = np.empty(row.size, np.int64)
    first_entry[order] = begin_in_order
    first_entry -= begin_in_order[first_of_row]
    # Columns without a dof are skipped.
    entry_in_element = np.cumsum(has_column, axis=1) - 1
    entry = first_entry.reshape(rows.shape)[:, :, None] + entry_in_element[:, None, :]
    places: NDArray[np.int64] = entry * matrix.shape[0] + rows[:, :, None].astype(np.int64)
    places[~((rows >= 0)[:, :, None] & has_column[:, None, :])] = -1
    has_row = row >= 0
    lengths = np.bincount(row[has_row], n_columns[has_row], minlength=matrix.shape[0])
    n_elements, n_entries = matrix.place[plan.loop.name].shape
    return places.reshape(n_elements, n_entries), int(lengths.max(initial=0))


def _zeros(
    matrix: MatrixPlan,
    arg: Arg,
    width: int,
    places: NDArray[np.integer],
    columns_of_places: NDArray[np.int32],
) -> Ellpack:
    """Zeros in rows of ``width`` entries, with these columns at these places."""
    rows = matrix.shape[0]
    if width * rows > INDEX_LIMIT:
        raise MeshprepError(
            f"matrix '{matrix.name}' is past 2^31-1 values with padding: use store 'csr'"
        )
    columns = np.full(width * rows, -1, np.int32)
    columns[places] = columns_of_places
    return Ellpack(
        columns=read_only(columns.reshape(width, rows)),
        values=np.zeros((width, rows), arg.dtype),
        n_columns=matrix.shape[1],
    )


def _with_places(
    plan: LoopPlan, matrix: MatrixPlan, places: NDArray[np.integer], empty: Ellpack
) -> LoopPlan:
    """The loop that adds to other places of as many values as the matrix has."""
    stored = replace(
        matrix,
        columns=empty.columns.reshape(-1),
        place={plan.loop.name: read_only(places.astype(np.int32))},
    )
    return replace(plan, matrices={matrix.name: stored})
