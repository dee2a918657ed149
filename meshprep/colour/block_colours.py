"""Block colours: no two blocks of one colour write the same point, so that they run together."""

from dataclasses import dataclass

import numpy as np

from meshprep_runtime.maps import offsets_of, read_only

from ..kernels import Int32s, Int64s, helper, kernel
from .balance import balance, first_fit_blocks
from .bits import ONE
from .conflicts import Conflicts, block_conflicts, neighbours
from .saturation import move_to_back, one_queue, take_first


@dataclass(frozen=True, eq=False)
class BlockColours:
    """Blocks grouped by colour; each colour is one launch."""

    order: Int32s  # (n_blocks,): blocks grouped by colour, ascending inside a colour
    # (n_colours + 1,): colour ``c`` is ``order[offset[c]:offset[c + 1]]``.
    offset: Int64s

    @property
    def count(self) -> int:
        return int(self.offset.size) - 1


def colour_blocks(table: Int32s, n_points: int, block_offset: Int64s) -> BlockColours:
    """Colour the blocks so that no two of one colour share a point, in classes of even size.

    Greedy in smallest-last order [G10 section 9.1], or by saturation where that takes fewer
    colours; then blocks of the larger classes move to the least-used colour that admits them, until
    none gains.

    ``table`` (n, k) has only the columns that the loop writes through, stacked over the to-sets;
    with k = 0 nothing conflicts and one colour holds every block. Block ``b`` owns the rows
    ``block_offset[b]`` to ``block_offset[b + 1] - 1``.

    O(n k + sum over points shared by up to 64 blocks of these blocks squared); points shared by
    more are kept as sets of colours instead. Memory O(n_points + shared incidences).
    """
    n_blocks = block_offset.size - 1
    if n_blocks < 2 or table.shape[1] == 0 or n_points == 0:
        offset = np.array([0, n_blocks] if n_blocks else [0], dtype=np.int64)
        return BlockColours(np.arange(n_blocks, dtype=np.int32), offset)
    conflicts = block_conflicts(read_only(table), n_points, read_only(block_offset))
    order = _order(conflicts)
    orders = [order] if conflicts.n_high_degree else [order, _by_saturation(conflicts, order)]
    coloured = (first_fit_blocks(conflicts, one) for one in orders)
    colour, n_colours, high_degree_colours = min(coloured, key=lambda found: found[1])
    balance(conflicts, colour, n_colours, high_degree_colours)
    grouped = np.argsort(colour, kind="stable").astype(np.int32)
    size = np.bincount(colour, minlength=n_colours)
    return BlockColours(grouped, offsets_of(size))


def _order(conflicts: Conflicts) -> Int32s:
    """Smallest-last on ordinary points; blocks on points of high degree before all others."""
    if conflicts.meets.size:
        degree = np.bitwise_count(conflicts.meets).sum(axis=1, dtype=np.int32)
    else:
        degree = _degrees(conflicts)
    by_degree = np.argsort(degree, kind="stable").astype(np.int32)
    first = offsets_of(np.bincount(degree))
    _peel(conflicts, degree, by_degree, first)
    order = by_degree[::-1].copy()
    if conflicts.n_high_degree:
        before = offsets_of(conflicts.point < 0)
        n_high_degree = np.diff(before[conflicts.point_offset])
        order = order[np.argsort(-n_high_degree[order], kind="stable")]
    return order


@kernel
def _by_saturation(conflicts: Conflicts, order: Int32s) -> Int32s:
    """The order in which the block is next that sees the most of the first 64 colours (Brelaz).

    Among equals, the one that has waited longest, from ``order`` on. O(light pairs).
    """
    n = order.size
    result, place, rank = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.int32)
    seen, found = np.full(n, -1, np.int32), np.empty(n, np.int32)
    forbidden, done = np.zeros(n, np.uint64), np.zeros(n, np.bool_)
    for i in range(n):
        place[order[i]] = i
    following, previous = one_queue(n, 0)
    top = 0
    for i in range(n):
        e, top = take_first(following, previous, top)
        b = order[e]
        result[i], done[b] = b, True
        mine = ~forbidden[b] & (forbidden[b] + ONE)
        for other in found[: neighbours(conflicts, b, seen, found)]:
            if not done[other] and forbidden[other] & mine != mine:
                forbidden[other] |= mine
                rank[other] += 1
                move_to_back(following, previous, place[other], n + rank[other])
                top = max(top, rank[other])
    return result


@kernel
def _degrees(conflicts: Conflicts) -> Int32s:
    n = conflicts.point_offset.size - 1
    seen, found = np.full(n, -1, np.int32), np.empty(n, np.int32)
    degree = np.empty(n, np.int32)
    for b in range(n):
        degree[b] = neighbours(conflicts, b, seen, found)
    return degree


@kernel
def _peel(conflicts: Conflicts, degree: Int32s, by_degree: Int32s, first: Int64s) -> None:
    """Take the block of smallest degree away, again and again (Matula and Beck).

    ``by_degree`` is sorted by degree, with degree ``d`` from ``first[d]`` on; it becomes the
    order of removal. O(light pairs).
    """
    n = by_degree.size
    seen, found = np.full(n, -1, np.int32), np.empty(n, np.int32)
    place = np.empty(n, np.int32)
    for i in range(n):
        place[by_degree[i]] = i
    for i in range(n):
        b = by_degree[i]
        for other in found[: neighbours(conflicts, b, seen, found)]:
            if degree[other] > degree[b]:
                _one_less(other, by_degree, place, first, degree)


@helper
def _one_less(b: int, by_degree: Int32s, place: Int32s, first: Int64s, degree: Int32s) -> None:
    d = degree[b]
    front = by_degree[first[d]]
    by_degree[place[b]], by_degree[first[d]] = front, b
    place[front], place[b] = place[b], first[d]
    first[d] += 1
    degree[b] = d - 1
