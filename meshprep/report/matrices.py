"""The matrices of a plan: rows, nonzeros, and the bytes of each store, as records and tables."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.matrices import MatrixPlan
from meshprep_runtime.types.maps import rows_of_entries

from ..metrics.product_traffic import store_bytes
from .table import Table, table_of


def matrix_record(plan: Plan, matrix: MatrixPlan) -> dict[str, Any]:
    """What a matrix is, as JSON values. O(nonzeros)."""
    rows, columns = matrix.shape
    before, after = (
        None if rows != columns else int(abs(r - c).max(initial=0))
        for r, c in (input_nonzeros(plan, matrix), nonzeros(matrix))
    )
    return {
        "matrix": matrix.name,
        "on": matrix.row_set,
        "rows": rows,
        "columns": columns,
        "constrained": matrix.row_of.size - rows,
        "nonzeros": matrix.columns.size,
        "longest row": int(np.diff(matrix.row_ptr).max(initial=0)),
        "bandwidth, input order": before,
        "bandwidth": after,
        "loops": ", ".join(matrix.place),
    }


def store_records(plan: Plan, matrix: MatrixPlan) -> list[dict[str, Any]]:
    """What a matrix takes in each store, as JSON values. O(map entries)."""
    loops = [plan[name] for name in matrix.place]
    dtype = next(a.dtype for a in loops[0].loop.matrices if a.name == matrix.name)
    return [
        {"matrix": matrix.name, "store": one.store, "dtype": dtype, "bytes": one.stored}
        | {"bytes of assembly": one.assembly, "bytes of a product": one.product}
        for one in store_bytes(matrix, np.dtype(dtype).itemsize, loops)
    ]


def matrix_tables(names: Sequence[str], plans: Sequence[Plan]) -> list[Table]:
    """Tables of the matrices of all plans, and of their stores; none where no plan has one."""
    found = (
        ("matrices", _records(names, plans, lambda plan, m: [matrix_record(plan, m)])),
        ("stores (bytes are predicted)", _records(names, plans, store_records)),
    )
    return [table_of(title, records) for title, records in found if records]


def _records(
    names: Sequence[str],
    plans: Sequence[Plan],
    of: Callable[[Plan, MatrixPlan], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    return [
        ({"plan": name} if len(plans) > 1 else {}) | record
        for name, plan in zip(names, plans, strict=True)
        for matrix in plan.matrices.values()
        for record in of(plan, matrix)
    ]


def nonzeros(matrix: MatrixPlan) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Row and column of each nonzero in the order of the plan."""
    return rows_of_entries(matrix.row_ptr), matrix.columns


def input_nonzeros(
    plan: Plan, matrix: MatrixPlan
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Row and column of each nonzero in the numbering of the input mesh."""
    rows, columns = nonzeros(matrix)
    row = _input_numbers(plan, matrix.row_set, matrix.row_of)
    column = _input_numbers(plan, matrix.column_set, matrix.column_of)
    return row[rows], column[columns]


def _input_numbers(plan: Plan, of: str, numbers: NDArray[np.int32]) -> NDArray[np.integer]:
    """What number each row, or column, has without the order of the plan."""
    free, order = numbers >= 0, plan.ordering[of]
    return (np.cumsum(order.restore(free)) - 1)[order.new_to_old[free]]
