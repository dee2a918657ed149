"""The table of locality methods, with reverse Cuthill-McKee and recursive bisection."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, inlined, kernel
from ..kernels.arrays import breadth_first, numbers, sort
from .by_component import by_component
from .curve import along_curve, finite_coordinates
from .figures import LocalityProblem, Method
from .gps import gps
from .levels import lowest_degree, number
from .sloan import sloan


def rcb(problem: LocalityProblem) -> Int32s:
    """Order points by cutting their box in halves across its longest side, again and again.

    Halves are equal to one [G10 section 6] and stand together; points at one place keep their
    order. Raises MeshprepError without finite coordinates. O(points x log points) expected.
    """
    where = np.ascontiguousarray(finite_coordinates(problem, "rcb"))
    return _bisect(where) if where.shape[1] else np.arange(where.shape[0], dtype=np.int32)


@kernel
def _bisect(where: NDArray) -> NDArray:
    n = where.shape[0]
    order, value = numbers(n), np.empty(n, np.float64)
    # the second halves that wait: one for each level of the tree, of at most 64
    waiting = np.empty((64, 2), np.int64)
    waiting[0, 0], waiting[0, 1], count = 0, n, 1
    while count > 0:
        count -= 1
        begin, end = waiting[count]
        while end - begin > 1:
            axis, extent = _longest(where, order[begin:end])
            if extent == 0:
                sort(order, begin, end)
                break
            for i in range(begin, end):
                value[i] = where[order[i], axis]
            middle = begin + (end - begin + 1) // 2
            _select(value[begin:end], order[begin:end], middle - begin)
            waiting[count, 0], waiting[count, 1] = middle, end
            end, count = middle, count + 1
    return order


@helper
def _longest(where: NDArray, points: NDArray) -> tuple[int, float]:
    """The axis along which points extend most, the first of equals, and how far (halved)."""
    axis, longest = 0, -1.0
    for a in range(where.shape[1]):
        low = high = where[points[0], a]
        for p in points:
            low, high = min(low, where[p, a]), max(high, where[p, a])
        # halves, so that huge coordinates do not overflow
        if high / 2 - low / 2 > longest:
            axis, longest = a, high / 2 - low / 2
    return axis, longest


@helper
def _select(value: NDArray, points: NDArray, middle: int) -> None:
    """Put the ``middle`` smallest first, equal values by number (Hoare's selection, in place)."""
    low, high = 0, value.size - 1
    while low < high:
        # the median of three as pivot: sorted input costs no more than any other
        m = (low + high) // 2
        for i, j in ((low, m), (m, high), (low, m)):
            if _less(value, points, j, i):
                _swap(value, points, i, j)
        pivot, number = value[m], points[m]
        i, j = low, high
        while i <= j:
            while value[i] < pivot or (value[i] == pivot and points[i] < number):
                i += 1
            while value[j] > pivot or (value[j] == pivot and points[j] > number):
                j -= 1
            if i <= j:
                _swap(value, points, i, j)
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@inlined
def _less(value: NDArray, points: NDArray, i: int, j: int) -> bool:
    return value[i] < value[j] or (value[i] == value[j] and points[i] < points[j])


@inlined
def _swap(value: NDArray, points: NDArray, i: int, j: int) -> None:
    value[i], value[j] = value[j], value[i]
    points[i], points[j] = points[j], points[i]


# Searches for a deeper start; George and Liu search without end, but find none after a few.
MAX_SEARCHES = 12


def rcm(problem: LocalityProblem) -> Int32s:
    """Order points by reverse Cuthill-McKee on their clique graph.

    Each component starts at a pseudo-peripheral vertex: breadth-first search from a vertex of
    lowest degree in the last level, again while that goes deeper (George and Liu). Cheaper than
    :func:`gps.gps` and usually wider.

    Returns ``new_to_old``, (n_points,).

    O(points + neighbours).
    """
    return by_component(problem.graph, _rcm)


@kernel
def _rcm(offset: NDArray, index: NDArray, bound: NDArray, far: NDArray) -> NDArray:
    """The order of a graph whose components are the ranges between ``bound``."""
    n = offset.size - 1
    out, queue = np.empty(n, np.uint32), np.empty(n, np.uint32)
    levels, sizes = np.empty((2, n), np.int32), np.empty(n, np.int32)
    for c in range(bound.size - 1):
        begin, end = bound[c], bound[c + 1]
        start, row, depth = _peripheral((offset, index), begin, end, far[c], levels, queue)
        level, size = levels[row], sizes[:depth]
        size[:] = 0
        for p in range(begin, end):
            size[level[p]] += 1
        # numbering plain levels by adjacency, lowest degree first, is Cuthill and McKee's
        number((offset, index), start, begin, level, size, queue[begin:end])
        for i in range(begin, end):
            out[i] = queue[end - 1 - (i - begin)]
    return out


@helper
def _peripheral(
    graph: tuple, begin: int, end: int, start: int, levels: NDArray, queue: NDArray
) -> tuple[int, int, int]:
    """A vertex far from others: it, the row of ``levels`` with its levels, and how many."""
    n, row = end - begin, 0
    levels[row, begin:end] = -1
    depth, width, last, _ = breadth_first(graph, start, levels[row], queue, n + 1)
    for _ in range(MAX_SEARCHES):
        other = lowest_degree(graph[0], queue[last:n])
        levels[1 - row, begin:end] = -1
        found, wide, last, _ = breadth_first(graph, other, levels[1 - row], queue, n + 1)
        deeper = found > depth
        if deeper or wide < width:
            start, row, depth, width = other, 1 - row, found, wide
        if not deeper:
            break
    return start, row, depth


_HILBERT = partial(along_curve, method="hilbert", turning=True)
# Cheaper, but the curve jumps between its cells.
_MORTON = partial(along_curve, method="morton", turning=False)
METHODS: dict[str, Method] = {
    "gps": Method(
        lambda p: gps(p.graph),
        "Gibbs-Poole-Stockmeyer: small bandwidth and profile, no coordinates",
    ),
    "rcm": Method(rcm, "reverse Cuthill-McKee: cheaper than gps, wider, no coordinates"),
    "sloan": Method(sloan, "Sloan: the smallest profile, wide, no coordinates"),
    "hilbert": Method(_HILBERT, "along a Hilbert curve through the coordinates", True),
    "morton": Method(_MORTON, "by the interleaved bits of the coordinates", True),
    "rcb": Method(rcb, "recursive coordinate bisection", True),
    "none": Method(
        lambda problem: np.arange(problem.n_points, dtype=np.int32), "keep the order of the input"
    ),
}
