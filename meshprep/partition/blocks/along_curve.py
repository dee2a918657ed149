"""Elements of any order along a curve through their places, as clusters and blocks like them.

In the levels of a graph, which most orders of a small bandwidth follow, neighbouring elements of
the order are beside each other in long strips: clusters that grow in that order are less round,
and what is read in turns lies apart.
"""

from dataclasses import replace

import numpy as np

from ...kernels import Int32s
from ...reorder.curve import curve_keys
from ...reorder.radix import stable_argsort
from ..blocks_of import Blocks, blocks_of
from ..problem import BlockProblem

# So many elements of the order are looked at; where fewer of them than this share lie behind the
# one before on the curve, elements are left as they are.
LOOKED_AT, BEHIND = 500, 0.1


def along_curve(problem: BlockProblem) -> tuple[BlockProblem, Int32s | None]:
    """The elements along Hilbert's curve, and where they come from; None where they stand so.

    Elements without places, or with more than three coordinates, stay. O(n).
    """
    where = problem.coordinates
    if where is None or not 0 < where.shape[1] <= 3 or not problem.n:
        return problem, None
    box = where.min(axis=0), where.max(axis=0)
    sample = curve_keys(where[:: -(-problem.n // LOOKED_AT)], box, "hilbert", turning=True)
    if np.count_nonzero(sample[1:] < sample[:-1]) < BEHIND * sample.size:
        return problem, None
    order = stable_argsort(curve_keys(where, box, "hilbert", turning=True)[:, None])
    return replace(problem, table=problem.table[order], coordinates=where[order]), order


def back(blocks: Blocks, order: Int32s | None) -> Blocks:
    """The same blocks of elements in the order of before."""
    if order is None:
        return blocks
    block = np.empty(order.size, np.int32)
    block[order] = blocks.block_of_element
    return blocks_of(block, blocks.n_blocks, blocks.notes, keep_numbers=True)
