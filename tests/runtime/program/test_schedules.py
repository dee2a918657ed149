"""Schedules of chains in plans: the proof beside what goes wrong, the file, and who takes them."""

import subprocess
import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_chains import (
    KERNELS,
    grid_mesh,
    owners,
    random_loops,
    random_mesh,
    run_eager,
    same,
    start_values,
)
from sealing import seal
from test_tile_options import Flow
from test_tiles import FAST, run_tiles

from meshprep_runtime import Access, Arg, Loop, MeshprepError, Plan
from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan.chains.proof import prove_chain
from meshprep_runtime.plan.chains.section import check_chain
from meshprep_runtime.plan.chains.tiles import ChainPlan, Kept, LocalSelection, LocalSet
from meshprep_runtime.program.chains import tiling
from meshprep_runtime.program.chains.inspect import schedule, with_maps
from meshprep_runtime.program.chains.numbers import number, with_common_names


def without_one(selection, rng):
    """The selection without one of its elements."""
    n_tiles = selection.count.size
    lists = [selection.of_tile(t) for t in range(n_tiles)]
    t = int(rng.choice(np.flatnonzero(selection.count)))
    lists[t] = np.delete(lists[t], rng.integers(lists[t].size))
    count = np.array([len(items) for items in lists])
    return LocalSelection(count, np.concatenate(lists).astype(np.int32))


def damaged(tiles, rng):
    """Something that a tile ran or copied is left out."""
    where = [("runs", k) for k, run in enumerate(tiles.runs) if run.count.any()]
    where += [("copies", d) for d in tiles.copies]
    kind, key = where[rng.integers(len(where))]
    if kind == "runs":
        runs = list(tiles.runs)
        runs[key] = without_one(runs[key], rng)
        return replace(tiles, runs=tuple(runs))
    return replace(tiles, copies={**tiles.copies, key: without_one(tiles.copies[key], rng)})


@FAST
@given(
    names=st.lists(st.sampled_from(sorted(KERNELS)), min_size=2, max_size=6),
    seed=st.integers(0, 10**6),
    n_tiles=st.integers(1, 6),
)
def test_the_proof_finds_what_gives_other_results(names, seed, n_tiles):
    rng = np.random.default_rng(seed)
    sizes, maps = grid_mesh(4) if seed % 2 else random_mesh(rng, 9)
    loops = random_loops(rng, names)
    chain = number(loops, sizes, maps)
    tiles = schedule(chain, owners(chain, rng, n_tiles, chain.owned_sets()))
    right = ChainPlan("c", 4, tiles)
    check_chain(right, sizes, maps)
    assert prove_chain(right, sizes, maps) == []
    values = start_values(rng, sizes)
    expected = run_eager(loops, sizes, maps, values)
    for _ in range(4):
        wrong = damaged(tiles, rng)
        check_chain(ChainPlan("c", 4, wrong), sizes, maps)
        found = run_tiles(with_maps(wrong, maps, sizes), chain, values)
        if not same(found, expected):
            assert prove_chain(ChainPlan("c", 4, wrong), sizes, maps)


@pytest.fixture
def flow(slow):
    return Flow(slow)


def chain_of(flow, size=6, kept=("old", "res")):
    """The schedule of two steps, as the pipeline makes it."""
    plan = flow.program.plan
    plans = [plan["gather"], plan["take"]] * 2
    given = [{a.name: a.name for a in p.loop.args if not a.is_global} for p in plans]
    loops, _ = with_common_names([p.loop for p in plans], given)
    chain = number(loops, plan.sizes, plan.maps)
    dropped, zero = (frozenset([name] if name else []) for name in kept)
    return ChainPlan("two steps", size, tiling.cut(chain, plans, size, Kept(dropped, zero)))


def with_chain(flow, path, **options):
    """The plan of a flow with a schedule, saved and loaded."""
    made = chain_of(flow, **options)
    plan = flow.program.plan
    content = {**vars(plan), "chains": {made.name: made}}
    Plan(**content).save(path)
    return Plan.load(path)


def started(flow, plan):
    """The same flow on another plan."""
    return Flow(None, plan, flow.q.values().copy())


def without_running(monkeypatch, kind):
    """Runs of tiles are made, but run nothing; returns the list of what would have run."""
    ran = []

    class Made:
        def __init__(self, *given):
            *_, self.tiles, _, _ = given

        def __call__(self, records):
            ran.append(self.tiles)

    monkeypatch.setattr(tiling, kind, Made)
    return ran


