"""Ranges of a loop: what is built, what a file keeps, what is refused and what the proof finds."""

from dataclasses import replace
from itertools import combinations, pairwise

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_files import at, one_line, random_plans

from meshprep_runtime import Plan, PlanError
from meshprep_runtime.plan import ranges as builder
from meshprep_runtime.plan.checks.structure import check_plan
from meshprep_runtime.plan.checks.verify import verify
from meshprep_runtime.plan.tuned import Machine, Trial, Tuned

NAMES = ("offset", "order", "wait_offset", "waits")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wing.plan.h5"


def ranges_of(monkeypatch, loop_plan, size=8, **how):
    """Ranges of so few elements that small plans have several."""
    monkeypatch.setattr(builder, "LEAST", size)
    monkeypatch.setattr(builder, "MOST", size)
    return builder.ranges_for(loop_plan, **how)


def with_ranges(plan, ranges):
    loops = {name: replace(one, ranges=ranges) for name, one in plan.loops.items()}
    return replace(plan, loops=loops)


@pytest.fixture
def made(airfoil, monkeypatch):
    """Edges of a grid of quads in ranges of a block each."""
    return with_ranges(airfoil, ranges_of(monkeypatch, airfoil["res_calc"]))


def written(loop_plan, ranges):
    """The (set, point) pairs that each range writes, by its turn."""
    elements = range(loop_plan.sizes[loop_plan.loop.over])
    if loop_plan.variants and loop_plan.variant().elements is not None:
        elements = loop_plan.variant().elements.tolist()
    bounds = list(pairwise(ranges.offset.tolist()))
    return [
        {
            (
                loop_plan.maps[name].to_set,
                int(loop_plan.maps[name].table[elements[place], k]),
            )
            for name, columns in loop_plan.loop.conflict_columns.items()
            for k in columns
            for place in range(*bounds[r])
        }
        for r in ranges.order.tolist()
    ]


def awaited(ranges):
    """The turns that each turn waits for."""
    bounds = pairwise(ranges.wait_offset.tolist())
    return [set(ranges.waits[first:last].tolist()) for first, last in bounds]


def slow_is_right(loop_plan, ranges):
    """Of the turns that write a point, each waits for the one before."""
    points, waits = written(loop_plan, ranges), awaited(ranges)
    turns = {
        p: [t for t, own in enumerate(points) if p in own] for p in set().union(*points)
    }
    return all(a in waits[b] for own in turns.values() for a, b in pairwise(own))


def any_two_that_meet_are_in_turn(loop_plan, ranges):
    """One awaits the other, perhaps through others."""
    points, before = written(loop_plan, ranges), []
    for own in awaited(ranges):
        before.append(own.union(*(before[t] for t in own)))
    pairs = combinations(range(len(points)), 2)
    return all(i in before[j] for i, j in pairs if points[i] & points[j])


def runs_keep_turns(ranges):
    """One thread runs each place once, and a range after those that it waits for."""
    places = [
        p for first, last in builder.runs_of(ranges).tolist() for p in range(first, last)
    ]
    ends, order = ranges.offset.tolist(), ranges.order.tolist()
    found = {r: places.index(ends[r]) for r in order if ends[r] < ends[r + 1]}
    before = [(order[a], order[b]) for b, own in enumerate(awaited(ranges)) for a in own]
    kept = all(found[a] < found[b] for a, b in before if a in found and b in found)
    return kept and sorted(places) == list(range(ends[-1]))


def test_one_thread_stays_near_the_order_of_the_set(slow, monkeypatch):
    """A grid row by row: each range meets the next, those of 16 stretches begin together."""
    grid = slow.quads(4, 200)
    plan = slow.plan(grid.sizes, grid.tables, [slow.res_calc])["res_calc"]
    ranges = ranges_of(monkeypatch, plan, size=16)
    assert np.all(np.abs(np.diff(ranges.order)) > 1)
    runs = builder.runs_of(ranges)
    assert len(runs) < 3 * builder.SEVERAL < ranges.order.size
    assert np.abs(runs[1:, 0] - runs[:-1, 1]).max() <= 2 * 16


