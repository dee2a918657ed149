"""In which order, and on how many threads, the elements of a loop run: one builder a strategy.

Every strategy is a list of *ranges* of elements in *phases*: the ranges of one phase write no
common point, so that threads may share them; a phase starts when the one before has ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..loops import Access, Loop
from ..maps import run_offset
from ..plan import LoopPlan, Variant

# The first three arrays of a schedule: all that tells one part of it from another.
Ranges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
# Elements that one thread takes at a time where no blocks say how many.
PIECE = 4096


@dataclass(frozen=True, eq=False)
class Schedule:
    """Ranges of elements in phases."""

    # (n_ranges + 1,): range ``r`` holds places ``range_offset[r]`` to ``range_offset[r + 1] - 1``.
    range_offset: NDArray[np.int64]
    # (n_phases + 1,): phase ``p`` runs ``range_order[phase_offset[p] : phase_offset[p + 1]]``.
    phase_offset: NDArray[np.int64]
    range_order: NDArray[np.int32]  # (n_ranges,)
    # (n,): the element at each place; None where it is the place itself.
    order: NDArray[np.int32] | None = None
    # The maps are to be brought into that order, so that they are read as a stream.
    maps_permuted: bool = False
    # What elements touch lies where no processor would guess: it is asked for ahead.
    fetches: bool = False
    parallel: bool = True
    # (n_ranges,): an order with the same sums for one thread, to which colours are a detour.
    alone: NDArray[np.int32] | None = None

    @property
    def ranges(self) -> Ranges:
        return self.range_offset, self.phase_offset, self.range_order

    @property
    def ranges_alone(self) -> Ranges:
        """All ranges, for one thread."""
        if self.alone is None:
            return self.ranges
        return self.range_offset, np.array([0, self.alone.size], np.int64), self.alone

    def between(self, first: int, last: int) -> Ranges:
        """The ranges at places ``first`` to ``last - 1`` of ``range_order``, in their phases."""
        phases = np.clip(self.phase_offset, first, last) - first
        return self.range_offset, phases, self.range_order[first:last]


def sequential(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """One range, one thread: the reference."""
    return Schedule(*elements(0, plan.sizes[plan.loop.over]), parallel=False)


def elements(start: int, stop: int) -> Ranges:
    one = np.array([0, 1], np.int64)
    return np.array([start, stop], np.int64), one, np.zeros(1, np.int32)


def hierarchical(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Block colours one after the other, the blocks of one in parallel [S19, G12 section 4]."""
    v = _blocks(variant)
    lists = v.elements is not None
    ranges = (v.block_offset, v.block_colour_offset, v.block_order)
    alone = order_alone(plan, v)
    return Schedule(*ranges, v.elements, maps_permuted=lists, fetches=lists, alone=alone)


def block_permute(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """The same, with each block's elements by thread colour [R14 section 7.1]."""
    v = _blocks(variant)
    place = np.lexsort((v.thread_colour, v.block_of_place())).astype(np.int32)
    order = place if v.elements is None else v.elements[place]
    ranges = (v.block_offset, v.block_colour_offset, v.block_order)
    return Schedule(*ranges, order, alone=order_alone(plan, v))


def order_alone(plan: LoopPlan, variant: Variant) -> NDArray[np.int32]:
    """Blocks in the order of the set, but each after those of lower colours that it meets.

    Every point gets its sums in the order of the colours, as where the whole colours go one after
    the other, but the set is read once and not once a colour. O(points of several blocks).
    """
    colour = variant.colour_of_block()
    point, block, n_points = _shared_points(plan, variant)
    by_colour = np.argsort(colour[block], kind="stable")
    point, block = point[by_colour], block[by_colour]
    ends = np.searchsorted(colour[block], np.arange(variant.n_block_colours + 1))
    # where a block stands at the earliest, and the last one so far at each point
    place, last = np.arange(variant.n_blocks), np.zeros(n_points, np.int64)
    for begin, end in pairwise(ends):
        np.maximum.at(place, block[begin:end], last[point[begin:end]])
        np.maximum.at(last, point[begin:end], place[block[begin:end]])
    return np.lexsort((colour, place)).astype(np.int32)


def _shared_points(
    plan: LoopPlan, variant: Variant
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Points of sets that are written to, and blocks that reach them: pairs; how many points.

    Points that one block alone reaches are left out.
    """
    points, blocks, begin = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for to_set in dict.fromkeys(plan.maps[name].to_set for name in plan.loop.conflict_columns):
        staged = variant.staging[to_set]
        block = np.repeat(np.arange(variant.n_blocks), np.diff(staged.point_offset))
        points.append(staged.points[~staged.exclusive].astype(np.int64) + begin)
        blocks.append(block[~staged.exclusive])
        begin += plan.rows_of(to_set)
    return np.concatenate(points), np.concatenate(blocks), begin


def global_colouring(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Colours of the whole set one after the other, the elements of one in parallel."""
    from ..kernel.colouring import colour_elements

    colour = colour_elements(plan)
    count = np.bincount(colour, minlength=1)
    ranges, phases = [np.zeros(1, np.int64)], [0]
    for start, size in zip(np.cumsum(count) - count, count, strict=True):
        ends = start + np.append(np.arange(PIECE, size, PIECE), size)
        ranges.append(ends)
        phases.append(phases[-1] + ends.size)
    offset = np.concatenate(ranges).astype(np.int64)
    order = np.argsort(colour, kind="stable").astype(np.int32)
    every = np.arange(offset.size - 1, dtype=np.int32)
    return Schedule(offset, np.array(phases, np.int64), every, order)


def full_permute(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Global colouring with the maps brought into the order of the colours [R14 section 7.1]."""
    s = global_colouring(plan, variant)
    return Schedule(s.range_offset, s.phase_offset, s.range_order, s.order, maps_permuted=True)


def two_step(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """All elements at once into a temporary array; a second step sums at each point."""
    return in_pieces(plan.sizes[plan.loop.over], PIECE)


def in_pieces(n: int, piece: int) -> Schedule:
    """All elements in one phase, so many at a time."""
    offset = run_offset(n, piece)
    every = np.arange(offset.size - 1, dtype=np.int32)
    return Schedule(offset, np.array([0, every.size], np.int64), every)


SCHEDULES: dict[str, Callable[[LoopPlan, Variant | None], Schedule]] = {
    "sequential": sequential,
    "hierarchical": hierarchical,
    "global-colouring": global_colouring,
    "two-step": two_step,
    "block-permute": block_permute,
    "full-permute": full_permute,
}
NEED_BLOCKS = frozenset({"hierarchical", "block-permute"})


def refusal(loop: Loop, strategy: str) -> str | None:
    """Why a strategy cannot run a loop, or None."""
    if strategy == "two-step":
        for arg in loop.args:
            if arg.conflicts and arg.access is not Access.INC:
                return f"argument '{arg.name}' is {arg.access} through a map, and only sums wait"
    return None


def _blocks(variant: Variant | None) -> Variant:
    if variant is None:
        raise ValueError("a strategy in blocks was let through without blocks")
    return variant
