"""Predicted memory traffic of a loop on a GPU: the 32-byte sectors that its blocks move [S19].

Nothing is simulated: a block stages all that it reaches through maps, and moves each sector that it
touches once, as a first-level cache that holds a block's data would. Counted are the values that
the loop reaches through maps, its direct values, the maps and the arrays of the plan; globals are
not. A matrix is a dat of its nonzeros, reached through their places, that blocks do not stage.
"""

from collections.abc import Mapping
from itertools import product
from operator import attrgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from meshprep_runtime.errors import check_choice
from meshprep_runtime.plan import Staging, Variant
from meshprep_runtime.plan.matrices import plain_args
from meshprep_runtime.types.loops import CONFLICTING, Access, Arg, Loop
from meshprep_runtime.types.maps import SetMap, read_only

from ..kernels import Int32s, Int64s, kernel

SECTOR_BYTES = 32
# A cache makes room for a line where only a sector of it is asked for.
LINE_BYTES = 128
INDEX_BYTES = 4
OFFSET_BYTES = 8
LOCAL_BYTES = 2
LAYOUTS = ("aos", "soa")


class Traffic(NamedTuple):
    """Sectors read and written, by what they hold."""

    # ``indirect``: values reached through maps, those to increment included; ``direct``;
    # ``maps``: places in matrices, which are not staged; ``plan``: staging lists, local maps,
    # colours and offsets, and the elements of blocks that list them.
    reads: Mapping[str, int]
    writes: Mapping[str, int]  # ``indirect`` and ``direct``

    @property
    def read(self) -> int:
        return sum(self.reads.values())

    @property
    def written(self) -> int:
        return sum(self.writes.values())


def traffic(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    variant: Variant,
    *,
    layout: str = "aos",
    local: int = LOCAL_BYTES,
    colour: int | None = None,
) -> Traffic:
    """Count the sectors that one call of a loop moves.

    Values that are incremented are read and written; a sector that two blocks touch counts for
    both; staged lists move whole. Blocks that list their elements gather direct values, and read
    the list. ``layout``: ``"aos"`` or ``"soa"``, arrays on sectors; maps lie row by row, local ones
    column by column. ``local`` and ``colour`` are bytes of an entry of local maps and of a thread
    colour, as the plan stores them unless given. For matrices ``maps`` have their places
    (``with_places``). Raises MeshprepError for another layout. O(n x arity x dats).
    """
    check_choice("layout", layout, LAYOUTS)
    elements, offset = variant.elements, variant.block_offset
    uses: dict[tuple[str, str | None], list[Arg]] = {}
    for arg in plain_args(loop, maps):
        if not arg.is_global:
            key = arg.name, maps[arg.map].to_set if arg.map else None
            uses.setdefault(key, []).append(arg)
    reads = dict.fromkeys(("indirect", "direct", "maps", "plan"), 0)
    writes = dict.fromkeys(("indirect", "direct"), 0)
    lists, rows = set[str](), set[tuple[str, int]]()
    for (_, to_set), args in uses.items():
        largest, names = max(args, key=attrgetter("nbytes")), {str(arg.map) for arg in args}
        soa = layout == "soa"
        arrays, width = (largest.dim, largest.nbytes // largest.dim) if soa else (1, largest.nbytes)
        if to_set is None:
            count = _range_sectors(offset, width)
            if elements is not None:
                count = _gathered(elements[:, None], offset, elements.size, width)
        elif names <= set(loop.maps):
            count = int(staged_units(variant.staging[to_set], width, SECTOR_BYTES).sum())
            lists.add(to_set)
            for arg in args:
                rows.update(product([str(arg.map)], arg.index))
        else:  # the places of a matrix
            (table,) = (maps[name].table for name in names)
            table = table if elements is None else table[elements]
            count = _gathered(table, offset, sizes[to_set], width)
            reads["maps"] += _range_sectors(offset, table.shape[1] * INDEX_BYTES)
        kind = "direct" if to_set is None else "indirect"
        accesses = {arg.access for arg in args}
        reads[kind] += arrays * count * (accesses != {Access.WRITE})
        writes[kind] += arrays * count * (not CONFLICTING.isdisjoint(accesses))
    colour = colour or variant.thread_colour.itemsize
    coloured = bool(loop.conflict_columns)
    # where a block finds its number, its number of thread colours, its elements and its lists; two
    # neighbouring offsets lie on two sectors where the first is the last of its sector
    n = variant.n_blocks
    pairs = n + n // (SECTOR_BYTES // OFFSET_BYTES)
    reads["plan"] = n * (1 + coloured) + pairs * (1 + len(lists))
    for name in lists:
        reads["plan"] += _range_sectors(variant.staging[name].point_offset, INDEX_BYTES)
    reads["plan"] += len(rows) * _range_sectors(offset, local)
    reads["plan"] += coloured * _range_sectors(offset, colour)
    if elements is not None and any(to_set is None for _, to_set in uses):
        reads["plan"] += _range_sectors(offset, INDEX_BYTES)
    return Traffic(reads, writes)


def _gathered(rows: Int32s, offset: Int64s, n_values: int, width: int) -> int:
    """Sectors under the values that the rows of each block name, summed."""
    seen_by = np.empty(-(-n_values * width // SECTOR_BYTES), np.int32)
    # a copy, which kernels may be compiled for alone: those of a file are read-only
    return int(grouped_units(rows.copy(), offset, seen_by, width, SECTOR_BYTES))


def _range_sectors(offset: Int64s, width: int) -> int:
    """Sectors under each range of an array whose entries have ``width`` bytes, summed."""
    first = offset[:-1] * width // SECTOR_BYTES
    past = -(-offset[1:] * width // SECTOR_BYTES)
    return int((past - first)[offset[1:] > offset[:-1]].sum())


@kernel
def grouped_units(
    rows: Int32s, group_offset: Int64s, seen_by: Int32s, width: int, nbytes: int
) -> int:
    """Distinct aligned pieces of ``nbytes`` that the rows of each group name, summed. O(n k).

    Values have ``width`` bytes, and a negative one names none. ``seen_by`` has an entry for each
    piece; what is in it is lost.
    """
    seen_by[:] = -1
    total = 0
    for g in range(group_offset.size - 1):
        for i in range(group_offset[g], group_offset[g + 1]):
            for j in range(rows.shape[1]):
                start = np.int64(rows[i, j]) * width
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
