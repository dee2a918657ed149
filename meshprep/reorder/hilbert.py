"""Points along a Hilbert curve: an order from coordinates alone."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .problem import LocalityProblem
from .radix import stable_argsort

# Cells an axis, as a power of two: one key fits in 64 bits, and a double in a cell number.
BITS = {1: 52, 2: 31, 3: 21}
# An axis along which the points extend less than this part of the longest one is left out.
FLAT = 1e-9


def hilbert(problem: LocalityProblem) -> NDArray[np.int32]:
    """Order points along a Hilbert curve through the cube that holds them.

    Axes of no extent are left out, so that a planar mesh stored with z = 0 gets the curve of the
    plane. Points in one cell of the finest grid (2^31 cells an axis in 2-D, 2^21 in 3-D) keep
    their order.

    Returns
    -------
    new_to_old : (n_points,) int32

    Raises
    ------
    MeshprepError
        Without coordinates, with infinite ones, and past three dimensions.

    Notes
    -----
    O(points): up to 31 steps a point for the key, then a radix sort.
    """
    where = problem.coordinates
    if where is None:
        raise MeshprepError("method 'hilbert' needs coordinates: use gps or rcm on this set")
    where = np.asarray(where, dtype=np.float64)
    if not np.isfinite(where).all():
        raise MeshprepError("method 'hilbert' needs finite coordinates: use gps or rcm on this set")
    if where.shape[0] == 0:
        return np.empty(0, dtype=np.int32)
    # halves, so that the extent of huge coordinates does not overflow
    low = where.min(axis=0) / 2
    half_extent = where.max(axis=0) / 2 - low
    longest = half_extent.max(initial=0.0)
    axes = np.flatnonzero(half_extent > longest * FLAT)
    if longest < np.finfo(np.float64).tiny:
        return np.arange(problem.n_points, dtype=np.int32)
    if axes.size > 3:
        raise MeshprepError(f"method 'hilbert' takes 2-D and 3-D points, not {axes.size}-D ones")
    points = np.ascontiguousarray(where[:, axes])
    return stable_argsort(_keys(points, low[axes], longest, BITS[axes.size])[:, None])


@njit(cache=True)
def _keys(points: NDArray, half_low: NDArray, longest: float, bits: int) -> NDArray:
    """Distance along the curve of the cell of each point."""
    n, dim = points.shape
    keys = np.empty(n, np.uint64)
    cell = np.empty(dim, np.int64)
    last = np.int64((1 << bits) - 1)
    for i in range(n):
        for a in range(dim):
            at = (points[i, a] / 2 - half_low[a]) / longest
            cell[a] = min(np.int64(at * (last + 1)), last)
        keys[i] = cell[0] if dim == 1 else _curve(cell, bits)
    return keys


@njit(cache=True)
def _curve(cell: NDArray, bits: int) -> np.uint64:
    """Distance along the curve of one cell; overwrites ``cell`` (Skilling's transposed form)."""
    dim = cell.size
    for b in range(bits - 1, 0, -1):
        # undo the reflections and exchanges of axes of the larger cube; arithmetic, not branches
        lower = (1 << b) - 1
        for a in range(dim):
            reflect = -((cell[a] >> b) & 1) & lower
            swap = (cell[0] ^ cell[a]) & (lower ^ reflect)
            cell[0] ^= reflect | swap
            cell[a] ^= swap
    # the axes' bits are then a Gray code of the distance
    for a in range(1, dim):
        cell[a] ^= cell[a - 1]
    turn = cell[dim - 1] >> 1
    for shift in (1, 2, 4, 8, 16):
        turn ^= turn >> shift
    key = np.uint64(0)
    for b in range(bits - 1, -1, -1):
        for a in range(dim):
            digit = ((cell[a] ^ turn) >> b) & 1
            key = (key << np.uint64(1)) | np.uint64(digit)
    return key
