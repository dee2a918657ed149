"""Colours of a whole set: no two elements of one colour write the same point [S19 section 2.1]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from .greedy import first_fit

_first_fit = kernel(first_fit)


@dataclass(frozen=True, eq=False)
class WholeSetColours:
    """Colours of the elements of a set."""

    colour: NDArray[np.int32]  # (n,): from 0, without gaps
    count: int


def colour_whole_set(table: NDArray[np.int32], n_points: int) -> WholeSetColours:
    """Colour a set so that no two elements of one colour share a point.

    First-fit in storage order with bit masks, 64 colours a round [G10 section 9.1]. An element that
    names a point twice does not conflict with itself. ``table`` (n, k) has only the columns that
    the loop writes through, stacked over the to-sets; k may be 0.

    O(n k) while 64 colours suffice; then a point with more elements costs its elements once more.
    Memory O(n + n_points), whatever the number of colours.
    """
    n, k = table.shape
    if k == 0:
        return WholeSetColours(np.zeros(n, np.int32), min(n, 1))
    colour = np.full(n, -1, np.int32)
    _first_fit(np.ascontiguousarray(table), n_points, np.arange(n, dtype=np.int32), colour, 0)
    return WholeSetColours(colour, int(colour.max(initial=-1)) + 1)
