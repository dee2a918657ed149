"""A loop on one rank's part of the mesh: copies on demand, and what needs none meanwhile.

Elements whose targets are all owned run while messages are under way [R14 7.1.1]. A loop that
writes through a map also executes the elements of other ranks that write what this rank owns, or
else sends what its elements have added to copies back to their owners.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.executor import StrategyAndVariant
from ..errors import MeshprepError
from ..kernel.bind import Slot, check_names
from ..loop import ParLoop
from ..plan.parts import LoopPart, PartPlan
from ..types.loops import Access, Loop
from ..types.maps import UInt8s, offsets_of, on_device
from .classes import ClassRanges, DevicePart, DeviceRuns, HostRuns, class_ranges, device_runs
from .dat import EXEC, HALO, ProgramDat, arrays_of
from .exchange import ALIGNED, Exchange, Transfer, Wanted
from .layouts import LoopLayouts
from .mpi import COMBINE
from .timings import LoopTimes, useful_bytes


class Reductions:
    """The globals among ``slots`` that a loop reduces into ``partial``; exec elements, ``ignored``.

    What elements add starts from zero on every rank, so that the value from before counts once. One
    Allgather sends them all, and every rank combines them in rank order: the bits are the same on
    all, whatever the MPI.
    """

    def __init__(self, comm: Any, slots: Sequence[Slot]) -> None:
        self._comm = comm
        self._slots = {i: s for i, s in enumerate(slots) if s.rows is None and s.written}
        sizes = [-(-s.dim * s.dtype.itemsize // ALIGNED) * ALIGNED for s in self._slots.values()]
        self._ends = offsets_of(sizes).tolist()
        self._own = np.zeros(self._ends[-1], np.uint8)
        self.partial = self._views(self._own)
        self.ignored = self._views(self._own.copy())
        self._all = np.zeros((comm.size, self._own.size), np.uint8)
        self._request: Any = None

    def begin(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Set what the ranks start from."""
        for i, slot in self._slots.items():
            for values in (self.partial[i], self.ignored[i]):
                values[:] = 0 if slot.access is Access.INC else arrays[i]

    def start(self) -> None:
        """Send."""
        if self._slots:
            self._request = self._comm.Iallgather(self._own, self._all.reshape(-1))

    def finish(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Wait, and bring the values into the arrays of the call."""
        if self._request is None:
            return
        self._request.Wait()
        self._request = None
        found = [self._views(row) for row in self._all]
        for i, slot in self._slots.items():
            combine = COMBINE[slot.access]
            total = found[0][i]
            for other in found[1:]:
                total = combine(total, other[i])
            arrays[i][:] = arrays[i] + total if slot.access is Access.INC else total

    def _views(self, buffer: UInt8s) -> Mapping[int, NDArray[Any]]:
        parts = zip(self._slots.items(), self._ends, strict=False)
        return {i: buffer[at : at + s.dim * s.dtype.itemsize].view(s.dtype) for (i, s), at in parts}


READING = (Access.READ, Access.RW)


class PartLoop:
    """Runs a loop as one of several ranks; see :class:`~.whole_loop.WholeLoop`."""

    def __init__(
        self, layouts: LoopLayouts, part: LoopPart, whole: PartPlan, exchange: Exchange
    ) -> None:
        plan = part.plan
        self.layouts = layouts
        self._on_device: dict[ParLoop, DevicePart] = {}
        self._part = part
        self._set = whole.sets[plan.loop.over]
        self._exchange = exchange
        writes_far = any(arg.conflicts for arg in plan.loop.args)
        self._again = writes_far and part.increments == "exec"
        self._back = writes_far and part.increments == "reverse"
        self._wants = wanted_lists(plan.loop, self._again, whole.partial)
        self._reductions = Reductions(exchange.comm, layouts.par_loop.slots)
        self._ranges: dict[StrategyAndVariant, ClassRanges] = {}
        run = plan.sizes[plan.loop.over]
        self.times = LoopTimes(
            useful_bytes=useful_bytes(plan.loop, plan.maps, plan.sizes),
            elements={
                "core": self._set.core,
                "boundary": self._set.owned - self._set.core,
                "exec": run - self._set.owned,
            },
        )

    def __call__(self, given: Mapping[str, Any]) -> None:
        begin = time.perf_counter()
        spent = self.times.seconds
        call = self._runs(self.layouts.taking(given), arrays_of(given))
        added = [given[a.name] for a in self._part.plan.loop.args if a.conflicts]
        if self._back:
            self._clear_copies(added)
        self._reductions.begin(call.arrays)
        self._run_owned(call, self._wanted(given))
        self._reductions.start()
        if self._again:
            now = time.perf_counter()
            call.run("exec", self._reductions.ignored)
            self.times.exec += time.perf_counter() - now
        if self._back:
            unique = list({id(dat): dat for dat in added}.values())
            self._finish(self._start([(dat, (EXEC, HALO)) for dat in unique], back=True))
        now = time.perf_counter()
        self._reductions.finish(call.arrays)
        self.times.wait += time.perf_counter() - now
        self.times.calls += 1
        self.times.other += time.perf_counter() - begin - (self.times.seconds - spent)

    def settle(self) -> None:
        """Nothing is owed."""

    def _run_owned(self, call: HostRuns | DeviceRuns, wanted: Sequence[Wanted]) -> None:
        reduced = self._reductions.partial
        if not wanted:
            now = time.perf_counter()
            call.run("owned", reduced)
            taken, own = time.perf_counter() - now, self._set
            share = own.core / own.owned if own.owned else 1.0
            self.times.core += share * taken
            self.times.boundary += (1 - share) * taken
            return
        transfer = self._start(wanted)
        now = time.perf_counter()
        call.core(reduced, transfer.test)
        self.times.core += time.perf_counter() - now
        self._finish(transfer)
        now = time.perf_counter()
        call.run("boundary", reduced)
        self.times.boundary += time.perf_counter() - now
        for dat, lists in wanted:
            dat.fresh |= set(lists)
        self.times.dats_exchanged += len(wanted)

    def _start(self, wanted: Sequence[Wanted], back: bool = False) -> Transfer:
        transfer = self._exchange.start(wanted, back)
        self.times.messages += len(transfer.pattern.sends)
        self.times.sent_bytes += transfer.pattern.sent_bytes
        return transfer

    def _finish(self, transfer: Transfer) -> None:
        now = time.perf_counter()
        transfer.finish()
        self.times.wait += time.perf_counter() - now

    def _wanted(self, given: Mapping[str, Any]) -> list[Wanted]:
        """The dats of this call with copies that are stale; each dat once."""
        found: dict[int, Wanted] = {}
        for name, lists in self._wants.items():
            dat = given[name]
            if isinstance(dat, ProgramDat) and not {EXEC, HALO} <= dat.fresh:
                stale = tuple(one for one in lists if one not in dat.fresh)
                if stale:
                    _, before = found.get(id(dat), (dat, ()))
                    found[id(dat)] = dat, (*before, *(s for s in stale if s not in before))
        return list(found.values())

    def _runs(self, loop: ParLoop, arrays: Mapping[str, Any]) -> HostRuns | DeviceRuns:
        if not any(on_device(value) for value in arrays.values()):
            call = loop.on_host(arrays)
            if call.way not in self._ranges:
                schedule = call.executor.schedule(call.way)
                self._ranges[call.way] = class_ranges(call.way, schedule, self._part, self._set)
            return HostRuns(call, self._ranges[call.way])
        check_names(loop.loop, loop.slots, arrays)
        if loop not in self._on_device:
            make = self.layouts.of_part(loop)
            self._on_device[loop] = DevicePart(make, self._part, self._set)
        return device_runs(self._on_device[loop], loop.loop, loop.slots, arrays)

    def _clear_copies(self, dats: Sequence[Any]) -> None:
        for dat in dats:
            if not isinstance(dat, ProgramDat):
                who = f"loop '{self._part.plan.loop.name}'"
                raise MeshprepError(f"{who} sends increments back, so what it adds to must be dats")
            self._exchange.clear_copies(dat)


def wanted_lists(loop: Loop, again: bool, partial: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Which copies of each dat a loop reads.

    ``again``: elements of other ranks run, too, and read their direct data. ``partial``: maps that
    exchange only what they reach.
    """
    maps: dict[str, list[str | None]] = {}
    for arg in loop.args:
        if not arg.is_global and arg.access in READING:
            maps.setdefault(arg.name, []).append(arg.map)
    return {name: lists for name, used in maps.items() if (lists := _lists(used, again, partial))}


def _lists(used: Sequence[str | None], again: bool, partial: Collection[str]) -> tuple[str, ...]:
    through = {name for name in used if name is not None}
    direct_again = again and None in used
    if not through:
        return (EXEC,) if direct_again else ()
    if len(through) == 1 and not direct_again and through <= set(partial):
        return tuple(through)
    return EXEC, HALO
