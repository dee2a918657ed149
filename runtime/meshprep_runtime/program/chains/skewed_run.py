"""Runs a chain by skewed tiles on the host, on the dats themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...kernel.bind import Slot
from ...kernel.compiler import import_numba
from ...maps import read_only
from ...plan.chains.skewed import SkewedPlan
from ..dat import ProgramDat
from .launch import (
    Arrays,
    arrays_of_globals,
    compiled,
    executor_of,
    launch,
    numbered_functions,
    reduce_into,
)
from .records import Call, Record
from .source import LINE, SkewedCode, skewed_elements, skewed_text


class SkewedRun:
    """A chain on its skewed tiles, compiled when it first runs.

    Where a kernel raises, some tiles have changed the dats, as a loop alone would have. ``dats``
    are by the names of the loops of ``tiles``, and ``seconds`` those that the inspector took.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        tiles: SkewedPlan,
        dats: Mapping[str, ProgramDat],
        seconds: float = 0.0,
    ) -> None:
        self.tiles = tiles
        self.seconds = seconds
        self._dats = dict(dats)
        self._executors = [executor_of(call) for call in calls]
        threads = import_numba().config.NUMBA_NUM_THREADS
        tables = {id(t): t for e in self._executors for t in e.plan.tables}
        self._tables = {key: f"m_{i}" for i, key in enumerate(tables)}
        self._fixed: Arrays = {
            "state": np.zeros(LINE * threads, np.int64),
            # read-only as those of a plan are, so that both take one compiled function
            "colour_offset": read_only(tiles.colour_offset),
        }
        for k, run in enumerate(tiles.runs):
            elements = run.elements.view(np.uint32)
            self._fixed |= {f"o{k}": read_only(run.offset), f"l{k}": read_only(elements)}
        self._changed = list(dict.fromkeys(n for loop in tiles.loops for n in loop.written))
        # values that were dropped are missing only where a loop reads them first
        self._full = {a.name: a.full for loop in reversed(tiles.loops) for a in loop.args}
        for key, table in tables.items():
            self._fixed[self._tables[key]] = np.ascontiguousarray(table).view(np.uint32)
        self._call: Any = None

    def __call__(self, records: list[Record]) -> None:
        """Run the chain with the constants and assignments of these records."""
        calls = [r for r in records if isinstance(r, Call)]
        globals_ = arrays_of_globals(records, self._executors, self.tiles.n_tiles)
        arrays = self._fixed | self._arrays_of_dats() | globals_
        if self._call is None:
            self._call = self._compiled(calls, arrays)
        state, given = self._fixed["state"], [*arrays.values()]
        state[:] = 0
        try:
            launch(self._call, given, self.tiles.n_tiles, state, records)
        finally:
            for name in self._changed:
                self._dats[name].dropped = False
                self._dats[name].touch()
        reduce_into(records, self._executors, arrays)

    @property
    def nbytes(self) -> int:
        """Memory of the schedule."""
        return self.tiles.nbytes

    def _arrays_of_dats(self) -> Arrays:
        arrays: Arrays = {}
        for i, (name, dat) in enumerate(self._dats.items()):
            values = (dat.stored if self._full[name] else dat.current()).reshape(-1).view()
            values.flags.writeable = name in self._changed
            arrays[f"d_{i}"] = values
        return arrays

    def _compiled(self, calls: Sequence[Call], arrays: Arrays) -> Any:
        functions, of_call = numbered_functions(
            self._executors,
            [True] * len(calls),
            lambda e, _, s: skewed_elements(e.loop, e.slots, len(e.plan.tables), s),
        )
        codes = [self._code(n, call, of_call[n]) for n, call in enumerate(calls)]
        text = skewed_text(list(arrays), codes)
        return compiled(functions, text, [*arrays.values()], self._executors[0])

    def _code(self, n: int, call: Call, function: int) -> SkewedCode:
        names = {id(dat): f"d_{i}" for i, dat in enumerate(self._dats.values())}
        executor = self._executors[n]

        def given(i: int, slot: Slot) -> str:
            if slot.rows is not None:
                return names[id(call.given[slot.name])]
            return f"p{n}_{i}[t]" if slot.written else f"c{n}_{i}"

        tables = [self._tables[id(table)] for table in executor.plan.tables]
        return SkewedCode(function, [*tables, *(given(i, s) for i, s in enumerate(executor.slots))])
