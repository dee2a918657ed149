"""From recorded calls to tiles that can run: what a chain cuts, and what it refuses."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ...errors import MeshprepError
from ..dat import ProgramDat
from .execute import TiledRun, executor_of
from .inspect import overlapped
from .numbers import number
from .owners import tile_owners
from .records import Call, Watched, common_names
from .tiles import Kept


@dataclass(frozen=True, eq=False)
class TileOptions:
    """How a chain is cut.

    Parameters
    ----------
    size : int
        Elements of the last loop's set in a tile, about.
    dropped, zero : tuple of ProgramDat
        See :class:`Kept`.
    """

    size: int
    dropped: tuple[ProgramDat, ...] = ()
    zero: tuple[ProgramDat, ...] = ()


def tiled_run(calls: Sequence[Call], sizes: Mapping[str, int], options: TileOptions) -> TiledRun:
    """Cut a chain into tiles, once for a sequence of loops, dats and maps.

    Raises
    ------
    MeshprepError
        For arrays that cannot change places: two dats in one memory; for a dat to be dropped or
        zero that the chain does not write, or reads first.
    """
    begin = time.perf_counter()
    loops, dats = common_names(calls)
    executors = [executor_of(call) for call in calls]
    maps = {name: m for one in executors for name, m in one.plan.maps.items()}
    chain = number(loops, sizes, maps)
    _check_memory(dats, chain.written)
    kept = Kept(
        _names(options.dropped, dats, chain.written), _names(options.zero, dats, chain.written)
    )
    if not chain.owned_sets():
        raise MeshprepError("a chain that changes nothing cannot be cut into tiles")
    part = tile_owners(chain, [one.plan for one in executors], options.size)
    tiles = overlapped(chain, part, kept)
    return TiledRun(calls, chain, tiles, dats, time.perf_counter() - begin)


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


def _check_memory(dats: Mapping[str, ProgramDat], written: frozenset[str]) -> None:
    for (a, first), (b, second) in combinations(dats.items(), 2):
        if {a, b} & written and np.may_share_memory(first.stored, second.stored):
            raise MeshprepError(
                f"dats '{a}' and '{b}' share memory, and tiles write one of them: "
                "give them separate arrays"
            )


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
