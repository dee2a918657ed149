"""Cutting a set into blocks: one signature, one registry.

``partition(problem, name, options)`` runs the partitioner of that name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import read_only, run_offset

from ..kernels import Int32s, Int64s, helper, kernel
from . import blocks, metis
from .blocks_of import BlockProblem, Blocks
from .options import Option, Partitioner, effective

CONTIGUOUS_OPTIONS: Mapping[str, Option] = {
    "staged_bytes": Option(
        int, 0, "most bytes of points in a block; 0 for no cap", low=0, high=2**31 - 1
    ),
}


def contiguous(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of S elements as they stand; only the last one may be smaller. O(n).

    With ``staged_bytes`` a block ends where one more element would stage too much, O(n * arity).
    Raises MeshprepError where an element alone does.
    """
    n, size, limit = problem.n, problem.block_size, options.get("staged_bytes", 0)
    offset = run_offset(n, size)
    if limit and problem.table.size:
        weight = problem.point_bytes
        weight = np.ones(problem.n_points, np.int32) if weight is None else weight
        arrays = read_only(np.ascontiguousarray(problem.table)), read_only(weight)
        ends, count = _ends(*arrays, problem.block_size, limit)
        if count < 0:
            raise MeshprepError(
                f"staged_bytes is {limit}, but element {-1 - count} alone needs more: allow more"
            )
        offset = ends[: count + 1]
    return Blocks(np.arange(n, dtype=np.int32), offset)


@kernel
def _ends(table: Int32s, weight: Int32s, size: int, limit: int) -> tuple[Int64s, int]:
    """Where blocks end, after a 0, and their number; -1 - i where element i alone is too much."""
    n = table.shape[0]
    seen, ends = np.full(weight.size, -1, np.int64), np.zeros(n + 1, np.int64)
    count, begin, held = 0, 0, np.int64(0)
    for i in range(n):
        more = _unseen(table, weight, seen, i, begin)
        if i > begin and (i - begin == size or held + more > limit):
            count += 1
            ends[count], begin, held = i, i, np.int64(0)
            more = _unseen(table, weight, seen, i, begin)
        held += more
        if held > limit:
            return ends, -1 - i
    ends[count + 1] = n
    return ends, count + 1


@helper
def _unseen(table: Int32s, weight: Int32s, seen: Int64s, row: int, mark: int) -> int:
    """The weight of the points of a row that are not marked yet, which then are."""
    found = np.int64(0)
    for j in range(table.shape[1]):
        point = table[row, j]
        if seen[point] != mark:
            seen[point] = mark
            found += weight[point]
    return int(found)


PARTITIONERS: dict[str, Partitioner] = {
    "blocks": Partitioner(
        blocks.blocks, blocks.OPTIONS, "bisection and annealed moves that count the loads"
    ),
    "contiguous": Partitioner(
        contiguous, CONTIGUOUS_OPTIONS, "chunks of the current order, as OP2 cuts them"
    ),
    "metis": Partitioner(
        metis.metis, metis.OPTIONS, "METIS k-way on the dual graph, then a hard cap"
    ),
}


def partition(
    problem: BlockProblem, name: str, options: Mapping[str, object] | None = None
) -> Blocks:
    """Cut the elements into blocks of at most ``problem.block_size``.

    ``name`` is one in :data:`PARTITIONERS`; values of ``options`` may be text, as a command line
    gives them. Raises MeshprepError on an unknown partitioner or option, listing what there is, and
    on values that do not fit.
    """
    if name not in PARTITIONERS:
        raise MeshprepError(f"there is no partitioner '{name}': choose {', '.join(PARTITIONERS)}")
    chosen = PARTITIONERS[name]
    return chosen.function(problem, effective(chosen.options, options, f"partitioner '{name}'"))
