"""Words of 64 colours."""

import numpy as np

from ..kernels import helper

WORD = 64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
# Every six bits in a row of a de Bruijn word differ: shifted by n, its top ones stand for n.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
TOP_SIX = np.uint64(58)
PLACE = np.empty(WORD, np.uint8)
PLACE[[(0x03F79D71B4CB0A89 << n) % 2**64 >> 58 for n in range(WORD)]] = np.arange(WORD)


@helper
def bit(colour: int) -> np.uint64:
    """The word with only the bit of ``colour``, 0..63."""
    return ONE << np.uint64(colour)


@helper
def first_colours(count: int) -> np.uint64:
    """The word with the lowest ``count`` bits, 1..64."""
    return FULL >> np.uint64(WORD - count)


@helper
def lowest(word: np.uint64) -> int:
    """The number of the lowest bit set; ``word`` is not 0."""
    alone = word & (~word + ONE)
    return int(PLACE[(alone * DE_BRUIJN) >> TOP_SIX])
