"""The points of one block, numbered from 0: what colouring and staging both begin with."""

import numpy as np

from ..kernels import Int32s, helper
from ..kernels.arrays import scan_offsets

# 2^64 divided by the golden ratio: spreads consecutive numbers over a power of two.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


@helper
def _find(slot: Int32s, points: Int32s, point: int) -> np.int64:
    """Where the open hash ``slot`` keeps the position of ``point`` in ``points``, or would."""
    mask = slot.size - 1
    at = np.int64((np.uint64(point) * SPREAD) >> np.uint64(32)) & mask
    while slot[at] >= 0 and points[slot[at]] != point:
        at = (at + 1) & mask
    return at


@helper
def number_points(rows: Int32s) -> tuple[Int32s, Int32s]:
    """The distinct points of a block in the order of first touch, and its rows in these numbers.

    ``points[local]`` is ``rows``, those rows (m, k) of the table that belong to the block. O(m k),
    and no array as long as the mesh.
    """
    m, k = rows.shape
    size = 2
    while size < 2 * m * k:
        size *= 2
    slot = np.full(size, -1, np.int32)
    points = np.empty(m * k, np.int32)
    local = np.empty((m, k), np.int32)
    count = 0
    for e in range(m):
        for j in range(k):
            point = rows[e, j]
            at = _find(slot, points, point)
            if slot[at] < 0:
                slot[at] = count
                points[count] = point
                count += 1
            local[e, j] = slot[at]
    return points[:count], local


@helper
def count_elements(local: Int32s, n_points: int) -> Int32s:
    """Where the elements on each point of a block would begin in one list, each counted once."""
    m, k = local.shape
    offset = np.zeros(n_points + 1, np.int32)
    last = np.full(n_points, -1, np.int32)
    for e in range(m):
        for j in range(k):
            p = local[e, j]
            if last[p] != e:
                last[p] = e
                offset[p + 1] += 1
    scan_offsets(offset)
    return offset


@helper
def elements_of_points(local: Int32s, n_points: int) -> tuple[Int32s, Int32s]:
    """The elements on each point of a block, ascending and once, as ``(offset, element)``."""
    m, k = local.shape
    offset, last = count_elements(local, n_points), np.full(n_points, -1, np.int32)
    element = np.empty(offset[n_points], np.int32)
    fill = offset[:-1].copy()
    for e in range(m):
        for j in range(k):
            p = local[e, j]
            if last[p] != e:
                last[p] = e
                element[fill[p]] = e
                fill[p] += 1
    return offset, element


@helper
def most_on_a_point(offset: Int32s) -> int:
    """The largest number of elements on one point: no block has fewer thread colours."""
    most = 0
    for p in range(offset.size - 1):
        most = max(most, offset[p + 1] - offset[p])
    return most
