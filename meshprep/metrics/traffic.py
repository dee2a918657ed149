"""Predicted memory traffic of a loop on a GPU: the 32-byte sectors that its blocks move [S19].

Nothing is simulated: a block moves each sector that it touches once, as staging does and as a
first-level cache that holds a block's data would. Counted are the values that the loop reaches
through maps, its direct values, the maps and the arrays of the plan; globals are not. A matrix is a
dat of its nonzeros, reached through their places, that blocks do not stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.strategies import WARP
from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.plan import Staging, Variant
from meshprep_runtime.plan.matrices import plain_args
from meshprep_runtime.types.loops import CONFLICTING, Access, Arg, Loop
from meshprep_runtime.types.maps import SetMap, offsets_of, read_only, run_offset

from ..colour.greedy import colour_whole_set
from ..kernels import Int32s, Int64s, kernel
from ..loops.reach import written_table

SECTOR_BYTES = 32
# A cache makes room for a line where only a sector of it is asked for.
LINE_BYTES = 128
INDEX_BYTES = 4
OFFSET_BYTES = 8
STAGED = ("all", "increments", "none", "atomics")
# Threads of a block where the plan's blocks are not used.
THREADS = 256
LAYOUTS = ("aos", "soa")
Column = tuple[str, int]


@dataclass(frozen=True)
class Widths:
    """Bytes of an entry of a block's arrays: as plans store them, unless given."""

    local: int = 2
    colour: int = 1

    def __post_init__(self) -> None:
        if min(self.local, self.colour) < 1:
            raise MeshprepError(f"entries of {self.local} and {self.colour} bytes: give at least 1")


@dataclass(frozen=True)
class Traffic:
    """Sectors read and written, by what they hold."""

    # ``indirect``: values reached through maps, those to increment included; ``direct``;
    # ``maps``: the loop's own maps, where values are not staged; ``plan``: staging lists, local
    # maps, colours and offsets, or the order of the elements where there are no blocks.
    reads: Mapping[str, int]
    writes: Mapping[str, int]  # ``indirect`` and ``direct``

    @property
    def read(self) -> int:
        return sum(self.reads.values())

    @property
    def written(self) -> int:
        return sum(self.writes.values())


