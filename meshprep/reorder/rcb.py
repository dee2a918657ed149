"""Recursive coordinate bisection down to single points: an order from coordinates alone."""

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, inlined, kernel
from ..kernels.arrays import numbers, sort
from .curve import finite_coordinates
from .problem import LocalityProblem


def rcb(problem: LocalityProblem) -> Int32s:
    """Order points by cutting their box in halves, across its longest side, again and again.

    Each half has as many points as the other, to one [G10 section 6]; every part's points stand
    together in the order. Points at one place keep their order. Raises MeshprepError without
    coordinates, and with infinite ones. O(points x log points) expected, for any number of
    dimensions.

    Returns
    -------
    new_to_old : (n_points,) int32
    """
    where = np.ascontiguousarray(finite_coordinates(problem, "rcb"))
    return _bisect(where) if where.shape[1] else np.arange(where.shape[0], dtype=np.int32)


@kernel
def _bisect(where: NDArray) -> NDArray:
    n = where.shape[0]
    order, value = numbers(n), np.empty(n, np.float64)
    # the second halves that wait: one for each level of the tree, of at most 64
    waiting = np.empty((64, 2), np.int64)
    waiting[0, 0], waiting[0, 1], count = 0, n, 1
    while count > 0:
        count -= 1
        begin, end = waiting[count]
        while end - begin > 1:
            axis, extent = _longest(where, order[begin:end])
            if extent == 0:
                sort(order, begin, end)
                break
            for i in range(begin, end):
                value[i] = where[order[i], axis]
            middle = begin + (end - begin + 1) // 2
            _select(value[begin:end], order[begin:end], middle - begin)
            waiting[count, 0], waiting[count, 1] = middle, end
            end, count = middle, count + 1
    return order


@helper
def _longest(where: NDArray, points: NDArray) -> tuple[int, float]:
    """The axis along which points extend most, the first of equals, and how far (halved)."""
    axis, longest = 0, -1.0
    for a in range(where.shape[1]):
        low = high = where[points[0], a]
        for p in points:
            low, high = min(low, where[p, a]), max(high, where[p, a])
        # halves, so that huge coordinates do not overflow
        if high / 2 - low / 2 > longest:
            axis, longest = a, high / 2 - low / 2
    return axis, longest


@helper
def _select(value: NDArray, points: NDArray, middle: int) -> None:
    """Put the ``middle`` smallest first, equal values by number (Hoare's selection, in place)."""
    low, high = 0, value.size - 1
    while low < high:
        # the median of three as pivot: sorted input costs no more than any other
        m = (low + high) // 2
        for i, j in ((low, m), (m, high), (low, m)):
            if _less(value, points, j, i):
                _swap(value, points, i, j)
        pivot, number = value[m], points[m]
        i, j = low, high
        while i <= j:
            while value[i] < pivot or (value[i] == pivot and points[i] < number):
                i += 1
            while value[j] > pivot or (value[j] == pivot and points[j] > number):
                j -= 1
            if i <= j:
                _swap(value, points, i, j)
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@inlined
def _less(value: NDArray, points: NDArray, i: int, j: int) -> bool:
    return value[i] < value[j] or (value[i] == value[j] and points[i] < points[j])


@inlined
def _swap(value: NDArray, points: NDArray, i: int, j: int) -> None:
    value[i], value[j] = value[j], value[i]
    points[i], points[j] = points[j], points[i]
