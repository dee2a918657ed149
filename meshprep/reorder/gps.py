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
from .levels import components, lowest_degree, pseudo_diameter
from .levels_merge import combine
from .levels_number import number

# Mean distance of neighbours past which a graph is renumbered breadth-first before the work: the
# window of vertices that a search then touches fits in a second-level cache.
LOCAL_GAP = 1 << 15
# Components of more vertices are numbered once, smaller ones four times.
LARGE = 1 << 15
# How many vertices of the last level are tried as the other end, and how often the search may
# begin again from a deeper one: both keep the cost linear where [GPS76] is quadratic.
MANY_CANDIDATES, FEW_CANDIDATES, MAX_ROUNDS = 8, 3, 12


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
    # unsigned: numba then leaves out the test for negative indices, half of a search's time
    offset = graph.offset.view(np.uint64)
    index = np.ascontiguousarray(graph.index, dtype=np.int32).view(np.uint32)
    order, bound, far = components(offset, index)
    if bound.size > 2 or _mean_gap(offset, index) > LOCAL_GAP:
        offset, index, far = _renumbered(offset, index, order, far)
    else:
        order = np.arange(offset.size - 1, dtype=np.uint32)
    new_to_old = order[_gps(offset, index, bound, far, MAX_ROUNDS)]
    return _connected_first(new_to_old.view(np.int32), graph.offset)


def _connected_first(new_to_old: NDArray[np.int32], offset: NDArray[np.int64]) -> NDArray[np.int32]:
    alone = (np.diff(offset) == 0)[new_to_old]
    return np.concatenate([new_to_old[~alone], new_to_old[alone]]) if alone.any() else new_to_old


@njit(cache=True)
def _mean_gap(offset, index):
    """Mean distance of the neighbours of every 16th vertex."""
    total, count = 0.0, 0
    for i in range(0, offset.size - 1, 16):
        for k in range(offset[i], offset[i + 1]):
            total += abs(np.int64(index[k]) - i)
            count += 1
    return total / max(count, 1)


@njit(cache=True)
def _renumbered(offset, index, order, far):
    """The graph with vertex ``order[i]`` as ``i``."""
    n = order.size
    position = np.empty(n, np.uint32)
    for i in range(n):
        position[order[i]] = i
    new_offset = np.empty(n + 1, np.uint64)
    new_index = np.empty(index.size, np.uint32)
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
    out = np.empty((2, n), np.uint32)
    # three rows of levels, the queue, and where pieces begin
    work = np.empty((3, n), np.int32), np.empty(n, np.uint32), np.empty(n + 1, np.int32)
    for c in range(bound.size - 1):
        begin, end = bound[c], bound[c + 1]
        if end - begin == 1:
            out[0, begin] = begin
            continue
        effort = (rounds, FEW_CANDIDATES) if end - begin > LARGE else (rounds, MANY_CANDIDATES)
        best = _try_start(offset, index, begin, end, far[c], effort, np.inf, work, out)
        if end - begin <= LARGE:
            start = lowest_degree(offset, np.arange(begin, end).astype(np.uint32))
            if start != far[c]:
                _try_start(offset, index, begin, end, start, effort, best, work, out)
    return out[0]


@njit(cache=True)
def _try_start(offset, index, begin, end, start, effort, best, work, out):
    """Number one component; where the score falls below ``best``, into ``out[0, begin:end]``.

    Returns the best score. ``out[1]`` is scratch.
    """
    levels, queue, bins = work
    v, u, row_v, row_u, depth, narrow_v = pseudo_diameter(
        offset, index, begin, end, start, levels, queue[begin:end], effort
    )
    level, other, state = levels[row_v], levels[row_u], levels[3 - row_v - row_u]
    size = np.zeros(depth, np.int32)
    combine(offset, index, begin, end, level, other, state, queue[begin:end], bins, size, narrow_v)
    # a large component is numbered from the end of lower degree only, as the paper does
    v_first = offset[v + 1] - offset[v] <= offset[u + 1] - offset[u]
    if end - begin <= LARGE or not v_first:
        for p in range(begin, end):
            other[p] = depth - 1 - level[p]
        backward = size[::-1].copy()
        score = number(offset, index, u, begin, other, backward, out[1, begin:end])
        best = _keep_better(score, best, out[:, begin:end])
    if end - begin <= LARGE or v_first:
        score = number(offset, index, v, begin, level, size, out[1, begin:end])
        best = _keep_better(score, best, out[:, begin:end])
    return best


@njit(cache=True)
def _keep_better(score, best, out):
    product, reverse = score
    if product < best:
        out[0] = out[1, ::-1] if reverse else out[1]
    return min(product, best)
