"""Loops that are noted once and run again and again, in compiled code where they are short."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from ..cpu.pool import BoundCode, OneThread, turn
from .chains.chain import Recorder
from .chains.records import RecordedLoop, ReducedGlobal
from .dat import ProgramDat

# Calls after which is looked which loops are known to be short: the first ones find that out.
LOOKS = 8, 64, 512


Call = tuple[RecordedLoop, dict[str, Any]]


class Replay:
    """Runs the loops of a function again, with the same arguments; made by ``Program.replay``.

    Loops that always run on one thread, as those of less than 10 us do, are run one after the other
    by one call of compiled code, once their first calls have found out how: 0.3 us a loop in place
    of 3; in ``timings`` each has a share by the bytes that it moves. Others are called as before:
    on ranks, on a GPU, with checkpoints and in a chain all.
    """

    def __init__(self, program: Recorder) -> None:
        self.calls: list[Call] = []
        self._program = program
        self._ran = 0
        self._runs: list[partial[None] | _Short] = []
        self._stored: list[tuple[ProgramDat | ReducedGlobal, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        """For copies, whose arrays are others."""
        return {**self.__dict__, "_ran": 0, "_runs": [], "_stored": []}

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Note a call; raises MeshprepError for arguments that do not fit."""
        loop.check(given)
        self.calls.append((loop, dict(given)))

    def flush(self) -> None:
        """Nothing waits."""

    def __call__(self) -> None:
        """Run the loops.

        Raises
        ------
        Exception
            What a loop raises; those after it have not run.
        """
        if self._program.active is None and self._is_as_before():
            for run in self._runs:
                run()
        else:
            for loop, given in self.calls:
                loop(**given)
        self._ran += 1
        if self._ran in LOOKS:
            self._look()

    def _is_as_before(self) -> bool:
        for dat, stored in self._stored:
            if dat.stored is not stored or dat.chain is not None or dat.dropped:
                self._ran, self._runs, self._stored = 0, [], []
                break
        return bool(self._runs)

    def _look(self) -> None:
        """Put together what can be run at once."""
        found, self._runs = [(loop, given, loop.alone(given)) for loop, given in self.calls], []
        for short, some in groupby(found, lambda one: bool(one[2])):
            if short:
                self._runs.append(_Short([*some]))
            else:
                self._runs += [partial(loop, **given) for loop, given, _ in some]
        dats = {id(v): v for _, given in self.calls for v in given.values() if hasattr(v, "stored")}
        self._stored = [(dat, dat.stored) for dat in dats.values()]


class _Short:
    """Loops that are run by one call of compiled code."""

    def __init__(self, calls: Sequence[tuple[RecordedLoop, dict[str, Any], list[BoundCode]]]):
        self._thread = OneThread([step for *_, steps in calls for step in steps])
        self._runners = [loop.runner for loop, *_ in calls]
        dats = [given[name] for loop, given, _ in calls for name in loop.loop.written]
        self._written = list({id(d): d for d in dats if isinstance(d, ProgramDat)}.values())
        moved = [one.times.useful_bytes for one in self._runners]
        self._shares = [one / max(sum(moved), 1) for one in moved]

    def __call__(self) -> None:
        begin = time.perf_counter()
        try:
            with turn():
                self._thread.run_or_raise()
        finally:
            for dat in self._written:
                dat.touch()
        took = time.perf_counter() - begin
        for runner, share in zip(self._runners, self._shares, strict=True):
            runner.times.calls += 1
            runner.times.core += share * took
