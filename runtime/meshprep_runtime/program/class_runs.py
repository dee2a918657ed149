"""One call of a loop on a part, class by class: on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from ..bind import Slot, bound
from ..cpu.executor import HostCall
from ..cuda.detect import on_device
from ..errors import MeshprepError
from ..loops import Loop
from .classes import ClassRanges
from .device_part import DevicePart

# Other arrays for some slots: what a part reduces into.
Reduced = Mapping[int, NDArray[Any]]


class ClassRuns(Protocol):
    """``arrays`` are the globals of the call, by slot, and on the host the dats."""

    @property
    def arrays(self) -> Sequence[Any]:
        """By slot."""

    def core(self, reduced: Reduced, between: Callable[[], None]) -> None:
        """Run core elements, and call something between their pieces."""

    def run(self, which: str, reduced: Reduced) -> None:
        """Run ``"owned"``, ``"boundary"`` or ``"exec"`` elements."""


@dataclass(frozen=True, eq=False)
class HostRuns:
    """On the host: slices of a schedule."""

    call: HostCall
    ranges: ClassRanges

    @property
    def arrays(self) -> Sequence[Any]:
        return self.call.arrays

    def core(self, reduced: Reduced, between: Callable[[], None]) -> None:
        for piece in self.ranges.core:
            self.call.run(piece, reduced)
            between()

    def run(self, which: str, reduced: Reduced) -> None:
        ranges = getattr(self.ranges, which)
        if ranges is not None:
            self.call.run(ranges, reduced)


@dataclass(frozen=True, eq=False)
class DeviceRuns:
    """On a GPU: a loop a class, queued one after the other."""

    part: DevicePart
    slots: Sequence[Slot]
    given: Mapping[str, Any]
    arrays: Sequence[Any]

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
