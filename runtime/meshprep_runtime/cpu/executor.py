"""Runs a bound loop on the CPU: makes its schedule, compiles and launches its code."""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numba.installed import import_numba
from ..kernel.access import check_sample
from ..kernel.analysis import takes_single
from ..kernel.bind import Slot, rows_by_name
from ..kernel.compiler import compile_error
from ..kernel.parameters import kernel_by_row, rows_of_parameters
from ..kernel.rows import Row, reaches_apart, rows_of
from ..plan import LoopPlan, Variant
from .pool import BoundCode, OneThread, Team, half_done, turn
from .source.element import ElementCode
from .source.forms import forms
from .source.text import POINTS, SUMMED, alone, once, point_sums, reduced, shared
from .strategies import NO_WAITS, STRATEGIES, Schedule, Turns, in_pieces

MAX_KEPT = 256  # compiled texts of a process
NO_ORDER = np.zeros(0, np.int32)
NO_TURNS = np.zeros((0, 5), np.int64)
# Calls after which the further forms of the code are compiled, at most. They are sooner
# once the calls took as long as the first form took to compile: whoever makes a few short
# calls does not wait for code that would not pay.
PATIENT_CALLS = 16
# Calls that try forms of the code, at least.
TRIAL_CALLS = 4
# Pieces that each form runs before one is chosen.
TRIAL_PIECES = 8
# The first pieces of a form, which are not counted.
UNCOUNTED = 2
# Dats of fewer bytes together stay in a cache, where fetching their rows ahead costs more
# than it saves: on a cache of 32 MB loops gain from 20 MB on, and lose up to a half at 6
# MB. With larger dats, loops over faces of cells gain a tenth to a half, and loops over
# edges of cells lose as much; both are tried.
FETCHED_BYTES = 12_000_000
# The array ``ahead`` of the text, for loops that do not fetch ahead, and for those that do.
AHEAD = [np.array([0]), np.array([1])]


@dataclass(frozen=True, eq=False)
class PointSums:
    """The second step of "two-step" for a dat, without colours [S19 section 3.1]."""

    slot: int  # the slot of the dat
    # The names of the temporary arrays in the text of the first step.
    names: tuple[str, ...]
    # The temporary arrays, one for each argument and index, ``dim`` values an element; they
    # are views of one array.
    parts: tuple[NDArray[Any], ...]
    turns: Turns  # of points
    # (unused order, point_offset, place, temporary array), as the text takes them: point
    # ``p`` adds up the rows ``place[point_offset[p] : point_offset[p + 1]]``.
    arrays: tuple[NDArray[Any], ...]
    text: str


def temporaries(
    plan: LoopPlan, slots: Sequence[Slot], rows: Sequence[Row]
) -> tuple[tuple[Row, ...], list[PointSums]]:
    """The first and the second step of "two-step".

    The first step is the rows of the loop, where rows that elements add to are replaced by
    temporary ones. O(n log n).
    """
    changed_rows = list(rows)
    sums = []
    for slot_number, slot in enumerate(slots):
        # Rows that add to this slot go to a temporary array, from which its points are
        # summed.
        added = [n for n, r in enumerate(rows) if r.array == f"s{slot_number}" and r.adds]
        if not added:
            continue
        point_sums_of_slot = _sums_of_points(
            plan=plan, slot_number=slot_number, slot=slot, rows=[rows[n] for n in added]
        )
        sums.append(point_sums_of_slot)
        for n, name in zip(added, point_sums_of_slot.names, strict=True):
            changed_rows[n] = replace(
                rows[n], array=name, table=None, soa=False, temporary=True
            )
    return tuple(changed_rows), sums


def _sums_of_points(
    plan: LoopPlan, slot_number: int, slot: Slot, rows: Sequence[Row]
) -> PointSums:
    """The second step for a slot that these rows add to."""
    points = np.concatenate([r.points(plan.tables) for r in rows])
    if slot.soa:
        n_points = slot.shape[1]
    else:
        n_points = slot.shape[0]
    # Sort the temporary rows by point. Entries without a place in a matrix are point -1:
    # they come first, and are left out.
    count = np.bincount(points + 1, minlength=n_points + 1)
    offset = np.cumsum(count).astype(np.int64)
    by_point = np.argsort(points, kind="stable").astype(np.int64)
    temporary = np.zeros(points.size * slot.dim, slot.dtype)
    return PointSums(
        slot=slot_number,
        names=tuple(f"t{slot_number}_{i}" for i in range(len(rows))),
        parts=tuple(np.split(temporary, len(rows))),
        turns=in_pieces(n_points, POINTS).whole,
        arrays=(NO_ORDER, offset, by_point, temporary),
        text=point_sums(slot, n_points),
    )


