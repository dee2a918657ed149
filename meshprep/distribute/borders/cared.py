"""The elements whose moves a rank decides, and those of other ranks that share points with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import distinct

from ..ranks import Ranks, exchanged, holder
from ..slices.homes import Homes, joined
from .points import PointTable


@dataclass(frozen=True, eq=False)
class CaredElements:
    """Elements here, in numbers of their own: those decided here, then copies of others."""

    ids: NDArray[np.int64]  # (n,): numbers of the mesh; the first ``own`` are decided here
    part: NDArray[np.int32]  # (n,): changes as elements move
    table: NDArray[np.int32]  # (n, k): points that some element decided here has; -1 for others
    own: int
    # Points here; those below ``nodes`` are nodes.
    points: int
    nodes: int
    ranks: Ranks
    # Elements decided here, of which each rank has copies.
    sent: Sequence[NDArray[np.integer]] = field(default_factory=list)
    # (ranks + 1,): copies of elements of rank ``r`` stand from ``received[r]`` to below
    # ``received[r + 1]``.
    received: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def update(self, values: NDArray[Any]) -> None:
        """Bring the values of elements that other ranks decide up to date."""
        if self.ranks.size > 1:
            came = self.ranks.alltoall([values[some] for some in self.sent])
            for (low, high), rows in zip(pairwise(self.received), came, strict=True):
                values[low:high] = rows


def cared_elements(
    points: PointTable, part: NDArray[np.int32], own: range, parts: int, ranks: Ranks
) -> CaredElements:
    """Bring elements from their homes to the ranks that decide of their parts.

    O(n / ranks log n).

    Parameters
    ----------
    points : PointTable
        Of the elements at home here.
    part : (n,) int32
        Where they are now.
    own : range
        Their numbers.
    """
    to = holder(ranks, part, parts)
    chosen = [np.flatnonzero(to == rank) for rank in range(ranks.size)]
    ids = joined(exchanged(ranks, [one + own.start for one in chosen]))
    here = joined(exchanged(ranks, [part[one] for one in chosen]))
    table = joined(exchanged(ranks, [points.table[one] for one in chosen]))
    # elements of a part are near each other, and so are the points that they share
    order = np.argsort(here, kind="stable")
    ids, here, table = ids[order], here[order], table[order]
    known = distinct(table)
    known = known[known >= 0]
    mine = CaredElements(
        ids, here, _local(table, known), ids.size, known.size,
        int(np.searchsorted(known, points.nodes)), ranks,
    )  # fmt: skip
    return mine if ranks.size == 1 else _with_copies(mine, table, known, points.size)


def _local(table: NDArray[np.integer], known: NDArray[np.integer]) -> NDArray[np.int32]:
    """A table in places of the known points; -1 for others."""
    if not known.size:
        return np.full(table.shape, -1, np.int32)
    place = np.minimum(np.searchsorted(known, table), known.size - 1).astype(np.int32)
    return np.where(known[place] == table, place, np.int32(-1))


def _with_copies(
    mine: CaredElements, table: NDArray[np.integer], known: NDArray[np.integer], points: int
) -> CaredElements:
    """The same with the elements of other ranks that share points with those decided here."""
    ranks, sent = mine.ranks, []
    for shared in _shared_points(known, Homes(points, mine.ranks)):
        marked = np.zeros(mine.points + 1, np.bool_)
        marked[np.searchsorted(known, shared)] = True
        sent.append(np.flatnonzero(marked[mine.table].any(axis=1)))
    ids, part, tables = (
        exchanged(ranks, [values[one] for one in sent]) for values in (mine.ids, mine.part, table)
    )
    received = mine.own + np.append(0, np.cumsum([len(one) for one in ids]))
    return CaredElements(
        np.concatenate([mine.ids, *ids]),
        np.concatenate([mine.part, *part]),
        np.concatenate([mine.table, *(_local(one, known) for one in tables)]),
        mine.own, mine.points, mine.nodes, ranks, sent, received.astype(np.int64),
    )  # fmt: skip


def _shared_points(known: NDArray[np.integer], homes: Homes) -> list[NDArray[np.integer]]:
    """The points that each other rank has, too; ascending."""
    ranks = homes.ranks
    wishes = exchanged(ranks, homes.pieces(known, known))
    point, rank = np.concatenate(wishes), np.repeat(np.arange(ranks.size), list(map(len, wishes)))
    order = np.lexsort((rank, point))
    point, rank = point[order], rank[order]
    found = []
    for shift in range(1, ranks.size):
        same = np.flatnonzero(point[shift:] == point[:-shift])
        if not same.size:
            break
        both = np.stack([rank[same], rank[same + shift]], axis=1)
        found += [(point[same], *both.T), (point[same], *both[:, ::-1].T)]
    nothing = point[:0], rank[:0], rank[:0]
    shared, one, other = (np.concatenate(column) for column in zip(nothing, *found, strict=True))
    pairs = np.stack([shared, other], axis=1)
    came = np.concatenate(exchanged(ranks, [pairs[one == r] for r in range(ranks.size)]))
    return [np.unique(came[came[:, 1] == r, 0]) for r in range(ranks.size)]
