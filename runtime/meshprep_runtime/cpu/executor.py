"""Runs a bound loop on the CPU: schedules, compiles and keeps its code, and launches it."""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernel.analysis import takes_single
from ..kernel.bind import Slot
from ..kernel.compiler import compile_error, import_numba
from ..kernel.rows import Row, rows_of
from ..loops import Access
from ..plan import LoopPlan, Variant
from .cores import thread_count
from .elements import ElementCode, can_chunk
from .pool import Step, Team
from .schedule import SCHEDULES, Ranges, Schedule
from .source import COUNTER_ROOM, parallel, point_sums, reduced, sequential


@dataclass(frozen=True, eq=False)
class PointSums:
    """The second step for one dat, which needs neither colours nor atomics [S19 section 3.1]."""

    slot: int  # which array takes the sums
    names: tuple[str, ...]  # the names of the temporary arrays in the text of the first step
    # Those arrays, one an argument and index, ``dim`` values an element; views of one.
    parts: tuple[NDArray[Any], ...]
    # ``point_offset``, ``place`` and the temporary array: point ``p`` adds up the rows
    # ``place[point_offset[p] : point_offset[p + 1]]``.
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
    return PointSums(at, names, parts, (offset, place, found), point_sums(slot))


MAX_KEPT = 256
# Dats that take fewer bytes together stay in a cache, where asking for their rows ahead costs more
# than it saves: on one of 32 MB loops gain from 20 MB on, and lose up to a half at 6 MB.
FETCHED_BYTES = 12_000_000

_kept: dict[Hashable, Any] = {}
_keeping = threading.Lock()


@dataclass(frozen=True)
class CpuOptions:
    """How kernels are compiled."""

    boundscheck: bool = False
    fastmath: bool = False


