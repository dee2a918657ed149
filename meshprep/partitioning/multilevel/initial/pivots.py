"""Coordinates for a graph that has none: distances from a few vertices far apart.

Each distance changes by about one from vertex to vertex, in a direction of its own. The
principal components of the distances, smoothed, are coordinates to cut in (high-dimensional
embedding: Harel and Koren, Graph Drawing 2002).
"""

import numpy as np
from numpy.typing import NDArray

from ....kernels import Float64s, Int32s, Int64s, kernel
from ....kernels.arithmetic import principal_axes
from ....kernels.arrays import Adjacency, breadth_first
from ....kernels.parallel import in_pieces
from ....mesh.incidence import Csr

# Vertices of each component from which distances are found.
PIVOTS = 10
# Coordinates of a vertex.
DIMENSIONS = 3
# Steps of smoothing.
SMOOTHING = 20
# Vertices that no distance tells apart, such as those around a hub, stand along the first
# axis in the order of their numbers, all within this part of a step: otherwise the last
# digits would decide.
TIE = 0.1


def pivot_coordinates(graph: Csr) -> Float64s:
    """Coordinates (n, 3) of vertices: principal components of distances from pivots.

    Each of the :data:`PIVOTS` is a vertex of a component that is farthest from the pivots
    before it. Components are set apart along the first axis, so that they are cut from each
    other first. O((pivots + smoothing) * edges).
    """
    distance, shift = _distances(graph.offset, graph.index, PIVOTS)
    axes = _principal(distance)
    where = np.zeros((len(distance), DIMENSIONS))
    for column, row in zip(distance.T, axes, strict=True):
        where += column[:, None] * row
    # Break ties between vertices at equal distances by their numbers.
    where[:, 0] += TIE / max(1, len(where)) * np.arange(len(where))
    where = smoothed(graph, where, SMOOTHING)
    # No principal component exceeds the distances times the root of their number.
    where[:, 0] += shift * 2 * np.sqrt(PIVOTS)
    return where


def smoothed(graph: Csr, place: Float64s, steps: int) -> Float64s:
    """Places after some steps of smoothing, each halfway to the mean of the neighbours."""
    for _ in range(steps):
        out = np.empty_like(place)
        arrays = graph.offset, graph.index, place, out
        in_pieces(_smooth, len(place), *arrays)
        place = out
    return place


@kernel
def _smooth(
    offset: Int64s, index: Int32s, place: Float64s, out: Float64s, begin: int, end: int
) -> None:
    """One step of smoothing of the vertices ``begin`` to ``end - 1``."""
    for i in range(begin, end):
        x = 0.0
        y = 0.0
        z = 0.0
        for s in range(offset[i], offset[i + 1]):
            j = index[s]
            x += place[j, 0]
            y += place[j, 1]
            z += place[j, 2]
        # Half of the place stays, the other half is the mean of the neighbours.
        share = 0.5 / max(1, offset[i + 1] - offset[i])
        own = 0.5 if offset[i + 1] > offset[i] else 1.0
        out[i, 0] = own * place[i, 0] + share * x
        out[i, 1] = own * place[i, 1] + share * y
        out[i, 2] = own * place[i, 2] + share * z


def _principal(distance: NDArray[np.float32]) -> Float64s:
    """The principal axes of the distances, (n_pivots, 3)."""
    n = max(1, distance.shape[0])
    # sums of whole numbers are exact in any order
    whole = distance.astype(np.int64)
    total = whole.sum(axis=0)
    square = whole.T @ whole
    axes = principal_axes(square / n - np.outer(total, total) / n**2)
    return np.ascontiguousarray(axes[:, :DIMENSIONS])


@kernel
def _distances(
    offset: Int64s, index: Int32s, n_pivots: int
) -> tuple[NDArray[np.float32], Float64s]:
    """The distances from the pivots, (n, n_pivots), and the shift of each vertex, (n,).

    Vertices of a component have the same shift, larger than the extents of those before.
    """
    n = offset.size - 1
    graph = Adjacency(offset, index)
    distance = np.zeros((n, n_pivots), np.float32)
    shift = np.zeros(n, np.float64)
    nearest = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    level = np.full(n, -1, np.int32)
    along = np.float64(0)
    for root in range(n):
        if level[root] >= 0:
            continue
        # Begin at a vertex farthest from the first one of the component.
        size = breadth_first(
            graph=graph, root=root, level=level, queue=queue, width_limit=n + 1
        )[3]
        nearest[queue[:size]] = n
        pivot = queue[size - 1]
        widest = 0
        for k in range(n_pivots if size > 1 else 0):
            level[queue[:size]] = -1
            # Measure the steps from the pivot to all vertices of the component.
            breadth_first(
                graph=graph, root=pivot, level=level, queue=queue, width_limit=n + 1
            )
            for i in queue[:size]:
                distance[i, k] = level[i]
                nearest[i] = min(nearest[i], level[i])
                widest = max(widest, level[i])
            # The next pivot is the vertex farthest from all pivots so far.
            pivot = queue[0]
            for i in queue[:size]:
                if nearest[i] > nearest[pivot]:
                    pivot = i
        # Components stand behind each other, further apart than any is wide.
        shift[queue[:size]] = along
        along += np.float64(widest + 2)
    return distance, shift