def test_a_schedule_comes_back_from_its_file(flow, tmp_path):
    made = chain_of(flow)
    plan = with_chain(flow, tmp_path / "one.plan.h5")
    (found,) = plan.chains.values()
    assert (found.name, found.tile_size) == ("two steps", 6)
    assert (found.tiles.loops, found.tiles.kept) == (made.tiles.loops, made.tiles.kept)
    for name, one in made.tiles.sets.items():
        for part in ("offset", "first", "length", "own"):
            values = getattr(found.tiles.sets[name], part)
            np.testing.assert_array_equal(values, getattr(one, part))
            assert not values.flags.writeable
        np.testing.assert_array_equal(found.tiles.sets[name].elements, one.elements)
        assert one.elements.dtype == np.int32
    for old, new in zip(made.tiles.runs, found.tiles.runs, strict=True):
        assert [old.of_tile(t).tolist() for t in range(6)] == [
            new.of_tile(t).tolist() for t in range(6)
        ]
    assert found.tiles.copies.keys() == {"q"}
    assert plan.verify() == []
    plan.save(tmp_path / "two.plan.h5")
    assert (tmp_path / "two.plan.h5").read_bytes() == (tmp_path / "one.plan.h5").read_bytes()
    assert (tmp_path / "one.plan.h5").read_bytes().startswith(b"meshprep-plan 1\n")


def test_a_wrong_schedule_is_found(flow):
    made, plan = chain_of(flow), flow.program.plan
    runs = (without_one(made.tiles.runs[0], np.random.default_rng(0)), *made.tiles.runs[1:])
    wrong = replace(made, tiles=replace(made.tiles, runs=runs))
    (finding, *_) = Plan(**{**vars(plan), "chains": {"c": wrong}}).verify()
    assert finding.startswith("chain 'two steps', tile ")
    assert "is not" in finding
    of_set = made.tiles.sets["cells"]
    sets = {**made.tiles.sets, "cells": replace(of_set, own=of_set.own - 1)}
    owner = replace(made, tiles=replace(made.tiles, sets=sets))
    (finding, *_) = prove_chain(owner, plan.sizes, plan.maps)
    assert finding.startswith("chain 'two steps', set 'cells': element ")
    assert finding.endswith("has 0 owners")


def test_a_schedule_is_looked_at_where_nothing_had_loaded_its_checks(flow, tmp_path, monkeypatch):
    made, plan, path = chain_of(flow), flow.program.plan, tmp_path / "one.plan.h5"
    runs = (without_one(made.tiles.runs[0], np.random.default_rng(0)), *made.tiles.runs[1:])
    of_set = made.tiles.sets["cells"]
    sets = {**made.tiles.sets, "cells": replace(of_set, own=of_set.own - 99)}
    for changed, said in (({"runs": runs}, "is not"), ({"sets": sets}, "own: tile 0 has")):
        wrong = replace(made, tiles=replace(made.tiles, **changed))
        with monkeypatch.context() as unchecked:
            unchecked.setattr("meshprep_runtime.plan.file.store.check_plan", lambda plan: None)
            Plan(**{**vars(plan), "chains": {"c": wrong}}).save(path, overwrite=True)
        code = (
            "from meshprep_runtime import Plan, PlanError\n"
            f"try: print(*Plan.load({str(path)!r}).verify())\n"
            "except PlanError as error: print(error)\n"
        )
        told = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert "chain 'two steps', " in told
        assert said in told


def test_a_tile_without_a_point_that_it_reaches_is_found(flow):
    """The last of its cells, a copy, is another one: -1 would be taken for that place."""
    made, plan = chain_of(flow), flow.program.plan
    cells = made.tiles.sets["cells"]
    assert cells.own[0] < cells.offset[1]
    elements = cells.elements.copy()
    elements[cells.offset[1] - 1] = np.setdiff1d(np.arange(30), elements[: cells.offset[1]])[0]
    sets = {**made.tiles.sets, "cells": LocalSet.of_elements(cells.offset, elements, cells.own)}
    wrong = replace(made, tiles=replace(made.tiles, sets=sets))
    check_chain(wrong, plan.sizes, plan.maps)
    (first, *_) = prove_chain(wrong, plan.sizes, plan.maps)
    assert first.startswith("chain 'two steps', tile 0: loop ")
    assert first.endswith("reaches a point of 'q' that the tile does not hold")


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("first", lambda a: a + 1000, "chain 'two steps', set 'cells', first: entry 0 is"),
        ("first", lambda a: a + 15, "set 'cells', (first|ends): entry"),
        ("length", lambda a: 0 * a, "set 'cells', length: entry 0 is -1, outside 0..29"),
        ("length", lambda a: a[1:], "set 'cells', length is int32 of shape"),
        ("offset", lambda a: a[::-1].copy(), "set 'cells', offset does not go from 0"),
        ("own", lambda a: a + 1000, "set 'cells', own: tile 0 has"),
        ("own", lambda a: a[1:], "set 'cells', own is int64 of shape"),
    ],
)
def test_an_unsafe_schedule_is_refused(flow, part, change, said):
    made, plan = chain_of(flow), flow.program.plan
    of_set = made.tiles.sets["cells"]
    wrong = replace(of_set, **{part: change(getattr(of_set, part))})
    sets = {**made.tiles.sets, "cells": wrong}
    with pytest.raises(PlanError, match=said):
        check_chain(replace(made, tiles=replace(made.tiles, sets=sets)), plan.sizes, plan.maps)


