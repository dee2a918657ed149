"""A loop of a program over all of its set, timed."""

import time
from collections.abc import Mapping
from typing import Any

from ..cuda.detect import on_device
from ..loop import ParLoop
from ..plan.matrices import with_places
from .dat import arrays_of
from .layouts import LoopLayouts
from .timings import LoopTimes, useful_bytes

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
        self.times.calls += 1
        if any(on_device(value) for value in arrays.values()):
            self._on_device(loop, arrays)
            return
        begin = time.perf_counter()
        loop(**arrays)
        self.times.core += time.perf_counter() - begin

    def _on_device(self, loop: ParLoop, arrays: Mapping[str, Any]) -> None:
        from ..cuda.device import current

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
