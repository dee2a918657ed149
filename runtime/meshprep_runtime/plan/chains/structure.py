"""Is the schedule of a chain safe to run: do its arrays fit, does every index stay inside?

Made on every load and save, as the checks of :mod:`..structure`. Whether tiles compute what the
loops alone compute is :mod:`.proof`'s question.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import PlanError
from ...types.loops import Loop
from ...types.maps import SetMap
from ..file.tree import check_array, check_below, check_offset
from .tiles import ChainPlan, LocalSelection, LocalSet, TilePlan


def check_chain(chain: ChainPlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]) -> None:
    """Raise PlanError at the first thing that does not fit. O(bytes)."""
    where, tiles = f"chain '{chain.name}'", chain.tiles
    if chain.tile_size < 1 or not tiles.loops:
        raise PlanError(f"{where} has no loops, or tiles of no elements")
    _check_loops(where, tiles.loops, sizes, maps)
    _check_tiles(where, tiles, sizes, maps)


def _check_tiles(
    where: str, tiles: TilePlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> None:
    home = home_of_dats(tiles.loops, maps)
    missing = sorted({*home.values(), *(loop.over for loop in tiles.loops)} - tiles.sets.keys())
    if missing:
        raise PlanError(f"{where} has no tiles of set '{missing[0]}'")
    for name, of_set in tiles.sets.items():
        if name not in sizes:
            raise PlanError(f"{where} names set '{name}', which the plan does not have")
        _check_set(f"{where}, set '{name}'", of_set, tiles.n_tiles, sizes[name])
    for k, (loop, run) in enumerate(zip(tiles.loops, tiles.runs, strict=True)):
        _check_selection(f"{where}, loop {k + 1} '{loop.name}'", run, tiles.sets[loop.over])
    for dat, copy in tiles.copies.items():
        if dat not in home:
            raise PlanError(f"{where} copies dat '{dat}', which no loop of it has")
        _check_selection(f"{where}, copies of '{dat}'", copy, tiles.sets[home[dat]])


def home_of_dats(loops: Sequence[Loop], maps: Mapping[str, SetMap]) -> dict[str, str]:
    """The set of every dat of a chain."""
    return {
        arg.name: loop.over if arg.map is None else maps[arg.map].to_set
        for loop in loops
        for arg in loop.args
        if not arg.is_global
    }


def _check_loops(
    where: str, loops: Sequence[Loop], sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> None:
    home: dict[str, str] = {}
    for loop in loops:
        if loop.over not in sizes:
            raise PlanError(f"{where}: loop '{loop.name}' is over '{loop.over}', which is no set")
        for arg in loop.args:
            m = None if arg.map is None else maps.get(arg.map)
            if arg.map is not None and (
                m is None or m.from_set != loop.over or max(arg.index) >= m.arity
            ):
                raise PlanError(
                    f"{where}, loop '{loop.name}': argument '{arg.name}' uses map '{arg.map}', "
                    "which the plan does not have, or another column than it has"
                )
            on = loop.over if m is None else m.to_set
            if not arg.is_global and home.setdefault(arg.name, on) != on:
                raise PlanError(f"{where}: dat '{arg.name}' is on '{on}' and '{home[arg.name]}'")


def _check_set(where: str, of_set: LocalSet, n_tiles: int, n: int) -> None:
    _check_runs(where, of_set, n_tiles, n)
    check_array(f"{where}, own", of_set.own, "i8", (n_tiles,))
    _check_at_most(f"{where}, own", of_set.own, np.diff(of_set.offset))


def _check_runs(where: str, lists: LocalSet, n_tiles: int, n: int) -> None:
    check_array(f"{where}, offset", lists.offset, "i8", (n_tiles + 1,))
    runs = lists.first.size
    check_array(f"{where}, first", lists.first, "i4", (runs,))
    check_array(f"{where}, length", lists.length, "i4", (runs,))
    check_below(f"{where}, first", lists.first, n)
    check_below(f"{where}, length", lists.length - 1, n)
    check_below(f"{where}, ends", lists.first.astype(np.int64) + lists.length - 1, n)
    check_offset(f"{where}, offset", lists.offset, int(lists.length.sum(dtype=np.int64)))


def _check_selection(where: str, chosen: LocalSelection, of_set: LocalSet) -> None:
    held = np.diff(of_set.offset)
    check_array(f"{where}, count", chosen.count, "i8", held.shape)
    _check_at_most(f"{where}, count", chosen.count, held)
    if chosen.items is None:
        return
    check_array(f"{where}, items", chosen.items, "i4", (int(chosen.count.sum()),))
    inside = np.repeat(held, chosen.count)
    if ((chosen.items < 0) | (chosen.items >= inside)).any():
        raise PlanError(f"{where}: an item is outside its tile")
    first = np.zeros(chosen.items.size + 1, np.bool_)
    first[chosen.offset] = True
    if (np.diff(chosen.items) <= 0)[~first[1:-1]].any():
        raise PlanError(f"{where}: items of a tile do not ascend")


def _check_at_most(where: str, count: np.ndarray, most: np.ndarray) -> None:
    if (count < 0).any() or (count > most).any():
        at = int(np.argmax((count < 0) | (count > most)))
        raise PlanError(f"{where}: tile {at} has {count[at]}, of {most[at]} elements that it holds")
