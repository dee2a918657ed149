"""Matrices on a mesh in parts: each rank assembles the rows that it owns."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..kernel.bind import Layout
from ..loop import ParLoop
from ..plan import LoopPlan
from ..plan.parts import LoopPart, SetPart
from ..program.dat import ProgramDat
from ..program.distributed import DistributedPlan
from ..program.layouts import LoopLayouts, check_sets
from ..program.part_loop import PartLoop
from ..types.loops import Arg
from ..types.maps import distinct, offsets_of
from .batch import BatchSums
from .stores import CsrMatrix

Vector = NDArray[Any]


class PartAssembly:
    """Assembles the rows that this rank owns; all ranks make it, and call it, together.

    A rank also computes the matrices of other ranks' elements that reach its dofs, so that
    no entry is sent. The pattern, and the order of the sums, are found once.

    Parameters
    ----------
    kernel : function
        As of an :class:`Assembly`.
    plan : DistributedPlan
    loop : str
        A loop of the plan that adds to one square matrix.
    fixed : ProgramDat, optional
        On the set of the rows; not 0 for dofs with a prescribed value. Their rows and
        columns are those of the identity; the zeros are stored.
    strategy : str
        As of a loop on ranks.

    Raises
    ------
    MeshprepError
        For a loop without a matrix or with several, one with other rows than columns, and
        ``fixed`` on another set.

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
        """Find the pattern and the order of the sums; all ranks together.

        Parameters, errors and cost are those of the class.
        """
        part = plan.part.loops[plan[loop].loop.name]
        self._arg = _square_matrix(part)
        self.set = part.plan.maps[str(self._arg.map)].to_set
        set_part = plan.set_part(self.set)

        def make_loop(loop_plan: LoopPlan, layout: Layout) -> ParLoop:
            return ParLoop(kernel=kernel, plan=loop_plan, strategy=strategy, layout=layout)

        layouts = LoopLayouts(make_loop, part.plan, None)
        self._loop = PartLoop(
            layouts=layouts, part=part, whole=plan.part, exchange=plan.messages
        )
        self._changed = [n for n in part.plan.loop.written if n != self._arg.name]
        table = part.plan.maps[str(self._arg.map)].table
        self._pattern = _pattern(table, set_part.owned, _free_dofs(fixed, plan, self.set))
        self._size = set_part.size
        # The matrices of the elements, which are summed after the loop.
        self._values = np.zeros((len(table), table.shape[1] ** 2), self._arg.dtype)
        self._sums = BatchSums(self._pattern.place, self._pattern.columns.size)

    def __call__(self, /, **given: Any) -> CsrMatrix:
        """The rows of this rank, in new memory.

        Parameters
        ----------
        **given : ProgramDat or what a ParLoop takes
            The other arguments of the loop.

        Returns
        -------
        CsrMatrix
            A row for each dof that this rank owns, and a column for each dof that it has:
            first those that it owns, then the copies, in the order of the rows of dats.
        """
        # Checked on all ranks: on some a dat on another set may have as many rows.
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
        # Sum in an order that is always the same; prescribed dofs have rows of the
        # identity.
        values = self._sums(self._values)
        values[self._pattern.identity] = 1
        return CsrMatrix(
            row_ptr=self._pattern.row_ptr,
            columns=self._pattern.columns,
            values=values,
            n_columns=self._size,
        )


def check_part_matrix(matrix: CsrMatrix, plan: DistributedPlan, set_name: str) -> SetPart:
    """The rows of a set on this rank; raises MeshprepError where a matrix has others."""
    set_part = plan.set_part(set_name)
    if matrix.shape != (set_part.owned, set_part.size):
        raise MeshprepError(
            f"a matrix on '{set_name}' has shape {matrix.shape}, must be "
            f"{(set_part.owned, set_part.size)} on this rank: take that of a PartAssembly"
        )
    return set_part


def dot_on(plan: DistributedPlan) -> Callable[[Vector, Vector], float]:
    """The scalar product of vectors on ranks, as in ``cg(..., dot=dot_on(plan))``.

    Parameters
    ----------
    plan : DistributedPlan

    Returns
    -------
    function
        The scalar product of two vectors of owned rows, the same number on all ranks. A
        call takes one message.
    """
    ranks = plan.ranks

    def dot(a: Vector, b: Vector) -> float:
        own_sum = np.array([float(a @ b)])
        messages = ranks.meet("a scalar product", own_sum.view(np.uint8)).finish()
        sums = np.ascontiguousarray(messages[:, : own_sum.nbytes]).view(np.float64)
        return float(sums.sum())

    return dot


def _square_matrix(part: LoopPart) -> Arg:
    """The matrix of a loop; raises MeshprepError unless it is a single square one."""
    loop = part.plan.loop
    if len(loop.matrices) != 1:
        raise MeshprepError(
            f"loop '{loop.name}' adds to {len(loop.matrices)} matrices: a PartAssembly "
            "takes a loop with one"
        )
    (arg,) = loop.matrices
    if arg.columns != arg.map:
        raise MeshprepError(
            f"matrix '{arg.name}' has other rows than columns, which ranks cannot have: "
            "assemble it on one rank"
        )
    return arg


def _free_dofs(
    fixed: ProgramDat | None, plan: DistributedPlan, set_name: str
) -> NDArray[np.bool_]:
    """Whether each dof of this rank is free; all ranks call it together."""
    size = plan.set_part(set_name).size
    if fixed is None:
        return np.ones(size, np.bool_)
    if fixed.set != set_name:
        raise MeshprepError(f"fixed is {fixed!r}, must be a dat on '{set_name}'")
    plan.update(fixed)
    # A dof is fixed if any of its components is.
    rows = fixed.array.T if fixed.axis else fixed.array
    free: NDArray[np.bool_] = (rows == 0).reshape(size, fixed.dim).all(axis=1)
    return free


class PartPattern(NamedTuple):
    """The pattern of a rank's rows, and the nonzeros that elements add to."""

    row_ptr: NDArray[np.int32]  # row offsets
    columns: NDArray[np.int32]  # the dof of each nonzero
    # (elements, n, n): the nonzero to which each entry of an element's matrix is added, -1
    # for none.
    place: NDArray[np.int64]
    # The nonzeros that are 1: on the diagonal of fixed rows, also where no element adds.
    identity: NDArray[np.int64]


def _pattern(table: NDArray[np.int32], owned: int, free: NDArray[np.bool_]) -> PartPattern:
    """The pattern of a rank's rows, with a column for each dof of the rank."""
    columns = max(free.size, 1)
    row = table[:, :, None].astype(np.int64)
    column = table[:, None, :]
    # The key of an entry: row by row, column by column.
    key_of_entry = row * columns + column
    in_owned_row = np.broadcast_to(row < owned, key_of_entry.shape)
    diagonal_keys = np.flatnonzero(~free[:owned]) * (columns + 1)
    keys = distinct(np.concatenate([key_of_entry[in_owned_row], diagonal_keys]))
    summed = in_owned_row & free[row] & free[column]
    row_ptr = offsets_of(np.bincount(keys // columns, minlength=owned)).astype(np.int32)
    return PartPattern(
        row_ptr=row_ptr,
        columns=(keys % columns).astype(np.int32),
        place=np.where(summed, np.searchsorted(keys, key_of_entry), -1),
        identity=np.searchsorted(keys, diagonal_keys),
    )
