"""Bricks of a grid: slabs of whole layers, cut into strips, and these into blocks.

A block of ``a`` columns in a slab of ``t`` layers has ``(a + b + c + 1) (t + 1)`` nodes,
where its columns just fit into a box of ``b`` by ``c``. A step of the border inside the box
costs nothing, but a step across the slab would cost a row of nodes. Bisection makes such
steps: it cuts through layers wherever its halves are equal.
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
from .bisection import bisect_places
from .geometry import Geometry
from .grid_lines import sortable

# Most difference between the layers of a slab and of a cube of a block's size.
THICKER = 2
# Kinds of bricks whose loads are counted: the ones with the fewest nodes by the formula.
COUNTED = 8


class Bricks(NamedTuple):
    """Axes in cutting order, the number of slabs, and whether strips are rounded down."""

    axes: tuple[int, ...]
    slabs: int
    fewer: bool


def brick_blocks(geometry: Geometry, place: Int32s, n_blocks: int, cap: int) -> Int32s:
    """The cheapest blocks of a grid in slabs.

    ``place`` (n, 3) counts steps along the lines of the grid, from 0; no two are equal. No
    block is over the cap or empty; ``n_blocks * cap`` is at least n. O(n * arity) for each
    kind of bricks that is counted.
    """
    steps = sortable(place)
    extent = place.max(axis=0).astype(np.int64) + 1
    # A dictionary, as axes of equal length give the same nodes.
    kinds = dict(_kinds(extent, place.shape[0] / n_blocks))

    def cut(kind: Bricks) -> tuple[int, Int32s]:
        block = _cut_bricks(steps=steps, kind=kind, n_blocks=n_blocks, cap=cap)
        return geometry.loads(block, n_blocks), block

    # Count the loads of the kinds with the fewest nodes, and take the least.
    promising = [(kinds[nodes],) for nodes in sorted(kinds)[:COUNTED]]
    loads_and_blocks = each(cut, promising)
    _, block = min(loads_and_blocks, key=lambda counted: counted[0])
    return _numbered(block, place, n_blocks)


def _kinds(extent: Int64s, size: float) -> Iterator[tuple[float, Bricks]]:
    """Bricks of ``size`` elements about as thick as a cube, with their nodes an element."""
    side = round(power(size, 1 / 3))
    for axes in permutations(range(3)):
        # In a plane grid slabs are the one layer that there is.
        layers = int(extent[axes[0]])
        if layers > 1 and extent.min() == 1:
            continue
        for thick in range(max(1, side - THICKER), side + THICKER + 1):
            for fewer in (False, True):
                slabs = max(1, round(layers / thick))
                kind = Bricks(axes, slabs, fewer)
                yield _nodes(extent, kind, size), kind


def _nodes(extent: Int64s, kind: Bricks, size: float) -> float:
    """The nodes that bricks load for an element, by the formula.

    Most blocks have a step at each end.
    """
    layers, rows, length = (int(extent[axis]) for axis in kind.axes)
    thin, thicker = divmod(layers, kind.slabs)
    nodes = 0.0
    for thick, slabs in ((thin, kind.slabs - thicker), (thin + 1, thicker)):
        columns = size / thick
        strips = _strips(rows=rows, length=length, columns=columns, fewer=kind.fewer)
        width = rows / strips
        along = min(length, columns / width)
        box = width + along + (along < length)
        # A brick of so many columns has nodes on one more layer than it has elements.
        nodes += slabs * thick / layers * (columns + box + 1) * (thick + 1) / size
    return nodes


def _strips(rows: int, length: int, columns: float, fewer: bool) -> int:
    """The number of strips that makes blocks about as wide as long, rounded down or up."""
    count = rows / max(math.sqrt(columns), columns / length)
    if fewer:
        return max(1, int(count))
    return max(1, int(np.ceil(count)))


def _cut_bricks(steps: list[NDArray[Any]], kind: Bricks, n_blocks: int, cap: int) -> Int32s:
    """Blocks of one kind of bricks: slabs, cut into strips, and these into blocks."""
    high, wide, long = (steps[axis] for axis in kind.axes)
    block = np.empty(high.size, np.int32)
    # Cut slabs between layers of the first axis.
    order = np.lexsort((long, wide, high))
    for slab, first, count in _parts(
        steps=high, order=order, count=kind.slabs, n_blocks=n_blocks, cap=cap
    ):
        # stable: elements of a column stay in the order of their layers
        slab = slab[np.lexsort((long[slab], wide[slab]))]
        # Cut the slab into strips along the second axis, as many as make blocks round.
        columns = slab.size / _extent(high[slab]) / count
        strips = _strips(
            rows=_extent(wide[slab]),
            length=_extent(long[slab]),
            columns=columns,
            fewer=kind.fewer,
        )
        for strip, start, few in _parts(
            steps=wide, order=slab, count=strips, n_blocks=count, cap=cap
        ):
            # Cut the strip into blocks along the third axis.
            strip = strip[np.argsort(long[strip], kind="stable")]
            ends = _ends(wide=wide[strip], long=long[strip], count=few, cap=cap)
            block_of_strip = np.repeat(np.arange(few), np.diff(ends))
            block[strip] = first + start + block_of_strip
    return block


def _extent(steps: NDArray[Any]) -> int:
    """The number of steps from the first to the last, both included."""
    return int(steps.max()) - int(steps.min()) + 1


def _parts(
    steps: NDArray[Any], order: NDArray[np.int64], count: int, n_blocks: int, cap: int
) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """Cut sorted elements into ``count`` parts, between layers if the blocks have room.

    Yields the elements of each part, its first block, and the number of its blocks.
    """
    n = order.size
    begin = 0
    first = 0
    # Aim at equal numbers of layers.
    layer = np.append(_changes(steps[order]), n)
    for k in range(1, count + 1):
        end = int(layer[k * (layer.size - 1) // count])
        # Give the part as many blocks as its elements fill; skip one that would have none,
        # and leave some for the parts after it.
        last = round(end * n_blocks / n)
        if last <= first or (last == n_blocks and k < count):
            continue
        # Cut through a layer only where the blocks on either side would not fit.
        low, high = _room(
            n=n, begin=begin, n_here=last - first, n_after=n_blocks - last, cap=cap
        )
        if not low <= end <= high:
            end = min(max(round(n * last / n_blocks), low), high)
        yield order[begin:end], first, last - first
        begin = end
        first = last


def _ends(wide: NDArray[Any], long: NDArray[Any], count: int, cap: int) -> list[int]:
    """Offsets of the blocks of a strip: between columns if the blocks have room."""
    n = wide.size
    ends = [0]
    # Find the change of column nearest to each equal cut.
    column = np.append(_changes(wide, long), n)
    even = np.arange(1, count) * n // count
    after = np.searchsorted(column, even)
    before = column[np.maximum(0, after - 1)]
    after = column[after]
    near = np.where(even - before < after - even, before, after)
    for k, (even_end, clean_end) in enumerate(
        zip(even.tolist(), near.tolist(), strict=True), start=1
    ):
        # Cut inside a column only where the blocks before or after would not fit.
        low, high = _room(n=n, begin=ends[-1], n_here=1, n_after=count - k, cap=cap)
        if low <= clean_end <= high:
            ends.append(clean_end)
        else:
            ends.append(min(max(even_end, low), high))
    return [*ends, n]


def _room(n: int, begin: int, n_here: int, n_after: int, cap: int) -> tuple[int, int]:
    """The least and greatest end of a part of ``n_here`` blocks.

    Neither its blocks nor the ``n_after`` blocks after it get more elements than the cap.
    """
    low = max(begin + n_here, n - n_after * cap)
    high = min(begin + n_here * cap, n - n_after)
    return low, high


def _changes(*steps: NDArray[Any]) -> NDArray[np.int64]:
    """Positions where any of the values differs from the one before, the first included."""
    fresh = np.zeros(steps[0].size, np.bool_)
    fresh[0] = True
    for axis in steps:
        fresh[1:] |= axis[1:] != axis[:-1]
    return np.flatnonzero(fresh)


def _numbered(block: Int32s, place: Int32s, n_blocks: int) -> Int32s:
    """The blocks numbered along a bisection of their centroids."""
    size = np.bincount(block, minlength=n_blocks)
    axes = [np.bincount(block, axis, n_blocks) / size for axis in place.T]
    return bisect_places(np.stack(axes, axis=1), n_blocks)[block]
