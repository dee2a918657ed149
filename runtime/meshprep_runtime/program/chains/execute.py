"""Runs a chain tile by tile on the host: arrays, second copies, scratch rows, reductions."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...kernel.bind import SOA
from ...kernel.compiler import import_numba
from ..dat import ProgramDat
from .launch import (
    LINE,
    Arrays,
    CallCode,
    DatCode,
    arrays_of_globals,
    compiled,
    executor_of,
    launch,
    numbered_functions,
    reduce_into,
    tile_text,
)
from .numbers import ChainNumbers
from .records import Call, Record
from .tiles import TilePlan


class TiledRun:
    """A chain on its tiles, compiled when it first runs.

    Every dat that the chain stores and reads has a second copy: tiles read the old values and store
    new ones, then the copies change places. An array that the program has seen becomes no second
    copy.

    ``dats`` are by the names of ``chain``, and ``seconds`` those that the inspector took.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        chain: ChainNumbers,
        tiles: TilePlan,
        dats: Mapping[str, ProgramDat],
        seconds: float = 0.0,
    ) -> None:
        self.tiles = tiles
        self.seconds = seconds
        self._dats = dict(dats)
        self._written = tiles.written
        self._codes = {code.dat: code for code in dat_codes(chain, tiles, dats)}
        self._table, self._columns = schedule_table(tiles)
        self._executors = [executor_of(call) for call in calls]
        self._fixed = self._arrays_of_schedule()
        self._second: dict[str, Any] = {}
        self._zero: dict[str, int] = {}
        self._call: Any = None

    def __call__(self, records: list[Record]) -> None:
        """Run the chain with the constants and assignments of these records."""
        calls = [r for r in records if isinstance(r, Call)]
        self._check_zero()
        self._check_memory()
        arrays = (
            self._fixed
            | self._arrays_of_dats()
            | arrays_of_globals(records, self._executors, self.tiles.n_tiles)
        )
        if self._call is None:
            self._call = self._compiled(calls, arrays)
        state = self._fixed["state"]
        state[:] = 0
        try:
            launch(self._call, [*arrays.values()], self.tiles.n_tiles, state, records)
            if self._fixed["state"].reshape(-1, LINE)[:, 1].any():
                raise _not_zero(", ".join(sorted(self.tiles.kept.zero)), "after")
        except BaseException:
            # what is stored without a second copy may have changed
            for name, code in self._codes.items():
                if code.stored:
                    self._dats[name].touch()
            raise
        self._swap()
        reduce_into(records, self._executors, arrays)

    @property
    def nbytes(self) -> int:
        """Memory of the schedule, the second copies and the scratch rows."""
        scratch = sum(a.nbytes for n, a in self._fixed.items() if n.startswith("r_"))
        return self.tiles.nbytes + scratch + sum(int(a.nbytes) for a in self._second.values())

    def _arrays_of_schedule(self) -> Arrays:
        threads = import_numba().config.NUMBA_NUM_THREADS
        tiles = self.tiles
        fixed: Arrays = {
            "g": self._table,
            **schedule_arrays(tiles),
            "state": np.zeros(LINE * threads, np.int64),
        }
        for name, code in self._codes.items():
            n = max(tiles.sets[code.set].largest, 1) * code.dim
            fixed[f"r_{code.name}"] = np.zeros((threads, n), self._dats[name].dtype)
        return fixed

    def _arrays_of_dats(self) -> Arrays:
        arrays: Arrays = {}
        for name, code in self._codes.items():
            if code.copied:
                old = self._dats[name].current().reshape(-1).view()
                old.flags.writeable = False
                arrays[f"d_{code.name}"] = old
            if code.stored:
                target = self._dats[name].stored
                if code.copied:
                    target = self._second.setdefault(name, np.empty_like(target))
                arrays[f"n_{code.name}"] = target.reshape(-1)
        return arrays

    def _compiled(self, calls: Sequence[Call], arrays: Arrays) -> Any:
        listed = [run.items is not None for run in self.tiles.runs]
        functions, of_call = numbered_functions(self._executors, listed)
        codes = [self._call_code(n, call, of_call[n]) for n, call in enumerate(calls)]
        arities = {m: x.table.shape[1] for m, x in self.tiles.maps.items()}
        text = tile_text(
            list(arrays),
            self._columns,
            list(self.tiles.sets),
            arities,
            list(self._codes.values()),
            codes,
        )
        return compiled(functions, text, [*arrays.values()], self._executors[0])

    def _call_code(self, n: int, call: Call, function: int) -> CallCode:
        executor = self._executors[n]
        names = {id(dat): name for name, dat in self._dats.items()}
        given, reduced = [], []
        for i, slot in enumerate(executor.slots):
            if slot.rows is not None:
                given.append(f"w_{self._codes[names[id(call.given[slot.name])]].name}")
            else:
                given.append(f"p{n}_{i}" if slot.written else f"c{n}_{i}")
                reduced += [i] if slot.written else []
        loop = executor.loop
        listed = self.tiles.runs[n].items is not None
        return CallCode(function, given, loop.maps, loop.over, listed, reduced)

    def _swap(self) -> None:
        for name, dat in self._dats.items():
            code = self._codes[name]
            if code.stored and code.copied:
                old, dat.stored = dat.stored, self._second.pop(name)
                if not dat.seen:
                    self._second[name] = old
                dat.seen = False
            if name in self.tiles.kept.dropped:
                dat.dropped = True
            if code.stored:
                dat.dropped = False
                dat.touch()

    def _check_memory(self) -> None:
        """Raise MeshprepError where tiles would write memory that two dats share."""
        for (a, first), (b, second) in combinations(self._dats.items(), 2):
            if {a, b} & self._written and np.may_share_memory(first.stored, second.stored):
                raise MeshprepError(
                    f"dats '{a}' and '{b}' share memory, and tiles write one of them: "
                    "give them separate arrays"
                )

    def _check_zero(self) -> None:
        """Dats that start from zero: looked at when they were changed outside."""
        for name in self.tiles.kept.zero:
            dat = self._dats[name]
            if self._zero.get(name) != dat.version:
                if np.any(dat.current()):
                    raise _not_zero(name, "before")
                self._zero[name] = dat.version


