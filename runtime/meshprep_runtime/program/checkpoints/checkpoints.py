"""Checkpoints of a program: each loop, or chain in tiles, runs from here [R14 6.1]."""

import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError, check_number
from ...plan.model import PlanContent
from ..chains.records import RecordedLoop
from ..dat import ProgramDat, check_own_memory
from ..distributed import DistributedPlan
from ..mpi import ALONE, together
from .generations import Checkpoint, Generations
from .steps import Step, Steps, title_of

# Calls after which a dat that no loop has met is saved all the same.
WINDOW = 64
# Calls among which a period is looked for.
RECENT = 256


class Checkpoints:
    """Saves the state of a program now and then, and brings a new run of it there.

    Where the file ``path`` exists, the program goes on from it: until its entry, calls of loops do
    nothing but hand out the globals that were logged. ``every`` are the seconds between
    checkpoints, ``comm`` the ranks that save and go on together, and ``steps`` has the dats of the
    program. Raises MeshprepError on all ranks, for files of another plan or number of ranks, or
    that are damaged with those before them.
    """

    def __init__(
        self, path: Path, every: float, plan: PlanContent | DistributedPlan, comm: Any = ALONE
    ) -> None:
        check_number("every", every)
        self._files = Generations(path, plan.mesh_hash, comm)
        self._clock, self._comm, self._sizes = Clock(every, comm), comm, plan.sizes
        self.steps = Steps()
        self._dats = self.steps.dats
        self._replay = self._files.read()
        self._calls: list[str] = []
        self._globals: list[bytes] = []
        self._met: set[str] = set()
        self._modified: set[int] = set()
        self._pending: set[int] | None = None
        self._entry = 0
        self._saved: dict[int, NDArray[Any]] = {}
        self._asked = self._inside = self._held = self._failed = False
        self._recent: deque[tuple[str, Mapping[int, bool]]] = deque(maxlen=RECENT)
        self._begin_at: int | None = None

    def keep(self, dat: ProgramDat) -> None:
        """Save a dat from now on, which the program has just made, with an array of its own."""
        check_own_memory(dat, self._dats)
        self._dats.append(dat)
        dat.watch = self

    def before_change(self, dat: ProgramDat) -> None:
        """Save what the program itself is about to change, where it is not decided yet."""
        number = self.steps.number(dat)
        if self._pending is not None and number in self._pending and not dat.dropped:
            self._pending.discard(number)
            self._saved[number] = np.array(dat.values())

    def after_change(self, dat: ProgramDat) -> None:
        """Count a dat as changed, which the program did itself and does again when it goes on.

        What it does before its first loop is the same in every run.
        """
        number = self.steps.number(dat)
        if number is None or self._inside or not self._calls:
            return
        self._modified.add(number)
        if self._pending is not None and number in self._pending:
            # its values of the entry are gone
            self._pending, self._asked = None, True

    def here(self) -> None:
        """Let the next checkpoint begin before the next loop, whatever the clock says.

        Raises MeshprepError on all ranks after a step that raised on one.
        """
        together(self._comm, self._refuse_after_failure)
        self._asked = self._replay is None

    def _refuse_after_failure(self) -> None:
        if self._failed:
            raise MeshprepError(
                "no checkpoint can begin after a loop that raised an exception, as a new run would "
                "not meet it: end this run and start it again"
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """No checkpoint begins: what runs now is not what the program runs when it goes on."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def run(self, step: Step, work: Callable[[], None]) -> None:
        """Run a step by ``work``; while the program goes on from a file, hand out its globals.

        A loop that runs as part of a step is none of its own. After a step that raised nothing is
        saved: a new run goes on from before it, and meets the exception again.
        """
        if self._inside:
            work()
            return
        if self._replay is not None:
            if len(self._calls) < len(self._replay.calls):
                self._hand_out(self._replay, step)
                return
            self._restore(self._replay)
        self._before(step)
        self._inside = True
        try:
            work()
        except BaseException:
            self._failed = True
            raise
        finally:
            self._inside = False
        self._note(step, b"".join(values.tobytes() for values in step.globals))

    def _before(self, step: Step) -> None:
        if self._pending is None and not self._held and self._is_due(step):
            self._asked, self._begin_at = False, None
            self._failed = any(self._comm.allgather(self._failed))
            if self._failed:
                self._clock.restart()
            else:
                self._pending, self._entry = set(self._modified), len(self._calls)
                self._saved = {}
        if self._pending is not None:
            self._save(self._pending, step)
        self._recent.append((step.name, step.full))

    def _note(self, step: Step, logged: bytes) -> None:
        self._calls.append(step.name)
        self._globals.append(logged)
        self._modified |= step.changed

    def _is_due(self, step: Step) -> bool:
        """At the cheapest call of a period once the time has come, or where a loop writes."""
        n = len(self._calls)
        if not self._asked and self._begin_at is None:
            if not self._clock.is_due():
                return False
            recent = [*self._recent]
            found = period(recent)
            if found is None:
                return step.writes
            # Of all ranks, so that they wait for the same call; matrices are on one rank.
            sizes = {
                i: self._sizes.get(dat.set, dat.owned) * dat.dim * dat.dtype.itemsize
                for i, dat in enumerate(self._dats)
            }
            last = [full for _, full in recent[-found:]]
            self._begin_at = n + calls_to_wait(last, self._modified, sizes)
        return self._asked or (self._begin_at is not None and n >= self._begin_at)

    def _save(self, pending: set[int], step: Step) -> None:
        # What is zero takes no room, but a new run may have begun with other values.
        now = [*(pending & step.zero), *decide(pending, step.full)]
        if len(self._calls) - self._entry >= WINDOW:
            now += [number for number in pending if not self._dats[number].dropped]
            pending.clear()
        for number in now:
            self._saved[number] = np.array(self._dats[number].values())
        if not pending:
            calls, logged = self._calls[: self._entry], self._globals[: self._entry]
            self._files.write(Checkpoint(calls, logged, self._saved))
            self._pending = None
            self._clock.restart()

    def _check_step(self, logged: str, step: Step) -> None:
        """Compare a step with the checkpoint; those that are new on all ranks by a vote."""

        def check() -> None:
            if logged != step.name:
                raise MeshprepError(
                    f"{self._files.newest}: a checkpoint of another program: call "
                    f"{len(self._calls) + 1} is of loop '{step.title}', in the checkpoint it is "
                    f"'{title_of(logged)}', or has another kernel or other dats: remove the file "
                    "to begin anew"
                )

        if step.name not in self._met:
            self._met.add(step.name)
            together(self._comm, check)
        else:
            check()

    def _hand_out(self, replay: Checkpoint, step: Step) -> None:
        self._check_step(replay.calls[len(self._calls)], step)
        logged, at = replay.globals[len(self._calls)], 0
        for values in step.globals:
            values[:] = np.frombuffer(logged, values.dtype, values.size, at)
            at += values.nbytes
        for number in step.changed:
            self._dats[number].dropped = number in step.dropped
        self._note(step, logged)

    def _restore(self, replay: Checkpoint) -> None:
        for number, values in replay.dats.items():
            # "auto" may have run the loops alone, which drop nothing.
            self._dats[number].dropped = False
            target = self._dats[number].values(write=True)
            # (n,) and (n, 1) are one layout
            target[:] = values.reshape(target.shape)
        self._replay = None
        self._clock.restart()


class Clock:
    """Is asked before every call of a loop, by all ranks before the same ones.

    On several ranks, rank 0 looks at its clock and sends what it saw. The next look is after half
    of the calls that the time left allows at the pace so far, but not after more calls than there
    were already: about ``log2(calls)`` messages from one checkpoint to the next.

    ``every`` is in seconds.
    """

    def __init__(self, every: float, comm: Any) -> None:
        self._every, self._comm = every, comm
        self.restart()

    def restart(self) -> None:
        """Count from here."""
        self._since, self._calls, self._look_at = time.monotonic(), 0, 1

    def is_due(self) -> bool:
        """True from the call on at which the time had passed."""
        self._calls += 1
        if self._calls < self._look_at:
            return False
        passed = time.monotonic() - self._since
        if self._comm.size > 1:
            passed = self._comm.bcast(passed, 0)
            self._look_at = self._calls + calls_to_skip(self._calls, passed, self._every)
        return passed >= self._every


def calls_to_skip(calls: int, passed: float, every: float) -> int:
    """How many calls need no look at the clock, after so many that took so many seconds."""
    left = max(every - passed, 0.0)
    return calls if left >= 2 * passed else int(calls * left / passed / 2)


K = TypeVar("K", bound=Hashable)


def decide(flagged: set[K], full: Mapping[K, bool]) -> list[K]:
    """What a checkpoint saves before a loop runs; the dats that the loop meets are flagged no more.

    ``flagged`` has the dats of the checkpoint that are not decided yet: of those that some loop has
    changed since the program began. ``full`` tells of each dat of the loop whether it overwrites
    all of it and reads nothing: then it is dropped. Another is saved, since its value is still that
    of the entry.
    """
    met = [dat for dat in full if dat in flagged]
    flagged.difference_update(met)
    return [dat for dat in met if not full[dat]]


def period(calls: Sequence[object]) -> int | None:
    """The least number of calls after which all repeats; None unless two periods are there.

    O(calls^2).
    """
    for p in range(1, len(calls) // 2 + 1):
        if calls[p:] == calls[:-p]:
            return p
    return None


def saved_dats(calls: Sequence[Mapping[K, bool]], modified: Collection[K]) -> list[K]:
    """What a checkpoint before the first of some calls saves; see :func:`decide`."""
    flagged = set(modified)
    saved = [dat for full in calls for dat in decide(flagged, full)]
    return [*saved, *flagged]


def calls_to_wait(
    calls: Sequence[Mapping[K, bool]], modified: Collection[K], sizes: Mapping[K, int]
) -> int:
    """How many calls to wait for the smallest checkpoint of a period.

    ``calls`` is the last period: for each dat of a call, whether all of it is overwritten.
    """
    twice = [*calls, *calls]
    found = [
        sum(sizes[dat] for dat in saved_dats([*twice[i:], *calls], modified))
        for i in range(len(calls))
    ]
    return found.index(min(found))


class CheckpointPlace(NamedTuple):
    """A call of a period, before which a checkpoint may begin."""

    call: int  # its number in the period
    loop: str
    dats: tuple[str, ...]  # that are saved, named as in the call that meets them first
    bytes: int  # of these dats, on this rank


class DryRun:
    """Stands for a chain: its program notes calls of loops, and runs none."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._names: list[str] = []
        self.calls: list[Step] = []

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Note a call; raises MeshprepError for arguments that do not fit or cannot be saved."""
        loop.check(given)
        for name, value in given.items():
            if isinstance(value, ProgramDat) and self._steps.number(value) is None:
                self._steps.dats.append(value)
                self._names.append(f"{loop.loop.name}.{name}" if name in self._names else name)
        self.calls.append(self._steps.of_loop(loop.loop, loop.par_loop.kernel, given))

    def flush(self) -> None:
        """Nothing waits."""

    def places(self) -> list[CheckpointPlace]:
        """What a checkpoint before each call saves, when all have run once before."""
        modified = frozenset().union(*(step.changed for step in self.calls))
        full, found, dats = [step.full for step in self.calls], [], self._steps.dats
        for i, step in enumerate(self.calls):
            saved = sorted(saved_dats([*full[i:], *full], modified))
            names = tuple(self._names[number] for number in saved)
            size = sum(dats[n].owned * dats[n].dim * dats[n].dtype.itemsize for n in saved)
            found.append(CheckpointPlace(i, step.title, names, size))
        return found
