"""Dots of what is not zero: which elements of a map reach which points, or those of a matrix."""

import numpy as np
from numpy.typing import NDArray

LEVELS = 4
# Nonzeros that are counted at once.
CHUNK = 1 << 22


def spy(
    table: NDArray[np.int32],
    n_points: int,
    width: int,
    height: int,
    element_at: NDArray[np.int32] | None = None,
    point_at: NDArray[np.int32] | None = None,
) -> NDArray[np.uint8]:
    """How many entries of a map lie under each pixel, in ``LEVELS`` steps above 0.

    ``width`` are pixels for elements, from the left, and ``height`` for points, from the top; no
    more than there are. ``element_at`` and ``point_at`` are where each stands in another numbering.
    0 is where there is no entry; each step stands for about four times as many. O(n k + pixels).
    """
    width, height = min(width, len(table)), min(height, n_points)
    count = np.zeros(height * width, np.int64)
    column = np.arange(len(table)) if element_at is None else element_at.astype(np.int64)
    column = column * width // len(table)
    for points in table.T:
        row = (points if point_at is None else point_at[points]).astype(np.int64)
        count += np.bincount(row * height // n_points * width + column, minlength=count.size)
    return _levels(count).reshape(height, width)


def spy_matrix(
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    shape: tuple[int, int],
    pixels: int,
) -> NDArray[np.uint8]:
    """As :func:`spy`, how many nonzeros of a matrix lie under each pixel.

    ``shape`` are the rows and columns of the matrix; ``pixels`` are those along the longer side, no
    more than there are rows or columns. O(nonzeros + pixels).
    """
    height, width = (max(1, min(n, pixels * n // max(*shape, 1))) for n in shape)
    count = np.zeros(height * width, np.int64)
    for start in range(0, rows.size, CHUNK):
        row, column = (a[start : start + CHUNK].astype(np.int64) for a in (rows, columns))
        at = row * height // shape[0] * width + column * width // shape[1]
        count += np.bincount(at, minlength=count.size)
    return _levels(count).reshape(height, width)


def _levels(count: NDArray[np.int64]) -> NDArray[np.uint8]:
    most = max(int(count.max(initial=1)), 1)
    # steps of a factor each, so that the densest pixels reach the last one
    factor = max(4.0, most ** (1 / (LEVELS - 1)) * 1.0001)
    step = 1 + np.floor(np.log(np.maximum(count, 1)) / np.log(factor))
    return np.where(count > 0, np.minimum(step, LEVELS), 0).astype(np.uint8)
