"""Axes of coordinates: short ticks that stand where they say."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep.report.html.charts import Series, histogram
from meshprep.report.html.svg import Axis, Frame, place_axis
from meshprep_runtime.plan.metrics import Histogram

LABEL = re.compile(r"x( [-+] [\d,.e+-]+)? \((?:([\d,.e+-]+) )?units of the mesh\)")


def _told(axis):
    """The places that ticks and label together name."""
    origin, unit = LABEL.fullmatch(axis.label).groups()
    # "x - 5" counts from 5, "x + 5" from -5
    start = -float((origin or "0").replace(",", "").replace(" ", ""))
    size = float((unit or "1").replace(",", ""))
    return [start + size * float(text.replace(",", "")) for _, text in axis.ticks]


@pytest.mark.parametrize(
    ("low", "high", "label", "ticks"),
    [
        (0.0, 1.0, "x (units of the mesh)", ["0.0", "0.5", "1.0"]),
        (0.0, 9000.0, "x (1,000 units of the mesh)", ["0", "5"]),
        (1e9, 1e9 + 1, "x - 1,000,000,000 (units of the mesh)", ["0.0", "0.5", "1.0"]),
        (-1e9, -1e9 + 1, "x + 1,000,000,000 (units of the mesh)", ["0.0", "0.5", "1.0"]),
        (0.0, 1e300, "x (1e+300 units of the mesh)", ["0.0", "0.5", "1.0"]),
        (0.0, 1e-7, "x (1e-09 units of the mesh)", ["0", "50", "100"]),
        (512_000.0, 518_000.0, "x (1,000 units of the mesh)", ["512", "514", "516", "518"]),
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


def test_series_can_be_told_apart():
    """By mark or by colour, also where there are more series than marks."""
    series = [Series("", [], style) for style in (None, *range(36))]
    assert len({(one.kind, one.mark(0, 0)) for one in series}) == 37


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
