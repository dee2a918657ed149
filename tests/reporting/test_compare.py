"""Comparisons of plans: the best of each row, verdicts, CSV and HTML."""

import json
import re
from dataclasses import replace

import pytest

from meshprep import LoopRequest, Options, prepare
from meshprep.io.generate import generate
from meshprep.reporting import Comparison, Table, compare, verdict
from meshprep.reporting.columns import FIGURES, best_of
from meshprep.reporting.compare import UNLIKE, order_comparison
from meshprep.reporting.table import figure
from meshprep_runtime import Plan
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.metrics import (
    BeforeAfter,
    LoopMetrics,
    ThreadColourMetrics,
    VariantMetrics,
)


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """Two plans of one shuffled mesh: compact blocks, and the input order cut as it is."""
    folder = tmp_path_factory.mktemp("plans")
    mesh = generate("delaunay2d", cells=600)
    paths = {}
    for name, method, partition in (
        ("good", "gps", "blocks"),
        ("as-is", "none", "contiguous"),
    ):
        options = Options(method=method, partition=partition, block_size=64)
        paths[name] = folder / f"{name}<.plan.h5"
        prepare(mesh, ["edges->cells"], options, keep_order=name == "as-is").plan.save(
            paths[name]
        )
    return paths


def _cell(table, label, column):
    (row,) = [r for r in table.rows if r[0] == label]
    return row[column]


def test_a_short_report_of_many_loops_fits_a_dozen_lines():
    loops = {
        f"loop{i}": {"over": "edges", "args": [{"dat": "x", "map": "edges->cells"}]}
        for i in range(20)
    }
    plan = prepare(generate("delaunay2d", cells=200), loops, Options(block_size=64)).plan
    sentence, table, more = Comparison(("",), (plan,)).timed().brief()
    assert sentence.startswith(("Pays ", "Makes no difference", "Too noisy", "Does harm"))
    assert "its 20 loops move their data in " in sentence
    assert [row[0] for row in table.rows] == [f"loop{i}" for i in range(7)]
    assert re.fullmatch(
        r"timed on .+, \d+ cores?(, load [\d.]+)?; --full shows 13 more loops, every figure",
        more,
    )
    assert 1 + 1 + len(table.rows) + 1 + 1 <= 12


def test_the_bound_of_the_reuse_loads_every_point_once(plans):
    plan = Plan.load(plans["good"])
    (column,) = Comparison(("",), (plan,)).columns()
    edges, cells = plan.sizes["edges"], plan.sizes["cells"]
    assert column.bound == pytest.approx(2 * edges / cells)
    assert column.after.reuse < column.bound
    (_, table, _) = Comparison(("",), (plan,)).brief()
    assert (
        _cell(table, "edges->cells", table.header.index("at most")) == f"{column.bound:.2f}"
    )


def test_a_short_report_of_several_plans_has_a_line_for_each(plans):
    best, sentence, table, more = compare(list(plans.values())).brief()
    assert (
        best
        == "Best: good<.plan.h5, as reorder chooses itself: no other with blocks of 64 moves "
        "15 % fewer sectors."
    )
    assert sentence.endswith("what a call saves was not measured.")
    assert [row[0] for row in table.rows] == ["good<.plan.h5", "as-is<.plan.h5"]
    assert (0, table.header.index("reuse")) in table.best
    assert more.endswith("(* the best of its column)")


def test_two_plans_side_by_side(plans):
    found = compare([plans["good"], str(plans["as-is"])])
    (table,) = [t for t in found.tables() if t.title.startswith("loop ")]
    assert table.header[1:] == ("good<.plan.h5 blocks s64", "as-is<.plan.h5 contiguous s64")
    good, plain = found.columns()
    before, after = good.before.reuse, good.after.reuse
    assert after > 1.5 * before
    assert _cell(table, "reuse factor", 1) == f"{before:.2f} -> {after:.2f}"
    labels = [row[0] for row in table.rows]
    assert (labels.index("reuse factor"), 1) in table.best
    assert (labels.index("loads"), 1) in table.best
    assert not any(row == labels.index("accesses") for row, _ in table.best)
    assert plain.after.reuse > 0
    assert [line.partition(",")[0] for line in found.lines()[3:-1]] == [plain.plan]


