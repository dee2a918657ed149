"""Several products with one exchange: a rank also has rows around its own, in rings [R14 4.5.3]."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_integer
from ..maps import INDEX_LIMIT, distinct_without, offsets_of, rows_of_entries
from ..program.distributed import DistributedPlan
from ..program.row_lists import owner_of, to_each
from .part_columns import ColumnValues, PartColumns, columns_of
from .products import Product
from .stores import CsrMatrix

Vector = NDArray[Any]
# Global columns, values, and how many there are in each row; those that are owned come first.
Rows = tuple[NDArray[np.int64], Vector, NDArray[np.int64]]


class PartPowers:
    """``A x, A A x, ...``, so many products with one exchange; made and called on all ranks.

    Parameters
    ----------
    matrix : CsrMatrix
        Of a :class:`PartAssembly`; its values are copied.
    plan : DistributedPlan
    set_name : str
        The set of the rows and columns.
    count : int
        How many products.
    threads : int, optional
        As of a :class:`Product`.
    free : (columns,) integers, optional
        ``PartAssembly.free``, where fixed dofs have no row.

    Raises
    ------
    MeshprepError
        For a matrix of another shape, and for a ``count`` below 1.

    Notes
    -----
    Ring 0 is what a rank owns; ring ``j`` is what the rows of the rings before reach beyond them.
    Product ``s`` computes the rows of the first ``count - s`` rings. With one product this is a
    :class:`PartProduct`; each further one sends nothing, and computes the rings again.
    """

    def __init__(
        self,
        matrix: CsrMatrix,
        plan: DistributedPlan,
        set_name: str,
        count: int,
        threads: int | None = None,
        *,
        free: NDArray[np.integer] | None = None,
    ) -> None:
        check_integer("count", count)
        columns = columns_of(matrix, plan, set_name, free)
        comm, starts = plan.comm, columns.starts
        own = columns.numbers[: columns.owned]
        lengths = np.diff(matrix.row_ptr).astype(np.int64)
        rows = columns.numbers[matrix.columns], matrix.values, lengths
        numbers, self.ends, rows = _grown(comm, starts, own, rows, count)
        self._products = _products(numbers, self.ends, rows, threads)
        grown = PartColumns(numbers, columns.owned, starts)
        copies = np.arange(columns.owned, numbers.size)
        self._x = ColumnValues(plan, grown, copies, matrix.values.dtype)

    def __call__(self, x: Vector) -> list[Vector]:
        """Multiply again and again; all ranks together.

        Parameters
        ----------
        x : (owned,) array

        Returns
        -------
        list of (owned,) array
            The first product, the second, and so on.
        """
        self._x.start(x).finish()
        values, found = self._x.array, []
        for product in self._products:
            values = product(values)
            found.append(values[: self.ends[0]])
        return found


def _grown(
    comm: Any, starts: NDArray[np.int64], own: NDArray[np.int64], rows: Rows, count: int
) -> tuple[NDArray[np.int64], list[int], Rows]:
    """Numbers ring by ring, where each ring ends, and the rows of all but the last; collective."""
    numbers, ends = own, [own.size]
    new = distinct_without(rows[0], own)
    for ring in range(1, count + 1):
        numbers = np.concatenate([numbers, new])
        ends.append(numbers.size)
        if ring == count:
            break
        more = _asked(comm, starts, (own, rows), new)
        rows = _joined(rows, more)
        new = distinct_without(more[0], numbers)
    return numbers, ends, rows


def _asked(
    comm: Any,
    starts: NDArray[np.int64],
    here: tuple[NDArray[np.int64], Rows],
    wanted: NDArray[np.int64],
) -> Rows:
    """The rows of these numbers, ascending, from their owners; collective.

    ``here``: the numbers that this rank owns, and rows, of which theirs come first.
    """
    own, (columns, values, length) = here
    owner = owner_of(starts, wanted)
    asked = to_each(comm, {int(p): wanted[owner == p] for p in np.unique(owner)})
    offset = offsets_of(length)
    told = {}
    for p, which in asked.items():
        at = np.searchsorted(own, which)
        entries = np.concatenate(
            [np.zeros(0, np.int64), *map(np.arange, offset[at], offset[at + 1])]
        )
        told[p] = columns[entries], values[entries], length[at]
    # ascending ranks own ascending numbers
    found = [came for _, came in sorted(to_each(comm, told).items())]
    return _joined((np.zeros(0, np.int64), values[:0], np.zeros(0, np.int64)), *found)


def _joined(first: Rows, *more: Rows) -> Rows:
    columns, values, length = (np.concatenate(of) for of in zip(first, *more, strict=True))
    return columns, values, length


def _products(
    numbers: NDArray[np.int64], ends: list[int], rows: Rows, threads: int | None
) -> list[Product]:
    """The products in their order, each on fewer rings; they share the entries."""
    order = np.argsort(numbers)
    columns = order[np.searchsorted(numbers, rows[0], sorter=order)].astype(np.int32)
    offset = offsets_of(rows[2])
    sorted_in_rows = np.lexsort((columns, rows_of_entries(offset)))
    columns, values = columns[sorted_in_rows], rows[1][sorted_in_rows]
    offset = offset.astype(np.int32) if columns.size <= INDEX_LIMIT else offset
    found = []
    for n_rows, n_columns in zip(ends[-2::-1], ends[:0:-1], strict=True):
        entries = int(offset[n_rows])
        one = CsrMatrix(offset[: n_rows + 1], columns[:entries], values[:entries], n_columns)
        found.append(Product(one, threads=threads))
    return found
