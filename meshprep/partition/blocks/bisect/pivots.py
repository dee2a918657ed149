"""Coordinates for a graph that has none: distances from a few vertices far apart.

Each distance changes by about one from vertex to vertex, in a direction of its own. Averaged a few
times they are smooth, and their principal components are a frame to cut in (high-dimensional
embedding: Harel and Koren, Graph Drawing 2002).
"""

import numpy as np
from numpy.typing import NDArray

from ....kernels import Float64s, Int32s, Int64s, kernel
from ....kernels.arithmetic import principal_axes
from ....kernels.arrays import breadth_first
from ....kernels.parallel import in_pieces
from ....mesh.incidence import Csr

PIVOTS = 10
DIMENSIONS = 3
SMOOTHING = 20
# Vertices that no distance tells apart, as those around a hub, stand along the first axis in the
# order of their numbers, all within so much of a step: last digits would decide otherwise.
TIE = 0.1


def pivot_coordinates(graph: Csr) -> Float64s:
    """Principal components (n, 3) of the distances from :data:`PIVOTS` vertices of each component.

    Each pivot is a vertex farthest from those before it. Components are set apart along the first
    axis, so that they are cut from each other first. O((pivots + smoothing) * edges).
    """
    distance, shift = _distances(graph.offset, graph.index, PIVOTS)
    axes = _principal(distance)
    where = np.zeros((len(distance), DIMENSIONS))
    for column, row in zip(distance.T, axes, strict=True):
        where += column[:, None] * row
    where[:, 0] += TIE / max(1, len(where)) * np.arange(len(where))
    where = smoothed(graph, where, SMOOTHING)
    where[:, 0] += shift * 2 * np.sqrt(PIVOTS)
    return where


def smoothed(graph: Csr, place: Float64s, times: int) -> Float64s:
    """Places after several steps of smoothing, each halfway to the mean of the neighbours."""
    for _ in range(times):
        out = np.empty_like(place)
        in_pieces(_smooth, len(place), graph.offset, graph.index, place, out)
        place = out
    return place


@kernel
def _smooth(
    offset: Int64s, index: Int32s, place: Float64s, out: Float64s, begin: int, end: int
) -> None:
    for i in range(begin, end):
        x, y, z = 0.0, 0.0, 0.0
        for s in range(offset[i], offset[i + 1]):
            j = index[s]
            x += place[j, 0]
            y += place[j, 1]
            z += place[j, 2]
        share = 0.5 / max(1, offset[i + 1] - offset[i])
        own = 0.5 if offset[i + 1] > offset[i] else 1.0
        out[i, 0] = own * place[i, 0] + share * x
        out[i, 1] = own * place[i, 1] + share * y
        out[i, 2] = own * place[i, 2] + share * z


def _principal(distance: NDArray[np.float32]) -> Float64s:
    """The principal axes, (n_pivots, 3)."""
    n = max(1, distance.shape[0])
    # sums of whole numbers are exact in any order
    whole = distance.astype(np.int64)
    total, square = whole.sum(axis=0), whole.T @ whole
    axes = principal_axes(square / n - np.outer(total, total) / n**2)
    return np.ascontiguousarray(axes[:, :DIMENSIONS])


@kernel
def _distances(
    offset: Int64s, index: Int32s, n_pivots: int
) -> tuple[NDArray[np.float32], Float64s]:
    n = offset.size - 1
    graph, distance = (offset, index), np.zeros((n, n_pivots), np.float32)
    shift = np.zeros(n, np.float64)
    nearest = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    level = np.full(n, -1, np.int32)
    along = np.float64(0)
    for root in range(n):
        if level[root] >= 0:
            continue
        size = breadth_first(graph, root, level, queue, n + 1)[3]
        nearest[queue[:size]] = n
        pivot, widest = queue[size - 1], 0
        for k in range(n_pivots if size > 1 else 0):
            level[queue[:size]] = -1
            breadth_first(graph, pivot, level, queue, n + 1)
            for i in queue[:size]:
                distance[i, k] = level[i]
                nearest[i] = min(nearest[i], level[i])
                widest = max(widest, level[i])
            pivot = queue[0]
            for i in queue[:size]:
                if nearest[i] > nearest[pivot]:
                    pivot = i
        shift[queue[:size]] = along
        along += np.float64(widest + 2)
    return distance, shift
