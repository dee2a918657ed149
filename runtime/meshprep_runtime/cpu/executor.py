"""Runs a bound loop on the CPU: schedules, compiles and keeps its code, and launches it."""

import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..kernel.analysis import takes_single
from ..kernel.bind import Slot
from ..kernel.compiler import compile_error, import_numba
from ..kernel.rows import Row, rows_of
from ..plan import LoopPlan, Variant
from .elements import ElementCode, can_chunk
from .schedule import SCHEDULES, Ranges, Schedule
from .source import parallel, sequential
from .two_step import PointSums, temporaries

MAX_KEPT = 256
# Dats that take fewer bytes together stay in a cache, where asking for their rows ahead costs more
# than it saves: on one of 32 MB loops gain from 20 MB on, and lose up to a half at 6 MB.
FETCHED_BYTES = 12_000_000

_kept: dict[Hashable, Any] = {}
_keeping = threading.Lock()


class _Launch:
    """One parallel launch at a time: numba's workqueue layer aborts on concurrent ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.forked = False

    def after_fork(self) -> None:
        self.lock = threading.Lock()
        self.forked = _threads_run()


_launch = _Launch()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_launch.after_fork)


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
        call = self._compiled(text, schedule.parallel, (*whole, *fixed, *arrays))
        if not schedule.parallel:
            return lambda given, ranges: call(1, *(ranges or whole), *fixed, *given)
        then = [
            (self._compiled(s.text, True, (*s.arrays, arrays[s.slot])), s.arrays, s.slot)
            for s in sums
        ]
        steps = [(call, (*whole, *fixed), None), *then]

        def run(given: Sequence[NDArray[Any]], ranges: Ranges | None) -> None:
            some = steps if ranges is None else [(call, (*ranges, *fixed), None), *then]
            self._launch(some, given)

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

    def _launch(self, steps: Sequence[Any], given: Sequence[NDArray[Any]]) -> None:
        with launching(f"loop '{self.loop.name}'") as threads:
            for call, fixed, slot in steps:
                call(threads, *fixed, *(given if slot is None else (given[slot],)))

    def _compiled(self, text: str, parallel: bool, arrays: Sequence[NDArray[Any]]) -> Any:
        from .build import Request, build

        single = takes_single(slot.dtype for slot in self.slots)
        request = Request(
            self.kernel, text, parallel, self.options.boundscheck, self.options.fastmath, single
        )
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
    several = side_by_side and import_numba().get_num_threads() > 1
    return "hierarchical" if several else "sequential"


@contextmanager
def launching(what: str) -> Iterator[int]:
    """The number of threads for parallel launches, which run when no other thread's do."""
    _refuse_after_fork(what)
    threads = import_numba().get_num_threads()
    with _launch.lock:
        yield threads


def _threads_run() -> bool:
    """True where numba has begun threads: for our loops, or for others of the program."""
    if "numba" not in sys.modules:
        return False
    try:
        import_numba().threading_layer()
    except ValueError:
        return False
    return True


def _refuse_after_fork(what: str) -> None:
    if not _launch.forked:
        return
    import numba

    if numba.threading_layer() == "omp":
        raise MeshprepError(
            f"{what}: this process was forked after a parallel loop had run, which OpenMP "
            "does not survive: start processes by 'spawn', or use strategy 'sequential'"
        )
