"""Small components of a mesh are packed into blocks whole: nothing is cut where all of one fits."""

import numpy as np

from ...kernels import Bools, Int32s, Int64s, kernel

# Blocks of what is not packed are at least that full, by the mean of all, and at most as full.
LEAST_FULL, CHANCE = 0.5, 1.0005


def packed(size: Int64s, alone: Bools, n_blocks: int, cap: int) -> tuple[Int32s, Int64s]:
    """Where each component stands in a row that is cut into blocks, and the sizes of these.

    Components of at most ``cap`` elements, ``alone`` in that they share no point with others, fill
    blocks by best fit, the largest first. As many of the fullest blocks stay as leave room for all
    other components, which stand before them in their order and are cut into blocks of equal size,
    no fuller than the mean of all.

    Parameters
    ----------
    size : (components,) int64
        Elements of each, at least 1; together at most ``n_blocks * cap``.
    alone : (components,) bool

    Returns
    -------
    rank : (components,) int32
    share : (n_blocks,) int64
        Elements of each block of the row; 1 each where nothing is packed.

    O(components * cap).
    """
    items = np.flatnonzero(alone & (size <= cap))
    items = items[np.argsort(-size[items], kind="stable")]
    bin_of = np.full(size.size, -1, np.int32)
    bin_of[items] = _best_fit(size[items], cap)
    fill = np.bincount(bin_of[items], size[items]).astype(np.int64)
    fullest = np.argsort(-fill, kind="stable")[:n_blocks]
    # what is left, and blocks for it, where none, one, two and more are kept
    rest = size.sum() - np.concatenate([[0], np.cumsum(fill[fullest])])
    left = n_blocks - np.arange(rest.size)
    mean = size.sum() / n_blocks
    fits = (rest >= LEAST_FULL * mean * left) & (rest <= CHANCE * mean * left)
    kept = int(np.flatnonzero(fits).max(initial=0))
    rank = np.arange(size.size, dtype=np.int32)
    if not kept:
        return rank, np.ones(n_blocks, np.int64)
    # the last is that of what is in no bin
    place = np.zeros(fill.size + 1, np.int64)
    place[fullest[:kept]] = np.arange(1, kept + 1)
    rank[np.argsort(place[bin_of], kind="stable")] = np.arange(size.size)
    cuts = rest[kept] * np.arange(left[kept] + 1) // max(1, left[kept])
    return rank, np.concatenate([np.diff(cuts), fill[fullest[:kept]]])


@kernel
def _best_fit(size: Int64s, cap: int) -> Int32s:
    """The bin of each item of at most ``cap``: the fullest that has room for it."""
    bin_of = np.empty(size.size, np.int32)
    # bins by the room that is left in them: the first of each, and the next one of each bin
    first, after, count = np.full(cap + 1, -1, np.int32), np.empty(size.size, np.int32), 0
    for i in range(size.size):
        room = size[i]
        while room < cap and first[room] < 0:
            room += 1
        b = first[room]
        if b < 0:
            b, count = count, count + 1
        else:
            first[room] = after[b]
        bin_of[i] = b
        left = room - size[i]
        after[b], first[left] = first[left], b
    return bin_of
