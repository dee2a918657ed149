"""Tiles of a chain: what they run and copy, beside plain Python; nothing else is ever read."""

import effort
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_loops import LOOPS
from random_chains import (
    KERNELS,
    fresh_globals,
    full,
    grid_mesh,
    owners,
    random_loops,
    random_mesh,
    run_eager,
    run_loop,
    same,
    slow_tile,
    start_values,
)

from meshprep_runtime import Access, Arg, Loop, LoopPlan, MeshprepError
from meshprep_runtime.program.chains.inspect import schedule, with_maps
from meshprep_runtime.program.chains.numbers import number, with_common_names
from meshprep_runtime.program.chains.owners import (
    blocks_of,
    join,
    sizes_to_try,
    tile_in_cache,
    tile_owners,
)
from meshprep_runtime.program.chains.tiles import Kept

POISON = -(10**9)
COMBINE = {Access.INC: np.add, Access.MIN: np.minimum, Access.MAX: np.maximum}
FAST = settings(
    max_examples=effort.examples(40), deadline=None, suppress_health_check=list(HealthCheck)
)


def overlapped(chain, part, kept=None):
    """Tiles with their maps."""
    return with_maps(schedule(chain, part, kept), chain.maps, chain.sizes)


def held(tiles, set_name, t):
    s = tiles.sets[set_name]
    return s.elements[s.offset[t] : s.offset[t + 1]]


def of_tile(found, tile):
    """The local numbers of one tile."""
    if found.items is None:
        return np.arange(found.count[tile], dtype=np.int32)
    return found.items[found.offset[tile] : found.offset[tile + 1]]


def run_tiles(tiles, chain, values):
    """Every tile on scratch rows of its own, with poison where it has copied nothing."""
    out, reduced = {n: v.copy() for n, v in values.items()}, fresh_globals(tiles.loops)
    for t in range(tiles.n_tiles):
        scratch = {}
        for d, s in chain.dats.items():
            rows = held(tiles, s, t)
            scratch[d] = np.full((rows.size, values[d].shape[1]), POISON)
            if d in tiles.copies:
                at = of_tile(tiles.copies[d], t)
                scratch[d][at] = values[d][rows[at]]
        tables = {m: x.table[x.offset[t] : x.offset[t + 1]] for m, x in tiles.maps.items()}
        mine, ignored = fresh_globals(tiles.loops), fresh_globals(tiles.loops)
        for loop, run in zip(tiles.loops, tiles.runs, strict=True):
            at, own = of_tile(run, t), tiles.sets[loop.over].own[t]
            run_loop(loop, at[at < own], tables, scratch, mine)
            run_loop(loop, at[at >= own], tables, scratch, ignored)
        for loop in tiles.loops:
            for a in loop.args:
                if a.is_global:
                    COMBINE[a.access](reduced[a.name], mine[a.name], out=reduced[a.name])
        for d in chain.written - tiles.kept.dropped:
            own = tiles.sets[chain.dats[d]].own[t]
            out[d][held(tiles, chain.dats[d], t)[:own]] = scratch[d][:own]
    return out, reduced


@FAST
@given(
    names=st.lists(st.sampled_from(sorted(KERNELS)), min_size=2, max_size=10),
    seed=st.integers(0, 10**6),
    n_tiles=st.integers(1, 8),
    grid=st.booleans(),
)
def test_tiles_give_what_loops_give(names, seed, n_tiles, grid):
    rng = np.random.default_rng(seed)
    sizes, maps = grid_mesh(5) if grid else random_mesh(rng, 9)
    loops = random_loops(rng, names)
    chain = number(loops, sizes, maps)
    part = owners(chain, rng, n_tiles, chain.owned_sets())
    tiles = overlapped(chain, part)
    for t in range(tiles.n_tiles):
        own = {
            s: np.flatnonzero(part[s] == t).tolist() if s in part else []
            for s in chain.sizes
        }
        runs, copies = slow_tile(loops, maps, chain.dats, own, chain.written)
        for loop, run, expected in zip(loops, tiles.runs, runs, strict=True):
            assert sorted(held(tiles, loop.over, t)[of_tile(run, t)]) == expected
        found = {
            d: sorted(held(tiles, chain.dats[d], t)[of_tile(s, t)])
            for d, s in tiles.copies.items()
        }
        assert {d: e for d, e in found.items() if e} == copies
    values = start_values(rng, sizes)
    assert same(run_tiles(tiles, chain, values), run_eager(loops, sizes, maps, values))


def two_updates():
    """Flux and update twice; areas makes ``a`` first. ``q`` and ``a`` are written fully."""
    loops = {n: full(LOOPS[k]) for n, k in KERNELS.items()}
    return [loops[n] for n in ("areas", "flux", "update", "areas", "flux", "update")]


def test_redundancy_of_a_grid():
    sizes, maps = grid_mesh(32)
    chain = number(two_updates()[:3], sizes, maps)
    last = LoopPlan(two_updates()[2], sizes, {}, {}, "")
    whole = overlapped(chain, tile_owners(chain, [last], 32 * 32))
    assert whole.n_tiles == 1
    assert whole.redundancy(sizes) == 1.0
    # 8 rows of cells: 8 x 31 edges inside rows, 32 between two rows, also to the next strips
    strips = overlapped(chain, tile_owners(chain, [last], 32 * 8))
    assert strips.n_tiles == 4
    assert strips.runs[1].count.tolist() == [504, 536, 536, 504]
    assert 1.0 < strips.redundancy(sizes) < 1.25


