"""Blocks of consecutive elements: chunks of the current order, as OP2 cuts them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import read_only, run_offset

from ..kernels import Int32s, Int64s, helper, kernel
from .blocks_of import BlockProblem, Blocks
from .options import Option

OPTIONS: Mapping[str, Option] = {
    "staged_bytes": Option(
        type=int,
        default=0,
        help="most bytes of points in a block; 0 for no cap",
        low=0,
        high=2**31 - 1,
    ),
}


def contiguous(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of S elements as they stand; only the last one may be smaller. O(n).

    With ``staged_bytes`` a block ends where one more element would stage too much, O(n *
    arity). Raises MeshprepError where an element alone does.
    """
    n = problem.n
    limit = options.get("staged_bytes", 0)
    offset = run_offset(n, problem.block_size)
    # With a second cap, fill block after block; points cost 1 byte where none is given.
    if limit and problem.table.size:
        weight = problem.point_bytes
        if weight is None:
            weight = np.ones(problem.n_points, np.int32)
        ends, n_blocks = _block_ends(
            table=read_only(np.ascontiguousarray(problem.table)),
            weight=read_only(weight),
            size=problem.block_size,
            limit=limit,
        )
        if n_blocks < 0:
            element = -1 - n_blocks
            raise MeshprepError(
                f"staged_bytes is {limit}, but element {element} alone needs more: "
                "allow more"
            )
        offset = ends[: n_blocks + 1]
    return Blocks(np.arange(n, dtype=np.int32), offset)


@kernel
def _block_ends(table: Int32s, weight: Int32s, size: int, limit: int) -> tuple[Int64s, int]:
    """The ends of the blocks, after a 0, and the number of blocks.

    A number of -1 - i tells that element i alone stages more than ``limit``.
    """
    n = table.shape[0]
    last_begin = np.full(weight.size, -1, np.int64)
    ends = np.zeros(n + 1, np.int64)
    n_blocks = 0
    begin = 0
    staged = np.int64(0)
    for i in range(n):
        added = _weight_of_new_points(
            table=table, weight=weight, last_begin=last_begin, row=i, begin=begin
        )
        if i > begin and (i - begin == size or staged + added > limit):
            # The element begins the next block, in which all its points are new.
            n_blocks += 1
            ends[n_blocks] = i
            begin = i
            staged = np.int64(0)
            added = _weight_of_new_points(
                table=table, weight=weight, last_begin=last_begin, row=i, begin=begin
            )
        staged += added
        if staged > limit:
            return ends, -1 - i
    ends[n_blocks + 1] = n
    return ends, n_blocks + 1


@helper
def _weight_of_new_points(
    table: Int32s, weight: Int32s, last_begin: Int64s, row: int, begin: int
) -> int:
    """The weight of a row's points that are new in the block that starts at ``begin``.

    ``last_begin`` (n_points,) is the start of the last block with each point; it is
    updated.
    """
    total = np.int64(0)
    for j in range(table.shape[1]):
        point = table[row, j]
        if last_begin[point] != begin:
            last_begin[point] = begin
            total += weight[point]
    return int(total)
