"""Recursive bisection of elements into parts of equal size.

Each cut is made across the direction in which the part is most elements wide. The width of
an element is measured on a sample of the part, so that thin layers are cut across, not
along.
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
# Levels of cuts after which threads take a subtree each.
FEW_CUTS = 3
# Elements that are worth threads.
WORTH_THREADS = 4_000
# Room of the stack of subtrees, which is deeper than any tree.
MOST_WAITING = 64
# Share of the sample, narrowest first, from which widths are measured.
USUAL = 0.85
# Least width of an element that counts, relative to its widest direction.
THINNEST = 1e-6
# The same where graph distances are the coordinates: these say little of thin elements.
THINNEST_GUESSED = 0.15
# Least length of the mean fourth power of the directions to points in a part of a grid.
GRID = 0.4

# half_angle, for kernels
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
    """The part of each element, from recursive cuts into ``n_blocks`` parts.

    The sizes of the parts differ by one or two elements. ``table`` has -1 for a repeated
    point; ``position`` (n_points, d) has the coordinates of the points. Cuts are made
    across one of the ``directions``, the rows of a matrix, in a frame where elements are as
    wide as tall; elements thinner than ``thinnest``, relative to their width, count as this
    thin. ``weight`` of the elements and ``share`` of the parts are at least 1, and equal
    where left out; with them, sizes differ by a few weights. Parts are numbered along the
    tree: neighbouring numbers are neighbouring parts. O(n d log n_blocks) expected; the
    result does not depend on the number of threads.
    """
    part = np.zeros(coordinates.shape[0], dtype=np.int32)
    if n_blocks > 1 and part.size:
        # Every cut sorts its own range of ``order``.
        directions = read_only(directions)
        order = np.arange(part.size, dtype=np.int32)
        key = np.empty(part.size)
        if weight is None:
            weight = np.empty(0, np.int32)
        if share is None:
            share = np.ones(n_blocks, np.int64)
        # With sums of shares, those of any range of parts are one difference.
        before = np.concatenate([[0], np.cumsum(share)])
        items = Items(
            table=read_only(table),
            position=read_only(position),
            coordinates=read_only(coordinates),
            weight=read_only(weight),
            before=before,
            thinnest=thinnest,
        )

        def cut(tree: Subtree, once: bool) -> list[Subtree]:
            left = _cut(
                items=items,
                directions=directions,
                order=order,
                key=key,
                tree=tree,
                once=once,
                part=part,
            )
            return [*starmap(Subtree, left.tolist())]

        # Cut the top of the tree level by level, then a subtree on each thread.
        whole = Subtree(low=0, high=part.size, first=0, parts=n_blocks)
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
    """The part of each place (n, 3) by :func:`bisect`, across the axes by default."""
    no_points = np.empty((len(place), 0), np.int32)
    nowhere = np.empty((0, 3))
    frame = np.eye(3) if directions is None else directions
    return bisect(
        table=no_points,
        position=nowhere,
        coordinates=place,
        directions=frame,
        n_blocks=n_blocks,
        weight=weight,
        share=share,
    )


@kernel
def point_positions(table: Int32s, n_points: int, coordinates: Float64s) -> Float64s:
    """The mean place of the elements at each point, (n_points, d); 0 without any. O(n)."""
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
    """The items to cut, with their points and weights.

    ``table`` (n, arity) and ``position`` are the points of each item and their coordinates,
    ``coordinates`` those of the items. An empty ``weight`` stands for 1 each. ``before``
    (n_blocks + 1,) is the sum of the shares of all blocks before each.
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

    ``part`` receives the parts that are done. Returns the subtrees that are left, a row
    each: low, high, first, parts. Only ``order[tree.low:tree.high]`` and the same range of
    ``key`` are read and written.
    """
    # Keep the subtrees that wait on a stack: kernels do not recurse.
    waiting = np.empty((MOST_WAITING, 4), np.int64)
    n = _push(
        waiting=waiting,
        n=ZERO,
        low=tree.low,
        high=tree.high,
        first=tree.first,
        parts=tree.parts,
    )
    while n > 0:
        n -= 1
        low = waiting[n, 0]
        high = waiting[n, 1]
        first = waiting[n, 2]
        parts = waiting[n, 3]
        if parts == 1:
            for i in range(low, high):
                part[order[i]] = first
            continue
        # Sort the items across the widest direction, as far as the cut needs it.
        direction = _widest(items, directions, order[low:high])
        for i in range(low, high):
            key[i] = _along(items.coordinates, order[i], direction)
        # Half of the parts go to either side: cut where the weight before the cut is in the
        # ratio of their shares.
        half = parts // 2
        total = _weight_of(weight=items.weight, order=order, low=low, high=high)
        share = items.before[first + half] - items.before[first]
        whole = items.before[first + parts] - items.before[first]
        weight_before = (total * share + share) // whole
        middle = select(
            key=key,
            order=order,
            weight=items.weight,
            low=low,
            high=high,
            wanted=weight_before,
        )
        # No part may be empty.
        if high - low >= parts:
            middle = min(max(middle, low + half), high - parts + half)
        n = _push(
            waiting=waiting,
            n=n,
            low=middle,
            high=high,
            first=first + half,
            parts=parts - half,
        )
        n = _push(
            waiting=waiting,
            n=n,
            low=low,
            high=middle,
            first=first,
            parts=half,
        )
        if once:
            break
    return waiting[:n]


@helper
def _push(waiting: Int64s, n: int, low: int, high: int, first: int, parts: int) -> int:
    """Put a subtree on the stack; returns its new height."""
    waiting[n, 0] = low
    waiting[n, 1] = high
    waiting[n, 2] = first
    waiting[n, 3] = parts
    return n + 1


@helper
def _along(coordinates: Float64s, element: int, direction: Float64s) -> float:
    """The coordinate of an element along a direction."""
    total = 0.0
    for a in range(direction.size):
        total += coordinates[element, a] * direction[a]
    return total


@helper
def _widest(items: Items, directions: Float64s, elements: Int32s) -> Float64s:
    """The direction in which a part is most elements wide, in the coordinates' frame."""
    # Measure the elements of a sample; in a plane, look for the lines of a grid.
    d = directions.shape[0]
    step = max(1, elements.size // SAMPLE)
    lower = _element_width(items, elements, step)
    best = np.zeros(d, np.float64)
    widest = -1.0
    frame = directions
    if d == 2:
        frame = _aligned_with_grid(
            items=items, directions=directions, elements=elements, step=step, lower=lower
        )
    # Take the direction along which the sample is longest, in widths of elements.
    for k in range(d):
        direction = _unsheared(lower, frame[k])
        low = np.inf
        high = -np.inf
        for i in range(0, elements.size, step):
            along = _along(items.coordinates, elements[i], direction)
            low = min(low, along)
            high = max(high, along)
        if high - low > widest:
            best = direction
            widest = high - low
    return best


@helper
def _element_width(items: Items, elements: Int32s, step: int) -> Float64s:
    """Cholesky factor of the second moments of points about their elements, of a sample."""
    spread = _squared_spread(items, elements, step)
    # A periodic mesh has elements whose points seem to be far away.
    usual = int(USUAL * (spread.size - 1))
    sorted_spread = spread.copy()
    sort(sorted_spread, ZERO, spread.size)
    moment = _second_moments(
        items=items,
        elements=elements,
        step=step,
        spread=spread,
        bound=sorted_spread[usual],
    )
    return _cholesky_factor(moment, items.thinnest)


@helper
def _squared_spread(items: Items, elements: Int32s, step: int) -> Float64s:
    """The sum of squared distances of the points of each sampled element from it."""
    table = items.table
    position = items.position
    coordinates = items.coordinates
    d = coordinates.shape[1]
    spread = np.empty((elements.size + step - 1) // step, np.float64)
    for k in range(spread.size):
        i = elements[k * step]
        total = 0.0
        for j in range(table.shape[1]):
            t = table[i, j]
            for a in range(d if t >= 0 else 0):
                total += (position[t, a] - coordinates[i, a]) ** 2
        spread[k] = total
    return spread


@helper
def _second_moments(
    items: Items, elements: Int32s, step: int, spread: Float64s, bound: float
) -> Float64s:
    """The lower triangle of the second moments of sampled elements up to a spread."""
    table = items.table
    position = items.position
    coordinates = items.coordinates
    d = coordinates.shape[1]
    moment = np.zeros((d, d), np.float64)
    # Elements far larger than most of the sample would speak for all: leave them out.
    for k in range(spread.size):
        i = elements[k * step]
        for j in range(table.shape[1] if spread[k] <= bound else 0):
            t = table[i, j]
            if t < 0:
                continue
            # Add the outer product of the way from the element to its point, lower half
            # only.
            for a in range(d):
                off = position[t, a] - coordinates[i, a]
                for b in range(a + 1):
                    moment[a, b] += off * (position[t, b] - coordinates[i, b])
    return moment


@helper
def _cholesky_factor(moment: Float64s, thinnest: float) -> Float64s:
    """Cholesky factor of moments of trace 1 with a least width; else the identity."""
    d = moment.shape[0]
    # Measure moments in their trace, so that the least width has no unit.
    trace = 0.0
    for a in range(d):
        trace += moment[a, a]
    # Without any moments elements are as wide as tall.
    lower = np.zeros((d, d), np.float64)
    for a in range(d):
        lower[a, a] = 1.0
    if trace > 0.0:
        for a in range(d):
            for b in range(a + 1):
                total = moment[a, b] / trace + (thinnest * thinnest if a == b else 0.0)
                for c in range(b):
                    total -= lower[a, c] * lower[b, c]
                # The floor keeps flat elements positive definite in spite of rounding.
                if a == b:
                    lower[a, b] = math.sqrt(max(total, thinnest**4))
                else:
                    lower[a, b] = total / lower[b, b]
    return lower


@helper
def _aligned_with_grid(
    items: Items, directions: Float64s, elements: Int32s, step: int, lower: Float64s
) -> Float64s:
    """The directions, rotated to the lines of a plane part if it is a grid.

    Points stand around an element of a grid in four directions. The mean of the fourth
    powers of these directions, as complex numbers, is then far from 0, and its phase is
    four times the angle of the lines.
    """
    table = items.table
    position = items.position
    coordinates = items.coordinates
    # Sum the fourth powers, where elements are as wide as tall.
    real = 0.0
    imaginary = 0.0
    count = 0
    for k in range(0, elements.size, step):
        i = elements[k]
        for j in range(table.shape[1]):
            if table[i, j] < 0:
                continue
            # Solve the triangular system: the way to the point in the frame of the
            # elements.
            x = (position[table[i, j], 0] - coordinates[i, 0]) / lower[0, 0]
            y = position[table[i, j], 1] - coordinates[i, 1] - lower[1, 0] * x
            y /= lower[1, 1]
            length = x * x + y * y
            if length > 0.0:
                # Double the angle twice: the four diagonals of a square fall on one.
                cosine = (x * x - y * y) / length
                sine = 2 * x * y / length
                real += cosine * cosine - sine * sine
                imaginary += 2 * cosine * sine
                count += 1
    # Directions to points that go all ways cancel: the part is no grid.
    if real * real + imaginary * imaginary < (GRID * count) ** 2 or count == 0:
        return directions
    # Turn the directions by a fourth of the phase.
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
    """Solve ``lower.T @ out = direction``: a direction of equal widths, in coordinates."""
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
    key: NDArray[np.floating],
    order: Int32s,
    weight: Int32s,
    low: int,
    high: int,
    wanted: int,
) -> int:
    """Partition ``low..high-1`` by key, as quickselect does.

    Returns the position with about the weight ``wanted`` before it.
    """
    # The position looked for is in left..right, with the weight ``before`` ahead of left.
    left = low
    right = high - 1
    before = 0
    while left < right:
        # Partition by a pivot: left..j are not above it, i..right not below.
        pivot = key[(left + right) >> 1]
        i = left
        j = right
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
        # Go on in the side that has it, unless it is between them.
        lower = before + _weight_of(weight=weight, order=order, low=left, high=j + 1)
        upper = lower + _weight_of(weight=weight, order=order, low=j + 1, high=i)
        if wanted <= lower:
            right = j
        elif wanted >= upper:
            left = i
            before = upper
        else:
            left = right = j + 1
            before = lower
    inside = left < high and 2 * (wanted - before) >= _weight_of(
        weight=weight, order=order, low=left, high=left + 1
    )
    if inside:
        return left + 1
    return left


@helper
def _weight_of(weight: Int32s, order: Int32s, low: int, high: int) -> int:
    """The weight of ``low..high-1``; items weigh 1 where there are no weights."""
    if weight.size == 0:
        return high - low
    total = 0
    for k in range(low, high):
        total += weight[order[k]]
    return total
