"""Level structures: breadth-first search, components, and the ends of a pseudo-diameter.

Kernels over a symmetric graph, which is a tuple of offsets and neighbours; a loop at a vertex does
no harm. Scratch arrays run over all vertices, so that a component costs no more than its own size.
"""

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper, kernel


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


@kernel
def components(offset: NDArray, index: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Connected components in the order of their first vertices, each in breadth-first order.

    Returns the vertices (n,), the offset of each component (n_components + 1,), and for each one
    a vertex of lowest degree in its last level. O(n + edges).
    """
    n = offset.size - 1
    level = np.full(n, -1, np.int32)
    order = np.empty(n, np.uint32)
    bound = np.empty(n + 1, np.int64)
    far = np.empty(n, np.uint32)
    bound[0] = 0
    found = 0
    for v in range(n):
        if level[v] < 0:
            queue = order[bound[found] :]
            _, _, last, size = breadth_first((offset, index), v, level, queue, n + 1)
            far[found] = lowest_degree(offset, queue[last:size])
            bound[found + 1] = bound[found] + size
            found += 1
    return order, bound[: found + 1].copy(), far[:found].copy()


@helper
def lowest_degree(offset: NDArray, vertices: NDArray) -> int:
    """The first vertex of lowest degree."""
    best = vertices[0]
    for v in vertices:
        if offset[v + 1] - offset[v] < offset[best + 1] - offset[best]:
            best = v
    return best


@helper
def candidates(offset: NDArray, last: NDArray, chosen: NDArray) -> int:
    """Fill ``chosen`` with the vertices of lowest degree in ``last``; returns how many. Linear."""
    count = 0
    for v in last:
        degree = offset[v + 1] - offset[v]
        at = count
        while at > 0 and offset[chosen[at - 1] + 1] - offset[chosen[at - 1]] > degree:
            at -= 1
        if at == chosen.size:
            continue
        count = min(count + 1, chosen.size)
        for j in range(count - 1, at, -1):
            chosen[j] = chosen[j - 1]
        chosen[at] = v
    return count


@helper
def pseudo_diameter(
    graph: tuple, begin: int, end: int, start: int, levels: NDArray, queue: NDArray, effort: tuple
) -> tuple[int, int, int, int, int, bool]:
    """End points of a pseudo-diameter of the component ``begin..end-1`` [GPS76 algorithm I].

    ``effort`` is the largest number of rounds, and an array for the vertices tried in each.
    Returns the ends ``v`` and ``u``, the rows of ``levels`` (three) that hold their
    levels, the number of levels from ``v`` (from ``u`` there are more only when ``rounds`` ran
    out), and whether the structure of ``v`` is not wider.
    """
    row_v, row_u, row_s = 0, 1, 2
    n, (rounds, chosen) = end - begin, effort
    v = u = start
    levels[row_v, begin:end] = -1
    depth, width_v, last, _ = breadth_first(graph, np.int64(v), levels[row_v], queue, n + 1)
    width_u = n + 1
    for round in range(rounds):
        count = candidates(graph[0], queue[last:n], chosen)
        width_u, deeper = n + 1, False
        for s in chosen[:count]:
            levels[row_s, begin:end] = -1
            found, width, at, _ = breadth_first(graph, np.int64(s), levels[row_s], queue, width_u)
            if found > depth and round < rounds - 1:
                v, depth, width_v, last, deeper = s, found, width, at, True
                row_v, row_s = row_s, row_v
                break
            if found >= depth:
                u, width_u = s, width
                row_u, row_s = row_s, row_u
        if not deeper:
            break
    return v, u, row_v, row_u, depth, width_v <= width_u
