"""The dofs behind the columns of a rank's rows, and the messages that bring their values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import MeshprepError
from ..program.dat import ProgramDat
from ..program.distributed import DistributedPlan
from ..program.exchange import Transfer
from ..program.row_lists import exchange_by, row_lists
from .products import check_vector
from .stores import CsrMatrix

Vector = NDArray[Any]
COPIES = "copies"


@dataclass(frozen=True, eq=False)
class PartColumns:
    """Which dof each column is."""

    # (columns,): global numbers; those that this rank owns come first, ascending.
    numbers: NDArray[np.int64]
    owned: int
    # (ranks + 1,): rank ``p`` owns ``starts[p]`` to ``starts[p + 1] - 1``.
    starts: NDArray[np.int64]


def columns_of(
    matrix: CsrMatrix,
    plan: DistributedPlan,
    set_name: str,
    free: NDArray[np.integer] | None = None,
) -> PartColumns:
    """The columns of a PartAssembly's matrix; collective.

    The rows and columns are of ``set_name``; ``free`` is the local number of the dof of each
    column, None where every dof has one. Raises MeshprepError for a matrix of another shape.
    """
    own = plan.set_part(set_name)
    free = np.arange(own.size) if free is None else free
    owned = int(np.count_nonzero(free < own.owned))
    if matrix.shape != (owned, free.size):
        raise MeshprepError(
            f"a matrix on '{set_name}' has shape {matrix.shape}, must be {(owned, free.size)} on "
            "this rank: take that of a PartAssembly, and its 'free' where fixed dofs have no row"
        )
    numbers = np.concatenate([own.owned_start + np.arange(own.owned), own.copies])
    starts = [*plan.comm.allgather(own.owned_start), plan.sizes[set_name]]
    return PartColumns(numbers[free], owned, np.array(starts, np.int64))


class ColumnValues:
    """A vector with copies of what other ranks own; all ranks make it, and start it, together.

    ``copies`` are the columns that other ranks are to send.
    """

    def __init__(
        self,
        plan: DistributedPlan,
        columns: PartColumns,
        copies: NDArray[np.integer],
        dtype: DTypeLike,
    ) -> None:
        numbers = columns.numbers
        self._dat = ProgramDat(
            "columns", np.zeros((numbers.size, 1), dtype), 1, "aos", columns.owned
        )
        lists = row_lists(plan.comm, columns.starts, numbers, copies)
        self._exchange = exchange_by(plan, {COPIES: lists})

    @property
    def array(self) -> Vector:
        """The values of all columns; copies are those of the last transfer that has ended."""
        found: Vector = self._dat.array.reshape(-1)
        return found

    def start(self, x: Vector) -> Transfer:
        """Take the owned values, and send what other ranks want of them."""
        check_vector("x", x, self._dat.owned, self._dat.dtype)
        self._dat.values(write=True)[:, 0] = x
        return self._exchange.start([(self._dat, (COPIES,))])