def test_what_is_dropped_must_be_written_before_it_is_read():
    sizes, maps = grid_mesh(4)
    chain = number(two_updates(), sizes, maps)
    part = tile_owners(chain, [LoopPlan(two_updates()[2], sizes, {}, {}, "")], 4)
    kept = overlapped(chain, part, Kept(frozenset({"a"})))
    assert kept.redundancy(sizes) <= overlapped(chain, part).redundancy(sizes)
    with pytest.raises(
        MeshprepError, match="dat 'res' cannot be dropped at the end of the chain"
    ):
        overlapped(chain, part, Kept(frozenset({"res"})))


def test_a_chain_that_changes_nothing_is_refused():
    sizes, maps = grid_mesh(2)
    look = Loop("look", "cells", (Arg("q", Access.READ, 1, "i8"),))
    with pytest.raises(MeshprepError, match="a chain that changes nothing cannot be cut"):
        tile_owners(number([look], sizes, maps), [LoopPlan(look, sizes, {}, {}, "")], 4)


def test_tiles_join_blocks_that_meet_most():
    block = np.arange(4, dtype=np.int32)
    meetings = {0: {3: 5, 1: 1}, 1: {0: 1, 2: 4}, 2: {1: 4}, 3: {0: 5}}
    assert join(block, meetings, 2).tolist() == [0, 1, 1, 0]
    assert join(block, meetings, 1).tolist() == [0, 1, 2, 3]
    assert join(block, {}, 4).tolist() == [0, 1, 2, 3]
    # Block 2 is met twice before its turn comes, and counts once.
    row = {0: {1: 1, 2: 1}, 1: {0: 1, 2: 1}, 2: {0: 1, 1: 1, 3: 1}, 3: {2: 1}}
    assert join(block, row, 4).tolist() == [0, 0, 0, 0]
    assert join(block, row, 2).tolist() == [0, 0, 1, 1]


def test_tiles_that_fit_into_cache(monkeypatch):
    sizes, maps = grid_mesh(32)
    w, q = Arg("w", Access.READ, 2, "f4"), Arg("q", Access.RW, 3, "f8")
    res = Arg("res", Access.INC, 1, "f8", "edges->cells", (0, 1))
    loops = [Loop("gather", "edges", (w, res)), Loop("take", "cells", (q,))]
    chain = number(loops, sizes, maps)
    edges, cells = sizes["edges"], sizes["cells"]
    # 8 bytes and two local numbers of two bytes an edge, 24 + 8 bytes a cell.
    nbytes = (8 + 2 * 2) * edges + 32 * cells
    assert tile_in_cache(chain) == 2**20 * cells // nbytes > cells
    assert sizes_to_try(chain) == [cells]
    monkeypatch.setattr(f"{tile_in_cache.__module__}.CACHE_BYTES", 4096)
    fits = 4096 * cells // nbytes
    assert 4 * fits < cells < 16 * fits
    assert sizes_to_try(chain) == [fits, 4 * fits]


def test_tiles_start_from_blocks_of_the_loop_that_writes_through_maps(slow):
    grid = slow.quads(6, 5)
    gather = Loop(
        "gather", "edges", (Arg("r", Access.INC, 1, "f8", "edges->cells", (0, 1)),)
    )
    take = Loop("take", "cells", (Arg("r", Access.RW),))
    plan = slow.plan(grid.sizes, grid.tables, [gather, take], (7,))
    chain = number([gather, take], grid.sizes, plan.maps)
    part = tile_owners(chain, [plan["gather"], plan["take"]], 5)
    # a cell belongs to the tile of the last edge that reaches it; tiles of 49 edges by 8, not 7
    assert set(part) == {"cells"}
    last = np.zeros(30, int)
    for e, cells in enumerate(plan.maps["edges->cells"].table):
        last[cells] = e
    assert part["cells"].tolist() == (last // 7).tolist()


def test_blocks_are_cut_to_the_size_of_a_tile(slow):
    grid = slow.quads(5, 4)
    loop = Loop("one", "cells", (Arg("q", Access.RW, 1),))
    plan = slow.plan(grid.sizes, grid.tables, [loop], (8,))["one"]
    assert np.bincount(blocks_of(plan, 8)).tolist() == [8, 8, 4]
    assert np.bincount(blocks_of(plan, 5)).tolist() == [5, 3, 5, 3, 4]


def test_full_goes_with_writes_of_the_element_itself():
    with pytest.raises(MeshprepError, match="full goes with access 'write' and no map"):
        Arg("q", Access.RW, full=True)
    assert Arg("q", Access.WRITE, full=True).to_dict()["full"] is True
    assert "full" not in Arg("q", Access.WRITE).to_dict()


def test_names_of_dats_are_never_those_of_others():
    args = tuple(Arg(name, Access.RW) for name in ("q", "q_2"))
    owned = [{"q": 1, "q_2": 2}, {"q": 3, "q_2": 4}]
    loops, dats = with_common_names([Loop("l", "cells", args)] * 2, owned)
    assert sorted(dats.values()) == [1, 2, 3, 4]
    for loop, own in zip(loops, owned, strict=True):
        assert [dats[a.name] for a in loop.args] == [*own.values()]
