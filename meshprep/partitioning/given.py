"""Blocks from outside: checked against the cap, and repaired only where that is asked."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError

from .blocks_of import BlockProblem, Blocks, blocks_of
from .options import Option, Partitioner
from .repair import repair

OPTIONS: Mapping[str, Option] = {
    "repair": Option(
        bool, False, "move elements out of blocks that are too large, and join slivers"
    ),
}


def taken(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """The blocks of ``problem.given``, none larger than S.

    Blocks stand in the order of their first elements. With ``repair`` they are brought
    within the cap, and ``notes`` count the elements moved, and the blocks split and merged;
    without it a block over the cap raises MeshprepError. O(n log n), plus the repair.
    """
    assert problem.given is not None
    # Numbers need not be without gaps.
    numbers, block, sizes = np.unique(
        problem.given, return_inverse=True, return_counts=True
    )
    block = block.astype(np.int32)
    if options["repair"]:
        block, n_blocks, notes = repair(
            table=problem.table,
            n_points=problem.n_points,
            block_of_element=block,
            n_asked=max(numbers.size, math.ceil(problem.n / problem.block_size)),
            block_size=problem.block_size,
        )
        return blocks_of(block, n_blocks, notes)

    largest = int(sizes.argmax()) if sizes.size else 0
    if sizes.size and sizes[largest] > problem.block_size:
        raise MeshprepError(
            f"block {numbers[largest]} has {sizes[largest]} elements, more than the block "
            f"size {problem.block_size}: raise block_size, or set repair, which moves the "
            "surplus"
        )
    return blocks_of(block, numbers.size)


TAKEN = Partitioner(
    function=taken, options=OPTIONS, description="blocks from a file or an array"
)
