"""Level structures: components, and the ends of a pseudo-diameter.

Kernels over a symmetric graph, which is a tuple of offsets and neighbours; a loop at a vertex does
no harm. Scratch arrays run over all vertices, so that a component costs no more than its own size.
"""

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper, inlined, kernel
from ..kernels.arrays import breadth_first, counting_sort


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


# Up to this many vertices an insertion sort beats a counting sort.
SHORT = 24


@helper
def number(
    graph: tuple, start: int, begin: int, level: NDArray, size: NDArray, out: NDArray
) -> tuple[float, bool]:
    """Number a component from ``start`` [GPS76 algorithm III] into ``out``; ``level`` is lost.

    Returns the cost of the numbering, and whether it is that of the reverse one: the cube of the
    bandwidth times the smaller profile, so that 1 % of bandwidth is worth 3 % of profile. ``level``
    doubles as the record of what is numbered, ``-1 - i`` for the vertex at place ``i``, so that one
    look at a neighbour serves both: a vertex's lowest neighbour is the one that numbered it, its
    highest is known when the next level has been numbered from it. Linear.
    """
    # stand-ins of the right types, replaced when there are leftovers
    leftover, bound = out[:0], np.empty(0, np.int64)
    bandwidth, profile, reverse_profile = 0, 0, 0
    first, tail, full = 0, 0, 0
    for depth in range(size.size + 1):
        # the level before stands at head..first-1
        head, first = first, tail
        full += size[depth] if depth < size.size else 0
        if depth == 0:
            out[0], level[start], tail = start, -1, 1
        while head < first or tail < full:
            if head == tail:
                if leftover.size == 0:
                    leftover, bound = _leftovers(graph[0], begin, level, size.size, out.size)
                while level[leftover[bound[depth]]] != depth:
                    bound[depth] += 1
                out[tail] = leftover[bound[depth]]
                level[out[tail]] = -1 - tail
                tail += 1
                continue
            added, high = _append(graph, out[head], depth, level, out, tail)
            if added > 0:
                bandwidth = max(bandwidth, tail + added - 1 - head)
                profile += added * (tail - head) + added * (added - 1) // 2
                tail += added
            if head < first:
                reverse_profile += max(high, head) - head
            head += 1
    return float(bandwidth) ** 3 * min(profile, reverse_profile), reverse_profile < profile


@inlined
def _append(
    graph: tuple, p: int, depth: int, level: NDArray, out: NDArray, tail: int
) -> tuple[int, int]:
    """Number the neighbours of ``p`` in this level; how many, and the highest number of all."""
    (offset, index), end, low = graph, tail, 0
    for k in range(offset[p], offset[p + 1]):
        q = index[k]
        state = level[q]
        if state == depth:
            out[end] = q
            end += 1
            level[q] = -1
        low = min(low, state)
    if end - tail > 1:
        _sort_by_degree(offset, out[tail:end])
    for i in range(tail, end):
        level[out[i]] = -1 - i
    return end - tail, max(-1 - low, end - 1 if end > tail else -1)


@helper
def _sort_by_degree(offset: NDArray, vertices: NDArray) -> None:
    """Stable sort in place. Linear in the vertices and their degrees together."""
    if vertices.size > SHORT:
        degree = np.empty(vertices.size, np.int32)
        highest = 0
        for i in range(vertices.size):
            degree[i] = offset[vertices[i] + 1] - offset[vertices[i]]
            highest = max(highest, degree[i])
        ordered, _ = counting_sort(vertices, degree, highest + 1)
        for i in range(vertices.size):
            vertices[i] = ordered[i]
        return
    for i in range(1, vertices.size):
        p = vertices[i]
        degree = offset[p + 1] - offset[p]
        at = i
        while at > 0 and offset[vertices[at - 1] + 1] - offset[vertices[at - 1]] > degree:
            vertices[at] = vertices[at - 1]
            at -= 1
        vertices[at] = p


@helper
def _leftovers(
    offset: NDArray, begin: int, level: NDArray, depth: int, n: int
) -> tuple[NDArray, NDArray]:
    """Vertices not numbered yet, by level and degree; and where each level begins. Linear."""
    waiting, degree, where = np.empty(n, np.uint32), np.empty(n, np.int32), np.empty(n, np.int32)
    count = highest = 0
    for p in range(begin, begin + n):
        if level[p] >= 0:
            waiting[count] = p
            degree[count] = offset[p + 1] - offset[p]
            highest = max(highest, degree[count])
            count += 1
    waiting, _ = counting_sort(waiting[:count], degree[:count], highest + 1)
    for i in range(count):
        where[i] = level[waiting[i]]
    return counting_sort(waiting, where[:count], depth)
