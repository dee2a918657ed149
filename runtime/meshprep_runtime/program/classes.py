"""A loop on one part, one class of elements after the other: core, boundary, exec.

Core runs in pieces. The same on the host and on a GPU.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.executor import HostCall, StrategyAndVariant
from ..cpu.strategies import STRATEGIES, PartRanges, Schedule, Turns, elements
from ..errors import MeshprepError
from ..kernel.bind import Slot, bound
from ..loop import ParLoop
from ..plan.model import LoopPlan, Staging, Variant
from ..plan.parts import ClassColours, LoopPart, SetPart
from ..types.loops import Loop
from ..types.maps import SetMap, on_device

# Core runs in pieces, with a test of the messages between them.
MOST_PIECES = 16
# The smallest piece, in elements, or in blocks where the strategy runs blocks.
LEAST_ELEMENTS = 2048
LEAST_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """The range of a schedule that each class of elements has; None for an empty class.

    ``core`` is a range for each piece; ``owned`` is core and boundary in one.
    """

    core: tuple[Turns, ...]
    boundary: Turns | None
    exec: Turns | None
    owned: Turns | None


def class_ranges(
    way: StrategyAndVariant, schedule: Schedule, part: LoopPart, of_set: SetPart
) -> ClassRanges:
    """Where the classes lie in a schedule; raises MeshprepError if it runs them mixed."""
    strategy, variant = way
    kind = STRATEGIES[strategy].part_ranges
    # Find where core, owned and all elements end, in the units of the schedule.
    between: Callable[[int, int], Turns]
    if kind is PartRanges.ELEMENTS:
        end = part.plan.sizes[part.plan.loop.over]
        core = of_set.core
        owned = of_set.owned
        between = elements
        least = LEAST_ELEMENTS
    elif kind is PartRanges.TURNS:
        # No range of a part crosses a class, and the ranges of core come first.
        stop = schedule.turns[:, 1]
        end = schedule.n_turns
        least = 1
        core = int((stop <= of_set.core).sum())
        owned = int((stop <= of_set.owned).sum())
        if {of_set.core, of_set.owned} - {0, *stop.tolist()}:
            raise MeshprepError(
                f"loop '{part.plan.loop.name}': only the default blocks of a part have "
                "ranges: leave variant out, or use strategy hierarchical"
            )
        between = schedule.between
    elif kind is PartRanges.COLOURS and variant is not None:
        # Blocks are sorted by class, then by colour: a class is a range of colours.
        colours = part.colours[variant.name]
        last_colours = [colours.core, colours.owned, variant.n_block_colours]
        core, owned, end = variant.block_colour_offset[last_colours].tolist()
        between = schedule.between
        least = LEAST_BLOCKS
    else:
        raise MeshprepError(
            f"loop '{part.plan.loop.name}': strategy '{strategy}' cannot run a part of a "
            f"mesh, class after class: use {_names_for_parts()}"
        )

    # Cut core into pieces of nearly the same length.
    cuts: list[int] = []
    if core:
        n_pieces = max(min(MOST_PIECES, core // least), 1)
        cuts = np.linspace(0, core, n_pieces + 1).astype(int).tolist()

    def range_or_none(first: int, last: int) -> Turns | None:
        if last > first:
            return between(first, last)
        return None

    return ClassRanges(
        core=tuple(between(first, last) for first, last in pairwise(cuts)),
        boundary=range_or_none(core, owned),
        exec=range_or_none(owned, end),
        owned=range_or_none(0, owned),
    )


def _names_for_parts() -> str:
    """The strategies that run a part class after class, as a message lists them."""
    *names, last = (
        name
        for name, strategy in STRATEGIES.items()
        if strategy.part_ranges is not PartRanges.MIXED
    )
    return f"{', '.join(names)} or {last}"


# By slot: the array that a part reduces into, in place of that of the call.
Reduced = Mapping[int, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class HostRuns:
    """One call of a loop on the host, whose classes are ranges of its schedule."""

    call: HostCall
    ranges: ClassRanges

    @property
    def arrays(self) -> Sequence[Any]:
        """The globals and dats of the call, by slot."""
        return self.call.arrays

    def core(self, reduced: Reduced, between: Callable[[], None]) -> None:
        """Run core elements; call ``between`` after each of their pieces."""
        for piece in self.ranges.core:
            self.call.run(piece, reduced)
            between()

    def run(self, which: str, reduced: Reduced) -> None:
        """Run ``"owned"``, ``"boundary"`` or ``"exec"`` elements."""
        ranges = getattr(self.ranges, which)
        if ranges is not None:
            self.call.run(ranges, reduced)


@dataclass(frozen=True, eq=False)
class DeviceRuns:
    """One call of a loop on a GPU, as :class:`HostRuns`: each class is a loop of its own.

    Only the globals in ``arrays`` are used.
    """

    part: "DevicePart"
    slots: Sequence[Slot]
    given: Mapping[str, Any]
    arrays: Sequence[Any]

    def core(self, reduced: Reduced, between: Callable[[], None]) -> None:
        self.run("core", reduced)
        between()

    def run(self, which: str, reduced: Reduced) -> None:
        reduced_by_name = {self.slots[i].name: values for i, values in reduced.items()}
        arguments = {**self.given, **reduced_by_name}
        classes: tuple[str, ...] = (which,)
        if which == "owned":
            classes = ("core", "boundary")
        for class_name in classes:
            self.part.run(class_name, arguments)


def device_runs(
    part: "DevicePart", loop: Loop, slots: Sequence[Slot], given: Mapping[str, Any]
) -> DeviceRuns:
    """The runs of one call; raises MeshprepError for a global on a GPU."""
    arrays: list[Any] = []
    for slot in slots:
        value = given[slot.name]
        if slot.rows is not None:
            arrays.append(value)
            continue
        if on_device(value):
            raise MeshprepError(
                f"loop '{loop.name}': global '{slot.name}' lies on a GPU, which parts of a "
                "mesh cannot take: pass a NumPy array"
            )
        arrays.append(bound(loop, slot, value))
    return DeviceRuns(part=part, slots=slots, given=given, arrays=arrays)


CLASSES = ("core", "boundary", "exec")


class DevicePart:
    """The classes of a loop on arrays of a GPU, each as a loop of its own.

    ``make`` makes a ParLoop from a plan; ``of_set`` describes the set of the loop. Raises
    MeshprepError for direct dats in SoA: there the rows of a class are not contiguous.
    """

    def __init__(
        self, make: Callable[[LoopPlan], ParLoop], part: LoopPart, of_set: SetPart
    ) -> None:
        plan = part.plan
        self._direct = {a.name for a in plan.loop.args if a.map is None and not a.is_global}
        n = plan.sizes[plan.loop.over]
        # Each class is a loop of its own: a launch runs all blocks of its program.
        ends = (0, of_set.core, of_set.owned, n)
        self._loops: dict[str, tuple[ParLoop, int, int]] = {}
        for i, name in enumerate(CLASSES):
            first = ends[i]
            last = ends[i + 1]
            if last > first:
                loop = make(class_plan(part=part, which=i, first=first, last=last))
                self._loops[name] = (loop, first, last)
        # Rows of a class are a slice of a dat, which is contiguous only where rows are.
        for loop, _, _ in self._loops.values():
            for slot in loop.slots:
                if slot.name in self._direct and slot.soa:
                    raise MeshprepError(
                        f"loop '{plan.loop.name}': dat '{slot.name}' is soa and direct, "
                        "which parts of a mesh on a GPU cannot take: use aos"
                    )
        self._views: dict[tuple[str, str], DeviceView] = {}

    def run(self, which: str, arrays: Mapping[str, Any]) -> None:
        """Queue one class on the GPU; waits for globals that it reduces."""
        if which not in self._loops:
            return
        loop, first, last = self._loops[which]
        # The maps of the class have its rows only; direct dats need a view of these rows.
        arguments = dict(arrays)
        for name in self._direct.intersection(arrays):
            arguments[name] = self._view(
                which=which, name=name, array=arrays[name], first=first, last=last
            )
        loop(**arguments)

    def _view(
        self, which: str, name: str, array: Any, first: int, last: int
    ) -> "DeviceView":
        # Return the same object again for the same array, so that it is checked only once.
        view = self._views.get((which, name))
        if view is None or view.array is not array:
            view = DeviceView(array, first, last)
            self._views[which, name] = view
        return view


class DeviceView:
    """Rows ``first`` to ``last`` of an array of a GPU, without a copy."""

    def __init__(self, array: Any, first: int, last: int) -> None:
        interface = dict(array.__cuda_array_interface__)
        shape = tuple(interface["shape"])
        bytes_of_row = math.prod(shape[1:]) * np.dtype(interface["typestr"]).itemsize
        pointer, read_only = interface["data"]
        interface["shape"] = (last - first, *shape[1:])
        interface["data"] = (pointer + first * bytes_of_row, read_only)
        self.array = array
        self.__cuda_array_interface__ = interface


def class_plan(part: LoopPart, which: int, first: int, last: int) -> LoopPlan:
    """The plan of one class, as a loop over its elements alone."""
    plan = part.plan
    over = plan.loop.over
    # The elements of a class are consecutive, so its maps are slices.
    maps = {}
    for name, whole_map in plan.maps.items():
        maps[name] = SetMap(
            name=name,
            from_set=whole_map.from_set,
            to_set=whole_map.to_set,
            table=whole_map.table[first:last],
        )
    # Cut each variant where the class ends.
    variants = {}
    for name, variant in plan.variants.items():
        variants[name] = _class_variant(
            v=variant, ends=part.colours[name], which=which, first=first, last=last
        )
    return replace(
        plan,
        sizes={**plan.sizes, over: last - first},
        rows={**plan.rows, over: last - first},
        maps=maps,
        variants=variants,
        tuned=(),
        ranges=None,
    )


def _class_variant(
    v: Variant, ends: ClassColours, which: int, first: int, last: int
) -> Variant:
    """The blocks of one class of a variant: each class has colours of its own."""
    # Find the colours of the class, and by them its blocks.
    first_colours = (0, ends.core, ends.owned, v.n_block_colours)
    first_colour = first_colours[which]
    last_colour = first_colours[which + 1]
    colour_offset = v.block_colour_offset[first_colour : last_colour + 1]
    order = v.block_order[colour_offset[0] : colour_offset[-1]]
    # The blocks of a class have consecutive numbers.
    low = int(order.min())
    high = int(order.max()) + 1
    # Cut what belongs to these blocks out of the arrays, and count from their first.
    staging = {}
    for name, whole_staging in v.staging.items():
        staging[name] = _staging_of_blocks(whole_staging, low, high)
    local = {}
    for name, table in v.local.items():
        local[name] = np.ascontiguousarray(table[:, first:last])
    return replace(
        v,
        block_offset=v.block_offset[low : high + 1] - first,
        block_colour_offset=colour_offset - colour_offset[0],
        block_order=order - np.int32(low),
        thread_colour=v.thread_colour[first:last],
        thread_colours=v.thread_colours[low:high],
        staging=staging,
        local=local,
    )


def _staging_of_blocks(staging: Staging, low: int, high: int) -> Staging:
    offset = staging.point_offset[low : high + 1]
    points = slice(int(offset[0]), int(offset[-1]))
    return Staging(offset - offset[0], staging.points[points], staging.exclusive[points])
