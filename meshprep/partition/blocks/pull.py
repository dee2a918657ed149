"""Draws elements to the middle of their blocks, so that blocks become round while they are hot.

Single moves straighten a boundary but hardly move a block. A pull towards the middles does: it is
what Lloyd's iteration does to a Voronoi diagram. Distances are counted in elements, with the width
of an element measured in each block, so that thin layers are treated as what they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper, inlined, kernel

LEAST_WIDTH = 1e-100
# Where elements widen, the middle of a block lies towards its narrow ones. With this share of its
# own metric, and the rest of the other block's, two blocks of equal size pull equally at their
# border: to first order, for discs of elements that widen exponentially. Otherwise whole regions
# would lose their elements to wider ones.
OWN = 0.81


class Places(NamedTuple):
    """Where elements are, (n, d), and the squared width of an element of each block as a metric.

    ``metric`` (n_blocks, d, d) is scaled so that the distance of a block's radius is about 1.
    """

    coordinates: NDArray[np.float64]
    metric: NDArray[np.float64]


class Middles(NamedTuple):
    """Places of a group of blocks, and the middle of each block, (n_blocks, d)."""

    coordinates: NDArray[np.float64]
    metric: NDArray[np.float64]
    middle: NDArray[np.float64]


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
def find_middles(middles: Middles, block: NDArray[np.int32], size: NDArray[np.int64]) -> None:
    """Write down the mean place of the elements of each block. O(n d)."""
    middle = middles.middle
    middle[:] = 0.0
    for i in range(block.size):
        for a in range(middle.shape[1]):
            middle[block[i], a] += middles.coordinates[i, a]
    for b in range(size.size):
        for a in range(middle.shape[1]):
            middle[b, a] /= max(1, size[b])


@inlined
def pass_on(
    middles: Middles, size: NDArray[np.int64], element: int, home: int, target: int
) -> None:
    """Shift both middles, before an element moves from a block it is not alone in. O(d)."""
    for a in range(middles.middle.shape[1]):
        x, old = middles.coordinates[element, a], middles.middle[home, a]
        middles.middle[home, a] += (old - x) / (size[home] - 1)
        middles.middle[target, a] += (x - middles.middle[target, a]) / (size[target] + 1)


@inlined
def pulled(middles: Middles, element: int, home: int, target: int) -> float:
    """How much nearer the target's middle is, in squared radii of the two blocks. O(d^2)."""
    total = 0.0
    for a in range(middles.middle.shape[1]):
        here_a = middles.coordinates[element, a] - middles.middle[home, a]
        there_a = middles.coordinates[element, a] - middles.middle[target, a]
        for c in range(middles.middle.shape[1]):
            here = here_a * (middles.coordinates[element, c] - middles.middle[home, c])
            there = there_a * (middles.coordinates[element, c] - middles.middle[target, c])
            total += (OWN * here - (1.0 - OWN) * there) * middles.metric[home, a, c]
            total -= (OWN * there - (1.0 - OWN) * here) * middles.metric[target, a, c]
    return total