@pytest.mark.parametrize(
    ("items", "said"),
    [([0, 999], "an item is outside its tile"), ([1, 0], "items of a tile do not ascend")],
)
def test_unsafe_items_are_refused(flow, items, said):
    made, plan = chain_of(flow), flow.program.plan
    count = np.zeros(made.tiles.n_tiles, np.int64)
    count[0] = 2
    runs = (LocalSelection(count, np.array(items, np.int32)), *made.tiles.runs[1:])
    with pytest.raises(PlanError, match=said):
        check_chain(replace(made, tiles=replace(made.tiles, runs=runs)), plan.sizes, plan.maps)


def with_tiles(made, **changes):
    return replace(made, tiles=replace(made.tiles, **changes))


def with_arg(made, loop, arg, **changes):
    """The schedule with an argument of a loop changed."""
    loops = list(made.tiles.loops)
    args = list(loops[loop].args)
    args[arg] = replace(args[arg], **changes)
    loops[loop] = replace(loops[loop], args=tuple(args))
    return with_tiles(made, loops=tuple(loops))


def with_map(maps, **changes):
    return {**maps, "edges->cells": replace(maps["edges->cells"], **changes)}


def without(entries, name):
    return {key: value for key, value in entries.items() if key != name}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: replace(c, tile_size=0), "has no loops, or tiles of no elements"),
        (lambda c: with_tiles(c, loops=()), "has no loops, or tiles of no elements"),
        (
            lambda c: with_tiles(c, sets=without(c.tiles.sets, "cells")),
            "has no tiles of set 'cells'",
        ),
        (
            lambda c: with_tiles(c, sets=without(c.tiles.sets, "edges")),
            "has no tiles of set 'edges'",
        ),
        (
            lambda c: with_tiles(c, sets={**c.tiles.sets, "faces": c.tiles.sets["cells"]}),
            "names set 'faces', which the plan does not have",
        ),
        (
            lambda c: with_tiles(c, copies={"x": c.tiles.copies["q"]}),
            "copies dat 'x', which no loop of it has",
        ),
        (lambda c: with_arg(c, 0, 0, index=(0, 2)), "or another column than it has"),
        (lambda c: with_arg(c, 0, 0, index=(2,)), "or another column than it has"),
        (lambda c: with_arg(c, 0, 0, map="edges->x"), "uses map 'edges->x', which the plan does"),
        (
            lambda c: with_arg(c, 0, 0, map="edges->nodes"),
            "dat 'q' is on 'cells' and 'nodes'|dat 'q' is on 'nodes' and 'cells'",
        ),
        (
            lambda c: with_tiles(
                c, runs=(LocalSelection(c.tiles.runs[0].count + 1000), *c.tiles.runs[1:])
            ),
            "loop 1 'gather', count: tile 0 has 10",
        ),
        (
            lambda c: with_tiles(
                c, runs=(LocalSelection(-1 - c.tiles.runs[0].count), *c.tiles.runs[1:])
            ),
            "loop 1 'gather', count: tile 0 has -",
        ),
        (
            lambda c: with_tiles(
                c, runs=(LocalSelection(c.tiles.runs[0].count[1:]), *c.tiles.runs[1:])
            ),
            "loop 1 'gather', count is int64 of shape",
        ),
        (
            lambda c: with_tiles(
                c,
                runs=(
                    LocalSelection(np.ones_like(c.tiles.runs[0].count), np.zeros(1, "i4")),
                    *c.tiles.runs[1:],
                ),
            ),
            "loop 1 'gather', items is int32 of shape",
        ),
    ],
)
def test_schedules_that_do_not_fit_are_refused(flow, change, said):
    made, plan = chain_of(flow), flow.program.plan
    check_chain(made, plan.sizes, plan.maps)
    with pytest.raises(PlanError, match=said):
        check_chain(change(made), plan.sizes, plan.maps)


