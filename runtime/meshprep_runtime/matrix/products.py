"""Products ``y = A x`` on the host or a GPU, for each store of a matrix [R14 3.2, 4.5]."""

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..cpu.strategies import Schedule, by_colour, elements, in_pieces
from ..errors import MeshprepError, check_integer
from ..plan import LoopPlan, Variant
from ..types.maps import on_device, read_only
from . import kernels
from .code import PIECE, MatrixCode, check_blocks, row_schedule
from .stores import CsrMatrix, Ellpack, LocalMatrices, Store, check_matrix

if TYPE_CHECKING:
    from .cuda_products import DeviceProduct, SearchedProduct
    from .cuda_text import CsrThreads

# Rows of an Ellpack that a thread takes at a time: their sums stay in the nearest cache.
ELLPACK_ROWS = 512


class Product:
    """The product with a matrix: ``product @ x``, or ``product(x, out=y)``.

    Parameters
    ----------
    matrix : CsrMatrix, Ellpack or LocalMatrices
        Its arrays are not copied: values may change between calls, the pattern must not.
        With values on a GPU (:func:`to_gpu`) the product runs there, on CuPy arrays; then
        the values of LocalMatrices are copied, in the order of the blocks.
    plan : LoopPlan or None
        For LocalMatrices: the plan of a loop over their elements that adds to the dofs. Its
        blocks and colours let several threads add; without it one thread runs, and a GPU
        refuses.
    threads : int, CsrThreads or None
        None for numba's number of threads; small matrices run on one. On a GPU the
        CsrThreads of a CsrMatrix; None finds the fastest in the first calls, up to eight,
        and keeps them in the matrix and in the plan that it comes from [R14 4.5.2].
    piece : int
        For a CsrMatrix: nonzeros and rows together that a thread takes at a time.

    Raises
    ------
    MeshprepError
        For indices outside the matrix, arrays that are not contiguous, values of another
        type than f4, f8, i4 and i8, a plan whose colours do not fit the dofs, and on the
        host half of the matrices of elements with more than 16 dofs.

    Notes
    -----
    The result depends on neither the threads nor the pieces. On a GPU, CsrThreads decide in
    which order a row is summed: give them where the first calls, too, must have the bits of
    all others. Sums of whole numbers are
    exact where they fit the type. Code is compiled in the first call with a type of values,
    and kept on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep_runtime.matrix import CsrMatrix, Product
    >>> row_ptr, columns = np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32)
    >>> matrix = CsrMatrix(row_ptr, columns, np.array([1.0, 2.0, 3.0]))
    >>> Product(matrix) @ np.array([1.0, 10.0])
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
        """Check the arrays, and cut the rows into pieces of nearly the same work.

        Parameters and errors are those of the class.

        Notes
        -----
        O(nonzeros): every index is looked at, since compiled code checks none.
        """
        check_matrix(matrix)
        self.matrix = matrix
        self.threads: Any = threads
        self._given: dict[str, Any] = {"plan": plan, "threads": threads, "piece": piece}
        self._adds = isinstance(matrix, LocalMatrices)
        self._on_gpu: DeviceProduct | SearchedProduct | None = None
        if matrix.on_gpu:
            from .cuda_products import device_product

            self._on_gpu = device_product(matrix, plan, threads)
            return
        check_threads(cast(int | None, threads), piece)
        # Rows are written by one thread each; matrices of elements add by colours.
        if isinstance(matrix, CsrMatrix):
            rows = row_schedule(matrix.row_ptr, piece)
            self._code = MatrixCode(kernels.csr_rows, csr_arrays(matrix), rows)
        elif isinstance(matrix, Ellpack):
            self._code = _ellpack_code(matrix)
        else:
            self._code = _local_code(matrix, None if plan is None else plan.variant())

    def __reduce__(self) -> Any:
        """Makes a product of the copied matrix."""
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
            The array for the result; it must not share memory with x.

        Returns
        -------
        (rows,) array

        Raises
        ------
        MeshprepError
            For arrays that do not fit.
        """
        if self._on_gpu is not None:
            y_on_gpu: NDArray[Any] = self._on_gpu(x, out)
            return y_on_gpu
        dtype = self.matrix.values.dtype
        y = np.empty(self.shape[0], dtype) if out is None else out
        check_vector(name="x", array=x, size=self.shape[1], dtype=dtype)
        check_out(y, self.shape[0], dtype)
        if out is not None and np.may_share_memory(x, out):
            raise MeshprepError("out shares memory with x: pass separate arrays")
        if self._adds:
            y[:] = 0
        self._code.run(x, y, self.threads)
        return y


