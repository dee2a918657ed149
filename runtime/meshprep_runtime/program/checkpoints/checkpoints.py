"""Checkpoints of a program: each call of a loop passes here before and after it runs [R14 6.1]."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...kernel.analysis import reach, stable
from ...loops import Access, Loop
from ..chains.reduced import ReducedGlobal
from ..dat import ProgramDat
from ..vote import ALONE, together
from .clock import Clock
from .decisions import Decisions
from .file import Checkpoint
from .generations import Generations
from .period import calls_to_wait, period

# Calls after which a dat that no loop has met is saved all the same.
WINDOW = 64
# Calls among which a period is looked for.
RECENT = 256


class CheckedPlan(Protocol):
    """What of a plan checkpoints need."""

    @property
    def mesh_hash(self) -> str:
        """Of the mesh, or of one rank's part."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Of the sets, on all ranks together."""


class Checkpoints:
    """Saves the state of a program now and then, and brings a new run of it there.

    Parameters
    ----------
    path : Path
        Of the file. Where it exists, the program goes on from it: until its entry, calls of loops
        do nothing but hand out the globals that were logged.
    every : float
        Seconds between checkpoints.
    plan : CheckedPlan
    comm : communicator
        Of the ranks that save and go on together.

    Raises
    ------
    MeshprepError
        On all ranks, for files of another plan or number of ranks, or that are damaged with those
        before them.
    """

    def __init__(self, path: Path, every: float, plan: CheckedPlan, comm: Any = ALONE) -> None:
        self._files = Generations(path, plan.mesh_hash, comm)
        self._clock, self._comm, self._sizes = Clock(every, comm), comm, plan.sizes
        self.dats: list[ProgramDat] = []
        self._known: dict[int, int] = {}
        self._last_numbers: tuple[Any, dict[str, int]] = (None, {})
        self._replay = self._files.read()
        self._calls: list[str] = []
        self._globals: list[bytes] = []
        self._modified: set[int] = set()
        self._names: dict[str, str] = {}
        self._pending: Decisions[int] | None = None
        self._entry = 0
        self._saved: dict[int, NDArray[Any]] = {}
        self._asked = False
        self._recent: deque[tuple[str, Mapping[int, bool]]] = deque(maxlen=RECENT)
        self._begin_at: int | None = None

    def here(self) -> None:
        """Let the next checkpoint begin before the next loop, whatever the clock says."""
        self._asked = self._replay is None

    def before(self, loop: Loop, kernel: Any, given: Mapping[str, Any]) -> bool:
        """Note a call that is about to run; True when it must not run, being replayed."""
        numbers = self._numbers(loop, given)
        new = loop.name not in self._names
        name = self._name(loop, kernel)
        if self._replay is not None:
            if len(self._calls) < len(self._replay.calls):
                self._check_call(self._replay.calls[len(self._calls)], name, loop, new)
                self._hand_out(self._replay, name, loop, given)
                return True
            self._restore(self._replay)
        full = {numbers[a.name]: a.full for a in loop.args if not a.is_global}
        if self._pending is None and self._is_due(loop):
            self._pending, self._entry = Decisions(self._modified), len(self._calls)
            self._saved, self._asked, self._begin_at = {}, False, None
        if self._pending is not None:
            self._save(self._pending, full)
        self._recent.append((name, full))
        return False

    def after(self, loop: Loop, given: Mapping[str, Any]) -> None:
        """Note what a call has changed."""
        self._calls.append(self._names[loop.name])
        self._globals.append(b"".join(v.tobytes() for v in _changed_globals(loop, given)))
        self._note_changes(loop, given)

    def _note_changes(self, loop: Loop, given: Mapping[str, Any]) -> None:
        numbers = self._numbers(loop, given)
        self._modified.update(numbers[name] for name in loop.written)

    def _is_due(self, loop: Loop) -> bool:
        """At the cheapest call of a period once the time has come, or where a loop writes."""
        n = len(self._calls)
        if not self._asked and self._begin_at is None:
            if not self._clock.is_due():
                return False
            recent = [*self._recent]
            found = period(recent)
            if found is None:
                return any(a.access is Access.WRITE for a in loop.args)
            # Of all ranks, so that they wait for the same call.
            sizes = {
                i: self._sizes[dat.set] * dat.dim * dat.dtype.itemsize
                for i, dat in enumerate(self.dats)
            }
            last = [full for _, full in recent[-found:]]
            self._begin_at = n + calls_to_wait(last, self._modified, sizes)
        return self._asked or (self._begin_at is not None and n >= self._begin_at)

    def _save(self, pending: Decisions[int], full: Mapping[int, bool]) -> None:
        now = [*pending.before(full)]
        if len(self._calls) - self._entry >= WINDOW:
            now += [*pending.flagged]
            pending.flagged.clear()
        for number in now:
            self._saved[number] = np.array(self.dats[number].values())
        if not pending.flagged:
            calls, logged = self._calls[: self._entry], self._globals[: self._entry]
            self._files.write(Checkpoint(calls, logged, self._saved))
            self._pending = None
            self._clock.restart()

    def _check_call(self, logged: str, name: str, loop: Loop, new: bool) -> None:
        """Compare a call with the checkpoint; loops that are new on all ranks by a vote."""

        def check() -> None:
            if logged != name:
                raise MeshprepError(
                    f"{self._files.newest}: a checkpoint of another program: call "
                    f"{len(self._calls) + 1} is of loop '{loop.name}', in the checkpoint it is "
                    f"'{logged.split()[0]}', or its kernel has changed: remove the file to begin "
                    "anew"
                )

        if new:
            together(self._comm, check)
        else:
            check()

    def _hand_out(
        self, replay: Checkpoint, name: str, loop: Loop, given: Mapping[str, Any]
    ) -> None:
        logged, at = replay.globals[len(self._calls)], 0
        for values in _changed_globals(loop, given):
            values[:] = np.frombuffer(logged, values.dtype, values.size, at)
            at += values.nbytes
        self._calls.append(name)
        self._globals.append(logged)
        self._note_changes(loop, given)

    def _restore(self, replay: Checkpoint) -> None:
        for number, values in replay.dats.items():
            self.dats[number].values(write=True)[:] = values
        self._replay = None
        self._clock.restart()

    def _numbers(self, loop: Loop, given: Mapping[str, Any]) -> dict[str, int]:
        if self._last_numbers[0] is given:
            return self._last_numbers[1]
        if len(self._known) != len(self.dats):
            self._known = {id(dat): i for i, dat in enumerate(self.dats)}
        known, found = self._known, {}
        for arg in loop.args:
            if not arg.is_global:
                number = known.get(id(given[arg.name]))
                if number is None or not isinstance(self.dats[number].stored, np.ndarray):
                    raise MeshprepError(
                        f"loop '{loop.name}': argument '{arg.name}' cannot be saved in a "
                        "checkpoint: make it by Program.dat, on the host"
                    )
                found[arg.name] = number
        # asked for again after the call
        self._last_numbers = (given, found)
        return found

    def _name(self, loop: Loop, kernel: Any) -> str:
        if loop.name not in self._names:
            words = repr((loop.to_dict(), stable(reach(kernel))))
            digest = hashlib.sha256(words.encode()).hexdigest()
            self._names[loop.name] = f"{loop.name} {digest}"
        return self._names[loop.name]


def _changed_globals(loop: Loop, given: Mapping[str, Any]) -> list[NDArray[Any]]:
    found = []
    for arg in loop.args:
        if arg.is_global and arg.access is not Access.READ:
            value = given[arg.name]
            found.append(value.stored if isinstance(value, ReducedGlobal) else value)
    return found
