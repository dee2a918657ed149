"""Graph orders, component by component, on a graph that is local in memory."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import ranges

from ..kernels import Int32s, kernel
from ..mesh.incidence import Csr
from .levels import components

# Mean distance of neighbours above which a graph is first renumbered breadth-first: the
# window of vertices that a search then touches fits in a second-level cache.
LOCAL_GAP = 1 << 15


def by_component(graph: Csr, order_ranges: Callable[..., NDArray]) -> Int32s:
    """Order a symmetric graph by components, in the order of their first vertices.

    Isolated vertices come last. ``order_ranges(offset, index, bound, far)`` orders a graph
    whose component ``c`` has the vertices ``bound[c]`` to ``bound[c + 1] - 1``; ``far[c]``
    is a vertex of lowest degree in the last level of a search. O(vertices + edges) besides.
    """
    # Unsigned indices, which numba does not test for being negative: that takes half of a
    # search's time. Writeable arrays, so that the kernels are compiled once.
    offset = np.require(graph.offset, np.int64, ["C", "W"]).view(np.uint64)
    index = np.require(graph.index, np.int32, ["C", "W"]).view(np.uint32)
    order, bound, far = components(offset, index)
    begins = bound[:-1]
    # Renumber where components are no ranges, or neighbours are far apart.
    if (order[begins] != begins).any() or _mean_gap(offset, index) > LOCAL_GAP:
        offset, index, far = renumbered(offset=offset, index=index, order=order, far=far)
    else:
        order = np.arange(graph.n_rows, dtype=np.uint32)
    new_to_old = order[order_ranges(offset, index, bound, far)].view(np.int32)
    # Isolated vertices go to the end.
    degree = np.diff(graph.offset)
    is_isolated = degree[new_to_old] == 0
    if is_isolated.any():
        return np.concatenate([new_to_old[~is_isolated], new_to_old[is_isolated]])
    return new_to_old


def _mean_gap(offset: NDArray, index: NDArray) -> float:
    """Mean distance of the neighbours of every 16th vertex."""
    begins = offset.view(np.int64)
    vertices = np.arange(0, offset.size - 1, 16)
    degree = np.diff(begins)[::16]
    neighbours = index[ranges(begins[vertices], degree)].astype(np.int64)
    gap = neighbours - np.repeat(vertices, degree)
    return float(np.abs(gap).sum()) / max(gap.size, 1)


@kernel
def renumbered(
    offset: NDArray,
    index: NDArray,
    order: NDArray,
    far: NDArray,
) -> tuple[NDArray, NDArray, NDArray]:
    """The graph with vertex ``order[i]`` as ``i``, and the new numbers of ``far``.

    O(vertices + edges).
    """
    n = order.size
    position = np.empty(n, np.uint32)
    for i in range(n):
        position[order[i]] = i
    new_offset = np.empty(n + 1, np.uint64)
    new_index = np.empty(index.size, np.uint32)
    new_offset[0] = 0
    end = 0
    for i in range(n):
        v = order[i]
        for k in range(offset[v], offset[v + 1]):
            new_index[end] = position[index[k]]
            end += 1
        new_offset[i + 1] = end
    return new_offset, new_index, position[far]
