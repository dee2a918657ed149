"""Breadth-first search of a symmetric graph, which is a tuple of offsets and neighbours."""

import numpy as np
from numpy.typing import NDArray

from .compiled import helper


@helper
def breadth_first(
    graph: tuple, root: int | np.int64, level: NDArray, queue: NDArray, width_limit: int
) -> tuple[int, int, int, int]:
    """Levels from ``root``; stops as soon as one has ``width_limit`` vertices or more.

    ``level`` is -1 on the component of ``root``; ``queue`` receives its vertices level by level.
    Returns the number of levels (-1 when stopped), the largest one, where in ``queue`` the last
    one begins, and how many vertices were reached.
    """
    offset, index = graph
    queue[0] = root
    level[root] = 0
    begin, end, tail, depth, width = 0, 0, 1, 0, 1
    while tail > end:
        begin, end = end, tail
        depth += 1
        width = max(width, end - begin)
        if width >= width_limit:
            return -1, width, begin, tail
        for i in range(begin, end):
            p = queue[i]
            for k in range(offset[p], offset[p + 1]):
                q = index[k]
                if level[q] < 0:
                    level[q] = depth
                    queue[tail] = q
                    tail += 1
    return depth, width, begin, tail
