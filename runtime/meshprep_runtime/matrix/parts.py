"""Matrices on a mesh in parts: each rank assembles the rows of the dofs that it owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..loop import ParLoop
from ..loops import Access, Arg
from ..plan.parts import LoopPart, SetPart
from ..program.dat import ProgramDat
from ..program.distributed import DistributedPlan
from ..program.layouts import LoopLayouts
from ..program.mpi import operation
from ..program.part_loop import PartLoop
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
        those of the identity.
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
        free = np.ones(own.size, np.bool_)
        if fixed is not None:
            if fixed.set != self.set:
                raise MeshprepError(f"fixed is {fixed!r}, must be a dat on '{self.set}'")
            plan.update(fixed)
            free = (fixed.array == 0).reshape(own.size, -1).all(axis=1)
        table = part.plan.maps[str(self._arg.map)].table
        self._values = np.zeros((len(table), table.shape[1] ** 2), self._arg.dtype)
        self._row_ptr, self._columns, place = _pattern(table, own, free)
        self._sums = BatchSums(place, self._columns.size)
        rows = np.repeat(np.arange(own.owned), np.diff(self._row_ptr))
        self._identity = np.flatnonzero((rows == self._columns) & ~free[rows])
        self._n_columns = own.size

    def __call__(self, **given: Any) -> CsrMatrix:
        """The rows of this rank, in new memory.

        Parameters
        ----------
        **given : ProgramDat or what a ParLoop takes
            The other arguments of the loop.

        Returns
        -------
        CsrMatrix
            A row for each owned dof, and a column for each dof that this rank has: those that it
            owns, then the copies.
        """
        self._values[:] = 0
        self._loop({**given, self._arg.name: self._values})
        values = self._sums(self._values)
        values[self._identity] = 1
        return CsrMatrix(self._row_ptr, self._columns, values, self._n_columns)


class PartProduct:
    """``y = A x`` on ranks: copies of x are brought up to date, then each rank multiplies its rows.

    Parameters
    ----------
    matrix : CsrMatrix
        Of a :class:`PartAssembly`.
    plan : DistributedPlan
    set_name : str
        The set of the rows and columns.
    threads : int, optional
        As of a :class:`Product`.

    Raises
    ------
    MeshprepError
        For a matrix of another shape than (owned elements, elements with copies) of the set.
    """

    def __init__(
        self, matrix: CsrMatrix, plan: DistributedPlan, set_name: str, threads: int | None = None
    ) -> None:
        own = plan.set_part(set_name)
        if matrix.shape != (own.owned, own.size):
            raise MeshprepError(
                f"a matrix on '{set_name}' has shape {matrix.shape}, must be "
                f"{(own.owned, own.size)} on this rank: take that of a PartAssembly"
            )
        self._plan = plan
        self._product = Product(matrix, threads=threads)
        self._x = plan.dat(set_name, 1, matrix.values.dtype.str[1:])

    def __matmul__(self, x: Vector) -> Vector:
        return self(x)

    def __call__(self, x: Vector, out: Vector | None = None) -> Vector:
        """Multiply; all ranks together.

        Parameters
        ----------
        x : (owned,) array
        out : (owned,) array, optional
            Where the result goes.

        Returns
        -------
        (owned,) array
        """
        check_vector("x", x, self._x.owned, self._x.dtype)
        self._x.values(write=True)[:, 0] = x
        self._plan.update(self._x)
        return self._product(self._x.array.reshape(-1), out)


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
    add = operation(comm, Access.INC)

    def dot(a: Vector, b: Vector) -> float:
        own, total = np.array([float(a @ b)]), np.zeros(1)
        comm.Iallreduce(own, total, add).Wait()
        return float(total[0])

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
            "it by BatchRows"
        )
    return arg


def _pattern(
    table: NDArray[np.int32], own: SetPart, free: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Row offsets and columns of the owned rows, and where each entry is added, -1: nowhere."""
    arity = table.shape[1]
    row = np.repeat(table, arity, axis=1).reshape(-1).astype(np.int64)
    column = np.tile(table, (1, arity)).reshape(-1)
    kept = (row < own.owned) & free[row] & free[column]
    diagonal = np.flatnonzero(~free[: own.owned]) * (own.size + 1)
    of_entry = row * own.size + column
    key = np.unique(np.concatenate([of_entry[kept], diagonal]))
    place = np.where(kept, np.searchsorted(key, of_entry), -1)
    length = np.bincount(key // max(own.size, 1), minlength=own.owned)
    row_ptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    return row_ptr, (key % max(own.size, 1)).astype(np.int32), place
