"""Runs a bound loop on the CPU: schedules, compiles and keeps its code, and launches it."""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernel.analysis import takes_single
from ..kernel.bind import Slot
from ..kernel.compiler import compile_error, import_numba
from ..kernel.rows import Row, rows_of
from ..plan import LoopPlan, Variant
from .pool import BoundCode, OneThread, Team, turn
from .source.element import ElementCode
from .source.forms import forms
from .source.text import POINTS, SUMMED, alone, once, point_sums, reduced, shared
from .strategies import NO_WAITS, ORDERED, SCHEDULES, Schedule, Turns, in_pieces


@dataclass(frozen=True, eq=False)
class PointSums:
    """The second step for one dat, which needs neither colours nor atomics [S19 section 3.1]."""

    slot: int  # which array takes the sums
    names: tuple[str, ...]  # the names of the temporary arrays in the text of the first step
    # Those arrays, one an argument and index, ``dim`` values an element; views of one.
    parts: tuple[NDArray[Any], ...]
    turns: Turns  # of points
    # An order that nobody looks at, ``point_offset``, ``place`` and the temporary array: point
    # ``p`` adds up the rows ``place[point_offset[p] : point_offset[p + 1]]``.
    arrays: tuple[NDArray[Any], ...]
    text: str


def temporaries(
    plan: LoopPlan, slots: Sequence[Slot], rows: Sequence[Row]
) -> tuple[tuple[Row, ...], list[PointSums]]:
    """The rows with temporary ones for what elements add, and the second steps. O(n log n)."""
    changed, sums = list(rows), []
    for at, slot in enumerate(slots):
        own = [n for n, r in enumerate(rows) if r.array == f"s{at}" and r.adds]
        if not own:
            continue
        sums.append(_sums(plan, at, slot, [rows[n] for n in own]))
        for n, name in zip(own, sums[-1].names, strict=True):
            changed[n] = replace(rows[n], array=name, table=None, soa=False, temporary=True)
    return tuple(changed), sums


def _sums(plan: LoopPlan, at: int, slot: Slot, rows: Sequence[Row]) -> PointSums:
    tables = [plan.tables[int(str(r.table)[1:])] for r in rows]
    # all columns of a matrix are one argument
    pairs = zip(tables, rows, strict=True)
    columns = [t.reshape(-1) if r.placed else t[:, r.column] for t, r in pairs]
    points = np.concatenate(columns)
    n_points = slot.shape[1] if slot.soa else slot.shape[0]
    # what has no place in a matrix comes first, and is left out
    count = np.bincount(points + 1, minlength=n_points + 1)
    offset = np.cumsum(count).astype(np.int64)
    place = np.argsort(points, kind="stable").astype(np.int64)
    found = np.zeros(points.size * slot.dim, slot.dtype)
    names = tuple(f"t{at}_{i}" for i in range(len(rows)))
    parts = tuple(np.split(found, len(rows)))
    arrays = (NO_ORDER, offset, place, found)
    turns = in_pieces(n_points, POINTS).whole
    return PointSums(at, names, parts, turns, arrays, point_sums(slot, n_points))


MAX_KEPT = 256
NO_ORDER = np.zeros(0, np.int32)
NO_TURNS = np.zeros((0, 5), np.int64)
# Calls that try forms, at least, and pieces that each form runs before one is chosen; the first
# pieces of a form are not counted.
TRIAL_CALLS, TRIAL_PIECES, UNCOUNTED = 4, 8, 2
# Dats that take fewer bytes together stay in a cache, where asking for their rows ahead costs more
# than it saves: on one of 32 MB loops gain from 20 MB on, and lose up to a half at 6 MB. Of larger
# ones faces of cells gain a tenth to a half, and edges of cells lose as much: that is tried.
FETCHED_BYTES = 12_000_000
AHEAD = [np.array([0]), np.array([1])]

_kept: dict[Hashable, Any] = {}
_keeping = threading.Lock()


@dataclass(frozen=True)
class CpuOptions:
    """How kernels are compiled."""

    boundscheck: bool = False
    fastmath: bool = False


# A strategy and the blocks it takes; variants are told apart by identity.
StrategyAndVariant = tuple[str, Variant | None]


# Native code, and what runs one turn of it from Python.
Code = tuple[Any, Callable[..., None]]


