"""Entries of all elements at once: sorted once, summed as often as there are new values [K11]."""

import zlib
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DistributedError, MeshprepError
from ..program.mpi import together
from ..types.maps import INDEX_LIMIT, offsets_of
from .stores import CsrMatrix

# In NumPy's letters.
DTYPES = "?bhilqBHILQfdFD"


class BatchSums:
    """Adds up what goes to one place, with an order that is found once.

    Parameters
    ----------
    place : array of integers
        Where each value is added, flat; -1 for one that is left out.
    n_places : int

    Raises
    ------
    MeshprepError
        For a place that is no whole number from -1 to ``n_places - 1``.

    Notes
    -----
    O(n log n) when it is made, 4 or 8 bytes a value. Values are summed in the order of ``place``,
    on one thread; numba compiles for each dtype at the first call, and keeps it on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep_runtime.matrix import BatchSums
    >>> sums = BatchSums(np.array([[2, 0], [-1, 2]]), 4)
    >>> sums(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 0.0, 5.0, 0.0]
    """

    def __init__(self, place: NDArray[np.integer], n_places: int) -> None:
        flat = place.reshape(-1)
        whole = flat.dtype.kind in "iu" or not flat.size
        if not whole or (flat.size and not -1 <= int(flat.min()) <= int(flat.max()) < n_places):
            raise MeshprepError(f"BatchSums: places must be whole numbers in -1..{n_places - 1}")
        self._size = flat.size
        left_out = np.count_nonzero(flat < 0)
        order = np.argsort(flat, kind="stable")[left_out:]
        # half the bytes to read at every call
        self._order = order.astype(np.int32) if flat.size <= np.iinfo(np.int32).max else order
        # those that are left out come first
        count = np.bincount(flat.astype(np.int64) + 1, minlength=n_places + 1)
        self._offset = np.cumsum(count) - left_out

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sums of these values, which lie as ``place`` does.

        Parameters
        ----------
        values : array
            C-contiguous, of the size of ``place``.

        Returns
        -------
        (n_places,) array
            0 where nothing is added. O(n).

        Raises
        ------
        MeshprepError
            For another number of values, and a dtype that numba does not add.
        """
        check_values(values, self._size, "one a place")
        total = np.zeros(self._offset.size - 1, values.dtype)
        _add_up(self._order, self._offset, np.ascontiguousarray(values).reshape(-1), total)
        return total


def check_values(values: NDArray[Any], size: int, each: str) -> None:
    """Raise MeshprepError unless there are so many, of a dtype that compiled code adds."""
    if values.size != size:
        raise MeshprepError(f"values has shape {values.shape}, must have {size} values: {each}")
    if values.dtype.char not in DTYPES or not values.dtype.isnative:
        raise MeshprepError(
            f"values has dtype {values.dtype}: pass bools, whole numbers, or floats or complex "
            "numbers of single or double precision, in this machine's byte order"
        )


@numba.njit(cache=True, nogil=True)
def _add_up(
    order: NDArray[Any], offset: NDArray[Any], values: NDArray[Any], total: NDArray[Any]
) -> None:
    for p in range(total.size):
        found = total[p]
        for i in range(offset[p], offset[p + 1]):
            found += values[order[i]]
        total[p] = found


class BatchRows:
    """Adds up the rows that this rank owns, entries of other ranks' elements included.

    What is sent to whom, the pattern and the order of the sums are found once; new values cost one
    message to each rank that owns rows of this rank's elements. All ranks make it, and call it,
    together.

    Parameters
    ----------
    comm : MPI.Comm
        Or that of :func:`run_ranks`.
    first_row : (ranks + 1,) integers
        Rank ``p`` owns rows ``first_row[p]`` to ``first_row[p + 1] - 1``.
    rows, columns : (n, local rows), (n, local columns) integers
        Of each element of this rank, in the numbers of the whole matrix; -1 for none.
    n_columns : int, optional
        Of the whole matrix; None where it is square.

    Raises
    ------
    MeshprepError
        For rows and columns outside the matrix.

    Notes
    -----
    Entries are added in the order of the ranks, and on each in that of its elements: the bits are
    those of one rank where ranks have runs of the elements in their order. O(n log n).
    """

    def __init__(
        self,
        comm: Any,
        first_row: ArrayLike,
        rows: NDArray[np.integer],
        columns: NDArray[np.integer],
        n_columns: int | None = None,
    ) -> None:
        first = np.asarray(first_row, np.int64)
        self._comm = comm
        self._n_columns = int(first[-1]) if n_columns is None else n_columns
        _check(comm, first, rows, columns, self._n_columns)
        pair = np.repeat(rows, columns.shape[1], axis=1), np.tile(columns, (1, rows.shape[1]))
        row, column = (entries.reshape(-1).astype(np.int64) for entries in pair)
        self._size = row.size
        owner = np.searchsorted(first, row, side="right") - 1
        owner[(row < 0) | (column < 0)] = -1
        self._send = [np.flatnonzero(owner == rank) for rank in range(comm.size)]
        counts = comm.allgather([entries.size for entries in self._send])
        self._receive = [sent[comm.rank] for sent in counts]
        own = self._exchanged(row) - first[comm.rank]
        key, place = np.unique(own * self._n_columns + self._exchanged(column), return_inverse=True)
        length = np.bincount(key // self._n_columns, minlength=np.diff(first)[comm.rank])
        self._row_ptr = offsets_of(length)
        if self._row_ptr[-1] <= INDEX_LIMIT:
            self._row_ptr = self._row_ptr.astype(np.int32)
        self._columns = (key % self._n_columns).astype(np.int32)
        self._sums = BatchSums(place, key.size)

    def __call__(self, values: NDArray[Any]) -> CsrMatrix:
        """The rows of this rank, from the matrices of its elements.

        Parameters
        ----------
        values : (n, local rows * local columns) array
            Row after row of each; of one dtype on all ranks.

        Returns
        -------
        CsrMatrix
            With columns of the whole matrix.
        """
        self._check(values)
        total = self._sums(self._exchanged(values.reshape(-1)))
        return CsrMatrix(self._row_ptr, self._columns, total, self._n_columns)

    def _check(self, values: NDArray[Any]) -> None:
        """Raise DistributedError on all ranks where the values of one do not fit."""
        each = "one for each entry of an element's matrix"
        together(self._comm, lambda: check_values(values, self._size, each))
        dtypes = self._comm.allgather(values.dtype.str)
        if len(set(dtypes)) > 1:
            other = next(rank for rank, one in enumerate(dtypes) if one != dtypes[0])
            refused = DistributedError(
                f"values are {dtypes[0]} on rank 0 and {dtypes[other]} on rank {other}: they must "
                "be of one dtype"
            )
            refused.ranks = self._comm.size
            raise refused

    def _exchanged(self, values: NDArray[Any]) -> NDArray[Any]:
        """What all ranks have for this one, in the order of the ranks."""
        comm, found, requests, kept = self._comm, [], [], []
        for rank, (entries, count) in enumerate(zip(self._send, self._receive, strict=True)):
            mine = values[entries]
            if rank == comm.rank:
                found.append(mine)
                continue
            kept.append(mine)
            found.append(np.empty(count, values.dtype))
            if count:
                requests.append(comm.Irecv(found[-1].view(np.uint8), rank))
            if mine.size:
                requests.append(comm.Isend(mine.view(np.uint8), rank))
        for request in requests:
            request.Wait()
        return np.concatenate(found)


def _check(
    comm: Any,
    first: NDArray[np.int64],
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    n_columns: int,
) -> None:
    """Raise MeshprepError on all ranks where one has indices outside."""
    ranges = ((rows, int(first[-1])), (columns, n_columns))
    fits = all(
        not t.size or (t.dtype.kind in "iu" and t.min() >= -1 and t.max() < end)
        for t, end in ranges
    )
    fits = fits and len(rows) == len(columns) and n_columns <= INDEX_LIMIT
    told = comm.allgather((bool(fits), zlib.crc32(first.tobytes()), n_columns))
    wrong = [rank for rank, (fine, _, _) in enumerate(told) if not fine]
    if first.size != comm.size + 1 or first[0] != 0 or (np.diff(first) < 0).any():
        raise MeshprepError(
            f"first_row must rise from 0 in {comm.size + 1} numbers, one more than there are ranks"
        )
    if len({shape[1:] for shape in told}) > 1:
        raise MeshprepError("first_row and n_columns must be the same on all ranks")
    if wrong:
        raise MeshprepError(
            f"rank {wrong[0]} has rows or columns outside the {first[-1]} x {n_columns} matrix, or "
            "not as many of the one as of the other, or fractions among them"
        )