def test_ranges_are_whole_blocks_that_wait_for_those_that_they_meet(made):
    loop_plan, ranges = made["res_calc"], made["res_calc"].ranges
    assert ranges.offset.tolist() == loop_plan.variant().block_offset.tolist()
    points = written(loop_plan, ranges)
    for turn, own in enumerate(awaited(ranges)):
        assert own == {t for t in range(turn) if points[t] & points[turn]}
    assert ranges.waits.size > 3
    assert verify(made) == []


@pytest.mark.parametrize("cuts", [(), (10, 20), (0, 38), (13, 13), (50, 60)])
def test_no_range_crosses_a_cut_and_what_is_before_one_runs_before(
    airfoil, monkeypatch, cuts
):
    ranges = ranges_of(monkeypatch, airfoil["res_calc"], cuts=cuts)
    assert set(np.minimum(cuts, 38)) <= set(ranges.offset.tolist())
    piece = np.searchsorted(cuts, ranges.offset[:-1], side="right")
    assert (np.diff(piece[ranges.order]) >= 0).all()
    inside = not set(np.minimum(cuts, 38)) <= set(
        airfoil["res_calc"].variant().block_offset
    )
    findings = verify(with_ranges(airfoil, ranges))
    assert len(findings) == inside
    assert all("begins at place 1" in f and "inside of a block" in f for f in findings)


def test_ranges_grow_in_an_order_without_locality(slow, monkeypatch):
    monkeypatch.setattr(builder, "NEIGHBOURS", 12)
    grid = slow.quads(20, 10)
    shuffled = np.random.default_rng(3).permutation(grid.sizes["edges"])
    tables = {name: table[shuffled] for name, table in grid.tables.items()}
    plan = slow.plan(grid.sizes, tables, [slow.res_calc], (8,))
    assert ranges_of(monkeypatch, plan["res_calc"]).order.size == 24
    sorted_plan = slow.plan(grid.sizes, grid.tables, [slow.res_calc], (8,))
    assert ranges_of(monkeypatch, sorted_plan["res_calc"]).order.size == 47


@settings(deadline=None, max_examples=effort.examples(150))
@given(random_plans(), st.booleans(), st.data())
def test_random_plans_and_random_breaks(slow, made, lists, data):
    sizes, tables, loop, block_size = made
    plan = slow.plan(sizes, tables, [loop], (block_size,), lists=lists)
    with pytest.MonkeyPatch.context() as patch:
        whole = ranges_of(patch, plan["loop"], size=data.draw(st.integers(1, 4)))
    assert verify(with_ranges(plan, whole)) == []
    assert any_two_that_meet_are_in_turn(plan["loop"], whole)
    assert runs_keep_turns(whole)
    name = data.draw(st.sampled_from([n for n in NAMES if getattr(whole, n).size]))
    values = getattr(whole, name)
    value = data.draw(st.integers(-1, max(int(values.max()), 0) + 1))
    index = data.draw(st.integers(0, values.size - 1))
    broken = replace(whole, **{name: at(values, index, value)})
    findings = verify(with_ranges(plan, broken))
    if not any("', ranges" in line for line in findings):
        assert (not findings) == slow_is_right(plan["loop"], broken)
        assert findings or any_two_that_meet_are_in_turn(plan["loop"], broken)
    assert all("\n" not in line and "loop 'loop'" in line for line in findings)


def without_waits(ranges):
    none = np.zeros(0, np.int32)
    return replace(ranges, wait_offset=np.zeros_like(ranges.wait_offset), waits=none)


