"""The centroid term of annealing: it draws elements to the centroid of their block.

Single moves straighten a boundary but hardly move a block. A term that draws elements to the
centroids does, as Lloyd's iteration does in a Voronoi diagram. Distances are counted in elements,
with the width of an element measured in each block, so that thin layers are treated as what they
are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper, inlined, kernel

LEAST_WIDTH = 1e-100
# Where elements widen, the centroid of a block lies towards its narrow ones. With this share of its
# own metric, and the rest of the other block's, the terms of two blocks of equal size balance at
# their border: to first order, for discs of elements that widen exponentially. Otherwise whole
# regions would lose their elements to wider ones.
OWN = 0.81


class BlockMetrics(NamedTuple):
    """Where elements are, (n, d), and the squared width of an element of each block as a metric.

    ``metric`` (n_blocks, d, d) is scaled so that the distance of a block's radius is about 1.
    """

    coordinates: NDArray[np.float64]
    metric: NDArray[np.float64]


class Centroids(NamedTuple):
    """Elements and metrics of a group of blocks, and the centroid of each, (n_blocks, d)."""

    coordinates: NDArray[np.float64]
    metric: NDArray[np.float64]
    centroid: NDArray[np.float64]


def block_metrics(
    table: NDArray[np.int32],
    position: NDArray[np.float64],
    coordinates: NDArray[np.float64],
    block: NDArray[np.int32],
    n_blocks: int,
    cap: int,
    thinnest: float,
) -> BlockMetrics:
    """Measure the elements of each block.

    Parameters
    ----------
    table : (n, arity) int32
        With -1 for a point that is named again.
    position : (n_points, d) float64
    coordinates : (n, d) float64
    block : (n,) int32
    n_blocks, cap : int
    thinnest : float
        As of :func:`bisection.bisect`.

    Notes
    -----
    O(n arity d^2).
    """
    d = coordinates.shape[1]
    moment = _moments(table, position, coordinates, block, n_blocks)
    trace = np.trace(moment, axis1=1, axis2=2)
    # Blocks of elements that are points in space have no centroid term.
    points = trace < LEAST_WIDTH**2
    trace = np.where(points, 1.0, trace)
    moment /= trace[:, None, None]
    moment += thinnest**2 * np.eye(d)
    metric = np.linalg.inv(moment) / (trace[:, None, None] * float(cap) ** (2 / d))
    metric[points] = 0.0
    return BlockMetrics(coordinates, metric)


@kernel
def _moments(
    table: NDArray[np.int32],
    position: NDArray[np.float64],
    coordinates: NDArray[np.float64],
    block: NDArray[np.int32],
    n_blocks: int,
) -> NDArray[np.float64]:
    """Mean second moments of the points about their elements, of each block."""
    d = coordinates.shape[1]
    moment = np.zeros((n_blocks, d, d), np.float64)
    count = np.zeros(n_blocks, np.int64)
    for i in range(table.shape[0]):
        b = block[i]
        for j in range(table.shape[1]):
            t = table[i, j]
            if t < 0:
                continue
            count[b] += 1
            for a in range(d):
                for c in range(d):
                    off = position[t, a] - coordinates[i, a]
                    moment[b, a, c] += off * (position[t, c] - coordinates[i, c])
    for b in range(n_blocks):
        for a in range(d):
            for c in range(d):
                moment[b, a, c] /= max(1, count[b])
    return moment


@helper
def find_centroids(centroids: Centroids, block: NDArray[np.int32], size: NDArray[np.int64]) -> None:
    """The mean coordinates of the elements of each block. O(n d)."""
    centroid = centroids.centroid
    centroid[:] = 0.0
    for i in range(block.size):
        for a in range(centroid.shape[1]):
            centroid[block[i], a] += centroids.coordinates[i, a]
    for b in range(size.size):
        for a in range(centroid.shape[1]):
            centroid[b, a] /= max(1, size[b])


@inlined
def update_centroids(
    centroids: Centroids, size: NDArray[np.int64], element: int, source: int, target: int
) -> None:
    """Update both centroids, before an element leaves a block of at least two. O(d)."""
    for a in range(centroids.centroid.shape[1]):
        x, old = centroids.coordinates[element, a], centroids.centroid[source, a]
        centroids.centroid[source, a] += (old - x) / (size[source] - 1)
        centroids.centroid[target, a] += (x - centroids.centroid[target, a]) / (size[target] + 1)


@inlined
def centroid_term(centroids: Centroids, element: int, source: int, target: int) -> float:
    """How much nearer the target's centroid is, in squared radii of the two blocks. O(d^2)."""
    total = 0.0
    for a in range(centroids.centroid.shape[1]):
        here_a = centroids.coordinates[element, a] - centroids.centroid[source, a]
        there_a = centroids.coordinates[element, a] - centroids.centroid[target, a]
        for c in range(centroids.centroid.shape[1]):
            here = here_a * (centroids.coordinates[element, c] - centroids.centroid[source, c])
            there = there_a * (centroids.coordinates[element, c] - centroids.centroid[target, c])
            total += (OWN * here - (1.0 - OWN) * there) * centroids.metric[source, a, c]
            total -= (OWN * there - (1.0 - OWN) * here) * centroids.metric[target, a, c]
    return total
