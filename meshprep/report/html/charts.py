"""Charts as SVG text: steps before and after, series of points, curves, pictures with axes."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

from meshprep_runtime.plan.metrics import Histogram

from .svg import BOTTOM, LEFT, RIGHT, TOP, Axis, Frame, linear_axis, number, power_axis, round_step

MOST_BINS = 36
MARKS = ("circle", "square", "diamond", "triangle", "down", "cross")


@dataclass(frozen=True)
class Series:
    """Points that belong together, such as those of one partitioner.

    ``style`` is its number, for colour and mark; None for the input order.
    """

    name: str
    points: Sequence[tuple[float, float]]
    style: int | None


def histogram(before: Histogram | None, after: Histogram, label: str, alt: str) -> str:
    """Blocks by some figure, before behind after, in common bins."""
    sides = {"before": before, "after": after}
    known = {k: v for k, v in sides.items() if v is not None and v.bins}
    if not known:
        return ""
    width = _common_width(list(known.values()))
    counts = {k: _rebinned(v, width) for k, v in known.items()}
    whole = after.width == 1 and width == 1.0
    # a whole number stands in the middle of its bar
    shift = 0.5 * width if whole else 0.0
    places = [width * b for c in counts.values() for b in c]
    x = linear_axis(label, [min(places) - shift, max(places) + width - shift])
    if whole:
        x = _whole_axis(label, min(places), max(places))
    y = _count_axis("blocks", [v for c in counts.values() for v in c.values()])
    frame = Frame(x, y)
    body = "".join(_bars(frame, c, width, shift, kind) for kind, c in counts.items())
    return frame.svg(body, alt)


def class_sizes(before: Sequence[int], after: Sequence[int], alt: str) -> str:
    """Blocks of each block colour, the largest first."""
    known = {"before": before, "after": after}
    counts = {
        kind: dict(enumerate(sorted(sizes, reverse=True))) for kind, sizes in known.items() if sizes
    }
    most = float(max(len(c) for c in counts.values()))
    ticks = linear_axis("", [0.0, most]).ticks
    whole = [(v, f"{v:,.0f}") for v, _ in ticks if v <= most and float(v).is_integer()]
    x = Axis("block colours, the largest first", 0.0, most, whole)
    y = _count_axis("blocks", [v for c in counts.values() for v in c.values()])
    frame = Frame(x, y)
    body = "".join(_bars(frame, c, 1.0, 0.0, kind) for kind, c in counts.items())
    return frame.svg(body, alt)


def scatter(series: Sequence[Series], x: Axis, y: Axis, alt: str, *, joined: bool) -> str:
    """Points of several series, with a line through each where asked."""
    frame = Frame(x, y)
    out = []
    for one in series:
        style = "before" if one.style is None else f"s{one.style % len(MARKS)}"
        places = [frame.at(*point) for point in one.points]
        if joined and len(places) > 1:
            path = "L".join(f"{number(px)} {number(py)}" for px, py in places)
            out.append(f'<path class="line {style}" d="M{path}"/>')
        for (px, py), values in zip(places, one.points, strict=True):
            mark = MARKS[(one.style or 0) % len(MARKS)]
            title = f"<title>{escape(one.name)}: {values[0]:.4g}, {values[1]:.4g}</title>"
            out.append(f'<path class="mark {style}" d="{_mark(mark, px, py)}">{title}</path>')
    return frame.svg("".join(out), alt)


def block_size_axis(values: Sequence[float]) -> Axis:
    """Block sizes, by powers of two."""
    return power_axis("block size (elements)", values)


def curves(lines: Sequence[Series], marks: Sequence[Series], x: Axis, y: Axis, alt: str) -> str:
    """Lines, and points on them."""
    frame = Frame(x, y)
    out = []
    for one in lines:
        path = "L".join("{} {}".format(*map(number, frame.at(*p))) for p in one.points)
        out.append(f'<path class="line s{(one.style or 0) % len(MARKS)}" d="M{path}"/>')
    for one in marks:
        style = (one.style or 0) % len(MARKS)
        for point in one.points:
            place = _mark(MARKS[style], *frame.at(*point))
            out.append(f'<path class="mark s{style}" d="{place}"/>')
    return frame.svg("".join(out), alt)


def picture(png: bytes, pixels: tuple[int, int], x: Axis, y: Axis, alt: str) -> str:
    """A picture between axes; ``pixels`` are its width and height."""
    width = 420.0
    across = width - LEFT - RIGHT
    up = across * pixels[1] / pixels[0]
    frame = Frame(x, y, width, up + TOP + BOTTOM)
    body = (
        f'<image x="{number(LEFT)}" y="{number(TOP)}" width="{number(across)}" '
        f'height="{number(up)}" preserveAspectRatio="none" href="{data_address(png)}"/>'
    )
    return frame.svg(body, alt, grid=False)


def bare_picture(png: bytes, pixels: tuple[int, int], alt: str) -> str:
    """A picture that has no axes."""
    width, height = pixels
    return f'<img src="{data_address(png)}" width="{width}" height="{height}" alt="{escape(alt)}">'


def data_address(png: bytes) -> str:
    """A PNG file as an address that needs no network."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def key(style: int | None) -> str:
    """The mark of a series, for a legend."""
    kind = "before" if style is None else f"s{style % len(MARKS)}"
    mark = _mark(MARKS[(style or 0) % len(MARKS)], 7, 7)
    return f'<svg class="key" viewBox="0 0 14 14"><path class="mark {kind}" d="{mark}"/></svg>'