def dat_codes(
    chain: ChainNumbers, tiles: TilePlan, dats: Mapping[str, ProgramDat]
) -> list[DatCode]:
    """What the text does with each dat."""
    kept = tiles.kept
    made = []
    for i, (name, dat) in enumerate(dats.items()):
        copy = tiles.copies.get(name)
        zero = name in kept.zero
        stored = name in chain.written and name not in kept.dropped and not zero
        listed = copy is not None and copy.items is not None
        soa = dat.layout == SOA and dat.dim > 1
        made.append(
            DatCode(
                name, str(i), chain.dats[name], dat.dim, soa, copy is not None, listed, stored, zero
            )
        )
    return made


def schedule_arrays(tiles: TilePlan) -> Arrays:
    """Elements of all sets, rows of all maps, and all lists, each in one array."""
    table = _joined([m.table.reshape(-1) for m in tiles.maps.values()])
    return {
        "e": _joined([s.elements for s in tiles.sets.values()]),
        # unsigned, so that compiled code makes no test for negative indices
        "m": table if table.dtype.kind == "u" else table.view(np.uint32),
        "l": _joined([s.items for _, s in _selections(tiles) if s.items is not None]),
    }


def schedule_table(tiles: TilePlan) -> tuple[NDArray[np.int64], dict[str, int]]:
    """All counts and offsets, a row a tile, and the column where each begins."""
    columns: dict[str, int] = {}
    found: list[NDArray[np.int64]] = []

    def add(name: str, *values: NDArray[np.int64]) -> None:
        columns[name] = len(found)
        found.extend(values)

    at = 0
    for s, of_set in tiles.sets.items():
        add(f"set {s}", of_set.offset[:-1] + at, of_set.offset[1:] + at)
        add(f"own {s}", of_set.own)
        at += of_set.elements.size
    at = 0
    for m, of_map in tiles.maps.items():
        arity = of_map.table.shape[1]
        add(f"map {m}", of_map.offset[:-1] * arity + at, of_map.offset[1:] * arity + at)
        at += of_map.table.size
    at = 0
    for name, chosen in _selections(tiles):
        add(name, chosen.count)
        if chosen.items is not None:
            offset = chosen.offset + at
            add(f"list {name}", offset[:-1], offset[1:])
            at += chosen.items.size
    return np.stack(found, axis=1), columns


def _selections(tiles: TilePlan) -> list[tuple[str, Any]]:
    runs = [(f"run {n}", s) for n, s in enumerate(tiles.runs)]
    return runs + [(f"copy {d}", s) for d, s in tiles.copies.items()]


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)


def _not_zero(names: str, when: str) -> MeshprepError:
    return MeshprepError(
        f"dat '{names}' is declared zero, but is not zero {when} the chain: leave it out of 'zero'"
    )
