"""The centroid term of annealing, which draws clusters to the centroid of their block.

Single moves straighten a boundary but hardly move a block. A term that draws clusters to
the centroids moves blocks, as Lloyd's iteration moves the cells of a Voronoi diagram.
Distances are counted in elements, whose width is measured in each block, so that a block of
thin layers is compact when it is as many elements long as wide.
"""

from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float64s, Int32s, Int64s, UInt32s, helper, inlined, kernel
from ....kernels.arithmetic import inverses
from ....kernels.parallel import in_pieces
from ..coarsening.levels import in_space

# Blocks whose elements are narrower have no centroid term: the square would underflow.
LEAST_WIDTH = 1e-100
# Blocks for each further thread.
LEAST_BLOCKS = 64
# Share of a block's own metric in the term; the other block's metric has the rest. Where
# elements widen, the centroid of a block lies towards its narrow elements. With this share
# the terms of two blocks of equal size balance at their border: to first order, for discs
# of elements that widen exponentially. With the own metric alone, whole regions would lose
# their elements to regions of wider ones.
OWN = 0.81
# Bound of the squared distance, in squared radii. A cluster at a border is nearer than this
# to its own block and to the next. In the metric of elements 10^4 times as fine, a block
# would be 10^8 away.
FAR = 6.0
# Axes, typed so that helpers are not compiled for each.
AXES: tuple[Any, ...] = (np.int64(0), np.int64(1), np.int64(2))
X, Y, Z = AXES


class Centroids(NamedTuple):
    """Coordinates of a group's clusters, and centroids and metrics of its blocks.

    Cluster ``i`` is at ``place[row[i]]``, which has one to three coordinates: the places of
    a level are not copied for its groups. ``metric`` (n_blocks, 6) has the entries xx, yy,
    zz, 2 xy, 2 xz, 2 yz of the metric in which the squared radius of a block is about 1.
    """

    place: Float64s
    row: Int32s
    metric: Float64s
    centroid: Float64s


def block_metrics(
    table: Int32s,
    position: Float64s,
    coordinates: Float64s,
    example: Int32s,
    block: Int32s,
    n_blocks: int,
    thinnest: float,
) -> Float64s:
    """The squared width of the elements of each block as a metric, (n_blocks, 6).

    ``table`` has -1 for a repeated point; at most three dimensions of ``coordinates``
    count. ``example`` is an element of each cluster, ``block`` the block of each cluster,
    ``thinnest`` as of :func:`bisect`. O(clusters * arity * d^2).
    """
    d = min(3, coordinates.shape[1])
    moments = np.zeros((n_blocks, 6))
    arrays = table, position, coordinates, example, block, moments
    # Every piece of blocks scans all examples and measures those in its blocks.
    in_pieces(_measure, n_blocks, *arrays, least=LEAST_BLOCKS)
    moment = moments[:, SYMMETRIC[:d, :d]]
    trace = np.trace(moment, axis1=1, axis2=2)
    # Blocks of elements that are points in space, or too wide to be squared, have no
    # centroid term.
    points = ~((trace >= LEAST_WIDTH**2) & (trace < np.inf))
    trace = np.where(points, 1.0, trace)
    moment[points] = 0.0
    moment /= trace[:, None, None]
    moment += thinnest**2 * np.eye(d)
    metric = inverses(moment) / trace[:, None, None]
    metric[points] = 0.0
    full = np.zeros((n_blocks, 3, 3))
    full[:, :d, :d] = metric
    return np.ascontiguousarray(full[:, ROWS, COLUMNS] * TIMES)


# Rows and columns of xx, yy, zz, xy, xz, yz in a symmetric matrix, and the number of times
# that each occurs in it.
ROWS = [0, 1, 2, 0, 0, 1]
COLUMNS = [0, 1, 2, 1, 2, 2]
TIMES = [1, 1, 1, 2, 2, 2]
# The position of each entry of a symmetric matrix among xx, yy, zz, xy, xz, yz.
SYMMETRIC = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])


@kernel
def _measure(
    table: Int32s,
    position: Float64s,
    coordinates: Float64s,
    example: Int32s,
    block: Int32s,
    moments: Float64s,
    begin: int,
    end: int,
) -> None:
    """Mean second moments of points about their elements, for a range of blocks."""
    # Sums in scalars, which stay in registers.
    d = min(3, coordinates.shape[1])
    count = np.zeros(end - begin, np.int64)
    off = np.zeros(3, np.float64)
    for c in range(example.size):
        b = block[c]
        i = np.uint32(example[c])
        if b < begin or b >= end:
            continue
        sums = moments[b]
        xx = sums[0]
        yy = sums[1]
        zz = sums[2]
        xy = sums[3]
        xz = sums[4]
        yz = sums[5]
        # Add the products of the distances of its points.
        for j in range(table.shape[1]):
            if table[i, j] < 0:
                continue
            t = np.uint32(table[i, j])
            count[b - begin] += 1
            for a in range(d):
                off[a] = position[t, a] - coordinates[i, a]
            x = off[0]
            y = off[1]
            z = off[2]
            xx = xx + x * x
            yy = yy + y * y
            zz = zz + z * z
            xy = xy + x * y
            xz = xz + x * z
            yz = yz + y * z
        sums[0] = xx
        sums[1] = yy
        sums[2] = zz
        sums[3] = xy
        sums[4] = xz
        sums[5] = yz
    # The sums become means.
    for b in range(begin, end):
        for a in range(6):
            moments[b, a] /= max(1, count[b - begin])


