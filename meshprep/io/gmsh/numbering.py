"""From the numbers that a file gives its nodes and elements to positions; distinct values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Lookup:
    """Positions of numbers.

    Parameters
    ----------
    low : int
        The number that ``table[0]`` stands for.
    table : (m,) int32
        Position of every number from ``low`` on, -1 where it is not used; empty where the
        numbers are spread too widely, or where they are consecutive.
    keys, order : (n,) arrays
        Sorted numbers and their positions, where there is no table; else empty.
    size : int
        How many numbers there are.
    """

    low: int
    table: NDArray[np.int32]
    keys: NDArray[np.int64]
    order: NDArray[np.int32]
    size: int

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Positions, in the shape of ``numbers``; -1 for those that do not exist. O(n)."""
        out = np.empty(numbers.size, dtype=np.int32)
        flat = np.ascontiguousarray(numbers, dtype=np.int64).reshape(-1)
        if self.keys.size:
            at = np.minimum(np.searchsorted(self.keys, flat), self.keys.size - 1)
            out[:] = np.where(self.keys[at] == flat, self.order[at], -1)
        else:
            _find(flat, self.low, self.size, self.table, out)
        return out.reshape(numbers.shape)


def make_lookup(numbers: NDArray[np.int64]) -> tuple[Lookup, int]:
    """The lookup for these numbers, and the position of one that occurs before (-1: none).

    O(n) where they lie within a range of a few n, else O(n log n).
    """
    n = numbers.size
    none32, none64 = np.empty(0, np.int32), np.empty(0, np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if n else (0, -1)
    if high - low == n - 1 and _is_range(numbers, low):
        return Lookup(low, none32, none64, none32, n), -1
    if high - low < 4 * n + 1024:
        table = np.full(high - low + 1, -1, dtype=np.int32)
        twice = _fill(numbers, low, table)
        return Lookup(low, table, none64, none32, n), int(twice)
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    keys = numbers[order]
    equal = np.flatnonzero(keys[1:] == keys[:-1])
    twice = int(order[equal[0] + 1]) if equal.size else -1
    return Lookup(low, none32, keys, order, n), twice


@njit(cache=True)
def _is_range(numbers: NDArray[np.int64], low: int) -> bool:
    i = 0
    while i < numbers.size and numbers[i] == low + i:
        i += 1
    return i == numbers.size


@njit(cache=True)
def _fill(numbers: NDArray[np.int64], low: int, table: NDArray[np.int32]) -> int:
    twice = -1
    for i in range(numbers.size):
        if table[numbers[i] - low] >= 0:
            twice = i
        else:
            table[numbers[i] - low] = i
    return twice


@njit(cache=True)
def _find(
    numbers: NDArray[np.int64],
    low: int,
    size: int,
    table: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    span = table.size if table.size else size
    for i in range(numbers.size):
        inside = low <= numbers[i] < low + span
        if not inside:
            out[i] = -1
        elif table.size:
            out[i] = table[numbers[i] - low]
        else:
            out[i] = numbers[i] - low


def distinct(ids: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Distinct values in rising order, and the place of every entry among them.

    O(n) where the values lie within a range of a few n, else O(n log n).
    """
    ids = np.asarray(ids, dtype=np.int64)
    if ids.size == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    low, high = int(ids.min()), int(ids.max())
    if high - low < 2 * ids.size + 1024:
        place = np.zeros(high - low + 1, dtype=np.int32)
        place[ids - low] = 1
        unique = np.flatnonzero(place) + low
        place[unique - low] = np.arange(unique.size, dtype=np.int32)
        return unique, place[ids - low]
    unique, inverse = np.unique(ids, return_inverse=True)
    return unique.astype(np.int64), inverse.reshape(-1).astype(np.int32)


def distinct_pairs(
    a: NDArray[np.integer], b: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Distinct rows of (a, b) as an (m, 2) array, and the place of every entry among them."""
    a_values, a_place = distinct(a)
    b_values, b_place = distinct(b)
    width = max(b_values.size, 1)
    keys, place = distinct(a_place * np.int64(width) + b_place)
    rows = np.stack([a_values[keys // width], b_values[keys % width]], axis=1)
    return rows, place


def distinct_lists(
    start: NDArray[np.int64], count: NDArray[np.int64], flat: NDArray[np.int64]
) -> tuple[list[tuple[int, ...]], NDArray[np.int32]]:
    """Distinct lists among ``flat[start[i]:start[i] + count[i]]``, and the place of each.

    Costs :func:`distinct` of every column of the lists.
    """
    place = count.astype(np.int64)
    rows, column = np.flatnonzero(count), 0
    fresh = int(count.max()) + 1 if count.size else 0
    while rows.size:
        _, part = distinct_pairs(place[rows], flat[start[rows] + column])
        # Numbers not used so far, so that lists of different lengths stay apart.
        place[rows] = part + np.int64(fresh)
        fresh += int(part.max()) + 1
        column += 1
        rows = rows[count[rows] > column]
    _, out = distinct(place)
    first = np.full(int(out.max()) + 1 if out.size else 0, -1, dtype=np.int64)
    first[out[::-1]] = np.arange(out.size)[::-1]
    lists = [tuple(flat[start[i] : start[i] + count[i]].tolist()) for i in first]
    return lists, out
