"""Lists of elements as runs of numbers that follow each other, which take little room."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]


def as_runs(elements: Numbers) -> tuple[Numbers, Numbers]:
    """First number and length of each run of a list. O(n)."""
    begin = np.flatnonzero(np.diff(elements, prepend=np.int32(-2)) != 1)
    return elements[begin], np.diff(begin, append=elements.size).astype(np.int32)


def from_runs(first: Numbers, length: Numbers) -> Numbers:
    """The reverse of :func:`as_runs`. O(n)."""
    begin = np.cumsum(length, dtype=np.int64) - length
    shift = np.repeat((first - begin).astype(np.int32), length)
    shift += np.arange(shift.size, dtype=np.int32)
    return shift
