"""The conflicts of blocks: which blocks share which points, for block colouring."""

from typing import NamedTuple

import numpy as np

from ..kernels import Int32s, Int64s, UInt64s, helper, kernel
from .bits import ONE, WORD, bit, lowest

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
    """Set the bits of the earlier blocks on each point, and mirror them.

    Point by point, since the points of a block are scattered in memory: three times faster.
    """
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
