"""Products on ranks, whose exchange may hide behind rows without copies [R14 6.3]."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..program.dat import EXEC, HALO
from ..program.distributed import DistributedPlan
from ..program.ranks import RankGroup
from . import kernels
from .code import MatrixCode, row_schedule
from .parts import check_part_matrix
from .products import Product, check_out, check_threads, check_vector, csr_arrays
from .stores import CsrMatrix

Vector = NDArray[Any]
# Rows that need no copies run in steps of so many nonzeros and at most so many steps, with
# a look at the messages after each: most MPIs move messages only when they are called.
STEP_NONZEROS = 1 << 16
MOST_STEPS = 4
# Calls of each way that are timed.
TURNS = 9


class PartProduct:
    """``y = A x`` on ranks; all ranks make it, and call it, together.

    Each rank multiplies its rows. Messages bring the copies of x first, or while the rows
    run that need no copies. The bits are those of a :class:`Product` of the rank's rows.

    Parameters
    ----------
    matrix : CsrMatrix
        The matrix of a :class:`PartAssembly`. Its arrays are not copied: values may change
        between calls, the pattern must not.
    plan : DistributedPlan
    set_name : str
        The set of the rows and columns.
    threads : int, optional
        As of a :class:`Product`.
    overlap : bool, optional
        True: rows that need no copies run while messages travel. False: messages come
        first. None: the faster of both, which is timed when the product is made.

    Attributes
    ----------
    overlap : bool
        Which of both runs.

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
        overlap: bool | None = None,
    ) -> None:
        """Check the shape, and make a dat for x with its copies; all ranks together.

        Parameters and errors are those of the class. O(nonzeros); with ``overlap=None``
        some twenty products.
        """
        check_threads(threads)
        self._product = Product(matrix, threads=threads)
        self._owned = check_part_matrix(matrix, plan, set_name).owned
        self._plan = plan
        self._threads = threads
        self._dtype = matrix.values.dtype
        self._x = plan.dat(set_name, 1, self._dtype.str[1:])
        # The rows with a column that another rank owns wait for the messages.
        needs_copies = _rows_with_columns_from(matrix, self._owned)
        arrays = csr_arrays(matrix)
        self._steps = []
        n_steps = min(MOST_STEPS, 1 + matrix.columns.size // STEP_NONZEROS)
        for rows in np.array_split(np.arange(self._owned), n_steps):
            in_step = np.zeros(self._owned, np.bool_)
            in_step[rows] = True
            schedule = row_schedule(matrix.row_ptr, chosen=in_step & ~needs_copies)
            if schedule.n_turns:
                self._steps.append(MatrixCode(kernels.csr_rows, arrays, schedule))
        rest = row_schedule(matrix.row_ptr, chosen=needs_copies)
        self._with_copies = MatrixCode(kernels.csr_rows, arrays, rest)
        self.overlap = bool(overlap)
        if overlap is None:
            x = np.zeros(self._owned, self._dtype)
            ways = [lambda: self._call_in_order(x), lambda: self._call_overlapped(x)]
            self.overlap = bool(fastest_of(plan.ranks, ways))

    def __matmul__(self, x: Vector) -> Vector:
        return self(x)

    def __call__(self, x: Vector, out: Vector | None = None) -> Vector:
        """Multiply; all ranks together.

        Parameters
        ----------
        x : (rows,) array
        out : (rows,) array, optional
            The array for the result.

        Returns
        -------
        (rows,) array
        """
        check_vector(name="x", array=x, size=self._owned, dtype=self._dtype)
        if self.overlap:
            return self._call_overlapped(x, out)
        return self._call_in_order(x, out)

    def _call_in_order(self, x: Vector, out: Vector | None = None) -> Vector:
        self._x.array[: self._owned] = x
        self._plan.update(self._x)
        return self._product(self._x.array, out)

    def _call_overlapped(self, x: Vector, out: Vector | None = None) -> Vector:
        y = np.empty(self._owned, self._dtype) if out is None else out
        check_out(y, self._owned, self._dtype)
        x_and_copies = self._x.array
        x_and_copies[: self._owned] = x
        transfer = self._plan.start_update(self._x)
        for step in self._steps:
            step.run(x_and_copies, y, self._threads)
            transfer.test()
        transfer.finish()
        self._x.fresh = {EXEC, HALO}
        if self._with_copies.schedule.n_turns:
            self._with_copies.run(x_and_copies, y, self._threads)
        return y


def _rows_with_columns_from(matrix: CsrMatrix, first: int) -> NDArray[np.bool_]:
    """The rows with a column from ``first`` on."""
    rows = np.zeros(matrix.shape[0], np.bool_)
    entries = np.flatnonzero(matrix.columns >= first)
    rows[np.searchsorted(matrix.row_ptr, entries, side="right") - 1] = True
    return rows


def fastest_of(ranks: RankGroup, ways: Sequence[Callable[[], object]]) -> int:
    """The number of the way whose fastest call takes the least time on the slowest rank.

    All ranks call it together, with the same ways, and get the same number.
    """
    seconds = np.empty((TURNS, len(ways)))
    # The first calls compile.
    for way in ways:
        way()
    for turn in seconds:
        for i, way in enumerate(ways):
            start = time.perf_counter()
            way()
            turn[i] = time.perf_counter() - start
    slowest = np.max(ranks.allgather(seconds), axis=0)
    return int(np.argmin(slowest.min(axis=0)))
