"""Matrices on a mesh in parts: each rank assembles the rows of the dofs that it owns."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..loop import ParLoop
from ..plan.parts import LoopPart
from ..program.dat import ProgramDat
from ..program.distributed import DistributedPlan
from ..program.layouts import LoopLayouts, check_sets
from ..program.part_loop import PartLoop
from ..types.loops import Arg
from ..types.maps import distinct, offsets_of
from .batch import BatchSums
from .products import Product, check_vector
from .stores import CsrMatrix

Vector = NDArray[Any]


class PartAssembly:
    """Assembles the rows that this rank owns; all ranks make it, and call it, together.

    A rank also computes the matrices of other ranks' elements that reach its dofs, so that no entry
    is sent. The pattern, and the order of the sums, are found once.

    Parameters
    ----------
    kernel : function
        As of an :class:`Assembly`.
    plan : DistributedPlan
    loop : str
        A loop of the plan that adds to one square matrix.
    fixed : ProgramDat, optional
        On the set of the rows, not 0 for dofs with a prescribed value: their rows and columns are
        those of the identity; the zeros are stored.
    strategy : str
        As of a loop on ranks.

    Raises
    ------
    MeshprepError
        For a loop without a matrix or with several, one with other rows than columns, and ``fixed``
        on another set.

    Notes
    -----
    O(n log n) when it is made, for the entries of this rank's elements.
    """

    def __init__(
        self,
        kernel: Callable[..., None],
        plan: DistributedPlan,
        loop: str,
        *,
        fixed: ProgramDat | None = None,
        strategy: str = "sequential",
    ) -> None:
        part = plan.part.loops[plan[loop].loop.name]
        self._arg = _square_matrix(part)
        self.set = part.plan.maps[str(self._arg.map)].to_set
        own = plan.set_part(self.set)
        layouts = LoopLayouts(
            lambda of, layout: ParLoop(kernel, of, strategy=strategy, layout=layout),
            part.plan,
            None,
        )
        self._loop = PartLoop(layouts, part, plan.part, plan.messages)
        self._changed = [n for n in part.plan.loop.written if n != self._arg.name]
        table = part.plan.maps[str(self._arg.map)].table
        found = _pattern(table, own.owned, _free(fixed, plan, self.set))
        self._row_ptr, self._columns, place, self._identity = found
        self._size = own.size
        self._values = np.zeros((len(table), table.shape[1] ** 2), self._arg.dtype)
        self._sums = BatchSums(place, self._columns.size)

    def __call__(self, /, **given: Any) -> CsrMatrix:
        """The rows of this rank, in new memory.

        Parameters
        ----------
        **given : ProgramDat or what a ParLoop takes
            The other arguments of the loop.

        Returns
        -------
        CsrMatrix
            A row for each dof that this rank owns, and a column for each that it has: those that it
            owns, then the copies, as the rows of dats.
        """
        # on all ranks: on some a dat on another set may have as many rows
        check_sets(self._loop.layouts.par_loop, given)
        self._values[:] = 0
        dats = [given[n] for n in self._changed if isinstance(given.get(n), ProgramDat)]
        for dat in dats:
            dat.values(write=True)
        try:
            self._loop({**given, self._arg.name: self._values})
        finally:
            for dat in dats:
                dat.touch()
        values = self._sums(self._values)
        values[self._identity] = 1
        return CsrMatrix(self._row_ptr, self._columns, values, self._size)


class PartProduct:
    """``y = A x`` on ranks: each multiplies its rows; all ranks make it, and call it, together.

    Messages bring the copies of x first. The bits are those of a :class:`Product` of the rank's
    rows.

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
    ) -> None:
        self._product = Product(matrix, threads=threads)
        own = plan.set_part(set_name)
        if matrix.shape != (own.owned, own.size):
            raise MeshprepError(
                f"a matrix on '{set_name}' has shape {matrix.shape}, must be "
                f"{(own.owned, own.size)} on this rank: take that of a PartAssembly"
            )
        self._plan, self._owned = plan, own.owned
        self._x = plan.dat(set_name, 1, matrix.values.dtype.str[1:])

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
        check_vector("x", x, self._owned, self._x.dtype)
        self._x.array[: self._owned] = x
        self._plan.update(self._x)
        return self._product(self._x.array, out)


def dot_on(plan: DistributedPlan) -> Callable[[Vector, Vector], float]:
    """The scalar product of vectors whose rows belong to ranks: ``cg(..., dot=dot_on(plan))``.

    Parameters
    ----------
    plan : DistributedPlan

    Returns
    -------
    function
        Of the owned rows of two vectors; the same number on all ranks. One message a call.
    """
    comm = plan.comm

    def dot(a: Vector, b: Vector) -> float:
        own, every = np.array([float(a @ b)]), np.zeros(comm.size)
        comm.Iallgather(own, every).Wait()
        return float(every.sum())

    return dot


def _square_matrix(part: LoopPart) -> Arg:
    loop = part.plan.loop
    if len(loop.matrices) != 1:
        raise MeshprepError(
            f"loop '{loop.name}' adds to {len(loop.matrices)} matrices: a PartAssembly takes a "
            "loop with one"
        )
    (arg,) = loop.matrices
    if arg.columns != arg.map:
        raise MeshprepError(
            f"matrix '{arg.name}' has other rows than columns, which ranks cannot have: assemble "
            "it on one rank"
        )
    return arg


def _free(fixed: ProgramDat | None, plan: DistributedPlan, set_name: str) -> NDArray[np.bool_]:
    """Whether each dof of this rank is free; collective."""
    size = plan.set_part(set_name).size
    if fixed is None:
        return np.ones(size, np.bool_)
    if fixed.set != set_name:
        raise MeshprepError(f"fixed is {fixed!r}, must be a dat on '{set_name}'")
    plan.update(fixed)
    rows = fixed.array.T if fixed.axis else fixed.array
    found: NDArray[np.bool_] = (rows == 0).reshape(size, fixed.dim).all(axis=1)
    return found


def _pattern(
    table: NDArray[np.int32], owned: int, free: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Row offsets and columns of a rank's rows, a column a dof, and what is added to them.

    That is (elements, n, n): the nonzero to which each entry of an element's matrix is added, -1
    for none; and the nonzeros that are 1, on the diagonal of fixed rows, even where no element adds
    to it.
    """
    columns = max(free.size, 1)
    row, column = table[:, :, None].astype(np.int64), table[:, None, :]
    of_entry = row * columns + column
    here = np.broadcast_to(row < owned, of_entry.shape)
    diagonal = np.flatnonzero(~free[:owned]) * (columns + 1)
    key = distinct(np.concatenate([of_entry[here], diagonal]))
    summed = here & free[row] & free[column]
    place = np.where(summed, np.searchsorted(key, of_entry), -1)
    row_ptr = offsets_of(np.bincount(key // columns, minlength=owned)).astype(np.int32)
    each = (key % columns).astype(np.int32)
    return row_ptr, each, place, np.searchsorted(key, diagonal)
