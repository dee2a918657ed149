"""Views as files of pictures, drawn by matplotlib."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import TriMesh
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from meshprep_runtime.types.maps import Float64s, UInt8s

from .encode import png
from .view import View

# Pixels an inch; that of print where a format has inches.
DPI = 300
# A view with the colours of its triangles, ``(n, 3)``.
Painted = tuple[View, Float64s]


def png_of_view(view: View, rgb: Float64s, width: int) -> bytes:
    """A picture of a view as a PNG file, ``width`` pixels wide, transparent outside."""
    return png(pixels_of(figure_of([(view, rgb)], width, "none")))


def save_views(painted: Sequence[Painted], path: Path, width: int, ending: str) -> None:
    """Write views side by side on white, each ``width`` pixels wide.

    ``ending`` is that of PNG, or of a format of matplotlib, in which triangles are pixels.
    """
    figure = figure_of(painted, width, "white")
    if ending == ".png":
        path.write_bytes(png(pixels_of(figure)))
    else:
        figure.savefig(path, format=ending.removeprefix("."), facecolor="white")


def figure_of(painted: Sequence[Painted], width: int, paper: str) -> Figure:
    """Views side by side, centred on the tallest."""
    tallest = max(view.height for view, _ in painted)
    # A whole number of pixels.
    size = (width * len(painted), max(1, round(width * tallest)))
    figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=paper)
    share = 1 / len(painted)
    for i, (view, rgb) in enumerate(painted):
        height = view.height / tallest
        axes = figure.add_axes((i * share, (1 - height) / 2, share, height))
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.set_ylim(0, view.height)
        _add_triangles(axes, view, rgb)
    return figure


def _add_triangles(axes: Axes, view: View, rgb: Float64s) -> None:
    """Triangles of one colour each.

    A mesh whose corners have colours takes a third of the time that polygons take, and has
    no gaps between them.
    """
    corners = view.pieces.corners
    n = len(corners)
    if not n:
        return
    triangles = np.arange(3 * n).reshape(n, 3)
    x, y = corners.reshape(-1, 2).T
    mesh = TriMesh(Triangulation(x, y, triangles))
    # In files of lines and texts it is an image, which opens at once.
    mesh.set(facecolor=np.repeat(rgb, 3, axis=0), rasterized=True)
    axes.add_collection(mesh, autolim=False)


def pixels_of(figure: Figure) -> UInt8s:
    """The picture as red, green, blue and opacity, (height, width, 4)."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())
