"""Make tiles that can run from the recorded calls of a chain, or refuse the chain."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import MeshprepError, check_integer
from ...plan.model import LoopPlan
from ...types.loops import Access
from ...types.maps import SetMap
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
    """The options of tiles; raises MeshprepError for a size below 1.

    Attributes
    ----------
    size : int or None
        About the number of elements of the last loop's set in a tile; None with ``auto``.
    dropped, zero : tuple of ProgramDat
        See :class:`Kept`.
    auto : bool
        Time loops without tiles, and tiles of several sizes, and keep the fastest.
    """

    size: int | None
    dropped: tuple[ProgramDat, ...] = ()
    zero: tuple[ProgramDat, ...] = ()
    auto: bool = False

    def __post_init__(self) -> None:
        if self.size is not None:
            check_integer("tile_size", self.size)


def tiled_run(
    calls: Sequence[Call], sizes: Mapping[str, int], options: TileOptions
) -> TiledRun:
    """Cut a chain into tiles, once for a sequence of loops, dats and maps.

    Raises MeshprepError for dats that share memory, whose arrays cannot be swapped; for a
    dat to be dropped or zero that the chain does not write, or reads first; and for a chain
    that adds to a matrix.
    """
    begin = time.perf_counter()
    # Take one name for each dat, whatever the loops call it.
    loops, dats = common_names(calls)
    plans = [executor_of(call).plan for call in calls]
    maps = _maps_of_plans(plans)
    # Number what the chain touches, cut it into tiles, and find what each tile needs.
    chain = number(loops, sizes, maps)
    kept = Kept(
        dropped=_names_of_written(options.dropped, dats, chain.written),
        zero=_names_of_written(options.zero, dats, chain.written),
    )
    tiles = cut(chain=chain, plans=plans, size=options.size or 1, kept=kept)
    tiles = with_maps(tiles, maps, sizes)
    return TiledRun(
        calls=calls,
        chain=chain,
        tiles=tiles,
        dats=dats,
        seconds=time.perf_counter() - begin,
    )


def _maps_of_plans(plans: Sequence[LoopPlan]) -> dict[str, SetMap]:
    maps: dict[str, SetMap] = {}
    for plan in plans:
        maps |= plan.maps
    return maps


def cut(chain: ChainNumbers, plans: Sequence[LoopPlan], size: int, kept: Kept) -> TilePlan:
    """Overlapped tiles, without maps.

    Raises MeshprepError for a chain that changes nothing, and for one that adds to a
    matrix: elements that run in two tiles would add twice.
    """
    for loop in chain.loops:
        if loop.matrices:
            raise MeshprepError(
                f"loop '{loop.name}' adds to matrix '{loop.matrices[0].name}', so its "
                "chain runs loop by loop: cut no tiles of it"
            )
    return schedule(chain, tile_owners(chain, plans, size), kept)


def measured_run(
    calls: Sequence[Call], sizes: Mapping[str, int], options: TileOptions, alone: "Run"
) -> "MeasuredRun":
    """A run that times loops without tiles, and tiles of several sizes.

    ``alone`` runs without tiles. No tiles are tried where a loop adds to a matrix.
    """
    loops, _ = common_names(calls)
    maps = _maps_of_plans([executor_of(call).plan for call in calls])
    chain = number(loops, sizes, maps)

    def maker(size: int) -> Callable[[], Run]:
        options_of_size = replace(options, size=size, auto=False)
        return lambda: tiled_run(calls, sizes, options_of_size)

    ways: dict[str, Callable[[], Run]] = {LOOPS: lambda: alone}
    if not any(loop.matrices for loop in loops):
        for size in sizes_to_try(chain):
            ways[f"tiles of {size}"] = maker(size)
    return MeasuredRun(ways)


def check_call(call: Call) -> None:
    """Raise MeshprepError for a call that tiles cannot run."""
    where = f"loop '{call.loop.loop.name}'"
    for arg in call.loop.loop.args:
        value = call.given[arg.name]
        # Tiles change the sequence of reads and writes, so the program must know all of
        # them.
        is_constant = (
            arg.is_global and arg.access is Access.READ and isinstance(value, np.ndarray)
        )
        if not is_constant and not isinstance(value, Watched):
            raise MeshprepError(
                f"{where}: tiles need dats and reduced globals of the program: make "
                f"'{arg.name}' by Program.dat or Program.reduced, or leave tile_size out"
            )
        if isinstance(value, ProgramDat) and not isinstance(value.stored, np.ndarray):
            raise MeshprepError(
                f"{where}: tiles run on the host, but '{arg.name}' is on a GPU"
            )
    if executor_of(call).options.boundscheck:
        raise MeshprepError(
            f"{where}: tiles check no bounds: leave tile_size or boundscheck out"
        )


def _names_of_written(
    dats_not_stored: Sequence[ProgramDat],
    dats: Mapping[str, ProgramDat],
    written: frozenset[str],
) -> frozenset[str]:
    """The names of dats; raises MeshprepError for one that the chain does not write."""
    names: dict[int, Any] = {id(dat): name for name, dat in dats.items()}
    for dat in dats_not_stored:
        if names.get(id(dat)) not in written:
            raise MeshprepError(
                f"{dat!r} cannot be dropped or zero: no loop of the chain writes it"
            )
    return frozenset(names[id(dat)] for dat in dats_not_stored)


# Runs the records of a sequence.
Run = Callable[[list[Record]], None]
# The name of the way without tiles.
LOOPS = "loops"
# Tiles are chosen where they take at most this share of the time without tiles: a smaller
# gain may be noise.
GAIN = 0.97
# Timed runs of each way, after one that may compile.
TIMED = 3


class MeasuredRun:
    """Runs of a sequence of loops that times several ways, and then keeps to the fastest.

    Every call runs the sequence once. Each entry of ``ways`` makes a run when its turn
    comes; ``"loops"`` must be among them. ``chosen`` is the way of all further runs, None
    while ways are timed; ``seconds`` is the least time of each way so far.
    """

    def __init__(self, ways: Mapping[str, Callable[[], Run]]) -> None:
        self.chosen: str | None = None
        self.seconds: dict[str, float] = {}
        self._left = [name for name in ways for _ in range(1 + TIMED)]
        self._ways = dict(ways)
        self._under_way: tuple[str, Run] | None = None

    def __call__(self, records: list[Record]) -> None:
        """Run the sequence; after an exception the same way is timed again."""
        if self.chosen is not None:
            self._run_of(self.chosen)(records)
            return
        name = self._left[0]
        first = name not in self.seconds
        run = self._run_of(name)
        begin = time.perf_counter()
        run(records)
        seconds = time.perf_counter() - begin
        self._left.pop(0)
        # The first run compiles: it does not count.
        if first:
            self.seconds[name] = float("inf")
        else:
            self.seconds[name] = min(self.seconds[name], seconds)
        if not self._left:
            self._choose()

    def _run_of(self, name: str) -> Run:
        """The run of a way; only one is kept, as schedules and copies take memory."""
        if self._under_way is None or self._under_way[0] != name:
            self._under_way = (name, self._ways[name]())
        return self._under_way[1]

    def _choose(self) -> None:
        best = min(self.seconds, key=lambda name: self.seconds[name])
        self.chosen = LOOPS
        if self.seconds[best] < GAIN * self.seconds[LOOPS]:
            self.chosen = best
