"""The chains of a plan: redundancy, and bytes before and after, as records and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.chains.tiles import ChainPlan
from meshprep_runtime.program.chains.traffic import tiled_bytes, untiled_bytes

from .table import Table, figure


def chain_record(plan: Plan, chain: ChainPlan) -> dict[str, Any]:
    """What a schedule does, as JSON values. O(n x arity) for each loop."""
    tiles = chain.tiles
    before = untiled_bytes(tiles.loops, plan.maps, plan.sizes)
    return {
        "chain": chain.name,
        "loops": len(tiles.loops),
        "over": tiles.loops[-1].over,
        "tiles": tiles.n_tiles,
        "tile size": chain.tile_size,
        "redundancy": round(tiles.redundancy(plan.sizes), 4),
        "bytes, loop by loop": before,
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
    if not records:
        return []
    rows = [tuple(figure(v) for v in record.values()) for record in records]
    return [Table("chains in tiles (bytes are predicted)", tuple(records[0]), rows)]


def layers(chain: ChainPlan, tile: int, n: int) -> tuple[NDArray[np.int32], int]:
    """The layers of a tile among the ``n`` elements of the last loop's set, and their number.

    0 is outside the tile, 1 what it owns; 2 and more are those that it runs besides, or only
    copies, in fewer and fewer loops.
    """
    tiles = chain.tiles
    over = tiles.loops[-1].over
    of_set = tiles.sets[over]
    held = of_set.elements[of_set.offset[tile] : of_set.offset[tile + 1]]
    times = np.zeros(held.size, np.int64)
    for loop, run in zip(tiles.loops, tiles.runs, strict=True):
        if loop.over == over:
            times[run.of_tile(tile)] += 1
    own = np.arange(held.size) < of_set.own[tile]
    found, ring = np.unique(-times[~own], return_inverse=True)
    layer = np.zeros(n, np.int32)
    layer[held[own]] = 1
    layer[held[~own]] = 2 + ring
    return layer, 2 + found.size


def owner(chain: ChainPlan, n: int) -> NDArray[np.int32]:
    """The tile of each of the ``n`` elements of the last loop's set; -1 where none owns it."""
    of_set = chain.tiles.sets[chain.tiles.loops[-1].over]
    tile = np.repeat(np.arange(chain.tiles.n_tiles), np.diff(of_set.offset)).astype(np.int32)
    mine = np.arange(tile.size) - of_set.offset[tile] < of_set.own[tile]
    found = np.full(n, -1, np.int32)
    found[of_set.elements[mine]] = tile[mine]
    return found