def test_orders_side_by_side(plans):
    found = compare([plans["good"], str(plans["as-is"])])
    (table,) = [t for t in found.tables() if t.title.startswith("order of")]
    order = Plan.load(plans["good"]).metrics.locality
    label = "128-byte lines a loop (gpu)"
    lines = table.header.index(label)
    assert table.rows[0][lines] == f"{order.before.lines:,}"
    assert table.rows[1][:2] == ("good<.plan.h5", "gps")
    assert table.rows[1][lines] == f"{order.final.lines:,}"
    assert len(table.rows) == 2
    options = Options(target="cpu", method="rcm")
    banded = prepare(generate("delaunay2d", cells=600), ["edges->cells"], options).plan
    orders = order_comparison(["a", "b"], [Plan.load(plans["good"]), banded])[0]
    assert [row[:2] for row in orders.rows] == [
        ("input order", ""),
        ("a", "gps"),
        ("b", "rcm"),
    ]
    assert (
        orders.rows[0][orders.header.index("bandwidth (cpu)")]
        == f"{order.before.bandwidth:,}"
    )
    found = replace(banded.metrics.locality, applied=False)
    left = replace(banded, metrics=replace(banded.metrics, locality=found))
    assert order_comparison(["a"], [left])[0].rows[1][1] == "rcm (not applied)"


def test_one_plan_before_and_after(plans):
    found = compare([plans["good"]])
    (table,) = [t for t in found.tables() if t.title.startswith("loop ")]
    assert table.header == ("", "before: input order", "after: blocks")
    assert (0, 2) in table.best
    labels = [row[0] for row in table.rows]
    assert (labels.index("reuse factor"), 2) in table.changed
    assert not {(labels.index("accesses"), j) for j in range(3)} & table.changed
    assert not {cell for cell in table.changed if cell[1] != 2}
    assert (0, 1) not in table.best
    assert found.lines()[-1] == "* the best of its row or column"


def test_records_are_the_metrics(plans):
    found = compare(list(plans.values()))
    records = [r for r in found.figures() if r["figure"] == "loads"]
    loads = [c.after.loads for c in found.columns()]
    assert [r["after"] for r in records] == loads
    assert [r["best"] for r in records] == [x == min(loads) for x in loads]
    assert len(found.figures()) == 2 * len(FIGURES)
    values = json.loads(json.dumps(found.to_dict()))
    assert values["figures"] == found.figures()
    assert [v["verdict"] for v in values["verdicts"]] == [
        c.verdict for c in found.columns()
    ]


def test_notebooks_get_html(plans):
    text = compare(list(plans.values()))._repr_html_()
    assert "good&lt;.plan.h5" in text
    assert "good<" not in text
    assert text.count("<table>") == text.count("</table>") == 1
    assert text.startswith("<p>Best: good&lt;.plan.h5, as reorder chooses itself")


def _both(sides, **figures):
    """The figures of both sides with some changed."""
    return BeforeAfter(replace(sides.before, **figures), replace(sides.after, **figures))


def _with_variants(one, variants):
    """A comparison of one plan with other figures of its loop."""
    (plan,) = one.plans
    metrics = replace(plan.metrics, loops={"edges->cells": LoopMetrics(variants)})
    return replace(one, plans=(replace(plan, metrics=metrics),))


def test_plans_without_predictions_are_shown(plans):
    one = compare([plans["good"]])
    (sides,) = one.plans[0].metrics.sides()
    one = _with_variants(one, {"s64": _both(sides, traffic={})})
    (table,) = [t for t in one.tables() if t.title.startswith("loop ")]
    rows = [row[0] for row in table.rows]
    assert not [row for row in rows if row.startswith("sectors read a call")]
    assert "reuse factor" in rows
    assert "what a call saves was not measured" in one.conclusion("good<.plan.h5")
    assert (
        "transactions"
        not in f"{one.columns()[0].verdict} {one.conclusion('good<.plan.h5')}"
    )


def test_no_plan_is_refused():
    with pytest.raises(MeshprepError, match="name at least one plan"):
        compare([])


def test_a_plan_named_twice_is_refused(plans):
    with pytest.raises(MeshprepError, match=r"good<.plan.h5 is named twice"):
        compare([plans["good"], plans["good"]])


def test_plans_of_different_meshes_have_no_best(plans, tmp_path):
    other = tmp_path / "other.plan.h5"
    prepare(generate("delaunay2d", cells=900), ["edges->cells"]).plan.save(other)
    found = compare([plans["good"], other])
    assert not any(table.best for table in found.tables() if table.title != "order")
    assert not any(record["best"] for record in found.figures())
    assert found.lines()[-1].endswith(
        "the plans are of different meshes or loops, so that none is the best"
    )
    assert UNLIKE[1:] in str(found.brief())


def test_plans_for_different_targets_say_so(tmp_path):
    mesh = generate("delaunay2d", cells=900)
    for target in ("gpu", "cpu"):
        made = prepare(mesh, ["edges->cells"], target=target)
        made.plan.save(tmp_path / f"{target}.plan.h5")
    found = compare([tmp_path / "gpu.plan.h5", tmp_path / "cpu.plan.h5"])
    assert found.best() is None
    told = "The plans are for different targets (cpu, gpu), so that none is the best: "
    assert [line for line in found.brief() if str(line).startswith(told)]
    assert not [line for line in found.brief() if UNLIKE[1:] in str(line)]
    # each verdict says whose it is
    assert [str(line).split(":")[0] for line in found.brief()[:2]] == list(found.names)


