"""Shared by graph orders: components as ranges of a graph that is local in memory."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import ranges

from ..kernels import Int32s, kernel
from ..mesh.incidence import Csr
from .levels import components

# Mean distance of neighbours past which a graph is renumbered breadth-first before the work: the
# window of vertices that a search then touches fits in a second-level cache.
LOCAL_GAP = 1 << 15


def by_component(graph: Csr, order_ranges: Callable[..., NDArray]) -> Int32s:
    """Order a symmetric graph by components, those of first vertices first; isolated ones last.

    ``order_ranges(offset, index, bound, far)`` is a kernel that orders a graph whose component
    ``c`` has vertices ``bound[c]`` to ``bound[c + 1] - 1``; ``far[c]`` is one of lowest degree in
    the last level of a search. O(vertices + edges) besides.
    """
    # unsigned: numba then leaves out the test for negative indices, half of a search's time;
    # writeable: the kernels are compiled once
    offset = np.require(graph.offset, np.int64, ["C", "W"]).view(np.uint64)
    index = np.require(graph.index, np.int32, ["C", "W"]).view(np.uint32)
    order, bound, far = components(offset, index)
    begins = bound[:-1]
    # components that are no ranges, or whose neighbours are far apart
    if (order[begins] != begins).any() or _mean_gap(offset, index) > LOCAL_GAP:
        offset, index, far = renumbered(offset, index, order, far)
    else:
        order = np.arange(graph.n_rows, dtype=np.uint32)
    new_to_old = order[order_ranges(offset, index, bound, far)].view(np.int32)
    alone = (np.diff(graph.offset) == 0)[new_to_old]
    return np.concatenate([new_to_old[~alone], new_to_old[alone]]) if alone.any() else new_to_old


def _mean_gap(offset: NDArray, index: NDArray) -> float:
    """Mean distance of the neighbours of every 16th vertex."""
    begins = offset.view(np.int64)
    some, degree = np.arange(0, offset.size - 1, 16), np.diff(begins)[::16]
    gap = index[ranges(begins[some], degree)].astype(np.int64) - np.repeat(some, degree)
    return float(np.abs(gap).sum()) / max(gap.size, 1)


@kernel
def renumbered(
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
