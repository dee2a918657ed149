"""Pictures of dots in colours for any paper: the entries of maps and of matrices."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ..draw import encode_png
from . import charts
from .svg import Axis, plain_axis

# Places of a spy plot's levels in opacity, on whatever paper.
SPY_COLOUR = (30, 136, 170)
SPY_OPACITY = (0, 110, 160, 210, 255)


def dots_body(
    dots: NDArray[np.uint8], across: tuple[str, int], down: tuple[str, int], alt: str
) -> Markup:
    """The picture of :func:`~..draw.spy.spy`; ``across`` and ``down`` are names and numbers."""
    height, width = dots.shape
    palette = np.array([[*SPY_COLOUR, opacity] for opacity in SPY_OPACITY], np.uint8)
    y = _axis(*down)
    # the first one stands at the top, as in a matrix
    ticks = [(down[1] - place, text) for place, text in y.ticks]
    y = Axis(y.label, y.low, y.high, ticks)
    return charts.picture(encode_png(dots, palette), (width, height), _axis(*across), y, alt)


def counted_in(dots: NDArray[np.uint8]) -> str:
    """What a pixel stands for, for a caption."""
    height, width = dots.shape
    return f"Counted in {width} x {height} pixels; darker where a pixel stands for more entries."


def _axis(name: str, n: int) -> Axis:
    unit = 1e6 if n >= 2_000_000 else 1e3 if n >= 5_000 else 1.0
    text = {1e6: " (millions)", 1e3: " (thousands)"}.get(unit, " (number)")
    return plain_axis(f"{name}{text}", 0.0, float(n), unit=unit)