def squared_radius(
    place: Float64s, weight: Int32s, block: Int32s, metric: Float64s
) -> float:
    """Mean squared distance of elements from their block's centroid, each in its metric."""
    centroid = mean_places(place=place, weight=weight, block=block, n_blocks=len(metric))
    x, y, z = in_space(place - centroid[block]).T
    m = metric[block].T
    squared = (
        x * (m[0] * x + m[3] * y + m[4] * z) + y * (m[1] * y + m[5] * z) + m[2] * z * z
    )
    # A sum in order, as kernels add: NumPy's own sum depends on the processor.
    return float(np.cumsum(weight * squared)[-1:].sum()) / max(1, int(weight.sum()))


def mean_places(place: Float64s, weight: Int32s, block: Int32s, n_blocks: int) -> Float64s:
    """The mean place of the elements of every block. O(clusters)."""
    size = np.maximum(1, np.bincount(block, weight, n_blocks))
    sums = [np.bincount(block, weight * axis, n_blocks) for axis in place.T]
    return np.stack(sums, axis=1) / size[:, None]


@helper
def find_centroids(
    centroids: Centroids, weight: Int32s, block: Int32s | UInt32s, size: Int64s
) -> None:
    """The mean place of the elements of each block. O(clusters)."""
    centroid = centroids.centroid
    centroid[:] = 0.0
    for i in range(block.size):
        for a in range(3):
            centroid[block[i], a] += weight[i] * _coordinate(centroids, i, a)
    for b in range(size.size):
        for a in range(3):
            centroid[b, a] /= max(1, size[b])


@inlined
def _coordinate(centroids: Centroids, cluster: int, axis: int) -> float:
    """A coordinate of a cluster; 0 along axes that the mesh does not have."""
    place = centroids.place
    if axis < place.shape[1]:
        return place[centroids.row[cluster], axis]
    return 0.0


@inlined
def update_centroids(
    centroids: Centroids, size: Int64s, cluster: int, weight: int, source: int, target: int
) -> None:
    """Update both centroids for a cluster that is about to move."""
    for a in range(3):
        x = _coordinate(centroids, cluster, a)
        old = centroids.centroid[source, a]
        centroids.centroid[source, a] += weight * (old - x) / (size[source] - weight)
        old = centroids.centroid[target, a]
        centroids.centroid[target, a] += weight * (x - old) / (size[target] + weight)


@inlined
def centroid_term(centroids: Centroids, cluster: int, source: int, target: int) -> float:
    """Squared distance to the source's centroid less the target's, in squared radii."""
    in_own_metrics = _bounded_distance(
        centroids=centroids, cluster=cluster, block=source, measure=source
    ) - _bounded_distance(
        centroids=centroids, cluster=cluster, block=target, measure=target
    )
    in_other_metrics = _bounded_distance(
        centroids=centroids, cluster=cluster, block=source, measure=target
    ) - _bounded_distance(
        centroids=centroids, cluster=cluster, block=target, measure=source
    )
    return OWN * in_own_metrics + (1.0 - OWN) * in_other_metrics


@inlined
def _bounded_distance(
    centroids: Centroids, cluster: int, block: int, measure: int
) -> float:
    """:func:`_squared_distance`, but at most ``FAR``."""
    squared = _squared_distance(
        centroids=centroids, cluster=cluster, block=block, measure=measure
    )
    return min(FAR, squared)


@inlined
def _squared_distance(
    centroids: Centroids, cluster: int, block: int, measure: int
) -> float:
    """Squared distance of a cluster from the centroid of a block.

    It is in the metric of the block ``measure``.
    """
    x = _coordinate(centroids, cluster, X) - centroids.centroid[block, 0]
    y = _coordinate(centroids, cluster, Y) - centroids.centroid[block, 1]
    z = _coordinate(centroids, cluster, Z) - centroids.centroid[block, 2]
    m = centroids.metric
    return (
        x * (m[measure, 0] * x + m[measure, 3] * y + m[measure, 4] * z)
        + y * (m[measure, 1] * y + m[measure, 5] * z)
        + m[measure, 2] * z * z
    )
