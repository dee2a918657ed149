"""The stores of a sparse matrix: CSR, ELLPACK, or the matrices of the elements [R14 3.2].

A store has arrays only. Their shapes are checked when it is made, in O(1); ``check`` checks
the indices, before compiled code gets them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, check_integer, import_package
from ..plan.tuned import ProductThreads
from ..types.maps import as_indices, offsets_of, on_device, rows_of_entries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# The types of values that products take.
DTYPES = ("f4", "f8", "i4", "i8")


class MatrixStore:
    """The base of all stores.

    The values lie on the host or on a GPU, the pattern on the host.
    """

    values: Any

    def __repr__(self) -> str:
        rows, columns = self.shape
        values = f"{self.values.size:,} values of {self.values.dtype}"
        return f"{type(self).__name__}({rows:,} x {columns:,}, {values})"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        raise NotImplementedError

    @property
    def on_gpu(self) -> bool:
        """True where the values are an array of a GPU."""
        return on_device(self.values)

    @property
    def bytes(self) -> int:
        """Bytes of all arrays, padding included."""
        return sum(a.nbytes for a in vars(self).values() if getattr(a, "ndim", 0))

    def to_host(self) -> Self:
        """The matrix with its values in a NumPy array.

        Returns
        -------
        CsrMatrix, Ellpack or LocalMatrices
        """
        if self.on_gpu:
            return self.with_values(self.values.get())
        return self

    def with_values(self, values: Any) -> Self:
        """The same pattern with other values.

        Parameters
        ----------
        values : array
            Of the same shape, of NumPy or of a GPU; kept, not copied.

        Returns
        -------
        CsrMatrix, Ellpack or LocalMatrices
        """
        matrix: Self = replace(cast(Any, self), values=values)
        return matrix


@dataclass(frozen=True, eq=False, repr=False)
class CsrMatrix(MatrixStore):
    """A matrix in compressed rows, as in scipy and PETSc.

    Parameters
    ----------
    row_ptr : (rows + 1,) int32 or int64
        Row ``i`` is ``row_ptr[i]`` to ``row_ptr[i + 1] - 1``; int64 where there are more
        than 2^31-1 values.
    columns : (nonzeros,) int32
        Ascending in each row.
    values : (nonzeros,) array
    n_columns : int or None
        None for a square matrix.
    tuned : list of ProductThreads
        The threads that products with the matrix have found on GPUs. A matrix with other
        values and the plan that it comes from share the list.
    """

    row_ptr: NDArray[np.int32] | NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[Any]
    n_columns: int | None = None
    tuned: list[ProductThreads] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check_index_array(
            where="CsrMatrix.row_ptr", values=self.row_ptr, dtypes=("i4", "i8"), ndim=1
        )
        _check_index_array(
            where="CsrMatrix.columns", values=self.columns, dtypes=("i4",), ndim=1
        )
        if self.n_columns is not None:
            check_integer("CsrMatrix.n_columns", self.n_columns, 0)
        if self.row_ptr.size < 1 or self.values.shape != self.columns.shape:
            raise MeshprepError(
                f"CsrMatrix: row_ptr has {self.row_ptr.size} entries, columns "
                f"{self.columns.size} and values the shape {self.values.shape}: give a "
                "value a column, and a row_ptr"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows = self.row_ptr.size - 1
        return rows, rows if self.n_columns is None else self.n_columns

    def check(self) -> None:
        """Raise MeshprepError unless offsets rise and columns are valid. O(nonzeros)."""
        ends = self.row_ptr[0], self.row_ptr[-1]
        if ends != (0, self.columns.size) or (self.row_ptr[1:] < self.row_ptr[:-1]).any():
            raise MeshprepError(
                f"CsrMatrix.row_ptr must rise from 0 to {self.columns.size}"
            )
        _check_within(
            where="CsrMatrix.columns", values=self.columns, least=0, end=self.shape[1]
        )

    def to_petsc(self) -> Any:
        """The matrix for PETSc, as a copy on this process alone.

        Returns
        -------
        petsc4py.PETSc.Mat
            Of type AIJ, assembled.

        Raises
        ------
        MissingPackageError
            Where petsc4py is not installed.
        MeshprepError
            For more nonzeros than this PETSc counts.
        """
        petsc = import_package(
            "petsc4py.PETSc", "matrices of PETSc need petsc4py: pip install petsc4py"
        )
        index = np.dtype(petsc.IntType)
        if max(self.columns.size, *self.shape) > np.iinfo(index).max:
            raise MeshprepError(
                f"a matrix of {self.columns.size} nonzeros is too large for this PETSc, "
                f"whose indices are {index}: use one that was built with 64-bit indices"
            )
        # PETSc takes indices of its own size.
        csr = (
            self.row_ptr.astype(index, copy=False),
            self.columns.astype(index, copy=False),
            self.to_host().values,
        )
        matrix = petsc.Mat().createAIJ(size=self.shape, csr=csr, comm=petsc.COMM_SELF)
        matrix.assemble()
        return matrix

    @classmethod
    def from_scipy(cls, matrix: Any) -> CsrMatrix:
        """Take a matrix of scipy, on the same memory where its form allows.

        That is the case for CSR with ascending columns in 32 bits.

        Parameters
        ----------
        matrix : scipy.sparse array or matrix
            Of any format. Entries that stand twice are added up.

        Returns
        -------
        CsrMatrix

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        MeshprepError
            For more than 2^31-1 columns.
        """
        csr = _sparse().csr_array(matrix)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        columns = as_indices(csr.indices, "CsrMatrix.columns")
        return cls(csr.indptr, columns, csr.data, csr.shape[1])

    def to_scipy(self) -> csr_array:
        """The matrix for scipy, on the same memory where the values lie on the host.

        Returns
        -------
        scipy.sparse.csr_array

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        """
        arrays = (self.to_host().values, self.columns, self.row_ptr)
        matrix: csr_array = _sparse().csr_array(arrays, shape=self.shape)
        return matrix


@dataclass(frozen=True, eq=False, repr=False)
class Ellpack(MatrixStore):
    """Rows of one length, entry by entry, so that neighbouring rows are read together.

    Parameters
    ----------
    columns : (longest row, rows) int32
        Entry ``k`` of row ``i`` is ``columns[k, i]``; -1 behind the last entry of a row.
    values : (longest row, rows) array
        0 where the column is -1.
    n_columns : int or None
        None for a square matrix.

    Notes
    -----
    A row may have several entries of one column, which count together: so has what an
    assembly into ``"lazy-ellpack"`` makes.
    """

    columns: NDArray[np.int32]
    values: NDArray[Any]
    n_columns: int | None = None

    def __post_init__(self) -> None:
        _check_index_array(
            where="Ellpack.columns", values=self.columns, dtypes=("i4",), ndim=2
        )
        if self.n_columns is not None:
            check_integer("Ellpack.n_columns", self.n_columns, 0)
        if self.values.shape != self.columns.shape:
            raise MeshprepError(
                f"Ellpack: values has shape {self.values.shape}, must be "
                f"{self.columns.shape}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows = self.columns.shape[1]
        return rows, rows if self.n_columns is None else self.n_columns

    def check(self) -> None:
        """Raise MeshprepError unless columns are valid, and padding last and zero.

        O(entries).
        """
        _check_within(
            where="Ellpack.columns", values=self.columns, least=-1, end=self.shape[1]
        )
        padding = self.columns < 0
        is_filled = not self.on_gpu and self.values[padding].any()
        # On a GPU a row ends where its padding begins.
        if is_filled or (padding[:-1] & ~padding[1:]).any():
            raise MeshprepError(
                "Ellpack: padding must stand last in a row and have the value 0"
            )

    @classmethod
    def from_csr(cls, matrix: CsrMatrix) -> Ellpack:
        """Copy a matrix in compressed rows.

        Parameters
        ----------
        matrix : CsrMatrix

        Returns
        -------
        Ellpack
            On the host.

        Notes
        -----
        O(rows x longest row), in time and memory.
        """
        rows = matrix.shape[0]
        row = rows_of_entries(matrix.row_ptr)
        entry = np.arange(matrix.columns.size) - matrix.row_ptr[row]
        width = int(np.diff(matrix.row_ptr).max(initial=0))
        columns = np.full((width, rows), -1, np.int32)
        values = np.zeros((width, rows), matrix.values.dtype)
        columns[entry, row] = matrix.columns
        values[entry, row] = matrix.to_host().values
        return cls(columns, values, matrix.shape[1])

    @classmethod
    def from_scipy(cls, matrix: Any) -> Ellpack:
        """Copy a matrix of scipy.

        Parameters
        ----------
        matrix : scipy.sparse array or matrix
            Of any format. Entries that stand twice are added up.

        Returns
        -------
        Ellpack

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        MeshprepError
            For more than 2^31-1 columns.
        """
        return cls.from_csr(CsrMatrix.from_scipy(matrix))

    def to_scipy(self) -> csr_array:
        """The matrix for scipy, as a copy with sorted rows; equal entries are added up.

        Returns
        -------
        scipy.sparse.csr_array

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        """
        entry, row = np.nonzero(self.columns >= 0)
        values = self.to_host().values[entry, row]
        entries = values, (row, self.columns[entry, row])
        matrix: csr_array = _sparse().coo_array(entries, shape=self.shape).tocsr()
        return matrix


@dataclass(frozen=True, eq=False, repr=False)
class LocalMatrices(MatrixStore):
    """The matrices of the elements, not added up: the matrix is the sum of them all (LMA).

    Parameters
    ----------
    values : (elements, n * n) array, or (elements, n * (n + 1) / 2) where ``symmetric``
        Row after row of each element's matrix; of a symmetric one the entries from the
        diagonal on: (0, 0), (0, 1), ..., (1, 1), ...
    dofs : (elements, n) int32
        Row of the matrix of each local row and column, -1 for those without one.
    symmetric : bool
    n_rows : int
        Rows, and columns, of the matrix.
    """

    values: NDArray[Any]
    dofs: NDArray[np.int32]
    symmetric: bool
    n_rows: int

    def __post_init__(self) -> None:
        _check_index_array(
            where="LocalMatrices.dofs", values=self.dofs, dtypes=("i4",), ndim=2
        )
        elements, n = self.dofs.shape
        shape = (elements, n * (n + 1) // 2 if self.symmetric else n * n)
        if self.values.shape != shape:
            raise MeshprepError(
                f"LocalMatrices: values has shape {self.values.shape}, must be {shape} "
                f"for {elements} elements of {n} dofs"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.n_rows, self.n_rows

    def check(self) -> None:
        """Raise MeshprepError unless every dof is -1 or a row. O(elements x n)."""
        _check_within(
            where="LocalMatrices.dofs", values=self.dofs, least=-1, end=self.n_rows
        )

    def half(self, tolerance: float = 1e-12) -> LocalMatrices:
        """The same matrices, stored from their diagonals on.

        Parameters
        ----------
        tolerance : float
            The largest difference of entries across the diagonal, over the largest value.

        Returns
        -------
        LocalMatrices
            With ``symmetric``, on the host; the object itself where it is symmetric.

        Raises
        ------
        MeshprepError
            Where a matrix is not symmetric.
        """
        if self.symmetric:
            return self
        n = self.dofs.shape[1]
        values = self.to_host().values
        # Compare each entry above the diagonal with its mirror image.
        i, j = np.triu_indices(n)
        upper = values[:, i * n + j]
        lower = values[:, j * n + i]
        # Values are rounded: compare with the largest of all.
        difference = np.abs(upper - lower).max(axis=1, initial=0)
        if (difference > tolerance * np.abs(values).max(initial=0)).any():
            raise MeshprepError(
                f"the matrix of element {int(difference.argmax())} is not symmetric"
            )
        return LocalMatrices(
            values=np.ascontiguousarray(upper),
            dofs=self.dofs,
            symmetric=True,
            n_rows=self.n_rows,
        )

    def to_scipy(self) -> csr_array:
        """The matrix for scipy, added up.

        Returns
        -------
        scipy.sparse.csr_array
            With an entry wherever two dofs have a common element, even where the sum is 0.

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        """
        n = self.dofs.shape[1]
        if self.symmetric:
            i, j = np.triu_indices(n)
        else:
            i, j = np.indices((n, n)).reshape(2, -1)
        values = self.to_host().values
        rows = self.dofs[:, i]
        columns = self.dofs[:, j]
        if self.symmetric:
            # Add the entries below the diagonal: rows and columns change places.
            off_diagonal = i != j
            upper_rows = rows[:, off_diagonal]
            upper_columns = columns[:, off_diagonal]
            values = np.hstack([values, values[:, off_diagonal]])
            rows = np.hstack([rows, upper_columns])
            columns = np.hstack([columns, upper_rows])
        # Dofs that are left out have number -1.
        in_matrix = (rows >= 0) & (columns >= 0)
        entries = values[in_matrix], (rows[in_matrix], columns[in_matrix])
        matrix: csr_array = _sparse().coo_array(entries, shape=self.shape).tocsr()
        return matrix


@dataclass(frozen=True, eq=False)
class RowsOfElements:
    """The rows of the elements' matrices that add up to each row of the matrix.

    Row ``i`` of the matrix is the sum of those from ``offset[i]`` to ``offset[i + 1] - 1``:
    row ``local_row`` of the matrix of element ``element``.
    """

    offset: NDArray[np.int64]
    element: NDArray[np.int32]
    local_row: NDArray[np.int32]


def rows_of_elements(matrix: LocalMatrices) -> RowsOfElements:
    """The elements' rows of each row, in the order of the elements. O(elements n log)."""
    n = matrix.dofs.shape[1]
    dofs = matrix.dofs.reshape(-1)
    # Dofs that are left out have number -1, so that they come first.
    order = np.argsort(dofs, kind="stable")[np.count_nonzero(dofs < 0) :]
    return RowsOfElements(
        offset=offsets_of(np.bincount(dofs[order], minlength=matrix.n_rows)).astype(
            np.int64
        ),
        element=(order // max(n, 1)).astype(np.int32),
        local_row=(order % max(n, 1)).astype(np.int32),
    )


def entries_of_rows(matrix: LocalMatrices) -> NDArray[np.int32]:
    """(n, n): where the entry of a local row and column stands in an element's values."""
    n = matrix.dofs.shape[1]
    if not matrix.symmetric:
        return np.arange(n * n, dtype=np.int32).reshape(n, n)
    # Half of a matrix has its entries from the diagonal on; the others are mirror images.
    entry = np.zeros((n, n), np.int32)
    i, j = np.triu_indices(n)
    entry[i, j] = np.arange(i.size)
    entry[j, i] = entry[i, j]
    return entry


Store = CsrMatrix | Ellpack | LocalMatrices


def check_store(matrix: object) -> None:
    """Raise MeshprepError for another object than a store, such as a matrix of scipy."""
    if not isinstance(matrix, MatrixStore):
        raise MeshprepError(
            f"the matrix is a {type(matrix).__name__}, must be a CsrMatrix, "
            "Ellpack or LocalMatrices: CsrMatrix.from_scipy takes one of scipy's"
        )


def check_matrix(matrix: Store) -> None:
    """Raise MeshprepError unless compiled code may trust the arrays. O(entries)."""
    check_store(matrix)
    for name, array in vars(matrix).items():
        if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
            raise MeshprepError(
                f"{name} is not contiguous: pass np.ascontiguousarray({name})"
            )
    if matrix.values.dtype not in map(np.dtype, DTYPES):
        raise MeshprepError(f"values are {matrix.values.dtype}: use {', '.join(DTYPES)}")
    matrix.check()


def _sparse() -> Any:
    return import_package("scipy.sparse", "matrices of scipy need scipy: pip install scipy")


def _check_index_array(
    where: str, values: NDArray[Any], dtypes: tuple[str, ...], ndim: int
) -> None:
    """Raise MeshprepError unless an array has one of these types, and is native."""
    # Compiled code would read swapped bytes as other numbers.
    native = values.dtype.isnative and values.dtype.str[1:] in dtypes
    if not native or values.ndim != ndim:
        raise MeshprepError(
            f"{where} is {values.dtype} of {values.ndim} dimensions, must be "
            f"{' or '.join(dtypes)} of {ndim}"
        )


def _check_within(where: str, values: NDArray[Any], least: int, end: int) -> None:
    if values.size and (values.min() < least or values.max() >= end):
        raise MeshprepError(f"{where} has an entry outside {least}..{end - 1}")
