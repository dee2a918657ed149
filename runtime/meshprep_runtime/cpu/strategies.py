"""In which order, and on how many threads, the elements of a loop run: one builder a strategy.

Every strategy is a list of ranges of elements, which threads take in turn; ranges that write a
common point wait for each other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..plan import LoopPlan, Variant
from ..plan.ranges import ranges_for, runs_of
from ..types.loops import Access, Loop
from ..types.maps import Int32s, Int64s, run_offset

# What tells one part of a schedule from another: the first turn and the one after the last, and the
# turns and waits of :class:`Schedule`.
Turns = tuple[Int64s, Int64s, Int32s]
# Elements that one thread takes at a time where no blocks say how many.
PIECE = 4096
NO_WAITS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Ranges of elements by turns."""

    # (n_turns, 5): turn ``i`` runs places ``turns[i, 0]`` to ``turns[i, 1] - 1``, when all turns
    # before ``turns[i, 2]`` are done and so are ``waits[turns[i, 3] : turns[i, 4]]``.
    turns: Int64s
    waits: Int32s = field(default_factory=lambda: NO_WAITS)
    # (n,): the element at each place; None where it is the place itself.
    order: Int32s | None = None
    # The maps are to be brought into that order, so that they are read as a stream.
    maps_permuted: bool = False
    # What elements touch lies where no processor would guess: it is asked for ahead.
    fetches: bool = False
    parallel: bool = True
    # What one thread runs instead, with the same bits in sums of points; not of all elements.
    alone: Turns | None = None

    @property
    def n_turns(self) -> int:
        return len(self.turns)

    @cached_property
    def whole(self) -> Turns:
        """All turns."""
        return self.between(0, self.n_turns)

    def between(self, first: int, last: int) -> Turns:
        """Turns ``first`` to ``last - 1``."""
        return np.array([first, last], np.int64), self.turns, self.waits


def sequential(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """One range, one thread: the reference."""
    return Schedule(elements(0, plan.sizes[plan.loop.over])[1], parallel=False)


def elements(start: int, stop: int) -> Turns:
    """One turn of these places."""
    return pieces(np.array([[start, stop]]))


def pieces(places: Int64s) -> Turns:
    """Turns of places from one to another, ``(n, 2)``; none waits."""
    table = np.zeros((len(places), 5), np.int64)
    table[:, :2] = places
    return np.array([0, len(places)], np.int64), table, NO_WAITS


def ordered(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Ranges of blocks in the order of the set, which wait for those whose points they write."""
    r = plan.ranges
    if r is None or (variant is not None and variant.name != plan.default):
        name = plan.default if variant is None else variant.name
        r = ranges_for(replace(plan, default=name))
    turns = np.zeros((r.order.size, 5), np.int64)
    turns[:, 0], turns[:, 1] = r.offset[r.order], r.offset[r.order + 1]
    turns[:, 3], turns[:, 4] = r.wait_offset[:-1], r.wait_offset[1:]
    order = None if variant is None else variant.elements
    lists = order is not None
    alone = pieces(runs_of(r))
    return Schedule(turns, r.waits, order, maps_permuted=lists, fetches=lists, alone=alone)


def hierarchical(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Block colours one after the other, the blocks of one in parallel [S19, G12 section 4]."""
    v = _blocks(variant)
    lists = v.elements is not None
    return Schedule(by_colour(v), order=v.elements, maps_permuted=lists, fetches=lists)


def by_colour(v: Variant) -> Int64s:
    """Turns of blocks: those of one colour when all of the colours before are done."""
    start, stop = v.block_offset[:-1][v.block_order], v.block_offset[1:][v.block_order]
    return in_phases(start, stop, v.block_colour_offset)


def in_phases(start: Int64s, stop: Int64s, phase_offset: Int64s) -> Int64s:
    """Turns in phases: one begins when all turns of the phases before are done."""
    turns = np.zeros((start.size, 5), np.int64)
    turns[:, 0], turns[:, 1] = start, stop
    turns[:, 2] = np.repeat(phase_offset[:-1], np.diff(phase_offset))
    return turns


def block_permute(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """The same, with each block's elements by thread colour [R14 section 7.1]."""
    v = _blocks(variant)
    place = np.lexsort((v.thread_colour, v.block_of_place())).astype(np.int32)
    order = place if v.elements is None else v.elements[place]
    return Schedule(by_colour(v), order=order)


def global_colouring(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Colours of the whole set one after the other, the elements of one in parallel."""
    from ..kernel.colouring import colour_elements

    colour = colour_elements(plan)
    count = np.bincount(colour, minlength=1)
    ends, phases = [np.zeros(0, np.int64)], [0]
    for start, size in zip(np.cumsum(count) - count, count, strict=True):
        ends.append(start + np.append(np.arange(PIECE, size, PIECE), size))
        phases.append(phases[-1] + ends[-1].size)
    stop = np.concatenate(ends)
    start = np.append(0, stop)[:-1]
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return Schedule(in_phases(start, stop, np.array(phases, np.int64)), order=order)


def full_permute(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Global colouring with the maps brought into the order of the colours [R14 section 7.1]."""
    return replace(global_colouring(plan, variant), maps_permuted=True)


def two_step(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """All elements at once into a temporary array; a second step sums at each point."""
    return in_pieces(plan.sizes[plan.loop.over], PIECE)


def in_pieces(n: int, piece: int) -> Schedule:
    """All elements, so many at a time; none waits."""
    offset = run_offset(n, piece)
    return Schedule(in_phases(offset[:-1], offset[1:], np.array([0, offset.size - 1])))


ORDERED = "ordered"
SCHEDULES: dict[str, Callable[[LoopPlan, Variant | None], Schedule]] = {
    ORDERED: ordered,
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
