"""The maximum point degree of each block: its most elements on one written point.

That is a lower bound of the block's thread colours, and our colourings hardly ever need more.
"""

from typing import NamedTuple

import numpy as np

from ...colour.thread_colours import colour_threads
from ...kernels import Bools, Int32s, helper, inlined
from ..blocks_of import sort_by
from .counts import COUNT_BITS, FIRST, MOST, USED, Counts
from .geometry import Geometry

# Points of higher degree than this count as this: they have a high degree in any block.
MAX_DEGREE = 32


class DegreeCounts(NamedTuple):
    """``degree_count`` (n_blocks, MAX_DEGREE + 1): points of a block by their degree in it.

    ``most`` (n_blocks,) is the highest degree in use. ``written`` tells which points count, at the
    word where the list of each begins. ``per_point`` is what one more point of the highest degree
    adds to the price, so that there is a slope to go down.
    """

    degree_count: Int32s
    most: Int32s
    written: Bools
    per_point: float


@helper
def count_degrees(state: Counts, written: Bools, cap: int) -> DegreeCounts:
    """Count the levels of every block. O(n * arity)."""
    n_blocks = state.size.size
    degrees = DegreeCounts(
        np.zeros((n_blocks, MAX_DEGREE + 1), np.int32),
        np.zeros(n_blocks, np.int32),
        written,
        1.0 / cap,
    )
    for t in state.begin:
        if not written[t]:
            continue
        for s in range(t + FIRST, t + FIRST + state.lists[t + USED]):
            degree = min(MAX_DEGREE, state.lists[s] & MOST)
            b = state.lists[s] >> COUNT_BITS
            degrees.degree_count[b, degree] += 1
            degrees.most[b] = max(degrees.most[b], degree)
    return degrees


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
            degrees.most[target] = max(degrees.most[target], at_target + 1)
    while degrees.most[source] > 0 and degrees.degree_count[source, degrees.most[source]] == 0:
        degrees.most[source] -= 1


@inlined
def colours_changed(degrees: DegreeCounts, state: Counts, element: int, target: int) -> float:
    """By how much the colours of both blocks would rise. O(arity * blocks at its points)."""
    source = state.block[element]
    high, top = degrees.most[source], degrees.most[target]
    relieved, at_top, risen = 0, 0, 0
    for j in range(state.point_offset[element], state.point_offset[element + 1]):
        t = state.points[j]
        if not degrees.written[t]:
            continue
        relieved += _count(state, t, source) == high
        count = _count(state, t, target) + 1
        at_top += count == top
        risen += count == top + 1
    change = degrees.per_point * (at_top - relieved)
    if relieved and relieved == degrees.degree_count[source, high]:
        change -= 1.0
    return change + 1.0 if risen and top < MAX_DEGREE else change


@inlined
def _count(state: Counts, point: int, block: int) -> int:
    for s in range(point + FIRST, point + FIRST + state.lists[point + USED]):
        if state.lists[s] >> COUNT_BITS == block:
            return state.lists[s] & MOST
    return 0


def colours_of(geometry: Geometry, block: Int32s, n_blocks: int) -> int:
    """The thread colours of all blocks."""
    n_points = geometry.weight.size
    offset, member = sort_by(block, n_blocks)
    # what is not written becomes a point of the element alone
    own = n_points + np.arange(block.size, dtype=np.int32)[:, None]
    written = np.where(
        (geometry.table >= 0) & geometry.written[geometry.table], geometry.table, own
    )
    return int(colour_threads(written[member], n_points + block.size, offset).count.sum())
