"""Products on ranks: rows without copies are multiplied while messages are under way."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.schedule import Ranges
from ..maps import distinct
from ..program.distributed import DistributedPlan
from .code import MatrixCode
from .part_columns import ColumnValues, columns_of
from .pieces import PIECE
from .products import check_matrix, check_out, check_threads, csr_code
from .stores import CsrMatrix

Vector = NDArray[Any]
# Rows without copies run in at most so many steps, each of so many ranges at least; messages are
# looked after in between.
MOST_STEPS, LEAST_RANGES = 4, 8


class PartProduct:
    """``y = A x`` on ranks: each multiplies its rows; all ranks make it, and call it, together.

    While messages bring the copies of x, the rows run that need none. The bits are those of a
    :class:`Product` of the rank's rows.

    Parameters
    ----------
    matrix : CsrMatrix
        Of a :class:`PartAssembly`. Its arrays are not copied: values may change between calls, the
        pattern must not.
    plan : DistributedPlan
    set_name : str
        The set of the rows and columns.
    threads : int, optional
        As of a :class:`Product`.
    free : (columns,) integers, optional
        ``PartAssembly.free``, where fixed dofs have no row.

    Raises
    ------
    MeshprepError
        For a matrix of another shape, and as of a :class:`Product`.
    """

    def __init__(
        self,
        matrix: CsrMatrix,
        plan: DistributedPlan,
        set_name: str,
        threads: int | None = None,
        *,
        free: NDArray[np.integer] | None = None,
    ) -> None:
        check_matrix(matrix)
        check_threads(threads)
        columns = columns_of(matrix, plan, set_name, free)
        needs_copies = _rows_reaching(matrix, columns.owned)
        copies = distinct(matrix.columns[matrix.columns >= columns.owned])
        self._x = ColumnValues(plan, columns, copies, matrix.values.dtype)
        self._without_copies = csr_code(matrix, PIECE, ~needs_copies)
        self._with_copies = csr_code(matrix, PIECE, needs_copies)
        self._steps = _steps(self._without_copies)
        self.matrix = matrix
        self.threads = threads

    def __matmul__(self, x: Vector) -> Vector:
        return self(x)

    def __call__(self, x: Vector, out: Vector | None = None) -> Vector:
        """Multiply; all ranks together.

        Parameters
        ----------
        x : (rows,) array
        out : (rows,) array, optional
            Where the result goes.

        Returns
        -------
        (rows,) array
        """
        rows, dtype = self.matrix.shape[0], self.matrix.values.dtype
        y = np.empty(rows, dtype) if out is None else out
        check_out(y, rows, dtype)
        transfer = self._x.start(x)
        for ranges in self._steps:
            self._without_copies.run(self._x.array, y, self.threads, ranges)
            transfer.test()
        transfer.finish()
        self._with_copies.run(self._x.array, y, self.threads)
        return y


def _rows_reaching(matrix: CsrMatrix, owned: int) -> NDArray[np.bool_]:
    """The rows with a column of another rank."""
    found = np.zeros(matrix.shape[0], np.bool_)
    nonzeros = np.flatnonzero(matrix.columns >= owned)
    found[np.searchsorted(matrix.row_ptr, nonzeros, side="right") - 1] = True
    return found


def _steps(code: MatrixCode) -> list[Ranges]:
    ranges = code.schedule.range_order.size
    count = max(min(MOST_STEPS, ranges // LEAST_RANGES), 1)
    cuts = np.linspace(0, ranges, count + 1).astype(int).tolist()
    return [code.schedule.between(first, last) for first, last in pairwise(cuts)]
