"""Chains tile by tile on ranks: whole numbers bit-equal to one rank, with one exchange a chain."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_loops import DIMS, LOOPS, SETS
from random_chains import (
    KERNELS,
    full,
    grid_mesh,
    integer_dats,
    loops_and_globals,
    random_loops,
    random_mesh,
    run_eager,
    start_values,
)
from slow_parts import World
from test_tiles import run_tiles

from airfoil import KERNELS as KERNEL_FILES
from airfoil import Airfoil, prepared_airfoil
from meshprep.distribute.job import SplitJob, run
from meshprep.io import read
from meshprep.loops import read_requests
from meshprep.loops.options import Options
from meshprep.pipeline import workflow
from meshprep_runtime import DistributedError, DistributedPlan, MeshprepError, Program, run_ranks
from meshprep_runtime.plan.chains.tiles import Kept
from meshprep_runtime.program.chains import rank_tiles
from meshprep_runtime.program.chains.deep_part import deep_part
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.exchange import Exchange

NAMES = ("areas", "flux", "mark", "update")
COMBINE = {"inc": np.add, "min": np.minimum, "max": np.maximum}


def parts_of(rng, sizes, maps, loops, ranks, slow):
    owner = {s: rng.integers(0, ranks, n) for s, n in sizes.items()}
    tables = {name: m.table for name, m in maps.items()}
    world = World(sizes, tables, loops, owner, ranks)
    return [world.part(p, slow.variant) for p in range(ranks)]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(st.sampled_from(sorted(KERNELS)), min_size=1, max_size=7),
    seed=st.integers(0, 10**6),
    ranks=st.integers(1, 5),
    size=st.integers(1, 30),
    grid=st.booleans(),
)
def test_parts_are_deep_enough_for_any_chain(slow, names, seed, ranks, size, grid):
    """By plain Python, with poison wherever nothing was sent."""
    rng = np.random.default_rng(seed)
    sizes, maps = grid_mesh(5) if grid else random_mesh(rng, 9)
    parts = parts_of(rng, sizes, maps, [full(LOOPS[k]) for k in KERNELS.values()], ranks, slow)
    loops = random_loops(rng, names)
    values = start_values(rng, sizes)
    expected, sums = run_eager(loops, sizes, maps, values)
    # by the numbers of the parts
    order = {s: np.concatenate([p.sets[s].original for p in parts]) for s in sizes}

    def main(comm):
        part = parts[comm.rank]
        small, wanted = rank_tiles._owned_tiles(part, loops, size)
        deep = deep_part(comm, part, loops, wanted)
        tiles = rank_tiles._tiles(deep, loops, small, Kept())
        chain = number(loops, deep.sizes, deep.maps)
        own = {}
        for name in chain.dats:
            rows = values[name][order[chain.dats[name]][deep.numbers[chain.dats[name]]]]
            own[name] = np.concatenate([rows, rows[:1]]) if len(rows) else np.zeros((1, DIMS[name]))
        for name in DIMS:
            own.setdefault(name, np.zeros((1, DIMS[name]), np.int64))
        out, reduced = run_tiles(tiles, chain, own)
        return {n: out[n][: part.sets[s].owned] for n, s in chain.dats.items()}, reduced

    found = run_ranks(ranks, main, seed=seed)
    for name in found[0][0]:
        of_set = SETS.get(name, "cells")
        ours = np.concatenate([out[name] for out, _ in found])
        np.testing.assert_array_equal(ours, expected[name][order[of_set]], err_msg=name)
    for loop in loops:
        for a in (a for a in loop.args if a.is_global):
            total = found[0][1][a.name]
            for _, reduced in found[1:]:
                total = COMBINE[str(a.access)](total, reduced[a.name])
            np.testing.assert_array_equal(total, sums[a.name])


class IntegerRun:
    """The integer loops on one of several ranks."""

    def __init__(self, part, comm, side=6):
        plan = DistributedPlan(part, comm)
        self.program = Program(plan)
        start = integer_values(side)
        own = {n: v[plan.numbers(SETS.get(n, "cells"))] for n, v in start.items()}
        self.dats = integer_dats(self.program, own)
        self.loops, self.globals = loops_and_globals(self.program)

    def steps(self, times):
        for _ in range(times):
            for name in NAMES:
                if name == "mark":
                    self.globals["update", "total"].set([1, 5])
                self.call(name)

    def call(self, name):
        args = LOOPS[KERNELS[name]].args
        reduced = {a.name: self.globals[name, a.name] for a in args if a.is_global}
        dats = {a.name: self.dats[a.name] for a in args if not a.is_global}
        self.loops[name](**dats, **reduced)

    def result(self):
        plan = self.program.plan
        dats = {n: plan.fetch(d) for n, d in self.dats.items()}
        return dats, {n: g.value.tolist() for n, g in self.globals.items()}


def integer_values(side=6):
    return start_values(np.random.default_rng(3), grid_mesh(side)[0])


@pytest.fixture(scope="module")
def parts(slow):
    """``parts(k)``: the same grid on so many ranks."""

    def make(ranks):
        sizes, maps = grid_mesh(6)
        loops = [full(LOOPS[k]) for k in KERNELS.values()]
        return parts_of(np.random.default_rng(ranks), sizes, maps, loops, ranks, slow)

    return make


def results(parts, main):
    """What each rank has after ``main`` of its run; the dats are on rank 0."""

    def run_one(comm):
        case = IntegerRun(parts[comm.rank], comm)
        main(case)
        return case.result()

    found = run_ranks(len(parts), run_one, seed=5)
    return {n: v.tolist() for n, v in found[0][0].items()}, [sums for _, sums in found]


def on_ranks(parts, tile_size):
    def main(case):
        case.steps(1)
        # the last loop has cleared it
        with case.program.chain(len(NAMES), tile_size=tile_size, zero=[case.dats["res"]]) as chain:
            case.steps(2)
            # changed outside, so that all copies of it are stale
            case.dats["x"].values(write=True)[:] += 1
            case.steps(2)
        assert len(chain.tiled) == (tile_size is not None)

    return results(parts, main)


def test_tiles_on_ranks_give_what_loops_give(parts, monkeypatch):
    expected, sums = on_ranks(parts(1), None)
    started = []
    start = Exchange.start

    def noted(self, wanted, back=False):
        if self.part.sets == {}:
            started.append(len(wanted))
        return start(self, wanted, back)

    monkeypatch.setattr(Exchange, "start", noted)
    ours, totals = on_ranks(parts(3), 5)
    assert ours == expected
    assert totals == sums * 3
    # one a chain and rank, of what is read and stale: x and qold at first, x when it has changed
    assert sorted(started) == [4] * 6 + [5] * 3 + [6] * 3


def by_update(plan, dat, values, _):
    dat.array[: dat.owned] = values
    plan.update(dat)


def by_a_file(plan, dat, values, path):
    other = plan.dat(dat.set, dat.dim, dat.dtype, values=values)
    plan.write_fields(path, {"x": other}, overwrite=True)
    plan.read_fields(path, {"x": dat})


def by_another_array(plan, dat, values, _):
    dat.array = np.concatenate([values, np.full((len(dat.array) - dat.owned, dat.dim), -7)])


@pytest.mark.parametrize("change", [by_update, by_a_file, by_another_array])
def test_values_that_come_from_outside_reach_every_tile(parts, tmp_path, change):
    """x is only read by the chain: copies that the tiles hold must be brought anew."""

    def main(case, tile_size=None):
        plan = case.program.plan
        with case.program.chain(len(NAMES), tile_size=tile_size):
            case.steps(1)
            values = integer_values()["x"][plan.numbers("nodes")] * 3 + 1
            change(plan, case.dats["x"], values, tmp_path / "x.h5")
            case.steps(1)

    dats, sums = results(parts(1), main)
    assert results(parts(3), partial(main, tile_size=5)) == (dats, sums * 3)


def test_arrays_that_are_swapped_take_no_fresh_copies_along(parts):
    """flux reads a on other ranks; near was added to, so that its copies are stale."""

    def main(case):
        case.steps(1)
        a, near = case.dats["a"], case.dats["near"]
        a.array, near.array = near.array, a.array
        case.call("flux")

    dats, sums = results(parts(1), main)
    assert results(parts(3), main) == (dats, sums * 3)


@pytest.mark.long
def test_airfoil_in_tiles_on_ranks(tmp_path):
    """Nine loops: a minute to compile."""
    path, parts = tmp_path / "airfoil.msh", tmp_path / "airfoil.parts.h5"
    workflow.generate("airfoil", path, values={"cells": 1200})
    mesh, requests = read(path), read_requests(KERNEL_FILES / "airfoil.toml")
    run(SplitJob(path, parts, (2,), requests, options=Options(block_size=32)))
    expected = list(Airfoil(prepared_airfoil(0, 128, mesh=mesh), "sequential").steps(6))

    def main(comm):
        flow = Airfoil.on_ranks(DistributedPlan.load(parts, comm), mesh, "sequential")
        with flow.program.chain(9, tile_size=100) as chain:
            found = list(flow.steps(6))
        assert len(chain.tiled) == 1
        return found

    for rms in run_ranks(2, main):
        assert [f"{r:.5e}" for r in rms] == [f"{r:.5e}" for r in expected]


def test_what_tiles_on_ranks_cannot_do_is_refused(parts):
    def main(comm):
        program = Program(DistributedPlan(parts(2)[comm.rank], comm))
        for options in ({"tile_size": "auto"}, {"schedule": "a"}, {"tile_size": 2, "skewed": True}):
            with pytest.raises(MeshprepError, match="tiles on ranks overlap, and are cut when"):
                program.chain(2, **options)

    run_ranks(2, main)


def test_increments_that_are_sent_back_are_refused_on_all_ranks(slow):
    sizes, maps = grid_mesh(4)
    owner = {s: np.arange(n) % 2 for s, n in sizes.items()}
    tables = {name: m.table for name, m in maps.items()}
    world = World(sizes, tables, list(LOOPS.values()), owner, 2, {"flux": "reverse"})

    def main(comm):
        case = IntegerRun(world.part(comm.rank, slow.variant), comm, 4)
        refused = pytest.raises(DistributedError, match="'flux' sends increments back, which tiles")
        with case.program.chain(len(NAMES), tile_size=4), refused:
            case.steps(1)

    run_ranks(2, main)
