"""From recorded calls to tiles that can run: what a chain cuts, and what it refuses."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import MeshprepError, check_integer
from ...plan.model import LoopPlan
from ..dat import ProgramDat
from .execute import TiledRun
from .inspect import schedule, with_maps
from .launch import executor_of
from .numbers import ChainNumbers, number
from .owners import sizes_to_try, tile_owners
from .records import Call, Record, Watched, common_names
from .tiles import Kept, TilePlan


@dataclass(frozen=True, eq=False)
class TileOptions:
    """How a chain is cut; raises MeshprepError for a size that cannot be."""

    # Elements of the last loop's set in a tile, about; None where sizes are tried.
    size: int | None
    # See :class:`Kept`.
    dropped: tuple[ProgramDat, ...] = ()
    zero: tuple[ProgramDat, ...] = ()
    auto: bool = False  # try loops alone, and tiles of several sizes, and keep what is fastest

    def __post_init__(self) -> None:
        if self.size is not None:
            check_integer("tile_size", self.size)


def tiled_run(calls: Sequence[Call], sizes: Mapping[str, int], options: TileOptions) -> TiledRun:
    """Cut a chain into tiles, once for a sequence of loops, dats and maps.

    Raises MeshprepError for arrays that cannot change places: two dats in one memory; for a dat to
    be dropped or zero that the chain does not write, or reads first; and for a chain that adds to a
    matrix.
    """
    begin = time.perf_counter()
    loops, dats = common_names(calls)
    executors = [executor_of(call) for call in calls]
    maps = {name: m for one in executors for name, m in one.plan.maps.items()}
    chain = number(loops, sizes, maps)
    plans = [one.plan for one in executors]
    kept = Kept(*(_names(of, dats, chain.written) for of in (options.dropped, options.zero)))
    tiles = cut(chain, plans, options.size or 1, kept)
    whole = with_maps(tiles, maps, sizes)
    return TiledRun(calls, chain, whole, dats, time.perf_counter() - begin)


def cut(chain: ChainNumbers, plans: Sequence[LoopPlan], size: int, kept: Kept) -> TilePlan:
    """Overlapped tiles, without maps.

    Raises MeshprepError for a chain that changes nothing, and for one that adds to a matrix:
    elements that run in two tiles would add twice.
    """
    for loop in chain.loops:
        if loop.matrices:
            raise MeshprepError(
                f"loop '{loop.name}' adds to matrix '{loop.matrices[0].name}', so its chain runs "
                "loop by loop: cut no tiles of it"
            )
    return schedule(chain, tile_owners(chain, plans, size), kept)


def measured_run(
    calls: Sequence[Call], sizes: Mapping[str, int], options: TileOptions, alone: "Run"
) -> "MeasuredRun":
    """Loops alone, and tiles of some sizes unless a loop adds to a matrix."""
    loops, _ = common_names(calls)
    maps = {n: m for call in calls for n, m in executor_of(call).plan.maps.items()}
    chain = number(loops, sizes, maps)

    def way(size: int) -> Callable[[], Run]:
        chosen = replace(options, size=size, auto=False)
        return lambda: tiled_run(calls, sizes, chosen)

    tried = [] if any(loop.matrices for loop in loops) else sizes_to_try(chain)
    ways: dict[str, Callable[[], Run]] = {LOOPS: lambda: alone}
    ways |= {f"tiles of {size}": way(size) for size in tried}
    return MeasuredRun(ways)


def check_call(call: Call) -> None:
    """Raise MeshprepError for a call that tiles cannot run."""
    where = f"loop '{call.loop.loop.name}'"
    for arg in call.loop.loop.args:
        value = call.given[arg.name]
        constant = arg.is_global and isinstance(value, np.ndarray)
        if not isinstance(value, Watched) and not (constant and str(arg.access) == "read"):
            raise MeshprepError(
                f"{where}: tiles need dats and reduced globals of the program: make '{arg.name}' "
                "by Program.dat or Program.reduced, or leave tile_size out"
            )
        if isinstance(value, ProgramDat) and not isinstance(value.stored, np.ndarray):
            raise MeshprepError(f"{where}: tiles run on the host, but '{arg.name}' is on a GPU")
    if executor_of(call).options.boundscheck:
        raise MeshprepError(f"{where}: tiles check no bounds: leave tile_size or boundscheck out")


def _names(
    chosen: Sequence[ProgramDat], dats: Mapping[str, ProgramDat], written: frozenset[str]
) -> frozenset[str]:
    names: dict[int, Any] = {id(dat): name for name, dat in dats.items()}
    for dat in chosen:
        if names.get(id(dat)) not in written:
            raise MeshprepError(
                f"{dat!r} cannot be dropped or zero: no loop of the chain writes it"
            )
    return frozenset(names[id(dat)] for dat in chosen)


LOOPS = "loops"
# What tiles must take at most of the time of the loops alone, beyond what times vary by.
GAIN = 0.97
Run = Callable[[list[Record]], None]
# Runs of each way that are timed, after one that may compile.
TIMED = 3


class MeasuredRun:
    """Every call is a run of the sequence, whatever way it takes.

    Each of ``ways`` makes a run, when its turn comes; ``"loops"`` is there. ``chosen`` is the way
    that is taken from now on, None while they are timed; ``seconds`` is the least time of each so
    far.
    """

    def __init__(self, ways: Mapping[str, Callable[[], Run]]) -> None:
        self.chosen: str | None = None
        self.seconds: dict[str, float] = {}
        self._left = [name for name in ways for _ in range(1 + TIMED)]
        self._ways = dict(ways)
        self._under_way: tuple[str, Run] | None = None

    def __call__(self, records: list[Record]) -> None:
        """Run the sequence; what is raised ends nothing."""
        if self.chosen is not None:
            self._run_of(self.chosen)(records)
            return
        name = self._left[0]
        first = name not in self.seconds
        run = self._run_of(name)
        begin = time.perf_counter()
        run(records)
        took = time.perf_counter() - begin
        self._left.pop(0)
        self.seconds[name] = float("inf") if first else min(self.seconds[name], took)
        if not self._left:
            self._choose()

    def _run_of(self, name: str) -> Run:
        """One run is kept at a time: schedules and second copies take memory."""
        if self._under_way is None or self._under_way[0] != name:
            self._under_way = (name, self._ways[name]())
        return self._under_way[1]

    def _choose(self) -> None:
        best = min(self.seconds, key=lambda name: self.seconds[name])
        faster = self.seconds[best] < GAIN * self.seconds[LOOPS]
        self.chosen = best if faster else LOOPS
