"""Several products with one exchange: a rank has rows around its own, too [R14 4.5.3].

Ring 0 is the rows that a rank owns. Ring ``j`` is the columns of the rings before that none
of them has. With the values of x on ``count`` rings, a rank computes ``A x`` on all rings
but the last, then ``A A x`` on all but the last two, and so on, without a message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_integer
from ..plan.parts import MapPart, Messages
from ..program.dat import make_dat
from ..program.distributed import DistributedPlan
from ..program.exchange import Exchange
from ..program.ranks import RankGroup
from ..types.maps import distinct_without, offsets_of, ranges
from .part_products import PartProduct, fastest_of
from .parts import check_part_matrix
from .products import Product, check_vector
from .stores import CsrMatrix, check_matrix

Vector = NDArray[Any]
Numbers = NDArray[np.int64]
# The name of the list of copies of x on the rings, and of the step in errors.
RINGS = "rings"
MAKING = "the rings of a PartPowers"


class PartPowers:
    """``A x, A A x, ...`` on ranks; all ranks make it, and call it, together.

    So many products with one exchange, or with one each, whichever is faster here. The bits
    are the same: those of a :class:`PartProduct` called again and again.

    Parameters
    ----------
    matrix : CsrMatrix
        The matrix of a :class:`PartAssembly`; its values are copied.
    plan : DistributedPlan
    set_name : str
        The set of the rows and columns.
    count : int
        The number of products.
    threads : int, optional
        As of a :class:`Product`.
    one_exchange : bool, optional
        True: one exchange for all products; rows around those of a rank are computed
        again. False: a PartProduct for each. None: the faster of both, which is timed when
        the object is made.

    Attributes
    ----------
    one_exchange : bool
        Which of both runs.
    ends : list of int
        Where each ring of rows ends, from the rows that the rank owns on.

    Raises
    ------
    MeshprepError
        For a matrix of another shape, and for a ``count`` below 1.

    Notes
    -----
    One exchange pays where a message costs more than the rows of the rings: for few rows a
    rank. Messages are larger, up to ``count`` times, and ``count`` times as few.
    """

    def __init__(
        self,
        matrix: CsrMatrix,
        plan: DistributedPlan,
        set_name: str,
        count: int,
        threads: int | None = None,
        *,
        one_exchange: bool | None = None,
    ) -> None:
        """Fetch the rows of the rings from their owners; all ranks together.

        Parameters and errors are those of the class. O(nonzeros log nonzeros) and ``count``
        exchanges; with ``one_exchange=None`` some twenty calls.
        """
        check_integer("count", count)
        check_matrix(matrix)
        set_part = check_part_matrix(matrix, plan, set_name)
        self._ranks = plan.ranks
        self._owned = set_part.owned
        self._count = count
        self._dtype = matrix.values.dtype
        self._product = PartProduct(matrix, plan, set_name, threads)
        # Fetch the rows ring by ring, each from the rank that owns it.
        starts = plan.ranks.allgather(set_part.owned_start)
        owned_start = np.array([*starts, plan.sizes[set_name]], np.int64)
        own = set_part.owned_start + np.arange(set_part.owned)
        columns = np.concatenate([own, set_part.copies])[matrix.columns]
        own_rows = Rows(columns, matrix.values, np.diff(matrix.row_ptr).astype(np.int64))
        numbers, self.ends, rows = _grow(plan.ranks, owned_start, own, own_rows, count)
        self._products = _products(numbers, self.ends, rows, threads)
        # A message brings x on all rings at once.
        self._x = make_dat(set_name, (numbers.size, self._owned), 1, self._dtype.str[1:])
        lists = _messages_for(plan.ranks, owned_start, numbers, self._owned)
        part = replace(plan.part, partial={RINGS: lists})
        self._exchange = Exchange(plan.ranks, part)
        self.one_exchange = bool(one_exchange)
        if one_exchange is None:
            x = np.zeros(self._owned, self._dtype)
            ways = [lambda: self._multiply_each(x), lambda: self._multiply_rings(x)]
            self.one_exchange = bool(fastest_of(plan.ranks, ways))

    def __call__(self, x: Vector) -> list[Vector]:
        """Multiply again and again; all ranks together.

        Parameters
        ----------
        x : (rows,) array
            For the rows that this rank owns.

        Returns
        -------
        list of (rows,) array
            The first product, the second, and so on.

        Raises
        ------
        MeshprepError
            For an array of another size or type.
        """
        check_vector(name="x", array=x, size=self._owned, dtype=self._dtype)
        if self.one_exchange:
            return self._multiply_rings(x)
        return self._multiply_each(x)

    def _multiply_each(self, x: Vector) -> list[Vector]:
        powers = []
        for _ in range(self._count):
            x = self._product(x)
            powers.append(x)
        return powers

    def _multiply_rings(self, x: Vector) -> list[Vector]:
        # Bring x on all rings.
        values = self._x.array
        values[: self._owned] = x
        what = f"{self._count} products with one exchange"
        self._ranks.begin(what, [])
        self._exchange.start(what, [(self._x, (RINGS,))]).finish()
        # Each product has a ring less than the one before.
        powers = []
        for product in self._products:
            values = product(values)
            powers.append(values[: self._owned])
        return powers


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a matrix, one after the other, with global numbers as columns."""

    columns: Numbers
    values: Vector
    lengths: Numbers

    def some(self, rows: Numbers) -> "Rows":
        """The rows of these places. O(entries of these rows)."""
        entries = ranges(offsets_of(self.lengths)[rows], self.lengths[rows])
        return Rows(self.columns[entries], self.values[entries], self.lengths[rows])

    def followed_by(self, others: "list[Rows]") -> "Rows":
        """These rows and then others."""
        every = [self, *others]
        return Rows(
            columns=np.concatenate([rows.columns for rows in every]),
            values=np.concatenate([rows.values for rows in every]),
            lengths=np.concatenate([rows.lengths for rows in every]),
        )