# A strategy and the blocks it takes; variants are told apart by identity.
StrategyAndVariant = tuple[str, Variant | None]


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
        self._ready: dict[StrategyAndVariant, Callable[..., None]] = {}
        self._schedules: dict[StrategyAndVariant, Schedule] = {}

    def run(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]], ranges: Ranges | None = None
    ) -> None:
        """Run the loop, or some ranges of its schedule, on arrays that a Binder has checked."""
        ready = self._ready.get(way)
        if ready is None:
            ready = self._ready[way] = self._prepare(way, arrays)
        ready(arrays, ranges)

    def schedule(self, way: StrategyAndVariant) -> Schedule:
        """In which order a strategy runs the elements."""
        if way not in self._schedules:
            import_numba()
            strategy, variant = way
            self._schedules[way] = SCHEDULES[strategy](self.plan, variant)
        return self._schedules[way]

    def _prepare(
        self, way: StrategyAndVariant, arrays: Sequence[NDArray[Any]]
    ) -> Callable[..., None]:
        schedule = self.schedule(way)
        rows = rows_of(self.loop, self.slots)
        tables = self.plan.tables
        order = np.zeros(0, np.int32) if schedule.order is None else schedule.order
        if schedule.maps_permuted:
            tables = [table[order] for table in tables]
        whole = schedule.ranges
        fixed = [order, *(np.ascontiguousarray(t).view(np.uint32) for t in tables)]
        sums: list[PointSums] = []
        names = [f"m{i}" for i in range(len(tables))]
        if way[0] == "two-step":
            rows, sums = temporaries(self.plan, self.slots, rows)
            names += [name for s in sums for name in s.names]
            fixed += [part for s in sums for part in s.parts]
        names += [f"s{i}" for i in range(len(self.slots))]
        fetches = schedule.fetches and sum(a.nbytes for a in arrays) >= FETCHED_BYTES
        text = self._text(schedule, rows, names, fetches)
        if not schedule.parallel:
            call = self._compiled(text, (*whole, *fixed, *arrays))
            return lambda given, ranges: call(0, *(ranges or whole), *fixed, *given)
        return self._on_threads(text, schedule, fixed, sums, arrays)

    def _on_threads(
        self,
        text: str,
        schedule: Schedule,
        fixed: Sequence[NDArray[Any]],
        sums: Sequence[PointSums],
        arrays: Sequence[NDArray[Any]],
    ) -> Callable[..., None]:
        globals_ = reduced(self.slots)
        whole, alone = schedule.ranges, schedule.ranges_alone
        n_ranges = whole[0].size - 1
        counters = np.zeros(COUNTER_ROOM, np.int64)
        call = self._compiled(
            text, (counters, *whole, *fixed, *arrays, *_parts(globals_, arrays, n_ranges))
        )
        then = [(self._compiled(s.text, (counters, *s.arrays, arrays[s.slot])), s) for s in sums]
        # Threads cannot hand on the place of an exception, so bounds are checked on one.
        team = Team(1 if self.options.boundscheck else None)

        def run(given: Sequence[NDArray[Any]], ranges: Ranges | None) -> None:
            parts = _parts(globals_, given, n_ranges)

            def steps(several: bool) -> list[Step]:
                some = ranges or (whole if several else alone)
                first = (call, (*some, *fixed, *given, *parts))
                return [first, *((add, (*s.arrays, given[s.slot])) for add, s in then)]

            team.run((ranges or whole)[2].size, steps)

        return run

    def _text(
        self, schedule: Schedule, rows: tuple[Row, ...], names: Sequence[str], fetches: bool
    ) -> str:
        permuted = schedule.order is not None
        elements = ElementCode(
            rows,
            tuple(names),
            permuted,
            schedule.maps_permuted,
            chunks=can_chunk(rows),
            fetches=fetches,
        )
        make = parallel if schedule.parallel else sequential
        return f"{elements.text()}\n\n{make(names, self.slots)}"

    def _compiled(self, text: str, arrays: Sequence[NDArray[Any]]) -> Any:
        from .build import Inlined, Request, build

        single = takes_single(slot.dtype for slot in self.slots)
        fast = self.options.fastmath
        kernel = Inlined(self.kernel, fast, single)
        request = Request(text, (kernel,), fast, self.options.boundscheck)
        key = (request.key(), tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in arrays))
        with _keeping:
            if key in _kept:
                return _kept[key]
            try:
                call = build(request, arrays)
            except Exception as error:  # numba's own and, for some bytecode, others.
                raise compile_error(self.kernel, self.loop, self.slots, error) from error
            if len(_kept) >= MAX_KEPT:
                del _kept[next(iter(_kept))]
            _kept[key] = call
        return call


@dataclass(frozen=True, eq=False)
class HostCall:
    """A loop with the arrays of one call, checked, to be run range by range."""

    executor: Executor
    way: StrategyAndVariant
    arrays: Sequence[NDArray[Any]]

    def run(self, ranges: Ranges, instead: Mapping[int, NDArray[Any]] | None = None) -> None:
        """Run some ranges of the schedule; ``instead`` has other arrays for some slots."""
        arrays = self.arrays
        if instead:
            arrays = [instead.get(i, array) for i, array in enumerate(arrays)]
        self.executor.run(self.way, arrays, ranges)


def choose_strategy(variant: Variant | None) -> str:
    """Hierarchical where there are several threads, and blocks that may run at the same time."""
    # As many colours as blocks: each waits for the one before.
    side_by_side = variant is not None and variant.n_blocks > variant.n_block_colours
    several = side_by_side and thread_count() > 1
    return "hierarchical" if several else "sequential"


def _parts(
    reductions: Sequence[tuple[int, Slot]], given: Sequence[NDArray[Any]], n_ranges: int
) -> list[NDArray[Any]]:
    """A row a range for each global that is reduced, in which nothing is added up yet."""
    made = []
    for i, slot in reductions:
        part = np.zeros((n_ranges, given[i].size), given[i].dtype)
        if slot.access is not Access.INC:
            part[:] = given[i]
        made.append(part)
    return made