class Executor:
    """The arrays of the plan that a loop needs, and its compiled code for each strategy."""

    def __init__(
        self,
        kernel: Callable[..., None],
        plan: LoopPlan,
        slots: Sequence[Slot],
        options: CpuOptions,
    ) -> None:
        self.kernel = kernel
        self.plan = plan
        self.loop = plan.loop
        self.slots = slots
        self.options = options
        self._ready: dict[StrategyAndVariant, CompiledLoop] = {}
        self._schedules: dict[StrategyAndVariant, Schedule] = {}

    def compiled(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]], form: str = ""
    ) -> "CompiledLoop":
        """What runs a strategy on arrays that a Binder has checked; ``form``: where it is known."""
        ready = self._ready.get(way)
        if ready is None:
            ready = self._ready[way] = self._prepare(way, arrays, form)
        return ready

    def form(self, way: StrategyAndVariant) -> str:
        """The form that was found to be the fastest, or is the only one; empty before."""
        return self._ready[way].form if way in self._ready else ""

    def host_call(self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]]) -> "HostCall":
        """The loop on arrays that a Binder has checked, to be run by turns."""
        return HostCall(self, way, arrays)

    def schedule(self, way: StrategyAndVariant) -> Schedule:
        """In which order a strategy runs the elements."""
        if way not in self._schedules:
            import_numba()
            strategy, variant = way
            self._schedules[way] = SCHEDULES[strategy](self.plan, variant)
        return self._schedules[way]

    def _prepare(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]], form: str
    ) -> "CompiledLoop":
        schedule = self.schedule(way)
        rows = rows_of(self.loop, self.slots)
        tables = self.plan.tables
        order = NO_ORDER if schedule.order is None else schedule.order
        if schedule.maps_permuted:
            tables = [table[order] for table in tables]
        fixed = [np.ascontiguousarray(t).view(np.uint32) for t in tables]
        sums: list[PointSums] = []
        names = [f"m{i}" for i in range(len(tables))]
        if way[0] == "two-step":
            rows, sums = temporaries(self.plan, self.slots, rows)
            names += [name for s in sums for name in s.names]
            fixed += [part for s in sums for part in s.parts]
        names += [f"s{i}" for i in range(len(self.slots))]
        aheads = [False]
        if sum(a.nbytes for a in arrays) >= FETCHED_BYTES:
            tried = way[0] == ORDERED and any(r.table for r in rows)
            aheads = [False, True] if tried else [schedule.fetches]
        asks = any(aheads)
        names = ["ahead", *names] if asks else names
        # fused operations may be rounded otherwise in each form
        wanted = forms(self.kernel, rows, way[0] != ORDERED or self.options.fastmath)
        globals_ = reduced(self.slots) if schedule.parallel else []
        parts = [np.empty((schedule.n_turns, slot.dim), slot.dtype) for _, slot in globals_]
        body = shared(names, self.slots) if schedule.parallel else alone(names)
        tries: list[Try] = []
        for one in [form] if form in wanted else wanted:
            code = ElementCode(
                rows,
                tuple(names),
                schedule.order is not None,
                schedule.maps_permuted,
                form=one,
                fetches=asks,
            )
            every = [*names, *(f"part_s{i}" for i, _ in globals_)]
            last = once(names, self.slots if schedule.parallel else ())
            text = Text(code.text(), every, body, last)
            ways = [[order, *([AHEAD[a]] if asks else []), *fixed] for a in aheads]
            made = self._compiled(text, [*ways[0], *arrays, *parts])
            tries += [Try(one, made, own) for own in ways]
        then = []
        for s in sums:
            text = Text(s.text, SUMMED, shared(SUMMED), once(SUMMED, ()))
            then.append((self._compiled(text, [*s.arrays, arrays[s.slot]]), s))
        team = Team(1 if self.options.boundscheck or not schedule.parallel else None)
        return CompiledLoop(schedule, tries, parts, then, team)

    def _compiled(self, text: "Text", arrays: Sequence[NDArray[Any]]) -> Code:
        """The code of a text for arrays of these types: the order, and those it names."""
        from .build import Inlined, Request, build, build_native

        single = takes_single(slot.dtype for slot in self.slots)
        fast = self.options.fastmath
        own = ((Inlined(self.kernel, fast, single),), fast, self.options.boundscheck)
        names = ("turns", "waits", "order", *text.names)
        request = Request(text.functions, *own, text.body, names)
        arrays = [NO_TURNS, NO_WAITS, *arrays]
        key = (request.key(), tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in arrays))

        def run_once(turn: int, *given: NDArray[Any]) -> None:
            again = Request(f"{text.functions}\n\n{text.once}", *own)
            build(again, given)(turn, *given)

        with _keeping:
            if key not in _kept:
                try:
                    native = build_native(request, arrays)
                except Exception as error:  # numba's own and, for some bytecode, others.
                    raise compile_error(self.kernel, self.loop, self.slots, error) from error
                if len(_kept) >= MAX_KEPT:
                    del _kept[next(iter(_kept))]
                _kept[key] = native
            return _kept[key], run_once


@dataclass(frozen=True)
class Text:
    """Functions, the body of ``run`` that calls them, and its arrays after ``order``."""

    functions: str
    names: Sequence[str]
    body: str
    once: str  # ``run`` of one turn, for Python


@dataclass(frozen=True, eq=False)
class Try:
    """One way to run a loop: a form, and the arrays before those of a call."""

    form: str
    code: Code
    fixed: Sequence[NDArray[Any]]


