"""The strategies on a CPU: in which order and on which threads elements run.

A strategy makes a schedule, a list of ranges of elements, which threads take in turn;
ranges that write a common point wait for each other. ``STRATEGIES`` at the end of this
module is the one place where a strategy is entered: choices, messages, the tuner, parts of
a mesh and tests read it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np

from ..plan import LoopPlan, Variant
from ..plan.ranges import ranges_for, runs_of
from ..types.loops import Access, Loop
from ..types.maps import Int32s, Int64s, run_offset

# A part of a schedule: (first turn, turn after the last), ``turns`` and ``waits`` of
# :class:`Schedule`.
Turns = tuple[Int64s, Int64s, Int32s]
# Elements that a thread takes at a time in strategies without blocks.
PIECE = 4096
NO_WAITS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Ranges of elements, each run by a thread in its turn."""

    # (n_turns, 5): turn ``i`` runs places ``turns[i, 0]`` to ``turns[i, 1] - 1``, when all
    # turns before ``turns[i, 2]`` are done and so are ``waits[turns[i, 3] : turns[i, 4]]``.
    turns: Int64s
    waits: Int32s = field(default_factory=lambda: NO_WAITS)
    # (n,): the element at each place; None where it is the place itself.
    order: Int32s | None = None
    # The maps are to be brought into that order, so that they are read as a stream.
    maps_permuted: bool = False
    # Elements touch rows that no processor would guess: they are fetched ahead.
    fetches: bool = False
    parallel: bool = True
    # The turns that a single thread runs instead. They give sums of points the same bits,
    # but not reductions of globals.
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
    """All elements in one range, on one thread: the reference."""
    _, turns, _ = elements(0, plan.sizes[plan.loop.over])
    return Schedule(turns, parallel=False)


def elements(start: int, stop: int) -> Turns:
    """A single turn, of places ``start`` to ``stop - 1``."""
    return pieces(np.array([[start, stop]]))


def pieces(places: Int64s) -> Turns:
    """A turn for each row ``(start, stop)`` of ``places``; no turn waits."""
    table = np.zeros((len(places), 5), np.int64)
    table[:, :2] = places
    return np.array([0, len(places)], np.int64), table, NO_WAITS


