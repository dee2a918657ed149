"""A loop on one rank's part of the mesh, with messages for stale copies only.

Elements whose targets are all owned run while messages are under way [R14 7.1.1]. A loop
that writes through a map also executes those elements of other ranks that write to values
of this rank, or else sends what its elements have added to copies back to their owners.
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
from .classes import (
    ClassRanges,
    DevicePart,
    DeviceRuns,
    HostRuns,
    class_ranges,
    device_runs,
)
from .dat import EXEC, HALO, ProgramDat, arrays_of
from .exchange import ALIGNED, Exchange, Transfer, Wanted, round_up
from .layouts import LoopLayouts
from .mpi import COMBINE
from .ranks import NOT_A_DAT, ROOM, Meeting, RankGroup, loop_name
from .timings import LoopTimes, useful_bytes


class Reductions:
    """The globals that a loop reduces, over all ranks.

    Owned elements reduce into ``partial``; exec elements, which other ranks own, into
    ``ignored``. Both are by slot. A sum starts from zero on every rank, so that the value
    from before the loop counts once. One Allgather sends all globals, and every rank
    combines them in the order of the ranks: the bits are the same on all, with any MPI.
    """

    def __init__(self, ranks: RankGroup, what: str, slots: Sequence[Slot]) -> None:
        self._ranks = ranks
        self._what = what
        self._slots = {i: s for i, s in enumerate(slots) if s.rows is None and s.written}
        # One buffer holds all globals, one after the other.
        sizes = [
            round_up(slot.dim * slot.dtype.itemsize, ALIGNED)
            for slot in self._slots.values()
        ]
        self._starts = offsets_of(sizes).tolist()
        self._buffer = np.zeros(self._starts[-1], np.uint8)
        self.partial = self._views(self._buffer)
        self.ignored = self._views(self._buffer.copy())
        self._buffer_of_ranks = np.zeros((ranks.size, self._buffer.size), np.uint8)
        self._meeting: Meeting | None = None
        self._request: Any = None

    def begin(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Set the values that the reductions of this rank start from."""
        for i, slot in self._slots.items():
            for values in (self.partial[i], self.ignored[i]):
                if slot.access is Access.INC:
                    values[:] = 0
                else:
                    values[:] = arrays[i]

    def start(self) -> None:
        """Send the values of this rank to all ranks."""
        if not self._slots:
            return
        if self._buffer.size <= ROOM:
            self._meeting = self._ranks.meet(self._what, self._buffer)
            return
        # The block of a meeting has no room for the values: send them in a second message.
        self._meeting = self._ranks.meet(self._what, self._buffer[:0])
        self._request = self._ranks.comm.Iallgather(
            self._buffer, self._buffer_of_ranks.reshape(-1)
        )

    def finish(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Wait for the values of all ranks, and combine them into the call's arrays."""
        if self._meeting is None:
            return
        # Small values came with the block of the meeting, large ones in a message of their
        # own.
        blocks = self._meeting.finish()
        self._meeting = None
        if self._request is None:
            self._buffer_of_ranks[:] = blocks[:, : self._buffer.size]
        else:
            self._ranks.wait([self._request], self._what)
            self._request = None
        # Combine in the order of the ranks.
        values_of_ranks = [self._views(buffer) for buffer in self._buffer_of_ranks]
        for i, slot in self._slots.items():
            combine = COMBINE[slot.access]
            total = values_of_ranks[0][i]
            for values in values_of_ranks[1:]:
                total = combine(total, values[i])
            if slot.access is Access.INC:
                arrays[i][:] = arrays[i] + total
            else:
                arrays[i][:] = total

    def _views(self, buffer: UInt8s) -> Mapping[int, NDArray[Any]]:
        """The globals in a buffer, by slot."""
        views = {}
        for (i, slot), start in zip(self._slots.items(), self._starts, strict=False):
            values = buffer[start : start + slot.dim * slot.dtype.itemsize]
            views[i] = values.view(slot.dtype)
        return views


# Accesses that use the values from before the loop.
READING = (Access.READ, Access.RW)


class PartLoop:
    """A loop of one of several ranks, over the part of the set that this rank has.

    See :class:`~.layouts.WholeLoop` for a loop over the whole set.
    """

    def __init__(
        self, layouts: LoopLayouts, part: LoopPart, whole: PartPlan, exchange: Exchange
    ) -> None:
        plan = part.plan
        self.layouts = layouts
        self._on_device: dict[ParLoop, DevicePart] = {}
        self._part = part
        self._names = [slot.name for slot in layouts.par_loop.slots if slot.rows]
        self._set = whole.sets[plan.loop.over]
        self._exchange = exchange
        # What happens with values that elements of this rank add to copies: the owner runs
        # the elements again, or the values are sent back to it.
        writes_through_maps = any(arg.conflicts for arg in plan.loop.args)
        self._runs_exec = writes_through_maps and part.increments == "exec"
        self._sends_back = writes_through_maps and part.increments == "reverse"
        self._lists_read = wanted_lists(plan.loop, self._runs_exec, whole.partial)
        self._what = loop_name(plan.loop.name)
        self._reductions = Reductions(exchange.ranks, self._what, layouts.par_loop.slots)
        self._ranges: dict[StrategyAndVariant, ClassRanges] = {}
        n_elements = plan.sizes[plan.loop.over]
        self.times = LoopTimes(
            useful_bytes=useful_bytes(plan.loop, plan.maps, plan.sizes),
            elements={
                "core": self._set.core,
                "boundary": self._set.owned - self._set.core,
                "exec": n_elements - self._set.owned,
            },
        )

    def __call__(self, given: Mapping[str, Any]) -> None:
        """Run the loop, and add up the times of its phases."""
        begin = time.perf_counter()
        seconds_before = self.times.seconds
        self._exchange.ranks.begin(self._what, self._numbers_of_dats(given))
        call = self._runs(self.layouts.taking(given), arrays_of(given))
        incremented = [given[a.name] for a in self._part.plan.loop.args if a.conflicts]
        if self._sends_back:
            self._clear_copies(incremented)

        # Run the owned elements, while stale copies are under way.
        self._reductions.begin(call.arrays)
        self._run_owned(call, self._stale_copies(given))
        self._reductions.start()

        # Run elements of other ranks that add to owned values, or send increments back.
        if self._runs_exec:
            now = time.perf_counter()
            call.run("exec", self._reductions.ignored)
            self.times.exec += time.perf_counter() - now
        if self._sends_back:
            unique = list({id(dat): dat for dat in incremented}.values())
            self._finish(self._start([(dat, (EXEC, HALO)) for dat in unique], back=True))

        now = time.perf_counter()
        self._reductions.finish(call.arrays)
        self.times.wait += time.perf_counter() - now
        self.times.calls += 1
        seconds_counted = self.times.seconds - seconds_before
        self.times.other += time.perf_counter() - begin - seconds_counted

    def settle(self) -> None:
        """Do nothing: every call adds up its times itself."""

    def _numbers_of_dats(self, given: Mapping[str, Any]) -> list[tuple[str, int]]:
        """The number of the dat of each argument, as messages name it."""
        numbers = []
        for name in self._names:
            value = given.get(name)
            number = value.number if isinstance(value, ProgramDat) else NOT_A_DAT
            numbers.append((name, number))
        return numbers

    def _run_owned(self, call: HostRuns | DeviceRuns, wanted: Sequence[Wanted]) -> None:
        """Run core and boundary elements, with messages for stale copies between them."""
        reduced = self._reductions.partial
        if not wanted:
            now = time.perf_counter()
            call.run("owned", reduced)
            seconds = time.perf_counter() - now
            # Both classes have run in one; each gets the share of its elements.
            share_of_core = 1.0
            if self._set.owned:
                share_of_core = self._set.core / self._set.owned
            self.times.core += share_of_core * seconds
            self.times.boundary += (1 - share_of_core) * seconds
            return
        # Core elements read no copies: they run while messages are under way.
        transfer = self._start(wanted)
        now = time.perf_counter()
        call.core(reduced, transfer.test)
        self.times.core += time.perf_counter() - now
        # Boundary elements read the copies that have arrived.
        self._finish(transfer)
        now = time.perf_counter()
        call.run("boundary", reduced)
        self.times.boundary += time.perf_counter() - now
        for dat, lists in wanted:
            dat.fresh |= set(lists)
        self.times.dats_exchanged += len(wanted)

    def _start(self, wanted: Sequence[Wanted], back: bool = False) -> Transfer:
        transfer = self._exchange.start(self._what, wanted, back)
        self.times.messages += len(transfer.pattern.sends)
        self.times.sent_bytes += transfer.pattern.sent_bytes
        return transfer

    def _finish(self, transfer: Transfer) -> None:
        now = time.perf_counter()
        transfer.finish()
        self.times.wait += time.perf_counter() - now

    def _stale_copies(self, given: Mapping[str, Any]) -> list[Wanted]:
        """The dats of this call with stale copies that the loop reads; each dat once."""
        stale_of_dats: dict[int, Wanted] = {}
        for name, lists in self._lists_read.items():
            dat = given[name]
            if not isinstance(dat, ProgramDat) or {EXEC, HALO} <= dat.fresh:
                continue
            stale = [
                name_of_list for name_of_list in lists if name_of_list not in dat.fresh
            ]
            if stale:
                # Several arguments may be one dat: join their lists.
                _, before = stale_of_dats.get(id(dat), (dat, ()))
                stale_of_dats[id(dat)] = dat, tuple(dict.fromkeys([*before, *stale]))
        return list(stale_of_dats.values())

    def _runs(self, loop: ParLoop, arrays: Mapping[str, Any]) -> HostRuns | DeviceRuns:
        """The call of a loop, on the host or on a GPU, ready to run class by class."""
        # Ranges of the classes depend on the strategy: find them once for each.
        if not any(on_device(value) for value in arrays.values()):
            call = loop.on_host(arrays)
            if call.way not in self._ranges:
                schedule = call.executor.schedule(call.way)
                self._ranges[call.way] = class_ranges(
                    way=call.way, schedule=schedule, part=self._part, of_set=self._set
                )
            return HostRuns(call, self._ranges[call.way])
        check_names(loop.loop, loop.slots, arrays)
        if loop not in self._on_device:
            make = self.layouts.of_part(loop)
            self._on_device[loop] = DevicePart(make, self._part, self._set)
        return device_runs(
            part=self._on_device[loop], loop=loop.loop, slots=loop.slots, given=arrays
        )

    def _clear_copies(self, dats: Sequence[Any]) -> None:
        for dat in dats:
            if not isinstance(dat, ProgramDat):
                raise MeshprepError(
                    f"loop '{self._part.plan.loop.name}' sends increments back, "
                    "so what it adds to must be dats"
                )
            self._exchange.clear_copies(dat)


def wanted_lists(
    loop: Loop, runs_exec: bool, partial: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The lists of copies of each dat that a loop reads.

    With ``runs_exec``, elements of other ranks run, too, and read their direct data.
    ``partial`` names the maps with lists of their own, of the copies that they reach.
    """
    maps_of_dat: dict[str, list[str | None]] = {}
    for arg in loop.args:
        if not arg.is_global and arg.access in READING:
            maps_of_dat.setdefault(arg.name, []).append(arg.map)
    lists_of_dat = {}
    for name, maps in maps_of_dat.items():
        lists = _lists_for_maps(maps, runs_exec, partial)
        if lists:
            lists_of_dat[name] = lists
    return lists_of_dat


def _lists_for_maps(
    maps: Sequence[str | None], runs_exec: bool, partial: Collection[str]
) -> tuple[str, ...]:
    """The lists of copies that are read through maps; None stands for direct access."""
    through = {name for name in maps if name is not None}
    exec_reads_directly = runs_exec and None in maps
    if not through:
        if exec_reads_directly:
            return (EXEC,)
        return ()
    if len(through) == 1 and not exec_reads_directly and through <= set(partial):
        return tuple(through)
    return EXEC, HALO
