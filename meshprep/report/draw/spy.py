"""The map of a loop as a picture: which element, from left to right, reaches which point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels import kernel

LEVELS = 4


def spy(
    table: NDArray[np.int32],
    n_points: int,
    width: int,
    height: int,
    element_at: NDArray[np.int32] | None = None,
    point_at: NDArray[np.int32] | None = None,
) -> NDArray[np.uint8]:
    """How many entries of a map lie under each pixel, in ``LEVELS`` steps above 0.

    Parameters
    ----------
    table : (n, k) int32
    n_points : int
    width, height : int
        Pixels for elements, from the left, and points, from the top; no more than there are.
    element_at, point_at : (n,), (n_points,) int32, optional
        Where each element and point stands in another numbering.

    Returns
    -------
    (height, width) uint8
        0 where there is no entry; each step stands for about four times as many.

    O(n k + pixels).
    """
    n = len(table)
    count = np.zeros((min(height, n_points), min(width, n)), np.int32)
    none = np.empty(0, np.int32)
    _count(
        table,
        n_points,
        none if element_at is None else element_at,
        none if point_at is None else point_at,
        count,
    )
    most = max(int(count.max(initial=1)), 1)
    # steps of a factor each, so that the densest pixels reach the last one
    factor = max(4.0, most ** (1 / (LEVELS - 1)) * 1.0001)
    step = 1 + np.floor(np.log(np.maximum(count, 1)) / np.log(factor))
    return np.where(count > 0, np.minimum(step, LEVELS), 0).astype(np.uint8)


@kernel
def _count(
    table: NDArray[np.int32],
    n_points: int,
    element_at: NDArray[np.int32],
    point_at: NDArray[np.int32],
    count: NDArray[np.int32],
) -> None:
    n, k = table.shape
    height, width = count.shape
    for e in range(n):
        column = np.int64(e if element_at.size == 0 else element_at[e]) * width // n
        for j in range(k):
            point = table[e, j] if point_at.size == 0 else point_at[table[e, j]]
            count[np.int64(point) * height // n_points, column] += 1
