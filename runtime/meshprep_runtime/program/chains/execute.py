"""Run a chain tile by tile on the host."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._numba.installed import thread_limit
from ...errors import MeshprepError
from ...kernel.bind import SOA, Slot, bound
from ...types.loops import Loop
from ..dat import ProgramDat
from .launch import (
    LINE,
    Arrays,
    CallCode,
    DatCode,
    arrays_of_globals,
    check_samples,
    compiled,
    executor_of,
    launch,
    numbered_functions,
    reduce_into,
    tile_text,
)
from .numbers import ChainNumbers
from .records import Call, Record
from .tiles import LocalSelection, TilePlan


class TiledRun:
    """A chain on its tiles, compiled when it first runs.

    Every dat that the chain stores and reads has a second copy: tiles read the old values
    and store new ones, then the copies are swapped. An array that the program may hold is
    never used as a second copy.

    ``dats`` are by the names of ``chain``; ``seconds`` is the time of the inspector.
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
        check_samples(calls)
        self._executors = [executor_of(call) for call in calls]
        self._slots = self._slots_of_dats(calls)
        self._fixed = self._arrays_of_schedule()
        self._second: dict[str, Any] = {}
        self._zero: dict[str, int] = {}
        self._call: Any = None

    def __call__(self, records: list[Record]) -> None:
        """Run the chain with the constants and assignments of these records."""
        calls = [r for r in records if isinstance(r, Call)]
        self._check_arrays()
        self._check_zero()
        self._check_memory()
        # Take the arrays of this call: dats may have been replaced, and globals assigned.
        arrays = (
            self._fixed
            | self._arrays_of_dats()
            | arrays_of_globals(records, self._executors, self.tiles.n_tiles)
        )
        if self._call is None:
            self._call = self._compile(calls, arrays)
        state = self._fixed["state"]
        state[:] = 0
        try:
            launch(
                call=self._call,
                arrays=[*arrays.values()],
                n_tiles=self.tiles.n_tiles,
                state=state,
                records=records,
            )
            if self._fixed["state"].reshape(-1, LINE)[:, 1].any():
                raise _not_zero_error(", ".join(sorted(self.tiles.kept.zero)), "after")
        except BaseException:
            # Dats that are stored without a second copy may have changed.
            for name, code in self._codes.items():
                if code.stored:
                    self._dats[name].touch()
            raise
        self._swap_copies()
        reduce_into(records, self._executors, arrays)

    @property
    def nbytes(self) -> int:
        """Memory of the schedule, the second copies and the scratch rows."""
        scratch = sum(a.nbytes for n, a in self._fixed.items() if n.startswith("r_"))
        second_copies = sum(int(array.nbytes) for array in self._second.values())
        return self.tiles.nbytes + scratch + second_copies

    def _arrays_of_schedule(self) -> Arrays:
        """The schedule, the state of each thread, and its scratch rows for each dat."""
        n_threads = thread_limit()
        tiles = self.tiles
        arrays: Arrays = {
            "g": self._table,
            **schedule_arrays(tiles),
            "state": np.zeros(LINE * n_threads, np.int64),
        }
        for name, code in self._codes.items():
            n = max(tiles.sets[code.set].largest, 1) * code.dim
            arrays[f"r_{code.name}"] = np.zeros((n_threads, n), self._dats[name].dtype)
        return arrays

    def _arrays_of_dats(self) -> Arrays:
        """The arrays that tiles read, and those that they store to."""
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

    def _compile(self, calls: Sequence[Call], arrays: Arrays) -> Any:
        """The compiled function that takes tiles and runs the chain on them."""
        # Loops with the same kernel share one function.
        listed = [run.items is not None for run in self.tiles.runs]
        functions, function_of_call = numbered_functions(self._executors, listed)
        codes = []
        for n, call in enumerate(calls):
            codes.append(self._call_code(n, call, function_of_call[n]))
        # Join the functions of the loops in one text, which runs tiles.
        arities = {m: x.table.shape[1] for m, x in self.tiles.maps.items()}
        text = tile_text(
            params=list(arrays),
            column=self._columns,
            sets=list(self.tiles.sets),
            maps=arities,
            dats=list(self._codes.values()),
            calls=codes,
        )
        return compiled(
            functions=functions,
            text=text,
            arrays=[*arrays.values()],
            one=self._executors[0],
        )

    def _call_code(self, n: int, call: Call, function: int) -> CallCode:
        """The names of arguments and maps of call ``n`` in the text."""
        executor = self._executors[n]
        names = {id(dat): name for name, dat in self._dats.items()}
        arguments = []
        reduced = []
        for i, slot in enumerate(executor.slots):
            # Dats are read and changed in scratch rows of the tile; globals are reduced for
            # each tile.
            if slot.rows is not None:
                dat_name = names[id(call.given[slot.name])]
                arguments.append(f"w_{self._codes[dat_name].name}")
            elif slot.written:
                arguments.append(f"p{n}_{i}")
                reduced.append(i)
            else:
                arguments.append(f"c{n}_{i}")
        return CallCode(
            function=function,
            given=arguments,
            maps=executor.loop.maps,
            over=executor.loop.over,
            listed=self.tiles.runs[n].items is not None,
            reduced=reduced,
        )

    def _swap_copies(self) -> None:
        """Make the second copies, with the new values, the arrays of their dats."""
        for name, dat in self._dats.items():
            code = self._codes[name]
            if code.stored and code.copied:
                old = dat.stored
                dat.stored = self._second.pop(name)
                if not dat.seen:
                    self._second[name] = old
                dat.seen = False
            if name in self.tiles.kept.dropped:
                dat.dropped = True
            if code.stored:
                dat.dropped = False
                dat.touch()

    def _slots_of_dats(self, calls: Sequence[Call]) -> dict[str, tuple[Loop, Slot]]:
        """By the name of a dat: the last loop that writes it, with its slot.

        Of a dat that is only read: the first loop that reads it.
        """
        names = {id(dat): name for name, dat in self._dats.items()}
        slots: dict[str, tuple[Loop, Slot]] = {}
        for call, executor in zip(calls, self._executors, strict=True):
            for slot in executor.slots:
                name = names.get(id(call.given[slot.name]))
                if name is not None and (slot.written or name not in slots):
                    slots[name] = (executor.loop, slot)
        return slots

    def _check_arrays(self) -> None:
        """Raise MeshprepError for an array that does not fit any more.

        The shape of an array may have been changed in place.
        """
        for name, (loop, slot) in self._slots.items():
            bound(loop, slot, self._dats[name].stored)

    def _check_memory(self) -> None:
        """Raise MeshprepError where tiles would write memory that two dats share."""
        for (a, first), (b, second) in combinations(self._dats.items(), 2):
            if {a, b} & self._written and np.may_share_memory(first.stored, second.stored):
                raise MeshprepError(
                    f"dats '{a}' and '{b}' share memory, and tiles write one of them: "
                    "give them separate arrays"
                )

    def _check_zero(self) -> None:
        """Raise MeshprepError for a dat that must start from zero and does not.

        Its values are looked at only when it was changed outside of tiles.
        """
        for name in self.tiles.kept.zero:
            dat = self._dats[name]
            if self._zero.get(name) != dat.version:
                if np.any(dat.current()):
                    raise _not_zero_error(name, "before")
                self._zero[name] = dat.version


