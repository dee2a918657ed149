"""A chain cut into tiles, as arrays: what each runs, copies and keeps [R14 algorithm 9]."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...types.loops import Loop
from ...types.maps import Int32s, Int64s, UInt16s, offsets_of

SHORT = 2**16


@dataclass(frozen=True, eq=False)
class LocalSet:
    """The elements of one set that each tile holds."""

    # (n_tiles + 1,): tile ``t`` holds ``elements[offset[t]:offset[t + 1]]``; the place in this list
    # is the local number of an element. Those that the tile owns come first, then those that many
    # loops run.
    offset: Int64s
    elements: Int32s
    # (n_tiles,): how many of them the tile owns. Every element has one owner, or the set has none
    # at all because no loop of the chain writes to it or reduces over it.
    own: Int64s

    @property
    def largest(self) -> int:
        """Most elements in a tile."""
        return int(np.diff(self.offset).max(initial=0))


@dataclass(frozen=True, eq=False)
class LocalMap:
    """The rows of a map that tiles need, in local numbers."""

    # (n_tiles + 1,): rows ``offset[t]`` to ``offset[t + 1] - 1`` are those of tile ``t``'s first
    # elements.
    offset: Int64s
    table: UInt16s | Int32s  # (rows, arity): 0 in columns that no loop uses


@dataclass(frozen=True, eq=False)
class LocalSelection:
    """Some local elements of each tile."""

    count: Int64s  # (n_tiles,)
    # (sum of count,): local numbers, tile after tile, ascending; None: the first ``count[t]`` of
    # each.
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
        last = np.concatenate([self.items, [0]])[self.offset[1:] - 1] + 1
        return np.where(self.count > 0, last, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the items."""
        return 0 if self.items is None else self.items.nbytes


@dataclass(frozen=True)
class Kept:
    """What becomes of dats that a chain writes, apart from those whose values are stored."""

    # Dats whose values are not stored: whoever reads them next must write them first.
    dropped: frozenset[str] = field(default_factory=frozenset)
    # Dats that are zero before and after the chain: neither copied nor stored.
    zero: frozenset[str] = field(default_factory=frozenset)

    @property
    def all(self) -> frozenset[str]:
        """Both: dats that are written and not stored."""
        return self.dropped | self.zero


@dataclass(frozen=True, eq=False)
class TilePlan:
    """Overlapped tiles: each computes all that its own elements need, whatever others do."""

    loops: tuple[Loop, ...]  # with one name for each dat
    sets: Mapping[str, LocalSet]  # by set name
    runs: tuple[LocalSelection, ...]  # elements that each loop runs
    # By dat name: elements whose values before the chain a tile reads.
    copies: Mapping[str, LocalSelection]
    kept: Kept
    # By map name: they follow from the rest.
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
        return np.dtype(np.uint16 if self.sets[to_set].largest <= SHORT else np.int32)

    @property
    def nbytes(self) -> int:
        lists = sum(
            4 * int(s.offset[-1]) + s.offset.nbytes + s.own.nbytes for s in self.sets.values()
        )
        tables = sum(m.table.nbytes + m.offset.nbytes for m in self.maps.values())
        chosen = (*self.runs, *self.copies.values())
        return lists + tables + sum(s.nbytes + s.count.nbytes for s in chosen)

    def redundancy(self, sizes: Mapping[str, int]) -> float:
        """Elements that run, by those that would run without tiles: 1 or more."""
        run = sum(int(s.count.sum()) for s in self.runs)
        alone = sum(sizes[loop.over] for loop in self.loops)
        return run / alone if alone else 1.0