def check_threads(threads: int | None, piece: int = PIECE) -> None:
    """Raise MeshprepError for numbers below 1."""
    if threads is not None:
        check_integer("threads", threads)
    check_integer("piece", piece)


def check_place(name: str, array: Any, on_gpu: bool) -> None:
    """Raise MeshprepError unless an array lies where the values of the matrix do."""
    if on_device(array) == on_gpu:
        return
    if on_gpu:
        raise MeshprepError(
            f"{name} lies on the host, the matrix on a GPU: pass a CuPy array"
        )
    raise MeshprepError(
        f"{name} lies on a GPU, the matrix on the host: give to_gpu(matrix)"
    )


def check_vector(name: str, array: NDArray[Any], size: int, dtype: np.dtype) -> None:
    """Raise MeshprepError unless an array is a contiguous vector of this size and type."""
    check_place(name, array, False)
    if not isinstance(array, np.ndarray):
        raise MeshprepError(f"{name} is a {type(array).__name__}, must be a NumPy array")
    if array.shape != (size,) or array.dtype != dtype or not array.flags.c_contiguous:
        raise MeshprepError(
            f"{name} is {array.dtype} of shape {array.shape}, must be contiguous {dtype} "
            f"of shape ({size},)"
        )


def check_out(array: NDArray[Any], size: int, dtype: np.dtype) -> None:
    """Raise MeshprepError unless an array can take the result of a product."""
    check_vector(name="out", array=array, size=size, dtype=dtype)
    if not array.flags.writeable:
        raise MeshprepError("out is read-only: pass an array that can be written")


def csr_arrays(matrix: CsrMatrix) -> dict[str, NDArray[Any]]:
    """The arrays of a matrix in compressed rows, as kernels take them."""
    return {
        "row_ptr": read_only(matrix.row_ptr),
        "columns": read_only(matrix.columns.view(np.uint32)),
        "values": read_only(matrix.values),
    }


def _ellpack_code(matrix: Ellpack) -> MatrixCode:
    """The code for rows of one length."""
    arrays = {"columns": read_only(matrix.columns), "values": read_only(matrix.values)}
    schedule = in_pieces(matrix.shape[0], ELLPACK_ROWS)
    return MatrixCode(kernels.ellpack_rows, arrays, schedule)


def _local_code(matrix: LocalMatrices, blocks: Variant | None) -> MatrixCode:
    """The code for matrices of elements, on several threads where there are blocks."""
    # The element at each place; none where it is the place itself.
    places = np.zeros(0, np.int32)
    if blocks is None:
        _, turns, _ = elements(0, len(matrix.dofs))
        schedule = Schedule(turns, parallel=False)
    else:
        check_blocks(matrix, blocks)
        schedule = Schedule(by_colour(blocks))
        if blocks.elements is not None:
            places = blocks.elements
    # Choose the kernel: of whole matrices, or of halves, unrolled for n dofs.
    n = matrix.dofs.shape[1]
    arrays = {
        "places": read_only(places.reshape(-1)),
        "dofs": read_only(matrix.dofs.reshape(-1)),
        "values": read_only(matrix.values.reshape(-1)),
    }
    if not matrix.symmetric:
        return MatrixCode(
            kernel=kernels.local_elements, arrays=arrays, schedule=schedule, dofs=n
        )
    if n > kernels.MOST_DOFS:
        raise MeshprepError(
            f"half of the matrices of elements with {n} dofs is slower than the whole, and "
            f"not multiplied on a processor beyond {kernels.MOST_DOFS}: give the whole "
            "matrices"
        )
    return MatrixCode(kernels.unrolled_symmetric(n), arrays, schedule)