def _count_axis(label: str, values: Sequence[int]) -> Axis:
    """An axis from 0 with ticks at whole numbers alone."""
    axis = linear_axis(label, [float(v) for v in values], zero=True)
    whole = [(v, f"{v:,.0f}") for v, _ in axis.ticks if abs(v - round(v)) < 1e-9]
    return replace(axis, ticks=whole)


def _whole_axis(label: str, low: float, high: float) -> Axis:
    """An axis of whole numbers with half a bar beside the outer ones, and never only one bar."""
    room = max(0.75, (4 - (high - low)) / 2)
    ticks = linear_axis(label, [low - room, high + room]).ticks
    inside = [v for v, _ in ticks if float(v).is_integer() and low - room <= v <= high + room]
    return Axis(label, low - room, high + room, [(v, f"{v:,.0f}") for v in inside if v >= 0])


def _common_width(sides: Sequence[Histogram]) -> float:
    """A round multiple of the width that bins are stored with, that keeps the bars few."""
    low = min(min(s.bins) for s in sides)
    high = max(max(s.bins) for s in sides) + 1
    return sides[0].width * max(1.0, round_step((high - low) / MOST_BINS))


def _rebinned(side: Histogram, width: float) -> dict[int, int]:
    per_bin = round(width / side.width)
    out: dict[int, int] = {}
    for place, blocks in zip(side.bins, side.blocks, strict=True):
        out[place // per_bin] = out.get(place // per_bin, 0) + blocks
    return out


def _bars(frame: Frame, counts: Mapping[int, int], width: float, shift: float, kind: str) -> str:
    """One path of bars; those after are a little narrower, so that those behind show."""
    inset = 0.0 if kind == "before" else 0.06 * width
    out = []
    for place, blocks in sorted(counts.items()):
        left = frame.at(place * width - shift + inset, 0)[0]
        right = frame.at((place + 1) * width - shift - inset, 0)[0]
        base, top = frame.at(frame.x.low, 0)[1], frame.at(frame.x.low, blocks)[1]
        out.append(f"M{left:.2f} {base:.1f}V{top:.1f}H{right:.2f}V{base:.1f}Z")
    return f'<path class="bars {kind}" d="{"".join(out)}"/>'


def _mark(kind: str, x: float, y: float) -> str:
    """The outline of a mark about a place."""
    shapes = {
        "circle": f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        "square": f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7Z",
        "diamond": f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5Z",
        "triangle": f"M{x:.1f} {y - 4.8:.1f}l4.8 8.4h-9.6Z",
        "down": f"M{x:.1f} {y + 4.8:.1f}l4.8 -8.4h-9.6Z",
        "cross": f"M{x - 4:.1f} {y - 1.4:.1f}h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6Z",
    }
    return shapes[kind]
