"""The centroid term of annealing, which draws clusters to the centroid of their block.

Single moves straighten a boundary but hardly move a block. A term that draws clusters to the
centroids does, as Lloyd's iteration does in a Voronoi diagram. Distances are counted in elements,
with the width of an element measured in each block, so that thin layers are treated as what they
are.
"""

from typing import Any, NamedTuple

import numpy as np

from ....kernels import Float64s, Int32s, Int64s, UInt32s, helper, inlined, kernel
from ....kernels.arithmetic import inverses
from ....kernels.parallel import in_pieces
from ..levels import in_space

LEAST_WIDTH = 1e-100
# Blocks for each further thread.
LEAST_BLOCKS = 64
# Where elements widen, the centroid of a block lies towards its narrow ones. With this share of its
# own metric, and the rest of the other block's, the terms of two blocks of equal size balance at
# their border: to first order, for discs of elements that widen exponentially. Otherwise whole
# regions would lose their elements to wider ones.
OWN = 0.81
# Bound of the squared distance, in squared radii: a cluster at a border is nearer to its own and
# the next block. In the metric of elements 10^4 times as fine a block is 10^8 away.
FAR = 6.0
# Axes. Typed, so that helpers are not compiled for each.
AXES: tuple[Any, ...] = (np.int64(0), np.int64(1), np.int64(2))
X, Y, Z = AXES


class Centroids(NamedTuple):
    """Coordinates of a group's clusters, and centroids and metrics of its blocks.

    Cluster ``i`` is at ``place[row[i]]``, which has one to three coordinates: places of a level are
    not copied for its groups. ``metric`` (n_blocks, 6) has xx, yy, zz, 2 xy, 2 xz, 2 yz of the
    metric in which the squared radius of a block is about 1.
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

    ``table`` has -1 for a point named again; three dimensions of ``coordinates`` count; ``example``
    is an element of each cluster, ``thinnest`` as of :func:`bisect`. O(clusters * arity * d^2).
    """
    d = min(3, coordinates.shape[1])
    moments = np.zeros((n_blocks, 6))
    arrays = table, position, coordinates, example, block, moments
    # every piece scans all examples, and measures those of its blocks
    in_pieces(_measure, n_blocks, *arrays, least=LEAST_BLOCKS)
    moment = moments[:, SYMMETRIC[:d, :d]]
    trace = np.trace(moment, axis1=1, axis2=2)
    # Blocks of elements that are points in space, or too wide to be squared, have no centroid term.
    points = ~((trace >= LEAST_WIDTH**2) & (trace < np.inf))
    trace, moment[points] = np.where(points, 1.0, trace), 0.0
    moment /= trace[:, None, None]
    moment += thinnest**2 * np.eye(d)
    metric = inverses(moment) / trace[:, None, None]
    metric[points] = 0.0
    full = np.zeros((n_blocks, 3, 3))
    full[:, :d, :d] = metric
    return np.ascontiguousarray(full[:, ROWS, COLUMNS] * TIMES)


# Rows and columns of xx, yy, zz, xy, xz, yz in a symmetric matrix, and how often each is in it.
ROWS, COLUMNS, TIMES = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2], [1, 1, 1, 2, 2, 2]
# Where each entry of a symmetric matrix is in xx, yy, zz, xy, xz, yz.
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
    """Mean second moments of points about their elements, of blocks ``begin`` to ``end - 1``."""
    d = min(3, coordinates.shape[1])
    count, off = np.zeros(end - begin, np.int64), np.zeros(3, np.float64)
    for c in range(example.size):
        b, i = block[c], np.uint32(example[c])
        if b < begin or b >= end:
            continue
        sums = moments[b]
        xx, yy, zz, xy, xz, yz = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
        for j in range(table.shape[1]):
            if table[i, j] < 0:
                continue
            t = np.uint32(table[i, j])
            count[b - begin] += 1
            for a in range(d):
                off[a] = position[t, a] - coordinates[i, a]
            x, y, z = off[0], off[1], off[2]
            xx, yy, zz = xx + x * x, yy + y * y, zz + z * z
            xy, xz, yz = xy + x * y, xz + x * z, yz + y * z
        sums[0], sums[1], sums[2], sums[3], sums[4], sums[5] = xx, yy, zz, xy, xz, yz
    for b in range(begin, end):
        for a in range(6):
            moments[b, a] /= max(1, count[b - begin])


def squared_radius(place: Float64s, weight: Int32s, block: Int32s, metric: Float64s) -> float:
    """Mean squared distance of elements from their block's centroid, each in its metric."""
    x, y, z = in_space(place - middles(place, weight, block, len(metric))[block]).T
    m = metric[block].T
    squared = x * (m[0] * x + m[3] * y + m[4] * z) + y * (m[1] * y + m[5] * z) + m[2] * z * z
    # added up one by one, as kernels do
    return float(np.cumsum(weight * squared)[-1:].sum()) / max(1, int(weight.sum()))


def middles(place: Float64s, weight: Int32s, block: Int32s, n_blocks: int) -> Float64s:
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
    """The coordinate of a cluster; 0 along axes that the mesh does not have."""
    place = centroids.place
    return place[centroids.row[cluster], axis] if axis < place.shape[1] else 0.0


@inlined
def update_centroids(
    centroids: Centroids, size: Int64s, cluster: int, weight: int, source: int, target: int
) -> None:
    """Update both centroids for a cluster that is about to move."""
    for a in range(3):
        x, old = _coordinate(centroids, cluster, a), centroids.centroid[source, a]
        centroids.centroid[source, a] += weight * (old - x) / (size[source] - weight)
        old = centroids.centroid[target, a]
        centroids.centroid[target, a] += weight * (x - old) / (size[target] + weight)


@inlined
def centroid_term(centroids: Centroids, cluster: int, source: int, target: int) -> float:
    """Squared distance to the source's centroid less that to the target's, in squared radii."""
    own = _near(centroids, cluster, source, source) - _near(centroids, cluster, target, target)
    other = _near(centroids, cluster, source, target) - _near(centroids, cluster, target, source)
    return OWN * own + (1.0 - OWN) * other


@inlined
def _near(centroids: Centroids, cluster: int, block: int, measure: int) -> float:
    """:func:`_squared` bounded by ``FAR``."""
    return min(FAR, _squared(centroids, cluster, block, measure))


@inlined
def _squared(centroids: Centroids, cluster: int, block: int, measure: int) -> float:
    """Squared distance of a cluster from the centroid of a block, in the metric of another."""
    x = _coordinate(centroids, cluster, X) - centroids.centroid[block, 0]
    y = _coordinate(centroids, cluster, Y) - centroids.centroid[block, 1]
    z = _coordinate(centroids, cluster, Z) - centroids.centroid[block, 2]
    m = centroids.metric
    return (
        x * (m[measure, 0] * x + m[measure, 3] * y + m[measure, 4] * z)
        + y * (m[measure, 1] * y + m[measure, 5] * z)
        + m[measure, 2] * z * z
    )
