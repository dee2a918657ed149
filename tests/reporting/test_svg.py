"""Axes of coordinates: short ticks that stand where they say."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep.reporting.html.charts import histogram
from meshprep.reporting.html.svg import Axis, Frame, place_axis
from meshprep_runtime.plan.metrics import Histogram


def _told(axis):
    """The places that ticks and label together name."""
    origin = re.fullmatch(r"x(.*) \(units of the mesh\)", axis.label)[1]
    # "x - 5" counts from 5, "x + 5" from -5
    start = -float(origin.replace(",", "").replace(" ", "") or 0)
    return [start + float(text.replace(",", "")) for _, text in axis.ticks]


@pytest.mark.parametrize(
    ("low", "high", "label", "ticks"),
    [
        (0.0, 1.0, "x (units of the mesh)", ["0.0", "0.5", "1.0"]),
        (0.0, 9000.0, "x (units of the mesh)", ["0", "5000"]),
        (1e9, 1e9 + 1, "x - 1,000,000,000 (units of the mesh)", ["0", "0.5", "1"]),
        (-1e9, -1e9 + 1, "x + 1,000,000,000 (units of the mesh)", ["0", "0.5", "1"]),
        (0.0, 1e300, "x (units of the mesh)", ["0", "5e+299", "1e+300"]),
        (0.0, 1e-7, "x (units of the mesh)", ["0", "5e-08", "1e-07"]),
        (
            512_000.0,
            518_000.0,
            "x - 512,000 (units of the mesh)",
            ["0", "2000", "4000", "6000"],
        ),
    ],
)
def test_long_numbers_move_into_the_label(low, high, label, ticks):
    axis = place_axis("x", low, high)
    assert axis.label == label
    assert [text for _, text in axis.ticks] == ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e7))
def test_ticks_stand_where_they_say(low, span):
    axis = place_axis("x", low, low + span)
    places = [place for place, _ in axis.ticks]
    assert 1 <= len(places) <= 12
    assert all(low - 1e-6 * span <= place <= low + span * (1 + 1e-6) for place in places)
    assert _told(axis) == pytest.approx(places, abs=0.01 * span)


def test_blocks_are_counted_in_whole_numbers():
    one = Histogram(width=0.01, bins=(327,), blocks=(1,))
    svg = histogram(one, one, "reuse", "a histogram")
    upright = re.findall(r'class="tick end"[^>]*>([^<]*)<', svg)
    assert upright == ["0", "1"]


def test_a_long_last_tick_has_room():
    y = Axis("", 0.0, 1.0, [])
    room = {}
    for end in ("100", "2,500"):
        frame = Frame(Axis("", 0.0, 1.0, [(0.0, "0"), (1.0, end)]), y)
        room[end] = frame.width - frame.right
    # digits of 14 pixels are 8.9 wide, the comma 4.5
    assert room["2,500"] > (4 * 8.9 + 4.5) / 2 > 18
    assert room["100"] == 18
