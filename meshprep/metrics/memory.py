"""Predicted bytes between a GPU's memory and its second-level cache, strategy by strategy.

:mod:`traffic` counts what blocks ask of the second-level cache. What the memory moves is less: the
cache keeps what neighbours ask for. So a sector counts once while blocks, or warps where nothing is
staged, find it in the cache: as long as those in between touch no more than the cache holds.
Nothing is simulated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.strategies import STRATEGIES, WARP, Strategy
from meshprep_runtime.errors import check_choice
from meshprep_runtime.maps import SetMap, offsets_of, ranges, run_offset
from meshprep_runtime.plan import LoopPlan, Variant
from meshprep_runtime.plan.matrices import with_places

from ..colour.whole_set import colour_whole_set
from ..loops.reach import written_table
from .traffic import (
    INDEX_BYTES,
    LAYOUTS,
    LINE_BYTES,
    SECTOR_BYTES,
    THREADS,
    Use,
    grouped_units,
    plan_sectors,
    uses_of,
)

# Values of four bytes that are added at once, where they lie together.
PACKED = 4
# Growth of the runs that are tried.
STEP = 1.25


@dataclass(frozen=True)
class MemoryTraffic:
    """What one call of a loop asks of a device."""

    # Sectors between memory and cache.
    read: int
    written: int
    # Atomic additions that the cache carries out; four neighbouring f4 are one.
    atomics: int
    launches: tuple[int, ...]  # thread blocks of each launch

    @property
    def nbytes(self) -> int:
        return SECTOR_BYTES * (self.read + self.written)


@dataclass(frozen=True, eq=False)
class _Touched:
    """What groups (blocks or warps) touch of one array, in the order of the launches."""

    columns: NDArray[np.int32]
    offset: NDArray[np.int64]
    rows: NDArray[np.int32]
    width: int
    size: int
    read: bool
    written: bool

    def lines(self, run: int) -> int:
        """Distinct lines of the cache under runs of so many groups, summed."""
        return self._units(np.append(self.offset[:-1:run], self.offset[-1]), LINE_BYTES, 0)

    def sectors(self, kept: int) -> int:
        """Sectors that are fetched where the last ``kept`` groups have left theirs."""
        return self._units(self.offset, SECTOR_BYTES, kept)

    def _units(self, offset: NDArray[np.int64], nbytes: int, kept: int) -> int:
        seen_by = np.empty(-(-self.size * self.width // nbytes), np.int32)
        return int(
            grouped_units(self.columns, self.rows, offset, seen_by, self.width, nbytes, kept)
        )


def memory_traffic(
    plan: LoopPlan,
    variant: Variant,
    strategy: str,
    cache_bytes: int,
    *,
    commit: str = "colours",
    layout: str = "aos",
) -> MemoryTraffic:
    """Predict what one call of a loop moves between memory and the second-level cache.

    Raises MeshprepError for an unknown strategy or layout. Maps, direct values and the arrays of a
    plan are used once and count once. O(n x arity x dats) for each length of a run that is tried,
    about a dozen.

    Parameters
    ----------
    variant : Variant
        Blocks; strategies without blocks do not look at it.
    strategy : str
        A strategy of a GPU.
    cache_bytes : int
        What the cache holds.
    commit : {"colours", "atomics"}
    layout : {"aos", "soa"}
        Of all dats.
    """
    check_choice("strategy", strategy, STRATEGIES)
    check_choice("layout", layout, LAYOUTS)
    return _Counting(plan, variant, STRATEGIES[strategy], commit, layout).over(cache_bytes)


@dataclass(frozen=True, eq=False)
class _Counting:
    """A loop with a strategy, and what its thread blocks touch."""

    plan: LoopPlan
    variant: Variant
    strategy: Strategy
    commit: str
    layout: str

    def over(self, cache_bytes: int) -> MemoryTraffic:
        """What moves where the cache holds so many bytes."""
        touched = [*(t for use in self._uses for t in self._touched(use)), *self._gathered]
        read, written = self._streamed
        groups = max((t.offset.size - 1 for t in touched), default=1)
        # What is streamed takes its room, too.
        streamed = (read + written) * SECTOR_BYTES
        kept = 0
        for run in _lengths(groups):
            lines = sum(t.lines(run) for t in touched)
            held = lines * LINE_BYTES + streamed
            if held * run / groups > cache_bytes:
                break
            kept = run
        counts = [t.sectors(kept) for t in touched]
        read += sum(n for t, n in zip(touched, counts, strict=True) if t.read)
        written += sum(n for t, n in zip(touched, counts, strict=True) if t.written)
        return MemoryTraffic(read, written, self._atomics, self._launches)

    @cached_property
    def _uses(self) -> list[Use]:
        return uses_of(self.plan.loop, self._reached[0])

    @cached_property
    def _reached(self) -> tuple[dict[str, SetMap], dict[str, int]]:
        plan = self.plan
        return with_places(plan.loop, plan.maps, plan.sizes, plan.matrices)

    @cached_property
    def _order(self) -> NDArray[np.integer]:
        """Blocks, or elements where there are none, in the order of the launches."""
        n = self.plan.sizes[self.plan.loop.over]
        if self.strategy.blocks:
            every = np.arange(self.variant.n_blocks)
            return every if self.commit == "atomics" else self.variant.block_order
        return np.arange(n) if self.strategy.adds != "plain" else self._by_colour[0]

    @cached_property
    def _by_colour(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Elements by colour of the whole set, and how many each has."""
        plan = self.plan
        found = colour_whole_set(*written_table(plan.loop, plan.maps, plan.sizes))
        sizes = np.bincount(found.colour, minlength=found.count)
        return np.argsort(found.colour, kind="stable"), sizes

    @cached_property
    def _launches(self) -> tuple[int, ...]:
        if not self.strategy.blocks:
            n = [self.plan.sizes[self.plan.loop.over]]
            sizes = self._by_colour[1].tolist() if self.strategy.adds == "plain" else n
            sums = [
                self.plan.sizes[str(u.to_set)]
                for u in self._uses
                if self.strategy.adds == "apart" and u.conflicts
            ]
            return tuple(-(-size // THREADS) for size in [*sizes, *sums])
        if self.commit == "atomics":
            return (self.variant.n_blocks,)
        return tuple(np.diff(self.variant.block_colour_offset).tolist())

    @cached_property
    def _elements(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The elements in the order of the launches, and the first of each block or warp."""
        if self.strategy.blocks:
            count = np.diff(self.variant.block_offset)[self._order]
            places = ranges(self.variant.block_offset[:-1][self._order], count)
            listed = self.variant.elements
            return (places if listed is None else listed[places]).astype(np.int32), offsets_of(
                count
            )
        return self._order.astype(np.int32), run_offset(self._order.size, WARP)

    def _touched(self, use: Use) -> Iterator[_Touched]:
        """Each array of a dat that is reached through maps."""
        if use.to_set is None or (self.strategy.adds == "apart" and use.conflicts):
            return
        arrays, width = use.arrays(self.layout)
        if self._keeps(use):
            staging = self.variant.staging[use.to_set]
            count = np.diff(staging.point_offset)[self._order]
            rows = ranges(staging.point_offset[:-1][self._order], count).astype(np.int32)
            columns, offset = np.column_stack([staging.points]), offsets_of(count)
        else:
            rows, offset = self._elements
            maps = self._reached[0]
            columns = np.column_stack([maps[name].table[:, i] for name, i in use.columns])
        size = self._reached[1][use.to_set]
        one = _Touched(columns, offset, rows, width, size, use.read, use.written)
        yield from [one] * arrays

    @property
    def _lists(self) -> bool:
        """Whether elements are taken in another order than that of their numbers."""
        listed = self.strategy.blocks and self.variant.elements is not None
        return listed or self.strategy.adds == "plain"

    @cached_property
    def _map_bytes(self) -> int:
        """Of the entries of maps that an element reads."""
        apart = self.strategy.adds == "apart"
        loose = [u for u in self._uses if not self._keeps(u) and not (apart and u.conflicts)]
        return INDEX_BYTES * len({column for u in loose for column in u.columns})

    @cached_property
    def _gathered(self) -> list[_Touched]:
        """What lies in the order of the elements' numbers, where that is not the order of now."""
        if not self._lists:
            return []
        rows, offset = self._elements
        columns = np.arange(rows.size, dtype=np.int32)[:, None]
        found = [
            (arrays, width, use.read, use.written)
            for use in self._uses
            if use.to_set is None
            for arrays, width in [use.arrays(self.layout)]
        ]
        if self.strategy.adds == "plain" and not self.strategy.permutes and self._map_bytes:
            found.append((1, self._map_bytes, True, False))
        return [
            _Touched(columns, offset, rows, width, rows.size, read, written)
            for arrays, width, read, written in found
            for _ in range(arrays)
        ]

    @cached_property
    def _streamed(self) -> tuple[int, int]:
        """Sectors read and written of what is used once."""
        plan, n = self.plan, self.plan.sizes[self.plan.loop.over]
        direct = [u for u in self._uses if u.to_set is None and not self._lists]
        read = sum(_whole(n, u.dim * u.itemsize) for u in direct if u.read)
        written = sum(_whole(n, u.dim * u.itemsize) for u in direct if u.written)
        if self.strategy.adds != "plain" or self.strategy.permutes:
            read += _whole(n, self._map_bytes)
        if self.strategy.blocks:
            read += plan_sectors(plan.loop, [u for u in self._uses if self._keeps(u)], self.variant)
        read += _whole(n, INDEX_BYTES) * self._lists
        if self.strategy.adds == "apart":
            more = [self._left(u) for u in self._uses if u.conflicts]
            read += sum(r for r, _ in more)
            written += sum(w for _, w in more)
        return read, written

    def _keeps(self, use: Use) -> bool:
        chosen = self.strategy
        stages = chosen.blocks and (chosen.stages_reads or chosen.stages)
        return stages and use.staged(reads=chosen.stages_reads)

    def _left(self, use: Use) -> tuple[int, int]:
        """The temporary array of a dat, written and read, and the sums at its points."""
        n, points = self.plan.sizes[self.plan.loop.over], self.plan.sizes[str(use.to_set)]
        entries = n * len(use.written_columns)
        values, sums = (_whole(many, use.dim * use.itemsize) for many in (entries, points))
        listed = _whole(entries, INDEX_BYTES) + _whole(points + 1, INDEX_BYTES)
        return values + listed + sums, values + sums

    @cached_property
    def _atomics(self) -> int:
        total, blocks = 0, self.strategy.blocks
        if (self.commit if blocks else self.strategy.adds) != "atomics":
            return 0
        for use in (u for u in self._uses if u.conflicts):
            rows = self.plan.sizes[self.plan.loop.over] * len(use.written_columns)
            if blocks and not use.placed:
                own = self.variant.staging[str(use.to_set)].exclusive
                rows = int(np.count_nonzero(~own.astype(bool)))
            total += rows * _additions(use, self.layout)
        return total


def _additions(use: Use, layout: str) -> int:
    """Atomic additions of a row: two lanes of a warp at one point are two of them."""
    if use.itemsize == 4 and layout == "aos":
        return -(-use.dim // PACKED)
    return use.dim


def _lengths(blocks: int) -> Iterator[int]:
    """Numbers of blocks from 1 to all."""
    run = 1
    while run < blocks:
        yield run
        run = max(run + 1, int(run * STEP))
    yield blocks


def _whole(n: int, width: int) -> int:
    """Sectors under a whole array."""
    return -(-n * width // SECTOR_BYTES)
