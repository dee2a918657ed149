"""Tuning while a solver runs: its first calls are trials [G10 section 14].

Every way to run a loop gives the same sums, so that no call is lost: each runs another candidate
until all have been timed, and the fastest stays.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..cuda.device import current
from ..errors import MeshprepError
from ..kernel.analysis import name_of
from ..kernel.bind import Slot
from ..plan import LoopPlan, Plan
from ..plan.tuned import Tuned
from ..types.maps import on_device
from .lookup import choose, with_entry
from .machines import Backend, TuningCandidate, grid, on_gpu, this_cpu, trial, with_fewer_threads

# Timed calls of each candidate after one that compiles, and once more of the fastest.
RUNS, FINALISTS = 3, 3
Call = Callable[..., None]


class CallTrials:
    """Calls of one loop, as trials until they are settled; ``make`` gives a candidate."""

    def __init__(
        self,
        plan: LoopPlan,
        backend: Backend,
        kernel: str,
        soa: tuple[str, ...],
        make: Callable[[TuningCandidate], Call],
    ) -> None:
        self._plan, self._backend, self._kernel, self._make = plan, backend, kernel, make
        self._times: dict[TuningCandidate, list[float]] = {
            c: [] for c in grid(plan, backend, None, [soa])
        }
        self._loops: dict[TuningCandidate, Call] = {}
        self._schedule = self._turns()
        self._next: tuple[TuningCandidate, bool] | None = next(self._schedule)
        self._error: MeshprepError | None = None
        self._best: Call | None = None
        self.tuned: Tuned | None = None
        found = choose(plan.tuned, backend.machine, kernel, soa)
        if found is not None and found.runs:
            how = (found.strategy, found.variant, soa, found.commit, found.threads)
            self._best = make(TuningCandidate(*how))

    def __call__(self, arrays: Mapping[str, Any]) -> None:
        """Run the loop once."""
        while self._best is None and self._next is not None:
            candidate, counts = self._next
            if self._ran(candidate, counts, arrays):
                return
        if self._best is None:
            raise self._error or MeshprepError("no way to run the loop is left")
        self._best(**arrays)

    def _ran(self, candidate: TuningCandidate, counts: bool, arrays: Mapping[str, Any]) -> bool:
        """Run a candidate; what cannot run here is dropped, and nothing has run then."""
        try:
            if candidate not in self._loops:
                self._loops[candidate] = self._make(candidate)
            self._backend.wait()
            start = time.perf_counter()
            self._loops[candidate](**arrays)
            self._backend.wait()
            if counts:
                self._times[candidate].append(time.perf_counter() - start)
        except MeshprepError as error:
            if self._times[candidate]:
                raise
            self._error = error
            del self._times[candidate]
            self._advance()
            return False
        self._advance()
        return True

    def _turns(self) -> Iterator[tuple[TuningCandidate, bool]]:
        """Which candidate is next, and whether its time counts."""
        yield from self._runs_of(list(self._times))
        seconds = {candidate: min(times) for candidate, times in self._times.items()}
        further = with_fewer_threads(self._plan, self._backend, seconds)
        self._times |= {candidate: [] for candidate in further}
        yield from self._runs_of(further)
        fastest = sorted(self._times, key=lambda c: min(self._times[c]))[:FINALISTS]
        for _ in range(RUNS):
            for candidate in fastest:
                yield candidate, True

    def _runs_of(
        self, candidates: Sequence[TuningCandidate]
    ) -> Iterator[tuple[TuningCandidate, bool]]:
        for candidate in candidates:
            for run in range(RUNS + 1):
                if candidate in self._times:
                    yield candidate, run > 0

    def _advance(self) -> None:
        self._next = next(self._schedule, None)
        if self._next is None and self._times:
            best = min(self._times, key=lambda c: min(self._times[c]))
            self._best = self._loops[best]
            self._loops = {best: self._best}
            self.tuned = self._settled()

    def _settled(self) -> Tuned:
        trials = [trial(c, times) for c, times in self._times.items()]
        return Tuned(
            machine=self._backend.machine,
            kernel=self._kernel,
            measured=True,
            trials=tuple(sorted(trials, key=lambda t: t.seconds)),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def begin(
    kernel: Any,
    slots: Iterable[Slot],
    plan: LoopPlan,
    arrays: Mapping[str, Any],
    again: Callable[..., Call],
) -> CallTrials:
    """The trials of a loop, where its first arrays lie; ``again`` makes it run in another way."""

    def make(candidate: TuningCandidate) -> Call:
        return again(
            strategy=candidate.strategy,
            variant=candidate.variant or None,
            commit=candidate.commit,
            threads=candidate.threads,
        )

    gpu = any(type(v) is not np.ndarray and on_device(v) for v in arrays.values())
    soa = tuple(s.name for s in slots if s.soa)
    return CallTrials(plan, _backend(gpu), name_of(kernel), soa, make)


def _backend(gpu: bool) -> Backend:
    if not gpu:
        return this_cpu()
    device = current()

    def assign(array: Any, values: Any) -> None:
        raise MeshprepError("trials keep the arrays of the solver")

    return on_gpu(device, device.array, assign, lambda: device.wait(device.stream()))


class TunedLoop(Protocol):
    """A loop whose calls were trials."""

    loop: Any

    @property
    def tuned(self) -> Tuned | None:
        """What came out; None before it is settled."""


def save_tuned(path: str | Path, loops: Iterable[TunedLoop]) -> list[str]:
    """Write what came out for some loops into the file of their plan.

    Raises PlanError when the file cannot be read or written, or has no such loop.

    Parameters
    ----------
    path : path
        Of the plan.
    loops : iterable of ParLoop
        Those that are not settled are left out.

    Returns
    -------
    list of str
        The names of the loops whose entry is new.
    """
    plan, names = Plan.load(path), []
    for one in loops:
        if one.tuned is not None:
            own = plan[one.loop.name]
            own = replace(own, tuned=with_entry(own.tuned, one.tuned))
            plan = replace(plan, loops={**plan.loops, one.loop.name: own})
            names.append(one.loop.name)
    if names:
        plan.save(path, overwrite=True)
    return names
