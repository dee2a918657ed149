"""Level structures: components, and the ends of a pseudo-diameter.

Kernels over a symmetric graph; a loop at a vertex does no harm. Scratch arrays run over all
vertices, so that a component costs no more than its own size.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper, inlined, kernel, merged
from ..kernels.arrays import ZERO, Adjacency, breadth_first, counting_sort


@kernel
def components(offset: NDArray, index: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Connected components by their first vertices, each in breadth-first order.

    Returns the vertices (n,), the offset of each component (n_components + 1,), and for
    each component a vertex of lowest degree in its last level. O(n + edges).
    """
    graph = Adjacency(offset, index)
    n = offset.size - 1
    level = np.full(n, -1, np.int32)
    order = np.empty(n, np.uint32)
    bound = np.empty(n + 1, np.int64)
    far = np.empty(n, np.uint32)
    bound[0] = 0
    count = 0
    for v in range(n):
        if level[v] < 0:
            queue = order[bound[count] :]
            _, _, last, size = breadth_first(
                graph=graph, root=v, level=level, queue=queue, width_limit=n + 1
            )
            far[count] = lowest_degree(offset, queue[last:size])
            bound[count + 1] = bound[count] + size
            count += 1
    return order, bound[: count + 1].copy(), far[:count].copy()


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
    """Fill ``chosen`` with the vertices of lowest degree in ``last``; their number."""
    count = 0
    for v in last:
        degree = offset[v + 1] - offset[v]
        rank = count
        while rank > 0 and offset[chosen[rank - 1] + 1] - offset[chosen[rank - 1]] > degree:
            rank -= 1
        if rank == chosen.size:
            continue
        count = min(count + 1, chosen.size)
        for j in range(count - 1, rank, -1):
            chosen[j] = chosen[j - 1]
        chosen[rank] = v
    return count


class Effort(NamedTuple):
    """Bounds of a search for ends: rounds, and room for the vertices tried in each."""

    rounds: int
    chosen: NDArray


class PseudoDiameter(NamedTuple):
    """The ends ``v`` and ``u`` of a component, with their levels.

    ``row_v`` and ``row_u`` are the rows with their levels, ``depth`` is the number of
    levels from ``v``, and ``narrow_v`` tells whether the levels of ``v`` are not wider.
    From ``u`` there are more levels only where the rounds ran out.
    """

    v: int
    u: int
    row_v: int
    row_u: int
    depth: int
    narrow_v: bool


@helper
def pseudo_diameter(
    graph: Adjacency,
    begin: int,
    end: int,
    start: int,
    levels: NDArray,
    queue: NDArray,
    effort: Effort,
) -> PseudoDiameter:
    """Ends of a pseudo-diameter of the component ``begin..end-1`` [GPS76 algorithm I].

    The search goes on from a vertex of the last level as long as that leads deeper.
    ``levels`` has three rows over all vertices.
    """
    row_v = 0
    row_u = 1
    row_s = 2
    n = end - begin
    chosen = effort.chosen
    v = start
    u = start
    levels[row_v, begin:end] = -1
    depth, width_v, last, _ = breadth_first(
        graph=graph, root=np.int64(v), level=levels[row_v], queue=queue, width_limit=n + 1
    )
    width_u = n + 1
    for round in range(effort.rounds):
        # Try the vertices of lowest degree in the last level as the other end.
        count = candidates(graph.offset, queue[last:n], chosen)
        width_u = n + 1
        deeper = False
        for s in chosen[:count]:
            levels[row_s, begin:end] = -1
            tried_depth, width, last_of_s, _ = breadth_first(
                graph=graph,
                root=np.int64(s),
                level=levels[row_s],
                queue=queue,
                width_limit=width_u,
            )
            # From a deeper vertex the search begins again.
            if tried_depth > depth and round < effort.rounds - 1:
                v = s
                depth = tried_depth
                width_v = width
                last = last_of_s
                deeper = True
                row_v, row_s = row_s, row_v
                break
            # Of the others, the narrowest levels count; wider ones are cut short.
            if tried_depth >= depth:
                u = s
                width_u = width
                row_u, row_s = row_s, row_u
        if not deeper:
            break
    return PseudoDiameter(
        v=v, u=u, row_v=row_v, row_u=row_u, depth=depth, narrow_v=width_v <= width_u
    )


