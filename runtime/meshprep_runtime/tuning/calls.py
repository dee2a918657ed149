"""Tuning while a solver runs: its first calls are trials [G10 section 14].

Every way to run a loop gives the same sums, so that no call is lost: each call runs another
candidate until all have been timed, and the fastest stays.
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
from .lookup import best_entry, with_entry
from .machines import (
    Backend,
    TuningCandidate,
    grid,
    on_gpu,
    this_cpu,
    trial,
    with_fewer_threads,
)

# Timed calls of each candidate, after a call that compiles.
RUNS = 3
# The fastest candidates, which are timed again.
FINALISTS = 3
Call = Callable[..., None]


class CallTrials:
    """The calls of a loop: trials until the fastest candidate is known.

    ``make`` gives the loop of a candidate.
    """

    def __init__(
        self,
        plan: LoopPlan,
        backend: Backend,
        kernel: str,
        soa: tuple[str, ...],
        make: Callable[[TuningCandidate], Call],
    ) -> None:
        self._plan = plan
        self._backend = backend
        self._kernel = kernel
        self._make = make
        # Each call of the solver is a trial, until one way has won.
        self._times: dict[TuningCandidate, list[float]] = {
            c: [] for c in grid(plan=plan, backend=backend, asked=None, layouts=[soa])
        }
        self._loops: dict[TuningCandidate, Call] = {}
        self._schedule = self._trials()
        self._next: tuple[TuningCandidate, bool] | None = next(self._schedule)
        self._error: MeshprepError | None = None
        self._best: Call | None = None
        self.tuned: Tuned | None = None
        # Nothing is tried where the plan has a measured entry.
        entry = best_entry(
            entries=plan.tuned, machine=backend.machine, kernel=kernel, soa=soa
        )
        if entry is not None and entry.runs:
            candidate = TuningCandidate(
                strategy=entry.strategy,
                variant=entry.variant,
                soa=soa,
                commit=entry.commit,
                threads=entry.threads,
            )
            self._best = make(candidate)

    def __call__(self, arrays: Mapping[str, Any]) -> None:
        """Run the loop once."""
        while self._best is None and self._next is not None:
            candidate, counts = self._next
            if self._ran(candidate, counts, arrays):
                return
        if self._best is None:
            raise self._error or MeshprepError("no way to run the loop is left")
        self._best(**arrays)

    def _ran(
        self, candidate: TuningCandidate, counts: bool, arrays: Mapping[str, Any]
    ) -> bool:
        """Run a candidate; returns False for one that cannot run here, and drops it."""
        # The first run of a candidate compiles.
        try:
            if candidate not in self._loops:
                self._loops[candidate] = self._make(candidate)
            self._backend.wait()
            # What was queued before must not count.
            start = time.perf_counter()
            self._loops[candidate](**arrays)
            self._backend.wait()
            if counts:
                self._times[candidate].append(time.perf_counter() - start)
        except MeshprepError as error:
            # A candidate that has run before fails for the caller's reasons.
            if self._times[candidate]:
                raise
            self._error = error
            del self._times[candidate]
            self._advance()
            return False
        self._advance()
        return True

    def _trials(self) -> Iterator[tuple[TuningCandidate, bool]]:
        """The candidate of each call, and whether its time counts."""
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
        """Go to the next trial; after the last one, keep the fastest candidate."""
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


def begin_trials(
    kernel: Any,
    slots: Iterable[Slot],
    plan: LoopPlan,
    arrays: Mapping[str, Any],
    again: Callable[..., Call],
) -> CallTrials:
    """The trials of a loop on the device of its arrays.

    ``again`` makes the loop anew, with other options.
    """

    def make(candidate: TuningCandidate) -> Call:
        return again(
            strategy=candidate.strategy,
            variant=candidate.variant or None,
            commit=candidate.commit,
            threads=candidate.threads,
        )

    gpu = any(type(v) is not np.ndarray and on_device(v) for v in arrays.values())
    soa = tuple(s.name for s in slots if s.soa)
    return CallTrials(
        plan=plan, backend=_backend_of(gpu), kernel=name_of(kernel), soa=soa, make=make
    )


def _backend_of(gpu: bool) -> Backend:
    """This processor, or the current GPU."""
    if not gpu:
        return this_cpu()
    device = current()

    def assign(array: Any, values: Any) -> None:
        raise MeshprepError("trials keep the arrays of the solver")

    return on_gpu(
        device=device,
        put=device.array,
        assign=assign,
        wait=lambda: device.wait(device.stream()),
    )


class TunedLoop(Protocol):
    """A loop whose calls were trials."""

    loop: Any

    @property
    def tuned(self) -> Tuned | None:
        """The result of the trials; None before it is settled."""


def save_tuned(path: str | Path, loops: Iterable[TunedLoop]) -> list[str]:
    """Write the results of trials of some loops into the file of their plan.

    Raises PlanError when the file cannot be read or written, or has no such loop.

    Parameters
    ----------
    path : path
        The file of the plan.
    loops : iterable of ParLoop
        Loops whose trials are not settled are left out.

    Returns
    -------
    list of str
        The names of the loops whose entry is new.
    """
    plan = Plan.load(path)
    names = []
    for tuned_loop in loops:
        if tuned_loop.tuned is not None:
            name = tuned_loop.loop.name
            loop_plan = plan[name]
            entries = with_entry(loop_plan.tuned, tuned_loop.tuned)
            loop_plan = replace(loop_plan, tuned=entries)
            plan = replace(plan, loops={**plan.loops, name: loop_plan})
            names.append(name)
    if names:
        plan.save(path, overwrite=True)
    return names
