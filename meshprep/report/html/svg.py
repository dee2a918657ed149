"""Axes and frames of charts, as SVG whose colours a style sheet gives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..render import render

# Room around the drawing for ticks and labels, in units of the view box.
LEFT, RIGHT, TOP, BOTTOM = 44.0, 18.0, 22.0, 42.0
# Letters of a tick for which there is room beside a picture.
LONGEST_TICK = 4
# Half the width of a letter of a tick, in the largest font of the style sheet.
HALF_LETTER = 4.3


@dataclass(frozen=True)
class Axis:
    """One direction of a chart."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high / self.low))
        return (value - self.low) / (self.high - self.low)


def linear_axis(
    label: str, values: Sequence[float], *, zero: bool = False, least: float = 0.0
) -> Axis:
    """An axis that holds all values, with round ticks; from 0 where asked.

    ``least`` is how long the axis is at least, so that little does not look like much.
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    short = max(0.0, least - (high - low)) / 2
    low, high = low - short, high + short
    low = min(0.0, low) if zero else low
    if high <= low:
        low, high = (0.0, high) if zero and high > 0 else (low - 0.5, high + 0.5)
    step = round_step((high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    places = [i * step for i in range(first, last + 1)]
    return Axis(label, first * step, last * step, [(p, tick_text(p, step)) for p in places])


def plain_axis(label: str, low: float, high: float, *, ticks: int = 4, unit: float = 1.0) -> Axis:
    """An axis from ``low`` to ``high`` as they are, with round ticks inside, divided by a unit."""
    step = round_step((high - low) / unit / ticks)
    first, last = math.ceil(low / unit / step - 1e-9), math.floor(high / unit / step + 1e-9)
    places = [i * step for i in range(first, last + 1)]
    return Axis(label, low, high, [(p * unit, tick_text(p, step)) for p in places])


def place_axis(name: str, low: float, high: float, *, ticks: int = 4) -> Axis:
    """An axis of coordinates; long numbers are told from the first tick on."""
    own = plain_axis(f"{name} (units of the mesh)", low, high, ticks=ticks)
    texts = [text for _, text in own.ticks]
    if len(set(texts)) == len(texts) and all(len(t.lstrip("-")) <= LONGEST_TICK for t in texts):
        return own
    start = own.ticks[0][0]
    moved = [(place, f"{place - start:.4g}") for place, _ in own.ticks]
    label = f"{name} {'-' if start > 0 else '+'} {abs(start):,.15g} (units of the mesh)"
    return Axis(label if start else own.label, low, high, moved)


def power_axis(label: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis with ticks at powers of two."""
    low, high = math.log2(min(values)), math.log2(max(values))
    first, last = math.floor(low - 0.05), math.ceil(high + 0.05)
    skip = -(-(last - first) // 8)
    places = [2.0**i for i in range(first, last + 1, skip)]
    return Axis(label, 2.0**first, 2.0**last, [(p, f"{p:,.4g}") for p in places], log=True)


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not less."""
    if not 0 < least < math.inf:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(least))
    return next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= least * (1 - 1e-9))


def tick_text(value: float, step: float) -> str:
    """A tick with as many decimals as its step needs."""
    if step >= 1e6 or 0 < step < 1e-4:
        return f"{value:.3g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:,.{decimals}f}"
    return text[1:] if text.strip("-0.") == "" and text.startswith("-") else text


@dataclass(frozen=True)
class Shape:
    """A path of a chart: its classes in the style sheet, its outline, and what it says."""

    style: str
    outline: str
    title: str = ""


@dataclass(frozen=True)
class Frame:
    """A rectangle between two axes inside a view box of ``width`` x ``height``."""

    x: Axis
    y: Axis
    width: float = 360.0
    height: float = 230.0

    left, top = LEFT, TOP

    @property
    def right(self) -> float:
        """Where the drawing ends: half of the last tick has room beside it."""
        last = self.x.ticks[-1][1] if self.x.ticks else ""
        return self.width - max(RIGHT, HALF_LETTER * len(last.lstrip("-")))

    @property
    def bottom(self) -> float:
        """Where the drawing ends."""
        return self.height - BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a pair of values."""
        across, up = self.right - self.left, self.bottom - self.top
        return self.left + across * self.x.share(x), self.top + up * (1 - self.y.share(y))

    def svg(self, alt: str, shapes: Sequence[Shape] = (), image: str = "") -> Markup:
        """The chart: shapes on a grid, or the picture at an address; ticks and labels."""
        return render("chart.svg", frame=self, alt=alt, shapes=shapes, image=image)
