"""A heap of pairs in an array, for kernels: the least pair first, as of Python's heapq.

numba's version of heapq takes a second and a half to compile.
"""

import numpy as np
from numpy.typing import NDArray

from .compiled import helper


@helper
def new_heap(room: int) -> NDArray[np.int64]:
    """Room for so many pairs; how many there are, the caller knows."""
    return np.empty((room, 2), np.int64)


@helper
def with_room(heap: NDArray[np.int64], n: int, more: int) -> NDArray[np.int64]:
    """The heap, or a copy of its ``n`` pairs that has room for so many more."""
    if n + more <= heap.shape[0]:
        return heap
    larger = new_heap(2 * heap.shape[0] + more)
    for k in range(n):
        larger[k, 0], larger[k, 1] = heap[k, 0], heap[k, 1]
    return larger


@helper
def push(heap: NDArray[np.int64], n: int, first: int, second: int) -> int:
    """Add a pair to ``n`` others; returns their number. O(log n)."""
    at = n
    while at > 0:
        above = (at - 1) // 2
        if not _less(first, second, heap[above, 0], heap[above, 1]):
            break
        heap[at, 0], heap[at, 1] = heap[above, 0], heap[above, 1]
        at = above
    heap[at, 0], heap[at, 1] = first, second
    return n + 1


@helper
def pop(heap: NDArray[np.int64], n: int) -> int:
    """Remove the least pair, ``heap[0]``; returns how many are left. O(log n)."""
    first, second, at = heap[n - 1, 0], heap[n - 1, 1], 0
    while 2 * at + 1 < n - 1:
        below = 2 * at + 1
        if below + 1 < n - 1 and _less(
            heap[below + 1, 0], heap[below + 1, 1], heap[below, 0], heap[below, 1]
        ):
            below += 1
        if not _less(heap[below, 0], heap[below, 1], first, second):
            break
        heap[at, 0], heap[at, 1] = heap[below, 0], heap[below, 1]
        at = below
    heap[at, 0], heap[at, 1] = first, second
    return n - 1


@helper
def _less(a: int, b: int, c: int, d: int) -> bool:
    return a < c or (a == c and b < d)
