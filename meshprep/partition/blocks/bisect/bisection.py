"""Recursive bisection of element centroids into parts of equal size, whatever the mesh's stretch.

Each cut is made across the direction in which the part is most elements wide. What an element's
width is, is measured on a sample of the part, so that thin layers are cut across, not along.
"""

import math
from itertools import starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import read_only

from ....kernels import Float64s, Int32s, Int64s, helper, kernel
from ....kernels.arithmetic import half_angle
from ....kernels.arrays import ZERO, sort
from ....kernels.parallel import each

# Elements of a part that are sampled for its widest direction.
SAMPLE = 128
# Levels of cuts before threads take a subtree each; elements that are worth threads; room of the
# stack of halves, which is deeper than any tree.
FEW_CUTS = 3
WORTH_THREADS = 4_000
MOST_WAITING = 64
# Share of the sample, narrowest first, from which widths are measured.
USUAL = 0.85
# Least width of an element that counts, relative to its widest direction.
THINNEST = 1e-6
# The same for graph distances, which say little about thin elements.
THINNEST_GUESSED = 0.15
# A part is a grid if the mean of the fourth powers of its directions is longer than this.
GRID = 0.4

# the same for kernels
_half_angle = helper(half_angle)


def bisect(
    table: Int32s,
    position: Float64s,
    coordinates: Float64s,
    directions: Float64s,
    n_blocks: int,
    thinnest: float = THINNEST,
    weight: Int32s | None = None,
    share: Int64s | None = None,
) -> Int32s:
    """The part of each element, from cuts into ``n_blocks`` parts of equal size up to one or two.

    ``table`` has -1 for a point named again, ``position`` is where the points are. ``directions``
    are rows to cut across, in a frame where elements are as wide as tall; those thinner than
    ``thinnest``, relative to their width, count as this thin. ``weight`` and ``share`` are at least
    1, and equal where left out; sizes then differ by a few weights. Parts are numbered along the
    tree: neighbouring numbers are neighbouring parts. O(n d log n_blocks) expected; any number of
    threads gives the same.
    """
    part = np.zeros(coordinates.shape[0], dtype=np.int32)
    if n_blocks > 1 and part.size:
        directions = read_only(directions)
        order, key = np.arange(part.size, dtype=np.int32), np.empty(part.size)
        weight = np.empty(0, np.int32) if weight is None else weight
        share = np.ones(n_blocks, np.int64) if share is None else share
        before = np.concatenate([[0], np.cumsum(share)])
        items = Items(
            read_only(table), read_only(position), read_only(coordinates), read_only(weight),
            before, thinnest,
        )  # fmt: skip

        def cut(tree: Subtree, once: bool) -> list[Subtree]:
            left = _cut(items, directions, order, key, tree, once, part)
            return [*starmap(Subtree, left.tolist())]

        whole = Subtree(0, part.size, 0, n_blocks)
        if part.size < WORTH_THREADS:
            cut(whole, False)
        else:
            trees = [whole]
            for _ in range(FEW_CUTS):
                halves = each(cut, [(tree, True) for tree in trees])
                trees = [tree for found in halves for tree in found]
            each(cut, [(tree, False) for tree in trees])
    return part


def bisect_places(
    place: Float64s,
    n_blocks: int,
    weight: Int32s | None = None,
    share: Int64s | None = None,
    directions: Float64s | None = None,
) -> Int32s:
    """The part of each point in space, (n, 3), by :func:`bisect`; along the axes by default."""
    no_points, nowhere = np.empty((len(place), 0), np.int32), np.empty((0, 3))
    frame = np.eye(3) if directions is None else directions
    return bisect(no_points, nowhere, place, frame, n_blocks, weight=weight, share=share)


@kernel
def point_positions(table: Int32s, n_points: int, coordinates: Float64s) -> Float64s:
    """The mean of the elements at each point, (n_points, d); 0 where there are none. O(n)."""
    n, d = coordinates.shape
    position = np.zeros((n_points, d), np.float64)
    count = np.zeros(n_points, np.int32)
    for i in range(n):
        for j in range(table.shape[1]):
            t = table[i, j]
            if t >= 0:
                count[t] += 1
                for a in range(d):
                    position[t, a] += (coordinates[i, a] - position[t, a]) / count[t]
    return position


