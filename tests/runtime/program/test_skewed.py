"""Skewed tiles: what loops give, whatever the order of tiles of one colour."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_chains import (
    KERNELS,
    fresh_globals,
    grid_mesh,
    owners,
    random_loops,
    random_mesh,
    run_eager,
    run_loop,
    same,
    start_values,
)
from test_tile_options import Flow
from test_tiles import FAST

from meshprep_runtime import Access, Arg, Loop, MeshprepError, SetMap
from meshprep_runtime.plan.chains.skewed_proof import prove_skewed
from meshprep_runtime.program.chains import skewed as module
from meshprep_runtime.program.chains import threads
from meshprep_runtime.program.chains.inspect import overlapped
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.chains.skewed import skewed


def steps_of(tiles, colour, rng):
    """The (loop, elements) of all tiles of a colour, a loop of one after a loop of another."""
    first, last = tiles.colour_offset[colour : colour + 2]
    left = {t: list(range(len(tiles.loops))) for t in range(first, last)}
    while left:
        t = int(rng.choice(list(left)))
        k = left[t].pop(0)
        if not left[t]:
            del left[t]
        a, b = tiles.runs[k].offset[t : t + 2]
        yield tiles.loops[k], tiles.runs[k].elements[a:b]


def run_tiles(tiles, maps, values, rng):
    """Colour by colour, the loops of a colour's tiles in any order that these allow."""
    out, reduced = {n: v.copy() for n, v in values.items()}, fresh_globals(tiles.loops)
    tables = {m: maps[m].table for m in maps}
    for colour in range(tiles.n_colours):
        for loop, elements in steps_of(tiles, colour, rng):
            run_loop(loop, elements, tables, out, reduced)
    return out, reduced


@FAST
@given(
    names=st.lists(st.sampled_from(sorted(KERNELS)), min_size=2, max_size=10),
    seed=st.integers(0, 10**6),
    n_tiles=st.integers(1, 12),
    grid=st.booleans(),
)
def test_tiles_give_what_loops_give(names, seed, n_tiles, grid):
    rng = np.random.default_rng(seed)
    sizes, maps = grid_mesh(6) if grid else random_mesh(rng, 12)
    loops = random_loops(rng, names)
    chain = number(loops, sizes, maps)
    tiles = skewed(chain, owners(chain, rng, n_tiles, chain.sizes))
    for loop, run in zip(loops, tiles.runs, strict=True):
        assert sorted(run.elements) == list(range(sizes[loop.over]))
    values = start_values(rng, sizes)
    assert same(run_tiles(tiles, maps, values, rng), run_eager(loops, sizes, maps, values))


def touched(tiles, t, maps, written):
    """The values of dats that a tile touches."""
    found = set()
    for loop, run in zip(tiles.loops, tiles.runs, strict=True):
        for e in run.elements[run.offset[t] : run.offset[t + 1]]:
            for a in loop.args:
                if a.is_global or a.name not in written:
                    continue
                points = [e] if a.map is None else maps[a.map].table[e, list(a.index)]
                found |= {(a.name, int(p)) for p in points}
    return found


@pytest.mark.parametrize("rounds", [12, 0])
def test_tiles_of_one_colour_touch_nothing_common(rounds, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROUNDS", rounds)
    sizes, maps = grid_mesh(12)
    rng = np.random.default_rng(2)
    loops = random_loops(rng, ["areas", "flux", "update"] * 2)
    chain = number(loops, sizes, maps)
    part = {}
    for s, n in sizes.items():
        part[s] = (np.arange(n) * 12 // n).astype(np.int32)
    tiles = skewed(chain, {s: part[s] for s in chain.sizes})
    assert tiles.n_tiles == 12
    # one after the other where colouring is given up
    assert tiles.colour_offset.size - 1 == 12 if rounds == 0 else tiles.colour_offset.size < 12
    for first, last in zip(tiles.colour_offset, tiles.colour_offset[1:], strict=False):
        seen = [touched(tiles, t, maps, chain.written) for t in range(first, last)]
        assert sum(map(len, seen)) == len(set().union(*seen))


def test_tiles_do_not_depend_on_threads(monkeypatch):
    """On threads that take pieces of a few elements."""
    monkeypatch.setattr(threads, "LEAST", 8)
    sizes, maps = grid_mesh(12)
    rng = np.random.default_rng(4)
    chain = number(random_loops(rng, ["areas", "flux", "spread", "update"] * 2), sizes, maps)
    part, found = owners(chain, rng, 9, chain.sizes), []
    for many in (1, 5):
        monkeypatch.setattr(threads, "thread_count", lambda many=many: many)
        assert len(threads.pieces(144)) == many
        ahead, beside = skewed(chain, part), overlapped(chain, part)
        lists = [run.elements for run in ahead.runs] + [s.elements for s in beside.sets.values()]
        chosen = [s.count for s in (*beside.runs, *beside.copies.values())]
        tables = [m.table for m in beside.maps.values()]
        found.append([a.tolist() for a in (ahead.colour_offset, *lists, *chosen, *tables)])
    assert found[0] == found[1]


def test_nothing_is_dropped(slow):
    flow = Flow(slow)
    with pytest.raises(MeshprepError, match="skewed tiles store every dat: leave dropped"):
        flow.tiled(skewed=True, dropped=[flow.old])


def test_columns_of_a_matrix_may_be_a_set_that_no_loop_touches():
    """Who adds to one nonzero reaches one row: columns do not matter."""
    rng, sizes = np.random.default_rng(0), {"cells": 20, "rows": 9, "columns": 7}
    maps = {
        m: SetMap(m, "cells", to, rng.integers(0, sizes[to], (20, 2)).astype(np.int32))
        for m, to in (("cells->rows", "rows"), ("cells->columns", "columns"))
    }
    matrix = Arg("K", Access.INC, 2, "f8", "cells->rows", (0, 1), columns="cells->columns")
    chain = number([Loop("add", "cells", (matrix,))] * 2, sizes, maps)
    part = {s: rng.integers(0, 4, sizes[s]).astype(np.int32) for s in chain.sizes}
    tiles = skewed(chain, part)
    assert list(prove_skewed(tiles, sizes, maps)) == []
    assert tiles.runs[0].elements.size == 20
