"""A chain cut into skewed tiles, as arrays: what each runs, and which run at the same time."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...loops import Loop

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


@dataclass(frozen=True, eq=False)
class LoopTiles:
    """The elements of one loop that each tile runs."""

    # (n_tiles + 1,): tile ``t`` runs ``elements[offset[t]:offset[t + 1]]``, ascending.
    offset: NDArray[np.int64]
    # (runs,): the list as runs of numbers that follow each other.
    first: NDArray[np.int32]
    length: NDArray[np.int32]

    @classmethod
    def of_elements(cls, offset: NDArray[np.int64], elements: NDArray[np.int32]) -> "LoopTiles":
        """From the list itself. O(n)."""
        return cls(offset, *as_runs(elements))

    @cached_property
    def elements(self) -> NDArray[np.int32]:
        """The list, a permutation of the loop's set; made when it is asked for first."""
        return from_runs(self.first, self.length)


@dataclass(frozen=True, eq=False)
class SkewedPlan:
    """Tiles in the order of their colours."""

    loops: tuple[Loop, ...]  # with one name for each dat
    runs: tuple[LoopTiles, ...]  # elements that each loop runs
    # (n_colours + 1,): tiles of colour ``c`` are ``colour_offset[c]`` to below
    # ``colour_offset[c + 1]``; they may run at the same time.
    colour_offset: NDArray[np.int64]

    @property
    def n_tiles(self) -> int:
        return int(self.colour_offset[-1])

    @property
    def n_colours(self) -> int:
        return self.colour_offset.size - 1

    @property
    def written(self) -> frozenset[str]:
        """Names of the dats that the chain changes."""
        return frozenset(name for loop in self.loops for name in loop.written)

    @property
    def nbytes(self) -> int:
        return sum(4 * int(r.offset[-1]) + r.offset.nbytes for r in self.runs)
