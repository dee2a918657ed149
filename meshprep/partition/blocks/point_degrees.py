"""The maximum point degree of each block: its most elements on one written point.

That is a lower bound of the block's thread colours, and our colourings hardly ever need more. A
maximum is no slope to go down: hardly any single move changes it. So moves are priced by a smooth
one, the logarithm of a sum of powers, in which points of lower degree count, too; the more so, the
softer it is. It hardens while blocks are annealed.
"""

import math
from typing import NamedTuple

import numpy as np

from ...kernels import Bools, Float64s, Int32s, helper, inlined
from .counts import COUNT_BITS, FIRST, MOST, USED, Counts

# Points of higher degree than this count as this: they have a high degree in any block.
MAX_DEGREE = 64


class DegreeCounts(NamedTuple):
    """``degree_count`` (n_blocks, MAX_DEGREE + 1): points of a block by their degree in it.

    ``power`` (MAX_DEGREE + 1,) is what a point counts by its degree, ``total`` (n_blocks,) 1 and
    the sum over the points of a block; both as :func:`soften` leaves them. ``written`` tells which
    points count, at the word where the list of each begins.
    """

    degree_count: Int32s
    total: Float64s
    power: Float64s
    written: Bools


@helper
def count_degrees(state: Counts, written: Bools) -> DegreeCounts:
    """Count the degrees of every block. O(n * arity)."""
    n_blocks = state.size.size
    degrees = DegreeCounts(
        np.zeros((n_blocks, MAX_DEGREE + 1), np.int32),
        np.ones(n_blocks, np.float64),
        np.zeros(MAX_DEGREE + 1, np.float64),
        written,
    )
    for t in state.begin:
        if not written[t]:
            continue
        for s in range(t + FIRST, t + FIRST + state.lists[t + USED]):
            degree = min(MAX_DEGREE, state.lists[s] & MOST)
            degrees.degree_count[state.lists[s] >> COUNT_BITS, degree] += 1
    return degrees


@helper
def soften(degrees: DegreeCounts, softness: float) -> None:
    """Let a point count ``exp(degree / softness)``; softness is in elements, 0.1 at least."""
    for degree in range(1, MAX_DEGREE + 1):
        degrees.power[degree] = math.exp(degree / softness)
    for b in range(degrees.total.size):
        _sum_up(degrees, b)


@inlined
def count_move(degrees: DegreeCounts, state: Counts, element: int, target: int) -> None:
    """Update the degrees; called before the element moves. O(arity * blocks at its points)."""
    source = state.block[element]
    for j in range(state.point_offset[element], state.point_offset[element + 1]):
        t = state.points[j]
        if not degrees.written[t]:
            continue
        at_source, at_target = _count(state, t, source), _count(state, t, target)
        if at_source <= MAX_DEGREE:
            degrees.degree_count[source, at_source] -= 1
            degrees.degree_count[source, at_source - 1] += at_source > 1
        if at_target < MAX_DEGREE:
            degrees.degree_count[target, at_target] -= at_target > 0
            degrees.degree_count[target, at_target + 1] += 1
    _sum_up(degrees, source)
    _sum_up(degrees, target)


@inlined
def _sum_up(degrees: DegreeCounts, b: int) -> None:
    """Sum up the points of a block afresh: differences of such numbers lose their digits."""
    total = 1.0
    for degree in range(1, MAX_DEGREE + 1):
        total += degrees.degree_count[b, degree] * degrees.power[degree]
    degrees.total[b] = total


@inlined
def colours_changed(
    degrees: DegreeCounts, state: Counts, element: int, target: int, softness: float
) -> float:
    """By how much the colours of both blocks would rise. O(arity * blocks at its points)."""
    source, power = state.block[element], degrees.power
    fewer, more = degrees.total[source], degrees.total[target]
    for j in range(state.point_offset[element], state.point_offset[element + 1]):
        t = state.points[j]
        if not degrees.written[t]:
            continue
        at_source, at_target = _count(state, t, source), _count(state, t, target)
        if at_source <= MAX_DEGREE:
            fewer -= power[at_source] - power[at_source - 1]
        if at_target < MAX_DEGREE:
            more += power[at_target + 1] - power[at_target]
    before = degrees.total[source] * degrees.total[target]
    return softness * math.log(max(1.0, fewer) * more / before)


@inlined
def _count(state: Counts, point: int, block: int) -> int:
    for s in range(point + FIRST, point + FIRST + state.lists[point + USED]):
        if state.lists[s] >> COUNT_BITS == block:
            return state.lists[s] & MOST
    return 0
