"""Finds by trials how a loop runs fastest: strategy, blocks, layout [G12 section 6].

First every strategy with every variant, with one layout for all dats; then, on a GPU, the
fastest candidate of each variant with fewer threads than its blocks have elements; then,
with the fastest so far, the layout of each dat on its own, since the layout of a dat hardly
matters to others. Candidates that are clearly slower after the first runs are given up.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ..cpu.pool import SETTLED
from ..cuda import DeviceFunction
from ..errors import Progress, check_choice, check_integer, check_number
from ..kernel.analysis import name_of
from ..kernel.bind import AOS, SOA, slots
from ..loop import ParLoop
from ..plan import LoopPlan
from ..plan.tuned import GPU, Trial, Tuned
from .machines import Backend, TuningCandidate, grid, this_cpu, trial, with_fewer_threads

# Seconds of a sample, at least.
SAMPLE_SECONDS = 0.002
# The fastest candidates, which are timed again.
FINALISTS = 3
# Calls in which the form of the code is chosen, at most.
MOST_TRIALS = 100
# Runs before a candidate is given up; several, so that a short disturbance of the machine
# does not decide.
FIRST_RUNS = 3


class SearchArguments(TypedDict, total=False):
    """The fields of a :class:`TuningSearch`, as arguments by name."""

    strategies: Sequence[str] | None
    layouts: Sequence[str]
    runs: int
    patience: float


@dataclass(frozen=True)
class TuningSearch:
    """The options of a search; :func:`tune` says what each means."""

    strategies: Sequence[str] | None = None
    layouts: Sequence[str] = (AOS, SOA)
    runs: int = 9
    patience: float = 1.5

    def __post_init__(self) -> None:
        check_integer("runs", self.runs)
        check_number("patience", self.patience, 1)


def tune(
    kernel: Callable[..., None] | DeviceFunction,
    plan: LoopPlan,
    values: Mapping[str, NDArray[Any]],
    *,
    backend: Backend | None = None,
    progress: Progress = lambda done, total, what: None,
    **search: Unpack[SearchArguments],
) -> Tuned:
    """Time a loop in every way that may be the fastest; ``values`` are not changed.

    A sample repeats a call until it takes two milliseconds; written arrays start anew for
    each sample. At the end the three fastest candidates take turns again, so that a slow
    time of the machine affects all of them. ``progress(done, total, what)`` is called
    before each candidate.

    ``strategies`` are tried, None for all that can run the loop. ``layouts`` are tried for
    all dats together; with both, also for each dat on its own. The fastest of ``runs``
    samples counts; a candidate whose best of three takes more than ``patience`` times the
    best of all gets no more runs.

    Raises MeshprepError for unknown names, and where no strategy can run the loop.
    """
    options = TuningSearch(**search)
    machine = this_cpu() if backend is None else backend
    dats = [s.name for s in slots(plan) if s.rows is not None and s.dim > 1]
    # Find the candidates with the usual number of threads, and one layout for all dats.
    candidates = grid(
        plan=plan,
        backend=machine,
        asked=options.strategies,
        layouts=_layouts_of_all(options.layouts, dats),
    )
    mixed = len(dats) > 1 and len(set(options.layouts)) > 1
    race = _Race(
        kernel=kernel,
        plan=plan,
        values=values,
        backend=machine,
        search=options,
        progress=progress,
    )
    # Count all that may be tried, for the progress.
    further = with_fewer_threads(plan, machine, dict.fromkeys(candidates, 0.0))
    race.expected = len(candidates) + len(further) + (len(dats) if mixed else 0)
    # Time them; those that did best are tried with fewer threads and mixed layouts.
    for candidate in candidates:
        race.enter(candidate)
    for candidate in with_fewer_threads(plan, machine, race.seconds()):
        race.enter(candidate)
    if mixed:
        _mix_layouts(race, dats)
    race.finals()
    return Tuned(
        machine=machine.machine,
        kernel=name_of(kernel),
        measured=True,
        trials=tuple(sorted(race.trials(), key=lambda t: t.seconds)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def synthetic(plan: LoopPlan, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Arrays that most kernels can work on: sums 0, floats 0.5 to 1.5, whole numbers 1."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for slot in slots(plan):
        if slot.access.value in ("inc", "write"):
            arrays[slot.name] = np.zeros(slot.shape, slot.dtype)
        elif slot.dtype.kind == "f":
            arrays[slot.name] = (0.5 + rng.random(slot.shape)).astype(slot.dtype)
        else:
            arrays[slot.name] = np.ones(slot.shape, slot.dtype)
    return arrays


def _layouts_of_all(layouts: Sequence[str], dats: Sequence[str]) -> list[tuple[str, ...]]:
    """The dats that are SoA, for each layout of all dats."""
    for name in layouts or ("",):
        check_choice("layout", name, (AOS, SOA))
    return list(dict.fromkeys(tuple(dats) if name == SOA else () for name in layouts))


def _mix_layouts(race: "_Race", dats: Sequence[str]) -> None:
    """Try the other layout for each dat alone, then for all dats that gained by it."""
    start, seconds = race.best()
    gained = set()
    for dat in dats:
        changed = replace(start, soa=_toggled(start.soa, {dat}, dats))
        if race.enter(changed) < seconds:
            gained.add(dat)
    if len(gained) > 1:
        race.enter(replace(start, soa=_toggled(start.soa, gained, dats)))


def _toggled(soa: Iterable[str], which: set[str], dats: Sequence[str]) -> tuple[str, ...]:
    changed = set(soa) ^ which
    return tuple(dat for dat in dats if dat in changed)


@dataclass
class _Race:
    """The candidates that have run, with the seconds of each of their runs."""

    kernel: Callable[..., None] | DeviceFunction
    plan: LoopPlan
    values: Mapping[str, NDArray[Any]]
    backend: Backend
    search: TuningSearch
    progress: Progress
    expected: int = 0
    times: dict[TuningCandidate, list[float]] = field(default_factory=dict)
    _arrays: dict[tuple[str, bool], Any] = field(default_factory=dict)
    _forms: dict[TuningCandidate, str] = field(default_factory=dict)

    def enter(self, candidate: TuningCandidate) -> float:
        """Run a candidate; returns the seconds of its fastest run."""
        if candidate not in self.times:
            done = len(self.times)
            self.progress(done, max(self.expected, done + 1), str(candidate))
            run = self._prepared(candidate)
            runs = self.search.runs
            first = min(runs, FIRST_RUNS)
            self.times[candidate] = times = [run() for _ in range(first)]
            if min(times) <= self.search.patience * self.best()[1]:
                times += [run() for _ in range(runs - first)]
        return min(self.times[candidate])

    def finals(self) -> None:
        """Time the fastest candidates again, in turn."""
        fastest = sorted(self.times, key=lambda c: min(self.times[c]))[:FINALISTS]
        prepared = {c: self._prepared(c) for c in fastest}
        for _ in range(self.search.runs):
            for candidate, run in prepared.items():
                self.times[candidate].append(run())

    def best(self) -> tuple[TuningCandidate, float]:
        return min(self.seconds().items(), key=lambda item: item[1])

    def seconds(self) -> dict[TuningCandidate, float]:
        """The seconds of the fastest run of each candidate."""
        return {candidate: min(times) for candidate, times in self.times.items()}

    def trials(self) -> list[Trial]:
        """The entry of each candidate."""
        return [trial(c, times, self._forms.get(c, "")) for c, times in self.times.items()]

    def _prepared(self, candidate: TuningCandidate) -> Callable[[], float]:
        """A function that takes a sample, and returns the seconds of a call."""
        # Make the loop as the candidate says, with arrays in its layouts.
        layout = dict.fromkeys(candidate.soa, SOA)
        loop = ParLoop(
            kernel=self.kernel,
            plan=self.plan,
            strategy=candidate.strategy,
            layout=layout,
            variant=candidate.variant or None,
            commit=candidate.commit,
            threads=candidate.threads,
        )
        loop_slots = slots(self.plan, layout)
        arrays = {s.name: self._array(s.name, s.soa) for s in loop_slots}

        def call(times: int) -> float:
            """Seconds of a call, on average; written arrays start anew."""
            for slot in loop_slots:
                if slot.written:
                    values = _laid_out(self.values[slot.name], slot.soa)
                    self.backend.assign(arrays[slot.name], values)
            self.backend.wait()
            start = time.perf_counter()
            for _ in range(times):
                loop(**arrays)
            self.backend.wait()
            return (time.perf_counter() - start) / times

        # The first call compiles; the next ones choose the form and the threads.
        call(1)
        for _ in range(MOST_TRIALS):
            if loop.form or self.backend.machine.kind == GPU:
                break
            call(1)
        self._forms[candidate] = loop.form
        call(SETTLED)
        # A sample lasts long enough for the clock.
        calls_of_sample = 1 + int(SAMPLE_SECONDS / call(1))
        return lambda: call(calls_of_sample)

    def _array(self, name: str, soa: bool) -> Any:
        key = (name, soa)
        if key not in self._arrays:
            self._arrays[key] = self.backend.put(_laid_out(self.values[name], soa))
        return self._arrays[key]


def _laid_out(values: NDArray[Any], soa: bool) -> NDArray[Any]:
    if soa:
        return np.ascontiguousarray(values.T)
    return values