def test_schedules_that_do_not_fit_their_plan_are_refused(flow):
    made, plan = chain_of(flow), flow.program.plan
    for sizes, maps, said in (
        (without(plan.sizes, "edges"), plan.maps, "loop 'gather' is over 'edges', which is no set"),
        (plan.sizes, without(plan.maps, "edges->cells"), "'edges->cells', which the plan does not"),
        (plan.sizes, with_map(plan.maps, from_set="cells"), "'edges->cells', which the plan does"),
    ):
        with pytest.raises(PlanError, match=said):
            check_chain(made, sizes, maps)


def test_the_schedule_that_fits_is_taken(flow, tmp_path, monkeypatch):
    without_running(monkeypatch, "TiledRun")
    plan = with_chain(flow, tmp_path / "one.plan.h5")
    saved = plan.chains["two steps"].tiles
    kept = {"dropped": ["old"], "zero": ["res"]}
    for options, fits in [
        ({"schedule": "two steps"}, True),
        ({"tile_size": 6} | kept, True),
        ({"tile_size": 7} | kept, False),
        ({"tile_size": 6, "zero": ["res"]}, False),
    ]:
        new = started(flow, plan)
        given = {n: [getattr(new, d) for d in v] if n in kept else v for n, v in options.items()}
        with new.program.chain(4, **given) as chain:
            new.step()
            new.step()
        (run,) = chain.tiled.values()
        assert (run.tiles.runs is saved.runs) == fits
        assert set(run.tiles.maps) == {"edges->cells"}


@pytest.mark.long
def test_a_program_takes_the_schedule_of_its_plan(flow, slow, tmp_path, monkeypatch):
    eager = Flow(slow)
    for _ in range(8):
        eager.step()
    named = started(flow, with_chain(flow, tmp_path / "one.plan.h5"))
    fitting = started(flow, named.program.plan)

    def never(*given):
        raise AssertionError

    monkeypatch.setattr(tiling, "schedule", never)
    named.run(named.program.chain(schedule="two steps"))
    fitting.run(fitting.tiled(dropped=[fitting.old], zero=[fitting.res]))
    assert named.result(named.res) == fitting.result(fitting.res) == eager.result(eager.res)
    with pytest.raises(AssertionError):
        fitting.run(fitting.tiled(dropped=[fitting.old]))


def test_a_schedule_of_other_loops_is_refused(flow, tmp_path):
    other = started(flow, with_chain(flow, tmp_path / "one.plan.h5"))
    said = "the schedule 'two steps' of the plan is of another chain: loop 2 is 'gather', there"

    def run():
        with other.program.chain(schedule="two steps"):
            for _ in range(4):
                other.gather(q=other.q, res=other.res)

    with pytest.raises(MeshprepError, match=said):
        run()
    with pytest.raises(MeshprepError, match="the plan has no schedule 'step': it has two steps"):
        other.program.chain(schedule="step")
    with pytest.raises(MeshprepError, match="the plan has no schedule 'step': it has none: add"):
        flow.program.chain(schedule="step")
    for size in (4, "auto"):
        with pytest.raises(MeshprepError, match="schedule 'two steps' says how the chain is cut"):
            other.program.chain(schedule="two steps", tile_size=size)


def test_names_of_dats_are_never_those_of_others():
    args = tuple(Arg(name, Access.RW) for name in ("q", "q_2"))
    owned = [{"q": 1, "q_2": 2}, {"q": 3, "q_2": 4}]
    loops, dats = with_common_names([Loop("l", "cells", args)] * 2, owned)
    assert sorted(dats.values()) == [1, 2, 3, 4]
    for loop, own in zip(loops, owned, strict=True):
        assert [dats[a.name] for a in loop.args] == [*own.values()]


def test_skewed_tiles_of_an_older_plan_are_refused(flow, tmp_path):
    path = tmp_path / "old.plan.h5"
    with_chain(flow, path)
    with h5py.File(path, "r+") as file:
        file["chains/two steps"].attrs["skewed"] = 1
    seal(path, 1)
    with pytest.raises(PlanError, match="'two steps' has skewed tiles, which were removed"):
        Plan.load(path)


def test_what_an_older_version_had_timed_is_passed_over(flow, tmp_path):
    path = tmp_path / "old.plan.h5"
    with_chain(flow, path)
    with h5py.File(path, "r+") as file:
        file["chains/two steps/tuned"] = np.bytes_("[]")
    seal(path, 1)
    assert Plan.load(path).verify() == []
