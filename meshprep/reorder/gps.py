"""The Gibbs-Poole-Stockmeyer ordering of a graph, in linear time [GPS76].

1. Ends of a pseudo-diameter: breadth-first search from the last level of the search before
   (:mod:`levels`).
2. The two level structures become one that is at most as wide: where they disagree, connected
   pieces, the largest first, go to the side that keeps the levels narrow.
3. Numbering level by level, by adjacency, lowest degree first.

What the paper leaves quadratic is capped (candidates of the last level) or touched once
(components, levels). Both directions of a numbering are measured and the better one is kept. The
paper begins at the end of lower degree. Here it is the one whose levels more vertices have, so that
a level is numbered from the one before, and neighbours in the order are neighbours in the mesh.
Smaller graphs try both ends and several starts instead, and in the order of the smallest ones
neighbours change places where the profile gains and the bandwidth does not grow.
"""

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, kernel
from ..kernels.arrays import ZERO, counting_sort
from ..mesh.incidence import Csr
from .by_component import by_component
from .levels import number, pseudo_diameter

# Small graphs, where time does not matter: starts for each component, and sweeps over the final
# order, as many as keep each times the neighbours within the budget.
BUDGET, MAX_TRIES, MAX_SWEEPS = 1 << 16, 8, 16
# Up to this many neighbours two starts at least, both ends of each and many candidates are tried;
# what that costs, a larger graph spends on waiting for memory.
MIDDLE = 1 << 20
# Vertices of the last level tried as the other end, of large and of other graphs; and how often
# the search may begin again from a deeper one. [GPS76] tries all of them, without end.
FEW, MANY, MAX_ROUNDS = 3, 16, 12


def gps(graph: Csr) -> Int32s:
    """Order the vertices of a symmetric graph for a small bandwidth and profile [GPS76].

    ``graph`` must be symmetric, which is not checked. Loops do no harm. In the order,
    ``new_to_old``, components stand in the order of their first vertices, vertices without
    neighbours last.

    O(vertices + edges): at most a fixed number of searches, and only the levels in use are looked
    at.
    """
    return by_component(graph, _order_ranges)


