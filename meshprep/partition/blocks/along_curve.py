"""Elements of any order along a curve through their places, as clusters and blocks like them.

In the levels of a graph, which most orders of a small bandwidth follow, neighbouring elements of
the order are beside each other in long strips: clusters that grow in that order are less round,
and what is read in turns lies apart. Blocks along the lines of a grid need no clusters: they are
found in any order that keeps neighbours together.
"""

from dataclasses import replace

import numpy as np

from ...kernels import Float64s, Int32s, UInt64s
from ...kernels.parallel import take
from ...mesh.incidence import Csr, renumber_graph
from ...reorder.curve import curve_keys
from ...reorder.radix import stable_argsort
from ..blocks_of import Blocks, blocks_of
from ..problem import BlockProblem
from .geometry import Geometry

# So many elements of the order are looked at. Half of them lie behind the one before on the curve
# in an order that has nothing to do with it, up to a quarter where they follow points along it:
# below this share elements are left as they are. Where fewer than the third share a point with the
# next element, the order keeps no neighbours together.
LOOKED_AT, BEHIND, BESIDE = 500, 0.35, 0.1


def gathered(problem: BlockProblem) -> tuple[BlockProblem, Int32s | None]:
    """Scattered elements along Hilbert's curve, and where they come from; None for others. O(n)."""
    where, step = problem.coordinates, -(-problem.n // LOOKED_AT)
    before, after = problem.table[:-1:step], problem.table[1::step]
    beside = (before[:, :, None] == after[:, None]).any(axis=(1, 2))
    if where is None or np.count_nonzero(beside) >= BESIDE * beside.size:
        return problem, None
    order = curve_order(where)
    if order is None:
        return problem, None
    table = take(problem.table, order)
    return replace(problem, table=table, coordinates=take(where, order)), order


def along_curve(graph: Csr, geometry: Geometry) -> tuple[Csr, Geometry, Int32s | None]:
    """The elements along Hilbert's curve, and where they come from; None where they stand so.

    ``graph`` has the neighbours of each. Those without places stay. O(n * arity + neighbours).
    """
    order = curve_order(geometry.coordinates) if geometry.known else None
    if order is None:
        return graph, geometry, None
    moved = {name: take(getattr(geometry, name), order) for name in ("table", "coordinates")}
    return renumber_graph(graph, order), replace(geometry, **moved), order


def curve_order(where: Float64s) -> Int32s | None:
    """The order of places along Hilbert's curve; None where they stand so.

    None, too, where they have more than three coordinates. O(n).
    """
    if not 0 < where.shape[1] <= 3 or not where.size:
        return None
    key = _keys(where[:: -(-len(where) // LOOKED_AT)])
    if np.count_nonzero(key[1:] < key[:-1]) < BEHIND * key.size:
        return None
    return stable_argsort(_keys(where)[:, None])


def _keys(where: Float64s) -> UInt64s:
    box = tuple(np.array([f(axis) for axis in where.T]) for f in (np.min, np.max))
    return curve_keys(where, box, "hilbert", turning=True)


def back(blocks: Blocks, order: Int32s | None) -> Blocks:
    """The same blocks of elements in the order of before."""
    if order is None:
        return blocks
    block = np.empty(order.size, np.int32)
    block[order] = blocks.block_of_element
    return blocks_of(block, blocks.n_blocks, blocks.notes, keep_numbers=True)