# Whether a level is numbered in place, typed since numba compiles a helper again for a
# constant.
IN_PLACE: Any = np.bool_(True)
BY_NUMBER: Any = np.bool_(False)
# Up to this many vertices an insertion sort beats a counting sort.
SHORT = 24


class LevelNumbers(NamedTuple):
    """The numbers of a component while they are given.

    ``order`` has the vertices by their numbers. ``level`` has the level of each vertex, and
    once it has number ``i`` this is ``-1 - i``, so that one read of a neighbour gives its
    level or its number. ``follower`` has the vertex of the same level that is passed after
    each vertex when the next level is numbered in place.
    """

    order: NDArray
    level: NDArray
    follower: NDArray


class Leftovers(NamedTuple):
    """Vertices without a number by level and degree, and where each level begins."""

    vertices: NDArray
    bound: NDArray


class Limit(NamedTuple):
    """What an order must cost less than, and how wide it may be.

    A ``scattered`` component has many pieces between the levels of its ends, as a star has.
    """

    cost: float
    bandwidth: float
    scattered: bool


@helper
def cost_of(bandwidth: float, profile: float, scattered: bool) -> float:
    """The figure by which orders of a component are compared; smaller is better."""
    cost = bandwidth * profile
    if not scattered:
        # 1 % of bandwidth is worth 3 % of profile
        cost *= bandwidth * bandwidth
    return cost


@merged
def number(
    graph: Adjacency,
    start: int | np.int64,
    begin: int,
    numbers: LevelNumbers,
    size: NDArray,
    in_place: bool,
    limit: Limit,
) -> tuple[float, float, bool]:
    """Number a component from ``start`` [GPS76 algorithm III]. Linear.

    A level is numbered along the level before. Vertices without a neighbour there stand at
    the end of their level, and are numbered by their neighbours in it. The paper goes along
    a level by its numbers. So each level falls into more pieces than the one before, and
    neighbours in the mesh stand far apart. With ``in_place`` such vertices are passed right
    behind the neighbour that numbered them.

    Returns the bandwidth, the smaller profile, and whether this is the profile of the
    reverse order. An order that cannot keep to ``limit`` any more is given up, and its
    bandwidth and profile are infinite. The lowest and the highest neighbour of a vertex are
    known once the next level has been numbered along it. ``numbers.level`` is overwritten;
    ``order`` has the size of the component, the other arrays run over all vertices.
    """
    order = numbers.order
    level = numbers.level
    follower = numbers.follower
    # Stand-ins of the right types, replaced when a level is cut off.
    leftovers = Leftovers(vertices=order[:0], bound=np.empty(0, np.int64))
    bandwidth = 0
    profile = 0
    reverse_profile = 0
    first = ZERO
    tail = ZERO
    full = ZERO
    for depth in range(size.size + 1):
        # Go along the level before, and number its neighbours in this one.
        passed = order[first]
        before = first
        first = tail
        for k in range(before, first):
            p = passed if in_place else order[k]
            added, lowest, highest = _append(
                graph=graph, p=p, depth=depth, level=level, out=order, tail=tail
            )
            tail += added
            i = -1 - level[p]
            bandwidth = max(bandwidth, highest - i)
            profile += i - lowest
            reverse_profile += highest - i
            if in_place:
                passed = follower[p]
        # Give up where what is numbered costs too much.
        so_far = cost_of(
            float(bandwidth), float(min(profile, reverse_profile)), limit.scattered
        )
        if so_far >= limit.cost or bandwidth > limit.bandwidth:
            return np.inf, np.inf, False
        if depth == size.size:
            break
        if depth == 0:
            order[0] = start
            level[start] = -1
            tail = 1
        if in_place:
            for i in range(first + 1, tail):
                follower[order[i - 1]] = order[i]
        # Number the rest of the level by its own vertices.
        full += size[depth]
        if tail < full:
            leftovers = _number_rest(
                graph=graph,
                begin=begin,
                numbers=numbers,
                depth=depth,
                n_levels=size.size,
                bounds=(first, tail, full),
                leftovers=leftovers,
                in_place=in_place,
            )
            tail = full
    reverse = reverse_profile < profile
    return float(bandwidth), float(min(profile, reverse_profile)), reverse


