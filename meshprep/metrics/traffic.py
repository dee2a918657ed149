"""Predicted memory traffic of a loop on a GPU: 32-byte sectors that its blocks move [S19].

Nothing is simulated: a block stages all that it reaches through maps, and moves each sector
that it touches once, as a first-level cache that holds a block's data would. Counted are
the values that the loop reaches through maps, its direct values, the maps and the arrays of
the plan; globals are not. A matrix is a dat of its nonzeros, reached through their places,
that blocks do not stage.
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

# Bytes that memory moves at once.
SECTOR_BYTES = 32
# Bytes that a cache makes room for where only a sector of them is asked for.
LINE_BYTES = 128
# Bytes of an entry of maps and lists, of offsets, and of local maps.
INDEX_BYTES = 4
OFFSET_BYTES = 8
LOCAL_BYTES = 2
LAYOUTS = ("aos", "soa")


class Traffic(NamedTuple):
    """Sectors read and written, by what they hold."""

    # ``indirect``: values reached through maps, those to increment included; ``direct``;
    # ``maps``: places in matrices, which are not staged; ``plan``: staging lists, local
    # maps, colours and offsets, and the elements of blocks that list them.
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

    Values that are incremented are read and written; a sector that two blocks touch counts
    for both; staged lists move whole. Blocks that list their elements gather direct values,
    and read the list. ``layout``: ``"aos"`` or ``"soa"``, arrays on sectors; maps lie row
    by row, local ones column by column. ``local`` and ``colour`` are bytes of an entry of
    local maps and of a thread colour, as the plan stores them unless given. For matrices
    ``maps`` have their places (``with_places``). Raises MeshprepError for another layout.
    O(n x arity x dats).
    """
    # The arguments of each dat on each set: its values are moved once for all of them.
    check_choice("layout", layout, LAYOUTS)
    uses: dict[tuple[str, str | None], list[Arg]] = {}
    for arg in plain_args(loop, maps):
        if not arg.is_global:
            to_set = None if arg.map is None else maps[arg.map].to_set
            uses.setdefault((arg.name, to_set), []).append(arg)
    reads = dict.fromkeys(("indirect", "direct", "maps", "plan"), 0)
    writes = dict.fromkeys(("indirect", "direct"), 0)

    # The values of each dat, and the maps to those that blocks do not stage.
    for (_, to_set), args in uses.items():
        largest = max(args, key=attrgetter("nbytes"))
        arrays = 1
        width = largest.nbytes
        if layout == "soa":
            arrays = largest.dim
            width = largest.nbytes // largest.dim
        names = {arg.map for arg in args}
        if to_set is None:
            kind = "direct"
            count = _direct_sectors(variant, width)
        elif names <= set(loop.maps):
            kind = "indirect"
            count = int(staged_units(variant.staging[to_set], width, SECTOR_BYTES).sum())
        else:
            kind = "indirect"
            (name,) = names
            places = maps[str(name)].table
            count = _sectors_of_places(variant, places, sizes[to_set], width)
            row_bytes = places.shape[1] * INDEX_BYTES
            reads["maps"] += _range_sectors(variant.block_offset, row_bytes)
        # Values that are only written are not read; those to increment are both.
        accesses = {arg.access for arg in args}
        if accesses != {Access.WRITE}:
            reads[kind] += arrays * count
        if not CONFLICTING.isdisjoint(accesses):
            writes[kind] += arrays * count

    # The plan itself.
    if colour is None:
        colour = variant.thread_colour.itemsize
    reads["plan"] = _plan_sectors(
        loop=loop,
        uses=uses,
        variant=variant,
        local=local,
        colour=colour,
    )
    return Traffic(reads, writes)


def _direct_sectors(variant: Variant, width: int) -> int:
    """Sectors under the direct values of all blocks, summed."""
    if variant.elements is None:
        return _range_sectors(variant.block_offset, width)
    return _gathered(
        rows=variant.elements[:, None],
        offset=variant.block_offset,
        n_values=variant.elements.size,
        width=width,
    )


def _sectors_of_places(
    variant: Variant,
    places: Int32s,
    n_values: int,
    width: int,
) -> int:
    """Sectors under the nonzeros of a matrix that all blocks add to, summed."""
    if variant.elements is not None:
        places = places[variant.elements]
    return _gathered(
        rows=places,
        offset=variant.block_offset,
        n_values=n_values,
        width=width,
    )


