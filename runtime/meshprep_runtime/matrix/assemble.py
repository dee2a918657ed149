"""Assembly: a loop over the elements computes their matrices and adds them up [R14 3.2.3, 4.1]."""

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
from .stores import CsrMatrix, LocalMatrices, Store


class Assembly:
    """A loop that assembles its matrix, to be called with the arrays of its other arguments.

    Parameters
    ----------
    kernel : function
        As of a :class:`ParLoop`. For the matrix it has one parameter: the matrix of the element,
        row after row, to which it adds; it starts from zero.
    plan : LoopPlan
        Of a loop that adds to one matrix.
    store : {"csr", "local"}
        ``"local"``: the matrices of the elements are stored as they are, without a race or a sum.
    strategy : str, optional
        How elements that share an entry are kept apart: as of :class:`ParLoop`; None takes
        ``"auto"``. ``"two-step"``: matrices of the elements first, then every entry sums what is
        added to it, in the order of the elements; the order is found once and kept. ``"local"``
        needs neither.
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
        if len(plan.loop.matrices) != 1:
            raise MeshprepError(
                f"loop '{plan.loop.name}' adds to {len(plan.loop.matrices)} matrices: "
                "an Assembly takes a loop with one"
            )
        check_choice("store", store, STORES)
        self._arg = plan.loop.matrices[0]
        if self._arg.name not in plan.matrices:
            raise MeshprepError(f"loop '{plan.loop.name}': its plan has no matrix to assemble")
        self.matrix = plan.matrices[self._arg.name]
        stored = replace(plan, matrices={}) if store == "local" else plan
        self._empty = STORES[store](plan, self._arg)
        make = partial(ParLoop, kernel, stored, boundscheck=boundscheck, fastmath=fastmath)
        # On the host the second step of this one is empty; on a GPU it runs no loop with matrices.
        apart = store == "local" and not isinstance(kernel, DeviceFunction)
        self.loop = make(strategy=strategy or ("two-step" if apart else AUTO))
        self._there = make() if apart and not strategy else self.loop

    def __call__(self, /, **arrays: Any) -> Store:
        """The matrix of these arrays, in new memory; the arrays are those of a ParLoop.

        On a GPU, where they lie there: its values are an array of the GPU.
        """
        there = any(map(on_device, arrays.values()))
        made, added = self._zeros(there)
        (self._there if there else self.loop)(**arrays, **added)
        return made

    def check_access(self, most: int = 1000, /, **arrays: Any) -> None:
        """Check that the kernel only adds to its matrix, as :meth:`ParLoop.check_access` does.

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
        self.loop.check_access(most, **arrays, **self._zeros()[1])

    def _zeros(self, there: bool = False) -> tuple[Store, dict[str, Any]]:
        """A new matrix of zeros, and its values as the argument of the loop."""
        empty, zeros = self._empty.values, current().zeros if there else np.zeros
        made = replace(self._empty, values=zeros(empty.shape, empty.dtype))
        return made, {self._arg.name: made.values}


def _local(plan: LoopPlan, arg: Arg) -> LocalMatrices:
    """Room for the matrices of the elements."""
    matrix, table = plan.matrices[arg.name], plan.maps[str(arg.map)].table
    if arg.columns != arg.map:
        raise MeshprepError(f"matrix '{arg.name}' has other rows than columns: use store 'csr'")
    values = np.zeros((len(table), table.shape[1] ** 2), arg.dtype)
    return LocalMatrices(values, matrix.row_of[table], False, matrix.shape[0])


# A matrix of zeros, by the name of its store.
STORES: dict[str, Callable[[LoopPlan, Arg], Store]] = {
    "csr": lambda plan, arg: plan.matrices[arg.name].csr(arg.dtype),
    "local": _local,
}


def zero_rows_and_columns(
    matrix: CsrMatrix, load: NDArray[Any], rows: ArrayLike, values: ArrayLike = 0.0
) -> tuple[CsrMatrix, NDArray[Any]]:
    """Prescribe values of some unknowns: their rows and columns become those of the identity.

    Parameters
    ----------
    matrix : CsrMatrix
        Row ``i`` is that of the unknown of column ``i``. On ranks that of a ``PartAssembly``, which
        has columns of other ranks' unknowns, too.
    load : (n,) array
        The right-hand side of its rows.
    rows : (k,) integers
        The unknowns; on ranks also those of other ranks.
    values : (k,) array or a number
        What they are to be.

    Returns
    -------
    matrix : CsrMatrix
        Symmetric where it was; it shares the pattern of the one given.
    load : (n,) array
        Less what the columns contributed; the values themselves in ``rows``.

    Raises
    ------
    MeshprepError
        Where a row has no diagonal entry, or is none of the matrix: -1, as ``row_of`` has it; for a
        load of whole numbers, or of another shape.

    Notes
    -----
    O(nonzeros).
    """
    n, columns = matrix.shape
    if load.dtype.kind != "f" or load.shape != (n,):
        raise MeshprepError(
            f"load is {load.dtype} of shape {load.shape}, must be f4 or f8 of shape ({n},)"
        )
    fixed, known = np.zeros(columns, np.bool_), np.zeros(columns, load.dtype)
    numbers = as_indices(rows, "rows")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < columns:
        raise MeshprepError(f"rows has a number outside 0..{columns - 1}")
    fixed[numbers], known[numbers] = True, values
    row = rows_of_entries(matrix.row_ptr)
    moved = np.bincount(row, matrix.values * known[matrix.columns], minlength=n)
    diagonal = row == matrix.columns
    if np.count_nonzero(diagonal & fixed[row]) != np.count_nonzero(fixed[:n]):
        raise MeshprepError("a prescribed row has no diagonal entry in the pattern of the matrix")
    kept = ~(fixed[row] | fixed[matrix.columns])
    new = np.where(kept, matrix.values, diagonal & fixed[row]).astype(matrix.values.dtype)
    changed = np.where(fixed[:n], known[:n], load - moved).astype(load.dtype)
    return replace(matrix, values=new), changed
