"""Elements of each block in the order of their thread colours, so that a warp sees few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel


def sort_by_colour(
    colour: NDArray[np.unsignedinteger], block_offset: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The order, ``new_to_old``, that sorts each block by colour; stable, blocks stay in place.

    Parameters
    ----------
    colour : (n,) uint8 or uint16
        As :func:`~meshprep.colour.thread_colours.colour_threads` gives it.
    block_offset : (n_blocks + 1,) int64

    Returns
    -------
    (n,) int32

    O(n + sum over blocks of the colours).
    """
    return _sort(np.ascontiguousarray(colour), block_offset)


@kernel
def _sort(
    colour: NDArray[np.unsignedinteger], block_offset: NDArray[np.int64]
) -> NDArray[np.int32]:
    new_to_old = np.empty(colour.size, np.int32)
    place = np.zeros(np.iinfo(np.uint16).max + 2, np.int64)
    for b in range(block_offset.size - 1):
        start, stop = block_offset[b], block_offset[b + 1]
        most = np.int64(0)
        for e in range(start, stop):
            most = max(most, np.int64(colour[e]))
        place[: most + 2] = 0
        for e in range(start, stop):
            place[np.int64(colour[e]) + 1] += 1
        place[0] = start
        for c in range(most + 1):
            place[c + 1] += place[c]
        for e in range(start, stop):
            own = np.int64(colour[e])
            new_to_old[place[own]] = e
            place[own] += 1
    return new_to_old