class Items(NamedTuple):
    """The items to cut: their points, the points' coordinates, their own, and weights.

    An empty ``weight`` stands for 1 each.
    ``before`` (n_blocks + 1,) adds up the shares of the blocks before each.
    """

    table: Int32s
    position: Float64s
    coordinates: Float64s
    weight: Int32s
    before: Int64s
    thinnest: float


class Subtree(NamedTuple):
    """A range of the order, its first block, and the number of its blocks."""

    low: int
    high: int
    first: int
    parts: int


@kernel
def _cut(
    items: Items,
    directions: Float64s,
    order: Int32s,
    key: Float64s,
    tree: Subtree,
    once: bool,
    part: Int32s,
) -> Int64s:
    """Cut a subtree once, or to its leaves in depth-first order, which suits the cache.

    Writes down the parts that are done, and returns the subtrees that are left, a row each.
    ``order`` and ``key`` are worked on from ``tree.low`` to ``tree.high`` alone.
    """
    waiting = np.empty((MOST_WAITING, 4), np.int64)
    n = _push(waiting, ZERO, tree.low, tree.high, tree.first, tree.parts)
    while n > 0:
        n -= 1
        low, high, first, parts = waiting[n, 0], waiting[n, 1], waiting[n, 2], waiting[n, 3]
        if parts == 1:
            for i in range(low, high):
                part[order[i]] = first
            continue
        direction = _widest(items, directions, order[low:high])
        for i in range(low, high):
            key[i] = _along(items.coordinates, order[i], direction)
        half = parts // 2
        total = _weight_of(items.weight, order, low, high)
        share = items.before[first + half] - items.before[first]
        whole = items.before[first + parts] - items.before[first]
        wanted = (total * share + share) // whole
        middle = select(key, order, items.weight, low, high, wanted)
        if high - low >= parts:
            middle = min(max(middle, low + half), high - parts + half)
        n = _push(waiting, n, middle, high, first + half, parts - half)
        n = _push(waiting, n, low, middle, first, half)
        if once:
            break
    return waiting[:n]


@helper
def _push(waiting: Int64s, n: int, low: int, high: int, first: int, parts: int) -> int:
    waiting[n, 0], waiting[n, 1], waiting[n, 2], waiting[n, 3] = low, high, first, parts
    return n + 1


@helper
def _along(coordinates: Float64s, element: int, direction: Float64s) -> float:
    total = 0.0
    for a in range(direction.size):
        total += coordinates[element, a] * direction[a]
    return total


