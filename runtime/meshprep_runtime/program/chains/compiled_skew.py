"""Compiled parts of the inspector of skewed tiles. Numbers are int32; points may be a column."""

from typing import Any

import numba
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def raise_to(own: NDArray[Any], values: NDArray[Any], points: NDArray[Any]) -> None:
    """Let each element have at least the value of its point. O(elements)."""
    for e in range(own.size):
        own[e] = max(own[e], values[points[e]])


@numba.njit(cache=True, nogil=True)
def extremes(
    most: NDArray[Any], least: NDArray[Any], points: NDArray[Any], own: NDArray[Any]
) -> None:
    """Let each point know the largest and least value among elements that reach it. O(elements)."""
    for e in range(own.size):
        p = points[e]
        most[p] = max(most[p], own[e])
        least[p] = min(least[p], own[e])


@numba.njit(cache=True, nogil=True)
def replaced(
    last: NDArray[Any], colour: NDArray[Any], points: NDArray[Any], own: NDArray[Any]
) -> NDArray[Any]:
    """Put each element's value at its colour and point; what was there, own where nothing was.

    Points below 0 are passed over. O(elements).
    """
    found = own.copy()
    for e in range(own.size):
        c, p = colour[e], points[e]
        if p >= 0:
            if last[c, p] >= 0:
                found[e] = last[c, p]
            last[c, p] = own[e]
    return found
