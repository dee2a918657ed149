"""Reverse Cuthill-McKee, and orders that need no module of their own."""

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, kernel
from ..kernels.arrays import Adjacency, breadth_first
from .by_component import by_component
from .figures import LocalityProblem
from .gps import gps
from .levels import BY_NUMBER, LevelNumbers, Limit, lowest_degree, number

# Searches for a deeper start, at most. George and Liu set no bound; more than a few are
# not needed.
MAX_SEARCHES = 12


def rcm(problem: LocalityProblem) -> Int32s:
    """Order points by reverse Cuthill-McKee on their clique graph.

    Each component starts at a pseudo-peripheral vertex: breadth-first search from a vertex
    of lowest degree in the last level, again while that goes deeper (George and Liu, ACM
    TOMS 5, 1979). Cheaper than :func:`gps.gps` and usually wider. Returns ``new_to_old``,
    (n_points,). O(points + neighbours).
    """
    return by_component(problem.graph, _rcm)


@kernel
def _rcm(
    offset: NDArray,
    index: NDArray,
    bound: NDArray,
    far: NDArray,
) -> NDArray:
    """The order of a graph whose components are the ranges between ``bound``."""
    graph = Adjacency(offset, index)
    n = offset.size - 1
    out = np.empty(n, np.uint32)
    queue = np.empty(n, np.uint32)
    levels = np.empty((2, n), np.int32)
    sizes = np.empty(n, np.int32)
    for c in range(bound.size - 1):
        begin = bound[c]
        end = bound[c + 1]
        # Find a start, and count the vertices on each level from it.
        start, row, depth = _peripheral(
            graph=graph,
            begin=begin,
            end=end,
            start=far[c],
            levels=levels,
            queue=queue,
        )
        level = levels[row]
        size = sizes[:depth]
        size[:] = 0
        for p in range(begin, end):
            size[level[p]] += 1
        # Number plain levels by adjacency, lowest degree first, as Cuthill and McKee do.
        number(
            graph=graph,
            start=start,
            begin=begin,
            numbers=LevelNumbers(order=queue[begin:end], level=level, follower=out),
            size=size,
            in_place=BY_NUMBER,
            limit=Limit(cost=np.inf, bandwidth=np.inf, scattered=False),
        )
        # Reverse the order.
        for i in range(begin, end):
            out[i] = queue[end - 1 - (i - begin)]
    return out


@helper
def _peripheral(
    graph: Adjacency,
    begin: int,
    end: int,
    start: int,
    levels: NDArray,
    queue: NDArray,
) -> tuple[int, int, int]:
    """A vertex far from others, the row of ``levels`` with its levels, and their number."""
    # Search from the start; the two rows of ``levels`` change places where one is better.
    n = end - begin
    row = 0
    levels[row, begin:end] = -1
    depth, width, last, _ = breadth_first(
        graph=graph,
        root=start,
        level=levels[row],
        queue=queue,
        width_limit=n + 1,
    )
    for _ in range(MAX_SEARCHES):
        # Search from a vertex of lowest degree in the last level.
        other = lowest_degree(graph.offset, queue[last:n])
        levels[1 - row, begin:end] = -1
        tried_depth, tried_width, last, _ = breadth_first(
            graph=graph,
            root=other,
            level=levels[1 - row],
            queue=queue,
            width_limit=n + 1,
        )
        # Take it if its levels are deeper or narrower; go on only from deeper ones.
        deeper = tried_depth > depth
        if deeper or tried_width < width:
            start = other
            row = 1 - row
            depth = tried_depth
            width = tried_width
        if not deeper:
            break
    return start, row, depth


def by_gps(problem: LocalityProblem) -> Int32s:
    """Order points by :func:`gps.gps` on their clique graph."""
    return gps(problem.graph)


def as_in_input(problem: LocalityProblem) -> Int32s:
    """The points as they stand."""
    return np.arange(problem.n_points, dtype=np.int32)
