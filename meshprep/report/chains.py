"""The chains of a plan: redundancy, and bytes before and after, as records and tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.chains.tiles import ChainPlan, tiled_bytes, untiled_bytes
from meshprep_runtime.types.maps import Int32s, rows_of_entries

from .table import Table, table_of


def chain_record(plan: Plan, chain: ChainPlan) -> dict[str, Any]:
    """What a schedule does, as JSON values. O(n x arity) for each loop."""
    tiles = chain.tiles
    return {
        "chain": chain.name,
        "loops": len(tiles.loops),
        "over": tiles.loops[-1].over,
        "tiles": tiles.n_tiles,
        "tile size": chain.tile_size,
        "redundancy": round(tiles.redundancy(plan.sizes), 4),
        "bytes, loop by loop": untiled_bytes(tiles.loops, plan.maps, plan.sizes),
        "bytes, tile by tile": tiled_bytes(tiles, plan.maps),
        "bytes of the schedule": tiles.nbytes,
    }


def chain_tables(names: Sequence[str], plans: Sequence[Plan]) -> list[Table]:
    """A table of the chains of all plans; none where no plan has one."""
    records = [
        ({"plan": name} if len(plans) > 1 else {}) | chain_record(plan, chain)
        for name, plan in zip(names, plans, strict=True)
        for chain in plan.chains.values()
    ]
    return [table_of("chains in tiles (bytes are predicted)", records)] if records else []


def layers(chain: ChainPlan, tile: int, n: int) -> tuple[Int32s, int]:
    """The layers of a tile among the ``n`` elements of the last loop's set, and their number.

    0 is outside the tile, 1 what it owns; 2 and more are those that it runs besides, or only
    copies, in fewer and fewer loops.
    """
    tiles = chain.tiles
    times, own = np.zeros(n, np.int64), owner(chain, n) == tile
    held = own.copy()
    over = tiles.loops[-1].over
    mine = tiles.sets[over].elements[slice(*tiles.sets[over].offset[tile : tile + 2])]
    for loop, runs in zip(tiles.loops, tiles.runs, strict=True):
        if loop.over == over:
            times[mine[runs.of_tile(tile)]] += 1
    held[mine] = True
    found, ring = np.unique(-times[held & ~own], return_inverse=True)
    layer = own.astype(np.int32)
    layer[held & ~own] = 2 + ring
    return layer, 2 + found.size


def owner(chain: ChainPlan, n: int) -> Int32s:
    """The tile of each of the ``n`` elements of the last loop's set; -1 where none owns it."""
    lists = chain.tiles.sets[chain.tiles.loops[-1].over]
    tile = rows_of_entries(lists.offset)
    mine = np.arange(tile.size) - lists.offset[tile] < lists.own[tile]
    found = np.full(n, -1, np.int32)
    found[lists.elements[mine]] = tile[mine]
    return found
