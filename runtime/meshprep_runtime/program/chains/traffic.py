"""Bytes that a chain moves between memory and cache, loop by loop and tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...loops import Access, Loop
from ...maps import SetMap
from ..useful import useful_bytes
from .tiles import TilePlan

INDEX_BYTES = 4


def untiled_bytes(
    loops: Sequence[Loop], maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> int:
    """What loops move that share nothing in cache: useful bytes, and all maps of each loop.

    Parameters
    ----------
    loops : sequence of Loop
    maps : mapping of map name to SetMap
    sizes : mapping of set name to int

    Returns
    -------
    int
    """
    tables = sum(INDEX_BYTES * maps[m].table.size for loop in loops for m in loop.maps)
    return tables + sum(useful_bytes(loop, maps, sizes) for loop in loops)


def tiled_bytes(tiles: TilePlan) -> int:
    """What tiles move whose elements stay in cache: the schedule, copies and stored values once.

    Parameters
    ----------
    tiles : TilePlan

    Returns
    -------
    int
    """
    nbytes, home = {}, {}
    for loop in tiles.loops:
        for arg in loop.args:
            if not arg.is_global:
                nbytes[arg.name] = arg.nbytes
                home[arg.name] = loop.over if arg.map is None else arg.map.rpartition("->")[2]
    copied = sum(nbytes[d] * int(s.count.sum()) for d, s in tiles.copies.items())
    stored = sum(
        nbytes[d] * int(tiles.sets[home[d]].own.sum()) for d in written_dats(tiles) - tiles.kept.all
    )
    # Only copies and stores look up which element a local one is.
    listed = {home[d] for d in tiles.copies} | {home[d] for d in written_dats(tiles)}
    lists = sum(tiles.sets[s].elements.nbytes for s in listed)
    tables = sum(m.table.nbytes for m in tiles.maps.values())
    chosen = sum(s.nbytes for s in (*tiles.runs, *tiles.copies.values()))
    return copied + stored + lists + tables + chosen


def written_dats(tiles: TilePlan) -> frozenset[str]:
    """Names of the dats that the chain changes."""
    args = (a for loop in tiles.loops for a in loop.args)
    return frozenset(a.name for a in args if not a.is_global and a.access is not Access.READ)
