"""Schedules of chains as groups and datasets, and back: /chains in docs/plan-format.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import MeshprepError, PlanError
from ...loops import Loop, loop_from_dict
from ...maps import read_only
from ..tree import Tree
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
        dropped=json.dumps(sorted(tiles.kept.dropped)),
        zero=json.dumps(sorted(tiles.kept.zero)),
        position=position,
    )
    tree.group(f"{path}/sets")
    for i, (name, one) in enumerate(tiles.sets.items()):
        place = tree.group(f"{path}/sets/{checked(name)}", position=i)
        tree.datasets[f"{place}/offset"] = one.offset
        tree.datasets[f"{place}/elements"] = one.elements
        tree.datasets[f"{place}/own"] = one.own
    chosen = {f"runs/{k}": run for k, run in enumerate(tiles.runs)}
    chosen |= {f"copies/{checked(dat)}": copy for dat, copy in tiles.copies.items()}
    tree.group(f"{path}/runs")
    tree.group(f"{path}/copies")
    for i, (name, selection) in enumerate(chosen.items()):
        place = tree.group(f"{path}/{name}", position=i)
        tree.datasets[f"{place}/count"] = selection.count
        if selection.items is not None:
            tree.datasets[f"{place}/items"] = selection.items


def _get_chain(tree: Tree, name: str) -> ChainPlan:
    path = f"{ROOT}/{name}"
    loops = tuple(
        _get_loop(values, f"{path}, loop {i}")
        for i, values in enumerate(_list(tree, path, "loops"))
    )
    kept = Kept(*(frozenset(map(str, _list(tree, path, key))) for key in ("dropped", "zero")))
    sets = {
        s: LocalSet(
            read_only(tree.array(f"{path}/sets/{s}/offset", "<i8")),
            read_only(tree.array(f"{path}/sets/{s}/elements", "<i4")),
            read_only(tree.array(f"{path}/sets/{s}/own", "<i8")),
        )
        for s in tree.children(f"{path}/sets")
    }
    runs = tuple(_get_selection(tree, f"{path}/runs/{k}") for k in range(len(loops)))
    copies = {
        d: _get_selection(tree, f"{path}/copies/{d}") for d in tree.children(f"{path}/copies")
    }
    tiles = TilePlan(loops, sets, runs, copies, kept)
    return ChainPlan(name, tree.number(path, "tile_size"), tiles)


def _get_selection(tree: Tree, path: str) -> LocalSelection:
    count = read_only(tree.array(f"{path}/count", "<i8"))
    if f"{path}/items" not in tree.datasets:
        return LocalSelection(count)
    return LocalSelection(count, read_only(tree.array(f"{path}/items", "<i4")))


def _get_loop(values: Any, where: str) -> Loop:
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise PlanError(f"{where} has no name")
    try:
        return loop_from_dict(values["name"], values, where)
    except MeshprepError as error:
        raise PlanError(str(error)) from None


def _list(tree: Tree, path: str, key: str) -> list[Any]:
    values = json.loads(tree.text(path, key))
    if not isinstance(values, list):
        raise PlanError(f"{path}: '{key}' is no list")
    return values
