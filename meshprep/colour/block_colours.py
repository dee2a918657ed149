"""Block colours: no two blocks of one colour write the same point, so that they run together."""

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import offsets_of, read_only

from ..kernels import Int32s, Int64s, UInt64s, helper, kernel
from ..kernels.arrays import ZERO, smallest
from .greedy import FULL, ONE, WORD, bit, lowest
from .saturation import move_to_back, one_queue, take_first

# A point shared by more blocks has a high degree: its pairs would cost their number squared.
HIGH_DEGREE = 64


class Conflicts(NamedTuple):
    """Points that several blocks touch, from both sides; other points are left out.

    ``point[point_offset[b]:point_offset[b + 1]]`` are those of block ``b``: a number ``p`` from 0,
    with the blocks ``block[block_offset[p]:block_offset[p + 1]]`` on it, ascending; or
    ``-1 - row`` for one of the ``n_high_degree`` points that very many blocks share. ``n_words``
    words of 64 bits hold a set of blocks, or of their colours. ``meets`` has such a set of
    neighbours for each block where that takes less memory than the points, and no rows elsewhere.
    """

    point_offset: Int64s
    point: Int32s
    block_offset: Int64s
    block: Int32s
    n_high_degree: int
    n_words: int
    meets: UInt64s


def block_conflicts(table: Int32s, n_points: int, block_offset: Int64s) -> Conflicts:
    """Find the shared points. O(n k); memory O(n_points + shared incidences)."""
    number, n_shared, count = _shared_points(table, n_points, block_offset)
    point_offset, point, offset, block = _incidences(table, number, n_shared, block_offset, count)
    sharers = np.diff(offset)
    n_blocks = block_offset.size - 1
    n_words = n_blocks // WORD + 1
    # Sets of colours there take n_words each: never more memory than the incidences.
    limit, most = max(block.size, 1 << 16), HIGH_DEGREE
    while np.count_nonzero(sharers > most) * n_words > limit:
        most *= 2
    chosen = np.flatnonzero(sharers > most)
    if chosen.size:
        name = np.arange(n_shared, dtype=np.int32)
        name[chosen] = -1 - np.arange(chosen.size)
        point = name[point]
    # On a shuffled mesh most blocks meet: rows of bits are then read instead of scattered points.
    rows = n_blocks if n_blocks * n_words <= block.size else 0
    meets = np.zeros((rows, n_words), np.uint64)
    if rows:
        _fill_rows(offset, block, most, meets)
    return Conflicts(point_offset, point, offset, block, int(chosen.size), n_words, meets)


@helper
def neighbours(c: Conflicts, b: int, seen: Int32s, found: Int32s) -> int:
    """Write the blocks that ``b`` meets on light points, each once, to ``found``; returns how many.

    ``seen``, (n_blocks,) int32, holds the last block that asked for each; it begins with -1.
    """
    n = 0
    if c.meets.shape[0]:
        for w in range(c.n_words):
            word = c.meets[b, w]
            while word != 0:
                found[n] = w * WORD + lowest(word)
                n += 1
                word &= word - ONE
        return n
    seen[b] = b
    for i in range(c.point_offset[b], c.point_offset[b + 1]):
        p = c.point[i]
        if p >= 0:
            for q in range(c.block_offset[p], c.block_offset[p + 1]):
                other = c.block[q]
                if seen[other] != b:
                    seen[other] = b
                    found[n] = other
                    n += 1
    return n