# Compiled texts of this process, by all that they depend on.
_kept: dict[Hashable, Any] = {}
# A lock that a thread may take twice: a signal handler may compile while its thread does.
_keeping = threading.RLock()


@dataclass(frozen=True)
class CpuOptions:
    """How kernels are compiled."""

    boundscheck: bool = False
    fastmath: bool = False


# A strategy and the blocks it takes; variants are told apart by identity.
StrategyAndVariant = tuple[str, Variant | None]


# Native code, and a function that runs a turn of it from Python.
Code = tuple[Any, Callable[..., None]]


class Executor:
    """The schedules and the compiled code of a loop, for each strategy that it has run."""

    def __init__(
        self,
        kernel: Callable[..., None],
        plan: LoopPlan,
        slots: Sequence[Slot],
        options: CpuOptions,
    ) -> None:
        # The kernel that is compiled, with the rows of each of its parameters, and one with
        # a parameter for each row, which is looked at.
        self.compiled_kernel = kernel
        self.rows_of_parameters = rows_of_parameters(kernel, plan.loop)
        self.kernel = kernel_by_row(kernel, plan.loop)
        self.plan = plan
        self.loop = plan.loop
        self.slots = slots
        self.options = options
        self._ready: dict[StrategyAndVariant, CompiledLoop] = {}
        self._schedules: dict[StrategyAndVariant, Schedule] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The state without compiled code, which knows the addresses of arrays.

        Copies have other arrays; they and other processes compile or load it anew.
        """
        return {**self.__dict__, "_ready": {}}

    def compiled(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]], form: str = ""
    ) -> "CompiledLoop":
        """The compiled code of a strategy, for arrays that were checked.

        ``form`` is the form of the code, where it was tuned, else empty.
        """
        ready = self._ready.get(way)
        if ready is None:
            ready = self._ready[way] = self._prepare(way, arrays, form)
        return ready

    def form(self, way: StrategyAndVariant) -> str:
        """The form of the code that was chosen; empty while forms are tried."""
        if way in self._ready:
            return self._ready[way].form
        return ""

    def host_call(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]]
    ) -> "HostCall":
        """The loop with arrays that were checked, to be run in parts of its schedule."""
        return HostCall(self, way, arrays)

    def schedule(self, way: StrategyAndVariant) -> Schedule:
        """The schedule of a strategy."""
        if way not in self._schedules:
            import_numba()
            strategy, variant = way
            self._schedules[way] = STRATEGIES[strategy].schedule(self.plan, variant)
        return self._schedules[way]

    def _prepare(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]], form: str
    ) -> "CompiledLoop":
        schedule = self.schedule(way)
        arguments = self._arguments_before_call(way, schedule)
        aheads = self._aheads(way, schedule, arguments.rows, arrays)

        # Each turn reduces the changed globals into rows of its own; one thread changes
        # them in place.
        changed_globals = reduced(self.slots) if schedule.parallel else []
        parts = [
            np.empty((schedule.n_turns, slot.dim), slot.dtype)
            for _, slot in changed_globals
        ]

        # A form may run with and without fetching ahead.
        def tries_of(form: str, given: Sequence[NDArray[Any]]) -> list[Try]:
            text = self._text_of(
                schedule=schedule,
                arguments=arguments,
                form=form,
                fetches=any(aheads),
            )
            fixed_of_tries = []
            for ahead in aheads:
                fixed = [arguments.order]
                if any(aheads):
                    fixed.append(AHEAD[ahead])
                fixed_of_tries.append([*fixed, *arguments.fixed])
            code = self._compiled(text, [*fixed_of_tries[0], *given, *parts])
            return [Try(form, code, fixed) for fixed in fixed_of_tries]

        # Compile the form that is likely the fastest; the others wait until they may pay.
        first_form, *other_forms = self._forms_to_try(way, arguments.rows, form)
        start = time.perf_counter()
        tries = tries_of(first_form, arrays)
        seconds = time.perf_counter() - start

        # Compile the second step, which sums at each point.
        second_steps = []
        for sums in arguments.sums:
            text = Text(
                functions=sums.text,
                names=SUMMED,
                body=shared(SUMMED),
                once=once(SUMMED, ()),
            )
            code = self._compiled(text, [*sums.arrays, arrays[sums.slot]])
            second_steps.append((code, sums))

        # Look at the kernel before it runs for the first time.
        self.check_sample(arrays)
        team = Team(1 if self.options.boundscheck or not schedule.parallel else None)
        return CompiledLoop(
            schedule=schedule,
            tries=tries,
            later=Later(seconds, [partial(tries_of, other) for other in other_forms]),
            parts=parts,
            second_steps=second_steps,
            team=team,
        )

    def _arguments_before_call(
        self, way: StrategyAndVariant, schedule: Schedule
    ) -> "LoopArguments":
        """The rows of the kernel, and the maps and temporary arrays that they need."""
        rows = rows_of(self.loop, self.slots)
        order = NO_ORDER if schedule.order is None else schedule.order
        tables = self.plan.tables
        # Maps in the order in which elements run are read from front to back.
        if schedule.maps_permuted:
            tables = [table[order] for table in tables]
        names = [f"m{i}" for i in range(len(tables))]
        fixed = [np.ascontiguousarray(table).view(np.uint32) for table in tables]
        sums: list[PointSums] = []
        if STRATEGIES[way[0]].sums_later:
            rows, sums = temporaries(self.plan, self.slots, rows)
            for point_sums_of_slot in sums:
                names += point_sums_of_slot.names
                fixed += point_sums_of_slot.parts
        return LoopArguments(rows=rows, order=order, names=names, fixed=fixed, sums=sums)

    def _aheads(
        self,
        way: StrategyAndVariant,
        schedule: Schedule,
        rows: Sequence[Row],
        arrays: Sequence[NDArray[Any]],
    ) -> list[bool]:
        """Whether rows are fetched ahead; both where only trying can tell."""
        if sum(a.nbytes for a in arrays) < FETCHED_BYTES:
            return [False]
        if STRATEGIES[way[0]].tries_forms and any(r.table for r in rows):
            return [False, True]
        return [schedule.fetches]

    def _forms_to_try(
        self, way: StrategyAndVariant, rows: Sequence[Row], tuned_form: str
    ) -> Sequence[str]:
        """The forms of the code that may be the fastest, or the one that was tuned."""
        # With fastmath, operations may be fused, and rounded, otherwise in each form.
        one_form = not STRATEGIES[way[0]].tries_forms or self.options.fastmath
        possible = forms(
            kernel=self.kernel,
            rows=rows,
            apart=reaches_apart(rows, self.plan.tables),
            fixed=one_form,
        )
        return [tuned_form] if tuned_form in possible else possible

    def _text_of(
        self, schedule: Schedule, arguments: "LoopArguments", form: str, fetches: bool
    ) -> "Text":
        """The text of the loop in a form; its arrays have the names of the arguments."""
        names = [*arguments.names, *(f"s{i}" for i in range(len(self.slots)))]
        if fetches:
            names = ["ahead", *names]
        # The functions run elements; the body takes turns, on one thread or on several.
        functions = ElementCode(
            rows=arguments.rows,
            params=tuple(names),
            permuted=schedule.order is not None,
            maps_permuted=schedule.maps_permuted,
            form=form,
            fetches=fetches,
            rows_of_parameters=self.rows_of_parameters,
        ).text()
        # One thread takes all turns, and reduces a global in place.
        if not schedule.parallel:
            return Text(
                functions=functions, names=names, body=alone(names), once=once(names, ())
            )
        # Each turn reduces a global into its own row, so that sums do not depend on
        # threads.
        parts = [f"part_s{i}" for i, _ in reduced(self.slots)]
        return Text(
            functions=functions,
            names=[*names, *parts],
            body=shared(names, self.slots),
            once=once(names, self.slots),
        )

    def check_sample(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Check what the kernel does with a sample of the rows of these arrays."""
        check_sample(self.kernel, self.plan, lambda: rows_by_name(self.slots, arrays))

    def _compiled(self, text: "Text", arrays: Sequence[NDArray[Any]]) -> Code:
        """The code of a text for arrays of these types: the order, then its names."""
        from .build import Inlined, Request, build, build_native

        # What both requests, of native code and of ``run`` from Python, have in common.
        single = takes_single(slot.dtype for slot in self.slots)
        inlined = Inlined(self.compiled_kernel, self.options.fastmath, single)
        request = partial(
            Request,
            kernels=(inlined,),
            fastmath=self.options.fastmath,
            boundscheck=self.options.boundscheck,
        )
        native_request = request(
            text.functions, body=text.body, names=("turns", "waits", "order", *text.names)
        )
        arrays = [NO_TURNS, NO_WAITS, *arrays]
        types = tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in arrays)
        key = (native_request.key(), types)

        def run_once(turn: int, *given: NDArray[Any]) -> None:
            build(request(f"{text.functions}\n\n{text.once}"), given)(turn, *given)

        # Compile once for all loops with the same text, kernel and types.
        with _keeping:
            if key not in _kept:
                try:
                    native = build_native(native_request, arrays)
                except Exception as error:  # numba's errors and, for some bytecode, others
                    raise compile_error(
                        kernel=self.compiled_kernel,
                        loop=self.loop,
                        slots=self.slots,
                        error=error,
                    ) from error
                if len(_kept) >= MAX_KEPT:
                    del _kept[next(iter(_kept))]
                _kept[key] = native
            return _kept[key], run_once


