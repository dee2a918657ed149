"""Tiles of a chain on one of several ranks: one exchange, deep enough for all of its loops."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cpu.executor import Executor
from ...errors import ProofError
from ...loops import Loop
from ...maps import SetMap, distinct
from ...plan.chains.tiles import Kept, LocalSelection, LocalSet, TilePlan
from ...plan.model import LoopPlan
from ...plan.parts import MapPart, PartPlan
from ..dat import ProgramDat
from ..distributed import DistributedPlan
from ..row_lists import exchange_by, row_lists
from ..vote import together
from .deep_part import DeepPart, check_executed, deep_part
from .execute import TiledRun
from .inspect import schedule, with_maps
from .launch import COMBINE, Arrays, executor_of, neutral
from .numbers import number
from .owners import all_owners
from .records import Call, Record, common_names, key_of


@dataclass(frozen=True, eq=False)
class DeepDat:
    """A dat of the program, and the same with rows for all that its chain reads.

    The program's dat works on the first rows of the other's array, so that nothing is copied from
    the second run on; component after component it is copied.
    """

    given: ProgramDat
    deep: ProgramDat

    def begin(self, zero: bool) -> None:
        """Let tiles see the values of the program; copies of what is zero are zero."""
        self.deep.dropped, self.deep.version = self.given.dropped, self.given.version
        if self.deep.axis:
            self._first_rows()[...] = self.given.stored
        elif not np.may_share_memory(self.given.stored, self.deep.stored):
            # the program may hold the array that was the dat's before another chain ran
            self.deep.stored = self.deep.stored.copy()
            self._first_rows()[...] = self.given.stored
        else:
            self.deep.seen = self.given.seen
        if zero:
            self.deep.stored[(slice(None),) * self.deep.axis + (slice(self.deep.owned, None),)] = 0

    def end(self, changed: bool) -> None:
        """Let the program see the values of the tiles."""
        if not self.deep.axis:
            self.given.stored, self.given.seen = self._first_rows(), self.deep.seen
        elif changed:
            self.given.stored[...] = self._first_rows()
        if changed:
            self.given.touch()
        self.given.dropped = self.deep.dropped

    def _first_rows(self) -> NDArray[Any]:
        rows = self.given.stored.shape[self.given.axis]
        found: NDArray[Any] = self.deep.stored[(slice(None),) * self.deep.axis + (slice(rows),)]
        return found


class RankTiledRun:
    """A chain on the tiles of one rank; made and called on all ranks together.

    Raises DistributedError on all ranks, where one cannot cut the chain.

    ``kept`` names dats as ``common_names`` does.
    """

    def __init__(
        self, calls: Sequence[Call], plan: DistributedPlan, tile_size: int, kept: Kept
    ) -> None:
        begin = time.perf_counter()
        comm, part = plan.comm, plan.part
        loops, dats = common_names(calls)
        small, wanted = together(comm, lambda: _owned_tiles(part, loops, tile_size))
        deep = deep_part(comm, part, loops, wanted)
        chain = number(loops, deep.sizes, deep.maps)
        tiles = together(comm, lambda: _tiles(deep, loops, small, kept))
        self._dats = {name: DeepDat(d, _deep_dat(d, deep)) for name, d in dats.items()}
        self._written = chain.written
        self._seen: dict[str, int] = {}
        self._lists = _partial(comm, deep, tiles, chain.dats)
        self._exchange = exchange_by(plan, self._lists)
        executors = [executor_of(call) for call in calls]
        deep_dats = {name: of.deep for name, of in self._dats.items()}
        self._run = TiledRun(calls, chain, tiles, deep_dats, combined=_over_ranks(comm, executors))
        self.tiles, self.seconds = tiles, time.perf_counter() - begin

    def __call__(self, records: list[Record]) -> None:
        """Run the chain with the constants and assignments of these records."""
        zero = self.tiles.kept.zero
        for name, of in self._dats.items():
            of.begin(name in zero)
        stale = [n for n in self._lists if self._seen.get(n) != self._dats[n].given.version]
        self._exchange.start([(self._dats[n].deep, (n,)) for n in stale]).finish()
        self._seen |= {name: self._dats[name].given.version for name in stale}
        deep = {id(of.given): of.deep for of in self._dats.values()}
        try:
            self._run([_on_deep(record, deep) for record in records])
        except BaseException:
            for name in self._written - zero:
                self._dats[name].given.touch()
            raise
        for name, of in self._dats.items():
            of.end(name in self._written - zero)

    @property
    def nbytes(self) -> int:
        """Memory of the schedule, the second copies and the scratch rows."""
        return self._run.nbytes


def _owned_tiles(
    part: PartPlan, loops: Sequence[Loop], tile_size: int
) -> tuple[dict[str, NDArray[np.int32]], list[str]]:
    """The tile of each owned element, and the sets that need one; other elements count as one."""
    check_executed(part, loops)
    sizes = {name: own.owned + 1 for name, own in part.sets.items()}
    maps = {}
    for m in part.maps.values():
        rows = np.minimum(m.table[: sizes[m.from_set] - 1], sizes[m.to_set] - 1)
        last = np.full((1, m.arity), sizes[m.to_set] - 1, rows.dtype)
        maps[m.name] = SetMap(m.name, m.from_set, m.to_set, np.concatenate([rows, last]))
    chain = number(loops, sizes, maps)
    last_loop = LoopPlan(loops[-1], sizes, maps, {}, "")
    found = all_owners(chain, [last_loop], tile_size)
    return {name: found[name][:-1] for name in chain.sizes}, chain.owned_sets()


def _tiles(
    deep: DeepPart,
    loops: Sequence[Loop],
    small: Mapping[str, NDArray[np.int32]],
    kept: Kept,
) -> TilePlan:
    chain = number(loops, deep.sizes, deep.maps)
    tile = {}
    for name in chain.owned_sets():
        tile[name] = np.full(deep.sizes[name], -1, np.int32)
        tile[name][: small[name].size] = small[name]
    tiles = with_maps(schedule(chain, tile, kept), deep.maps, deep.sizes)
    for loop, run in zip(loops, tiles.runs, strict=True):
        if loop.maps and not deep.known[loop.over][_held(tiles.sets[loop.over], run)].all():
            raise ProofError(f"tiles run elements of loop '{loop.name}' whose maps are not here")
    return tiles


def _held(of_set: LocalSet, chosen: LocalSelection) -> NDArray[np.int32]:
    """The elements that a selection names in any tile, ascending."""
    tile = np.repeat(np.arange(chosen.count.size), chosen.count)
    inside = np.arange(tile.size) - chosen.offset[tile] if chosen.items is None else chosen.items
    return distinct(of_set.elements[of_set.offset[tile] + inside])


def _partial(
    comm: Any, deep: DeepPart, tiles: TilePlan, set_of: Mapping[str, str]
) -> dict[str, MapPart]:
    """What is exchanged of each dat that some rank reads; collective."""
    names = sorted(set().union(*comm.allgather(list(tiles.copies))))
    found = {}
    for name in names:
        of, rows = set_of[name], np.zeros(0, np.int32)
        if name in tiles.copies:
            rows = _held(tiles.sets[of], tiles.copies[name])
        owned = np.diff(deep.starts[of])[comm.rank]
        rows = rows[rows >= owned]
        found[name] = row_lists(comm, deep.starts[of], deep.numbers[of], rows)
    return found


def _deep_dat(dat: ProgramDat, deep: DeepPart) -> ProgramDat:
    shape = list(dat.stored.shape)
    shape[dat.axis] = deep.numbers[dat.set].size
    return ProgramDat(dat.set, np.zeros(shape, dat.dtype), dat.dim, dat.layout, dat.owned)


def _on_deep(record: Record, deep: Mapping[int, ProgramDat]) -> Record:
    """A call with the dats of the tiles."""
    if not isinstance(record, Call):
        return record
    given = {n: deep.get(id(v), v) for n, v in record.given.items()}
    return Call(record.loop, given, key_of(record.loop, given))


def _over_ranks(comm: Any, executors: Sequence[Executor]) -> Any:
    """What combines the rows of a rank's tiles, and brings one of each rank, in one message."""
    slots = {
        f"p{n}_{i}": slot
        for n, executor in enumerate(executors)
        for i, slot in enumerate(executor.slots)
        if slot.rows is None and slot.written
    }

    def combined(arrays: Arrays) -> Arrays:
        if not slots:
            return arrays
        own = [
            COMBINE[s.access].reduce(arrays[name], axis=0, initial=neutral(s.access, s.dtype))
            for name, s in slots.items()
        ]
        every = comm.allgather(own)
        return arrays | {name: np.stack([r[j] for r in every]) for j, name in enumerate(slots)}

    return combined