@kernel
def _fill_rows(offset: Int64s, block: Int32s, high_degree: int, meets: UInt64s) -> None:
    """Set the bits of earlier blocks, and mirror them; point by point, three times faster."""
    for p in range(offset.size - 1):
        start, stop = offset[p], offset[p + 1]
        if stop - start <= high_degree:
            for j in range(start + 1, stop):
                for i in range(start, j):
                    meets[block[j], block[i] // WORD] |= bit(block[i] % WORD)
    n, n_words = meets.shape
    # In squares of 64 by 64 bits, which stay in the cache.
    for tile in range((n + WORD - 1) // WORD):
        for w in range(tile, n_words):
            for b in range(w * WORD, min(n, (w + 1) * WORD)):
                word = meets[b, tile]
                while word != 0:
                    meets[tile * WORD + lowest(word), w] |= bit(b - w * WORD)
                    word &= word - ONE


@kernel
def _shared_points(
    table: Int32s, n_points: int, block_offset: Int64s
) -> tuple[Int32s, int, Int32s]:
    """Number the points on several blocks (-1: others), and count the blocks on each."""
    last = np.full(n_points, -1, np.int32)
    count = np.zeros(n_points, np.int32)
    for b in range(block_offset.size - 1):
        for e in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                point = table[e, j]
                if last[point] != b:
                    last[point] = b
                    count[point] += 1
    n_shared = 0
    for point in range(n_points):
        last[point] = -1
        if count[point] > 1:
            last[point] = n_shared
            count[n_shared] = count[point]
            n_shared += 1
    return last, n_shared, count[:n_shared].copy()


@kernel
def _incidences(
    table: Int32s, number: Int32s, n_shared: int, block_offset: Int64s, count: Int32s
) -> tuple[Int64s, Int32s, Int64s, Int32s]:
    n_blocks = block_offset.size - 1
    offset = np.zeros(n_shared + 1, np.int64)
    for p in range(n_shared):
        offset[p + 1] = offset[p] + count[p]
    fill = offset[:-1].copy()
    block = np.empty(offset[n_shared], np.int32)
    point = np.empty(offset[n_shared], np.int32)
    point_offset = np.zeros(n_blocks + 1, np.int64)
    at = 0
    for b in range(n_blocks):
        for e in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                p = number[table[e, j]]
                # Blocks come in ascending order: b is on p already when it is the last there.
                if p >= 0 and (fill[p] == offset[p] or block[fill[p] - 1] != b):
                    block[fill[p]] = b
                    fill[p] += 1
                    point[at] = p
                    at += 1
        point_offset[b + 1] = at
    return point_offset, point, offset, block


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
    coloured = map(partial(first_fit_blocks, conflicts), orders)
    colour, n_colours, high_degree_colours = min(coloured, key=itemgetter(1))
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
    """Next is the block that sees most of the first 64 colours (Brelaz), then by ``order``."""
    n = order.size
    result, place, rank = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.int32)
    seen, found = np.full(n, -1, np.int32), np.empty(n, np.int32)
    forbidden, done = np.zeros(n, np.uint64), np.zeros(n, np.bool_)
    for i in range(n):
        place[order[i]] = i
    top = ZERO
    following, previous = one_queue(n, top)
    for i in range(n):
        e, top = take_first(following, previous, top)
        # as wide as other numbers, here and below, so that helpers are compiled once
        b = int(np.int64(order[e]))
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
        b = int(np.int64(by_degree[i]))
        for other in found[: neighbours(conflicts, b, seen, found)]:
            d = degree[other]
            if d <= degree[b]:
                continue
            # it changes places with the first of its degree, and then is the last of the one below
            front = by_degree[first[d]]
            by_degree[place[other]], by_degree[first[d]] = front, other
            place[front], place[other] = place[other], first[d]
            first[d] += 1
            degree[other] = d - 1


PASSES = 10


@kernel
def first_fit_blocks(conflicts: Conflicts, order: Int32s) -> tuple[Int32s, int, UInt64s]:
    """The lowest free colour of each block, their number, and bits on points of high degree."""
    colour = np.full(order.size, -1, np.int32)
    high_degree_colours = np.zeros((conflicts.n_high_degree, conflicts.n_words), np.uint64)
    seen, found = np.full(colour.size, -1, np.int32), np.empty(colour.size, np.int32)
    taken = np.empty(conflicts.n_words, np.uint64)
    n_colours = 0
    for i in range(order.size):
        b = int(np.int64(order[i]))
        _taken(conflicts, b, colour, high_degree_colours, seen, found, taken)
        w = 0
        while taken[w] == FULL:
            w += 1
        colour[b] = w * WORD + lowest(~taken[w])
        n_colours = max(n_colours, colour[b] + 1)
        _flip(conflicts, b, int(np.int64(colour[b])), high_degree_colours)
    return colour, n_colours, high_degree_colours


@kernel
def balance(
    conflicts: Conflicts, colour: Int32s, n_colours: int, high_degree_colours: UInt64s
) -> None:
    """Move blocks from large classes to the least-used colour that admits them.

    ``colour`` and ``high_degree_colours`` are changed in place; the number of colours stays,
    and no class runs empty. At most ``PASSES`` passes, each O(light pairs + n_blocks x n_colours).
    """
    size = np.zeros(n_colours, np.int64)
    for c in colour:
        size[c] += 1
    seen, found = np.full(colour.size, -1, np.int32), np.empty(colour.size, np.int32)
    taken = np.empty(conflicts.n_words, np.uint64)
    for _ in range(PASSES):
        moved = 0
        seen[:] = -1
        for b in range(colour.size):
            old = int(np.int64(colour[b]))
            # A class within one of the smallest has nothing to give.
            if size[old] <= smallest(size) + 1:
                continue
            _taken(conflicts, b, colour, high_degree_colours, seen, found, taken)
            new = _least_used(taken, size)
            if new >= 0 and size[new] + 1 < size[old]:
                _flip(conflicts, b, old, high_degree_colours)
                _flip(conflicts, b, new, high_degree_colours)
                size[old] -= 1
                size[new] += 1
                colour[b] = new
                moved += 1
        if not moved:
            break


@helper
def _taken(
    conflicts: Conflicts,
    b: int,
    colour: Int32s,
    high_degree_colours: UInt64s,
    seen: Int32s,
    found: Int32s,
    taken: UInt64s,
) -> None:
    """Set ``taken`` to the colours of the other blocks that ``b`` shares a point with."""
    for w in range(taken.size):
        taken[w] = 0
    if conflicts.n_high_degree:
        for i in range(conflicts.point_offset[b], conflicts.point_offset[b + 1]):
            if conflicts.point[i] < 0:
                for w in range(taken.size):
                    taken[w] |= high_degree_colours[-1 - conflicts.point[i], w]
    for other in found[: neighbours(conflicts, b, seen, found)]:
        if colour[other] >= 0:
            taken[colour[other] // WORD] |= bit(colour[other] % WORD)


@helper
def _flip(conflicts: Conflicts, b: int, colour: int, high_degree_colours: UInt64s) -> None:
    for i in range(conflicts.point_offset[b], conflicts.point_offset[b + 1]):
        if conflicts.point[i] < 0:
            high_degree_colours[-1 - conflicts.point[i], colour // WORD] ^= bit(colour % WORD)


@helper
def _least_used(taken: UInt64s, size: Int64s) -> int:
    best = -1
    for w in range((size.size + WORD - 1) // WORD):
        free = ~taken[w]
        while free != 0:
            c = w * WORD + lowest(free)
            if c >= size.size:
                break
            if best < 0 or size[c] < size[best]:
                best = c
            free &= free - ONE
    return best
