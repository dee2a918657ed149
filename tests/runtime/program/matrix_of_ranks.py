"""A matrix of random elements that lie on ranks, beside the same on one rank."""

import numpy as np
import scipy.sparse

from meshprep_runtime.matrix import BatchRows

ROWS, COLUMNS, ELEMENTS = 40, 50, 300


def elements():
    """Rows, columns and values of all elements; some without a row or a column."""
    rng = np.random.default_rng(8)
    rows = rng.integers(-1, ROWS - 3, (ELEMENTS, 3))
    columns = rng.integers(-1, COLUMNS, (ELEMENTS, 2))
    return rows, columns, rng.random((ELEMENTS, 6))


def serial():
    """The matrix by scipy."""
    rows, columns, values = elements()
    i, j = np.divmod(np.arange(6), 2)
    r, c = rows[:, i], columns[:, j]
    kept = (r >= 0) & (c >= 0)
    found = scipy.sparse.coo_array((values[kept], (r[kept], c[kept])), (ROWS, COLUMNS)).tocsr()
    found.sort_indices()
    return found


def same_on(comm):
    """True where the rows of this rank are those of one rank, bit for bit; called twice.

    The second rank owns no row where there are more than two.
    """
    ends = np.linspace(0, ROWS, comm.size + 1).astype(int)
    ends[2:3] = ends[1] if comm.size > 2 else ends[2:3]
    share = slice(comm.rank * ELEMENTS // comm.size, (comm.rank + 1) * ELEMENTS // comm.size)
    rows, columns, values = (a[share] for a in elements())
    add_up = BatchRows(comm, ends, rows, columns, COLUMNS)
    add_up(values + 1.0)
    found = add_up(values)
    found.check()
    # one rank adds in the order of the elements
    alone = BatchRows(_Alone(), [0, ROWS], *elements()[:2], COLUMNS)(elements()[2])
    own = slice(*alone.row_ptr[ends[comm.rank : comm.rank + 2]])
    wanted = serial()[ends[comm.rank] : ends[comm.rank + 1]]
    return bool(
        found.shape == wanted.shape
        and np.array_equal(found.columns, wanted.indices)
        and np.array_equal(found.row_ptr, wanted.indptr)
        and abs(found.values - wanted.data).max(initial=0) < 1e-14 * ELEMENTS
        and found.values.tobytes() == alone.values[own].tobytes()
    )


class _Alone:
    """A communicator of one."""

    rank, size = 0, 1

    @staticmethod
    def allgather(value):
        return [value]
