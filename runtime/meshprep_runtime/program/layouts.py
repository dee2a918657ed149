"""Loops that take dats as they are stored, and the times of those over all of their set."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import MeshprepError
from ..kernel.bind import AOS, SOA, Layout
from ..loop import ParLoop
from ..plan.matrices import with_places
from ..plan.model import LoopPlan
from ..types.maps import on_device
from .dat import ProgramDat, arrays_of
from .timings import LoopTimes, useful_bytes

MakeLoop = Callable[[LoopPlan, Layout], ParLoop]


class LoopLayouts:
    """A loop of a program as a ParLoop, one for each layout of its dats that it has met.

    ``make`` gives a ParLoop from the plan of a loop and a layout; ``asked`` is the layout that its
    dats must have, None where it is that which they have. ``par_loop`` is what ran last, or will
    run on arrays that are no dats.
    """

    def __init__(self, make: MakeLoop, plan: LoopPlan, asked: Layout | None) -> None:
        self.plan = plan
        self._make, self._asked = make, asked
        self.par_loop = make(plan, AOS if asked is None else asked)
        self._made = {frozenset[str](): self.par_loop}

    def taking(self, given: Mapping[str, Any]) -> ParLoop:
        """The ParLoop for these dats, as they are stored now."""
        if self._asked is None:
            soa = frozenset([n for n, v in given.items() if isinstance(v, ProgramDat) and v.axis])
            if soa not in self._made:
                self._made[soa] = self._make(self.plan, dict.fromkeys(soa, SOA))
            self.par_loop = self._made[soa]
        return self.par_loop

    def of_part(self, loop: ParLoop) -> Callable[[LoopPlan], ParLoop]:
        """Makes a ParLoop of a part of this loop's elements, with the layout of ``loop``."""
        layout = {slot.name: SOA for slot in loop.slots if slot.soa}
        return lambda plan: self._make(plan, layout)


def check_sets(loop: ParLoop, given: Mapping[str, Any]) -> None:
    """Raise MeshprepError for a dat on another set than that of its argument."""
    for slot in loop.slots:
        value = given.get(slot.name)
        if isinstance(value, ProgramDat) and value.set != slot.rows:
            raise MeshprepError(
                f"loop '{loop.loop.name}': argument '{slot.name}' is a dat on '{value.set}', must "
                f"be one on '{slot.rows}'"
            )


# Loops on a GPU whose times are not asked for yet.
MOST_MARKS = 512


class WholeLoop:
    """A loop over all of its set: on one rank, or on a GPU."""

    def __init__(self, layouts: LoopLayouts) -> None:
        plan = layouts.plan
        reached = with_places(plan.loop, plan.maps, plan.sizes, plan.matrices)
        bytes_a_call = useful_bytes(plan.loop, *reached)
        elements = {"core": plan.sizes[plan.loop.over]}
        self.times = LoopTimes(useful_bytes=bytes_a_call, elements=elements)
        self.layouts = layouts
        self._marks: list[tuple[Any, Any, Any]] = []

    def __call__(self, given: Mapping[str, Any]) -> None:
        """Run it with dats and arrays, and add up what it took."""
        loop, arrays = self.layouts.taking(given), arrays_of(given)
        for value in arrays.values():
            if type(value) is not np.ndarray and on_device(value):
                self._on_device(loop, arrays)
                return
        self.on_host(loop, arrays)

    def on_host(self, loop: ParLoop, arrays: Mapping[str, Any]) -> None:
        """Run it with arrays of the host."""
        self.layouts.par_loop = loop
        self.times.calls += 1
        begin = time.perf_counter()
        loop(**arrays)
        self.times.core += time.perf_counter() - begin

    def _on_device(self, loop: ParLoop, arrays: Mapping[str, Any]) -> None:
        from ..cuda.device import current

        self.times.calls += 1
        device = current()
        start = device.mark()
        loop(**arrays)
        self._marks.append((device, start, device.mark()))
        if len(self._marks) >= MOST_MARKS:
            self.settle()

    def settle(self) -> None:
        """Add up what a GPU still owes."""
        self.times.core += sum(device.seconds(a, b) for device, a, b in self._marks)
        self._marks.clear()
