"""The picture of the README: how many times as fast solvers of others run in each order.

``draw_gains.py docs/solvers.png`` draws what ``make bench-clients`` wrote.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from meshprep.reporting.draw import png

RESULTS = Path(__file__).parents[1] / "results" / "clients.json"
BAR = 0.27
# Column of the table, colour, and what the legend calls it.
BARS = (
    ("gps", "#00796b", "meshprep reorder --target cpu"),
    ("hilbert", "#80cbc4", "the same with --method hilbert"),
    ("own", "#b0b0b0", "an order of the solver's own"),
)


def whole_runs() -> list[dict[str, Any]]:
    """The row of the whole run of each solver, the least gain first."""
    rows = json.loads(RESULTS.read_text())["rows"]
    whole = [row for row in rows if row["phase"] == "whole run"]
    return sorted(whole, key=lambda row: row["gps"])


def main(path: str) -> None:
    """Draw three bars for each solver, the greatest gain on top."""
    rows = whole_runs()
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.42 * len(rows)), layout="constrained")
    for place, (column, colour, label) in enumerate(BARS):
        shown = [(i, row[column]) for i, row in enumerate(rows) if row[column] is not None]
        heights = [i + (1 - place) * BAR for i, _ in shown]
        gains = [gain for _, gain in shown]
        bars = axes.barh(heights, gains, height=BAR, color=colour, label=label)
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
    axes.set_yticks(range(len(rows)), [row["solver"] for row in rows])
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel(
        "times as fast as in the mesher's order (Gmsh), whole run, the same result"
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.set_dpi(110)
    figure.canvas.draw()
    Path(path).write_bytes(png(np.asarray(figure.canvas.buffer_rgba())))


if __name__ == "__main__":
    main(sys.argv[1])
