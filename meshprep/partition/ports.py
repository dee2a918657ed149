"""The neighbours of every site of what may be a lattice, and which of them are opposite."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Sites of a lattice in three dimensions have at most as many neighbours.
MOST_PORTS = 6


@njit(cache=True)
def ports_of_pairs(
    offset: NDArray[np.int64], index: NDArray[np.int32], ends: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The points that each point is joined to, (n_points, 6) with -1 for none.

    ``index[offset[p]:offset[p + 1]]`` are the elements of point p. Empty where a point has more
    than six neighbours. O(n).
    """
    n_points = offset.size - 1
    port = np.full((n_points, MOST_PORTS), -1, np.int32)
    for p in range(n_points):
        for q in range(offset[p], offset[p + 1]):
            e = index[q]
            if not _attach(port, p, ends[e, 0] + ends[e, 1] - p):
                return np.empty((0, MOST_PORTS), np.int32)
    return port


@njit(cache=True)
def ports_of_cells(
    offset: NDArray[np.int64], index: NDArray[np.int32], corners: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The cells that share half of each cell's nodes, (n, 6) with -1 for none.

    ``index[offset[e]:offset[e + 1]]`` are the cells that share a node with e. Empty where a cell
    has more than six. O(neighbours x nodes of a cell squared).
    """
    n, k = corners.shape
    port = np.full((n, MOST_PORTS), -1, np.int32)
    for e in range(n):
        for q in range(offset[e], offset[e + 1]):
            f = index[q]
            if _shared(corners, e, f) == k // 2 and not _attach(port, e, f):
                return np.empty((0, MOST_PORTS), np.int32)
    return port


@njit(cache=True)
def opposite_by_squares(port: NDArray[np.int32]) -> NDArray[np.int8]:
    """The port opposite to each port, (n, 6) with -1 for none or not known.

    Two neighbours of a site that are not opposite are corners of a square with it: they share
    another neighbour. At the corner of a hole that is missing; then the others decide.
    """
    opposite = np.full(port.shape, -1, np.int8)
    apart = np.zeros((MOST_PORTS, MOST_PORTS), np.bool_)
    for s in range(port.shape[0]):
        for i in range(MOST_PORTS):
            for j in range(i):
                known = port[s, i] >= 0 and port[s, j] >= 0
                apart[i, j] = known and not _meet_again(port, s, port[s, i], port[s, j])
                apart[j, i] = apart[i, j]
        for i in range(MOST_PORTS):
            if np.count_nonzero(apart[i]) == 1:
                other = np.argmax(apart[i])
                if opposite[s, other] < 0 or opposite[s, other] == i:
                    opposite[s, i], opposite[s, other] = other, i
    return opposite


@njit(cache=True)
def opposite_by_corners(port: NDArray[np.int32], corners: NDArray[np.int32]) -> NDArray[np.int8]:
    """As :func:`opposite_by_squares`, for cells: opposite neighbours share no node of the cell."""
    opposite = np.full(port.shape, -1, np.int8)
    for e in range(port.shape[0]):
        for i in range(MOST_PORTS):
            for j in range(i):
                a, b = port[e, i], port[e, j]
                free = a >= 0 and b >= 0 and opposite[e, i] < 0 and opposite[e, j] < 0
                if free and not _share_corner(corners, e, a, b):
                    opposite[e, i], opposite[e, j] = j, i
    return opposite


@njit(cache=True)
def _attach(port: NDArray[np.int32], s: int, t: int) -> bool:
    """Add a neighbour once; False where there is no room."""
    if t == s:
        return True
    for i in range(MOST_PORTS):
        if port[s, i] == t:
            return True
        if port[s, i] < 0:
            port[s, i] = t
            return True
    return False


@njit(cache=True)
def _has(corners: NDArray[np.int32], e: int, node: int) -> bool:
    found = False
    for p in corners[e]:
        found |= p == node
    return found


@njit(cache=True)
def _shared(corners: NDArray[np.int32], e: int, f: int) -> int:
    count = 0
    for p in corners[e]:
        count += _has(corners, f, p)
    return count


@njit(cache=True)
def _share_corner(corners: NDArray[np.int32], e: int, a: int, b: int) -> bool:
    found = False
    for p in corners[e]:
        found |= _has(corners, a, p) and _has(corners, b, p)
    return found


@njit(cache=True)
def _meet_again(port: NDArray[np.int32], s: int, t: int, u: int) -> bool:
    for v in port[t]:
        if v >= 0 and v != s:
            for w in port[u]:
                if v == w:
                    return True
    return False