def _order_ranges(offset: NDArray, index: NDArray, bound: NDArray, far: NDArray) -> NDArray:
    out = _gps(offset, index, bound, far, MAX_ROUNDS)
    sweeps = min(BUDGET // max(index.size, 1), MAX_SWEEPS)
    if sweeps > 0:
        _sweep_all(offset, index, bound, out, sweeps)
    return out


@kernel
def _gps(offset: NDArray, index: NDArray, bound: NDArray, far: NDArray, rounds: int) -> NDArray:
    """The order of a graph whose components are the ranges between ``bound``."""
    graph, n = (offset, index), offset.size - 1
    out = np.empty((2, n), np.uint32)
    # three rows of levels, a queue, where its pieces begin, and level sizes: nothing is allocated
    # for a component, which would cost more than ordering a small one
    levels, queues = np.empty((3, n), np.int32), np.empty(n, np.uint32)
    bins, sizes = np.empty(n + 1, np.int32), np.empty(n, np.int32)
    chosen, neighbours = np.empty(MANY, np.uint32), np.int64(index.size)
    thorough = neighbours <= MIDDLE
    times = BUDGET // (neighbours if neighbours > 0 else 1)
    tries = min(max(int(times), 2), MAX_TRIES) if thorough else 1
    effort = rounds, chosen[: MANY if thorough else FEW]
    for c in range(bound.size - 1):
        begin, end, best = bound[c], bound[c + 1], np.inf
        queue, order, trial = queues[begin:end], out[0][begin:end], out[1][begin:end]
        if end - begin == 1:
            order[0] = begin
        for t in range(min(tries, end - begin - 1)):
            start = far[c] if t == 0 else _start_vertex(offset, begin, end, t, tries)
            v, u, row_v, row_u, depth, narrow_v = pseudo_diameter(
                graph, begin, end, start, levels, queue, effort
            )
            level, other, state = levels[row_v], levels[row_u], levels[3 - row_v - row_u]
            size, backwards = sizes[:depth], bins[:depth]
            size[:] = 0
            rows = level, other, state
            moved = combine(graph, begin, end, rows, (queue, bins), size, narrow_v)
            for d in range(depth):
                backwards[d] = size[depth - 1 - d]
            for p in range(begin, end):
                other[p] = depth - 1 - level[p]
            # from the end whose levels most vertices have: each is then next to one of the level
            # before
            v_first = 2 * moved <= end - begin
            for from_u in (True, False):
                if not thorough and from_u == v_first:
                    continue
                # one call for both ends, since each call is compiled anew
                root, own, count = (u, other, backwards) if from_u else (v, level, size)
                cost, reverse = number(graph, root, begin, own, count, trial)
                if cost < best:
                    best, last = cost, order.size - 1
                    for i in range(order.size):
                        order[i] = trial[last - i] if reverse else trial[i]
    return out[0]


@helper
def _start_vertex(offset: NDArray, begin: int, end: int, t: int, tries: int) -> int:
    """Start vertex of try ``t``: the lowest degree, as in [GPS76], then evenly spread."""
    if t != 1:
        return begin + (end - begin) * t // tries
    best = begin
    for v in range(begin, end):
        if offset[v + 1] - offset[v] < offset[best + 1] - offset[best]:
            best = v
    return best


# apart from the rest, since only small graphs need it compiled
@kernel
def _sweep_all(
    offset: NDArray, index: NDArray, bound: NDArray, order: NDArray, sweeps: int
) -> None:
    """Lower the profile of the order of every component, in place."""
    scratch = np.empty((2, order.size), np.int32)
    for c in range(bound.size - 1):
        begin, end = bound[c], bound[c + 1]
        sweep((offset, index), order[begin:end], begin, sweeps, scratch)


@helper
def sweep(graph: tuple, order: NDArray, begin: int, sweeps: int, scratch: NDArray) -> None:
    """Lower the profile of one component's order, in place, by exchanges of adjacent places.

    Sweeps go up and down by turns. In every other pair of them exchanges that change nothing are
    made too, which leads off plateaus; no exchange widens the bandwidth. ``order`` are the vertices
    of the component, ``begin`` to ``begin + size - 1``; ``scratch`` (2 or more, n) is overwritten
    in its range. O(sweeps x edges of the component): an exchange moves every lowest neighbour by at
    most one place, so that its gain is found by counting.
    """
    if order.size < 3:
        return
    (offset, index), place, low = graph, scratch[0], scratch[1]
    for i in range(order.size):
        place[order[i]] = i
    bandwidth = ZERO
    for p in range(begin, begin + order.size):
        low[p] = place[p]
        for k in range(offset[p], offset[p + 1]):
            low[p] = min(low[p], place[index[k]])
        bandwidth = max(bandwidth, place[p] - low[p])
    for s in range(sweeps):
        limit = 0 if s % 4 < 2 else -1
        for j in range(order.size - 1):
            i = j if s % 2 == 0 else order.size - 2 - j
            if _profile_change(graph, (order, place, low), i, bandwidth) <= limit:
                _exchange(graph, (order, place, low), i)


@helper
def _profile_change(graph: tuple, line: tuple, i: int, bandwidth: int) -> int:
    """Change of the profile if places i and i + 1 are exchanged; 1 if the band widens."""
    (offset, index), (order, place, low) = graph, line
    u, v = order[i], order[i + 1]
    if low[u] < i and i + 1 - low[u] > bandwidth:
        return 1
    # vertices behind the two whose lowest neighbour moves by one, and u and v themselves
    change = -1 if low[v] <= i else 0
    meet = False
    for k in range(offset[v], offset[v + 1]):
        q = index[k]
        meet |= q == u
        if place[q] > i + 1:
            if place[q] - i > bandwidth:
                return 1
            change += low[q] >= i
    for k in range(offset[u], offset[u + 1]):
        q = index[k]
        if place[q] > i + 1 and low[q] == i:
            change -= 1
    return change + (1 if low[u] < i or meet else 0)


@helper
def _exchange(graph: tuple, line: tuple, i: int) -> None:
    """Exchange places i and i + 1, and keep the lowest neighbours right."""
    (offset, index), (order, place, low) = graph, line
    u, v = order[i], order[i + 1]
    meet = False
    for k in range(offset[u], offset[u + 1]):
        q = index[k]
        meet |= q == v
        if place[q] > i + 1 and low[q] == i:
            low[q] = i + 1
    for k in range(offset[v], offset[v + 1]):
        q = index[k]
        if place[q] > i + 1:
            low[q] = min(low[q], i)
    if low[u] == i and not meet:
        low[u] = i + 1
    low[v] = min(low[v], i)
    order[i], order[i + 1], place[u], place[v] = v, u, i + 1, i


# The second algorithm of [GPS76], with the connected pieces labelled once and only the levels that
# a piece touches looked at.
@helper
def combine(
    graph: tuple,
    begin: int,
    end: int,
    levels: tuple,
    scratch: tuple,
    size: NDArray,
    prefer_first: bool,
) -> int:
    """Merge the levels from both ends into one of them [GPS76 algorithm II].

    ``graph`` has offsets and neighbours; ``levels`` those from the first end, which become the
    result, those from the second, which become counted from the first, and room for as many.
    ``scratch`` is a queue and where its pieces begin.
    Vertices where both agree are settled; the connected pieces of the rest follow, largest first.
    ``size``, zero on entry, receives the number of vertices of each level. Returns how many took
    the level of the second end where the two disagree. O(n + edges).
    """
    (level, other, state), (queue, bins), depth = levels, scratch, size.size
    for p in range(begin, end):
        other[p] = max(0, depth - 1 - other[p])
        state[p] = level[p] != other[p]
        if not state[p]:
            size[level[p]] += 1
    count = _pieces(graph, begin, end, state, queue, bins[begin:])
    bound = bins[begin : begin + count + 1]
    moved, largest_first = 0, _largest_first(bound, end - begin) if count > 1 else queue[:0]
    for i in range(count):
        c = largest_first[i] if count > 1 else 0
        moved += _place_piece(queue[bound[c] : bound[c + 1]], level, other, size, prefer_first)
    return moved


@helper
def _pieces(
    graph: tuple, begin: int, end: int, state: NDArray, queue: NDArray, bound: NDArray
) -> int:
    """Connected pieces of the vertices with ``state`` 1; returns how many. Leaves ``state`` 0."""
    (offset, index), count, head, tail = graph, 0, 0, 0
    bound[0] = 0
    for root in range(begin, end):
        if state[root] == 0:
            continue
        state[root] = 0
        queue[tail] = root
        tail += 1
        while head < tail:
            p = queue[head]
            head += 1
            for k in range(offset[p], offset[p + 1]):
                q = index[k]
                if state[q] == 1:
                    state[q] = 0
                    queue[tail] = q
                    tail += 1
        count += 1
        bound[count] = tail
    return count


@helper
def _largest_first(bound: NDArray, n: int) -> NDArray:
    """The pieces by falling size, stable."""
    count = bound.size - 1
    pieces, less = np.empty(count, np.uint32), np.empty(count, np.int32)
    for c in range(count):
        pieces[c], less[c] = c, n - (bound[c + 1] - bound[c])
    return counting_sort(pieces, less, n + 1)[0]


@helper
def _place_piece(
    piece: NDArray, level: NDArray, other: NDArray, size: NDArray, prefer_first: bool
) -> int:
    """Put a piece on the side that stays narrower; its size if that is the second, or 0."""
    first, second = _widest(piece, level, size), _widest(piece, other, size)
    moves = second < first or (second == first and not prefer_first)
    if moves:
        for p in piece:
            level[p] = other[p]
    for p in piece:
        size[level[p]] += 1
    return piece.size if moves else 0


@helper
def _widest(piece: NDArray, level: NDArray, size: NDArray) -> int:
    widest = 0
    for p in piece:
        size[level[p]] += 1
        widest = max(widest, size[level[p]])
    for p in piece:
        size[level[p]] -= 1
    return widest
