"""The Gibbs-Poole-Stockmeyer ordering of a graph, in linear time [GPS76].

1. Ends of a pseudo-diameter: breadth-first search from the last level of the search before
   (:mod:`levels`).
2. The two level structures become one that is at most as wide: where they disagree, connected
   pieces, the largest first, go to the side that keeps the levels narrow.
3. Numbering level by level, by adjacency, lowest degree first.

What the paper leaves quadratic is capped (candidates of the last level) or touched once
(components, levels). Where the paper picks one end and a direction by rule, both ends and both
directions are numbered and the best is kept.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..incidence import Csr
from .levels import MAX_ROUNDS, components, pseudo_diameter

# Mean distance of neighbours past which a graph is renumbered breadth-first before the work: the
# window of vertices that a search then touches fits in a second-level cache.
LOCAL_GAP = 1 << 15
SHORT = 24


def gps(graph: Csr) -> NDArray[np.int32]:
    """Order the vertices of a symmetric graph for a small bandwidth and profile [GPS76].

    Parameters
    ----------
    graph : Csr
        Neighbours of each vertex, both ways; loops are ignored.

    Returns
    -------
    new_to_old : (n,) int32
        Components stand in the order of their first vertices, vertices without neighbours last.

    Notes
    -----
    O(vertices + edges), apart from sorting the children of one vertex by degree.
    """
    order, bound, far = components(graph.offset, graph.index)
    offset, index = graph.offset, graph.index
    if bound.size > 2 or _mean_gap(offset, index) > LOCAL_GAP:
        offset, index, far = _renumbered(offset, index, order, far)
    else:
        order = np.arange(offset.size - 1, dtype=np.int32)
    return _connected_first(order[_gps(offset, index, bound, far, MAX_ROUNDS)], graph.offset)


def _connected_first(new_to_old: NDArray[np.int32], offset: NDArray[np.int64]) -> NDArray[np.int32]:
    alone = (np.diff(offset) == 0)[new_to_old]
    return np.concatenate([new_to_old[~alone], new_to_old[alone]]) if alone.any() else new_to_old


@njit(cache=True)
def _mean_gap(offset, index):
    total = 0.0
    for i in range(offset.size - 1):
        for k in range(offset[i], offset[i + 1]):
            total += abs(index[k] - i)
    return total / max(index.size, 1)


@njit(cache=True)
def _renumbered(offset, index, order, far):
    n = order.size
    position = np.empty(n, np.int32)
    for i in range(n):
        position[order[i]] = i
    new_offset = np.empty(n + 1, np.int64)
    new_index = np.empty(index.size, np.int32)
    new_offset[0] = at = 0
    for i in range(n):
        for k in range(offset[order[i]], offset[order[i] + 1]):
            new_index[at] = position[index[k]]
            at += 1
        new_offset[i + 1] = at
    return new_offset, new_index, position[far]


@njit(cache=True)
def _gps(offset, index, bound, far, rounds):
    n = offset.size - 1
    work = np.empty((6, n + 1), np.int32)
    out = np.empty((2, n), np.int32)
    for c in range(bound.size - 1):
        begin, end = bound[c], bound[c + 1]
        if end - begin == 1:
            out[0, begin] = begin
        else:
            _order_component(offset, index, begin, end, far[c], work, out, rounds)
    return out[0]


@njit(cache=True)
def _order_component(offset, index, begin, end, start, work, out, rounds):
    """Best of four numberings of one component, into ``out[0, begin:end]``."""
    queue, size = work[3, begin:end], work[4, begin : end + 1]
    v, u, row_v, row_u, depth, width_v, width_u = pseudo_diameter(
        offset, index, begin, end, start, work, queue, rounds
    )
    level, other, state = work[row_v], work[row_u], work[3 - row_v - row_u]
    _combine(offset, index, begin, end, depth, level, other, state, width_v <= width_u, work)
    for p in range(begin, end):
        other[p] = depth - 1 - level[p]
    _number(offset, index, v, begin, level, size[:depth], out[0, begin:end])
    _number(offset, index, u, begin, other, size[:depth][::-1].copy(), out[1, begin:end])
    score, turn = _score(offset, index, out[0, begin:end], work[5])
    score_u, turn_u = _score(offset, index, out[1, begin:end], work[5])
    if score_u < score:
        out[0, begin:end] = out[1, begin:end]
        turn = turn_u
    if turn:
        out[0, begin:end] = out[0, begin:end][::-1].copy()


@njit(cache=True)
def _combine(offset, index, begin, end, depth, level, other, state, prefer_first, work):
    """Merge the levels from both ends into ``level`` [GPS76 algorithm II].

    ``other`` becomes the level seen from the first end. Vertices where both agree are settled;
    the connected pieces of the rest follow, largest first.
    """
    size, piece, bound = work[4, begin : end + 1], work[3, begin:end], work[5, begin : end + 1]
    size[:depth] = 0
    for p in range(begin, end):
        other[p] = max(0, depth - 1 - other[p])
        state[p] = level[p] != other[p]
        if not state[p]:
            size[level[p]] += 1
    count = _pieces(offset, index, begin, end, state, piece, bound)
    for c in np.argsort(-(bound[1 : count + 1] - bound[:count]), kind="mergesort"):
        _settle(piece[bound[c] : bound[c + 1]], level, other, prefer_first, size)


@njit(cache=True)
def _pieces(offset, index, begin, end, state, piece, bound):
    """Connected pieces of the vertices with ``state`` 1; returns how many. Leaves ``state`` 0."""
    count, head, tail = 0, 0, 0
    bound[0] = 0
    for root in range(begin, end):
        if state[root] == 0:
            continue
        state[root] = 0
        piece[tail] = root
        tail += 1
        while head < tail:
            p = piece[head]
            head += 1
            for k in range(offset[p], offset[p + 1]):
                q = index[k]
                if state[q] == 1:
                    state[q] = 0
                    piece[tail] = q
                    tail += 1
        count += 1
        bound[count] = tail
    return count


@njit(cache=True)
def _settle(piece, level, other, prefer_first, size):
    """Put one piece on the side where the widest level it touches stays narrower."""
    widest = np.zeros(2, np.int64)
    for side in range(2):
        chosen = level if side == 0 else other
        for p in piece:
            size[chosen[p]] += 1
        for p in piece:
            widest[side] = max(widest[side], size[chosen[p]])
        for p in piece:
            size[chosen[p]] -= 1
    if widest[1] < widest[0] or (widest[1] == widest[0] and not prefer_first):
        for p in piece:
            level[p] = other[p]
    for p in piece:
        size[level[p]] += 1


@njit(cache=True)
def _number(offset, index, start, begin, level, size, out):
    """Number level by level [GPS76 algorithm III]; ``level`` is -1 afterwards."""
    leftover = np.empty(0, np.int32)
    bound = np.zeros(1, np.int64)
    out[0] = start
    level[start] = -1
    head, first, tail, full = 0, 0, 1, 0
    for depth in range(size.size):
        full += size[depth]
        # from the level before, then from this one
        head, first = first, tail
        while tail < full:
            if head < tail:
                tail = _append_neighbours(offset, index, out[head], depth, level, out, tail)
                head += 1
                continue
            if leftover.size == 0:
                leftover, bound = _leftovers(offset, begin, level, size.size, out.size)
            while level[leftover[bound[depth]]] != depth:
                bound[depth] += 1
            out[tail] = leftover[bound[depth]]
            level[out[tail]] = -1
            tail += 1
        if depth == 0:
            first = 0
    return


@njit(cache=True)
def _append_neighbours(offset, index, p, depth, level, out, tail):
    first = tail
    for k in range(offset[p], offset[p + 1]):
        q = index[k]
        if level[q] == depth:
            level[q] = -1
            out[tail] = q
            tail += 1
    if tail - first > 1:
        _sort_by_degree(offset, out[first:tail])
    return tail


@njit(cache=True)
def _sort_by_degree(offset, vertices):
    """Stable sort in place: insertion where there are few, else by packed keys."""
    if vertices.size > SHORT:
        key = np.empty(vertices.size, np.int64)
        for i in range(vertices.size):
            p = vertices[i]
            key[i] = ((offset[p + 1] - offset[p]) << 32) | i
        key.sort()
        vertices[:] = vertices[key & 0xFFFFFFFF]
        return
    for i in range(1, vertices.size):
        p = vertices[i]
        degree = offset[p + 1] - offset[p]
        at = i
        while at > 0 and offset[vertices[at - 1] + 1] - offset[vertices[at - 1]] > degree:
            vertices[at] = vertices[at - 1]
            at -= 1
        vertices[at] = p


@njit(cache=True)
def _leftovers(offset, begin, level, depth, n):
    """Vertices not numbered yet, by level and degree; and where each level begins. Linear."""
    by_degree = np.arange(begin, begin + n).astype(np.int32)
    _sort_by_degree(offset, by_degree)
    bound = np.zeros(depth + 1, np.int64)
    for p in by_degree:
        if level[p] >= 0:
            bound[level[p] + 1] += 1
    bound = np.cumsum(bound)
    fill = bound.copy()
    vertices = np.empty(bound[depth], np.int32)
    for p in by_degree:
        if level[p] >= 0:
            vertices[fill[level[p]]] = p
            fill[level[p]] += 1
    return vertices, bound


@njit(cache=True)
def _score(offset, index, new_to_old, position):
    """Bandwidth times profile of one component, and whether reversing makes the profile smaller."""
    for i in range(new_to_old.size):
        position[new_to_old[i]] = i
    bandwidth, profile, reversed_profile = 0, 0, 0
    for i in range(new_to_old.size):
        p = new_to_old[i]
        low = high = i
        for k in range(offset[p], offset[p + 1]):
            j = position[index[k]]
            low = min(low, j)
            high = max(high, j)
        bandwidth = max(bandwidth, high - i)
        profile += i - low
        reversed_profile += high - i
    return float(bandwidth) * min(profile, reversed_profile), reversed_profile < profile
