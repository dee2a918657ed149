"""Skewed schedules in plans: the proof beside what goes wrong, the file, and who takes them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from test_schedules import chain_of, started, with_chain, without_running
from test_tile_options import Flow

from meshprep_runtime import Access, Arg, Loop, MeshprepError, Plan
from meshprep_runtime.errors import PlanError
from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan.chains.proof import prove_chain
from meshprep_runtime.plan.chains.skewed import LoopTiles, SkewedPlan
from meshprep_runtime.plan.chains.structure import check_chain
from meshprep_runtime.plan.chains.tiles import ChainPlan
from meshprep_runtime.program.chains import tiling
from meshprep_runtime.program.chains.compiled_skew import replaced
from meshprep_runtime.program.chains.dependence import TileOfElement, conflicts, reaches_of
from meshprep_runtime.program.chains.numbers import number


def test_who_was_at_a_colour_and_point_before():
    """Against a dict; -1 stands for nobody, and tile 0 is somebody."""
    rng = np.random.default_rng(0)
    last, before = np.full((2, 4), -1, np.int32), {}
    for _ in range(3):
        own, points = (rng.integers(low, 4, 20).astype(np.int32) for low in (0, -1))
        colour, wanted = own.astype(np.int64) % 2, []
        for tile, c, p in zip(own.tolist(), colour.tolist(), points.tolist(), strict=True):
            wanted.append(before.get((c, p), tile))
            before |= {(c, p): tile} if p >= 0 else {}
        assert replaced(last, colour, points, own).tolist() == wanted


def test_the_only_value_that_two_tiles_share_is_a_conflict():
    """Tile 0 writes point 0, which the edge of tile 1 reads."""
    ends = "edges->points"
    table = SetMap(ends, "edges", "points", np.array([[0, 1]]))
    loops = [
        Loop("write", "points", (Arg("q", Access.WRITE),)),
        Loop("read", "edges", (Arg("q", Access.READ, map=ends, index=(0, 1)),)),
    ]
    chain = number(loops, {"points": 2, "edges": 1}, {ends: table})
    columns = {(ends, c): table.table[:, c] for c in range(2)}
    reaches = [reaches_of(chain, loop, columns) for loop in loops]
    tiles = [np.array([0, 1], np.int32), np.array([1], np.int32)]
    where = TileOfElement(tiles, {"q": np.array([1, 1])}, {"q": np.array([0, 1])})
    (found,) = conflicts(chain, reaches, where, np.array([0, 0]))
    assert {*found} == {0, 1}
    assert not conflicts(chain, reaches, where, np.array([0, 1]))


@pytest.fixture
def flow(slow):
    return Flow(slow)


@pytest.fixture
def plan(flow, tmp_path):
    """The plan of the flow, saved with a skewed schedule and loaded."""
    return with_chain(flow, tmp_path / "one.plan.h5", ahead=True)


def test_a_schedule_comes_back_from_its_file(flow, plan, tmp_path):
    made, found = chain_of(flow, ahead=True), plan.chains["two steps"]
    assert isinstance(found.tiles, SkewedPlan)
    assert (found.tile_size, found.tiles.loops) == (6, made.tiles.loops)
    assert found.tiles.colour_offset.tolist() == made.tiles.colour_offset.tolist()
    for old, new in zip(made.tiles.runs, found.tiles.runs, strict=True):
        np.testing.assert_array_equal(old.offset, new.offset)
        np.testing.assert_array_equal(old.elements, new.elements)
    assert found.tiles.n_tiles == 6
    assert 1 < found.tiles.n_colours < 6
    assert plan.verify() == []
    plan.save(tmp_path / "two.plan.h5")
    assert (tmp_path / "two.plan.h5").read_bytes() == (tmp_path / "one.plan.h5").read_bytes()


def wrong(plan, k, **change):
    """The chain of a plan with one list changed."""
    chain = plan.chains["two steps"]
    runs = list(chain.tiles.runs)
    runs[k] = replace(runs[k], **change)
    return replace(chain, tiles=replace(chain.tiles, runs=tuple(runs)))


def test_wrong_schedules_are_found(plan):
    tiles = plan.chains["two steps"].tiles
    elements = tiles.runs[1].elements.copy()
    elements[elements == 7] = 5
    twice = LoopTiles.of_elements(tiles.runs[1].offset, elements)
    found = prove_chain(wrong(plan, 1, **vars(twice)), plan.sizes, plan.maps)
    assert found == ["chain 'two steps', loop 2 'take' runs element 5 2 times"]
    one_colour = replace(tiles, colour_offset=np.array([0, tiles.n_tiles]))
    (first, *_) = Plan(**{**vars(plan), "chains": {"c": ChainPlan("c", 6, one_colour)}}).verify()
    found = re.match(r"chain 'c', tiles (\d+) and (\d+) of colour 0 both touch", first)
    assert found[1] != found[2]
    backward = LoopTiles.of_elements(tiles.runs[2].offset, tiles.runs[2].elements[::-1])
    (first, *_) = prove_chain(wrong(plan, 2, **vars(backward)), plan.sizes, plan.maps)
    assert first.startswith("chain 'two steps', loop 3 'gather' reaches '")
    assert "but an earlier loop in tile" in first


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("first", lambda a: a + 1000, "loop 2 'take', first: entry 0 is"),
        ("length", lambda a: 0 * a, "loop 2 'take', length: entry 0 is -1, outside 0..29"),
        ("offset", lambda a: a[::-1].copy(), "loop 2 'take', offset does not go from 0"),
        ("offset", lambda a: a[1:], "loop 2 'take', offset is int64 of shape"),
    ],
)
def test_unsafe_schedules_are_refused(plan, part, change, said):
    values = change(getattr(plan.chains["two steps"].tiles.runs[1], part))
    with pytest.raises(PlanError, match=said):
        check_chain(wrong(plan, 1, **{part: values}), plan.sizes, plan.maps)
    tiles = plan.chains["two steps"].tiles
    for colours, why in [([0, 7], "offset is int64"), ([], "no colours"), ([1, 6], "go from 0")]:
        other = replace(tiles, colour_offset=np.array(colours, np.int64))
        with pytest.raises(PlanError, match=why):
            check_chain(ChainPlan("c", 6, other), plan.sizes, plan.maps)


def test_the_schedule_that_fits_is_taken(flow, plan, monkeypatch):
    without_running(monkeypatch, "SkewedRun")
    saved = plan.chains["two steps"].tiles
    for options, fits in [
        ({"schedule": "two steps"}, True),
        ({"tile_size": 6, "skewed": True}, True),
        ({"tile_size": 7, "skewed": True}, False),
    ]:
        new = started(flow, plan)
        with new.program.chain(4, **options) as chain:
            new.step()
            new.step()
        (run,) = chain.tiled.values()
        assert (run.tiles is saved) == fits
    with pytest.raises(MeshprepError, match="schedule 'two steps' says how the chain is cut"):
        started(flow, plan).program.chain(schedule="two steps", skewed=True)


@pytest.mark.long
def test_a_program_takes_the_schedule_of_its_plan(flow, slow, plan, monkeypatch):
    eager, named = Flow(slow), started(flow, plan)
    for _ in range(8):
        eager.step()

    def never(*given):
        raise AssertionError

    monkeypatch.setattr(tiling, "cut", never)
    named.run(named.program.chain(schedule="two steps"))
    assert named.result(named.res, named.old) == eager.result(eager.res, eager.old)
