"""Staging lists and the variants of a loop: the blocks as the runtime runs them.

A block works on its own copy of the to-set elements it touches [G10 section 6]: the list says
which these are, and the local map where in the list each argument of an element stands.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import offsets_of, read_only
from meshprep_runtime.plan import Staging

from ..kernels import Bools, Int32s, Int64s, kernel
from ..kernels.arrays import sort
from ..kernels.parallel import each, pieces
from ..loops.reach import joined_tables
from ..mesh.blockwise import number_points

STAGED_LIMIT = 65536
PLACE_BITS = 16
# Fewer blocks than this are staged faster than threads start.
FEW_BLOCKS = 256


class StagingError(MeshprepError):
    """A block touches more points than a staging list can number."""


def build_staging(
    tables: Sequence[Int32s], n_to: int, block_offset: Int64s
) -> tuple[Staging, list[NDArray[np.uint16]]]:
    """List the points of one to-set that each block touches, through any of the maps into it.

    ``tables`` are the maps into the set, in the new numbering; at least one. The points of each
    block ascend, each once; each map becomes positions in the block's list, (arity, n_from). Raises
    MeshprepError when a block touches more than 65,536 points. O(n x arity) and the sorting of each
    block's points; parallel over blocks.
    """
    table, block_offset = read_only(joined_tables(tables)), read_only(block_offset)
    (n, arity), n_blocks = table.shape, block_offset.size - 1
    loads, local = np.zeros(n_blocks, np.int64), np.empty((arity, n), np.uint16)
    # room for all accesses: pages that are never written cost nothing
    room = np.empty(table.size, np.int32)
    shares = pieces(n_blocks, FEW_BLOCKS)
    each(_stage, [(table, block_offset, *share, loads, room, local) for share in shares])
    most = int(loads.max(initial=0))
    if most > STAGED_LIMIT:
        raise StagingError(
            f"block {int(loads.argmax())} touches {most} points of one set, but a block stages at "
            f"most {STAGED_LIMIT}: lower the block size"
        )
    point_offset = offsets_of(loads)
    begins = [int(block_offset[first]) * arity for first, _ in shares]
    points = np.concatenate(
        [
            room[begin : begin + int(point_offset[last] - point_offset[first])]
            for begin, (first, last) in zip(begins, shares, strict=True)
        ]
    )
    rows = np.cumsum([t.shape[1] for t in tables])[:-1]
    return Staging(point_offset, points, _exclusive(points, n_to)), np.split(local, rows)


@kernel
def _stage(
    table: Int32s,
    block_offset: Int64s,
    first: int,
    last: int,
    loads: Int64s,
    room: Int32s,
    local: NDArray[np.uint16],
) -> None:
    """Stage the blocks ``first`` to ``last - 1``: how many points, which, and the local map.

    The points stand one after the other in ``room``, from where the rows of the first block begin
    in the table. Of a block with too many only the number is told.
    """
    end = block_offset[first] * table.shape[1]
    for b in range(first, last):
        found, first_touch = number_points(table[block_offset[b] : block_offset[b + 1]])
        loads[b] = found.size
        if found.size > STAGED_LIMIT:
            continue
        # points with their places in one word, to be sorted by the points
        order = np.empty(found.size, np.int64)
        for i in range(found.size):
            order[i] = (np.int64(found[i]) << PLACE_BITS) + i
        sort(order, 0, found.size)
        place = np.empty(found.size, np.uint16)
        for i in range(found.size):
            room[end] = order[i] >> PLACE_BITS
            place[order[i] & ((1 << PLACE_BITS) - 1)] = i
            end += 1
        for e in range(first_touch.shape[0]):
            for j in range(first_touch.shape[1]):
                local[j, block_offset[b] + e] = place[first_touch[e, j]]


@kernel
def _exclusive(points: Int32s, n_to: int) -> Bools:
    """True where a point is in one block's list only."""
    blocks = np.zeros(n_to, np.uint8)
    for p in points:
        blocks[p] = min(blocks[p] + 1, 2)
    out = np.empty(points.size, np.bool_)
    for i in range(points.size):
        out[i] = blocks[points[i]] == 1
    return out
