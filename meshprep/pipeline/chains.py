"""Schedules of chains, made ahead and kept in the plan; the inspector is the runtime's."""

from collections.abc import Iterable

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.chains.tiles import ChainPlan, Kept
from meshprep_runtime.program.chains.numbers import number, with_common_names
from meshprep_runtime.program.chains.owners import tile_in_cache
from meshprep_runtime.program.chains.tiling import cut

from ..loops.chains import ChainRequest, dats_of


def plan_chains(
    plan: Plan, requests: Iterable[ChainRequest], tile: int | None = None
) -> dict[str, ChainPlan]:
    """Cut chains into tiles.

    The plan has the loops of the chains. ``tile`` is for chains that do not say how many elements
    of the last loop's set a tile has; by default what fits into a second-level cache. Raises
    MeshprepError for unknown loops and dats, and chains that cannot be cut, such as those that add
    to matrices.
    """
    return {one.name: _plan_chain(plan, one, tile) for one in requests}


def _plan_chain(plan: Plan, request: ChainRequest, tile: int | None) -> ChainPlan:
    request.check(dats_of(p.loop for p in plan.loops.values()))
    plans = [plan.loops[call.loop] for call in request.calls]
    given = [
        {a.name: call.dats.get(a.name, a.name) for a in p.loop.args if not a.is_global}
        for call, p in zip(request.calls, plans, strict=True)
    ]
    loops, dats = with_common_names([p.loop for p in plans], given)
    names = {dat: name for name, dat in dats.items()}
    kept = Kept(*(frozenset(names[d] for d in of) for of in (request.dropped, request.zero)))
    try:
        chain = number(loops, plan.sizes, plan.maps)
        for name in sorted(kept.all - chain.written):
            raise MeshprepError(f"dat '{name}' cannot be dropped or zero: no loop writes it")
        size = request.tile or tile or tile_in_cache(chain)
        tiles = cut(chain, plans, size, kept)
    except MeshprepError as error:
        raise MeshprepError(f"{request.where}: {error}") from None
    return ChainPlan(request.name, size, tiles)
