"""Lines and sectors under the points that blocks stage."""

from weakref import WeakKeyDictionary

import numpy as np

from meshprep_runtime.plan import Staging

from ..kernels import Int32s, Int64s, kernel

# What :func:`staged_units` counted, by width and bytes, as long as the lists live.
_COUNTED: WeakKeyDictionary[Staging, dict[tuple[int, int], Int64s]] = WeakKeyDictionary()


def staged_units(staging: Staging, width: int, nbytes: int) -> Int64s:
    """:func:`aligned_units` of staging lists, each counted once: figures often ask for the same."""
    known = _COUNTED.setdefault(staging, {})
    if (width, nbytes) not in known:
        known[width, nbytes] = aligned_units(staging.points, staging.point_offset, width, nbytes)
    return known[width, nbytes]


@kernel
def aligned_units(points: Int32s, point_offset: Int64s, width: int, nbytes: int) -> Int64s:
    """Distinct aligned pieces of ``nbytes`` under values of ``width`` bytes, block by block.

    ``points`` ascend inside a block, as staging lists do. O(loads).
    """
    count = np.zeros(point_offset.size - 1, np.int64)
    for b in range(count.size):
        last = np.int64(-1)
        # Points ascend, so that a piece seen before is the last one.
        for i in range(point_offset[b], point_offset[b + 1]):
            start = np.int64(points[i]) * width
            first = max(start // nbytes, last + 1)
            last = (start + width - 1) // nbytes
            count[b] += last - first + 1
    return count
