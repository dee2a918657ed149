"""Parts with shorter borders, found by ranks in turns; the same for any number of ranks.

In each turn some elements at borders propose to move to the part that has most of their
points. The loss that they accept is drawn by a temperature that falls. Of proposals that
share a point, the one with the highest key moves, so that the loss of every move is exact.
Keys, draws and caps depend on the elements' numbers in the mesh and on counts over all
ranks alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import INDEX_LIMIT, Float64s, SetMap, distinct, offsets_of

from ...kernels import Bools, Int32s, Int64s, kernel
from ...kernels.arithmetic import log
from ...kernels.parallel import each, pieces
from ...mesh.incidence import SPREAD
from ..homes import Homes, Places, blocks, joined
from ..ranks import Ranks, exchanged, holder
from ..subject import SplitSubject
from .moves import DRAWS, FINE, Prices, at_borders, move, parts_at_points, propose, winners

# Rows of the leading map that count for an element.
MOST_ROWS = 32


class PointTable(NamedTuple):
    """The points of elements: nodes, then rows of the leading map."""

    table: NDArray[np.integer]  # (n, k) integers: -1 where an element has fewer
    nodes: int  # points below it are nodes
    size: int  # points of the whole mesh


def points_of_elements(subject: SplitSubject, ranks: Ranks) -> PointTable:
    """The points of the elements of the leading set at home here. O(n / ranks log n)."""
    name = subject.leading_set
    leading = subject.leading_map
    assert leading is not None
    # Points are nodes, if a map has them, and then rows of the leading map.
    nodes = subject.maps.get(f"{name}->nodes")
    n_nodes = 0 if nodes is None else subject.sizes["nodes"]
    size = n_nodes + subject.sizes[leading.from_set]
    kind = np.dtype(np.int32 if size <= INDEX_LIMIT else np.int64)
    # Row r of the map is point n_nodes + r; -1 stays.
    rows = _rows_that_reach(leading, subject.sizes, ranks)
    if n_nodes:
        rows = np.where(rows < 0, rows, rows + kind.type(n_nodes))
    else:
        rows = rows.astype(kind)
    table = rows if nodes is None else np.hstack([nodes.table, rows])
    return PointTable(table=table, nodes=n_nodes, size=size)


def _rows_that_reach(m: SetMap, sizes: Mapping[str, int], ranks: Ranks) -> Int32s:
    """The rows of a map that reach each element at home here, ascending."""
    homes = Homes(sizes[m.to_set], ranks)
    rows_at = Homes(sizes[m.from_set], ranks)
    # Send pairs of an element and a row to the homes of the elements.
    pieces = []
    for rows in blocks(ranks, m.size):
        element = m.table[rows].reshape(-1)
        rows_of_mesh = np.arange(rows.start, rows.stop) + rows_at.own.start
        row = np.repeat(rows_of_mesh, m.arity)
        pairs = np.stack([element, row.astype(np.int32)], axis=1)
        pairs = pairs[np.argsort(element, kind="stable")]
        pieces += exchanged(ranks, homes.pieces(pairs[:, 0], pairs))
    # Make room for the rows of the element that has the most, and fill them in.
    home = homes.own
    count = np.zeros(len(home), np.int64)
    for piece in pieces:
        count += np.bincount(piece[:, 0] - home.start, minlength=count.size)
    most_here = int(count.max(initial=0))
    width = min(MOST_ROWS, max(ranks.allgather(most_here)))
    out = np.full((len(home), width), -1, np.int32)
    for piece in pieces:
        _fill_rows(piece, home.start, out)
    return out


@kernel
def _fill_rows(pairs: Int32s, first: int, out: Int32s) -> None:
    """Write the rows of each element, each once; the lowest where room is short."""
    width = out.shape[1]
    for i in range(pairs.shape[0]):
        element = pairs[i, 0] - first
        row = pairs[i, 1]
        # Find the row, or a free column.
        column = 0
        for j in range(width):
            column = j
            if out[element, j] == row or out[element, j] < 0:
                break
        # Without either, take the place of the highest row if that is higher.
        if out[element, column] >= 0 and out[element, column] != row:
            for j in range(width):
                if out[element, j] > out[element, column]:
                    column = j
            if out[element, column] < row:
                continue
        out[element, column] = row


@dataclass(frozen=True, eq=False)
class BorderElements:
    """Local elements: owned first, then ghosts."""

    ids: Int64s  # (n,): numbers of the mesh; the first ``n_owned`` are owned
    part: Int32s  # (n,): changes as elements move
    table: Int32s  # (n, k): points that owned elements have; -1 for others
    n_owned: int
    points: int  # points here
    nodes: int  # points below it are nodes
    ranks: Ranks
    # Owned elements that each rank has as ghosts.
    sent: Sequence[NDArray[np.integer]] = field(default_factory=list)
    # (ranks + 1,): ghosts of rank ``r`` stand in ``range(received[r], received[r + 1])``.
    received: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def update(self, values: NDArray[Any]) -> None:
        """Update the values of ghosts from their owners."""
        if self.ranks.size > 1:
            received = self.ranks.alltoall([values[elements] for elements in self.sent])
            for (low, high), rows in zip(pairwise(self.received), received, strict=True):
                values[low:high] = rows


def border_elements(
    points: PointTable,
    part: Int32s,
    own: range,
    parts: int,
    ranks: Ranks,
) -> BorderElements:
    """Elements sent from their home ranks to the ranks that own their parts.

    ``points``, the parts ``part`` and the numbers ``own`` are of the elements at home here.
    O(n / ranks log n).
    """
    # Send number, part and points of each element to the rank that holds its part.
    to = holder(ranks, part, parts)
    chosen = [np.flatnonzero(to == rank) for rank in range(ranks.size)]
    ids = joined(exchanged(ranks, [elements + own.start for elements in chosen]))
    part_here = joined(exchanged(ranks, [part[elements] for elements in chosen]))
    table = joined(exchanged(ranks, [points.table[elements] for elements in chosen]))
    del to, chosen
    # Number the points here, nodes first.
    points_here = distinct(table)
    places = Places.among(points_here[points_here >= 0])
    nodes = int(np.searchsorted(places.points, points.nodes))
    table = places.known(table)
    # A turn works at borders: put those of a part, and so their points, next to each other.
    inside = _inside(table=table, part=part_here, nodes=nodes, points=places.points.size)
    order = np.argsort(2 * part_here + inside, kind="stable")
    ids = ids[order]
    part_here = part_here[order]
    table = table[order]
    number = np.full(places.points.size, -1, np.int32)
    _number_by_use(table.reshape(-1), nodes, number)
    owned = BorderElements(
        ids=ids,
        part=part_here,
        table=table,
        n_owned=ids.size,
        points=number.size,
        nodes=nodes,
        ranks=ranks,
    )
    if ranks.size == 1:
        return owned
    return _with_ghosts(owned=owned, places=places, number=number, size=points.size)


@kernel
def _inside(table: Int32s, part: Int32s, nodes: int, points: int) -> Bools:
    """The elements that share no more than nodes with elements of other parts here."""
    # The only part whose elements have each point: -1 before the first, -2 for several.
    only = np.full(points, -1, np.int32)
    for i in range(part.size):
        for j in range(table.shape[1]):
            p = table[i, j]
            if p >= nodes:
                same = only[p] == -1 or only[p] == part[i]
                if same:
                    only[p] = part[i]
                else:
                    only[p] = -2
    inside = np.ones(part.size, np.bool_)
    for i in range(part.size):
        for j in range(table.shape[1]):
            if table[i, j] >= nodes and only[table[i, j]] == -2:
                inside[i] = False
    return inside


@kernel
def _number_by_use(table: Int32s, nodes: int, number: Int32s) -> None:
    """Number the points of ``table`` in the order in which elements have them, nodes first.

    ``number`` has -1 for every point before, and its new number after.
    """
    next_node = 0
    next_other = nodes
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


def _with_ghosts(
    owned: BorderElements,
    places: Places,
    number: Int32s,
    size: int,
) -> BorderElements:
    """The same with ghosts: elements of other ranks that share points with owned ones.

    ``places`` are those of the points here among the ``size`` points of the mesh;
    ``number`` has the local number of each.
    """
    ranks = owned.ranks
    # Choose the owned elements that each rank gets: they have a point that it has, too.
    sent = []
    for shared in _shared_points(places.points, Homes(size, ranks)):
        marked = np.zeros(owned.points + 1, np.bool_)
        marked[number[places.of(shared)]] = True
        sent.append(np.flatnonzero(marked[owned.table].any(axis=1)))
    # Send them with their points in numbers of the mesh; the last entry stands for no
    # point.
    number = np.append(number, np.int32(-1))
    outside = np.full(number.size, -1, places.points.dtype)
    outside[number[:-1]] = places.points
    ids = exchanged(ranks, [owned.ids[elements] for elements in sent])
    part = exchanged(ranks, [owned.part[elements] for elements in sent])
    tables = exchanged(ranks, [outside[owned.table[elements]] for elements in sent])
    received = owned.n_owned + offsets_of([len(ghosts) for ghosts in ids])
    # Points of ghosts that no owned element has count for nothing here: -1.
    ghost_tables = [number[places.known(table)] for table in tables]
    return BorderElements(
        ids=np.concatenate([owned.ids, *ids]),
        part=np.concatenate([owned.part, *part]),
        table=np.concatenate([owned.table, *ghost_tables]),
        n_owned=owned.n_owned,
        points=owned.points,
        nodes=owned.nodes,
        ranks=ranks,
        sent=sent,
        received=received.astype(np.int64),
    )


def _shared_points(known: NDArray[np.integer], homes: Homes) -> list[NDArray[np.integer]]:
    """The points that each other rank has, too; ascending."""
    ranks = homes.ranks
    # Tell the homes of the points which ranks have them; sort by point and rank.
    points_of_ranks = exchanged(ranks, homes.pieces(known, known))
    n_points_of_ranks = [points.size for points in points_of_ranks]
    point = np.concatenate(points_of_ranks)
    rank = np.repeat(np.arange(ranks.size), n_points_of_ranks)
    order = np.lexsort((rank, point))
    point = point[order]
    rank = rank[order]
    # Ranks that have one point stand next to each other: pair each with those that follow.
    shared = [point[:0]]
    first = [rank[:0]]
    second = [rank[:0]]
    for shift in range(1, ranks.size):
        same = np.flatnonzero(point[shift:] == point[:-shift])
        if not same.size:
            break
        shared += [point[same], point[same]]
        first += [rank[same], rank[same + shift]]
        second += [rank[same + shift], rank[same]]
    # Tell each rank the points that others have, too, and which rank has them.
    pairs = np.stack([np.concatenate(shared), np.concatenate(second)], axis=1)
    to = np.concatenate(first)
    pairs_for_ranks = [pairs[to == other] for other in range(ranks.size)]
    received = np.concatenate(exchanged(ranks, pairs_for_ranks))
    shared_points = []
    for other in range(ranks.size):
        points_of_other = distinct(received[received[:, 1] == other, 0])
        shared_points.append(points_of_other.astype(known.dtype))
    return shared_points


# A part may hold this many times its share.
MOST = 1.03
# A part should hold at least this of its share.
LEAST = 0.9
# Turns of the annealing.
TURNS = 240
# Turns after which the elements at borders are found anew.
FRESH = 4
# First and last temperature, in prices of a node.
HOT = 0.55
COLD = 0.05
# Turns at the end that accept no loss.
LAST = 16
# Price of a ghost of a node.
NODE = 10
# Price of a ghost of another point, where there are nodes.
OTHER = 3
# Price of a ghost of another point, where there are no nodes.
ONLY = 10
# log of the middle of each draw, from 0 to 1.
LOG_OF_DRAW = np.array([log((draw + 0.5) / DRAWS) for draw in range(DRAWS)])


def refined(
    subject: SplitSubject,
    part: Int32s,
    shares: Float64s,
    ranks: Ranks,
) -> Int32s:
    """Parts of the leading set with fewer ghosts of nodes, or of rows of the leading map.

    ``part``, and the tables of ``subject``, are those of the elements at home here.
    ``shares`` add up to 1. No part gets more than :data:`MOST` times its share; one that
    has more gets none. O(n / ranks log n), and :data:`TURNS` passes over the elements at
    borders, each with two messages to neighbours and one sum over all ranks of two numbers
    a part.
    """
    if subject.leading_map is None:
        return part
    # Bring the elements of each part together on one rank.
    n = subject.sizes[subject.leading_set]
    homes = Homes(n, ranks)
    points = points_of_elements(subject, ranks)
    local = border_elements(
        points=points,
        part=part,
        own=homes.own,
        parts=shares.size,
        ranks=ranks,
    )
    prices = Prices(local.nodes, NODE, OTHER if points.nodes else ONLY)
    del points
    _anneal(local, prices, _Sizes.of(local, shares, n))
    # Send the new parts home.
    out = np.empty_like(part)
    homes.put(out, local.ids[: local.n_owned], local.part[: local.n_owned])
    return out


def _anneal(local: BorderElements, prices: Prices, sizes: "_Sizes") -> None:
    """Move elements of borders, turn after turn."""
    # Arrays of all turns: the parts at points, and keys and targets of proposals.
    parts_at = parts_at_points(local.table, local.part, local.points)
    n = local.ids.size
    key = np.zeros(n, np.uint64)
    target = np.empty(n, np.int32)
    best = np.zeros(local.points, np.uint64)
    border = np.empty(0, np.int32)
    elements = (local.ids, local.part, local.table)
    ghosts = np.arange(local.n_owned, n, dtype=np.int32)
    for turn in range(TURNS):
        if turn % FRESH == 0:
            border = at_borders(
                table=local.table,
                own=local.n_owned,
                nodes=local.nodes,
                used=parts_at.used,
            )
        # Propose moves, on all cores.
        allowed = _allowed_losses(turn)
        full = sizes.full
        tasks = []
        for begin, end in pieces(border.size):
            some = border[begin:end]
            tasks.append(
                (some, elements, parts_at, prices, full, allowed, turn, (key, target))
            )
        proposed = np.concatenate(each(propose, tasks))
        # Choose moves that share no point, and that keep the sizes of the parts.
        local.update(key)
        others = ghosts[key[local.n_owned :] != 0]
        chosen = winners(
            some=proposed,
            others=others,
            table=local.table,
            key=key,
            best=best,
        )
        key[proposed] = 0
        chosen = sizes.admitted(chosen, local, target, turn)
        # Move owned elements, then the ghosts that their owners moved.
        before = local.part[local.n_owned :].copy()
        move(
            some=chosen,
            target=target,
            part=local.part,
            table=local.table,
            at=parts_at,
        )
        after = local.part.copy() if ghosts.size else local.part
        local.update(after)
        moved = ghosts[after[local.n_owned :] != before]
        move(
            some=moved,
            target=after,
            part=local.part,
            table=local.table,
            at=parts_at,
        )


def _allowed_losses(turn: int) -> Int64s:
    """Largest loss that a move may have, by the number drawn; it falls turn by turn.

    A move with a loss is made with the probability exp(-loss / temperature), as in
    simulated annealing: the loss is below -temperature log(draw), whose draw is one of
    :data:`DRAWS` from 0 to 1.
    """
    cooling = min(1.0, turn / max(1, TURNS - LAST - 1))
    temperature = HOT + (COLD - HOT) * cooling
    if turn >= TURNS - LAST:
        temperature = 0.0
    return np.rint(-temperature * NODE * FINE * LOG_OF_DRAW).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Elements of every part on all ranks, and how many there may and should be."""

    count: Int64s  # (parts,): changes as elements move
    most: Int64s  # (parts,)
    least: Int64s  # (parts,)
    ranks: Ranks

    @classmethod
    def of(cls, local: BorderElements, shares: Float64s, n: int) -> "_Sizes":
        """The sizes of parts with these shares of the ``n`` elements of all ranks."""
        count = np.bincount(local.part[: local.n_owned], minlength=shares.size)
        target = shares * n
        # The share itself, rounded up, is always allowed; 1e-6 elements are rounding.
        rounded_up = np.ceil(target - 1e-6)
        most = np.maximum(np.floor(MOST * target + 1e-6), rounded_up)
        least = np.floor(LEAST * target)
        return cls(
            count=np.sum(local.ranks.allgather(count), axis=0),
            most=most.astype(np.int64),
            least=least.astype(np.int64),
            ranks=local.ranks,
        )

    @property
    def full(self) -> Bools:
        """The parts that take no more elements."""
        return self.count >= self.most

    def admitted(
        self,
        chosen: Int32s,
        local: BorderElements,
        target: Int32s,
        turn: int,
    ) -> Int32s:
        """A subset of the moves that keeps all sizes, which are counted as made.

        Where more elements come to a part or leave it than may, about half of what may move
        is drawn; where that is still too many, none moves.
        """
        into, out = self._counts(chosen, local, target)
        room = self.most - self.count
        spare = self.count - self.least
        if (into > room).any() or (out > spare).any():
            # Draw from 0 to 1 by numbers of the mesh, so that ranks need not agree on it:
            # the upper 53 bits of a hash, as many as a double has.
            ids = local.ids[chosen]
            spread = (ids.astype(np.uint64) + np.uint64(turn)) * SPREAD
            upper_bits = (spread >> np.uint64(11)).astype(np.float64)
            drawn = upper_bits / float(1 << 53)
            share_into = np.minimum(_half_of_room(room, into), 1.0)
            share_out = np.minimum(_half_of_room(spare, out), 1.0)
            source = local.part[chosen]
            keep = (drawn < share_into[target[chosen]]) & (drawn < share_out[source])
            chosen = chosen[keep]
            # Give up the moves of parts that still change too much.
            into, out = self._counts(chosen, local, target)
            too_many_come = (into > room)[target[chosen]]
            too_many_leave = (out > spare)[local.part[chosen]]
            chosen = chosen[~(too_many_come | too_many_leave)]
            into, out = self._counts(chosen, local, target)
        self.count[:] += into - out
        return chosen

    def _counts(
        self, chosen: Int32s, local: BorderElements, target: Int32s
    ) -> tuple[Int64s, Int64s]:
        """Elements that come to each part and leave it by these moves, over all ranks."""
        parts = self.count.size
        into_here = np.bincount(target[chosen], minlength=parts)
        out_here = np.bincount(local.part[chosen], minlength=parts)
        counts_of_ranks = self.ranks.allgather(np.stack([into_here, out_here]))
        into, out = np.sum(counts_of_ranks, axis=0)
        return into, out


def _half_of_room(room: Int64s, count: Int64s) -> Float64s:
    """Half the room of each part as a share of the count; 1 where there is room for all."""
    half = np.maximum(room, 0) / (2 * np.maximum(count, 1))
    return np.where(count > room, half, 1.0)
