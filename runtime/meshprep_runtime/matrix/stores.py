"""How a sparse matrix lies in memory: CSR, or the matrices of the elements [R14 3.2].

Stores are arrays only. Their shapes are checked when they are made, in O(1); ``check`` proves the
indices, for whoever hands them to compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, check_integer, import_package
from ..types.maps import as_indices, on_device

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DTYPES = ("f4", "f8", "i4", "i8")


class MatrixStore:
    """What stores share. The values lie on the host or on a GPU, the pattern on the host."""

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
        """Bytes of all arrays."""
        return sum(a.nbytes for a in vars(self).values() if getattr(a, "ndim", 0))

    def to_host(self) -> Self:
        """The matrix with its values in a NumPy array.

        Returns
        -------
        CsrMatrix or LocalMatrices
        """
        return self.with_values(self.values.get()) if self.on_gpu else self

    def with_values(self, values: Any) -> Self:
        """The same pattern with other values.

        Parameters
        ----------
        values : array
            Of the same shape, of NumPy or of a GPU; kept, not copied.

        Returns
        -------
        CsrMatrix or LocalMatrices
        """
        made: Self = replace(cast(Any, self), values=values)
        return made


@dataclass(frozen=True, eq=False, repr=False)
class CsrMatrix(MatrixStore):
    """Compressed rows, as scipy and PETSc have them.

    Parameters
    ----------
    row_ptr : (rows + 1,) int32 or int64
        Row ``i`` is ``row_ptr[i]`` to ``row_ptr[i + 1] - 1``; int64 where there are more than
        2^31-1 values.
    columns : (nonzeros,) int32
        Ascending in each row.
    values : (nonzeros,) array
    n_columns : int or None
        None for a square matrix.
    """

    row_ptr: NDArray[np.int32] | NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[Any]
    n_columns: int | None = None

    def __post_init__(self) -> None:
        _check("CsrMatrix.row_ptr", self.row_ptr, ("i4", "i8"), 1)
        _check("CsrMatrix.columns", self.columns, ("i4",), 1)
        if self.n_columns is not None:
            check_integer("CsrMatrix.n_columns", self.n_columns, 0)
        if self.row_ptr.size < 1 or self.values.shape != self.columns.shape:
            raise MeshprepError(
                f"CsrMatrix: row_ptr has {self.row_ptr.size} entries, columns {self.columns.size} "
                f"and values the shape {self.values.shape}: give a value a column, and a row_ptr"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows = self.row_ptr.size - 1
        return rows, rows if self.n_columns is None else self.n_columns

    def check(self) -> None:
        """Raise MeshprepError unless rows follow each other and columns are inside. O(nonzeros)."""
        ends = self.row_ptr[0], self.row_ptr[-1]
        if ends != (0, self.columns.size) or (self.row_ptr[1:] < self.row_ptr[:-1]).any():
            raise MeshprepError(f"CsrMatrix.row_ptr must rise from 0 to {self.columns.size}")
        _check_within("CsrMatrix.columns", self.columns, 0, self.shape[1])

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
                f"a matrix of {self.columns.size} nonzeros is too large for this PETSc, whose "
                f"indices are {index}: use one that was built with 64-bit indices"
            )
        offsets, columns = (a.astype(index, copy=False) for a in (self.row_ptr, self.columns))
        arrays = (offsets, columns, self.to_host().values)
        made = petsc.Mat().createAIJ(size=self.shape, csr=arrays, comm=petsc.COMM_SELF)
        made.assemble()
        return made

    @classmethod
    def from_scipy(cls, matrix: Any) -> CsrMatrix:
        """The matrix of scipy's, on the same memory where that has ascending columns of 32 bits.

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
        made = _sparse().csr_array(matrix)
        if not made.has_canonical_format:
            made = made.copy()
            made.sum_duplicates()
        columns = as_indices(made.indices, "CsrMatrix.columns")
        return cls(made.indptr, columns, made.data, made.shape[1])

    def to_scipy(self) -> csr_array:
        """The matrix for scipy, on the same memory where that is the host's.

        Returns
        -------
        scipy.sparse.csr_array

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        """
        made: csr_array = _sparse().csr_array(
            (self.to_host().values, self.columns, self.row_ptr), shape=self.shape
        )
        return made


