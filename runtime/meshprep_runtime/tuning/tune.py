"""Finds by trying how a loop runs fastest: strategy, blocks, layout [G12 section 6].

First every strategy with every variant in whole layouts; then, on a GPU, the best of each variant
with fewer threads than its blocks have elements; then, with the best of these, the layout of each
dat on its own, for one dat's hardly matters to another's. What is clearly slower after one run is
given up.
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

SAMPLE_SECONDS = 0.002
FINALISTS = 3
# Calls in which the form of the code is found out, at most.
MOST_TRIALS = 100
# More than one, so that a hiccup of the machine costs nobody the place.
FIRST_RUNS = 3


class SearchArguments(TypedDict, total=False):
    """What of a :class:`TuningSearch` may be given by name."""

    strategies: Sequence[str] | None
    layouts: Sequence[str]
    runs: int
    patience: float


@dataclass(frozen=True)
class TuningSearch:
    """What is tried, and how hard."""

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
    """Time a loop in every way that may be fastest; ``values`` are not changed.

    A sample repeats a call until it takes two milliseconds; written arrays start anew for each. At
    the end the three fastest take turns once more, so that a slow spell of the machine hits all.
    ``strategies``: None for all that can run it. ``layouts``: whole ones to begin with; with both,
    dats are also tried one by one. The fastest of ``runs`` counts; after three, a candidate that
    takes ``patience`` times the best gets no more. ``progress(done, total, what)`` before each
    candidate. Raises MeshprepError for unknown names, and where no strategy can run the loop.
    """
    asked = TuningSearch(**search)
    where = this_cpu() if backend is None else backend
    dats = [s.name for s in slots(plan) if s.rows is not None and s.dim > 1]
    candidates = grid(plan, where, asked.strategies, _whole(asked.layouts, dats))
    mixed = len(dats) > 1 and len(set(asked.layouts)) > 1
    race = _Race(kernel, plan, values, where, asked, progress)
    further = with_fewer_threads(plan, where, dict.fromkeys(candidates, 0.0))
    race.expected = len(candidates) + len(further) + (len(dats) if mixed else 0)
    for candidate in candidates:
        race.enter(candidate)
    for candidate in with_fewer_threads(plan, where, race.seconds()):
        race.enter(candidate)
    if mixed:
        _mix_layouts(race, dats)
    race.finals()
    return Tuned(
        machine=where.machine,
        kernel=name_of(kernel),
        measured=True,
        trials=tuple(sorted(race.trials(), key=lambda t: t.seconds)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def synthetic(plan: LoopPlan, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Arrays that most kernels can work on: floats from 0.5 to 1.5, whole numbers 1, sums 0."""
    rng = np.random.default_rng(seed)
    made = {}
    for slot in slots(plan):
        if slot.access.value in ("inc", "write"):
            made[slot.name] = np.zeros(slot.shape, slot.dtype)
        elif slot.dtype.kind == "f":
            made[slot.name] = (0.5 + rng.random(slot.shape)).astype(slot.dtype)
        else:
            made[slot.name] = np.ones(slot.shape, slot.dtype)
    return made


def _whole(layouts: Sequence[str], dats: Sequence[str]) -> list[tuple[str, ...]]:
    for name in layouts or ("",):
        check_choice("layout", name, (AOS, SOA))
    return list(dict.fromkeys(tuple(dats) if name == SOA else () for name in layouts))


def _mix_layouts(race: "_Race", dats: Sequence[str]) -> None:
    """The other layout for each dat alone, then for all together whose change paid."""
    start, seconds = race.best()
    paid = set()
    for dat in dats:
        changed = replace(start, soa=_toggled(start.soa, {dat}, dats))
        if race.enter(changed) < seconds:
            paid.add(dat)
    if len(paid) > 1:
        race.enter(replace(start, soa=_toggled(start.soa, paid, dats)))


def _toggled(soa: Iterable[str], which: set[str], dats: Sequence[str]) -> tuple[str, ...]:
    changed = set(soa) ^ which
    return tuple(dat for dat in dats if dat in changed)


@dataclass
class _Race:
    """Candidates that have run, with the seconds of each of their runs."""

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
        """The fastest take turns once more."""
        fastest = sorted(self.times, key=lambda c: min(self.times[c]))[:FINALISTS]
        prepared = {c: self._prepared(c) for c in fastest}
        for _ in range(self.search.runs):
            for candidate, run in prepared.items():
                self.times[candidate].append(run())

    def best(self) -> tuple[TuningCandidate, float]:
        return min(self.seconds().items(), key=lambda item: item[1])

    def seconds(self) -> dict[TuningCandidate, float]:
        """The fastest run of each so far."""
        return {candidate: min(times) for candidate, times in self.times.items()}

    def trials(self) -> list[Trial]:
        """What came out for each candidate."""
        return [trial(c, times, self._forms.get(c, "")) for c, times in self.times.items()]

    def _prepared(self, candidate: TuningCandidate) -> Callable[[], float]:
        """A function that takes one sample: the seconds of one call."""
        layout = dict.fromkeys(candidate.soa, SOA)
        loop = ParLoop(
            self.kernel,
            self.plan,
            strategy=candidate.strategy,
            layout=layout,
            variant=candidate.variant or None,
            commit=candidate.commit,
            threads=candidate.threads,
        )
        given = {s.name: self._array(s.name, s.soa) for s in slots(self.plan, layout)}
        written = [s for s in slots(self.plan, layout) if s.written]

        def call(times: int) -> float:
            for slot in written:
                self.backend.assign(given[slot.name], _laid_out(self.values[slot.name], slot.soa))
            self.backend.wait()
            start = time.perf_counter()
            for _ in range(times):
                loop(**given)
            self.backend.wait()
            return (time.perf_counter() - start) / times

        call(1)  # Compiles.
        for _ in range(MOST_TRIALS):
            if loop.form or self.backend.machine.kind == GPU:
                break
            call(1)
        self._forms[candidate] = loop.form
        call(SETTLED)
        times = 1 + int(SAMPLE_SECONDS / call(1))
        return lambda: call(times)

    def _array(self, name: str, soa: bool) -> Any:
        key = (name, soa)
        if key not in self._arrays:
            self._arrays[key] = self.backend.put(_laid_out(self.values[name], soa))
        return self._arrays[key]


def _laid_out(values: NDArray[Any], soa: bool) -> NDArray[Any]:
    return np.ascontiguousarray(values.T) if soa else values
