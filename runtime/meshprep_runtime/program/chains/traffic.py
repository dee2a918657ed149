"""Bytes that a chain moves between memory and cache, loop by loop and tile by tile."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...loops import Access, Loop
from ...maps import SetMap
from ...plan.chains.skewed import SkewedPlan
from ...plan.chains.tiles import TilePlan
from ...plan.matrices import MatrixPlan, plain_args, with_places
from ..useful import useful_bytes

INDEX_BYTES = 4
NO_MATRICES: Mapping[str, MatrixPlan] = MappingProxyType({})


def untiled_bytes(
    loops: Sequence[Loop],
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    matrices: Mapping[str, MatrixPlan] = NO_MATRICES,
) -> int:
    """What loops move that share nothing in cache: useful bytes, and all maps of each loop."""
    total = 0
    for loop in loops:
        own, rows = with_places(loop, maps, sizes, matrices)
        total += useful_bytes(loop, own, rows) + sum(_tables(loop, maps, own).values())
    return total


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


def skewed_bytes(
    tiles: SkewedPlan,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    matrices: Mapping[str, MatrixPlan] = NO_MATRICES,
) -> int:
    """What skewed tiles move whose elements stay in cache.

    Each dat is read once, and written back once where a loop changes it; maps are read once, and
    the lists of elements.
    """
    moved: dict[str, int] = {}
    tables: dict[tuple[str, str], int] = {}
    for loop in tiles.loops:
        own, rows = with_places(loop, maps, sizes, matrices)
        for arg in plain_args(loop, own):
            if not arg.is_global:
                over = loop.over if arg.map is None else own[arg.map].to_set
                times = 1 if arg.access is Access.READ else 2
                moved[arg.name] = max(moved.get(arg.name, 0), times * arg.nbytes * rows[over])
        tables |= _tables(loop, maps, own)
    return sum(moved.values()) + sum(tables.values()) + tiles.nbytes


def _tables(
    loop: Loop, maps: Mapping[str, SetMap], own: Mapping[str, SetMap]
) -> dict[tuple[str, str], int]:
    """Bytes of the maps that a loop reads, and of its places in matrices, which are its own."""
    shared = {(name, ""): maps[name] for name in loop.maps}
    places = {(name, loop.name): own[name] for name in own.keys() - maps.keys()}
    return {key: INDEX_BYTES * m.table.size for key, m in (shared | places).items()}
