"""Products on ranks: rows without copies are multiplied while messages are under way."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..cpu.schedule import Turns
from ..errors import MeshprepError
from ..plan.parts import MapPart, Messages
from ..program.dat import ProgramDat
from ..program.distributed import DistributedPlan
from ..program.exchange import Exchange, Transfer
from ..types.maps import distinct, offsets_of
from .code import PIECE, MatrixCode
from .products import check_out, check_threads, check_vector, csr_code
from .stores import CsrMatrix, check_matrix

if TYPE_CHECKING:
    from ..program.distributed import DistributedPlan

Vector = NDArray[Any]
# Rows without copies run in at most so many steps, each of so many ranges at least; messages are
# looked after in between.
MOST_STEPS, LEAST_RANGES = 4, 8


class PartProduct:
    """``y = A x`` on ranks: each multiplies its rows; all ranks make it, and call it, together.

    While messages bring the copies of x, the rows run that need none. The bits are those of a
    :class:`Product` of the rank's rows.

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
    free : (columns,) integers, optional
        ``PartAssembly.free``, where fixed dofs have no row.

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
        *,
        free: NDArray[np.integer] | None = None,
    ) -> None:
        check_matrix(matrix)
        check_threads(threads)
        columns = columns_of(matrix, plan, set_name, free)
        needs_copies = _rows_reaching(matrix, columns.owned)
        copies = distinct(matrix.columns[matrix.columns >= columns.owned])
        self._x = ColumnValues(plan, columns, copies, matrix.values.dtype)
        self._without_copies = csr_code(matrix, PIECE, ~needs_copies)
        self._with_copies = csr_code(matrix, PIECE, needs_copies)
        self._steps = _steps(self._without_copies)
        self.matrix = matrix
        self.threads = threads

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
        rows, dtype = self.matrix.shape[0], self.matrix.values.dtype
        y = np.empty(rows, dtype) if out is None else out
        check_out(y, rows, dtype)
        transfer = self._x.start(x)
        for turns in self._steps:
            self._without_copies.run(self._x.array, y, self.threads, turns)
            transfer.test()
        transfer.finish()
        self._with_copies.run(self._x.array, y, self.threads)
        return y


def _rows_reaching(matrix: CsrMatrix, owned: int) -> NDArray[np.bool_]:
    """The rows with a column of another rank."""
    found = np.zeros(matrix.shape[0], np.bool_)
    nonzeros = np.flatnonzero(matrix.columns >= owned)
    found[np.searchsorted(matrix.row_ptr, nonzeros, side="right") - 1] = True
    return found


def _steps(code: MatrixCode) -> list[Turns]:
    turns = code.schedule.n_turns
    count = max(min(MOST_STEPS, turns // LEAST_RANGES), 1)
    cuts = np.linspace(0, turns, count + 1).astype(int).tolist()
    return [code.schedule.between(first, last) for first, last in pairwise(cuts)]


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
        part = replace(plan.part, sets={}, maps={}, loops={}, partial={COPIES: lists})
        self._exchange = Exchange(plan.comm, part, plan.messages.timeout)

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


TAG = 15


def to_each(comm: Any, values: Mapping[int, Any]) -> dict[int, Any]:
    """Send something to some ranks; collective. What came, by the rank that sent it."""
    packed = {p: np.frombuffer(pickle.dumps(v), np.uint8).copy() for p, v in values.items()}
    sizes = comm.allgather({p: one.size for p, one in packed.items()})
    coming = {p: np.empty(to[comm.rank], np.uint8) for p, to in enumerate(sizes) if comm.rank in to}
    requests = [comm.Irecv(one, p, TAG) for p, one in coming.items()]
    requests += [comm.Isend(one, p, TAG) for p, one in packed.items()]
    if requests:
        requests[0].Waitall(requests)
    return {p: pickle.loads(one.tobytes()) for p, one in coming.items()}


def owner_of(starts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank that owns each number; rank ``p`` owns ``starts[p]`` to ``starts[p + 1] - 1``."""
    found: NDArray[np.int64] = np.searchsorted(starts, numbers, side="right") - 1
    return found


def row_lists(
    comm: Any, starts: NDArray[np.int64], numbers: NDArray[np.int64], rows: NDArray[np.integer]
) -> MapPart:
    """What is sent and received so that this rank has some rows; collective.

    ``starts`` are those of :func:`owner_of`. ``numbers`` are the global numbers of the rows of an
    array; those that this rank owns come first, ascending. ``rows`` are those that other ranks own
    and send.
    """
    owner = owner_of(starts, numbers[rows])
    wanted = {int(p): rows[owner == p] for p in np.unique(owner)}
    asked = to_each(comm, {p: numbers[at] for p, at in wanted.items()})
    own = numbers[owner_of(starts, numbers) == comm.rank]
    sent = {p: np.searchsorted(own, which) for p, which in asked.items()}
    return MapPart(_listed(sent), _listed(wanted))


def _listed(rows: Mapping[int, NDArray[np.integer]]) -> Messages:
    parts = sorted(rows)
    offset = offsets_of([rows[p].size for p in parts])
    every = np.concatenate([np.zeros(0, np.int64), *(rows[p] for p in parts)])
    return Messages(np.array(parts, np.int32), offset.astype(np.int64), every.astype(np.int32))
