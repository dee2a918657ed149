"""Elements of any order along a curve through their places, as clusters and blocks like them.

In the levels of a graph, which most orders of a small bandwidth follow, neighbouring elements of
the order are beside each other in long strips: clusters that grow in that order are less round,
and what is read in turns lies apart. Annealing that meets the elements of a border one after
the other, as they stand in such an order, moves it along: it gains little on grids.
"""

from dataclasses import replace

import numpy as np

from ...kernels import Float64s, Int32s, UInt64s
from ...kernels.parallel import take
from ...reorder.curve import curve_keys
from ...reorder.radix import stable_argsort
from ..blocks_of import Blocks, blocks_of
from ..problem import BlockProblem

# So many elements of the order are looked at. Half of them lie behind the one before on the curve
# in an order that has nothing to do with it, up to a quarter where elements follow their points
# along it: below this share they are left as they are.
LOOKED_AT, BEHIND = 250, 0.35
# Binary digits of the way along the curve that elements are sorted by, in three passes.
DIGITS = 33


def along_curve(problem: BlockProblem) -> tuple[BlockProblem, Int32s | None]:
    """The elements along Hilbert's curve, and where they come from; None where they stand so.

    Elements without places, or with more than three coordinates, stay. O(n).
    """
    where = problem.coordinates
    if where is None or not 0 < where.shape[1] <= 3 or not problem.n:
        return problem, None
    # axis by axis: NumPy takes ten times as long for rows of two or three
    box = np.array([axis.min() for axis in where.T]), np.array([axis.max() for axis in where.T])
    sample = _keys(where[:: -(-problem.n // LOOKED_AT)], box)
    if np.count_nonzero(sample[1:] < sample[:-1]) < BEHIND * sample.size:
        return problem, None
    order = stable_argsort(_keys(where, box)[:, None])
    table, where = take(problem.table, order), take(where, order)
    return replace(problem, table=table, coordinates=where), order


def _keys(where: Float64s, box: tuple[Float64s, Float64s]) -> UInt64s:
    return curve_keys(where, box, "hilbert", turning=True, digits=DIGITS)


def back(blocks: Blocks, order: Int32s | None) -> Blocks:
    """The same blocks of elements in the order of before."""
    if order is None:
        return blocks
    block = np.empty(order.size, np.int32)
    block[order] = blocks.block_of_element
    return blocks_of(block, blocks.n_blocks, blocks.notes, keep_numbers=True)
