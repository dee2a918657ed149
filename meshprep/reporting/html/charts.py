"""Charts as SVG: histograms, curves, pictures between axes, spy plots."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from markupsafe import Markup

from meshprep_runtime.plan.metrics import Histogram
from meshprep_runtime.types.maps import UInt8s

from ..draw import png
from ..render import pixels as px
from .svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Frame,
    Shape,
    linear_axis,
    plain_axis,
    round_step,
)

# Bars of a histogram.
MOST_BINS = 36
# Outline of a mark: a circle, from the place at its left.
MARK = "M{:.1f} {:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"
# Colours of series in the style sheet.
COLOURS = 6


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
        if self.style is None:
            return "before"
        return f"s{self.style % COLOURS}"

    def key(self) -> tuple[Markup, str]:
        """Its entry of a legend."""
        mark = Markup(
            '<svg class="key" viewBox="0 0 14 14"><path class="mark {}" d="{}"/></svg>'
        ).format(self.kind, MARK.format(3, 7))
        return mark, self.name


def histogram(
    before: Histogram | None,
    after: Histogram,
    label: str,
    alt: str,
) -> Markup:
    """Blocks by some figure, before behind after, in common bins."""
    sides = {"before": before, "after": after}
    with_bins = {k: v for k, v in sides.items() if v is not None and v.bins}
    # Choose a round multiple of the width with which bins are stored that keeps the bars
    # few.
    bins = list(chain.from_iterable(side.bins for side in with_bins.values()))
    n_stored_bins = max(bins) + 1 - min(bins)
    bins_of_bar = max(1.0, round_step(n_stored_bins / MOST_BINS))
    stored_width = next(iter(with_bins.values())).width
    width = stored_width * bins_of_bar
    counts = {kind: _rebinned(side, width) for kind, side in with_bins.items()}
    bars = list(chain.from_iterable(counts.values()))
    first = width * min(bars)
    last = width * max(bars)
    # A whole number stands in the middle of its bar.
    if after.width == 1 and width == 1:
        shift = 0.5 * width
        x = _whole_axis(label, first, last)
    else:
        shift = 0.0
        x = linear_axis(label, [first, last + width])
    return _steps(counts=counts, x=x, width=width, shift=shift, alt=alt)


def class_sizes(before: Sequence[int], after: Sequence[int], alt: str) -> Markup:
    """Blocks of each block colour, the largest first."""
    # Number the colours by size, since their numbers mean nothing.
    counts = {}
    for kind, sizes in (("before", before), ("after", after)):
        if sizes:
            counts[kind] = dict(enumerate(sorted(sizes, reverse=True)))
    most = float(max(len(c) for c in counts.values()))
    # The axis ends at the last colour, not at a round number.
    ticks = []
    for place, text in linear_axis("", [0.0, most]).ticks:
        if place <= most:
            ticks.append((place, text))
    x = Axis(
        label="block colours, the largest first",
        low=0.0,
        high=most,
        ticks=_whole(ticks),
    )
    return _steps(counts=counts, x=x, width=1.0, shift=0.0, alt=alt)


def curves(series: Sequence[Series], frame: Frame, alt: str) -> Markup:
    """Lines through points, and marks on points."""
    # Marks stand in front of lines.
    lines = []
    marks = []
    for of_name in series:
        corners = []
        for point in of_name.points:
            x, y = frame.at(*point)
            corners.append(f"{px(x)} {px(y)}")
            title = f"{of_name.name}: {point[0]:.4g}, {point[1]:.4g}"
            marks.append(Shape(f"mark {of_name.kind}", MARK.format(x - 4, y), title))
        if len(corners) > 1:
            lines.append(Shape(f"line {of_name.kind}", f"M{'L'.join(corners)}"))
    shapes = lines + marks
    return frame.svg(alt, shapes)


def picture(file: bytes, height: float, x: Axis, y: Axis, alt: str) -> Markup:
    """A PNG file between axes; ``height`` is over its width."""
    width = 420.0
    up = (width - LEFT - RIGHT) * height
    return Frame(x=x, y=y, width=width, height=up + TOP + BOTTOM).svg(
        alt, image=data_address(file)
    )


def bare_picture(file: bytes, pixels: tuple[int, int], alt: str) -> Markup:
    """A PNG file that has no axes; ``pixels`` are its width and height."""
    words = '<img src="{}" width="{}" height="{}" alt="{}">'
    return Markup(words).format(data_address(file), *pixels, alt)


def data_address(file: bytes) -> str:
    """A PNG file as an address that needs no network."""
    return f"data:image/png;base64,{base64.b64encode(file).decode('ascii')}"


def _whole(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The ticks at whole numbers."""
    return [(v, f"{v:,.0f}") for v, _ in ticks if abs(v - round(v)) < 1e-9]


