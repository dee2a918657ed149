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

# The most calls of a checkpoint: then dats that no loop has used since its begin are saved.
WINDOW = 64
# The last calls among which a period is looked for.
RECENT = 256


class Checkpoints:
    """Saves the state of a program from time to time, and restores it in a new run.

    A checkpoint begins before a call of a loop, its entry. Where the file ``path`` exists,
    the program goes on from it: calls before the entry compute nothing and only hand out
    the globals that were logged. ``every`` is in seconds, ``comm`` are the ranks that save
    and go on together, and ``steps`` has the dats of the program. Raises MeshprepError on
    all ranks, for files of another plan or number of ranks, and where both the newest file
    and the one before are damaged.
    """

    def __init__(
        self,
        path: Path,
        every: float,
        plan: PlanContent | DistributedPlan,
        comm: Any = ALONE,
    ) -> None:
        check_number("every", every)
        self._files = Generations(path, plan.mesh_hash, comm)
        self._clock = Clock(every, comm)
        self._comm = comm
        self._sizes = plan.sizes
        self.steps = Steps()
        self._dats = self.steps.dats
        self._replay = self._files.read()
        # All calls of the program so far, with the globals that each has changed.
        self._calls: list[str] = []
        self._globals: list[bytes] = []
        # Names of steps that were compared with those of the checkpoint.
        self._checked_names: set[str] = set()
        # Numbers of the dats that were changed since the program began.
        self._modified: set[int] = set()
        # The checkpoint under way: the call that it begins at, the numbers of dats that may
        # still have to be saved (None without a checkpoint), and the values saved.
        self._entry = 0
        self._pending: set[int] | None = None
        self._saved: dict[int, NDArray[Any]] = {}
        # The program wants a checkpoint before the next call.
        self._is_requested = False
        # A step runs: loops inside it are no steps of their own.
        self._inside = False
        # No checkpoint may begin.
        self._held = False
        # A step has raised an exception.
        self._failed = False
        # The last calls, among which a period is looked for, and the call at which the
        # next checkpoint begins, once it is chosen.
        self._recent: deque[tuple[str, Mapping[int, bool]]] = deque(maxlen=RECENT)
        self._begin_at: int | None = None

    def keep(self, dat: ProgramDat) -> None:
        """Save a new dat from now on; raises MeshprepError where it shares memory."""
        check_own_memory(dat, self._dats)
        self._dats.append(dat)
        dat.watch = self

    def before_change(self, dat: ProgramDat) -> None:
        """Save a dat for a checkpoint under way, before the program itself changes it."""
        number = self.steps.number(dat)
        if self._pending is not None and number in self._pending and not dat.dropped:
            self._pending.discard(number)
            self._saved[number] = np.array(dat.values())

    def after_change(self, dat: ProgramDat) -> None:
        """Count a dat as changed by the program itself.

        Changes before the first loop need not be counted: a new run makes them, too.
        """
        number = self.steps.number(dat)
        if number is None or self._inside or not self._calls:
            return
        self._modified.add(number)
        if self._pending is not None and number in self._pending:
            # The values that it had at the entry are lost: begin another checkpoint.
            self._pending = None
            self._is_requested = True

    def here(self) -> None:
        """Begin a checkpoint before the next loop, at any time.

        Raises MeshprepError on all ranks after a step that raised an exception on one.
        """
        together(self._comm, self._refuse_after_failure)
        self._is_requested = self._replay is None

    def _refuse_after_failure(self) -> None:
        if self._failed:
            raise MeshprepError(
                "no checkpoint can begin after a loop that raised an exception, "
                "as a new run would not meet it: end this run and start it again"
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """A context in which no checkpoint begins.

        For loops that run in another place than they will when the program goes on.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def run(self, step: Step, work: Callable[[], None]) -> None:
        """Run a step by ``work``; before the entry only hand out its globals.

        A loop that runs inside a step is part of the step. After a step that raised an
        exception nothing is saved: a new run goes on from before it, and raises it again.
        """
        if self._inside:
            work()
            return
        # Until the entry, hand out what the steps gave before; there, restore the dats.
        if self._replay is not None:
            if len(self._calls) < len(self._replay.calls):
                self._hand_out(self._replay, step)
                return
            self._restore(self._replay)
        # Save when it is time, and run.
        self._save_before(step)
        self._inside = True
        try:
            work()
        except BaseException:
            self._failed = True
            raise
        finally:
            self._inside = False
        self._log(step, b"".join(values.tobytes() for values in step.globals))

    def _save_before(self, step: Step) -> None:
        """Begin a checkpoint where one is due, and save dats for the one under way."""
        if self._pending is None and not self._held and self._is_due(step):
            self._is_requested = False
            self._begin_at = None
            self._failed = any(self._comm.allgather(self._failed))
            if self._failed:
                self._clock.restart()
            else:
                self._pending = set(self._modified)
                self._entry = len(self._calls)
                self._saved = {}
        if self._pending is not None:
            self._save(self._pending, step)
        self._recent.append((step.name, step.full))

    def _log(self, step: Step, globals_of_step: bytes) -> None:
        self._calls.append(step.name)
        self._globals.append(globals_of_step)
        self._modified |= step.changed

    def _is_due(self, step: Step) -> bool:
        """True where a checkpoint must begin before a step.

        Once the time has come, this is at the cheapest call of a period; without a period,
        at a loop that writes.
        """
        n_calls = len(self._calls)
        if not self._is_requested and self._begin_at is None:
            if not self._clock.is_due():
                return False
            recent = [*self._recent]
            length = period(recent)
            if length is None:
                return step.writes
            # Take the sizes of sets on all ranks together: so all ranks choose the same
            # call. Matrices have no set there; they are on one rank only.
            n_bytes = {}
            for i, dat in enumerate(self._dats):
                n_elements = self._sizes.get(dat.set, dat.owned)
                n_bytes[i] = n_elements * dat.dim * dat.dtype.itemsize
            last_period = [full for _, full in recent[-length:]]
            wait = calls_to_wait(last_period, self._modified, n_bytes)
            self._begin_at = n_calls + wait
        if self._is_requested:
            return True
        return self._begin_at is not None and n_calls >= self._begin_at

    def _save(self, pending: set[int], step: Step) -> None:
        """Save the dats that are decided before a step; write the file once all are."""
        # A dat that is zero is saved, too: it takes no space in the file, and a new run may
        # have begun with other values.
        decided = [*(pending & step.zero), *decide(pending, step.full)]
        if len(self._calls) - self._entry >= WINDOW:
            decided += [number for number in pending if not self._dats[number].dropped]
            pending.clear()
        for number in decided:
            self._saved[number] = np.array(self._dats[number].values())
        if not pending:
            checkpoint = Checkpoint(
                calls=self._calls[: self._entry],
                globals=self._globals[: self._entry],
                dats=self._saved,
            )
            self._files.write(checkpoint)
            self._pending = None
            self._clock.restart()

    def _check_step(self, logged_name: str, step: Step) -> None:
        """Raise MeshprepError for a step that differs from that of the checkpoint.

        When a name first occurs, the ranks compare it together, so that all raise.
        """

        def check() -> None:
            if logged_name != step.name:
                raise MeshprepError(
                    f"{self._files.newest}: a checkpoint of another program: call "
                    f"{len(self._calls) + 1} is of loop '{step.title}', in the checkpoint "
                    f"it is '{title_of(logged_name)}', or has another kernel or other "
                    "dats: remove the file to begin anew"
                )

        if step.name not in self._checked_names:
            self._checked_names.add(step.name)
            together(self._comm, check)
        else:
            check()

    def _hand_out(self, replay: Checkpoint, step: Step) -> None:
        """Set the globals of a step to those that the checkpoint has logged for it."""
        self._check_step(replay.calls[len(self._calls)], step)
        logged_globals = replay.globals[len(self._calls)]
        begin = 0
        for values in step.globals:
            values[:] = np.frombuffer(logged_globals, values.dtype, values.size, begin)
            begin += values.nbytes
        for number in step.changed:
            self._dats[number].dropped = number in step.dropped
        self._log(step, logged_globals)

    def _restore(self, replay: Checkpoint) -> None:
        """Set the dats to the values of the checkpoint, at its entry."""
        for number, values in replay.dats.items():
            # The dat has values, also where the step before should have dropped them:
            # with "auto", loops may have run without tiles, which drop nothing.
            self._dats[number].dropped = False
            target = self._dats[number].values(write=True)
            # Shapes (n,) and (n, 1) have the same layout.
            target[:] = values.reshape(target.shape)
        self._replay = None
        self._clock.restart()


class Clock:
    """Says when the next checkpoint is due, to all ranks before the same call of a loop.

    On several ranks, rank 0 looks at its clock and sends the time. The next look is after
    half of the calls that the time left allows at the pace so far, but not after more calls
    than there were already. This takes about ``log2(calls)`` messages from one checkpoint
    to the next. ``every`` is in seconds.
    """

    def __init__(self, every: float, comm: Any) -> None:
        self._every = every
        self._comm = comm
        self.restart()

    def restart(self) -> None:
        """Count the seconds from now on."""
        self._since = time.monotonic()
        self._calls = 0
        self._look_at = 1

    def is_due(self) -> bool:
        """Count a call; true once the time has passed."""
        self._calls += 1
        if self._calls < self._look_at:
            return False
        seconds = time.monotonic() - self._since
        if self._comm.size > 1:
            seconds = self._comm.bcast(seconds, 0)
            self._look_at = self._calls + calls_to_skip(self._calls, seconds, self._every)
        return seconds >= self._every


def calls_to_skip(calls: int, seconds: float, every: float) -> int:
    """The number of calls without a look at the clock, after ``calls`` took ``seconds``."""
    left = max(every - seconds, 0.0)
    if left >= 2 * seconds:
        return calls
    return int(calls * left / seconds / 2)


K = TypeVar("K", bound=Hashable)


def decide(undecided: set[K], full: Mapping[K, bool]) -> list[K]:
    """The dats that a checkpoint saves before a loop runs.

    ``undecided`` has the dats that were changed since the program began and that no loop
    has used since the entry of the checkpoint; the dats of the loop are taken out of it.
    ``full`` says for each dat of the loop whether the loop overwrites all of it and reads
    nothing: then the checkpoint does not need it. Other dats are saved, as they still have
    the values of the entry.
    """
    used = [dat for dat in full if dat in undecided]
    undecided.difference_update(used)
    return [dat for dat in used if not full[dat]]


def period(calls: Sequence[object]) -> int | None:
    """The least number of calls after which all calls repeat.

    None for fewer than two periods. O(calls^2).
    """
    for length in range(1, len(calls) // 2 + 1):
        if calls[length:] == calls[:-length]:
            return length
    return None


def saved_dats(calls: Sequence[Mapping[K, bool]], modified: Collection[K]) -> list[K]:
    """The dats that a checkpoint before some calls saves; see :func:`decide`."""
    undecided = set(modified)
    saved = []
    for full in calls:
        saved += decide(undecided, full)
    return [*saved, *undecided]


def calls_to_wait(
    calls: Sequence[Mapping[K, bool]], modified: Collection[K], sizes: Mapping[K, int]
) -> int:
    """The number of calls to wait for the smallest checkpoint of a period.

    ``calls`` is the last period: for each dat of a call, whether all of it is overwritten.
    ``sizes`` are in bytes.
    """
    twice = [*calls, *calls]
    bytes_of_calls = []
    for i in range(len(calls)):
        saved = saved_dats([*twice[i:], *calls], modified)
        bytes_of_calls.append(sum(sizes[dat] for dat in saved))
    return bytes_of_calls.index(min(bytes_of_calls))


class CheckpointPlace(NamedTuple):
    """A call of a period, before which a checkpoint may begin.

    ``call`` is its number in the period; ``dats`` are the dats that the checkpoint saves,
    named as in the call that uses them first, and ``bytes`` their size on this rank.
    """

    call: int
    loop: str
    dats: tuple[str, ...]
    bytes: int


class DryRun:
    """Records calls of loops in place of a chain, and runs none of them."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._names: list[str] = []
        self.calls: list[Step] = []

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Record a call.

        Raises MeshprepError for arguments that do not fit or cannot be saved.
        """
        loop.check(given)
        for name, value in given.items():
            if isinstance(value, ProgramDat) and self._steps.number(value) is None:
                self._steps.dats.append(value)
                dat_name = name
                if name in self._names:
                    dat_name = f"{loop.loop.name}.{name}"
                self._names.append(dat_name)
        self.calls.append(self._steps.of_loop(loop.loop, loop.par_loop.kernel, given))

    def flush(self) -> None:
        """Do nothing: no call waits to be run."""

    def places(self) -> list[CheckpointPlace]:
        """What a checkpoint before each call saves, when all calls have run once before."""
        modified = frozenset().union(*(step.changed for step in self.calls))
        full = [step.full for step in self.calls]
        dats = self._steps.dats
        places = []
        for i, step in enumerate(self.calls):
            saved = sorted(saved_dats([*full[i:], *full], modified))
            names = tuple(self._names[number] for number in saved)
            size = sum(dats[n].owned * dats[n].dim * dats[n].dtype.itemsize for n in saved)
            places.append(CheckpointPlace(call=i, loop=step.title, dats=names, bytes=size))
        return places
