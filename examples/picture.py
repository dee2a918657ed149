"""The picture in the README: a mesh before and after, coloured by block, and its map.

python examples/picture.py docs/reordered.png
"""

import sys
from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from scipy.sparse import csr_array

from meshprep import Mesh, Options, Plan, prepare
from meshprep.io.generate import generate
from meshprep.reporting.draw import png
from meshprep.reporting.draw.colours import LIGHT

SIZE = 192
TITLES = ("before: a shuffled numbering", "after: reordered by meshprep")


def main(path: str) -> None:
    """Draw the triangles of a Delaunay mesh by block, and the positions in cells->nodes."""
    mesh = generate("delaunay2d", cells=6000, seed=4)
    done = prepare(mesh, ["cells->nodes"], Options(block_size=SIZE))
    before = np.arange(mesh.size("cells")) // SIZE % len(LIGHT)
    variant = done.plan["cells->nodes"].variant()
    after = _colours(done.plan)[variant.block_of_element()]
    figures = done.plan.metrics.loops["cells->nodes"].variants[variant.name]
    plt.rcParams["font.size"] = 11
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.4), height_ratios=(3, 1.25))
    for column, (m, colour, side) in enumerate(
        ((mesh, before, figures.before), (done.mesh, after, figures.after))
    ):
        axes[0, column].set_title(f"{TITLES[column]}\nreuse factor {side.reuse:.2f}")
        _draw_blocks(axes[0, column], m, colour)
        _draw_map(axes[1, column], m)
    axes[1, 0].set_ylabel("node")
    figure.text(
        0.5,
        0.005,
        f"blocks of {SIZE} triangles, told apart by colour; below, the nodes of each triangle",
        ha="center",
        fontsize=10,
        color="0.35",
    )
    figure.tight_layout(rect=(0, 0.025, 1, 1))
    figure.set_dpi(90)
    figure.canvas.draw()
    # a fraction of the size of what matplotlib writes
    Path(path).write_bytes(png(np.asarray(figure.canvas.buffer_rgba())))


def _colours(plan: Plan) -> np.ndarray:
    """The number of a colour for each block, another than its neighbours'."""
    table = plan.maps["cells->nodes"].table
    block = np.repeat(plan["cells->nodes"].variant().block_of_element(), table.shape[1])
    nodes = csr_array((np.ones(table.size), (block, table.ravel())))
    colour = nx.greedy_color(nx.from_scipy_sparse_array(nodes @ nodes.T))
    return np.array([colour[b] for b in range(len(colour))])


def _draw_blocks(axes: Axes, mesh: Mesh, colour: np.ndarray) -> None:
    triangles = mesh.coordinates[:, :2][mesh.map("cells->nodes").table]
    collection = PolyCollection(
        triangles, facecolors=np.array(LIGHT)[colour], linewidths=0.1
    )
    collection.set_edgecolor("face")
    axes.add_collection(collection)
    axes.autoscale()
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_map(axes: Axes, mesh: Mesh) -> None:
    table = mesh.map("cells->nodes").table
    for column in table.T:
        axes.plot(np.arange(len(table)), column, ",", color="#1f4e9c", alpha=0.6)
    axes.set_xlabel("triangle")
    axes.set_xlim(0, len(table))
    axes.set_ylim(mesh.size("nodes"), 0)


if __name__ == "__main__":
    main(sys.argv[1])
