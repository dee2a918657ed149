"""The pattern of a sparse matrix, and where loops add to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..maps import read_only

if TYPE_CHECKING:
    from ..matrix.stores import CsrMatrix


@dataclass(frozen=True, eq=False)
class MatrixPlan:
    """All that assembling a matrix needs but the values [R14 3.2].

    Parameters
    ----------
    name : str
    row_set, column_set : str
        The sets whose elements have rows and columns.
    row_of, column_of : (n(set),) int32
        Row and column of each element, ascending; -1 for a constrained one, which has none. One
        array where the sets are one.
    row_ptr : (rows + 1,) int64
        The nonzeros of row ``i`` are ``row_ptr[i]`` to ``row_ptr[i + 1] - 1``.
    columns : (nonzeros,) int32
        Ascending in each row.
    place : mapping of loop name to (n_from, local rows * local columns) int32
        The nonzero to which each entry of an element's matrix, row after row, is added; -1 where
        its row or column is constrained.
    """

    name: str
    row_set: str
    column_set: str
    row_of: NDArray[np.int32]
    column_of: NDArray[np.int32]
    row_ptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    place: Mapping[str, NDArray[np.int32]]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.row_ptr.size - 1, int(np.count_nonzero(self.column_of >= 0))

    def csr(self, dtype: DTypeLike = "f8") -> CsrMatrix:
        """A matrix of this pattern with the value 0 everywhere.

        Parameters
        ----------
        dtype : dtype

        Returns
        -------
        CsrMatrix
            A loop adds to its ``values``; the indices are shared.
        """
        from ..matrix.stores import CsrMatrix

        # of the type of the columns, as scipy wants it: places are int32, so all fit
        row_ptr = read_only(self.row_ptr.astype(np.int32))
        return CsrMatrix(row_ptr, self.columns, np.zeros(self.columns.size, dtype), self.shape[1])
