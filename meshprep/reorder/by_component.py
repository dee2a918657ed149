"""Shared by graph orders: components as ranges of a graph that is local in memory."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, Int64s, kernel
from ..mesh.incidence import Csr
from .levels import components

# Mean distance of neighbours past which a graph is renumbered breadth-first before the work: the
# window of vertices that a search then touches fits in a second-level cache.
LOCAL_GAP = 1 << 15


def by_component(
    graph: Csr, order_ranges: Callable[..., NDArray], ends: Int64s | None = None
) -> Int32s:
    """Order a symmetric graph by components, those of first vertices first; isolated ones last.

    ``order_ranges(offset, index, bound, far)`` is a kernel that orders a graph whose component
    ``c`` has vertices ``bound[c]`` to ``bound[c + 1] - 1``; ``far[c]`` is one of lowest degree in
    the last level of a search. ``ends`` cut several graphs, each ordered alone. O(vertices + edges)
    besides.
    """
    # unsigned: numba then leaves out the test for negative indices, half of a search's time;
    # writeable: the kernels are compiled once
    offset = np.require(graph.offset, np.int64, ["C", "W"]).view(np.uint64)
    index = np.require(graph.index, np.int32, ["C", "W"]).view(np.uint32)
    ends = np.array([0, graph.n_rows]) if ends is None else ends
    order, bound, far = components(offset, index)
    scattered = _scattered(offset, index, ends, order, bound)
    here = np.arange(graph.n_rows, dtype=np.uint32)
    if scattered.any():
        order = np.where(np.repeat(scattered, np.diff(ends)), order, here)
        offset, index, far = _renumbered(offset, index, order, far)
    else:
        order = here
    new_to_old = order[order_ranges(offset, index, bound, far)]
    return _connected_first(new_to_old.view(np.int32), graph.offset, ends)


def _scattered(
    offset: NDArray, index: NDArray, ends: Int64s, order: NDArray, bound: Int64s
) -> NDArray[np.bool_]:
    """The graphs whose components are no ranges, or whose neighbours are far apart."""
    found = np.zeros(ends.size - 1, np.bool_)
    moved = bound[:-1][order[bound[:-1]] != bound[:-1]]
    found[np.searchsorted(ends, moved, side="right") - 1] = True
    # of several, small ones cannot have neighbours so far apart
    for graph in np.flatnonzero(np.diff(ends) > LOCAL_GAP) if found.size > 1 else range(1):
        found[graph] |= _mean_gap(offset, index, ends[graph], ends[graph + 1]) > LOCAL_GAP
    return found


def _connected_first(new_to_old: Int32s, offset: Int64s, ends: Int64s) -> Int32s:
    """The same with the vertices without neighbours at the end of each graph."""
    alone = (np.diff(offset) == 0)[new_to_old]
    if not alone.any():
        return new_to_old
    kind = np.min_scalar_type(2 * ends.size)
    graph = np.repeat(np.arange(ends.size - 1, dtype=kind), np.diff(ends))
    return new_to_old[np.argsort(2 * graph + alone, kind="stable")]


@kernel
def _mean_gap(offset: NDArray, index: NDArray, begin: int, end: int) -> float:
    """Mean distance of the neighbours of every 16th vertex."""
    total, count = 0.0, 0
    for i in range(begin, end, 16):
        for k in range(offset[i], offset[i + 1]):
            total += abs(np.int64(index[k]) - i)
            count += 1
    return total / max(count, 1)


@kernel
def _renumbered(
    offset: NDArray, index: NDArray, order: NDArray, far: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
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
