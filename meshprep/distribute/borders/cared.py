"""The elements whose moves a rank decides, and those of other ranks that share points with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import distinct, offsets_of

from ...kernels import Bools, Int32s, kernel
from ..places import Places
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

    ``points``, the parts ``part`` and the numbers ``own`` are of the elements at home here. O(n /
    ranks log n).
    """
    to = holder(ranks, part, parts)
    chosen = [np.flatnonzero(to == rank) for rank in range(ranks.size)]
    ids = joined(exchanged(ranks, [one + own.start for one in chosen]))
    here = joined(exchanged(ranks, [part[one] for one in chosen]))
    table = joined(exchanged(ranks, [points.table[one] for one in chosen]))
    del to, chosen
    known = distinct(table)
    places = Places.among(known[known >= 0])
    nodes = int(np.searchsorted(places.points, points.nodes))
    table = places.known(table)
    # what a turn looks at stands together: the borders of a part, and so their points
    order = np.argsort(2 * here + _inside(table, here, nodes, places.points.size), kind="stable")
    ids, here, table = ids[order], here[order], table[order]
    number = np.full(places.points.size, -1, np.int32)
    _number_by_use(table.reshape(-1), nodes, number)
    mine = CaredElements(ids, here, table, ids.size, number.size, nodes, ranks)
    return mine if ranks.size == 1 else _with_copies(mine, places, number, points.size)


@kernel
def _inside(table: Int32s, part: Int32s, nodes: int, points: int) -> Bools:
    """The elements that share no more than nodes with elements of other parts here."""
    only = np.full(points, -1, np.int32)
    for i in range(part.size):
        for j in range(table.shape[1]):
            p = table[i, j]
            if p >= nodes:
                same = only[p] == -1 or only[p] == part[i]
                only[p] = part[i] if same else -2
    inside = np.ones(part.size, np.bool_)
    for i in range(part.size):
        for j in range(table.shape[1]):
            if table[i, j] >= nodes and only[table[i, j]] == -2:
                inside[i] = False
    return inside


@kernel
def _number_by_use(table: Int32s, nodes: int, number: Int32s) -> None:
    """Number points as elements come to them, nodes first: those of a part stand together.

    Memory is read in turns as the elements stand. Replaces places in the table by numbers.
    """
    next_node, next_other = 0, nodes
    for i in range(table.size):
        p = table[i]
        if p < 0:
            continue
        if number[p] < 0 and p < nodes:
            number[p] = next_node
            next_node += 1
        elif number[p] < 0:
            number[p] = next_other
            next_other += 1
        table[i] = number[p]


def _with_copies(mine: CaredElements, places: Places, number: Int32s, size: int) -> CaredElements:
    """The same with the elements of other ranks that share points with those decided here.

    ``places`` are those of the points of the mesh, which has ``size``; ``number`` is what the
    points at these places are called here.
    """
    ranks, sent = mine.ranks, []
    for shared in _shared_points(places.points, Homes(size, ranks)):
        marked = np.zeros(mine.points + 1, np.bool_)
        marked[number[places.of(shared)]] = True
        sent.append(np.flatnonzero(marked[mine.table].any(axis=1)))
    # the last one stands for none
    number = np.append(number, np.int32(-1))
    outside = np.full(number.size, -1, places.points.dtype)
    outside[number[:-1]] = places.points
    ids, part = (exchanged(ranks, [of[one] for one in sent]) for of in (mine.ids, mine.part))
    tables = exchanged(ranks, [outside[mine.table[one]] for one in sent])
    received = mine.own + offsets_of([len(one) for one in ids])
    return CaredElements(
        np.concatenate([mine.ids, *ids]),
        np.concatenate([mine.part, *part]),
        np.concatenate([mine.table, *(number[places.known(one)] for one in tables)]),
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
    return [distinct(came[came[:, 1] == r, 0]).astype(known.dtype) for r in range(ranks.size)]