def ordered(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Ranges of blocks in the order of the set.

    A range waits for the ranges before it that write one of its points.
    """
    # The plan has the ranges of its default blocks; those of other blocks are made here.
    block_ranges = plan.ranges
    name = plan.default if variant is None else variant.name
    if block_ranges is None or name != plan.default:
        block_ranges = ranges_for(replace(plan, default=name))
    # A turn for each range, in the order in which threads take them.
    turns = np.zeros((block_ranges.order.size, 5), np.int64)
    turns[:, 0] = block_ranges.offset[block_ranges.order]
    turns[:, 1] = block_ranges.offset[block_ranges.order + 1]
    turns[:, 3] = block_ranges.wait_offset[:-1]
    turns[:, 4] = block_ranges.wait_offset[1:]
    # With lists of elements maps are copied in their order, and rows that no processor
    # would guess are fetched.
    order = None if variant is None else variant.elements
    lists_elements = order is not None
    return Schedule(
        turns=turns,
        waits=block_ranges.waits,
        order=order,
        maps_permuted=lists_elements,
        fetches=lists_elements,
        alone=pieces(runs_of(block_ranges)),
    )


def hierarchical(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Block colour after block colour, the blocks of each in parallel [S19, G12 4]."""
    blocks = _required_blocks(variant)
    lists_elements = blocks.elements is not None
    return Schedule(
        by_colour(blocks),
        order=blocks.elements,
        maps_permuted=lists_elements,
        fetches=lists_elements,
    )


def by_colour(blocks: Variant) -> Int64s:
    """A turn for each block; a colour begins when the colours before are done."""
    start = blocks.block_offset[:-1][blocks.block_order]
    stop = blocks.block_offset[1:][blocks.block_order]
    return in_phases(start, stop, blocks.block_colour_offset)


def in_phases(start: Int64s, stop: Int64s, phase_offset: Int64s) -> Int64s:
    """Turns in phases; a phase begins when all turns of the phases before are done."""
    turns = np.zeros((start.size, 5), np.int64)
    turns[:, 0] = start
    turns[:, 1] = stop
    turns[:, 2] = np.repeat(phase_offset[:-1], np.diff(phase_offset))
    return turns


def block_permute(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Hierarchical, with the elements of each block by thread colour [R14 section 7.1]."""
    blocks = _required_blocks(variant)
    place = np.lexsort((blocks.thread_colour, blocks.block_of_place())).astype(np.int32)
    if blocks.elements is None:
        order = place
    else:
        order = blocks.elements[place]
    return Schedule(by_colour(blocks), order=order)


def global_colouring(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Colours of the whole set one after the other, elements of a colour in parallel."""
    from ..kernel.colouring import colour_elements

    # Cut the elements of each colour into pieces, with a phase for each colour.
    colour = colour_elements(plan)
    count = np.bincount(colour, minlength=1)
    ends = [np.zeros(0, np.int64)]
    phases = [0]
    for start, size in zip(np.cumsum(count) - count, count, strict=True):
        ends.append(start + np.append(np.arange(PIECE, size, PIECE), size))
        phases.append(phases[-1] + ends[-1].size)
    stop = np.concatenate(ends)
    start = np.append(0, stop)[:-1]
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return Schedule(in_phases(start, stop, np.array(phases, np.int64)), order=order)


def full_permute(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """Global colouring, with the maps in the order of the colours [R14 section 7.1]."""
    return replace(global_colouring(plan, variant), maps_permuted=True)


def two_step(plan: LoopPlan, variant: Variant | None) -> Schedule:
    """All elements at once into a temporary array; a second step sums at each point."""
    return in_pieces(plan.sizes[plan.loop.over], PIECE)


def in_pieces(n: int, piece: int) -> Schedule:
    """All elements, ``piece`` at a time; no turn waits."""
    offset = run_offset(n, piece)
    return Schedule(in_phases(offset[:-1], offset[1:], np.array([0, offset.size - 1])))


def runs_any_loop(loop: Loop) -> str | None:
    """None: no loop is refused."""
    return None


def sums_alone(loop: Loop) -> str | None:
    """Why a loop has more than sums that can wait; None where it has not."""
    for arg in loop.args:
        if not arg.conflicts:
            continue
        if arg.access is not Access.INC:
            return (
                f"argument '{arg.name}' is {arg.access} through a map, and only sums wait"
            )
        if np.dtype(arg.dtype).kind != "f":
            # As a whole number 5 - 0.3 is 4, but the waiting sum 0 - 0.3 is 0.
            return (
                f"argument '{arg.name}' holds whole numbers, and a fraction that waits for "
                "them is cut off before it is added"
            )
    return None


def _required_blocks(variant: Variant | None) -> Variant:
    """The blocks of a strategy that needs them; loops are refused without them before."""
    if variant is None:
        raise ValueError("a strategy in blocks was let through without blocks")
    return variant


class PartRanges(Enum):
    """Where the classes of a part of a mesh (core, boundary, exec) lie in a schedule."""

    # One range of elements each.
    ELEMENTS = "elements"
    # Some turns each: no range of blocks crosses a class.
    TURNS = "turns"
    # Some block colours each: no block colour crosses a class.
    COLOURS = "colours"
    # Mixed, so that the strategy cannot run a part class after class.
    MIXED = "mixed"


@dataclass(frozen=True)
class CpuStrategy:
    """A strategy, with all that the executor, the tuner and parts of a mesh know of it."""

    schedule: Callable[[LoopPlan, Variant | None], Schedule]
    # It runs blocks of the plan, and cannot do without.
    needs_blocks: bool = False
    # Elements store what they add in temporary arrays, which a second step sums.
    sums_later: bool = False
    # The first calls find out which form of the code is the fastest, and whether rows are
    # fetched ahead; otherwise one form is taken by a rule.
    tries_forms: bool = False
    part_ranges: PartRanges = PartRanges.MIXED
    # Why it cannot run a loop, or None.
    refusal: Callable[[Loop], str | None] = runs_any_loop


# The strategy of ``"auto"`` where nothing was tuned.
ORDERED = "ordered"
# In the order in which messages list them.
STRATEGIES: dict[str, CpuStrategy] = {
    ORDERED: CpuStrategy(ordered, tries_forms=True, part_ranges=PartRanges.TURNS),
    "sequential": CpuStrategy(sequential, part_ranges=PartRanges.ELEMENTS),
    "hierarchical": CpuStrategy(
        hierarchical, needs_blocks=True, part_ranges=PartRanges.COLOURS
    ),
    "global-colouring": CpuStrategy(global_colouring),
    "two-step": CpuStrategy(two_step, sums_later=True, refusal=sums_alone),
    "block-permute": CpuStrategy(
        block_permute, needs_blocks=True, part_ranges=PartRanges.COLOURS
    ),
    "full-permute": CpuStrategy(full_permute),
}


def refusal(loop: Loop, strategy: str) -> str | None:
    """Why a strategy cannot run a loop, or None."""
    return STRATEGIES[strategy].refusal(loop)
