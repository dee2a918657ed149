"""A loop on one part, class by class: core in pieces, boundary, exec; on the host or on a GPU."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.executor import HostCall, StrategyAndVariant
from ..cpu.strategies import ORDERED, Schedule, Turns, elements
from ..errors import MeshprepError
from ..kernel.bind import Slot, bound
from ..loop import ParLoop
from ..plan.model import LoopPlan, Staging, Variant
from ..plan.parts import ClassColours, LoopPart, SetPart
from ..types.loops import Loop
from ..types.maps import SetMap, on_device

# Core runs in at most so many pieces, none smaller; messages are looked after in between.
MOST_PIECES, LEAST_ELEMENTS, LEAST_BLOCKS = 16, 2048, 4


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """Parts of a schedule."""

    core: tuple[Turns, ...]  # in pieces
    # None where there are no elements; owned is core and boundary in one.
    boundary: Turns | None
    exec: Turns | None
    owned: Turns | None


def class_ranges(
    way: StrategyAndVariant, schedule: Schedule, part: LoopPart, of_set: SetPart
) -> ClassRanges:
    """Where the classes lie in a schedule; raises MeshprepError if it runs them mixed."""
    strategy, variant = way
    between: Callable[[int, int], Turns]
    if strategy == "sequential":
        end = part.plan.sizes[part.plan.loop.over]
        core, owned, between, least = of_set.core, of_set.owned, elements, LEAST_ELEMENTS
    elif strategy == ORDERED:
        # the ranges of a part cross no class, and those of core come first
        stop, end, least = schedule.turns[:, 1], schedule.n_turns, 1
        core, owned = (int((stop <= last).sum()) for last in (of_set.core, of_set.owned))
        if {of_set.core, of_set.owned} - {0, *stop.tolist()}:
            raise MeshprepError(
                f"loop '{part.plan.loop.name}': only the default blocks of a part have ranges: "
                "leave variant out, or use strategy hierarchical"
            )
        between = schedule.between
    elif strategy in ("hierarchical", "block-permute") and variant is not None:
        colours = part.colours[variant.name]
        at = [colours.core, colours.owned, variant.n_block_colours]
        core, owned, end = variant.block_colour_offset[at].tolist()
        between, least = schedule.between, LEAST_BLOCKS
    else:
        raise MeshprepError(
            f"loop '{part.plan.loop.name}': strategy '{strategy}' cannot run a part of a mesh, "
            "class after class: use ordered, sequential, hierarchical or block-permute"
        )
    count = max(min(MOST_PIECES, core // least), 1)
    cuts = np.linspace(0, core, count + 1).astype(int).tolist() if core else []
    return ClassRanges(
        tuple(between(first, last) for first, last in pairwise(cuts)),
        *(
            between(first, last) if last > first else None
            for first, last in ((core, owned), (owned, end), (0, owned))
        ),
    )


# Other arrays for some slots: what a part reduces into.
Reduced = Mapping[int, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class HostRuns:
    """On the host: slices of a schedule."""

    call: HostCall
    ranges: ClassRanges

    @property
    def arrays(self) -> Sequence[Any]:
        """By slot: the globals of the call, and the dats."""
        return self.call.arrays

    def core(self, reduced: Reduced, between: Callable[[], None]) -> None:
        """Run core elements, and call something between their pieces."""
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
    """As :class:`HostRuns` on a GPU: a loop a class, queued one after the other."""

    part: "DevicePart"
    slots: Sequence[Slot]
    given: Mapping[str, Any]
    arrays: Sequence[Any]  # the globals alone

    def core(self, reduced: Reduced, between: Callable[[], None]) -> None:
        self.run("core", reduced)
        between()

    def run(self, which: str, reduced: Reduced) -> None:
        instead = {self.slots[i].name: values for i, values in reduced.items()}
        for one in ("core", "boundary") if which == "owned" else (which,):
            self.part.run(one, {**self.given, **instead})


def device_runs(
    part: "DevicePart", loop: Loop, slots: Sequence[Slot], given: Mapping[str, Any]
) -> DeviceRuns:
    """The runs of one call; raises MeshprepError for a global on a GPU."""
    arrays: list[Any] = []
    for slot in slots:
        value = given[slot.name]
        if slot.rows is None and on_device(value):
            raise MeshprepError(
                f"loop '{loop.name}': global '{slot.name}' lies on a GPU, which parts of a mesh "
                "cannot take: pass a NumPy array"
            )
        arrays.append(value if slot.rows is not None else bound(loop, slot, value))
    return DeviceRuns(part, slots, given, arrays)


CLASSES = ("core", "boundary", "exec")


class DevicePart:
    """Runs the classes of a loop on arrays of a GPU.

    ``make`` gives a ParLoop from a plan; ``of_set`` is of the loop's set. Raises MeshprepError for
    direct dats in SoA: the rows of a class do not lie together.
    """

    def __init__(
        self, make: Callable[[LoopPlan], ParLoop], part: LoopPart, of_set: SetPart
    ) -> None:
        plan = part.plan
        self._direct = {a.name for a in plan.loop.args if a.map is None and not a.is_global}
        n = plan.sizes[plan.loop.over]
        ends = (0, of_set.core, of_set.owned, n)
        self._loops: dict[str, tuple[ParLoop, int, int]] = {}
        for i, name in enumerate(CLASSES):
            first, last = ends[i], ends[i + 1]
            if last > first:
                self._loops[name] = (make(class_plan(part, i, first, last)), first, last)
        for loop, _, _ in self._loops.values():
            for slot in loop.slots:
                if slot.name in self._direct and slot.soa:
                    raise MeshprepError(
                        f"loop '{plan.loop.name}': dat '{slot.name}' is soa and direct, which "
                        "parts of a mesh on a GPU cannot take: use aos"
                    )
        self._views: dict[tuple[str, str], DeviceView] = {}

    def run(self, which: str, arrays: Mapping[str, Any]) -> None:
        """Queue one class; waits for globals that it reduces."""
        if which not in self._loops:
            return
        loop, first, last = self._loops[which]
        given = {
            name: self._view(which, name, value, first, last) if name in self._direct else value
            for name, value in arrays.items()
        }
        loop(**given)

    def _view(self, which: str, name: str, array: Any, first: int, last: int) -> "DeviceView":
        # The same object again, so that it need not be checked again.
        found = self._views.get((which, name))
        if found is None or found.array is not array:
            found = self._views[which, name] = DeviceView(array, first, last)
        return found


class DeviceView:
    """Rows of an array of a GPU."""

    def __init__(self, array: Any, first: int, last: int) -> None:
        told = dict(array.__cuda_array_interface__)
        shape = tuple(told["shape"])
        row = math.prod(shape[1:]) * np.dtype(told["typestr"]).itemsize
        pointer, read_only = told["data"]
        self.array = array
        told |= {"shape": (last - first, *shape[1:]), "data": (pointer + first * row, read_only)}
        self.__cuda_array_interface__ = told


def class_plan(part: LoopPart, which: int, first: int, last: int) -> LoopPlan:
    """The plan of one class, as a loop over its elements alone."""
    plan = part.plan
    over = plan.loop.over
    maps = {
        name: SetMap(name, m.from_set, m.to_set, m.table[first:last])
        for name, m in plan.maps.items()
    }
    variants = {
        name: _class_variant(v, part.colours[name], which, first, last)
        for name, v in plan.variants.items()
    }
    sizes, rows = {**plan.sizes, over: last - first}, {**plan.rows, over: last - first}
    plan = replace(plan, sizes=sizes, rows=rows, maps=maps, variants=variants)
    return replace(plan, tuned=(), ranges=None)


def _class_variant(v: Variant, ends: ClassColours, which: int, first: int, last: int) -> Variant:
    colours = (0, ends.core, ends.owned, v.n_block_colours)[which : which + 2]
    places = v.block_colour_offset[colours[0] : colours[1] + 1]
    order = v.block_order[places[0] : places[-1]]
    low, high = int(order.min()), int(order.max()) + 1
    staging = {name: _blocks_of(s, low, high) for name, s in v.staging.items()}
    return replace(
        v,
        block_offset=v.block_offset[low : high + 1] - first,
        block_colour_offset=places - places[0],
        block_order=order - np.int32(low),
        thread_colour=v.thread_colour[first:last],
        thread_colours=v.thread_colours[low:high],
        staging=staging,
        local={name: np.ascontiguousarray(t[:, first:last]) for name, t in v.local.items()},
    )


def _blocks_of(s: Staging, low: int, high: int) -> Staging:
    offset = s.point_offset[low : high + 1]
    points = slice(int(offset[0]), int(offset[-1]))
    return Staging(offset - offset[0], s.points[points], s.exclusive[points])
