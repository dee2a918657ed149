"""Sorts, sums and searches of arrays for kernels.

They are loops, since numba takes a second to compile its own version of each.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Int32s, Int64s, UInt64s

from .compiled import helper, inlined, kernel

# An array type for signatures of kernels, beside those of the runtime.
UInt32s = NDArray[np.uint32]
# A zero from which variables start that helpers take, typed since numba compiles a helper
# again for a constant.
ZERO: Any = np.int64(0)


class Adjacency(NamedTuple):
    """A graph: vertex ``v`` has ``neighbours[offset[v]:offset[v + 1]]``."""

    offset: NDArray
    neighbours: NDArray


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
    maximum = values[0]
    for value in values:
        maximum = max(maximum, value)
    return maximum


@helper
def smallest(values: NDArray) -> int:
    """The smallest of at least one value."""
    minimum = values[0]
    for value in values:
        minimum = min(minimum, value)
    return minimum


@inlined
def first_not_below(values: NDArray, begin: int, end: int, value: int) -> int:
    """The first position in ``values[begin:end]``, which ascend, not below ``value``."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def scan_offsets(offset: NDArray) -> None:
    """Turn counts into offsets, in place.

    ``offset[i + 1]`` has the count of ``i`` before; ``offset[0]`` is where all begin.
    """
    for i in range(offset.size - 1):
        offset[i + 1] += offset[i]


@kernel
def sort_by(key: Int32s, n_keys: int) -> tuple[Int64s, Int32s]:
    """The offset and the members of each key, members ascending. O(n + n_keys)."""
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
    """Sort ``values[begin:end]`` in place by Shell's method, O(n^1.5), which suits few."""
    # Knuth's gaps: 1, 4, 13, 40 and so on.
    gap = 1
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            value = values[i]
            hole = i
            while hole >= begin + gap and values[hole - gap] > value:
                values[hole] = values[hole - gap]
                hole -= gap
            values[hole] = value
        gap //= 3


@helper
def breadth_first(
    graph: Adjacency,
    root: int | np.int64,
    level: NDArray,
    queue: NDArray,
    width_limit: int,
) -> tuple[int, int, int, int]:
    """Levels from ``root``; stops as soon as one has ``width_limit`` vertices or more.

    ``level`` is -1 on the component of ``root``, and receives the level of each vertex;
    ``queue`` receives the vertices level by level. Returns the number of levels (-1 when
    stopped), the size of the largest one, where in ``queue`` the last one begins, and the
    number of vertices reached.
    """
    # The root is level 0; queue[begin:end] is the last level, queue[end:tail] the next.
    offset = graph.offset
    neighbours = graph.neighbours
    queue[0] = root
    level[root] = 0
    begin = 0
    end = 0
    tail = 1
    depth = 0
    width = 1
    while tail > end:
        begin = end
        end = tail
        depth += 1
        width = max(width, end - begin)
        if width >= width_limit:
            return -1, width, begin, tail
        for i in range(begin, end):
            p = queue[i]
            for k in range(offset[p], offset[p + 1]):
                q = neighbours[k]
                if level[q] < 0:
                    level[q] = depth
                    queue[tail] = q
                    tail += 1
    return depth, width, begin, tail


# Bits of a digit of the radix sort, and digits of a word.
DIGIT_BITS = 11
N_DIGITS = -(-64 // DIGIT_BITS)


@kernel
def stable_argsort(words: UInt64s) -> Int32s:
    """The order that sorts rows of words lexicographically; equal rows keep their order.

    The first word of a row counts most. Radix sort from the last digit to the first; digits
    that are equal in all rows are left out. O(n x w): at most six passes a word, where a
    comparing sort of a million rows takes 20.
    """
    n, n_words = words.shape
    order = numbers(n)
    new_order = np.empty(n, np.int32)
    key = np.empty(n, np.uint64)
    new_key = np.empty(n, np.uint64)
    for word in range(n_words - 1, -1, -1):
        # Take the keys in the order so far; one pass counts all their digits.
        for i in range(n):
            key[i] = words[order[i], word]
        count = _digit_counts(key)
        for digit in range(N_DIGITS):
            # All keys have the same digit.
            if largest(count[digit]) == n:
                continue
            _scatter_by_digit(
                key=key,
                order=order,
                shift=np.uint64(digit * DIGIT_BITS),
                count=count[digit],
                new_key=new_key,
                new_order=new_order,
            )
            key, new_key = new_key, key
            order, new_order = new_order, order
    return order


@helper
def _digit_counts(key: NDArray) -> NDArray:
    """How often each digit has each value, (N_DIGITS, 2^DIGIT_BITS)."""
    count = np.zeros((N_DIGITS, 1 << DIGIT_BITS), np.int64)
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    for k in key:
        for digit in range(N_DIGITS):
            count[digit, (k >> np.uint64(digit * DIGIT_BITS)) & mask] += 1
    return count


@helper
def _scatter_by_digit(
    key: NDArray,
    order: NDArray,
    shift: np.uint64,
    count: NDArray,
    new_key: NDArray,
    new_order: NDArray,
) -> None:
    """Sort keys and order by one digit, whose counts become the next free positions."""
    # Turn the counts into first positions.
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    first = 0
    for value in range(count.size):
        size = count[value]
        count[value] = first
        first += size
    for i in range(key.size):
        value = (key[i] >> shift) & mask
        new_key[count[value]] = key[i]
        new_order[count[value]] = order[i]
        count[value] += 1


@helper
def counting_sort(vertices: NDArray, key: NDArray, n_keys: int) -> tuple[NDArray, NDArray]:
    """Vertices sorted stably by a key below ``n_keys``, and each key's offset. Linear."""
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
