"""Staging lists: the points that each block copies, and local maps into them [G10, 6]."""

from collections.abc import Mapping, Sequence

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Staging
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, UInt16s, offsets_of, read_only

from ..kernels import Bools, Int32s, Int64s, kernel
from ..kernels.arrays import sort
from ..kernels.parallel import each, pieces
from ..loops.reach import joined_tables, maps_by_set
from ..mesh.incidence import number_points

# Points that a block can stage: their places in its list are numbers of two bytes.
STAGED_LIMIT = 65536
# Bits of a place in a word that holds a point and its place.
PLACE_BITS = 16
# Blocks of one thread's share at least: fewer are staged faster than a thread starts.
FEW_BLOCKS = 256


class StagingError(MeshprepError):
    """A block touches more points than a staging list can number."""


def stage_maps(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    block_offset: Int64s,
) -> tuple[dict[str, Staging], dict[str, UInt16s]]:
    """The staging lists of every to-set of a loop, and its local maps."""
    staging: dict[str, Staging] = {}
    local: dict[str, UInt16s] = {}
    for to_set, names in maps_by_set(loop, maps).items():
        tables = [maps[name].table for name in names]
        staging[to_set], places = build_staging(tables, sizes[to_set], block_offset)
        local |= dict(zip(names, places, strict=True))
    return staging, local


def build_staging(
    tables: Sequence[Int32s], n_to: int, block_offset: Int64s
) -> tuple[Staging, list[UInt16s]]:
    """List the points of one to-set that each block touches, through all maps into it.

    ``tables`` are the maps into the set, in the new numbering; at least one. The points of
    each block ascend, each once; each map becomes positions in the block's list, (arity,
    n_from). Raises MeshprepError when a block touches more than 65,536 points. O(n x arity)
    and the sorting of each block's points; parallel over blocks.
    """
    # Stage the blocks in shares; the points of each share begin in ``room`` where the rows
    # of its first block begin in the table. Pages that are never written cost nothing.
    table = read_only(joined_tables(tables))
    block_offset = read_only(block_offset)
    n, arity = table.shape
    n_blocks = block_offset.size - 1
    loads = np.zeros(n_blocks, np.int64)
    local = np.empty((arity, n), np.uint16)
    room = np.empty(table.size, np.int32)
    shares = pieces(n_blocks, FEW_BLOCKS)
    tasks = [(table, block_offset, *share, loads, room, local) for share in shares]
    each(_stage_blocks, tasks)
    most = int(loads.max(initial=0))
    if most > STAGED_LIMIT:
        raise StagingError(
            f"block {int(loads.argmax())} touches {most} points of one set, "
            f"but a block stages at most {STAGED_LIMIT}: lower the block size"
        )

    # Put the points of all shares one after the other.
    point_offset = offsets_of(loads)
    points_of_shares = []
    for first, last in shares:
        begin = int(block_offset[first]) * arity
        n_points = int(point_offset[last] - point_offset[first])
        points_of_shares.append(room[begin : begin + n_points])
    points = np.concatenate(points_of_shares)

    # Give each map its own columns of local numbers.
    map_ends = np.cumsum([t.shape[1] for t in tables])[:-1]
    staging = Staging(point_offset, points, _exclusive(points, n_to))
    return staging, np.split(local, map_ends)


@kernel
def _stage_blocks(
    table: Int32s,
    block_offset: Int64s,
    first: int,
    last: int,
    loads: Int64s,
    room: Int32s,
    local: UInt16s,
) -> None:
    """Stage the blocks ``first`` to ``last - 1``: ``loads``, ``room`` and ``local``.

    The points of all these blocks are written one after the other into ``room``, from where
    the rows of the first block begin in the table. A block with too many points only gets
    its number of points in ``loads``.
    """
    end = block_offset[first] * table.shape[1]
    for b in range(first, last):
        points, first_touch = number_points(table[block_offset[b] : block_offset[b + 1]])
        loads[b] = points.size
        if points.size > STAGED_LIMIT:
            continue
        # Sort the points, each in one word with its place by first touch.
        order = np.empty(points.size, np.int64)
        for i in range(points.size):
            order[i] = (np.int64(points[i]) << PLACE_BITS) + i
        sort(order, 0, points.size)
        # List them, and note where in the list each stands.
        place_in_list = np.empty(points.size, np.uint16)
        for i in range(points.size):
            room[end] = order[i] >> PLACE_BITS
            by_first_touch = order[i] & ((1 << PLACE_BITS) - 1)
            place_in_list[by_first_touch] = i
            end += 1
        # Number the rows of the block by this list.
        for e in range(first_touch.shape[0]):
            for j in range(first_touch.shape[1]):
                local[j, block_offset[b] + e] = place_in_list[first_touch[e, j]]


@kernel
def _exclusive(points: Int32s, n_to: int) -> Bools:
    """True where a point is in one block's list only: no other block writes to it."""
    # Blocks of each point, 2 standing for two and more.
    n_blocks = np.zeros(n_to, np.uint8)
    for p in points:
        n_blocks[p] = min(n_blocks[p] + 1, 2)
    out = np.empty(points.size, np.bool_)
    for i in range(points.size):
        out[i] = n_blocks[points[i]] == 1
    return out
