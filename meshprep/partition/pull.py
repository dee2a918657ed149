"""Draws elements to the middle of their blocks, so that blocks become round while they are hot.

Single moves straighten a boundary but hardly move a block. A pull towards the middles does: it is
what Lloyd's iteration does to a Voronoi diagram. Distances are counted in elements, with the width
of an element measured in each block, so that thin layers are treated as what they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LEAST_WIDTH = 1e-100


class Places(NamedTuple):
    """Where elements are, (n, d), and the squared width of an element of each block as a metric.

    ``metric`` (n_blocks, d, d) is scaled so that the distance of a block's radius is about 1.
    """

    coordinates: NDArray[np.float64]
    metric: NDArray[np.float64]


class Middles(NamedTuple):
    """Places of a group of blocks, and the sums of the coordinates of each block."""

    coordinates: NDArray[np.float64]
    metric: NDArray[np.float64]
    total: NDArray[np.float64]


def places_of(
    table: NDArray[np.int32],
    position: NDArray[np.float64],
    coordinates: NDArray[np.float64],
    block: NDArray[np.int32],
    n_blocks: int,
    cap: int,
    thinnest: float,
) -> Places:
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
    # Blocks of elements that are points in space pull nothing.
    points = trace < LEAST_WIDTH**2
    trace = np.where(points, 1.0, trace)
    moment /= trace[:, None, None]
    moment += thinnest**2 * np.eye(d)
    metric = np.linalg.inv(moment) / (trace[:, None, None] * float(cap) ** (2 / d))
    metric[points] = 0.0
    return Places(coordinates, metric)


@njit(cache=True)
def _moments(
    table: NDArray[np.int32],
    position: NDArray[np.float64],
    coordinates: NDArray[np.float64],
    block: NDArray[np.int32],
    n_blocks: int,
) -> NDArray[np.float64]:
    """Mean second moments of the points about their elements, of each block."""
    d = coordinates.shape[1]
    moment = np.zeros((n_blocks, d, d))
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
        moment[b] /= max(1, count[b])
    return moment


@njit(cache=True)
def middles_of(
    coordinates: NDArray[np.float64],
    metric: NDArray[np.float64],
    block: NDArray[np.int32],
    n_blocks: int,
) -> Middles:
    """Sum the coordinates of each block. O(n d)."""
    total = np.zeros((n_blocks, coordinates.shape[1]))
    for i in range(coordinates.shape[0]):
        for a in range(coordinates.shape[1]):
            total[block[i], a] += coordinates[i, a]
    return Middles(coordinates, metric, total)


@njit(cache=True, inline="always")
def pass_on(middles: Middles, element: int, home: int, target: int) -> None:
    """An element has gone from one block to another. O(d)."""
    for a in range(middles.total.shape[1]):
        middles.total[home, a] -= middles.coordinates[element, a]
        middles.total[target, a] += middles.coordinates[element, a]


@njit(cache=True, inline="always")
def pulled(
    middles: Middles, size: NDArray[np.int64], element: int, home: int, target: int
) -> float:
    """How much nearer the target's middle is, in squared radii. O(d^2)."""
    return _distance(middles, size, element, home, home) - _distance(
        middles, size, element, target, home
    )


@njit(cache=True, inline="always")
def _distance(
    middles: Middles, size: NDArray[np.int64], element: int, block: int, measure: int
) -> float:
    total = 0.0
    for a in range(middles.total.shape[1]):
        one = middles.coordinates[element, a] - middles.total[block, a] / size[block]
        for c in range(middles.total.shape[1]):
            other = middles.coordinates[element, c] - middles.total[block, c] / size[block]
            total += one * middles.metric[measure, a, c] * other
    return total
