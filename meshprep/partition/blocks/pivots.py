"""Coordinates for a mesh that has none: graph distances from a few elements far apart.

Each distance changes by about one from element to element, in a direction of its own. Averaged a
few times they are smooth, and their principal components are a frame to cut in (high-dimensional
embedding: Harel and Koren, Graph Drawing 2002).
"""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import read_only

from ...kernels import Float64s, Int32s, Int64s, helper, kernel
from ...kernels.parallel import each, pieces
from ...mesh.incidence import Csr, transpose

PIVOTS = 10
DIMENSIONS = 3
SMOOTHING = 40
# Points with more elements than this are not stepped through: all would be next to each other.
HIGH_DEGREE = 1024


def pivot_coordinates(table: Int32s, n_points: int, n_pivots: int = PIVOTS) -> Float64s:
    """Principal components of the distances from ``n_pivots`` elements of each component.

    Each pivot is an element farthest from those before it. Components are set apart along the
    first axis, so that they are cut from each other before they are cut.

    Parameters
    ----------
    table : (n, arity) int32
        With -1 for a point that is named again.

    Returns
    -------
    (n, 3) float64
        In steps from element to element.

    O((n_pivots + smoothing) * n * arity).
    """
    known = table if not table.size or table.min() >= 0 else np.where(table < 0, n_points, table)
    touching = transpose(np.ascontiguousarray(known, dtype=np.int32), n_points + 1)
    distance, shift = _distances(table, touching.offset, touching.index, n_points, n_pivots)
    where = _project(distance, _principal(distance))
    for _ in range(SMOOTHING):
        where = _smoothed(table, touching, where, n_points)
    out = where.astype(np.float64)
    out[:, 0] += shift * 2 * np.sqrt(n_pivots)
    return out


def _principal(distance: NDArray[np.float32]) -> NDArray[np.float32]:
    """The directions of the largest variance, (n_pivots, 3)."""
    n = max(1, distance.shape[0])
    total, square = _sums(distance)
    _, vectors = np.linalg.eigh(square / n - np.outer(total, total) / n**2)
    # Which way a vector points is left to chance by its definition.
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)
    return np.ascontiguousarray(vectors[:, ::-1][:, :DIMENSIONS], dtype=np.float32)


@kernel
def _sums(distance: NDArray[np.float32]) -> tuple[Float64s, Float64s]:
    """Sums of the columns and of their products: of whole numbers, so in any order the same."""
    width = distance.shape[1]
    total, square = np.zeros(width), np.zeros((width, width))
    for i in range(distance.shape[0]):
        for a in range(width):
            total[a] += distance[i, a]
            for b in range(a + 1):
                square[a, b] += distance[i, a] * np.float64(distance[i, b])
    for a in range(width):
        for b in range(a):
            square[b, a] = square[a, b]
    return total, square


@kernel
def _project(distance: NDArray[np.float32], frame: NDArray[np.float32]) -> NDArray[np.float32]:
    out = np.zeros((distance.shape[0], frame.shape[1]), np.float32)
    for i in range(distance.shape[0]):
        for a in range(frame.shape[1]):
            for k in range(frame.shape[0]):
                out[i, a] += distance[i, k] * frame[k, a]
    return out


@kernel
def _distances(
    table: Int32s, offset: Int64s, index: Int32s, n_points: int, n_pivots: int
) -> tuple[NDArray[np.float32], Float64s]:
    n = table.shape[0]
    distance = np.zeros((n, n_pivots), np.float32)
    shift = np.zeros(n, np.float64)
    nearest = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    level = np.full(n, -1, np.int32)
    seen = np.full(n_points, -1, np.int32)
    along = np.float64(0)
    tick = 0
    for root in range(n):
        if level[root] >= 0:
            continue
        size = _breadth_first(table, offset, index, root, level, queue, seen, tick)
        tick += 1
        nearest[queue[:size]] = n
        pivot, widest = queue[size - 1], 0
        for k in range(n_pivots if size > 1 else 0):
            level[queue[:size]] = -1
            _breadth_first(table, offset, index, pivot, level, queue, seen, tick)
            tick += 1
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


@helper
def _breadth_first(
    table: Int32s,
    offset: Int64s,
    index: Int32s,
    root: int,
    level: Int32s,
    queue: Int32s,
    seen: Int32s,
    tick: int,
) -> int:
    """Levels from ``root``; each point is opened once. Returns how many elements were reached."""
    queue[0], level[root] = root, 0
    begin, end = 0, 1
    while begin < end:
        i = queue[begin]
        begin += 1
        for j in range(table.shape[1]):
            t = table[i, j]
            if t < 0 or seen[t] == tick:
                continue
            seen[t] = tick
            if offset[t + 1] - offset[t] > HIGH_DEGREE:
                continue
            for p in range(offset[t], offset[t + 1]):
                k = index[p]
                if level[k] < 0:
                    level[k] = level[i] + 1
                    queue[end] = k
                    end += 1
    return end


def _smoothed(
    table: Int32s, touching: Csr, value: NDArray[np.float32], n_points: int
) -> NDArray[np.float32]:
    """The mean of the means at each element's points, high degrees left out. O(n * arity)."""
    n, width = value.shape
    rows, offset = read_only(table), touching.offset
    mean, out = np.zeros((n_points, width), np.float32), np.empty_like(value)
    each(_means, [(offset, touching.index, value, mean, *share) for share in pieces(n_points)])
    each(_smooth, [(rows, offset, value, mean, out, *share) for share in pieces(n)])
    return out


@kernel
def _means(
    offset: Int64s,
    index: Int32s,
    value: NDArray[np.float32],
    mean: NDArray[np.float32],
    start: int,
    stop: int,
) -> None:
    """The mean of the elements at each point."""
    width = value.shape[1]
    for t in range(start, stop):
        count = offset[t + 1] - offset[t]
        if 0 < count <= HIGH_DEGREE:
            for p in range(offset[t], offset[t + 1]):
                for k in range(width):
                    mean[t, k] += value[index[p], k]
            for k in range(width):
                mean[t, k] /= count


@kernel
def _smooth(
    table: Int32s,
    offset: Int64s,
    value: NDArray[np.float32],
    mean: NDArray[np.float32],
    out: NDArray[np.float32],
    start: int,
    stop: int,
) -> None:
    """The mean of each element's points."""
    width = value.shape[1]
    for i in range(start, stop):
        points = 0
        for k in range(width):
            out[i, k] = 0.0
        for j in range(table.shape[1]):
            t = table[i, j]
            if t >= 0 and offset[t + 1] - offset[t] <= HIGH_DEGREE:
                points += 1
                for k in range(width):
                    out[i, k] += mean[t, k]
        for k in range(width):
            out[i, k] = out[i, k] / points if points else value[i, k]
