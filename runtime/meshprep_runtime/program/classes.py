"""A loop on one part, class by class: core in pieces, boundary, exec; on the host or on a GPU."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.executor import HostCall, StrategyAndVariant
from ..cpu.schedule import Ranges, Schedule, elements
from ..cuda.detect import on_device
from ..errors import MeshprepError
from ..kernel.bind import Slot, bound
from ..loops import Loop
from ..plan.parts import LoopPart, SetPart
from .device_part import DevicePart

# Core runs in at most so many pieces, none smaller; messages are looked after in between.
MOST_PIECES, LEAST_ELEMENTS, LEAST_BLOCKS = 16, 2048, 4


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """Parts of a schedule."""

    core: tuple[Ranges, ...]  # in pieces
    # None where there are no elements; owned is core and boundary in one.
    boundary: Ranges | None
    exec: Ranges | None
    owned: Ranges | None


def class_ranges(
    way: StrategyAndVariant, schedule: Schedule, part: LoopPart, of_set: SetPart
) -> ClassRanges:
    """Where the classes lie in the schedule of a strategy.

    Raises MeshprepError for a strategy that does not run class after class.
    """
    strategy, variant = way
    between: Callable[[int, int], Ranges]
    if strategy == "sequential":
        end = part.plan.sizes[part.plan.loop.over]
        core, owned, between, least = of_set.core, of_set.owned, elements, LEAST_ELEMENTS
    elif strategy in ("hierarchical", "block-permute") and variant is not None:
        colours = part.colours[variant.name]
        at = [colours.core, colours.owned, variant.n_block_colours]
        core, owned, end = variant.block_colour_offset[at].tolist()
        between, least = schedule.between, LEAST_BLOCKS
    else:
        raise MeshprepError(
            f"loop '{part.plan.loop.name}': strategy '{strategy}' cannot run a part of a mesh, "
            "class after class: use sequential, hierarchical or block-permute"
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

    part: DevicePart
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
    part: DevicePart, loop: Loop, slots: Sequence[Slot], given: Mapping[str, Any]
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
