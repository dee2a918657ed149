"""The table of locality methods, with reverse Cuthill-McKee."""

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, kernel
from ..kernels.arrays import breadth_first
from .by_component import by_component
from .curve import along_curve
from .figures import LocalityProblem, Method
from .gps import gps
from .levels import lowest_degree, number
from .sloan import sloan

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


METHODS: dict[str, Method] = {
    "gps": Method(
        lambda p: gps(p.graph),
        "Gibbs-Poole-Stockmeyer: small bandwidth and profile, no coordinates",
    ),
    "rcm": Method(rcm, "reverse Cuthill-McKee: cheaper than gps, wider, no coordinates"),
    "sloan": Method(sloan, "Sloan: the smallest profile, wide, no coordinates"),
    "hilbert": Method(along_curve, "along a Hilbert curve through the coordinates", True),
    "none": Method(
        lambda problem: np.arange(problem.n_points, dtype=np.int32), "keep the order of the input"
    ),
}