def _whole_axis(label: str, low: float, high: float) -> Axis:
    """An axis of whole numbers, with room beside the outer bars and for at least four."""
    # A few bars would be as wide as the page: leave room for four.
    room = max(0.75, (4 - (high - low)) / 2)
    low = low - room
    high = high + room
    ticks = _whole(linear_axis(label, [low, high]).ticks)
    return Axis(
        label=label,
        low=low,
        high=high,
        ticks=[tick for tick in ticks if max(low, 0) <= tick[0] <= high],
    )


def _rebinned(side: Histogram, width: float) -> dict[int, int]:
    """Counts of a histogram in bins of a larger width."""
    bins_of_bar = round(width / side.width)
    counts: dict[int, int] = {}
    for stored_bin, blocks in zip(side.bins, side.blocks, strict=True):
        bar = stored_bin // bins_of_bar
        counts[bar] = counts.get(bar, 0) + blocks
    return counts


def _steps(
    counts: Mapping[str, Mapping[int, int]],
    x: Axis,
    width: float,
    shift: float,
    alt: str,
) -> Markup:
    """Bars of a width for the counts of each side, over an axis from 0."""
    # Both sides share one scale of heights.
    heights: list[float] = []
    for bars in counts.values():
        heights += map(float, bars.values())
    y = linear_axis("blocks", heights, zero=True)
    frame = Frame(x, replace(y, ticks=_whole(y.ticks)))
    # Draw an outline for each side, so that both are seen where they overlap.
    shapes = []
    for kind, bars in counts.items():
        outline = _bars(
            frame=frame,
            counts=bars,
            width=width,
            shift=shift,
            kind=kind,
        )
        shapes.append(Shape(f"bars {kind}", outline))
    return frame.svg(alt, shapes)


def _bars(
    frame: Frame,
    counts: Mapping[int, int],
    width: float,
    shift: float,
    kind: str,
) -> str:
    """One path of bars; those after are narrower: those before show behind them."""
    inset = 0.0 if kind == "before" else 0.06 * width
    out = []
    for place, blocks in sorted(counts.items()):
        low = place * width - shift + inset
        high = (place + 1) * width - shift - inset
        # A bar rises from the base, runs to the right, and falls back.
        left, base = frame.at(low, 0)
        right, _ = frame.at(high, 0)
        _, top = frame.at(frame.x.low, blocks)
        out.append(f"M{left:.2f} {base:.1f}V{top:.1f}H{right:.2f}V{base:.1f}Z")
    return "".join(out)


# Red, green and blue of a spy plot.
SPY_COLOUR = (30, 136, 170)
# Opacity of its levels, so that the paper may have any colour.
SPY_OPACITY = (0, 110, 160, 210, 255)


def dots_body(
    dots: UInt8s,
    across: tuple[str, int],
    down: tuple[str, int],
    alt: str,
) -> Markup:
    """The picture of :func:`~..draw.count_entries` between axes.

    ``across`` and ``down`` are the names and the numbers of columns and rows.
    """
    height, width = dots.shape
    palette = np.array([[*SPY_COLOUR, opacity] for opacity in SPY_OPACITY], np.uint8)
    y = _axis_of_numbers(*down)
    # The first row stands at the top, as in a matrix.
    ticks = [(down[1] - place, text) for place, text in y.ticks]
    y = Axis(label=y.label, low=y.low, high=y.high, ticks=ticks)
    return picture(
        file=png(palette[dots]),
        height=height / width,
        x=_axis_of_numbers(*across),
        y=y,
        alt=alt,
    )


def counted_in(dots: UInt8s) -> str:
    """A caption: the size of the picture, and the meaning of its levels."""
    height, width = dots.shape
    return f"{width} x {height} pixels, stronger where one stands for more entries"


def _axis_of_numbers(name: str, n: int) -> Axis:
    """An axis of numbers of elements, in thousands or millions where there are many."""
    unit = 1.0
    unit_name = "number"
    if n >= 2_000_000:
        unit = 1e6
        unit_name = "millions"
    elif n >= 5_000:
        unit = 1e3
        unit_name = "thousands"
    return plain_axis(label=f"{name} ({unit_name})", low=0.0, high=float(n), unit=unit)
