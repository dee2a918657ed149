"""Two level structures of one component made into one that is at most about as wide.

The second algorithm of [GPS76], with the connected pieces labelled once and only the levels that
a piece touches looked at.
"""

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper
from .radix import counting_sort


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
    if count == 1:
        return _settle(queue[bound[0] : bound[1]], level, other, size, prefer_first)
    moved = 0
    if count > 1:
        for c in _largest_first(bound, end - begin):
            moved += _settle(queue[bound[c] : bound[c + 1]], level, other, size, prefer_first)
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
def _settle(
    piece: NDArray, level: NDArray, other: NDArray, size: NDArray, prefer_first: bool
) -> int:
    """Put one piece on the side where the widest level it touches stays narrower.

    Returns its size when that is the second side, 0 when it is the first.
    """
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