class CompiledLoop:
    """Compiled code of one loop and strategy, in the ways that may be the fastest.

    The first calls try them on one turn after another; then the fastest stays, on as many threads
    as pay. Whatever is chosen, the bits of the results are the same.
    """

    def __init__(
        self,
        schedule: Schedule,
        tries: Sequence[Try],
        parts: Sequence[NDArray[Any]],
        then: Sequence[tuple[Code, PointSums]],
        team: Team,
    ) -> None:
        self._schedule, self._parts = schedule, parts
        self._then, self._team = then, team
        self._tries = tries
        # Seconds an element of the pieces that each ran.
        self._took: list[list[float]] = [[] for _ in tries]
        self._tried = 0
        self._chosen = tries[0] if len(tries) == 1 else None
        self._alone = schedule.whole
        if schedule.alone is not None and not parts:
            self._alone = schedule.alone
        # By table of turns, where what stays the same lies: to ask takes a microsecond an array.
        self._known: dict[int, list[int]] = {}

    @property
    def form(self) -> str:
        """The form that was found to be the fastest, or is the only one; empty before."""
        return "" if self._chosen is None else self._chosen.form

    def __getstate__(self) -> dict[str, Any]:
        """For copies, whose arrays lie elsewhere."""
        return {**self.__dict__, "_known": {}}

    def run(self, given: Sequence[NDArray[Any]], turns: Turns) -> None:
        """Run some turns."""
        self.bound(given, turns)()

    def bound(
        self, given: Sequence[NDArray[Any]], turns: Turns | None = None
    ) -> Callable[..., None]:
        """A call with these arrays, of all turns or of some."""
        some = self._schedule.whole if turns is None else turns
        if self._chosen is None:
            return partial(self._try, given, some)
        return self._launch(self._chosen, some, self._alone if turns is None else turns, given)

    def alone(self, given: Sequence[NDArray[Any]]) -> list[BoundCode]:
        """The steps of a call that always runs on one thread; none where that is not known."""
        (first, last), *_ = self._schedule.whole
        if self._chosen is None or not self._team.is_small(int(last - first)):
            return []
        from .build import words_of

        return self._steps(self._chosen, self._alone, given, words_of([*given, *self._parts]))

    def _launch(
        self, way: Try, turns: Turns, alone: Turns, given: Sequence[NDArray[Any]]
    ) -> Callable[[], None]:
        from .build import words_of

        words = words_of([*given, *self._parts])
        steps, n = self._steps(way, turns, given, words), int(turns[0][1] - turns[0][0])
        on_one = steps if alone is turns else self._steps(way, alone, given, words)
        return partial(self._team.run, n, steps, OneThread(on_one))

    def _steps(
        self, way: Try, turns: Turns, given: Sequence[NDArray[Any]], words: Sequence[int]
    ) -> list[BoundCode]:
        code, run_once = way.code
        arrays = (*way.fixed, *given, *self._parts)
        steps = [BoundCode(code, turns, arrays, run_once, [*self._words(way, turns), *words])]
        for (add, add_once), s in self._then:
            steps.append(BoundCode(add, s.turns, (*s.arrays, given[s.slot]), add_once))
        return steps

    def _words(self, way: Try, turns: Turns) -> Sequence[int]:
        from .build import words_of

        _, table, waits = turns
        if id(table) in self._known:
            return self._known[id(table)]
        words = words_of([table, waits, *way.fixed])
        # a table that is not kept may leave its id to another one
        if table is self._schedule.turns or table is self._alone[1]:
            self._known[id(table)] = words
        return words

    def _try(self, given: Sequence[NDArray[Any]], turns: Turns) -> None:
        """Run some turns, each in one of the ways, while no other call runs."""
        with turn():
            (first, last), table, _ = turns
            parts = [np.empty_like(part) for part in self._parts]
            ways = [(w.code, (*w.fixed, *given, *parts)) for w in self._tries]
            steps = [OneThread([BoundCode(c, turns, a, once)]) for (c, once), a in ways]
            for i in range(first, last):
                at = (i + self._tried) % len(steps)
                steps[at].places[1:3] = i, i + 1
                start = time.perf_counter()
                steps[at].run_or_raise()
                took = time.perf_counter() - start
                self._took[at].append(took / max(int(table[i, 1] - table[i, 0]), 1))
            self._tried += 1
            pieces = min(map(len, self._took))
            if self._chosen is None and self._tried >= TRIAL_CALLS and pieces >= TRIAL_PIECES:
                medians = [float(np.median(took[UNCOUNTED:])) for took in self._took]
                self._chosen = self._tries[int(np.argmin(medians))]
                self._tries = [self._chosen]


@dataclass(frozen=True, eq=False)
class HostCall:
    """A loop with the arrays of one call, checked, to be run by turns."""

    executor: Executor
    way: StrategyAndVariant
    arrays: Sequence[NDArray[Any]]

    def run(self, turns: Turns, instead: Mapping[int, NDArray[Any]] | None = None) -> None:
        """Run some turns of the schedule; ``instead`` has other arrays for some slots."""
        arrays = self.arrays
        if instead:
            arrays = [instead.get(i, array) for i, array in enumerate(arrays)]
        self.executor.compiled(self.way, arrays).run(arrays, turns)
