"""Dots of maps and matrices: how many entries each pixel stands for."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import UInt8s

# Steps above 0 in which dots are counted.
LEVELS = 4
# Entries that are counted at once: bounds the memory.
CHUNK = 1 << 22


def count_entries(
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    shape: tuple[int, int],
    most: tuple[int, int],
) -> UInt8s:
    """The entries of a matrix or map under each pixel, in ``LEVELS`` steps above 0.

    ``shape`` has the numbers of rows and columns, ``most`` the largest height and width of
    the picture. 0 stands for no entry; each step stands for about four times as many as the
    one before, or for more where the densest pixels would go past the last. O(entries +
    pixels).
    """
    height = max(1, min(shape[0], most[0]))
    width = max(1, min(shape[1], most[1]))
    # Count the entries under each pixel.
    count = np.zeros(height * width, np.int64)
    for start in range(0, rows.size, CHUNK):
        row = rows[start : start + CHUNK].astype(np.int64)
        column = columns[start : start + CHUNK].astype(np.int64)
        pixel = row * height // shape[0] * width + column * width // shape[1]
        count += np.bincount(pixel, minlength=count.size)
    # Steps of a logarithm, so that the densest pixel is in the last one.
    largest_count = int(count.max(initial=1))
    factor = max(4.0, largest_count ** (1 / (LEVELS - 1)) * 1.0001)
    logarithm = np.log(np.maximum(count, 1)) / np.log(factor)
    step = 1 + np.floor(logarithm)
    levels = np.where(count > 0, np.minimum(step, LEVELS), 0)
    return levels.astype(np.uint8).reshape(height, width)
