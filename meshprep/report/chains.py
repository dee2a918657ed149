"""The chains of a plan: redundancy, and bytes before and after, as records and tables."""

from collections.abc import Sequence
from typing import Any

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.chains.tiles import ChainPlan, tiled_bytes, untiled_bytes

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