@dataclass(frozen=True)
class Text:
    """The text of a loop or of a second step."""

    functions: str  # defines ``elements``
    names: Sequence[str]  # of the arrays after ``order``
    body: str  # of ``run``, which calls ``elements``
    once: str  # ``run`` of a single turn, for Python


@dataclass(frozen=True, eq=False)
class LoopArguments:
    """The rows of a kernel, and the arrays that they need besides those of a call."""

    rows: tuple[Row, ...]
    order: NDArray[Any]
    names: list[str]  # of maps and temporary arrays, in the text
    fixed: list[NDArray[Any]]  # these maps and temporary arrays
    sums: list[PointSums]  # the second steps


@dataclass(frozen=True, eq=False)
class Try:
    """A way to run a loop: a form of its code, and the arrays before those of a call."""

    form: str
    code: Code
    fixed: Sequence[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Later:
    """The forms that are compiled once calls took ``seconds``, as the first form did.

    Each of ``make`` compiles a form for the arrays of a call, and gives its ways.
    """

    seconds: float
    make: Sequence[Callable[[Sequence[NDArray[Any]]], list[Try]]]


class CompiledLoop:
    """Compiled code of a loop and strategy, in the ways that may be the fastest.

    The first calls run in the first form alone, since the others take as long to compile
    again. Calls after these try all on one turn after another; then the fastest stays, on
    as many threads as pay. The bits of the results are the same in every way.
    """

    def __init__(
        self,
        schedule: Schedule,
        tries: Sequence[Try],
        later: Later,
        parts: Sequence[NDArray[Any]],
        second_steps: Sequence[tuple[Code, PointSums]],
        team: Team,
    ) -> None:
        self._schedule = schedule
        self._parts = parts
        self._second_steps = second_steps
        self._team = team
        self._tries = tries
        self._later = later
        # Calls before the further forms are compiled, and their seconds.
        self._waited_calls = 0
        self._waited = 0.0
        # Seconds an element, for each piece that each way has run.
        self._took: list[list[float]] = [[] for _ in tries]
        self._tried = 0  # calls
        self._chosen = tries[0] if len(tries) == 1 and not later.make else None
        # The turns of a call on one thread.
        self._alone = schedule.whole
        if schedule.alone is not None and not parts:
            self._alone = schedule.alone
        # The words of the table of turns, the waits and the fixed arrays, by the identity
        # of the table: to find an address takes a microsecond an array.
        self._known: dict[int, list[int]] = {}

    @property
    def form(self) -> str:
        """The form of the code that was chosen; empty while forms are tried."""
        if self._chosen is None:
            return ""
        return self._chosen.form

    def run(self, given: Sequence[NDArray[Any]], turns: Turns) -> None:
        """Run some turns."""
        self.bound(given, turns)()

    def bound(
        self, given: Sequence[NDArray[Any]], turns: Turns | None = None
    ) -> Callable[..., None]:
        """A call with these arrays, of all turns or of some."""
        turns_to_run = self._schedule.whole if turns is None else turns
        way = self._chosen
        if way is None and self._later.make:
            if self._further_forms_may_pay():
                self._compile_further_forms(given)
            else:
                way = self._tries[0]
        if way is None:
            return partial(self._try, given, turns_to_run)
        launch = self._launch(
            way=way,
            turns=turns_to_run,
            alone=self._alone if turns is None else turns,
            given=given,
        )
        if self._later.make:
            return partial(self._run_meanwhile, launch)
        return launch

    def _further_forms_may_pay(self) -> bool:
        """Whether the calls so far took as long as another form takes to compile."""
        return self._waited_calls >= PATIENT_CALLS or self._waited >= self._later.seconds

    def _run_meanwhile(self, launch: Callable[[], None]) -> None:
        """Run a call in the first form, and add up the seconds of such calls."""
        start = time.perf_counter()
        launch()
        self._waited += time.perf_counter() - start
        self._waited_calls += 1

    def _compile_further_forms(self, given: Sequence[NDArray[Any]]) -> None:
        """Compile the forms that have waited; the next calls try them all."""
        with _keeping:
            # Another thread may have done it meanwhile.
            make = self._later.make
            if not make:
                return
            tries = list(self._tries)
            for make_tries in make:
                tries += make_tries(given)
            self._took = [[] for _ in tries]
            self._tries = tries
            self._later = replace(self._later, make=())

    def alone(self, given: Sequence[NDArray[Any]]) -> list[BoundCode]:
        """The steps of a call, where it is known to run always on one thread; else none."""
        (first, last), *_ = self._schedule.whole
        if self._chosen is None or not self._team.is_small(int(last - first)):
            return []
        from .build import words_of

        return self._steps(
            way=self._chosen,
            turns=self._alone,
            given=given,
            words=words_of([*given, *self._parts]),
        )

    def _launch(
        self, way: Try, turns: Turns, alone: Turns, given: Sequence[NDArray[Any]]
    ) -> Callable[[], None]:
        from .build import words_of

        words = words_of([*given, *self._parts])
        steps = self._steps(way=way, turns=turns, given=given, words=words)
        (first, last), *_ = turns
        if alone is turns:
            steps_alone = steps
        else:
            steps_alone = self._steps(way=way, turns=alone, given=given, words=words)
        return partial(self._team.run, int(last - first), steps, OneThread(steps_alone))

    def _steps(
        self, way: Try, turns: Turns, given: Sequence[NDArray[Any]], words: Sequence[int]
    ) -> list[BoundCode]:
        """The step that runs the kernel, and the second steps."""
        # The kernel runs over elements, with the arrays of this call.
        code, run_once = way.code
        arrays = (*way.fixed, *given, *self._parts)
        steps = [
            BoundCode(
                code=code,
                turns=turns,
                arrays=arrays,
                run_once=run_once,
                words=[*self._words(way, turns), *words],
            )
        ]
        # Second steps run over points, after all elements.
        for (sum_code, sum_once), sums in self._second_steps:
            steps.append(
                BoundCode(
                    code=sum_code,
                    turns=sums.turns,
                    arrays=(*sums.arrays, given[sums.slot]),
                    run_once=sum_once,
                )
            )
        return steps

    def _words(self, way: Try, turns: Turns) -> Sequence[int]:
        """The words of a step before those of the arrays of a call."""
        from .build import words_of

        _, table, waits = turns
        if id(table) in self._known:
            return self._known[id(table)]
        words = words_of([table, waits, *way.fixed])
        # A table that is not kept alive may leave its id to another one.
        if table is self._schedule.turns or table is self._alone[1]:
            self._known[id(table)] = words
        return words

    def _try(self, given: Sequence[NDArray[Any]], turns: Turns) -> None:
        """Run some turns, each in one of the ways, while no other call runs."""
        with turn(), half_done():
            (first, last), table, _ = turns
            parts = [np.empty_like(part) for part in self._parts]
            steps = []
            for way in self._tries:
                code, run_once = way.code
                arrays = (*way.fixed, *given, *parts)
                step = BoundCode(code=code, turns=turns, arrays=arrays, run_once=run_once)
                steps.append(OneThread([step]))
            # Run the turns one by one, each in the next way.
            for i in range(first, last):
                number = (i + self._tried) % len(steps)
                step_words = steps[number].step_words
                step_words[1] = i
                step_words[2] = i + 1
                start = time.perf_counter()
                steps[number].run_or_raise()
                seconds = time.perf_counter() - start
                n_elements = max(int(table[i, 1] - table[i, 0]), 1)
                self._took[number].append(seconds / n_elements)
            # Choose the way with the least median once each has run enough pieces.
            self._tried += 1
            pieces = min(map(len, self._took))
            if (
                self._chosen is None
                and self._tried >= TRIAL_CALLS
                and pieces >= TRIAL_PIECES
            ):
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
