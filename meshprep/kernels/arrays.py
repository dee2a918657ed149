"""What kernels need of NumPy, in loops: numba's own versions take a second each to compile."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Int32s, Int64s, UInt64s

from .compiled import helper, inlined, kernel

# Beside those of the runtime, which signatures of kernels take.
UInt32s = NDArray[np.uint32]
# Where a number begins that helpers take. Typed: numba compiles a helper again for a constant.
ZERO: Any = np.int64(0)


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
def sort_by(key: Int32s, n_keys: int) -> tuple[Int64s, Int32s]:
    """Offsets and members of each key, ascending. O(n + n_keys)."""
    offset = np.zeros(n_keys + 1, np.int64)
    for k in key:
        offset[k + 1] += 1
    scan_offsets(offset)
    fill = offset[:-1].copy()
    member = np.empty(key.size, np.int32)
    for i in range(key.size):
        member[fill[key[i]]] = i
        fill[key[i]] += 1
    return offset, member


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


DIGIT_BITS = 11
N_DIGITS = -(-64 // DIGIT_BITS)


@kernel
def stable_argsort(words: UInt64s) -> Int32s:
    """The order that sorts rows of words lexicographically; equal rows keep their order.

    The first word of a row counts most. Radix sort from the last digit to the first, digits that
    never change left out. O(n x w): at most six passes a word, where a comparing sort takes 20 at a
    million rows.
    """
    n, n_words = words.shape
    order, new_order = numbers(n), np.empty(n, np.int32)
    key, new_key = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for word in range(n_words - 1, -1, -1):
        for i in range(n):
            key[i] = words[order[i], word]
        count = _digit_counts(key)
        for digit in range(N_DIGITS):
            if largest(count[digit]) == n:
                continue
            _pass(key, order, np.uint64(digit * DIGIT_BITS), count[digit], new_key, new_order)
            key, new_key = new_key, key
            order, new_order = new_order, order
    return order


@helper
def _digit_counts(key: NDArray) -> NDArray:
    count = np.zeros((N_DIGITS, 1 << DIGIT_BITS), np.int64)
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    for k in key:
        for digit in range(N_DIGITS):
            count[digit, (k >> np.uint64(digit * DIGIT_BITS)) & mask] += 1
    return count


@helper
def _pass(
    key: NDArray,
    order: NDArray,
    shift: np.uint64,
    count: NDArray,
    new_key: NDArray,
    new_order: NDArray,
) -> None:
    """Scatter by one digit; ``count`` becomes the places that are free next."""
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    at = 0
    for value in range(count.size):
        at, count[value] = at + count[value], at
    for i in range(key.size):
        value = (key[i] >> shift) & mask
        new_key[count[value]] = key[i]
        new_order[count[value]] = order[i]
        count[value] += 1


@helper
def counting_sort(vertices: NDArray, key: NDArray, n_keys: int) -> tuple[NDArray, NDArray]:
    """Vertices by ascending key in 0..n_keys-1, stable; and where each key begins. Linear."""
    bound = np.zeros(n_keys + 1, np.int64)
    for k in key:
        bound[k + 1] += 1
    scan_offsets(bound)
    fill = bound.copy()
    out = np.empty(vertices.size, np.uint32)
    for i in range(vertices.size):
        out[fill[key[i]]] = vertices[i]
        fill[key[i]] += 1
    return out, bound
