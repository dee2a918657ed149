"""Schedules of chains as groups and datasets, and back: /chains in docs/plan-format.md."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError
from ...types.loops import Loop
from ...types.maps import offsets_of
from ..file.tree import Tree, loop_of
from .tiles import ChainPlan, Kept, LocalSelection, LocalSet, TilePlan

ROOT = "/chains"


def put_chains(tree: Tree, chains: Mapping[str, ChainPlan], checked: Callable[[str], str]) -> None:
    """Put schedules into a tree; a plan without any has no such group.

    ``checked`` raises PlanError for names that a file cannot hold.
    """
    for i, chain in enumerate(chains.values()):
        tree.group(ROOT)
        _put_chain(tree, f"{ROOT}/{checked(chain.name)}", chain, i, checked)


def get_chains(tree: Tree) -> dict[str, ChainPlan]:
    """The schedules that a tree holds; raises PlanError when something is missing or misshapen."""
    return {name: _get_chain(tree, name) for name in tree.children(ROOT)}


def _put_chain(
    tree: Tree, path: str, chain: ChainPlan, position: int, checked: Callable[[str], str]
) -> None:
    tiles = chain.tiles
    tree.group(
        path,
        tile_size=chain.tile_size,
        loops=json.dumps([{"name": loop.name} | loop.to_dict() for loop in tiles.loops]),
        position=position,
    )
    arrays = _put_tiles(tree, path, tiles, checked)
    tree.datasets.update({f"{path}/{name}": values for name, values in arrays.items()})


def _put_tiles(
    tree: Tree, path: str, tiles: TilePlan, checked: Callable[[str], str]
) -> dict[str, NDArray[Any]]:
    sets, copies = list(tiles.sets.values()), list(tiles.copies.values())
    tree.group(
        path,
        sets=json.dumps([checked(name) for name in tiles.sets]),
        copies=json.dumps([checked(name) for name in tiles.copies]),
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
