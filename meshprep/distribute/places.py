"""The places of numbers among distinct ones that ascend."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import read_only

from ..kernels import Int32s, kernel
from ..kernels.arrays import first_not_below, scan_offsets


@dataclass(frozen=True, eq=False)
class Places:
    """Finds numbers among distinct ones that ascend.

    Buckets of equal ranges, at most as many as there are points, tell where to look: O(1) a number
    where the points are spread evenly, else O(log n). 4 bytes a point.
    """

    points: NDArray[np.integer]  # (n,): distinct, ascending
    first: Int32s  # (buckets + 1,): where each bucket begins
    shift: int  # numbers of a bucket, as a power of 2

    @classmethod
    def among(cls, points: NDArray[np.integer]) -> "Places":
        span = int(points[-1]) - int(points[0]) if points.size else 0
        shift = max(0, (span // max(1, points.size)).bit_length())
        return cls(points, _buckets(read_only(points), span, shift), shift)

    def of(self, numbers: NDArray[np.integer]) -> Int32s:
        """For each number how many of the points are below it."""
        flat = numbers.reshape(-1).astype(self.points.dtype, casting="safe", copy=False)
        found = _places(read_only(self.points), self.first, self.shift, read_only(flat))
        return found.reshape(numbers.shape)

    def known(self, numbers: NDArray[np.integer]) -> Int32s:
        """The place of each number; -1 for those that are none of the points."""
        found = self.of(numbers)
        _leave_known(read_only(self.points), read_only(numbers.reshape(-1)), found.reshape(-1))
        return found


@kernel
def _buckets(points: NDArray[np.integer], span: int, shift: int) -> Int32s:
    first = np.zeros((span >> shift) + 2, np.int32)
    for p in points:
        first[((np.int64(p) - points[0]) >> shift) + 1] += 1
    scan_offsets(first)
    return first


@kernel
def _places(
    points: NDArray[np.integer], first: Int32s, shift: int, numbers: NDArray[np.integer]
) -> Int32s:
    out = np.zeros(numbers.size, np.int32)
    for i in range(numbers.size if points.size > 0 else 0):
        away = np.int64(numbers[i]) - points[0]
        bucket = min(away >> shift, first.size - 2)
        if away <= 0:
            continue
        out[i] = first_not_below(points, first[bucket], first[bucket + 1], numbers[i])
    return out


@kernel
def _leave_known(points: NDArray[np.integer], numbers: NDArray[np.integer], place: Int32s) -> None:
    for i in range(place.size):
        at = place[i]
        if at == points.size or points[at] != numbers[i]:
            place[i] = -1
