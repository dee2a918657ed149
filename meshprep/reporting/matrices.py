"""The matrices of a plan: rows, nonzeros, and the bytes of each store."""

from collections.abc import Sequence
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
    # Only square matrices have a diagonal to be near.
    bandwidth_before = None
    bandwidth_after = None
    if rows == columns:
        bandwidth_before = _bandwidth_of(*input_nonzeros(plan, matrix))
        bandwidth_after = _bandwidth_of(*nonzeros(matrix))
    return {
        "matrix": matrix.name,
        "on": matrix.row_set,
        "rows": rows,
        "columns": columns,
        "constrained": matrix.row_of.size - rows,
        "nonzeros": matrix.columns.size,
        "longest row": int(np.diff(matrix.row_ptr).max(initial=0)),
        "bandwidth, input order": bandwidth_before,
        "bandwidth": bandwidth_after,
        "loops": ", ".join(matrix.place),
    }


def _bandwidth_of(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> int:
    """The largest distance of a nonzero from the diagonal."""
    return int(abs(rows - columns).max(initial=0))


def store_records(plan: Plan, matrix: MatrixPlan) -> list[dict[str, Any]]:
    """What a matrix takes in each store, as JSON values. O(map entries)."""
    loops = [plan[name] for name in matrix.place]
    dtype = next(a.dtype for a in loops[0].loop.matrices if a.name == matrix.name)
    return [
        {
            "matrix": matrix.name,
            "store": store.store,
            "dtype": dtype,
            "bytes": store.stored,
            "bytes of assembly": store.assembly,
            "bytes of a product": store.product,
        }
        for store in store_bytes(matrix, np.dtype(dtype).itemsize, loops)
    ]


def matrix_tables(names: Sequence[str], plans: Sequence[Plan]) -> list[Table]:
    """Tables of the matrices of all plans, and of their stores; none without matrices."""
    matrices: list[dict[str, Any]] = []
    stores: list[dict[str, Any]] = []
    for name, plan in zip(names, plans, strict=True):
        # several plans need names
        whose = {"plan": name} if len(plans) > 1 else {}
        for matrix in plan.matrices.values():
            matrices.append(whose | matrix_record(plan, matrix))
            stores += [whose | record for record in store_records(plan, matrix)]
    if not matrices:
        return []
    tables = [table_of("matrices", matrices)]
    if stores:
        tables.append(table_of("stores (bytes are predicted)", stores))
    return tables


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
    """The number in the input order of each row, or column, of a matrix.

    ``numbers`` are those of the dofs in the plan; fixed ones have -1, and no row.
    """
    # In the input, too, free dofs are numbered in their order.
    is_free = numbers >= 0
    order = plan.ordering[of]
    number_in_input = np.cumsum(order.restore(is_free)) - 1
    return number_in_input[order.new_to_old[is_free]]
