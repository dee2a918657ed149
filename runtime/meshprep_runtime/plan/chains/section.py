"""Schedules of chains in a plan: their groups, /chains in docs/plan-format.md, and checks.

Whether tiles compute what the loops alone compute is :mod:`.proof`'s question.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError
from ...types.loops import Loop
from ...types.maps import SetMap, offsets_of
from ..file.tree import Tree, check_array, check_below, check_offset, checked_name, loop_of
from ..model import PlanContent
from .proof import prove_chain
from .tiles import ChainPlan, Kept, LocalSelection, LocalSet, TilePlan, home_of_dats

ROOT = "/chains"


def put(tree: Tree, plan: PlanContent) -> None:
    """Add the schedules to a tree."""
    tree.group(ROOT)
    for i, chain in enumerate(plan.chains.values()):
        _put_chain(tree, f"{ROOT}/{checked_name(chain.name)}", chain, i)


def get(tree: Tree) -> dict[str, ChainPlan]:
    """The schedules that a tree holds."""
    return {name: _get_chain(tree, name) for name in tree.children(ROOT)}


def check(plan: PlanContent) -> None:
    """Raise PlanError unless the schedules are safe to run."""
    for chain in plan.chains.values():
        check_chain(chain, plan.sizes, plan.maps)


def prove(plan: PlanContent) -> list[str]:
    """What is wrong with the schedules, one line each."""
    chains = plan.chains.values()
    return [line for chain in chains for line in prove_chain(chain, plan.sizes, plan.maps)]


def _put_chain(tree: Tree, path: str, chain: ChainPlan, position: int) -> None:
    tiles = chain.tiles
    tree.group(
        path,
        tile_size=chain.tile_size,
        loops=json.dumps([{"name": loop.name} | loop.to_dict() for loop in tiles.loops]),
        position=position,
    )
    arrays = _put_tiles(tree, path, tiles)
    tree.datasets.update({f"{path}/{name}": values for name, values in arrays.items()})


def _put_tiles(tree: Tree, path: str, tiles: TilePlan) -> dict[str, NDArray[Any]]:
    sets, copies = list(tiles.sets.values()), list(tiles.copies.values())
    tree.group(
        path,
        sets=json.dumps([checked_name(name) for name in tiles.sets]),
        copies=json.dumps([checked_name(name) for name in tiles.copies]),
        dropped=json.dumps(sorted(tiles.kept.dropped)),
        zero=json.dumps(sorted(tiles.kept.zero)),
    )
    arrays = {**_lists(sets), "own": np.stack([s.own for s in sets])}
    arrays |= _selections("run", tiles.runs, tiles.n_tiles)
    return arrays | _selections("copy", copies, tiles.n_tiles)


def _lists(of: Sequence[LocalSet]) -> dict[str, NDArray[Any]]:
    """Lists of elements one after the other, as few datasets take little time."""
    return {
        "offset": np.stack([one.offset for one in of]),
        "runs": offsets_of([one.first.size for one in of]),
        "first": np.concatenate([one.first for one in of]),
        "length": np.concatenate([one.length for one in of]),
    }


def _selections(
    what: str, chosen: Sequence[LocalSelection], n_tiles: int
) -> dict[str, NDArray[Any]]:
    """Counts of all in one array, as few datasets take little time; items where there are any."""
    count = np.array([s.count for s in chosen], np.int64).reshape(-1, n_tiles)
    items = {f"{what}_items_{k}": s.items for k, s in enumerate(chosen) if s.items is not None}
    return {f"{what}_count": count, **items}


def _get_chain(tree: Tree, name: str) -> ChainPlan:
    path = f"{ROOT}/{name}"
    if "skewed" in tree.groups[path]:
        raise PlanError(
            f"chain '{name}' has skewed tiles, which were removed in 0.2: make the plan anew by "
            "meshprep reorder or plan, with a table [chain.NAME] that does not say skewed"
        )
    loops = tuple(
        _get_loop(values, f"{path}, loop {i}")
        for i, values in enumerate(_list(tree, path, "loops"))
    )
    return ChainPlan(name, tree.number(path, "tile_size"), _get_tiles(tree, path, loops))


def _get_tiles(tree: Tree, path: str, loops: tuple[Loop, ...]) -> TilePlan:
    kept = Kept(*(frozenset(map(str, _list(tree, path, key))) for key in ("dropped", "zero")))
    runs = _get_selections(tree, path, "run", len(loops))
    dats = [str(d) for d in _list(tree, path, "copies")]
    copies = dict(zip(dats, _get_selections(tree, path, "copy", len(dats)), strict=True))
    names = [str(s) for s in _list(tree, path, "sets")]
    own = _rows(tree, f"{path}/own", len(names))
    lists = zip(names, _get_lists(tree, path, len(names)), own, strict=True)
    sets = {name: LocalSet(*one, mine) for name, one, mine in lists}
    return TilePlan(loops, sets, runs, copies, kept)


def _get_lists(
    tree: Tree, path: str, many: int
) -> list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Offset, first and length of each list of elements."""
    offset = _rows(tree, f"{path}/offset", many)
    ends = tree.array(f"{path}/runs", "<i8")
    first, length = (tree.array(f"{path}/{k}", "<i4") for k in ("first", "length"))
    inside = ends.size == many + 1 and (np.diff(ends) >= 0).all()
    if not (inside and ends[0] == 0 and ends[-1] == first.size == length.size):
        raise PlanError(f"{path}/runs does not cut first and length into {many} pieces")
    return [
        (offset[i], first[a:b], length[a:b]) for i, (a, b) in enumerate(pairwise(ends.tolist()))
    ]


def _get_selections(tree: Tree, path: str, what: str, many: int) -> tuple[LocalSelection, ...]:
    found = []
    for k, count in enumerate(_rows(tree, f"{path}/{what}_count", many)):
        place = f"{path}/{what}_items_{k}"
        items = tree.array(place, "<i4") if place in tree.datasets else None
        found.append(LocalSelection(count, items))
    return tuple(found)


def _rows(tree: Tree, path: str, many: int) -> NDArray[np.int64]:
    found: NDArray[np.int64] = tree.array(path, "<i8", ndim=2)
    if len(found) != many:
        raise PlanError(f"{path} has {len(found)} rows, not {many}")
    return found


def _get_loop(values: Any, where: str) -> Loop:
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise PlanError(f"{where} has no name")
    return loop_of(values["name"], values, where)


def _list(tree: Tree, path: str, key: str) -> list[Any]:
    values = json.loads(tree.text(path, key))
    if not isinstance(values, list):
        raise PlanError(f"{path}: '{key}' is no list")
    return values


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
    check_array(f"{where}, offset", of_set.offset, "i8", (n_tiles + 1,))
    runs = of_set.first.size
    check_array(f"{where}, first", of_set.first, "i4", (runs,))
    check_array(f"{where}, length", of_set.length, "i4", (runs,))
    check_below(f"{where}, first", of_set.first, n)
    check_below(f"{where}, length", of_set.length - 1, n)
    check_below(f"{where}, ends", of_set.first.astype(np.int64) + of_set.length - 1, n)
    check_offset(f"{where}, offset", of_set.offset, int(of_set.length.sum(dtype=np.int64)))
    check_array(f"{where}, own", of_set.own, "i8", (n_tiles,))
    _check_at_most(f"{where}, own", of_set.own, np.diff(of_set.offset))


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
