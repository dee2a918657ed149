"""Block colours: blocks of one colour write no common point, so that they run together."""

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

# A point shared by more blocks has a high degree: the pairs of its blocks would be many.
HIGH_DEGREE = 64


class Conflicts(NamedTuple):
    """Points that several blocks touch, from both sides; other points are left out.

    Block ``b`` has the points ``point[point_offset[b]:point_offset[b + 1]]``. Each is a
    number ``p`` from 0, with the blocks ``block[block_offset[p]:block_offset[p + 1]]`` on
    it, ascending; or ``-1 - row`` for one of the ``n_high_degree`` points that very many
    blocks share. ``n_words`` words of 64 bits hold a set of blocks, or of their colours.
    ``meets`` (n_blocks, n_words) has the set of neighbours of each block where that takes
    less memory than the points; otherwise it has no rows.
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
    # The points of each block and the blocks on each point, of shared points alone.
    number, n_shared, count = _shared_points(table, n_points, block_offset)
    point_offset, point, offset, block = _incidences(
        table=table,
        number=number,
        n_shared=n_shared,
        block_offset=block_offset,
        count=count,
    )
    # Mark the points of high degree. Their sets of colours take n_words each: never more
    # memory than the incidences.
    sharers = np.diff(offset)
    n_blocks = block_offset.size - 1
    n_words = n_blocks // WORD + 1
    limit = max(block.size, 1 << 16)
    most = HIGH_DEGREE
    while np.count_nonzero(sharers > most) * n_words > limit:
        most *= 2
    chosen = np.flatnonzero(sharers > most)
    if chosen.size:
        name = np.arange(n_shared, dtype=np.int32)
        name[chosen] = -1 - np.arange(chosen.size)
        point = name[point]
    # On a shuffled mesh most blocks meet: read rows of bits instead of scattered points.
    if n_blocks * n_words <= block.size:
        rows = n_blocks
    else:
        rows = 0
    meets = np.zeros((rows, n_words), np.uint64)
    if rows:
        _fill_rows(offset=offset, block=block, high_degree=most, meets=meets)
    return Conflicts(
        point_offset=point_offset,
        point=point,
        block_offset=offset,
        block=block,
        n_high_degree=int(chosen.size),
        n_words=n_words,
        meets=meets,
    )


@helper
def neighbours(c: Conflicts, b: int, met_by: Int32s, out: Int32s) -> int:
    """Write the blocks that ``b`` meets on points of low degree to ``out``; their number.

    ``met_by`` (n_blocks,), -1 at first, has the last block whose neighbour each block was.
    """
    n = 0
    # By the bits of a row, where there are rows.
    if c.meets.shape[0]:
        for w in range(c.n_words):
            word = c.meets[b, w]
            while word != 0:
                out[n] = w * WORD + lowest(word)
                n += 1
                word &= word - ONE
        return n
    # By the points of the block; no block is its own neighbour.
    met_by[b] = b
    for i in range(c.point_offset[b], c.point_offset[b + 1]):
        p = c.point[i]
        if p >= 0:
            for q in range(c.block_offset[p], c.block_offset[p + 1]):
                other = c.block[q]
                if met_by[other] != b:
                    met_by[other] = b
                    out[n] = other
                    n += 1
    return n


@kernel
def _fill_rows(
    offset: Int64s,
    block: Int32s,
    high_degree: int,
    meets: UInt64s,
) -> None:
    """Fill the sets of neighbours: those before each block, then their mirror images."""
    # Blocks on a point ascend: block i is before block j.
    for p in range(offset.size - 1):
        start = offset[p]
        stop = offset[p + 1]
        if stop - start <= high_degree:
            for j in range(start + 1, stop):
                for i in range(start, j):
                    meets[block[j], block[i] // WORD] |= bit(block[i] % WORD)
    n, n_words = meets.shape
    # Mirror squares of 64 by 64 bits, which stay in the cache.
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
    # Count each block once a point: ``last`` has the last block that touched it.
    last = np.full(n_points, -1, np.int32)
    count = np.zeros(n_points, np.int32)
    for b in range(block_offset.size - 1):
        for e in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                point = table[e, j]
                if last[point] != b:
                    last[point] = b
                    count[point] += 1
    # Number the shared points in the same array, and move their counts to the front.
    number = last
    n_shared = 0
    for point in range(n_points):
        number[point] = -1
        if count[point] > 1:
            number[point] = n_shared
            count[n_shared] = count[point]
            n_shared += 1
    return number, n_shared, count[:n_shared].copy()


@kernel
def _incidences(
    table: Int32s,
    number: Int32s,
    n_shared: int,
    block_offset: Int64s,
    count: Int32s,
) -> tuple[Int64s, Int32s, Int64s, Int32s]:
    """The shared points of each block, and the blocks on each, both with their offsets."""
    # Make room for the blocks on each shared point.
    n_blocks = block_offset.size - 1
    offset = np.zeros(n_shared + 1, np.int64)
    for p in range(n_shared):
        offset[p + 1] = offset[p] + count[p]
    fill = offset[:-1].copy()
    # Fill in both sides, block by block.
    block = np.empty(offset[n_shared], np.int32)
    point = np.empty(offset[n_shared], np.int32)
    point_offset = np.zeros(n_blocks + 1, np.int64)
    n_incidences = 0
    for b in range(n_blocks):
        for e in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                p = number[table[e, j]]
                # Blocks ascend: b is on p already if it is the last block there.
                if p >= 0 and (fill[p] == offset[p] or block[fill[p] - 1] != b):
                    block[fill[p]] = b
                    fill[p] += 1
                    point[n_incidences] = p
                    n_incidences += 1
        point_offset[b + 1] = n_incidences
    return point_offset, point, offset, block


@dataclass(frozen=True, eq=False)
class BlockColours:
    """Blocks grouped by colour; each colour is one launch."""

    # (n_blocks,): blocks grouped by colour, ascending inside a colour.
    order: Int32s
    # (n_colours + 1,): colour ``c`` is ``order[offset[c]:offset[c + 1]]``.
    offset: Int64s

    @property
    def count(self) -> int:
        """Number of colours."""
        return int(self.offset.size) - 1


def colour_blocks(table: Int32s, n_points: int, block_offset: Int64s) -> BlockColours:
    """Colour the blocks so that no two of one colour share a point.

    Greedy in smallest-last order [G10 section 9.1], or by saturation where that takes fewer
    colours. Then blocks of larger colours move to the least-used colour that admits them,
    so that the colours become even.

    ``table`` (n, k) has only the columns that the loop writes through, stacked over the
    to-sets; with k = 0 nothing conflicts and one colour holds every block. Block ``b`` owns
    the rows ``block_offset[b]`` to ``block_offset[b + 1] - 1``.

    O(n k + sum over points shared by up to 64 blocks of these blocks squared); points
    shared by more are kept as sets of colours instead. Memory O(n_points + shared
    incidences).
    """
    # Where nothing conflicts, one colour holds every block.
    n_blocks = block_offset.size - 1
    if n_blocks < 2 or table.shape[1] == 0 or n_points == 0:
        offset = np.array([0, n_blocks] if n_blocks else [0], dtype=np.int64)
        return BlockColours(np.arange(n_blocks, dtype=np.int32), offset)

    # Colour first-fit in two orders, and take the fewest colours, of equals the first.
    conflicts = block_conflicts(read_only(table), n_points, read_only(block_offset))
    order = _order(conflicts)
    if conflicts.n_high_degree:
        orders = [order]
    else:
        orders = [order, _by_saturation(conflicts, order)]
    coloured = map(partial(colour_blocks_first_fit, conflicts), orders)
    colour, n_colours, high_degree_colours = min(coloured, key=itemgetter(1))

    # Even out the colours, and list the blocks of each.
    balance(
        conflicts=conflicts,
        colour=colour,
        n_colours=n_colours,
        high_degree_colours=high_degree_colours,
    )
    grouped = np.argsort(colour, kind="stable").astype(np.int32)
    size = np.bincount(colour, minlength=n_colours)
    return BlockColours(grouped, offsets_of(size))


def _order(conflicts: Conflicts) -> Int32s:
    """Smallest-last order; blocks on points of high degree come before all others."""
    if conflicts.meets.size:
        degree = np.bitwise_count(conflicts.meets).sum(axis=1, dtype=np.int32)
    else:
        degree = _degrees(conflicts)
    # Peel off blocks of smallest degree; the last one peeled comes first.
    by_degree = np.argsort(degree, kind="stable").astype(np.int32)
    first = offsets_of(np.bincount(degree))
    _peel(conflicts=conflicts, degree=degree, by_degree=by_degree, first=first)
    order = by_degree[::-1].copy()
    # Peeling does not see points of high degree: the blocks on most of them go first.
    if conflicts.n_high_degree:
        before = offsets_of(conflicts.point < 0)
        n_high_degree = np.diff(before[conflicts.point_offset])
        order = order[np.argsort(-n_high_degree[order], kind="stable")]
    return order


@kernel
def _by_saturation(conflicts: Conflicts, order: Int32s) -> Int32s:
    """The order of DSATUR (Brelaz, 1979): next is the block that sees the most colours.

    Of the first 64 colours only; ties are broken by ``order``.
    """
    # Blocks stand in the queues by their rank in ``order``.
    n = order.size
    result = np.empty(n, np.int32)
    rank_in_order = np.empty(n, np.int32)
    rank = np.zeros(n, np.int32)
    met_by = np.full(n, -1, np.int32)
    beside = np.empty(n, np.int32)
    forbidden = np.zeros(n, np.uint64)
    done = np.zeros(n, np.bool_)
    for i in range(n):
        rank_in_order[order[i]] = i
    top = ZERO
    following, previous = one_queue(n, top)
    for i in range(n):
        e, top = take_first(following, previous, top)
        # A 64-bit number, here and below, so that helpers are compiled once.
        b = int(np.int64(order[e]))
        result[i] = b
        done[b] = True
        # Its lowest free colour, which its neighbours see from now on: 0 without one.
        mine = ~forbidden[b] & (forbidden[b] + ONE)
        n_neighbours = neighbours(c=conflicts, b=b, met_by=met_by, out=beside)
        for other in beside[:n_neighbours]:
            if not done[other] and forbidden[other] & mine != mine:
                forbidden[other] |= mine
                rank[other] += 1
                move_to_back(
                    following=following,
                    previous=previous,
                    f=rank_in_order[other],
                    sentinel=n + rank[other],
                )
                top = max(top, rank[other])
    return result


@kernel
def _degrees(conflicts: Conflicts) -> Int32s:
    """The number of neighbours of each block on points of low degree."""
    n = conflicts.point_offset.size - 1
    met_by = np.full(n, -1, np.int32)
    beside = np.empty(n, np.int32)
    degree = np.empty(n, np.int32)
    for b in range(n):
        degree[b] = neighbours(c=conflicts, b=b, met_by=met_by, out=beside)
    return degree


@kernel
def _peel(
    conflicts: Conflicts,
    degree: Int32s,
    by_degree: Int32s,
    first: Int64s,
) -> None:
    """Remove the block of smallest degree, again and again (Matula and Beck, 1983).

    ``by_degree`` is sorted by degree, with degree ``d`` from ``first[d]`` on; it becomes
    the order of removal. O(pairs of blocks on points of low degree).
    """
    n = by_degree.size
    met_by = np.full(n, -1, np.int32)
    beside = np.empty(n, np.int32)
    position = np.empty(n, np.int32)
    for i in range(n):
        position[by_degree[i]] = i
    for i in range(n):
        b = int(np.int64(by_degree[i]))
        n_neighbours = neighbours(c=conflicts, b=b, met_by=met_by, out=beside)
        for other in beside[:n_neighbours]:
            d = degree[other]
            # Blocks that are removed, and those of the same degree, stay where they are.
            if d <= degree[b]:
                continue
            # Exchange it with the first block of its degree: then it is the last one of the
            # degree below.
            front = by_degree[first[d]]
            by_degree[position[other]] = front
            by_degree[first[d]] = other
            position[front], position[other] = position[other], first[d]
            first[d] += 1
            degree[other] = d - 1


# Passes of balancing, at most.
PASSES = 10


@kernel
def colour_blocks_first_fit(
    conflicts: Conflicts, order: Int32s
) -> tuple[Int32s, int, UInt64s]:
    """Give each block, in order, the lowest colour that no neighbour has.

    Returns the colours, their number, and the sets of colours on points of high degree.
    """
    colour = np.full(order.size, -1, np.int32)
    high_degree_colours = np.zeros((conflicts.n_high_degree, conflicts.n_words), np.uint64)
    met_by = np.full(colour.size, -1, np.int32)
    beside = np.empty(colour.size, np.int32)
    forbidden = np.empty(conflicts.n_words, np.uint64)
    n_colours = 0
    for i in range(order.size):
        b = int(np.int64(order[i]))
        _forbid_colours(
            conflicts=conflicts,
            b=b,
            colour=colour,
            high_degree_colours=high_degree_colours,
            met_by=met_by,
            beside=beside,
            forbidden=forbidden,
        )
        # The lowest bit that is not set, in the first word that has one.
        w = 0
        while forbidden[w] == FULL:
            w += 1
        colour[b] = w * WORD + lowest(~forbidden[w])
        n_colours = max(n_colours, colour[b] + 1)
        # Its points of high degree have the colour from now on.
        _flip(
            conflicts=conflicts,
            b=b,
            colour=int(np.int64(colour[b])),
            high_degree_colours=high_degree_colours,
        )
    return colour, n_colours, high_degree_colours


@kernel
def balance(
    conflicts: Conflicts,
    colour: Int32s,
    n_colours: int,
    high_degree_colours: UInt64s,
) -> None:
    """Move blocks of large colours to the least-used colour that admits them.

    ``colour`` and ``high_degree_colours`` are changed in place; the number of colours
    stays, and no colour runs empty. At most ``PASSES`` passes, each O(pairs of blocks on
    points of low degree + n_blocks x n_colours).
    """
    size = np.zeros(n_colours, np.int64)
    for c in colour:
        size[c] += 1
    met_by = np.full(colour.size, -1, np.int32)
    beside = np.empty(colour.size, np.int32)
    forbidden = np.empty(conflicts.n_words, np.uint64)
    for _ in range(PASSES):
        moved = 0
        met_by[:] = -1
        for b in range(colour.size):
            old = int(np.int64(colour[b]))
            # No block leaves a colour that has at most one more than the smallest.
            if size[old] <= smallest(size) + 1:
                continue
            _forbid_colours(
                conflicts=conflicts,
                b=b,
                colour=colour,
                high_degree_colours=high_degree_colours,
                met_by=met_by,
                beside=beside,
                forbidden=forbidden,
            )
            new = _least_used(forbidden, size)
            if new >= 0 and size[new] + 1 < size[old]:
                # Take its old colour off its points of high degree, put the new one there.
                _flip(
                    conflicts=conflicts,
                    b=b,
                    colour=old,
                    high_degree_colours=high_degree_colours,
                )
                _flip(
                    conflicts=conflicts,
                    b=b,
                    colour=new,
                    high_degree_colours=high_degree_colours,
                )
                size[old] -= 1
                size[new] += 1
                colour[b] = new
                moved += 1
        if not moved:
            break


@helper
def _forbid_colours(
    conflicts: Conflicts,
    b: int,
    colour: Int32s,
    high_degree_colours: UInt64s,
    met_by: Int32s,
    beside: Int32s,
    forbidden: UInt64s,
) -> None:
    """Set ``forbidden`` to the colours of the blocks that ``b`` shares a point with."""
    for w in range(forbidden.size):
        forbidden[w] = 0
    # Colours on its points of high degree.
    if conflicts.n_high_degree:
        for i in range(conflicts.point_offset[b], conflicts.point_offset[b + 1]):
            if conflicts.point[i] < 0:
                row = -1 - conflicts.point[i]
                for w in range(forbidden.size):
                    forbidden[w] |= high_degree_colours[row, w]
    # Colours of its neighbours on the others.
    n_neighbours = neighbours(c=conflicts, b=b, met_by=met_by, out=beside)
    for other in beside[:n_neighbours]:
        if colour[other] >= 0:
            forbidden[colour[other] // WORD] |= bit(colour[other] % WORD)


@helper
def _flip(
    conflicts: Conflicts,
    b: int,
    colour: int,
    high_degree_colours: UInt64s,
) -> None:
    """Flip the bit of a colour on all points of high degree of a block."""
    for i in range(conflicts.point_offset[b], conflicts.point_offset[b + 1]):
        if conflicts.point[i] < 0:
            row = -1 - conflicts.point[i]
            high_degree_colours[row, colour // WORD] ^= bit(colour % WORD)


@helper
def _least_used(forbidden: UInt64s, size: Int64s) -> int:
    """The colour with the fewest blocks that is not forbidden, -1 if there is none."""
    best = -1
    for w in range((size.size + WORD - 1) // WORD):
        free = ~forbidden[w]
        while free != 0:
            c = w * WORD + lowest(free)
            if c >= size.size:
                break
            if best < 0 or size[c] < size[best]:
                best = c
            free &= free - ONE
    return best
