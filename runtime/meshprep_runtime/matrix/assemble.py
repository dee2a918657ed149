"""Assembly of a matrix by a loop that adds up matrices of elements [R14 3.2.3, 4.1]."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..cuda.device import current
from ..errors import MeshprepError, check_choice
from ..kernel.analysis import DeviceFunction
from ..kernel.bind import AUTO
from ..loop import ParLoop
from ..plan import LoopPlan
from ..types.loops import Arg
from ..types.maps import as_indices, on_device, rows_of_entries
from .ellpack import empty_ellpack, empty_lazy_ellpack
from .stores import CsrMatrix, Ellpack, LocalMatrices, Store


class Assembly:
    """A loop that assembles a matrix; it is called with the arrays of its other arguments.

    Parameters
    ----------
    kernel : function
        As of a :class:`ParLoop`. For the matrix it has one parameter: the matrix of the
        element, row after row, to which it adds; it starts from zero.
    plan : LoopPlan
        The plan of a loop that adds to one matrix.
    store : {"csr", "ellpack", "lazy-ellpack", "local"}
        ``"csr"``: compressed rows. ``"ellpack"``: rows of one length, padded.
        ``"lazy-ellpack"``: the same, where every entry of every element has a place of its
        own in its row, side by side, and nothing is summed. ``"local"``: the matrices of
        the elements are stored as they are, without a race or a sum.
    strategy : str, optional
        How elements that share an entry are kept apart, as of :class:`ParLoop`; None takes
        ``"auto"``. ``"two-step"``: the matrices of the elements first, then every entry
        sums its increments in the order of the elements; the order is found once and kept.
        Store ``"local"`` needs neither.
    boundscheck, fastmath : bool
        As of a ParLoop.

    Raises
    ------
    MeshprepError
        For a loop with no matrix or several, an unknown store, and as of a ParLoop.

    Notes
    -----
    The bits of the result do not depend on the number of threads.

    Examples
    --------
    >>> from meshprep_runtime.matrix import Assembly  # doctest: +SKIP
    >>> assemble = Assembly(stiffness, plan["stiffness"])  # doctest: +SKIP
    >>> assemble(x=x).to_scipy()  # doctest: +SKIP
    """

    def __init__(
        self,
        kernel: Callable[..., None] | DeviceFunction,
        plan: LoopPlan,
        *,
        store: str = "csr",
        strategy: str | None = None,
        boundscheck: bool = False,
        fastmath: bool = False,
    ) -> None:
        """Check the loop, and make it; nothing is compiled yet.

        Parameters and errors are those of the class.

        Notes
        -----
        O(map entries), as a ParLoop; with store ``"csr"`` the pattern is that of the plan.
        """
        if len(plan.loop.matrices) != 1:
            raise MeshprepError(
                f"loop '{plan.loop.name}' adds to {len(plan.loop.matrices)} matrices: "
                "an Assembly takes a loop with one"
            )
        check_choice("store", store, STORES)
        self._arg = plan.loop.matrices[0]
        if self._arg.name not in plan.matrices:
            raise MeshprepError(
                f"loop '{plan.loop.name}': its plan has no matrix to assemble"
            )
        self.matrix = plan.matrices[self._arg.name]
        self._empty, loop_plan = STORES[store](plan, self._arg)
        make_loop = partial(
            ParLoop, kernel, loop_plan, boundscheck=boundscheck, fastmath=fastmath
        )
        # On the host "two-step" writes matrices of elements, and has no second step. On a
        # GPU it cannot run loops with matrices.
        local_on_host = store == "local" and not isinstance(kernel, DeviceFunction)
        default_strategy = "two-step" if local_on_host else AUTO
        self.loop = make_loop(strategy=strategy or default_strategy)
        self._loop_on_gpu = self.loop
        if local_on_host and not strategy:
            self._loop_on_gpu = make_loop()

    def __call__(self, /, **arrays: Any) -> Store:
        """Assemble the matrix from these arrays, in new memory.

        Parameters
        ----------
        **arrays : NumPy or CuPy arrays
            As of a ParLoop, without the matrix.

        Returns
        -------
        CsrMatrix, Ellpack or LocalMatrices
            Where the arrays lie on a GPU, its values are an array of the GPU.
        """
        on_gpu = any(map(on_device, arrays.values()))
        matrix, values_argument = self._zeros(on_gpu)
        if on_gpu:
            self._loop_on_gpu(**arrays, **values_argument)
        else:
            self.loop(**arrays, **values_argument)
        return matrix

    def check_access(self, most: int = 1000, /, **arrays: Any) -> None:
        """Check the accesses of the kernel, as :meth:`ParLoop.check_access` does.

        Above all, the kernel must only add to its matrix.

        Parameters
        ----------
        most : int
            Elements to look at.
        **arrays : NumPy arrays
            As of a call; they are not changed.

        Raises
        ------
        MeshprepError
            Naming the first element, argument and component that is wrong.
        """
        _, values_argument = self._zeros()
        self.loop.check_access(most, **arrays, **values_argument)

    def _zeros(self, on_gpu: bool = False) -> tuple[Store, dict[str, Any]]:
        """A new matrix of zeros, and its values as an argument of the loop."""
        empty = self._empty.values
        zeros = current().zeros if on_gpu else np.zeros
        matrix = replace(self._empty, values=zeros(empty.shape, empty.dtype))
        values = matrix.values
        # A loop adds to nonzeros that have one number.
        if isinstance(matrix, Ellpack):
            values = values.reshape(-1)
        return matrix, {self._arg.name: values}


def _empty_csr(plan: LoopPlan, arg: Arg) -> tuple[CsrMatrix, LoopPlan]:
    """A matrix of zeros in compressed rows; the loop adds to it as planned."""
    return plan.matrices[arg.name].csr(arg.dtype), plan


def _empty_local(plan: LoopPlan, arg: Arg) -> tuple[LocalMatrices, LoopPlan]:
    """Matrices of zeros for all elements; a loop without its matrix stores them."""
    matrix = plan.matrices[arg.name]
    table = plan.maps[str(arg.map)].table
    if arg.columns != arg.map:
        raise MeshprepError(
            f"matrix '{arg.name}' has other rows than columns: use store 'csr'"
        )
    values = np.zeros((len(table), table.shape[1] ** 2), arg.dtype)
    empty = LocalMatrices(
        values=values, dofs=matrix.row_of[table], symmetric=False, n_rows=matrix.shape[0]
    )
    return empty, replace(plan, matrices={})


# A matrix of zeros and the loop that adds to it, by the name of the store.
STORES: dict[str, Callable[[LoopPlan, Arg], tuple[Store, LoopPlan]]] = {
    "csr": _empty_csr,
    "ellpack": empty_ellpack,
    "lazy-ellpack": empty_lazy_ellpack,
    "local": _empty_local,
}


def zero_rows_and_columns(
    matrix: CsrMatrix, load: NDArray[Any], rows: ArrayLike, values: ArrayLike = 0.0
) -> tuple[CsrMatrix, NDArray[Any]]:
    """Prescribe values of some unknowns.

    Their rows and columns become those of the identity.

    Parameters
    ----------
    matrix : CsrMatrix
        Row ``i`` and column ``i`` belong to the same unknown. On ranks the matrix of a
        ``PartAssembly``, which also has columns of other ranks' unknowns.
    load : (n,) array
        The right-hand side.
    rows : (k,) integers
        The unknowns; on ranks also those of other ranks.
    values : (k,) array or a number
        The values of these unknowns.

    Returns
    -------
    matrix : CsrMatrix
        Symmetric where it was; on the same pattern.
    load : (n,) array
        Without the contributions of the columns; in ``rows`` the values themselves.

    Raises
    ------
    MeshprepError
        For a row without a diagonal entry; for a number that is no row of the matrix, such
        as -1 of ``row_of``; for a load of whole numbers, or of another shape.

    Notes
    -----
    O(nonzeros).
    """
    n, columns = matrix.shape
    if load.dtype.kind != "f" or load.shape != (n,):
        raise MeshprepError(
            f"load is {load.dtype} of shape {load.shape}, must be f4 or f8 of shape ({n},)"
        )
    # The unknowns that are prescribed, and their values.
    fixed = np.zeros(columns, np.bool_)
    prescribed = np.zeros(columns, load.dtype)
    numbers = as_indices(rows, "rows")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < columns:
        raise MeshprepError(f"rows has a number outside 0..{columns - 1}")
    fixed[numbers] = True
    prescribed[numbers] = values
    # Move the columns to the right-hand side, and put the identity in their place.
    row = rows_of_entries(matrix.row_ptr)
    moved = np.bincount(row, matrix.values * prescribed[matrix.columns], minlength=n)
    diagonal = row == matrix.columns
    if np.count_nonzero(diagonal & fixed[row]) != np.count_nonzero(fixed[:n]):
        raise MeshprepError(
            "a prescribed row has no diagonal entry in the pattern of the matrix"
        )
    is_free = ~(fixed[row] | fixed[matrix.columns])
    new_values = np.where(is_free, matrix.values, diagonal & fixed[row])
    new_load = np.where(fixed[:n], prescribed[:n], load - moved)
    new_matrix = replace(matrix, values=new_values.astype(matrix.values.dtype))
    return new_matrix, new_load.astype(load.dtype)
