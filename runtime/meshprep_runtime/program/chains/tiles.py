"""The tiles of a chain as arrays: elements that each holds, runs, copies [R14 alg. 9]."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...types.loops import Loop
from ...types.maps import Int32s, Int64s, UInt16s, offsets_of

# Local numbers below this fit into 16 bits.
SHORT = 2**16


@dataclass(frozen=True, eq=False)
class LocalSet:
    """The elements of one set that each tile holds.

    Attributes
    ----------
    offset : (n_tiles + 1,) int64
        Tile ``t`` holds ``elements[offset[t]:offset[t + 1]]``; the place in this list is
        the local number of an element.
    elements : (n,) int32
        In a tile, the elements that it owns come first, then those that more loops run.
    own : (n_tiles,) int64
        The number of elements that each tile owns. Every element has one owner; in a set
        that no loop of the chain writes to or reduces over, no element has one.
    """

    offset: Int64s
    elements: Int32s
    own: Int64s

    @property
    def largest(self) -> int:
        """The most elements in a tile."""
        return int(np.diff(self.offset).max(initial=0))


@dataclass(frozen=True, eq=False)
class LocalMap:
    """The rows of a map that tiles need, in local numbers.

    Attributes
    ----------
    offset : (n_tiles + 1,) int64
        Rows ``offset[t]`` to ``offset[t + 1] - 1`` belong to the first elements of tile
        ``t``.
    table : (rows, arity) uint16 or int32
        0 in columns that no loop uses.
    """

    offset: Int64s
    table: UInt16s | Int32s


@dataclass(frozen=True, eq=False)
class LocalSelection:
    """Some of the elements of each tile.

    Attributes
    ----------
    count : (n_tiles,) int64
    items : (sum of count,) int32 or None
        Local numbers, tile after tile, ascending. None for the first ``count[t]`` elements
        of each tile.
    """

    count: Int64s
    items: Int32s | None = None

    @cached_property
    def offset(self) -> Int64s:
        """Where the items of each tile begin."""
        return offsets_of(self.count)

    @property
    def end(self) -> Int64s:
        """One past the last local number of each tile."""
        if self.items is None:
            return self.count
        # One item more, since the last offset of a selection without items is 0.
        end = np.concatenate([self.items, [0]])[self.offset[1:] - 1] + 1
        return np.where(self.count > 0, end, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the items."""
        if self.items is None:
            return 0
        return self.items.nbytes


@dataclass(frozen=True)
class Kept:
    """Dats that a chain writes and tiles do not store.

    ``dropped`` dats have no values after the chain: a loop must write them before one reads
    them. ``zero`` dats are zero before and after the chain: tiles do not copy them either.
    """

    dropped: frozenset[str] = field(default_factory=frozenset)
    zero: frozenset[str] = field(default_factory=frozenset)

    @property
    def all(self) -> frozenset[str]:
        """All dats that are written and not stored."""
        return self.dropped | self.zero


@dataclass(frozen=True, eq=False)
class TilePlan:
    """Overlapped tiles: each computes all values that its owned elements need.

    Attributes
    ----------
    loops : tuple of Loop
        With one name for each dat.
    sets : mapping of set name to LocalSet
    runs : tuple of LocalSelection
        The elements that each loop runs.
    copies : mapping of dat name to LocalSelection
        The elements whose values from before the chain a tile reads.
    kept : Kept
    maps : mapping of map name to LocalMap
        They follow from the sets and runs, and are added last.
    """

    loops: tuple[Loop, ...]
    sets: Mapping[str, LocalSet]
    runs: tuple[LocalSelection, ...]
    copies: Mapping[str, LocalSelection]
    kept: Kept
    maps: Mapping[str, LocalMap] = field(default_factory=dict)

    @property
    def n_tiles(self) -> int:
        return next(iter(self.sets.values())).own.size

    @property
    def written(self) -> frozenset[str]:
        """Names of the dats that the chain changes."""
        return frozenset(name for loop in self.loops for name in loop.written)

    def rows_of(self, map_name: str) -> Int64s:
        """Rows of a map that each tile needs: those of its first elements."""
        rows = np.zeros(self.n_tiles, np.int64)
        for loop, run in zip(self.loops, self.runs, strict=True):
            if map_name in loop.maps:
                rows = np.maximum(rows, run.end)
        return rows

    def index_type(self, to_set: str) -> np.dtype[Any]:
        """The smallest type that holds the local numbers of a set."""
        if self.sets[to_set].largest <= SHORT:
            return np.dtype(np.uint16)
        return np.dtype(np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        total = 0
        for local_set in self.sets.values():
            # An element takes 4 bytes.
            total += 4 * int(local_set.offset[-1])
            total += local_set.offset.nbytes + local_set.own.nbytes
        for local_map in self.maps.values():
            total += local_map.table.nbytes + local_map.offset.nbytes
        for selection in (*self.runs, *self.copies.values()):
            total += selection.nbytes + selection.count.nbytes
        return total

    def redundancy(self, sizes: Mapping[str, int]) -> float:
        """The elements that run, divided by those that run without tiles: 1 or more."""
        n_runs = sum(int(s.count.sum()) for s in self.runs)
        n_elements = sum(sizes[loop.over] for loop in self.loops)
        if n_elements:
            return n_runs / n_elements
        return 1.0
