"""Words of 64 colours."""

from __future__ import annotations

import numpy as np
from numba import njit

WORD = 64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
BYTE = np.uint64(0xFF)
EIGHT = np.uint64(8)


@njit(cache=True)
def bit(colour: int) -> np.uint64:
    """The word with only the bit of ``colour``, 0..63."""
    return ONE << np.uint64(colour)


@njit(cache=True)
def first_colours(count: int) -> np.uint64:
    """The word with the lowest ``count`` bits, 1..64."""
    return FULL >> np.uint64(WORD - count)


@njit(cache=True)
def lowest(word: np.uint64) -> int:
    """The number of the lowest bit set; ``word`` is not 0."""
    at = 0
    while word & BYTE == 0:
        word >>= EIGHT
        at += 8
    while word & ONE == 0:
        word >>= ONE
        at += 1
    return at
