"""Pixels: triangles, each the number of the element at its centre; dots of maps and matrices."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import UInt8s

from ...kernels import Float64s, Int32s, helper, kernel

# Pixels outside the mesh, and of the mesh's elements that a loop does not run over.
OUTSIDE, NO_ELEMENT = -1, -2
CELLS, FACETS, NODES = 0, 1, 2


@helper
def _span(low: float, high: float, size: int) -> tuple[int, int]:
    """The pixels whose centres may lie between two places, as a range."""
    # places far outside would not fit an integer
    first = int(max(0.0, np.ceil(low - 0.5)))
    past = int(min(float(size), np.floor(high - 0.5) + 1.0))
    return first, past


@helper
def fill_triangle(out: Int32s, x: Float64s, y: Float64s, value: int) -> None:
    """Write ``value`` into the pixels whose centres lie in a triangle, its edges included."""
    left, right = _span(min(x[0], x[1], x[2]), max(x[0], x[1], x[2]), out.shape[1])
    top, bottom = _span(min(y[0], y[1], y[2]), max(y[0], y[1], y[2]), out.shape[0])
    if left >= right or top >= bottom:
        return
    area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
    side = 1.0 if area > 0 else -1.0
    for row in range(top, bottom):
        for column in range(left, right):
            px, py = column + 0.5, row + 0.5
            a = (x[1] - x[0]) * (py - y[0]) - (px - x[0]) * (y[1] - y[0])
            b = (x[2] - x[1]) * (py - y[1]) - (px - x[1]) * (y[2] - y[1])
            c = (x[0] - x[2]) * (py - y[2]) - (px - x[2]) * (y[0] - y[2])
            if side * a >= 0 and side * b >= 0 and side * c >= 0:
                out[row, column] = value


@kernel
def fill_cells(
    xy: Float64s, corners: Int32s, owner: Int32s, kind: int, first: int, out: Int32s
) -> None:
    """Draw plane cells, each cut into the triangles between its middle and its sides.

    ``xy`` are nodes in pixels, downwards. Elements are, by ``kind``, ``CELLS``, of which ``first``
    is the number of the first, ``FACETS``, with the one on each side in ``owner``, or ``NODES``.
    O(n k + pixels).
    """
    n, k = corners.shape
    x, y = np.empty(3), np.empty(3)
    for cell in range(n):
        mx, my = 0.0, 0.0
        for j in range(k):
            mx += xy[corners[cell, j], 0] / k
            my += xy[corners[cell, j], 1] / k
        for j in range(k):
            a, b = corners[cell, j], corners[cell, (j + 1) % k]
            x[0], y[0], x[1], y[1], x[2], y[2] = xy[a, 0], xy[a, 1], xy[b, 0], xy[b, 1], mx, my
            if kind == CELLS:
                fill_triangle(out, x, y, first + cell)
            elif kind == FACETS:
                value = owner[cell, j]
                fill_triangle(out, x, y, value if value >= 0 else NO_ELEMENT)
            else:
                x[1], y[1] = (xy[a, 0] + xy[b, 0]) / 2, (xy[a, 1] + xy[b, 1]) / 2
                fill_triangle(out, x, y, a)
                x[0], y[0] = xy[b, 0], xy[b, 1]
                fill_triangle(out, x, y, b)


@kernel
def fill_nearest(corners: Float64s, owner: Int32s, out: Int32s, near: Int32s) -> None:
    """Draw triangles in space ``(n, 3, 3)``: x and y in pixels, z larger where nearer.

    ``near`` gets the triangle that each pixel shows, -1 where none; of several the nearest.
    """
    depth = np.full(out.shape, -np.inf)
    for i in range(len(corners)):
        x, y, z = corners[i, :, 0], corners[i, :, 1], corners[i, :, 2]
        area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        if area == 0:
            continue
        left, right = _span(min(x[0], x[1], x[2]), max(x[0], x[1], x[2]), out.shape[1])
        top, bottom = _span(min(y[0], y[1], y[2]), max(y[0], y[1], y[2]), out.shape[0])
        for row in range(top, bottom):
            for column in range(left, right):
                px, py = column + 0.5, row + 0.5
                c = ((x[1] - x[0]) * (py - y[0]) - (px - x[0]) * (y[1] - y[0])) / area
                a = ((x[2] - x[1]) * (py - y[1]) - (px - x[1]) * (y[2] - y[1])) / area
                b = 1.0 - a - c
                if a < 0 or b < 0 or c < 0:
                    continue
                at = a * z[0] + b * z[1] + c * z[2]
                if at > depth[row, column]:
                    depth[row, column] = at
                    out[row, column] = owner[i]
                    near[row, column] = i


LEVELS = 4
# Entries that are counted at once.
CHUNK = 1 << 22


def spy(
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    shape: tuple[int, int],
    most: tuple[int, int],
) -> UInt8s:
    """How many entries of a matrix or map lie under each pixel, in ``LEVELS`` steps above 0.

    ``shape`` are the rows and columns that there are, ``most`` the largest height and width of the
    picture. 0 is where there is no entry; each step stands for about four times as many, or more
    where the densest pixels would go past the last. O(entries + pixels).
    """
    height, width = (max(1, min(pair)) for pair in zip(shape, most, strict=True))
    count = np.zeros(height * width, np.int64)
    for start in range(0, rows.size, CHUNK):
        row, column = (a[start : start + CHUNK].astype(np.int64) for a in (rows, columns))
        at = row * height // shape[0] * width + column * width // shape[1]
        count += np.bincount(at, minlength=count.size)
    factor = max(4.0, int(count.max(initial=1)) ** (1 / (LEVELS - 1)) * 1.0001)
    step = 1 + np.floor(np.log(np.maximum(count, 1)) / np.log(factor))
    return np.where(count > 0, np.minimum(step, LEVELS), 0).astype(np.uint8).reshape(height, width)