def _grow(
    ranks: RankGroup, owned_start: Numbers, own: Numbers, rows: Rows, count: int
) -> tuple[Numbers, list[int], Rows]:
    """The numbers ring by ring, where each ring ends, and the rows of all but the last."""
    own_rows = rows
    numbers = own
    ends = [own.size]
    ring = distinct_without(rows.columns, own)
    for number_of_ring in range(1, count + 1):
        numbers = np.concatenate([numbers, ring])
        ends.append(numbers.size)
        if number_of_ring < count:
            # Ask the owners for the rows of this ring; its columns are the next one.
            asked = ranks.exchange(_by_owner(owned_start, ring), MAKING)
            answers = {
                rank: own_rows.some(wanted - owned_start[ranks.rank])
                for rank, wanted in asked.items()
            }
            answered = ranks.exchange(answers, MAKING)
            # Numbers ascend from rank to rank, and so do those of the ring.
            rows = rows.followed_by([answered[rank] for rank in sorted(answered)])
            ring = distinct_without(rows.columns, numbers)
    return numbers, ends, rows


def _by_owner(owned_start: Numbers, numbers: Numbers) -> dict[int, Numbers]:
    """Ascending numbers by the rank that owns them.

    Rank ``p`` owns ``owned_start[p]`` to ``owned_start[p + 1] - 1``.
    """
    cuts = np.searchsorted(numbers, owned_start)
    by_owner = {}
    for rank in range(owned_start.size - 1):
        if cuts[rank] < cuts[rank + 1]:
            by_owner[rank] = numbers[cuts[rank] : cuts[rank + 1]]
    return by_owner


def _products(
    numbers: Numbers, ends: list[int], rows: Rows, threads: int | None
) -> list[Product]:
    """The products in their order, each on a ring less; they share the entries."""
    # The place of each column among the numbers. Entries keep the order that they have on
    # the rank that owns the row, so that a sum has the same bits on all ranks.
    order = np.argsort(numbers)
    place = order[np.searchsorted(numbers, rows.columns, sorter=order)]
    columns = place.astype(np.int32)
    row_ptr = offsets_of(rows.lengths)
    products = []
    for ring in range(len(ends) - 2, -1, -1):
        n_rows = ends[ring]
        n_entries = int(row_ptr[n_rows])
        matrix = CsrMatrix(
            row_ptr=row_ptr[: n_rows + 1],
            columns=columns[:n_entries],
            values=rows.values[:n_entries],
            n_columns=ends[ring + 1],
        )
        products.append(Product(matrix, threads=threads))
    return products


def _messages_for(
    ranks: RankGroup, owned_start: Numbers, numbers: Numbers, owned: int
) -> MapPart:
    """What is sent and received so that this rank has the values of these numbers.

    The first ``owned`` numbers are its own, ascending.
    """
    # Sort the copies by number, so that both sides have the same order.
    copies = owned + np.argsort(numbers[owned:])
    copies_of_rank = _by_owner(owned_start, numbers[copies])
    asked = ranks.exchange(copies_of_rank, MAKING)
    sent = {rank: which - owned_start[ranks.rank] for rank, which in asked.items()}
    received = {}
    first = 0
    for rank, which in copies_of_rank.items():
        received[rank] = copies[first : first + which.size]
        first += which.size
    return MapPart(send=_as_messages(sent), receive=_as_messages(received))


def _as_messages(rows: Mapping[int, Numbers]) -> Messages:
    """Lists of rows, by the other rank."""
    parts = sorted(rows)
    every = [np.zeros(0, np.int64), *(rows[part] for part in parts)]
    return Messages(
        parts=np.array(parts, np.int32),
        offset=offsets_of([rows[part].size for part in parts]),
        rows=np.concatenate(every).astype(np.int32),
    )