def dat_codes(
    chain: ChainNumbers, tiles: TilePlan, dats: Mapping[str, ProgramDat]
) -> list[DatCode]:
    """Which dats the text copies to scratch rows, and which it stores."""
    dropped = tiles.kept.dropped
    codes = []
    for i, (name, dat) in enumerate(dats.items()):
        # A dat that is zero before and after, or dropped, is not stored.
        copy = tiles.copies.get(name)
        zero = name in tiles.kept.zero
        stored = name in chain.written and name not in dropped and not zero
        codes.append(
            DatCode(
                dat=name,
                name=str(i),
                set=chain.dats[name],
                dim=dat.dim,
                soa=dat.layout == SOA and dat.dim > 1,
                copied=copy is not None,
                listed=copy is not None and copy.items is not None,
                stored=stored,
                zero=zero,
            )
        )
    return codes


def schedule_arrays(tiles: TilePlan) -> Arrays:
    """The elements of all sets, the rows of all maps, and all lists, each in one array."""
    table = _concatenate([m.table.reshape(-1) for m in tiles.maps.values()])
    # Unsigned, so that compiled code makes no test for negative indices.
    if table.dtype.kind != "u":
        table = table.view(np.uint32)
    lists = [s.items for _, s in _selections(tiles) if s.items is not None]
    return {
        "e": _concatenate([s.elements for s in tiles.sets.values()]),
        "m": table,
        "l": _concatenate(lists),
    }


def schedule_table(tiles: TilePlan) -> tuple[NDArray[np.int64], dict[str, int]]:
    """All counts and offsets of the tiles, and the column where each of them begins.

    The table has a row for each tile; a range has two columns, its begin and its end.
    """
    columns: dict[str, int] = {}
    values_of_columns: list[NDArray[np.int64]] = []

    def add(name: str, *values: NDArray[np.int64]) -> None:
        columns[name] = len(values_of_columns)
        values_of_columns.extend(values)

    # Ranges count from the begin of the array that `schedule_arrays` makes.
    start = 0
    # Sets: their elements, and how many of them the tile owns.
    for s, of_set in tiles.sets.items():
        add(f"set {s}", of_set.offset[:-1] + start, of_set.offset[1:] + start)
        add(f"own {s}", of_set.own)
        start += of_set.elements.size
    start = 0
    # Maps: tables in the numbers of the tile.
    for m, of_map in tiles.maps.items():
        offset = of_map.offset * of_map.table.shape[1] + start
        add(f"map {m}", offset[:-1], offset[1:])
        start += of_map.table.size
    start = 0
    # Loops and copies: how many elements, and which where they are not the first ones.
    for name, selection in _selections(tiles):
        add(name, selection.count)
        if selection.items is not None:
            offset = selection.offset + start
            add(f"list {name}", offset[:-1], offset[1:])
            start += selection.items.size
    return np.stack(values_of_columns, axis=1), columns


def _selections(tiles: TilePlan) -> list[tuple[str, LocalSelection]]:
    """The elements that each loop runs, and those that each dat is copied on, by name."""
    runs = [(f"run {n}", selection) for n, selection in enumerate(tiles.runs)]
    copies = [(f"copy {dat}", selection) for dat, selection in tiles.copies.items()]
    return runs + copies


def _concatenate(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays one after the other; also of no array, which ``np.concatenate`` refuses."""
    if arrays:
        return np.concatenate(arrays)
    return np.zeros(0, np.int32)


def _not_zero_error(names: str, when: str) -> MeshprepError:
    return MeshprepError(
        f"dat '{names}' is declared zero, but is not zero {when} the chain: "
        "leave it out of 'zero'"
    )
