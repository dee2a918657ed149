"""The order of points along Hilbert's space-filling curve."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import UInt64s

from ..kernels import Float64s, Int32s, helper, kernel
from ..kernels.arrays import stable_argsort
from ..kernels.parallel import in_pieces
from ..mesh.geometry import bounding_box
from .figures import LocalityProblem

# Cells along an axis, as a power of two, by dimension: a key fits in 64 bits, and a cell's
# number in a double.
BITS = {1: 52, 2: 31, 3: 21}
# An axis of less than this part of the longest extent is left out.
FLAT = 1e-9


def along_curve(problem: LocalityProblem) -> Int32s:
    """Order points along Hilbert's curve through the cube that holds them.

    Axes of no extent are left out, so that a planar mesh stored with z = 0 gets the curve
    of the plane. Points in one cell of the finest grid (2^31 cells an axis in 2-D, 2^21 in
    3-D) keep their order. Raises MeshprepError without coordinates, with infinite ones, and
    past three dimensions. O(points): up to 31 steps a point for the key, then a radix sort.
    """
    if problem.coordinates is None:
        raise MeshprepError(
            "method 'hilbert' needs coordinates: use gps or rcm on this set"
        )
    where = np.asarray(problem.coordinates, dtype=np.float64)
    if not np.isfinite(where).all():
        raise MeshprepError(
            "method 'hilbert' needs finite coordinates: use gps or rcm on this set"
        )
    if where.shape[0] == 0:
        return np.empty(0, dtype=np.int32)
    return stable_argsort(curve_keys(where, bounding_box(where))[:, None])


def curve_keys(
    where: Float64s, box: tuple[Float64s, Float64s], digits: int = 64
) -> UInt64s:
    """Keys of points along the curve through a box that holds them.

    ``where`` (n, d) is finite; ``box`` has the lowest and the highest coordinate on each
    axis, those of more points than these where several calls share it. Keys have at most
    ``digits`` binary digits: fewer take less time, but near points may share a key.
    """
    # Halves, since the extent of huge coordinates would overflow.
    low = box[0] / 2
    half_extent = box[1] / 2 - low
    longest = half_extent.max(initial=0.0)
    axes = np.flatnonzero(half_extent > longest * FLAT)
    if longest < np.finfo(np.float64).tiny:
        return np.zeros(where.shape[0], np.uint64)
    if axes.size > 3:
        raise MeshprepError(
            f"Hilbert's curve takes 2-D and 3-D points, not {axes.size}-D ones"
        )
    points = np.ascontiguousarray(where[:, axes])
    bits = min(BITS[axes.size], digits // axes.size)
    arrays = points, low[axes], longest, bits
    return np.concatenate(in_pieces(_keys, len(points), *arrays))


@kernel
def _keys(
    points: NDArray,
    half_low: NDArray,
    longest: float,
    bits: int,
    begin: int,
    end: int,
) -> NDArray:
    """Distance along the curve of the cell of each point from ``begin`` to ``end - 1``."""
    dim = points.shape[1]
    keys = np.empty(end - begin, np.uint64)
    cell = np.empty(dim, np.int64)
    last = np.int64((1 << bits) - 1)
    for i in range(begin, end):
        # The cell of the point in the finest grid; the far side of the box is in the last.
        for a in range(dim):
            share = (points[i, a] / 2 - half_low[a]) / longest
            cell[a] = min(np.int64(share * (last + 1)), last)
        turn = _turn(cell, bits) if dim > 1 else 0
        keys[i - begin] = _interleaved(cell, bits, turn)
    return keys


@helper
def _turn(cell: NDArray, bits: int) -> int:
    """Turn a cell into the frame of Hilbert's curve, in place.

    The bits of the distance are then those of the cell, flipped where the returned number
    has a one. Skilling's transposed form: J. Skilling, *Programming the Hilbert curve*, AIP
    Conf. Proc. 707, 2004.
    """
    dim = cell.size
    for b in range(bits - 1, 0, -1):
        # Undo the reflections and exchanges of axes of the larger cube, without branches.
        lower = (1 << b) - 1
        for a in range(dim):
            reflect = -((cell[a] >> b) & 1) & lower
            swap = (cell[0] ^ cell[a]) & (lower ^ reflect)
            cell[0] ^= reflect | swap
            cell[a] ^= swap
    # The bits of the axes are then a Gray code of the distance: decode it.
    for a in range(1, dim):
        cell[a] ^= cell[a - 1]
    turn = cell[dim - 1] >> 1
    for shift in (1, 2, 4, 8, 16):
        turn ^= turn >> shift
    return turn


@helper
def _interleaved(cell: NDArray, bits: int, turn: int) -> np.uint64:
    """The bits of all axes in turn, the highest first, flipped where ``turn`` has a one."""
    key = np.uint64(0)
    for b in range(bits - 1, -1, -1):
        for a in range(cell.size):
            digit = ((cell[a] ^ turn) >> b) & 1
            key = (key << np.uint64(1)) | np.uint64(digit)
    return key
