"""Home ranks of elements (by input number, before parts own them), fetching, and places."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import distinct, offsets_of, read_only

from ...kernels import Int32s, kernel
from ...kernels.arrays import first_not_below
from ..ranks import Ranks, exchanged


@dataclass(frozen=True, eq=False)
class Places:
    """Finds numbers among distinct ones that ascend.

    Buckets of equal ranges, at most as many as there are points, tell where to look: O(1) a number
    where the points are spread evenly, else O(log n). 4 bytes a point.
    """

    points: NDArray[np.integer]  # (n,): distinct, ascending
    first: Int32s  # (buckets + 1,): where each bucket begins
    shift: int  # numbers of a bucket, as a power of 2

    @classmethod
    def among(cls, points: NDArray[np.integer]) -> "Places":
        span = int(points[-1]) - int(points[0]) if points.size else 0
        shift = max(0, (span // max(1, points.size)).bit_length())
        bucket = (points.astype(np.int64) - points[:1]) >> shift
        count = np.bincount(bucket, minlength=(span >> shift) + 1)
        return cls(points, offsets_of(count).astype(np.int32), shift)

    def of(self, numbers: NDArray[np.integer]) -> Int32s:
        """For each number how many of the points are below it."""
        flat = numbers.reshape(-1).astype(self.points.dtype, casting="safe", copy=False)
        found = _places(read_only(self.points), self.first, self.shift, read_only(flat))
        return found.reshape(numbers.shape)

    def known(self, numbers: NDArray[np.integer]) -> Int32s:
        """The place of each number; -1 for those that are none of the points."""
        found = self.of(numbers)
        if self.points.size:
            found[self.points[np.minimum(found, self.points.size - 1)] != numbers] = -1
        else:
            found[:] = -1
        return found


@kernel
def _places(
    points: NDArray[np.integer], first: Int32s, shift: int, numbers: NDArray[np.integer]
) -> Int32s:
    out = np.zeros(numbers.size, np.int32)
    for i in range(numbers.size if points.size > 0 else 0):
        away = np.int64(numbers[i]) - points[0]
        bucket = min(away >> shift, first.size - 2)
        if away <= 0:
            continue
        out[i] = first_not_below(points, first[bucket], first[bucket + 1], numbers[i])
    return out


# Rows that are looked at together: bounds what a step needs beside its result.
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
        return np.searchsorted(elements, np.arange(self.ranks.size + 1) * self.step)

    def pieces(self, elements: NDArray[np.integer], rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows that go with elements that ascend, for the home of each."""
        return [rows[a:b] for a, b in pairwise(self.cut(elements))]

    def fetch(
        self, values: NDArray[Any], elements: NDArray[np.integer], first: int = 0
    ) -> NDArray[Any]:
        """The values of elements that ascend, from their homes.

        ``values`` are those of the elements at home here; ``first`` is added to all numbers in
        ``elements``.
        """
        elements = elements + first if first else elements
        wishes = exchanged(self.ranks, self.pieces(elements, elements))
        found = exchanged(self.ranks, [values[wish - self.own.start] for wish in wishes])
        return found[0] if len(found) == 1 else np.concatenate(found)

    def put(self, values: NDArray[Any], elements: NDArray[np.integer], given: NDArray[Any]) -> None:
        """Write what ranks give for elements, in any order, into the values at their homes."""
        sort = np.argsort(elements, kind="stable")
        pieces = self.pieces(elements[sort], sort)
        places = exchanged(self.ranks, [elements[piece] for piece in pieces])
        for place, came in zip(
            places, exchanged(self.ranks, [given[piece] for piece in pieces]), strict=True
        ):
            values[place - self.own.start] = came


def compact(table: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.int32]]:
    """The distinct numbers of a table, ascending, and the table in their places. O(n log n)."""
    points = distinct(table)
    return points, Places.among(points).of(table)


def blocks(ranks: Ranks, rows: int) -> Iterator[slice]:
    """All rows in blocks of at most :data:`ROWS`, as many on every rank."""
    for i in range(max(ranks.allgather(-(-rows // ROWS)))):
        yield slice(min(i * ROWS, rows), min((i + 1) * ROWS, rows))


def by_rows(
    homes: Homes,
    table: NDArray[np.int32],
    values: NDArray[Any],
    work: Callable[[NDArray[Any], NDArray[np.int32]], NDArray[Any]],
    out: NDArray[Any],
) -> NDArray[Any]:
    """Fill ``out`` by ``work(values, rows)``, block by block.

    ``table`` points into the set of ``homes``, and ``values`` are of its elements that are at home
    here. ``work`` takes some values, and rows that point into them.
    """
    for rows in blocks(homes.ranks, len(table)):
        points, local = compact(table[rows])
        found = homes.fetch(values, points)
        if len(local):
            out[rows] = work(found, local)
    return out


def joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