@dataclass(frozen=True, eq=False, repr=False)
class LocalMatrices(MatrixStore):
    """The matrices of the elements, not added up: the matrix is the sum of them all (LMA).

    Parameters
    ----------
    values : (elements, n * n) array, or (elements, n * (n + 1) / 2) where ``symmetric``
        Row after row of each element's matrix; of a symmetric one the entries from the diagonal
        on: (0, 0), (0, 1), ..., (1, 1), ...
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
        _check("LocalMatrices.dofs", self.dofs, ("i4",), 2)
        elements, n = self.dofs.shape
        wanted = (elements, n * (n + 1) // 2 if self.symmetric else n * n)
        if self.values.shape != wanted:
            raise MeshprepError(
                f"LocalMatrices: values has shape {self.values.shape}, must be {wanted} for "
                f"{elements} elements of {n} dofs"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.n_rows, self.n_rows

    def check(self) -> None:
        """Raise MeshprepError unless every dof is -1 or a row. O(elements x n)."""
        _check_within("LocalMatrices.dofs", self.dofs, -1, self.n_rows)

    def half(self, tolerance: float = 1e-12) -> LocalMatrices:
        """The same matrices, from their diagonals on.

        Parameters
        ----------
        tolerance : float
            What entries across the diagonal may differ by, over the largest value.

        Returns
        -------
        LocalMatrices
            With ``symmetric``, on the host; itself where it has it.

        Raises
        ------
        MeshprepError
            Where a matrix is not symmetric.
        """
        if self.symmetric:
            return self
        n = self.dofs.shape[1]
        values, (i, j) = self.to_host().values, np.triu_indices(n)
        upper, lower = values[:, i * n + j], values[:, j * n + i]
        apart = np.abs(upper - lower).max(axis=1, initial=0)
        if (apart > tolerance * np.abs(values).max(initial=0)).any():
            raise MeshprepError(f"the matrix of element {int(apart.argmax())} is not symmetric")
        return LocalMatrices(np.ascontiguousarray(upper), self.dofs, True, self.n_rows)

    def to_scipy(self) -> csr_array:
        """The matrix for scipy, added up.

        Returns
        -------
        scipy.sparse.csr_array
            With an entry wherever two dofs have an element, even where the sum is 0.

        Raises
        ------
        MissingPackageError
            Where scipy is not installed.
        """
        n = self.dofs.shape[1]
        i, j = np.triu_indices(n) if self.symmetric else np.indices((n, n)).reshape(2, -1)
        values, rows, columns = self.to_host().values, self.dofs[:, i], self.dofs[:, j]
        if self.symmetric:
            below = i != j
            values = np.hstack([values, values[:, below]])
            rows, columns = (
                np.hstack([rows, columns[:, below]]),
                np.hstack([columns, rows[:, below]]),
            )
        kept = (rows >= 0) & (columns >= 0)
        entries = values[kept], (rows[kept], columns[kept])
        made: csr_array = _sparse().coo_array(entries, shape=self.shape).tocsr()
        return made


Store = CsrMatrix | LocalMatrices


def check_store(matrix: object) -> None:
    """Raise MeshprepError for what is none of our matrices, such as one of scipy's."""
    if not isinstance(matrix, MatrixStore):
        raise MeshprepError(
            f"the matrix is a {type(matrix).__name__}, must be a CsrMatrix or LocalMatrices: "
            "CsrMatrix.from_scipy takes one of scipy's"
        )


def check_matrix(matrix: Store) -> None:
    """Raise MeshprepError unless compiled code may trust the arrays. O(entries)."""
    check_store(matrix)
    for name, array in vars(matrix).items():
        if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
            raise MeshprepError(f"{name} is not contiguous: pass np.ascontiguousarray({name})")
    if matrix.values.dtype not in map(np.dtype, DTYPES):
        raise MeshprepError(f"values are {matrix.values.dtype}: use {', '.join(DTYPES)}")
    matrix.check()


def _sparse() -> Any:
    return import_package("scipy.sparse", "matrices of scipy need scipy: pip install scipy")


def _check(where: str, values: NDArray[Any], dtypes: tuple[str, ...], ndim: int) -> None:
    # kernels see the bytes, so a swapped order would be other numbers
    native = values.dtype.isnative and values.dtype.str[1:] in dtypes
    if not native or values.ndim != ndim:
        raise MeshprepError(
            f"{where} is {values.dtype} of {values.ndim} dimensions, must be "
            f"{' or '.join(dtypes)} of {ndim}"
        )


def _check_within(where: str, values: NDArray[Any], least: int, end: int) -> None:
    if values.size and (values.min() < least or values.max() >= end):
        raise MeshprepError(f"{where} has an entry outside {least}..{end - 1}")
