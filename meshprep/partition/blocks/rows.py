"""Rows of elements between two points that go straight on: parallel edges, faces, lines of edges.

Edges between quads that lie side by side have 2 thread colours, as have the edges along a line of
a grid. Such elements have no opposite neighbours: all that meet at a point share it.
"""

import numpy as np

from ...kernels import Int32s, Int64s, helper, kernel
from ...mesh.incidence import Csr

# Elements that tell whether there are rows, and the share of them that must go straight on.
SAMPLE, STRAIGHT = 1000, 0.5


def rows(table: Int32s, graph: Csr, n_points: int) -> tuple[Int64s, Int32s] | None:
    """How many elements go straight on from each one, and which; None where a sample has few.

    Each of two such elements goes straight on to the other. ``graph`` has the neighbours of each.
    O(n + sum of squares of neighbours).
    """
    known, step = (table, graph.offset, graph.index, n_points), max(1, len(table) // SAMPLE)
    if (straight_on(*known, step)[::step] >= 0).any(axis=1).mean() < STRAIGHT:
        return None
    ahead = straight_on(*known, 1)
    own = np.arange(len(table), dtype=np.int32)[:, None, None]
    kept = (ahead >= 0) & (ahead[ahead] == own).any(axis=2)
    return kept.sum(axis=1), ahead[kept]


@kernel
def straight_on(
    table: Int32s, offset: Int64s, neighbours: Int32s, n_points: int, step: int
) -> Int32s:
    """Of every ``step``-th element, the one that goes straight on at each point; -1: none.

    Two elements bend where they are sides of a triangle or quadrilateral of elements. One that
    bends with all others at a point but one goes straight on to that.
    """
    ahead = np.full((table.shape[0], 2), -1, np.int32)
    mark = np.full(n_points, -1, np.int64)
    for i in range(0, table.shape[0], step):
        for side in range(2):
            here, there = table[i, side], table[i, 1 - side]
            if here < 0 or there < 0:
                continue
            stamp = 2 * i + side
            for s in range(offset[i], offset[i + 1]):
                far = _other_end(table, neighbours[s], there)
                if far >= 0 and far != here:
                    mark[far] = stamp
            found, count = -1, 0
            for s in range(offset[i], offset[i + 1]):
                j = neighbours[s]
                end = _other_end(table, j, here)
                if end < 0 or end == there or mark[end] == stamp:
                    continue
                bends = False
                for t in range(offset[j], offset[j + 1]):
                    far = _other_end(table, neighbours[t], end)
                    bends |= far >= 0 and far != here and mark[far] == stamp
                if not bends:
                    found = j
                    count += 1
            if count == 1:
                ahead[i, side] = found
    return ahead


@helper
def _other_end(table: Int32s, element: int, point: int) -> int:
    """The other point of an element; -1 where it has not this one."""
    if table[element, 0] == point:
        return table[element, 1]
    return table[element, 0] if table[element, 1] == point else -1
