"""Products ``y = A x`` where the values lie, for each way to store a matrix [R14 3.2, 4.5]."""

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..cpu.strategies import Schedule, by_colour, elements
from ..errors import MeshprepError, check_integer
from ..plan import LoopPlan, Variant
from ..types.maps import on_device, read_only
from . import kernels
from .code import PIECE, MatrixCode, check_blocks, row_schedule
from .stores import CsrMatrix, LocalMatrices, Store, check_matrix

if TYPE_CHECKING:
    from .cuda_products import DeviceProduct
    from .cuda_text import CsrThreads


class Product:
    """A matrix, ready to be multiplied: ``product @ x``, or ``product(x, out=y)``.

    Parameters
    ----------
    matrix : CsrMatrix or LocalMatrices
        Its arrays are not copied: values may change between calls, the pattern must not. Values
        that lie on a GPU (:func:`to_gpu`) multiply there, on CuPy arrays; then the values of
        LocalMatrices are copied, in the order of the blocks.
    plan : LoopPlan or None
        For LocalMatrices: the plan of a loop over their elements that adds to the dofs. Its blocks
        and colours let several threads add; without it one thread runs, and a GPU refuses.
    threads : int, CsrThreads or None
        None for numba's number; small matrices run on one. On a GPU those of a CsrMatrix, None for
        the rule's.
    piece : int
        For a CsrMatrix: nonzeros and rows that a thread takes at a time.

    Raises
    ------
    MeshprepError
        For indices outside the matrix, arrays that are not contiguous, values of another type than
        f4, f8, i4 and i8, a plan whose colours do not fit the dofs, and on the host half of the
        matrices of elements with more than 16 dofs.

    Notes
    -----
    The result depends on neither the threads nor the pieces. Whole numbers are exact where their
    sums fit the type. Code is compiled in the first call with a type of values, and kept on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep_runtime.matrix import CsrMatrix, Product
    >>> row_ptr, columns = np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32)
    >>> Product(CsrMatrix(row_ptr, columns, np.array([1.0, 2.0, 3.0]))) @ np.array([1.0, 10.0])
    array([21., 30.])
    """

    def __init__(
        self,
        matrix: Store,
        plan: LoopPlan | None = None,
        *,
        threads: "int | CsrThreads | None" = None,
        piece: int = PIECE,
    ) -> None:
        check_matrix(matrix)
        self.matrix = matrix
        self.threads: Any = threads
        self._given: dict[str, Any] = {"plan": plan, "threads": threads, "piece": piece}
        self._adds = isinstance(matrix, LocalMatrices)
        self._there: DeviceProduct | None = None
        if matrix.on_gpu:
            from .cuda_products import device_product

            self._there = device_product(matrix, plan, threads)
            return
        check_threads(cast(int | None, threads), piece)
        if isinstance(matrix, CsrMatrix):
            rows = row_schedule(matrix.row_ptr, piece)
            self._code = MatrixCode(kernels.csr_rows, csr_arrays(matrix), rows)
        else:
            self._code = _local(matrix, None if plan is None else plan.variant())

    def __reduce__(self) -> Any:
        """A copy works on the copy of the matrix."""
        return partial(Product, **self._given), (self.matrix,)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.matrix.shape

    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        return self(x)

    def __call__(self, x: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Multiply.

        Parameters
        ----------
        x : (columns,) array
            Of the type of the values.
        out : (rows,) array, optional
            Where the result goes; it must not share memory with x.

        Returns
        -------
        (rows,) array

        Raises
        ------
        MeshprepError
            For arrays that do not fit.
        """
        if self._there is not None:
            there: NDArray[Any] = self._there(x, out)
            return there
        dtype = self.matrix.values.dtype
        y = np.empty(self.shape[0], dtype) if out is None else out
        check_vector("x", x, self.shape[1], dtype)
        check_out(y, self.shape[0], dtype)
        if out is not None and np.may_share_memory(x, out):
            raise MeshprepError("out shares memory with x: pass separate arrays")
        if self._adds:
            y[:] = 0
        self._code.run(x, y, self.threads)
        return y


def check_threads(threads: int | None, piece: int = PIECE) -> None:
    """Raise MeshprepError for less than one."""
    if threads is not None:
        check_integer("threads", threads)
    check_integer("piece", piece)


def check_place(name: str, array: Any, on_gpu: bool) -> None:
    """Raise MeshprepError unless it lies where the values of the matrix do."""
    if on_device(array) == on_gpu:
        return
    if on_gpu:
        raise MeshprepError(f"{name} lies on the host, the matrix on a GPU: pass a CuPy array")
    raise MeshprepError(f"{name} lies on a GPU, the matrix on the host: give to_gpu(matrix)")


def check_vector(name: str, array: NDArray[Any], size: int, dtype: np.dtype) -> None:
    """Raise MeshprepError unless it is a contiguous vector of this size and type."""
    check_place(name, array, False)
    if not isinstance(array, np.ndarray):
        raise MeshprepError(f"{name} is a {type(array).__name__}, must be a NumPy array")
    if array.shape != (size,) or array.dtype != dtype or not array.flags.c_contiguous:
        raise MeshprepError(
            f"{name} is {array.dtype} of shape {array.shape}, must be contiguous {dtype} of "
            f"shape ({size},)"
        )


def check_out(array: NDArray[Any], size: int, dtype: np.dtype) -> None:
    """Raise MeshprepError unless a product may be written into it."""
    check_vector("out", array, size, dtype)
    if not array.flags.writeable:
        raise MeshprepError("out is read-only: pass an array that can be written")


def csr_arrays(matrix: CsrMatrix) -> dict[str, NDArray[Any]]:
    """The arrays of a matrix in compressed rows, as kernels take them."""
    columns = matrix.columns.view(np.uint32)
    found = {"row_ptr": matrix.row_ptr, "columns": columns, "values": matrix.values}
    return {name: read_only(array) for name, array in found.items()}


def _local(matrix: LocalMatrices, blocks: Variant | None) -> MatrixCode:
    places = np.zeros(0, np.int32)
    if blocks is None:
        made = Schedule(elements(0, len(matrix.dofs))[1], parallel=False)
    else:
        check_blocks(matrix, blocks)
        made = Schedule(by_colour(blocks))
        places = places if blocks.elements is None else blocks.elements
    n = matrix.dofs.shape[1]
    found = {"places": places, "dofs": matrix.dofs, "values": matrix.values}
    arrays = {name: read_only(array.reshape(-1)) for name, array in found.items()}
    if not matrix.symmetric:
        return MatrixCode(kernels.local_elements, arrays, made, dofs=n)
    if n > kernels.MOST_DOFS:
        raise MeshprepError(
            f"half of the matrices of elements with {n} dofs is slower than the whole, and not "
            f"multiplied on a processor beyond {kernels.MOST_DOFS}: give the whole matrices"
        )
    return MatrixCode(kernels.unrolled_symmetric(n), arrays, made)
