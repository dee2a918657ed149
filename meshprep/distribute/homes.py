"""Home ranks of elements: runs of the input's numbers, before parts own them.

Ranks fetch the values of elements from their homes, and find numbers among others in
places.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import distinct, offsets_of, read_only

from ..kernels import Int32s, kernel
from ..kernels.arrays import first_not_below
from .ranks import Ranks, exchanged


@dataclass(frozen=True, eq=False)
class Places:
    """Finds numbers among distinct ones that ascend.

    Buckets of equal ranges, at most as many as there are points, tell where to look: O(1) a
    number where the points are spread evenly, else O(log n). 4 bytes a point.
    """

    points: NDArray[np.integer]  # (n,): distinct, ascending
    first: Int32s  # (buckets + 1,): where each bucket begins
    shift: int  # numbers of a bucket, as a power of 2

    @classmethod
    def among(cls, points: NDArray[np.integer]) -> "Places":
        """Cut the range of the points into buckets of a power of 2. O(n)."""
        span = 0
        if points.size:
            span = int(points[-1]) - int(points[0])
        # A bucket as wide as the mean distance of points, or up to twice as wide.
        mean_distance = span // max(1, points.size)
        shift = max(0, mean_distance.bit_length())
        n_buckets = (span >> shift) + 1
        bucket = (points.astype(np.int64) - points[:1]) >> shift
        count = np.bincount(bucket, minlength=n_buckets)
        return cls(points, offsets_of(count).astype(np.int32), shift)

    def of(self, numbers: NDArray[np.integer]) -> Int32s:
        """How many of the points are below each number."""
        flat = numbers.reshape(-1).astype(self.points.dtype, casting="safe", copy=False)
        places = _count_below(
            points=read_only(self.points),
            first=self.first,
            shift=self.shift,
            numbers=read_only(flat),
        )
        return places.reshape(numbers.shape)

    def known(self, numbers: NDArray[np.integer]) -> Int32s:
        """The place of each number; -1 for those that are none of the points."""
        places = self.of(numbers)
        if self.points.size == 0:
            places[:] = -1
            return places
        # Numbers above all points have the place behind the last one.
        last = self.points.size - 1
        point_at_place = self.points[np.minimum(places, last)]
        places[point_at_place != numbers] = -1
        return places


@kernel
def _count_below(
    points: NDArray[np.integer],
    first: Int32s,
    shift: int,
    numbers: NDArray[np.integer],
) -> Int32s:
    """:meth:`Places.of` by a search in the bucket of each number."""
    out = np.zeros(numbers.size, np.int32)
    if points.size == 0:
        return out
    for i in range(numbers.size):
        distance = np.int64(numbers[i]) - points[0]
        # Numbers up to the first point have none below; those above all points are looked
        # for in the last bucket.
        if distance <= 0:
            continue
        bucket = min(distance >> shift, first.size - 2)
        out[i] = first_not_below(
            values=points,
            begin=first[bucket],
            end=first[bucket + 1],
            value=numbers[i],
        )
    return out


# Rows of a table that a step works on together: bounds its memory beside the result.
ROWS = 1 << 17


@dataclass(frozen=True)
class Homes:
    """A set in runs of consecutive elements, one for each rank."""

    size: int  # elements of the set
    ranks: Ranks

    @property
    def step(self) -> int:
        """Elements of each rank but the last ones."""
        return max(1, -(-self.size // self.ranks.size))

    @property
    def own(self) -> range:
        """The elements that are at home here."""
        begin = min(self.ranks.rank * self.step, self.size)
        return range(begin, min(begin + self.step, self.size))

    def cut(self, elements: NDArray[np.integer]) -> NDArray[np.int64]:
        """First position of each rank's elements in ascending elements."""
        first_of_ranks = np.arange(self.ranks.size + 1) * self.step
        return np.searchsorted(elements, first_of_ranks)

    def pieces(
        self, elements: NDArray[np.integer], rows: NDArray[Any]
    ) -> list[NDArray[Any]]:
        """Rows that go with elements that ascend, for the home of each."""
        return [rows[a:b] for a, b in pairwise(self.cut(elements))]

    def fetch(
        self, values: NDArray[Any], elements: NDArray[np.integer], first: int = 0
    ) -> NDArray[Any]:
        """The values of elements that ascend, from their homes.

        ``values`` are those of the elements at home here; ``first`` is added to all numbers
        in ``elements``.
        """
        if first:
            elements = elements + first
        # Tell each home which elements are wanted, then receive their values in this order.
        wishes = exchanged(self.ranks, self.pieces(elements, elements))
        values_here = [values[wish - self.own.start] for wish in wishes]
        return joined(exchanged(self.ranks, values_here))

    def put(
        self, values: NDArray[Any], elements: NDArray[np.integer], given: NDArray[Any]
    ) -> None:
        """Write ``given`` for elements, in any order, into the values at their homes."""
        # Send elements and their values to the home of each.
        order = np.argsort(elements, kind="stable")
        pieces = self.pieces(elements[order], order)
        elements_of_ranks = exchanged(self.ranks, [elements[piece] for piece in pieces])
        values_of_ranks = exchanged(self.ranks, [given[piece] for piece in pieces])
        # Write what has arrived; rows here count from the first element at home.
        for numbers, rows in zip(elements_of_ranks, values_of_ranks, strict=True):
            values[numbers - self.own.start] = rows


def compact(table: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.int32]]:
    """The distinct numbers of a table, ascending, and their places in the table.

    O(n log n).
    """
    points = distinct(table)
    return points, Places.among(points).of(table)


def blocks(ranks: Ranks, rows: int) -> Iterator[slice]:
    """All rows in blocks of at most :data:`ROWS`; every rank has as many blocks.

    A rank with fewer rows has empty ones at the end: the messages of a block are sent and
    received by all ranks.
    """
    blocks_here = -(-rows // ROWS)
    for i in range(max(ranks.allgather(blocks_here))):
        begin = min(i * ROWS, rows)
        yield slice(begin, min(begin + ROWS, rows))


def by_rows(
    homes: Homes,
    table: NDArray[np.int32],
    values: NDArray[Any],
    work: Callable[[NDArray[Any], NDArray[np.int32]], NDArray[Any]],
    out: NDArray[Any],
) -> NDArray[Any]:
    """Fill ``out`` by ``work(values, rows)``, block by block of rows.

    ``table`` points into the set of ``homes``, and ``values`` are of its elements that are
    at home here. ``work`` takes some values, and rows that point into them.
    """
    for rows in blocks(homes.ranks, len(table)):
        points, local = compact(table[rows])
        fetched = homes.fetch(values, points)
        if len(local):
            out[rows] = work(fetched, local)
    return out


def joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The pieces one after the other; a single piece is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces)