@merged
def _number_rest(
    graph: Adjacency,
    begin: int,
    numbers: LevelNumbers,
    depth: int,
    n_levels: int,
    bounds: tuple[int, int, int],
    leftovers: Leftovers,
    in_place: bool,
) -> Leftovers:
    """Number the vertices of a level that have no neighbour in the level before.

    ``bounds`` has the first number of the level, the first that is free, and the first of
    the next level. Returns the leftovers, which are found when a level needs them first.
    """
    order = numbers.order
    follower = numbers.follower
    head, tail, full = bounds
    last_passed = order[max(tail - 1, 0)]
    while tail < full:
        if head < tail:
            p = order[head]
            head += 1
            added, _, _ = _append(
                graph=graph, p=p, depth=depth, level=numbers.level, out=order, tail=tail
            )
        else:
            # No numbered vertex has neighbours among them: take one of lowest degree.
            if leftovers.vertices.size == 0:
                leftovers = _leftovers(
                    offset=graph.offset,
                    begin=begin,
                    level=numbers.level,
                    depth=n_levels,
                    n=order.size,
                )
            p = _next_leftover(leftovers, numbers.level, depth)
            order[tail] = p
            numbers.level[p] = -1 - tail
            p = last_passed
            added = 1
        # Pass them behind the vertex that numbered them.
        if in_place:
            behind = follower[p]
            at_end = p == last_passed
            for i in range(tail, tail + added):
                follower[p] = order[i]
                p = order[i]
            follower[p] = behind
            if at_end:
                last_passed = p
        tail += added
    return leftovers


@helper
def _next_leftover(leftovers: Leftovers, level: NDArray, depth: int) -> int:
    """The first vertex of a level that has no number yet."""
    bound = leftovers.bound
    while level[leftovers.vertices[bound[depth]]] != depth:
        bound[depth] += 1
    return leftovers.vertices[bound[depth]]


@inlined
def _append(
    graph: Adjacency, p: int, depth: int, level: NDArray, out: NDArray, tail: int
) -> tuple[int, np.int64, int]:
    """Number the neighbours of ``p`` in this level, those of lower degree first.

    Returns how many they are, and the lowest and the highest number of ``p`` and all its
    neighbours.
    """
    offset = graph.offset
    neighbours = graph.neighbours
    end = tail
    high = level[p]
    # Read without a sign, levels are less than numbers, of which the lowest is the largest.
    low = np.uint32(high)
    for k in range(offset[p], offset[p + 1]):
        q = neighbours[k]
        state = level[q]
        if state == depth:
            out[end] = q
            level[q] = -1 - end
            end += 1
        low = max(low, np.uint32(state))
        high = min(high, state)
    if end - tail > 1:
        _sort_by_degree(offset, out[tail:end])
        for i in range(tail, end):
            level[out[i]] = -1 - i
    return end - tail, np.int64(~low), max(-1 - high, end - 1 if end > tail else -1)


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
        hole = i
        while (
            hole > 0
            and offset[vertices[hole - 1] + 1] - offset[vertices[hole - 1]] > degree
        ):
            vertices[hole] = vertices[hole - 1]
            hole -= 1
        vertices[hole] = p


@helper
def _leftovers(
    offset: NDArray, begin: int, level: NDArray, depth: int, n: int
) -> Leftovers:
    """Find the vertices without a number. Linear."""
    waiting = np.empty(n, np.uint32)
    degree = np.empty(n, np.int32)
    level_of_waiting = np.empty(n, np.int32)
    count = highest = 0
    for p in range(begin, begin + n):
        if level[p] >= 0:
            waiting[count] = p
            degree[count] = offset[p + 1] - offset[p]
            highest = max(highest, degree[count])
            count += 1
    waiting, _ = counting_sort(waiting[:count], degree[:count], highest + 1)
    for i in range(count):
        level_of_waiting[i] = level[waiting[i]]
    vertices, bound = counting_sort(waiting, level_of_waiting[:count], depth)
    return Leftovers(vertices=vertices, bound=bound)
