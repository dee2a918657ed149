"""A fixed pattern of a sparse matrix, and the place of every contribution to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.matrix import BatchSums

from .inputs import as_numpy


class MatrixPlaces:
    """The result of :func:`places`: a CSR pattern, and sums into it.

    Parameters
    ----------
    row_ptr : (n_rows + 1,) array of int64
        The entries of row r are ``row_ptr[r]`` to ``row_ptr[r + 1] - 1``.
    columns : (nonzeros,) array of int32
        The column of each entry, ascending in each row.
    place : array of int32
        The entry to which each contribution goes, of the shape of the contributions; -1
        where the row or the column is negative.
    shape : (int, int)
        Rows and columns of the matrix.
    """

    def __init__(
        self,
        row_ptr: NDArray[np.int64],
        columns: NDArray[np.int32],
        place: NDArray[np.int32],
        shape: tuple[int, int],
    ) -> None:
        self.row_ptr = row_ptr
        self.columns = columns
        self.place = place
        self.shape = shape

    def __repr__(self) -> str:
        n_rows, n_columns = self.shape
        return (
            f"MatrixPlaces of {self.place.size:,} contributions in {self.columns.size:,} "
            f"nonzeros, {n_rows:,} x {n_columns:,}"
        )

    @cached_property
    def _sums(self) -> BatchSums:
        return BatchSums(self.place, int(self.columns.size))

    def sums(self, values: Any) -> Any:
        """Sum contributions into the entries of the pattern, without atomics.

        Parameters
        ----------
        values : array of NumPy or CuPy
            Of the shape of ``place``; whole numbers, floats or complex ones.

        Returns
        -------
        (nonzeros,) array
            Of the same library and dtype, summed in the order of the contributions: the
            same bits in every run, on a CPU and on a GPU. O(contributions).

        Raises
        ------
        MeshprepError
            For another number of values.
        """
        return self._sums(values)

    def matrix(self, values: Any) -> Any:
        """The matrix of SciPy with these contributions.

        Parameters
        ----------
        values : array of NumPy
            Of the shape of ``place``.

        Returns
        -------
        scipy.sparse.csr_array
            It shares the pattern's arrays.
        """
        from scipy.sparse import csr_array

        data = self.sums(values)
        return csr_array((data, self.columns, self.row_ptr), shape=self.shape)


def places(
    rows: Any,
    columns: Any = None,
    *,
    n_rows: int | None = None,
    n_columns: int | None = None,
) -> MatrixPlaces:
    """Find the pattern of a matrix that elements add to, and where each number goes.

    Parameters
    ----------
    rows : (n,) or (n, k) array of int
        The row of each contribution, or the rows of each element; a negative one is left
        out.
    columns : (n,) or (n, l) array of int, optional
        The column of each contribution, or the columns of each element, whose contributions
        are then (n, k, l): a block for each element. Without it the rows.
    n_rows, n_columns : int, optional
        The shape of the matrix; without it up to the largest number.

    Returns
    -------
    MatrixPlaces
        Its ``sums(values)`` gives the data of the pattern, ``matrix(values)`` a
        ``csr_array``.

    Raises
    ------
    MeshprepError
        For shapes and numbers that do not fit.

    Notes
    -----
    Found once for a mesh, used in every assembly. O(m log m) for m contributions.

    Examples
    --------
    >>> import numpy as np
    >>> import meshprep
    >>> bars = np.array([[0, 1], [1, 2]])
    >>> stiffness = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> pattern = meshprep.places(bars)
    >>> pattern.matrix(np.stack([stiffness, stiffness])).toarray().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    # Take a row of numbers for each element, or one number for each contribution.
    row = _rows_of_numbers(rows, "rows")
    column = row if columns is None else _rows_of_numbers(columns, "columns")
    if columns is None and row.ndim == 1:
        raise MeshprepError("give the column of each contribution, too")
    if row.ndim != column.ndim or len(row) != len(column):
        raise MeshprepError(
            f"rows have shape {row.shape}, columns {column.shape}: give as many"
        )
    n_rows = _size_of(row, n_rows, "rows")
    n_columns = _size_of(column, n_columns, "columns")
    if row.ndim == 2:
        # Every row of an element meets every column of it.
        shape = (len(row), row.shape[1], column.shape[1])
        row = np.broadcast_to(row[:, :, None], shape)
        column = np.broadcast_to(column[:, None, :], shape)

    # Number the pairs of a row and a column that occur.
    used = (row >= 0) & (column >= 0)
    pair = row[used].astype(np.int64) * max(n_columns, 1) + column[used]
    nonzeros, entry = np.unique(pair, return_inverse=True)
    if nonzeros.size > np.iinfo(np.int32).max:
        raise MeshprepError(f"the matrix has {nonzeros.size:,} nonzeros, past 2^31-1")
    entry_of_pair = np.full(row.shape, -1, np.int32)
    entry_of_pair[used] = entry.reshape(-1)
    # Pairs are sorted by row, then column: rows begin where the row number changes.
    of_row = nonzeros // max(n_columns, 1)
    row_ptr = np.searchsorted(of_row, np.arange(n_rows + 1)).astype(np.int64)
    return MatrixPlaces(
        row_ptr=row_ptr,
        columns=(nonzeros % max(n_columns, 1)).astype(np.int32),
        place=entry_of_pair,
        shape=(n_rows, n_columns),
    )


def _rows_of_numbers(given: Any, name: str) -> NDArray[Any]:
    """Whole numbers, one or a row of them for each contribution or element."""
    numbers = as_numpy(given)
    if numbers.ndim not in (1, 2) or (numbers.dtype.kind not in "iu" and numbers.size):
        raise MeshprepError(
            f"{name} have shape {numbers.shape} and dtype {numbers.dtype}, must be whole "
            "numbers, (n,) or (n, k)"
        )
    return numbers.astype(np.int64)


def _size_of(numbers: NDArray[Any], size: int | None, name: str) -> int:
    """The number of rows or columns; refuses numbers that it does not hold."""
    largest = int(numbers.max(initial=-1))
    if size is None:
        return largest + 1
    if largest >= size:
        raise MeshprepError(f"{name} name {largest}, but there are {size} {name}")
    return size
