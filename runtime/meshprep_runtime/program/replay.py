"""Record the calls of loops once and repeat them, short loops in compiled code."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from ..cpu.kept import KeptArrays
from ..cpu.pool import BoundCode, OneThread, check_not_half_done, turn
from .chains.chain import Recorder
from .chains.records import RecordedLoop, ReducedGlobal
from .dat import ProgramDat

# The numbers of calls after which a replay looks for short loops. The first calls of a loop
# find out whether it is short.
LOOKS = (8, 64, 512)

# A loop with the arguments of one call.
Call = tuple[RecordedLoop, dict[str, Any]]
# The same with its compiled steps; none for a loop that may run on several threads.
CallWithSteps = tuple[RecordedLoop, dict[str, Any], list[BoundCode]]


class Replay:
    """The loops of a function, to be run again with the same arguments.

    Made by ``Program.replay``. Loops that always run on one thread, as those of less than
    10 us do, run one after the other in one call of compiled code, once their first calls
    have found out how: 0.3 us a loop instead of 3. In ``timings`` each has a share of the
    time by the bytes that it moves. Other loops are called as before; so are all loops on
    ranks, on a GPU, with checkpoints and in a chain.
    """

    def __init__(self, program: Recorder) -> None:
        self.calls: list[Call] = []
        self._program = program
        # The calls of this object since it last had to look at its arrays anew.
        self._n_calls = 0
        self._runs: list[partial[None] | _ShortLoops] = []
        # Arrays whose addresses are in compiled code: of dats and globals, and all of them.
        self._stored: list[tuple[ProgramDat | ReducedGlobal, Any]] = []
        self._kept: KeptArrays | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy, whose arrays are others."""
        return {**self.__dict__, "_n_calls": 0, "_runs": [], "_stored": [], "_kept": None}

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Record a call; raises MeshprepError for arguments that do not fit."""
        loop.check(given)
        self.calls.append((loop, dict(given)))

    def flush(self) -> None:
        """Do nothing: no recorded call waits to be run."""

    def __call__(self) -> None:
        """Run the loops.

        Raises
        ------
        Exception
            The exception of a loop; the loops after it have not run.
        """
        # Bound runs know their arrays: call by call is for all other cases.
        if self._program.active is None and self._arrays_are_as_before():
            for run in self._runs:
                run()
        else:
            for loop, given in self.calls:
                loop(**given)
        self._n_calls += 1
        if self._n_calls in LOOKS:
            self._group_short_loops()

    def _arrays_are_as_before(self) -> bool:
        """True where compiled code is ready for the arrays that the dats have now."""
        if not self._runs:
            return False
        same = self._kept is None or self._kept.are_as_before()
        for dat, stored in self._stored:
            if dat.stored is not stored or dat.chain is not None or dat.dropped:
                same = False
        if not same:
            # Call the loops one by one again: they check the new arrays.
            self._n_calls = 0
            self._runs = []
            self._stored = []
            self._kept = None
        return same

    def _group_short_loops(self) -> None:
        """Put short loops that follow each other together, to run in one compiled call."""
        calls = [(loop, arguments, loop.alone(arguments)) for loop, arguments in self.calls]
        self._runs = []
        for is_short, group in groupby(calls, lambda call: bool(call[2])):
            if is_short:
                self._runs.append(_ShortLoops([*group]))
            else:
                self._runs += [partial(loop, **arguments) for loop, arguments, _ in group]

        # Remember the arrays that the compiled code refers to by address.
        stored: dict[int, tuple[ProgramDat | ReducedGlobal, Any]] = {}
        arrays: dict[int, Any] = {}
        for _, arguments, steps in calls:
            for value in arguments.values():
                array = value
                if hasattr(value, "stored"):
                    array = value.stored
                    stored[id(value)] = (value, array)
                if steps and isinstance(array, np.ndarray):
                    arrays[id(array)] = array
        self._stored = list(stored.values())
        # Without short loops there is no compiled code that needs its arrays.
        self._kept = None
        if arrays:
            self._kept = KeptArrays(list(arrays.values()))


class _ShortLoops:
    """Loops that run one after the other in one call of compiled code."""

    def __init__(self, calls: Sequence[CallWithSteps]):
        all_steps: list[BoundCode] = []
        written: dict[int, ProgramDat] = {}
        for loop, given, steps in calls:
            all_steps += steps
            for name in loop.loop.written:
                if isinstance(given[name], ProgramDat):
                    written[id(given[name])] = given[name]
        self._thread = OneThread(all_steps)
        self._written = list(written.values())
        self._runners = [loop.runner for loop, *_ in calls]
        # The share of each loop in the time: by the bytes that it moves.
        useful_bytes = [runner.times.useful_bytes for runner in self._runners]
        total_bytes = max(sum(useful_bytes), 1)
        self._shares = [n_bytes / total_bytes for n_bytes in useful_bytes]

    def __call__(self) -> None:
        begin = time.perf_counter()
        try:
            with turn():
                check_not_half_done()
                self._thread.run_or_raise()
        finally:
            for dat in self._written:
                dat.touch()
        seconds = time.perf_counter() - begin
        for runner, share in zip(self._runners, self._shares, strict=True):
            runner.times.calls += 1
            runner.times.core += share * seconds
