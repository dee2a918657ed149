"""What kernels need of NumPy, in loops: numba's own versions take a second each to compile."""

import numpy as np
from numpy.typing import NDArray

from .compiled import helper, inlined, kernel

# Arrays as signatures of kernels name them.
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Bools = NDArray[np.bool_]
UInt8s = NDArray[np.uint8]
UInt32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]


@helper
def numbers(n: int) -> Int32s:
    """0 to n - 1."""
    out = np.empty(n, np.int32)
    for i in range(n):
        out[i] = i
    return out


@helper
def largest(values: NDArray) -> int:
    """The largest of at least one value."""
    found = values[0]
    for value in values:
        found = max(found, value)
    return found


@helper
def smallest(values: NDArray) -> int:
    """The smallest of at least one value."""
    found = values[0]
    for value in values:
        found = min(found, value)
    return found


@inlined
def first_not_below(values: NDArray, begin: int, end: int, value: int) -> int:
    """Where ``value`` stands, or would stand, in ``values[begin:end]``, which ascend."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def scan_offsets(offset: NDArray) -> None:
    """Sums of counts in place: ``offset[i + 1]`` holds how many there are of ``i``."""
    for i in range(offset.size - 1):
        offset[i + 1] += offset[i]


@kernel
def first_places(count: Int64s, offset: Int64s) -> None:
    """The places at which a counting sort on several threads begins.

    ``count`` (threads, keys) holds how many entries of each key a thread has, and then where it
    puts the first of them: behind those of the threads before. ``offset`` (keys + 1) receives where
    each key begins.
    """
    at = np.int64(0)
    for key in range(count.shape[1]):
        offset[key] = at
        for thread in range(count.shape[0]):
            found = count[thread, key]
            count[thread, key] = at
            at += found
    offset[count.shape[1]] = at


@helper
def sort(values: NDArray, begin: int, end: int) -> None:
    """Sort ``values[begin:end]`` in place. Shell's method: O(n^1.5) at worst, best where short."""
    gap = 1
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            value, at = values[i], i
            while at >= begin + gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


@helper
def breadth_first(
    graph: tuple, root: int | np.int64, level: NDArray, queue: NDArray, width_limit: int
) -> tuple[int, int, int, int]:
    """Levels from ``root``; stops as soon as one has ``width_limit`` vertices or more.

    ``level`` is -1 on the component of ``root``; ``queue`` receives its vertices level by level.
    Returns the number of levels (-1 when stopped), the largest one, where in ``queue`` the last
    one begins, and how many vertices were reached.
    """
    offset, index = graph
    queue[0] = root
    level[root] = 0
    begin, end, tail, depth, width = 0, 0, 1, 0, 1
    while tail > end:
        begin, end = end, tail
        depth += 1
        width = max(width, end - begin)
        if width >= width_limit:
            return -1, width, begin, tail
        for i in range(begin, end):
            p = queue[i]
            for k in range(offset[p], offset[p + 1]):
                q = index[k]
                if level[q] < 0:
                    level[q] = depth
                    queue[tail] = q
                    tail += 1
    return depth, width, begin, tail