@helper
def _widest(items: Items, directions: Float64s, elements: Int32s) -> Float64s:
    """The direction in which a part is most elements wide, in the coordinates' frame."""
    d = directions.shape[0]
    step = max(1, elements.size // SAMPLE)
    lower = _element_width(items, elements, step)
    best, widest = np.zeros(d, np.float64), -1.0
    frame = directions
    if d == 2:
        frame = _along_lines(items, directions, elements, step, lower)
    for k in range(d):
        direction = _unsheared(lower, frame[k])
        low, high = np.inf, -np.inf
        for i in range(0, elements.size, step):
            along = _along(items.coordinates, elements[i], direction)
            low, high = min(low, along), max(high, along)
        if high - low > widest:
            best, widest = direction, high - low
    return best


@helper
def _element_width(items: Items, elements: Int32s, step: int) -> Float64s:
    """Cholesky factor of the second moments of points about their elements, of a sample."""
    table, position, coordinates, thinnest = (
        items.table, items.position, items.coordinates, items.thinnest
    )  # fmt: skip
    d = coordinates.shape[1]
    spread = np.empty((elements.size + step - 1) // step, np.float64)
    for k in range(spread.size):
        i, total = elements[k * step], 0.0
        for j in range(table.shape[1]):
            t = table[i, j]
            for a in range(d if t >= 0 else 0):
                total += (position[t, a] - coordinates[i, a]) ** 2
        spread[k] = total
    # A periodic mesh has elements whose points seem to be far away.
    usual = int(USUAL * (spread.size - 1))
    sorted_spread = spread.copy()
    sort(sorted_spread, 0, spread.size)
    bound = sorted_spread[usual]
    moment = np.zeros((d, d), np.float64)
    for k in range(spread.size):
        i = elements[k * step]
        for j in range(table.shape[1] if spread[k] <= bound else 0):
            t = table[i, j]
            if t < 0:
                continue
            for a in range(d):
                off = position[t, a] - coordinates[i, a]
                for b in range(a + 1):
                    moment[a, b] += off * (position[t, b] - coordinates[i, b])
    trace = 0.0
    for a in range(d):
        trace += moment[a, a]
    lower = np.zeros((d, d), np.float64)
    for a in range(d):
        lower[a, a] = 1.0
    if trace > 0.0:
        for a in range(d):
            for b in range(a + 1):
                total = moment[a, b] / trace + (thinnest * thinnest if a == b else 0.0)
                for c in range(b):
                    total -= lower[a, c] * lower[b, c]
                lower[a, b] = math.sqrt(max(total, thinnest**4)) if a == b else total / lower[b, b]
    return lower


@helper
def _along_lines(
    items: Items, directions: Float64s, elements: Int32s, step: int, lower: Float64s
) -> Float64s:
    """The directions, rotated to the lines of a plane part if it is a grid.

    Points stand around an element of a grid in four directions: the mean of the fourth powers of
    these, as complex numbers, is far from 0, and its phase tells how the lines run.
    """
    table, position, coordinates = items.table, items.position, items.coordinates
    real, imaginary, count = 0.0, 0.0, 0
    for k in range(0, elements.size, step):
        i = elements[k]
        for j in range(table.shape[1]):
            if table[i, j] < 0:
                continue
            x = (position[table[i, j], 0] - coordinates[i, 0]) / lower[0, 0]
            y = position[table[i, j], 1] - coordinates[i, 1] - lower[1, 0] * x
            y /= lower[1, 1]
            length = x * x + y * y
            if length > 0.0:
                cosine, sine = (x * x - y * y) / length, 2 * x * y / length
                real += cosine * cosine - sine * sine
                imaginary += 2 * cosine * sine
                count += 1
    if real * real + imaginary * imaginary < (GRID * count) ** 2 or count == 0:
        return directions
    length = math.sqrt(real * real + imaginary * imaginary)
    cosine, sine = _half_angle(real / length, imaginary / length)
    cosine, sine = _half_angle(cosine, sine)
    frame = np.empty((2, 2), np.float64)
    for k in range(2):
        frame[k, 0] = cosine * directions[k, 0] - sine * directions[k, 1]
        frame[k, 1] = sine * directions[k, 0] + cosine * directions[k, 1]
    return frame


@helper
def _unsheared(lower: Float64s, direction: Float64s) -> Float64s:
    """Solve ``lower.T @ out = direction``: from the frame of equal widths to coordinates."""
    d = direction.size
    out = np.zeros(d, np.float64)
    for a in range(d - 1, -1, -1):
        total = direction[a]
        for b in range(a + 1, d):
            total -= lower[b, a] * out[b]
        out[a] = total / lower[a, a]
    return out


@helper
def select(
    key: NDArray[np.floating], order: Int32s, weight: Int32s, low: int, high: int, wanted: int
) -> int:
    """Partition ``low..high-1`` by key; the position with about ``wanted`` weight before it."""
    left, right, before = low, high - 1, 0
    while left < right:
        pivot = key[(left + right) >> 1]
        i, j = left, right
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        lower = before + _weight_of(weight, order, left, j + 1)
        upper = lower + _weight_of(weight, order, j + 1, i)
        if wanted <= lower:
            right = j
        elif wanted >= upper:
            left, before = i, upper
        else:
            left = right = j + 1
            before = lower
    inside = left < high and 2 * (wanted - before) >= _weight_of(weight, order, left, left + 1)
    return left + 1 if inside else left


@helper
def _weight_of(weight: Int32s, order: Int32s, low: int, high: int) -> int:
    """The weight of ``low..high-1``; items weigh 1 where there are no weights."""
    if weight.size == 0:
        return high - low
    total = 0
    for k in range(low, high):
        total += weight[order[k]]
    return total