def _plan_sectors(
    loop: Loop,
    uses: Mapping[tuple[str, str | None], list[Arg]],
    variant: Variant,
    local: int,
    colour: int,
) -> int:
    """Sectors of the plan's arrays that all blocks read, summed."""
    # The sets that are staged, and the columns of local maps that are read.
    offset = variant.block_offset
    staged_sets = set[str]()
    columns = set[tuple[str, int]]()
    for (_, to_set), args in uses.items():
        if to_set is not None and {arg.map for arg in args} <= set(loop.maps):
            staged_sets.add(to_set)
            for arg in args:
                columns.update(product([str(arg.map)], arg.index))
    coloured = bool(loop.conflict_columns)

    # Of each block its number, its number of thread colours, and pairs of offsets: of its
    # elements and of its lists. A pair lies on two sectors where the first is the last
    # offset of its sector.
    n = variant.n_blocks
    offsets_of_sector = SECTOR_BYTES // OFFSET_BYTES
    pairs = n + n // offsets_of_sector
    count = n * (1 + coloured) + pairs * (1 + len(staged_sets))

    # The staging lists, local maps, colours, and lists of elements.
    for name in staged_sets:
        count += _range_sectors(variant.staging[name].point_offset, INDEX_BYTES)
    count += len(columns) * _range_sectors(offset, local)
    if coloured:
        count += _range_sectors(offset, colour)
    has_direct = any(to_set is None for _, to_set in uses)
    if variant.elements is not None and has_direct:
        count += _range_sectors(offset, INDEX_BYTES)
    return count


def _gathered(rows: Int32s, offset: Int64s, n_values: int, width: int) -> int:
    """Sectors under the values that the rows of each block name, summed."""
    n_sectors = -(-n_values * width // SECTOR_BYTES)
    seen_by = np.empty(n_sectors, np.int32)
    # a copy, which kernels may be compiled for alone: those of a file are read-only
    return int(
        grouped_units(
            rows=rows.copy(),
            group_offset=offset,
            seen_by=seen_by,
            width=width,
            nbytes=SECTOR_BYTES,
        )
    )


def _range_sectors(offset: Int64s, width: int) -> int:
    """Sectors under each range of an array whose entries have ``width`` bytes, summed."""
    begin = offset[:-1]
    end = offset[1:]
    first = begin * width // SECTOR_BYTES
    past = -(-end * width // SECTOR_BYTES)
    n_sectors = past - first
    return int(n_sectors[end > begin].sum())


@kernel
def grouped_units(
    rows: Int32s,
    group_offset: Int64s,
    seen_by: Int32s,
    width: int,
    nbytes: int,
) -> int:
    """Distinct aligned pieces of ``nbytes`` under the values of each group, summed. O(n k).

    ``rows`` has the numbers of the values, which have ``width`` bytes each; a negative one
    stands for no value. ``seen_by`` is room for an entry for each piece.
    """
    seen_by[:] = -1
    total = 0
    for g in range(group_offset.size - 1):
        for i in range(group_offset[g], group_offset[g + 1]):
            for j in range(rows.shape[1]):
                start = np.int64(rows[i, j]) * width
                if start < 0:
                    continue
                # Count the pieces under the value that no value of the group lies on yet.
                last = (start + width - 1) // nbytes
                for s in range(start // nbytes, last + 1):
                    if seen_by[s] < g:
                        total += 1
                    seen_by[s] = g
    return total


# Results of :func:`staged_units`, by width and bytes, as long as the lists live.
_COUNTED: WeakKeyDictionary[Staging, dict[tuple[int, int], Int64s]] = WeakKeyDictionary()


def staged_units(staging: Staging, width: int, nbytes: int) -> Int64s:
    """:func:`aligned_units` of staging lists, kept: several figures need the same ones."""
    counted = _COUNTED.setdefault(staging, {})
    if (width, nbytes) not in counted:
        points = read_only(staging.points)
        point_offset = read_only(staging.point_offset)
        counted[width, nbytes] = aligned_units(points, point_offset, width, nbytes)
    return counted[width, nbytes]


@kernel
def aligned_units(
    points: Int32s,
    point_offset: Int64s,
    width: int,
    nbytes: int,
) -> Int64s:
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