def test_ranges_that_do_not_wait_are_found(made):
    wrong = with_ranges(made, without_waits(made["res_calc"].ranges))
    check_plan(wrong)
    (finding,) = verify(wrong)
    assert finding.startswith("loop 'res_calc', set 'cells': ranges ")
    assert finding.endswith("more)")
    assert "and neither waits for the other" in finding


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("offset", lambda o: at(o, -1, 37), "offset does not go from 0 to 38"),
        ("offset", lambda o: at(o, 1, 30), "offset falls after entry 1"),
        (
            "offset",
            lambda o: o[[0, -1]],
            "order is int32 of shape (5,), must be int32 of shape (1,",
        ),
        ("order", lambda o: at(o, 0, o[1]), "order does not name each range once"),
        ("order", lambda o: at(o, 0, 5), "order: entry 0 is 5, outside 0..4"),
        ("order", lambda o: at(o, 0, -1), "order: entry 0 is -1, outside 0..4"),
        ("order", lambda o: o.astype("i8"), "order is int64 of shape (5,), must be int32"),
        (
            "wait_offset",
            lambda o: o[1:] - o[1],
            "wait_offset is int64 of shape (5,), must be",
        ),
        ("wait_offset", lambda o: at(o, 0, 1), "wait_offset does not go from 0 to"),
        ("waits", lambda w: w[1:], "wait_offset does not go from 0 to"),
        ("waits", lambda w: at(w, 0, 4), "waits for turn 4"),
        ("waits", lambda w: at(w, 0, -1), "waits for turn -1"),
        ("waits", lambda w: w.astype("i8"), "waits is int64"),
    ],
)
def test_ranges_that_do_not_fit_are_refused(made, path, name, change, said):
    ranges = made["res_calc"].ranges
    wrong = with_ranges(made, replace(ranges, **{name: change(getattr(ranges, name))}))
    with pytest.raises(PlanError) as error:
        wrong.save(path)
    one_line(error, "loop 'res_calc', ranges", said)
    assert verify(wrong) == [str(error.value)]


def test_ranges_come_back_and_make_a_file_of_version_4(made, airfoil, path):
    made.save(path)
    assert path.read_bytes().startswith(b"meshprep-plan 4\n")
    found = Plan.load(path)
    for name in NAMES:
        kept, before = (getattr(p["res_calc"].ranges, name) for p in (found, made))
        assert kept.dtype == before.dtype
        assert np.array_equal(kept, before)
    assert found.verify() == []
    assert list(found["res_calc"].variants) == ["s8", "s16"]
    whole = path.read_bytes()
    found.save(path, overwrite=True)
    assert path.read_bytes() == whole
    airfoil.save(path, overwrite=True)
    assert Plan.load(path)["res_calc"].ranges is None


def test_no_variant_is_called_ranges(made, path):
    loop_plan = made["res_calc"]
    named = {"ranges": replace(loop_plan.variant(), name="ranges")}
    loops = {"res_calc": replace(loop_plan, variants=named, default="ranges")}
    with pytest.raises(PlanError, match="'ranges' is no name for a variant"):
        replace(made, loops=loops).save(path)


def test_a_set_without_elements_has_no_ranges(slow, path):
    table = np.zeros((0, 3), dtype=np.int32)
    sizes = {"edges": 0, "cells": 0, "nodes": 0}
    plan = slow.plan(
        sizes, dict.fromkeys(slow.quads(2, 2).tables, table[:, :2]), [slow.res_calc]
    )
    plan = with_ranges(plan, builder.ranges_for(plan["res_calc"]))
    assert plan["res_calc"].ranges.offset.tolist() == [0]
    plan.save(path)
    assert Plan.load(path).verify() == []


def test_the_form_of_a_trial_is_kept_and_left_out_where_nobody_chose(airfoil, path):
    trials = [
        Trial("hierarchical", "s8", (), 1.0, 1.0, 0.0, 5, form=f) for f in ("rows", "")
    ]
    entry = Tuned(Machine("cpu", "x", 2), "res_calc", True, tuple(trials))
    loops = {"res_calc": replace(airfoil["res_calc"], tuned=(entry,))}
    replace(airfoil, loops=loops).save(path)
    (found,) = Plan.load(path)["res_calc"].tuned
    assert [t.form for t in found.trials] == ["rows", ""]
    assert path.read_bytes().count(b'"form"') == 1
