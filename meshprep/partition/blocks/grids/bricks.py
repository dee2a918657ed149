"""Bricks of a grid: slabs of whole layers, cut into strips, and these into blocks.

A block of ``a`` columns in a slab of ``t`` layers has ``(a + b + c + 1) (t + 1)`` nodes, where its
columns just fit into a box of ``b`` by ``c``: a step inside the box costs nothing, one across the
slab would cost a row of nodes. Bisection cuts through layers wherever its halves are equal.
"""

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels import Int32s, Int64s
from ....kernels.arithmetic import power
from ....kernels.parallel import each
from ..bisect.bisection import bisect_places
from ..bisect.geometry import Geometry
from .places import sortable

# Most difference between the layers of a slab and those of a cube.
THICKER = 2
# Kinds of bricks, those with the fewest nodes by the formula, whose loads are counted.
COUNTED = 8


class Bricks(NamedTuple):
    """Axes in cutting order, the number of slabs, and whether strips are rounded down."""

    axes: tuple[int, ...]
    slabs: int
    fewer: bool


def brick_blocks(geometry: Geometry, place: Int32s, n_blocks: int, cap: int) -> Int32s:
    """The cheapest blocks of a grid in slabs.

    ``place`` (n, 3) counts steps along the lines of the grid, from 0; no two are equal. No block
    is over the cap or empty; ``n_blocks * cap`` is at least n. O(n * arity) for each kind of
    bricks that is counted.
    """
    steps, extent = sortable(place), place.max(axis=0).astype(np.int64) + 1
    # axes of one length give the same nodes
    kinds = dict(_kinds(extent, place.shape[0] / n_blocks))

    def cut(kind: Bricks) -> tuple[int, Int32s]:
        block = _cut(steps, kind, n_blocks, cap)
        return geometry.loads(block, n_blocks), block

    found = each(cut, [(kinds[nodes],) for nodes in sorted(kinds)[:COUNTED]])
    return _numbered(min(found, key=lambda counted: counted[0])[1], place, n_blocks)


def _kinds(extent: Int64s, size: float) -> Iterator[tuple[float, Bricks]]:
    """Bricks of ``size`` elements about as thick as a cube, with the nodes that each has."""
    side = round(power(size, 1 / 3))
    for axes in permutations(range(3)):
        layers = int(extent[axes[0]])
        if layers > 1 and extent.min() == 1:
            continue
        for thick in range(max(1, side - THICKER), side + THICKER + 1):
            for fewer in (False, True):
                kind = Bricks(axes, max(1, round(layers / thick)), fewer)
                yield _nodes(extent, kind, size), kind


def _nodes(extent: Int64s, kind: Bricks, size: float) -> float:
    """About how many nodes an element of bricks loads; most blocks have a step at their ends."""
    layers, rows, length = (int(extent[axis]) for axis in kind.axes)
    thin, thicker = divmod(layers, kind.slabs)
    nodes = 0.0
    for thick, slabs in ((thin, kind.slabs - thicker), (thin + 1, thicker)):
        columns = size / thick
        width = rows / _strips(rows, length, columns, kind.fewer)
        along = min(length, columns / width)
        box = width + along + (along < length)
        nodes += slabs * thick / layers * (columns + box + 1) * (thick + 1) / size
    return nodes


def _strips(rows: int, length: int, columns: float, fewer: bool) -> int:
    """How many strips give blocks that are about as wide as long."""
    count = rows / max(math.sqrt(columns), columns / length)
    return max(1, int(count) if fewer else int(np.ceil(count)))


def _cut(steps: list[NDArray[Any]], kind: Bricks, n_blocks: int, cap: int) -> Int32s:
    high, wide, long = (steps[axis] for axis in kind.axes)
    block = np.empty(high.size, np.int32)
    order = np.lexsort((long, wide, high))
    for slab, first, count in _parts(high, order, kind.slabs, n_blocks, cap):
        # stable: elements of a column stay in the order of their layers
        slab = slab[np.lexsort((long[slab], wide[slab]))]
        columns = slab.size / _extent(high[slab]) / count
        strips = _strips(_extent(wide[slab]), _extent(long[slab]), columns, kind.fewer)
        for strip, start, few in _parts(wide, slab, strips, count, cap):
            strip = strip[np.argsort(long[strip], kind="stable")]
            ends = _ends(wide[strip], long[strip], few, cap)
            block[strip] = first + start + np.repeat(np.arange(few), np.diff(ends))
    return block


def _extent(steps: NDArray[Any]) -> int:
    return int(steps.max()) - int(steps.min()) + 1


def _parts(
    steps: NDArray[Any], order: NDArray[np.int64], count: int, n_blocks: int, cap: int
) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """Cut sorted elements into ``count`` parts, between layers where the blocks have room for it.

    Yields the elements of each part, its first block, and into how many blocks it is to be cut.
    """
    n, begin, first = order.size, 0, 0
    layer = np.append(_changes(steps[order]), n)
    for k in range(1, count + 1):
        end = int(layer[k * (layer.size - 1) // count])
        last = round(end * n_blocks / n)
        if last <= first or (last == n_blocks and k < count):
            continue
        low, high = _room(n, begin, last - first, n_blocks - last, cap)
        if not low <= end <= high:
            end = min(max(round(n * last / n_blocks), low), high)
        yield order[begin:end], first, last - first
        begin, first = end, last


def _ends(wide: NDArray[Any], long: NDArray[Any], count: int, cap: int) -> list[int]:
    """Where the blocks of a strip begin and end: between columns where they have room for it."""
    n, ends = wide.size, [0]
    column = np.append(_changes(wide, long), n)
    even = np.arange(1, count) * n // count
    after = np.searchsorted(column, even)
    before, after = column[np.maximum(0, after - 1)], column[after]
    near = np.where(even - before < after - even, before, after)
    for k, (wanted, clean) in enumerate(zip(even.tolist(), near.tolist(), strict=True), 1):
        low, high = _room(n, ends[-1], 1, count - k, cap)
        ends.append(clean if low <= clean <= high else min(max(wanted, low), high))
    return [*ends, n]


def _room(n: int, begin: int, here: int, after: int, cap: int) -> tuple[int, int]:
    """Where a part of ``here`` blocks may end: neither these nor those after it get too many."""
    return max(begin + here, n - after * cap), min(begin + here * cap, n - after)


def _changes(*steps: NDArray[Any]) -> NDArray[np.int64]:
    """Where any of the values differs from the one before, the first place included."""
    fresh = np.zeros(steps[0].size, np.bool_)
    fresh[0] = True
    for axis in steps:
        fresh[1:] |= axis[1:] != axis[:-1]
    return np.flatnonzero(fresh)


def _numbered(block: Int32s, place: Int32s, n_blocks: int) -> Int32s:
    """The blocks numbered along a bisection of their middles."""
    size = np.bincount(block, minlength=n_blocks)
    middle = np.stack([np.bincount(block, axis, n_blocks) / size for axis in place.T], axis=1)
    return bisect_places(middle, n_blocks)[block]