@dataclass
class Use:
    """What a loop does with one dat, over all its arguments."""

    to_set: str | None
    placed: bool = False  # a matrix, whose nonzeros no block stages
    dim: int = 0
    itemsize: int = 0
    read: bool = False
    written: bool = False
    conflicts: bool = False
    read_columns: dict[Column, None] = field(default_factory=dict)
    written_columns: dict[Column, None] = field(default_factory=dict)

    def add(self, arg: Arg) -> None:
        """Take in one of its arguments."""
        if arg.nbytes > self.dim * self.itemsize:
            self.dim, self.itemsize = arg.dim, np.dtype(arg.dtype).itemsize
        read, written = arg.access is not Access.WRITE, arg.access in CONFLICTING
        self.read |= read
        self.written |= written
        self.conflicts |= arg.conflicts
        if arg.map is not None:
            columns = {(arg.map, i): None for i in arg.index}
            self.read_columns |= columns if read else {}
            self.written_columns |= columns if written else {}

    def staged(self, *, reads: bool) -> bool:
        """Whether blocks keep it, where they keep what is incremented, or with ``reads`` all."""
        return self.to_set is not None and not self.placed and (reads or self.conflicts)

    @property
    def columns(self) -> dict[Column, None]:
        """The columns of maps that reach the dat, each once."""
        return self.read_columns | self.written_columns

    def arrays(self, layout: str) -> tuple[int, int]:
        """How many arrays hold the dat, and the bytes of one entry of each."""
        whole = self.dim * self.itemsize
        return (1, whole) if layout == "aos" else (self.dim, self.itemsize)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Elements that share what they fetch: blocks, or the warps of each colour of the set.

    ``maps_in_order`` where the maps lie in the order of the groups, if nothing else does.
    """

    rows: Int32s
    offset: Int64s
    in_order: bool
    maps_in_order: bool = False


def traffic(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    variant: Variant,
    *,
    staged: str = "all",
    layout: str = "aos",
    widths: Widths | None = None,
) -> Traffic:
    """Count the sectors that one call of a loop moves.

    Values that are incremented are read and written; a sector that two blocks touch counts for
    both; staged lists move whole. Blocks that list their elements gather direct values, and read
    the list. ``staged``: ``"all"`` that maps reach; ``"increments"``, the rest being fetched by
    every thread; ``"none"``: colour after colour in warps of 32; ``"atomics"``: runs of 256
    elements, an atomic on each sector that a component of a warp meets. ``layout``: ``"aos"`` or
    ``"soa"``, arrays on sectors; maps lie row by row, local ones column by column. ``widths``: of
    local maps and colours, None as the plan stores them. For matrices ``maps`` have their places
    (``with_places``). Raises MeshprepError for other values. O(n x arity x dats).
    """
    check_choice("staged", staged, STAGED)
    check_choice("layout", layout, LAYOUTS)
    uses = uses_of(loop, maps)
    indirect = [u for u in uses if u.to_set is not None]
    stages = {"all": True, "increments": False}
    kept = [u for u in indirect if u.staged(reads=stages[staged])] if staged in stages else []
    loose = [u for u in indirect if u not in kept]
    groups = _groups(staged, loop, maps, sizes, variant)
    reads = {"indirect": 0, "direct": 0, "maps": _loose_maps(loose, maps, groups), "plan": 0}
    writes = {"indirect": 0, "direct": 0}
    for use in uses:
        arrays, width = use.arrays(layout)
        if use in kept:
            read, written = _listed(use, variant, width)
        elif staged == "atomics" and use.conflicts:
            read, written = 0, atomic_sectors(use, maps, sizes, arrays)
        else:
            read, written = _loose(use, maps, sizes, groups, width)
        kind = "direct" if use.to_set is None else "indirect"
        reads[kind] += arrays * read
        writes[kind] += arrays * written
    if kept or staged in ("all", "increments"):
        reads["plan"] = plan_sectors(loop, kept, variant, widths)
        if variant.elements is not None and len(indirect) < len(uses):
            reads["plan"] += _range_sectors(groups.offset, INDEX_BYTES)
    elif not groups.in_order:
        reads["plan"] = _range_sectors(groups.offset, INDEX_BYTES)
    return Traffic(reads, writes)


def uses_of(loop: Loop, maps: Mapping[str, SetMap]) -> list[Use]:
    """What a loop does with each of its dats."""
    found: dict[tuple[str, str | None], Use] = {}
    for arg in plain_args(loop, maps):
        if not arg.is_global:
            to_set = None if arg.map is None else maps[arg.map].to_set
            placed = arg.map is not None and arg.map not in loop.maps
            found.setdefault((arg.name, to_set), Use(to_set, placed)).add(arg)
    return list(found.values())


def _blocks(variant: Variant) -> _Groups:
    if variant.elements is not None:
        # a copy, which kernels may be compiled for alone: those of a file are read-only
        rows = variant.elements.copy()
        return _Groups(rows, variant.block_offset, in_order=False, maps_in_order=True)
    n = int(variant.block_offset[-1])
    return _Groups(np.arange(n, dtype=np.int32), variant.block_offset, in_order=True)


def _groups(
    staged: str, loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], variant: Variant
) -> _Groups:
    if staged == "none":
        # Warps of the elements of each colour, in storage order inside a colour
        colours = colour_whole_set(*written_table(loop, maps, sizes))
        bounds = offsets_of(np.bincount(colours.colour, minlength=colours.count))
        starts = [np.arange(first, past, WARP) for first, past in pairwise(bounds)]
        rows = np.argsort(colours.colour, kind="stable").astype(np.int32)
        offset = np.concatenate([*starts, [rows.size]]).astype(np.int64)
        return _Groups(rows, offset, in_order=colours.count < 2)
    return _runs(sizes[loop.over], THREADS) if staged == "atomics" else _blocks(variant)


def _runs(n: int, length: int) -> _Groups:
    """Runs of elements in their order."""
    return _Groups(np.arange(n, dtype=np.int32), run_offset(n, length), in_order=True)


def atomic_sectors(
    use: Use, maps: Mapping[str, SetMap], sizes: Mapping[str, int], arrays: int
) -> int:
    """Sectors under the atomics of every warp; ``arrays`` hold a component each, or all."""
    stride = use.dim // arrays
    seen = -(-sizes[str(use.to_set)] * stride * use.itemsize // SECTOR_BYTES)
    total = 0
    for name, i in use.written_columns:
        column = maps[name].table[:, i].astype(np.int64) * stride
        for k in range(stride):
            total += _columns_sectors([column + k], _runs(column.size, WARP), seen, use.itemsize)
    return total


def _listed(use: Use, variant: Variant, width: int) -> tuple[int, int]:
    """Sectors read and written under all values on the staging lists, for one array of the dat."""
    staging = variant.staging[str(use.to_set)]
    count = int(staged_units(staging, width, SECTOR_BYTES).sum())
    return count * use.read, count * use.written


def _loose(
    use: Use, maps: Mapping[str, SetMap], sizes: Mapping[str, int], groups: _Groups, width: int
) -> tuple[int, int]:
    """Sectors read and written under the values that each group touches, for one array."""
    if use.to_set is None:
        count = _rows_sectors(groups, width)
        return count * use.read, count * use.written
    seen = -(-sizes[use.to_set] * width // SECTOR_BYTES)
    counts = {}
    # what is added to is read and written through the same columns
    for columns in {tuple(use.read_columns), tuple(use.written_columns)}:
        tables = [maps[name].table[:, i] for name, i in columns]
        counts[columns] = _columns_sectors(tables, groups, seen, width)
    return counts[tuple(use.read_columns)], counts[tuple(use.written_columns)]


def _columns_sectors(
    columns: Sequence[NDArray[np.integer]], groups: _Groups, seen: int, width: int
) -> int:
    if not columns:
        return 0
    beside = np.column_stack(columns)
    return grouped_sectors(beside, groups.rows, groups.offset, seen, width)


def _loose_maps(loose: list[Use], maps: Mapping[str, SetMap], groups: _Groups) -> int:
    names = dict.fromkeys(name for use in loose for name, _ in use.columns)
    stored = replace(groups, in_order=groups.in_order or groups.maps_in_order)
    return sum(_rows_sectors(stored, maps[name].arity * INDEX_BYTES) for name in names)


def _rows_sectors(groups: _Groups, width: int) -> int:
    """Sectors under the rows of each group in an array over the from-set."""
    if groups.in_order:
        return _range_sectors(groups.offset, width)
    seen = -(-groups.rows.size * width // SECTOR_BYTES)
    columns = np.arange(groups.rows.size, dtype=np.int32)[:, None]
    return grouped_sectors(columns, groups.rows, groups.offset, seen, width)


def grouped_sectors(
    columns: NDArray[np.integer], rows: Int32s, offset: Int64s, n_sectors: int, width: int
) -> int:
    """Distinct sectors under the values that the rows of each group name, summed."""
    seen_by = np.empty(n_sectors, np.int32)
    return int(grouped_units(columns, rows, offset, seen_by, width, SECTOR_BYTES))


def plan_sectors(
    loop: Loop, kept: list[Use], variant: Variant, widths: Widths | None = None
) -> int:
    """Sectors of the arrays that tell a block what to do."""
    widths = widths or Widths(colour=variant.thread_colour.itemsize)
    lists = dict.fromkeys(str(use.to_set) for use in kept)
    rows = dict.fromkeys(column for use in kept for column in use.columns)
    total = _block_sectors(variant.n_blocks, len(lists), coloured=bool(loop.conflict_columns))
    for name in lists:
        total += _range_sectors(variant.staging[name].point_offset, INDEX_BYTES)
    total += len(rows) * _range_sectors(variant.block_offset, widths.local)
    if loop.conflict_columns:
        total += _range_sectors(variant.block_offset, widths.colour)
    return total


def _block_sectors(n_blocks: int, lists: int, *, coloured: bool) -> int:
    """Where a block finds its number, its number of thread colours, its elements and its lists."""
    # two neighbouring offsets lie on two sectors where the first is the last of its sector
    pairs = n_blocks + n_blocks // (SECTOR_BYTES // OFFSET_BYTES)
    return n_blocks * (1 + coloured) + pairs * (1 + lists)


def _range_sectors(offset: Int64s, width: int) -> int:
    """Sectors under each range of an array whose entries have ``width`` bytes, summed."""
    first = offset[:-1] * width // SECTOR_BYTES
    past = -(-offset[1:] * width // SECTOR_BYTES)
    return int((past - first)[offset[1:] > offset[:-1]].sum())


@kernel
def grouped_units(
    columns: NDArray[np.integer],
    rows: Int32s,
    group_offset: Int64s,
    seen_by: Int32s,
    width: int,
    nbytes: int,
) -> int:
    """Distinct aligned pieces of ``nbytes`` that the rows of each group name, summed. O(n k).

    Values have ``width`` bytes, and a negative column names none. ``seen_by`` has an entry for each
    piece; what is in it is lost.
    """
    seen_by[:] = -1
    total = 0
    for g in range(group_offset.size - 1):
        for i in range(group_offset[g], group_offset[g + 1]):
            for j in range(columns.shape[1]):
                start = np.int64(columns[rows[i], j]) * width
                if start < 0:
                    continue
                for s in range(start // nbytes, (start + width - 1) // nbytes + 1):
                    if seen_by[s] < g:
                        total += 1
                    seen_by[s] = g
    return total


# What :func:`staged_units` counted, by width and bytes, as long as the lists live.
_COUNTED: WeakKeyDictionary[Staging, dict[tuple[int, int], Int64s]] = WeakKeyDictionary()


def staged_units(staging: Staging, width: int, nbytes: int) -> Int64s:
    """:func:`aligned_units` of staging lists, each counted once: figures often ask for the same."""
    known = _COUNTED.setdefault(staging, {})
    if (width, nbytes) not in known:
        lists = read_only(staging.points), read_only(staging.point_offset)
        known[width, nbytes] = aligned_units(*lists, width, nbytes)
    return known[width, nbytes]


@kernel
def aligned_units(points: Int32s, point_offset: Int64s, width: int, nbytes: int) -> Int64s:
    """Distinct aligned pieces of ``nbytes`` under ascending ``points``, block by block."""
    count = np.zeros(point_offset.size - 1, np.int64)
    for b in range(count.size):
        last = np.int64(-1)
        # Points ascend, so that a piece seen before is the last one.
        for i in range(point_offset[b], point_offset[b + 1]):
            start = np.int64(points[i]) * width
            first = max(start // nbytes, last + 1)
            last = (start + width - 1) // nbytes
            count[b] += last - first + 1
    return count
