"""The figures of a plan: typed in Python, the same JSON in the file, damage named in one line."""

import json
from dataclasses import replace

import pytest
from plan_files import one_line

from meshprep_runtime import Plan, PlanError
from meshprep_runtime.plan.metrics import Metrics, OrderMetrics, VariantMetrics
from meshprep_runtime.plan.records import from_json, to_json

SIDE = {
    "block_size": 8,
    "partitioner": "metis",
    "accesses": 30,
    "loads": 10,
    "reuse": 3.0,
    "blocks": 4,
    "block_colours": 2,
    "thread_colours": {"mean": 2.5},
}
FIGURES = {"bandwidth": 3, "profile": 20, "rms_wavefront": 1.5, "lines": 7}
ORDER = {
    "set": "cells",
    "target": "cpu",
    "asked": "auto",
    "method": "rcm",
    "applied": True,
    "reason": "rcm gains",
    "before": FIGURES,
    "after": FIGURES,
    "candidates": [
        {"method": "rcm", "seconds": 0.5, **FIGURES},
        {"method": "hilbert", "seconds": 0, "note": "needs coordinates"},
    ],
    "final": FIGURES,
}
STORED = {
    "locality": ORDER | {"more": [ORDER | {"set": "cells1"}]},
    "loops": {"res_calc": {"s8": {"before": None, "after": SIDE}}},
    "seconds": {"topology": 1, "proof": 0.25},
}


def changed(place, value):
    """``STORED`` with another value at a place, or without it where the value is ``...``."""
    found = json.loads(json.dumps(STORED))
    *way, last = place.split("/")
    inside = found
    for name in way:
        inside = inside[int(name) if name.isdecimal() else name]
    inside[last] = value
    if value is ...:
        del inside[last]
    return found


def test_figures_are_read_by_attribute():
    found = from_json(Metrics, STORED, "metrics")
    after = found.loops["res_calc"].variants["s8"].after
    assert (after.reuse, after.thread_colours.mean, after.target) == (3.0, 2.5, "gpu")
    assert after.aos.lines.mean is None
    assert found.seconds["proof"] == 0.25
    assert [order.set for order in found.orders] == ["cells", "cells1"]
    assert found.orders[0].candidates[1].note == "needs coordinates"
    assert found.orders[0].final.cost == 60
    assert [sides.after for sides in found.sides()] == [after]


def test_order_figures_are_the_same_text_again():
    found = from_json(OrderMetrics, STORED["locality"], "order")
    assert json.dumps(to_json(found)) == json.dumps(STORED["locality"])


def test_what_is_left_out_has_a_default():
    found = from_json(VariantMetrics, SIDE, "after")
    written = to_json(found)
    assert {
        name: written[name] for name in ("target", "useful_bytes", "traffic", "sets")
    } == {
        "target": "gpu",
        "useful_bytes": None,
        "traffic": {},
        "sets": {},
    }
    assert "partition" not in written
    assert from_json(VariantMetrics, written, "after") == found


def test_unknown_fields_are_kept_where_they_stand(airfoil, tmp_path):
    side = {"energy_joules": [1, {"x": None}]} | SIDE
    stored = {"of a later version": True, "loops": {"res_calc": {"s8": {"before": None}}}}
    stored["loops"]["res_calc"]["s8"]["after"] = side
    metrics = from_json(Metrics, stored, "metrics")
    assert metrics.other == {"of a later version": True}
    for name in ("a", "b"):
        replace(airfoil, metrics=metrics).save(tmp_path / name)
        metrics = Plan.load(tmp_path / name).metrics
    assert metrics.sides()[0].after.other == {"energy_joules": [1, {"x": None}]}
    assert to_json(metrics)["of a later version"] is True


AFTER = "loops/res_calc/s8/after"


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("loops", [1], "metrics/loops is no JSON object"),
        (
            "loops/res_calc",
            {},
            "metrics/loops/res_calc does not match the variants of a loop",
        ),
        ("loops/other", {}, "metrics/loops/other does not match the variants of a loop"),
        ("seconds/proof", "x", "metrics/seconds/proof is no number from 0"),
        ("seconds/proof", float("nan"), "metrics/seconds/proof is no number from 0"),
        ("seconds/proof", True, "metrics/seconds/proof is no number from 0"),
        ("seconds/proof", -1, "metrics/seconds/proof is no number from 0"),
        (f"{AFTER}/loads", 1.5, f"metrics/{AFTER}/loads is no whole number"),
        (f"{AFTER}/loads", 0, f"metrics/{AFTER}/loads is 0"),
        (f"{AFTER}/loads", ..., f"metrics/{AFTER}/loads is missing"),
        (f"{AFTER}/partitioner", 7, f"metrics/{AFTER}/partitioner is no text"),
        (f"{AFTER}/thread_colours", 7, f"metrics/{AFTER}/thread_colours is no JSON object"),
        (
            f"{AFTER}/thread_colours/mean",
            None,
            f"metrics/{AFTER}/thread_colours/mean is None",
        ),
        (
            f"{AFTER}/traffic",
            {"aos": {"read": 1}},
            f"{AFTER}/traffic/aos/written is missing",
        ),
        (f"{AFTER}/block_colour_sizes", {}, f"{AFTER}/block_colour_sizes is no list"),
        (
            f"{AFTER}/block_colour_sizes",
            [1, "2"],
            "block_colour_sizes/1 is no whole number",
        ),
        (
            f"{AFTER}/histograms",
            {"reuse": {"width": 1, "bins": [2, 1], "blocks": [1, 1]}},
            f"{AFTER}/histograms/reuse/bins do not ascend",
        ),
        (
            "loops/res_calc/s8/before",
            SIDE | {"reuse": None},
            "metrics/loops/res_calc/s8/before, after: a reuse factor on one side only",
        ),
        ("locality/applied", "yes", "metrics/locality/applied is neither true nor false"),
        (
            "locality/more/0/after/lines",
            ...,
            "metrics/locality/more/0/after/lines is missing",
        ),
        ("locality/candidates/1/method", ..., "locality/candidates/1/method is missing"),
    ],
)
def test_figures_of_another_shape_are_named(airfoil, tmp_path, place, value, said):
    path = tmp_path / "damaged.plan.h5"
    replace(airfoil, metrics=changed(place, value)).save(path)
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    one_line(error, said)
    assert str(error.value).startswith(
        f"{path}: the plan's figures are not those of a plan ("
    )
