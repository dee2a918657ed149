"""Bytes that a chain moves between memory and cache, loop by loop and tile by tile."""

from collections.abc import Mapping, Sequence

from ...plan.chains.tiles import TilePlan
from ...types.loops import Loop
from ...types.maps import SetMap
from ..timings import useful_bytes

INDEX_BYTES = 4


def untiled_bytes(
    loops: Sequence[Loop], maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> int:
    """What loops move that share nothing in cache: useful bytes, and all maps of each loop."""
    return sum(
        useful_bytes(loop, maps, sizes) + sum(INDEX_BYTES * maps[m].table.size for m in loop.maps)
        for loop in loops
    )


def tiled_bytes(tiles: TilePlan, maps: Mapping[str, SetMap]) -> int:
    """What tiles move whose elements stay in cache: the schedule, copies and stored values once."""
    nbytes, home = {}, {}
    for loop in tiles.loops:
        for arg in loop.args:
            if not arg.is_global:
                nbytes[arg.name] = arg.nbytes
                home[arg.name] = loop.over if arg.map is None else maps[arg.map].to_set
    copied = sum(nbytes[d] * int(s.count.sum()) for d, s in tiles.copies.items())
    stored = sum(
        nbytes[d] * int(tiles.sets[home[d]].own.sum()) for d in tiles.written - tiles.kept.all
    )
    # Only copies and stores look up which element a local one is.
    listed = {home[d] for d in tiles.copies} | {home[d] for d in tiles.written}
    lists = sum(INDEX_BYTES * int(tiles.sets[s].offset[-1]) for s in listed)
    used = [maps[m] for m in dict.fromkeys(m for loop in tiles.loops for m in loop.maps)]
    tables = sum(
        int(tiles.rows_of(m.name).sum()) * m.arity * tiles.index_type(m.to_set).itemsize
        for m in used
    )
    chosen = sum(s.nbytes for s in (*tiles.runs, *tiles.copies.values()))
    return copied + stored + lists + tables + chosen