def test_nothing_is_predicted_for_the_cpu():
    mesh = generate("delaunay2d", cells=600)
    plan = prepare(mesh, ["edges->cells"], Options(target="cpu", block_size=64)).plan
    (column,) = Comparison(("cpu",), (plan,)).columns()
    assert "transactions" not in column.verdict
    (table,) = [
        t for t in Comparison(("cpu",), (plan,)).tables() if t.title.startswith("loop ")
    ]
    assert not [row for row in table.rows if set(row[1:]) == {"-"}]


def test_a_loop_without_maps_has_no_rows_of_zeros():
    args = [{"dat": "q", "dim": 4, "access": "rw"}]
    update = LoopRequest("update", {"over": "cells", "args": args}, "loop 'update'")
    mesh = generate("delaunay2d", cells=200)
    plan = prepare(mesh, ["edges->cells", update]).plan
    (table,) = [
        t for t in Comparison(("",), (plan,)).tables() if t.title.startswith("loop update")
    ]
    labels = {row[0] for row in table.rows}
    assert {"blocks", "useful MB a call"} <= labels
    assert (
        not {"accesses", "loads", "reuse factor", "128-byte lines a block (AoS)"} & labels
    )


def test_many_variants_of_one_plan_are_lines_of_one_table(plans):
    one = compare([plans["good"]])
    (sides,) = one.plans[0].metrics.sides()
    sizes = (64, 8, 16, 24, 32, 40, 48, 56)
    variants = {f"s{size}": _both(sides, block_size=size) for size in sizes}
    one = _with_variants(one, variants)
    (table,) = [t for t in one.tables() if t.title.startswith("loop ")]
    assert [row[0] for row in table.rows] == [f"blocks {name}" for name in variants]
    assert [c.variant for c in one.columns() if c.chosen] == ["s64"]


def test_small_figures_have_no_exponent():
    assert [figure(x) for x in (6.3e-5, 2e-5, 0.0006, 0.099, 0.1, -3.5e-7)] == [
        "0.000063",
        "0.000020",
        "0.00060",
        "0.099",
        "0.10",
        "-0.00000035",
    ]


RUNS = "did not help: blocks are runs of an order no better than the input's (reuse 1.34 -> 1.34)"
PRICED = (
    "reuse 2.00 -> 3.60; 1.8 times fewer loads; price: thread colours a block 3.00 -> 4.00"
)


def _side(reuse, colours=3.0, partitioner="blocks", blocks=2):
    return VariantMetrics(
        block_size=64,
        partitioner=partitioner,
        accesses=3600,
        loads=round(3600 / reuse) if reuse else 0,
        reuse=reuse,
        blocks=blocks,
        block_colours=1,
        thread_colours=ThreadColourMetrics(mean=colours),
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (_side(1.33), _side(3.6), "reuse 1.33 -> 3.60; 2.7 times fewer loads"),
        (
            _side(2.0, 3.0),
            _side(3.6, 4.0),
            PRICED,
        ),
        (_side(3.0), _side(3.6), "reuse 3.00 -> 3.60; 17 % fewer loads"),
        (
            _side(3.59),
            _side(3.6),
            "did not help: the input order was already as good (reuse 3.59 -> 3.60)",
        ),
        (
            _side(1.34),
            _side(1.34, partitioner="contiguous"),
            RUNS,
        ),
        (
            _side(3.6),
            _side(3.6, blocks=1),
            "did not help: one block holds the whole loop (reuse 3.60 -> 3.60)",
        ),
        (_side(3.6), _side(2.0), "made it worse: reuse 3.60 -> 2.00"),
        (
            None,
            _side(2.0),
            "reuse 2.00; blocks of the input order could not be staged at all",
        ),
        (
            _side(None, blocks=0),
            _side(None, blocks=0),
            "there is nothing to do: the loop has no elements",
        ),
        (
            _side(None),
            _side(None),
            "nothing is reached through a map: no order changes what this loop loads",
        ),
    ],
)
def test_verdicts(before, after, said):
    assert verdict(before, after) == said


def test_the_best_of_a_row():
    assert best_of([1, 3, None, 3], +1) == [1, 3]
    assert best_of([1, 3, None], -1) == [0]
    assert best_of([2, 2, None], +1) == []
    assert best_of([1, 2], 0) == []


def test_marks_keep_columns_in_line():
    table = Table(
        "", ("", "a", "b"), [("x", "1", "2"), ("y", "3", "4")], frozenset({(0, 2)})
    )
    assert table.marked() == [("x", "1  ", "2 *"), ("y", "3  ", "4  ")]
    assert replace(table, best=frozenset()).marked() == table.rows
