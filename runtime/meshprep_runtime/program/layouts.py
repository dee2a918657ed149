"""Run loops on dats in any layout, and time the loops that run over a whole set."""

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
    """A loop of a program as ParLoops: one for each combination of layouts of its dats.

    ``make`` makes a ParLoop from the plan of a loop and a layout. ``required`` is the
    layout that the dats must have; with None each dat may have any. ``par_loop`` is the
    ParLoop that ran last; it runs on arrays that are no dats.
    """

    def __init__(self, make: MakeLoop, plan: LoopPlan, required: Layout | None) -> None:
        self.plan = plan
        self._make = make
        self._required = required
        self.par_loop = make(plan, AOS if required is None else required)
        # By the names of the arguments in SoA.
        self._par_loops = {frozenset[str](): self.par_loop}

    def taking(self, given: Mapping[str, Any]) -> ParLoop:
        """The ParLoop for dats in the layouts that these are stored in now."""
        if self._required is not None:
            return self.par_loop
        soa = frozenset(
            [n for n, v in given.items() if isinstance(v, ProgramDat) and v.axis]
        )
        if soa not in self._par_loops:
            self._par_loops[soa] = self._make(self.plan, dict.fromkeys(soa, SOA))
        self.par_loop = self._par_loops[soa]
        return self.par_loop

    def of_part(self, loop: ParLoop) -> Callable[[LoopPlan], ParLoop]:
        """A function that makes a ParLoop over some of the elements.

        It takes their plan; the layout is that of ``loop``.
        """
        layout = {slot.name: SOA for slot in loop.slots if slot.soa}
        return lambda plan: self._make(plan, layout)


def check_sets(loop: ParLoop, given: Mapping[str, Any]) -> None:
    """Raise MeshprepError for a dat on another set than that of its argument."""
    for slot in loop.slots:
        value = given.get(slot.name)
        if isinstance(value, ProgramDat) and value.set != slot.rows:
            raise MeshprepError(
                f"loop '{loop.loop.name}': argument '{slot.name}' is a dat on "
                f"'{value.set}', must be one on '{slot.rows}'"
            )


# The most calls on a GPU whose marks of time may wait to be read.
MOST_MARKS = 512


class WholeLoop:
    """A loop over all of its set: on one rank, or on a GPU."""

    def __init__(self, layouts: LoopLayouts) -> None:
        plan = layouts.plan
        # A loop that adds to a matrix moves its nonzeros, too.
        reached = with_places(
            loop=plan.loop, maps=plan.maps, sizes=plan.sizes, matrices=plan.matrices
        )
        bytes_a_call = useful_bytes(plan.loop, *reached)
        elements = {"core": plan.sizes[plan.loop.over]}
        self.times = LoopTimes(useful_bytes=bytes_a_call, elements=elements)
        self.layouts = layouts
        self._marks: list[tuple[Any, Any, Any]] = []

    def __call__(self, given: Mapping[str, Any]) -> None:
        """Run the loop with dats and arrays, and add up the time."""
        loop = self.layouts.taking(given)
        arrays = arrays_of(given)
        for value in arrays.values():
            if type(value) is not np.ndarray and on_device(value):
                self._on_device(loop, arrays)
                return
        self.on_host(loop, arrays)

    def on_host(self, loop: ParLoop, arrays: Mapping[str, Any]) -> None:
        """Run the loop with arrays of the host, and add up the time."""
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
        """Wait for the GPU, and add up the times of its calls that were not read yet."""
        self.times.core += sum(device.seconds(a, b) for device, a, b in self._marks)
        self._marks.clear()
