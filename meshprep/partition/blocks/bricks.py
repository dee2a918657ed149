"""Bricks of a grid: slabs of whole layers, cut into strips, and these into blocks.

A block of ``a`` columns in a slab of ``t`` layers has ``(a + b + c + 1) (t + 1)`` nodes, where its
columns just fit into a box of ``b`` by ``c``: a step inside the box costs nothing, one across the
slab would cost a row of nodes. Bisection cuts through layers wherever its halves are equal.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import Float64s, Int32s, Int64s
from ...kernels.parallel import each
from .bisection import bisect
from .geometry import Geometry

# How far the number of layers of a slab may be from that of a cube.
THICKER = 2
# Of all bricks, the loads of so many are counted.
COUNTED = 4


class Brick(NamedTuple):
    """Axes in the order in which they are cut, slabs, and whether strips are rather fewer."""

    axes: tuple[int, int, int]
    slabs: int
    fewer: bool


def bricks(geometry: Geometry, place: Float64s, n_blocks: int, cap: int) -> Int32s | None:
    """The cheapest blocks of a grid in slabs; None where elements share places.

    ``place`` (n, 3) counts steps along the lines of the grid. No block has more than ``cap``
    elements. O(n * arity) for each kind of bricks that is tried.
    """
    step = place - place.min(axis=0)
    extent = step.max(axis=0).astype(np.int64) + 1
    steps = [axis.astype(np.uint16 if extent.max() < 1 << 16 else np.int64) for axis in step.T]
    order = np.lexsort(steps)
    if not _distinct(steps, order):
        return None
    kinds = sorted(_kinds(extent, step.shape[0] / n_blocks))[:COUNTED]

    def cut(brick: Brick) -> tuple[int, Int32s]:
        block = _cut(steps, brick, n_blocks, cap)
        return geometry.loads(block, n_blocks), block

    found = each(cut, [(brick,) for _, brick in kinds])
    _, block = min(found, key=lambda candidate: candidate[0])
    return _numbered(block, place, n_blocks)


def _distinct(steps: list[NDArray[Any]], order: NDArray[np.int64]) -> bool:
    same = np.ones(order.size - 1, np.bool_)
    for axis in steps:
        sorted_axis = axis[order]
        same &= sorted_axis[1:] == sorted_axis[:-1]
    return not same.any()


def _kinds(extent: Int64s, size: float) -> Iterator[tuple[float, Brick]]:
    """Bricks of ``size`` elements with about as many layers as a cube, and nodes an element."""
    for axes in permutations(range(3)):
        layers = extent[axes[0]]
        side = round(size ** (1 / 3))
        slabs = {max(1, round(layers / max(1, side + k))) for k in range(-THICKER, THICKER + 1)}
        for count in sorted(slabs):
            for fewer in (False, True):
                brick = Brick(axes, count, fewer)
                yield _nodes(extent, brick, size), brick


def _nodes(extent: Int64s, brick: Brick, size: float) -> float:
    """About how many nodes an element of bricks loads."""
    layers, rows, length = (int(extent[axis]) for axis in brick.axes)
    low, thicker = divmod(layers, brick.slabs)
    nodes = 0.0
    for layers_of_slab, slabs in ((low, brick.slabs - thicker), (low + 1, thicker)):
        columns = size / layers_of_slab
        width = rows / _strips(rows, length, columns, brick.fewer)
        along = min(length, columns / width)
        ragged = along < length
        box = width + along + ragged
        nodes += slabs * layers_of_slab / layers * (columns + box + 1) * (layers_of_slab + 1) / size
    return nodes


def _strips(rows: int, length: int, columns: float, fewer: bool) -> int:
    """Strips of blocks that are about as wide as long."""
    count = rows / max(columns**0.5, columns / length)
    return max(1, int(count) if fewer else int(np.ceil(count)))


def _cut(steps: list[NDArray[Any]], brick: Brick, n_blocks: int, cap: int) -> Int32s:
    high, wide, long = (steps[axis] for axis in brick.axes)
    block = np.empty(high.size, np.int32)
    rank = np.lexsort((long, wide, high))
    for slab, first, count in _parts(high, rank, brick.slabs, n_blocks, cap):
        slab = slab[np.lexsort((high[slab], long[slab], wide[slab]))]
        layers = _extent(high[slab])
        rows, length = _extent(wide[slab]), _extent(long[slab])
        strips = _strips(rows, length, slab.size / layers / count, brick.fewer)
        for strip, one, few in _parts(wide, slab, strips, count, cap):
            strip = strip[np.lexsort((high[strip], wide[strip], long[strip]))]
            ends = _ends(wide[strip], long[strip], few, cap)
            block[strip] = first + one + np.repeat(np.arange(few), np.diff(ends))
    return block


def _extent(steps: NDArray[Any]) -> int:
    return int(steps.max()) - int(steps.min()) + 1


def _parts(
    steps: NDArray[Any], rank: NDArray[np.int64], count: int, n_blocks: int, cap: int
) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """Cut ranked elements into ``count`` parts between whole layers where their blocks have room.

    Yields the elements of each, its first block, and how many blocks it is to be cut into.
    """
    n = rank.size
    before = np.flatnonzero(np.diff(steps[rank].astype(np.int64), prepend=-1))
    begin, first = 0, 0
    for k in range(1, count + 1):
        clean = n if k == count else int(before[min(before.size - 1, round(k * before.size / count))])
        last = round(clean * n_blocks / n)
        if last <= first or (last == n_blocks and k < count):
            continue
        end = _within(clean, n, begin, last - first, n_blocks - last, cap)
        if end is None:
            end = round(n * last / n_blocks)
            low, high = n - (n_blocks - last) * cap, begin + (last - first) * cap
            end = min(max(end, low), high)
        yield rank[begin:end], first, last - first
        begin, first = end, last


def _within(clean: int, n: int, begin: int, here: int, after: int, cap: int) -> int | None:
    fits = here <= clean - begin <= here * cap and after <= n - clean <= after * cap
    return clean if fits else None


def _ends(
    wide: NDArray[Any], long: NDArray[Any], count: int, cap: int
) -> NDArray[np.int64]:
    """Where the blocks of a strip begin and end: between columns where they have room."""
    n = wide.size
    fresh = np.ones(n, np.bool_)
    fresh[1:] = (wide[1:] != wide[:-1]) | (long[1:] != long[:-1])
    column = np.flatnonzero(fresh)
    even = np.arange(count + 1) * n // count
    ends = [0]
    after = np.searchsorted(column, even)
    for k in range(1, count):
        low, high = n - (count - k) * cap, ends[-1] + cap
        near = column[max(0, after[k] - 1) : after[k] + 1]
        near = near[(near >= low) & (near <= high) & (near > ends[-1])]
        best = near[np.argmin(np.abs(near - even[k]))] if near.size else even[k]
        ends.append(int(min(max(best, low), high)))
    return np.array([*ends, n])


def _numbered(block: Int32s, place: Float64s, n_blocks: int) -> Int32s:
    """The blocks numbered along a bisection of their middles."""
    size = np.bincount(block, minlength=n_blocks)
    middle = np.stack([np.bincount(block, axis, n_blocks) / size for axis in place.T], axis=1)
    no_points, nowhere = np.empty((n_blocks, 0), np.int32), np.empty((0, 3))
    number = bisect(no_points, nowhere, middle, np.eye(3), n_blocks)
    return number[block]
