"""Charts as SVG: steps before and after, series of points and curves, pictures, spy plots."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from meshprep_runtime.plan.metrics import Histogram
from meshprep_runtime.types.maps import UInt8s

from ..draw import encode_png
from ..render import pixels as px
from .svg import BOTTOM, LEFT, RIGHT, TOP, Axis, Frame, Shape, linear_axis, plain_axis, round_step

MOST_BINS = 36
# A mark about a place, and how many colours the style sheet has for them.
MARK, COLOURS = "M{:.1f} {:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", 6


@dataclass(frozen=True)
class Series:
    """Points that belong together, such as those of one partitioner.

    ``style`` is its number, for the colour; None for the input order.
    """

    name: str
    points: Sequence[tuple[float, float]]
    style: int | None

    @property
    def kind(self) -> str:
        """Its class in the style sheet."""
        return "before" if self.style is None else f"s{self.style % COLOURS}"

    def key(self) -> tuple[Markup, str]:
        """Its entry of a legend."""
        mark = Markup(
            '<svg class="key" viewBox="0 0 14 14"><path class="mark {}" d="{}"/></svg>'
        ).format(self.kind, MARK.format(3, 7))
        return mark, self.name


def histogram(before: Histogram | None, after: Histogram, label: str, alt: str) -> Markup:
    """Blocks by some figure, before behind after, in common bins."""
    sides = {"before": before, "after": after}
    known = {k: v for k, v in sides.items() if v is not None and v.bins}
    # a round multiple of the width that bins are stored with, that keeps the bars few
    ends = [end for s in known.values() for end in (min(s.bins), max(s.bins) + 1)]
    least = round_step((max(ends) - min(ends)) / MOST_BINS)
    width = next(iter(known.values())).width * max(1.0, least)
    counts = {k: _rebinned(v, width) for k, v in known.items()}
    whole = after.width == 1 and width == 1
    # a whole number stands in the middle of its bar
    shift = 0.5 * width if whole else 0.0
    places = [width * b for c in counts.values() for b in c]
    if whole:
        x = _whole_axis(label, min(places), max(places))
    else:
        x = linear_axis(label, [min(places), max(places) + width])
    return _steps(counts, x, width, shift, alt)


def class_sizes(before: Sequence[int], after: Sequence[int], alt: str) -> Markup:
    """Blocks of each block colour, the largest first."""
    known = {"before": before, "after": after}
    counts = {
        kind: dict(enumerate(sorted(sizes, reverse=True))) for kind, sizes in known.items() if sizes
    }
    most = float(max(len(c) for c in counts.values()))
    ticks = [tick for tick in linear_axis("", [0.0, most]).ticks if tick[0] <= most]
    x = Axis("block colours, the largest first", 0.0, most, _whole(ticks))
    return _steps(counts, x, 1.0, 0.0, alt)


def curves(series: Sequence[Series], frame: Frame, alt: str) -> Markup:
    """Lines through points, and marks on points."""
    shapes = []
    for one in series:
        if len(one.points) > 1:
            path = "L".join("{} {}".format(*map(px, frame.at(*point))) for point in one.points)
            shapes.append(Shape(f"line {one.kind}", f"M{path}"))
    for one in series:
        for point in one.points:
            title = f"{one.name}: {point[0]:.4g}, {point[1]:.4g}"
            x, y = frame.at(*point)
            shapes.append(Shape(f"mark {one.kind}", MARK.format(x - 4, y), title))
    return frame.svg(alt, shapes)


def picture(png: bytes, pixels: tuple[int, int], x: Axis, y: Axis, alt: str) -> Markup:
    """A picture between axes; ``pixels`` are its width and height."""
    width = 420.0
    up = (width - LEFT - RIGHT) * pixels[1] / pixels[0]
    return Frame(x, y, width, up + TOP + BOTTOM).svg(alt, image=data_address(png))


def bare_picture(png: bytes, pixels: tuple[int, int], alt: str) -> Markup:
    """A picture that has no axes."""
    words = '<img src="{}" width="{}" height="{}" alt="{}">'
    return Markup(words).format(data_address(png), *pixels, alt)


def data_address(png: bytes) -> str:
    """A PNG file as an address that needs no network."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def _whole(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The ticks at whole numbers."""
    return [(v, f"{v:,.0f}") for v, _ in ticks if abs(v - round(v)) < 1e-9]


def _whole_axis(label: str, low: float, high: float) -> Axis:
    """An axis of whole numbers with half a bar beside the outer ones, and never only one bar."""
    room = max(0.75, (4 - (high - low)) / 2)
    low, high = low - room, high + room
    ticks = _whole(linear_axis(label, [low, high]).ticks)
    return Axis(label, low, high, [tick for tick in ticks if max(low, 0) <= tick[0] <= high])


def _rebinned(side: Histogram, width: float) -> dict[int, int]:
    per_bin = round(width / side.width)
    out: dict[int, int] = {}
    for place, blocks in zip(side.bins, side.blocks, strict=True):
        out[place // per_bin] = out.get(place // per_bin, 0) + blocks
    return out


def _steps(
    counts: Mapping[str, Mapping[int, int]], x: Axis, width: float, shift: float, alt: str
) -> Markup:
    """Bars of a width for the counts of each side, over an axis from 0."""
    y = linear_axis("blocks", [float(v) for c in counts.values() for v in c.values()], zero=True)
    frame = Frame(x, replace(y, ticks=_whole(y.ticks)))
    bars = [Shape(f"bars {k}", _bars(frame, c, width, shift, k)) for k, c in counts.items()]
    return frame.svg(alt, bars)


def _bars(frame: Frame, counts: Mapping[int, int], width: float, shift: float, kind: str) -> str:
    """One path of bars; those after are a little narrower, so that those behind show."""
    inset = 0.0 if kind == "before" else 0.06 * width
    out = []
    for place, blocks in sorted(counts.items()):
        left = frame.at(place * width - shift + inset, 0)[0]
        right, base = frame.at((place + 1) * width - shift - inset, 0)
        top = frame.at(frame.x.low, blocks)[1]
        out.append(f"M{left:.2f} {base:.1f}V{top:.1f}H{right:.2f}V{base:.1f}Z")
    return "".join(out)


# Places of a spy plot's levels in opacity, on whatever paper.
SPY_COLOUR = (30, 136, 170)
SPY_OPACITY = (0, 110, 160, 210, 255)


def dots_body(dots: UInt8s, across: tuple[str, int], down: tuple[str, int], alt: str) -> Markup:
    """The picture of :func:`~..draw.raster.spy`; ``across`` and ``down`` are names and numbers."""
    height, width = dots.shape
    palette = np.array([[*SPY_COLOUR, opacity] for opacity in SPY_OPACITY], np.uint8)
    y = _axis(*down)
    # the first one stands at the top, as in a matrix
    ticks = [(down[1] - place, text) for place, text in y.ticks]
    y = Axis(y.label, y.low, y.high, ticks)
    return picture(encode_png(dots, palette), (width, height), _axis(*across), y, alt)


def counted_in(dots: UInt8s) -> str:
    """What a pixel stands for, for a caption."""
    height, width = dots.shape
    return f"{width} x {height} pixels, stronger where one stands for more entries"


def _axis(name: str, n: int) -> Axis:
    unit = 1e6 if n >= 2_000_000 else 1e3 if n >= 5_000 else 1.0
    text = {1e6: " (millions)", 1e3: " (thousands)"}.get(unit, " (number)")
    return plain_axis(f"{name}{text}", 0.0, float(n), unit=unit)
