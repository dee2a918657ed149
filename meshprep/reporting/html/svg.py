"""Axes and frames of charts, as SVG whose colours a style sheet gives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..render import render

# Room around the drawing for ticks and labels, in units of the view box.
LEFT, RIGHT, TOP, BOTTOM = 44.0, 18.0, 22.0, 42.0
# Most letters of a tick beside a picture.
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
            length = math.log(self.high / self.low)
            return (math.log(value) - math.log(self.low)) / length
        return (value - self.low) / (self.high - self.low)


def linear_axis(
    label: str,
    values: Sequence[float],
    *,
    zero: bool = False,
    least: float = 0.0,
) -> Axis:
    """An axis that holds all values, with round ticks; from 0 with ``zero``.

    ``least`` is the least length of the axis: small differences should not look large.
    """
    low = min(values, default=0.0)
    high = max(values, default=1.0)
    # Lengthen it about its middle, and avoid an axis of no length.
    short = max(0.0, least - (high - low)) / 2
    low = low - short
    high = high + short
    if zero:
        low = min(0.0, low)
    if high <= low:
        low = low - 0.5
        high = high + 0.5
    # End it at ticks.
    step = round_step((high - low) / 5)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    places = [i * step for i in range(first, last + 1)]
    return Axis(
        label=label,
        low=first * step,
        high=last * step,
        ticks=[(p, tick_text(p, step)) for p in places],
    )


def plain_axis(
    label: str,
    low: float,
    high: float,
    *,
    ticks: int = 4,
    unit: float = 1.0,
) -> Axis:
    """An axis from exactly ``low`` to ``high``, with round ticks inside, in a unit."""
    step = round_step((high - low) / unit / ticks)
    first = math.ceil(low / unit / step - 1e-9)
    last = math.floor(high / unit / step + 1e-9)
    places = [i * step for i in range(first, last + 1)]
    return Axis(
        label=label,
        low=low,
        high=high,
        ticks=[(p * unit, tick_text(p, step)) for p in places],
    )


def place_axis(name: str, low: float, high: float, *, ticks: int = 4) -> Axis:
    """An axis of coordinates; long numbers count from the first tick, in the label."""
    axis = plain_axis(label=f"{name} (units of the mesh)", low=low, high=high, ticks=ticks)
    texts = [text for _, text in axis.ticks]
    longest = max((len(text.lstrip("-")) for text in texts), default=0)
    if len(set(texts)) == len(texts) and longest <= LONGEST_TICK:
        return axis
    # Ticks from the first one on, which the label takes off.
    start = axis.ticks[0][0]
    from_start = [(place, f"{place - start:.4g}") for place, _ in axis.ticks]
    label = axis.label
    if start:
        sign = "-" if start > 0 else "+"
        label = f"{name} {sign} {abs(start):,.15g} (units of the mesh)"
    return Axis(label=label, low=low, high=high, ticks=from_start)


def power_axis(label: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis with ticks at powers of two."""
    low = math.log2(min(values))
    high = math.log2(max(values))
    first = math.floor(low - 0.05)
    last = math.ceil(high + 0.05)
    # At most about eight ticks.
    skip = -(-(last - first) // 8)
    places = [2.0**i for i in range(first, last + 1, skip)]
    return Axis(
        label=label,
        low=2.0**first,
        high=2.0**last,
        ticks=[(p, f"{p:,.4g}") for p in places],
        log=True,
    )


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not less."""
    if not 0 < least < math.inf:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(least))
    steps = (unit, 2.0 * unit, 5.0 * unit, 10.0 * unit)
    # A step that is less by rounding alone will do.
    return next(step for step in steps if step >= least * (1 - 1e-9))


def tick_text(value: float, step: float) -> str:
    """A tick with as many decimals as its step needs."""
    if step >= 1e6 or 0 < step < 1e-4:
        return f"{value:.3g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:,.{decimals}f}"
    if text.strip("-0.") == "" and text.startswith("-"):
        return text[1:]
    return text


@dataclass(frozen=True)
class Shape:
    """A path of a chart: its classes in the style sheet, its outline, and its tooltip."""

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

    left = LEFT
    top = TOP

    @property
    def right(self) -> float:
        """Where the drawing ends: half of the last tick has room beside it."""
        last = ""
        if self.x.ticks:
            last = self.x.ticks[-1][1]
        return self.width - max(RIGHT, HALF_LETTER * len(last.lstrip("-")))

    @property
    def bottom(self) -> float:
        """Where the drawing ends."""
        return self.height - BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a pair of values."""
        # A view box counts from its top.
        across = (self.right - self.left) * self.x.share(x)
        down = (self.bottom - self.top) * (1 - self.y.share(y))
        return self.left + across, self.top + down

    def svg(self, alt: str, shapes: Sequence[Shape] = (), image: str = "") -> Markup:
        """The chart: shapes on a grid, or the picture at an address; ticks and labels."""
        return render(
            "chart.svg",
            frame=self,
            alt=alt,
            shapes=shapes,
            image=image,
        )
