"""Lines, rectangles and bricks of a grid of hexahedra as blocks [S19 3.1.6, Figures 20 and 21].

    python examples/shapes.py --cells 64 [--picture shapes.png]

Writes shapes/grid.msh and the block of each cell and of each face as shapes/*.npy, for
`meshprep plan shapes/grid.msh --loop cells:nodes --block-size 128 --partition file:...`, and shows
what plans of these blocks, of METIS's and of meshprep's own come to. The picture has the blocks of
cells on the grid's surface, then reuse factor and thread colours, all of them from the plans.
"""

import argparse
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import meshprep
from meshprep.io.generate import generate
from meshprep.mesh import Mesh
from meshprep.mesh.geometry import centroids
from meshprep.reporting.draw import png
from meshprep.topology import derive
from meshprep_runtime import Plan
from meshprep_runtime.plan.metrics import VariantMetrics

BLOCK_SIZE = 128
# Sites along x, y and z: 128 cells in a block of a grid of 64 a side, and 126 faces.
SHAPES = {
    "cells->nodes": {"line": (64, 1, 1), "rectangle": (16, 8, 1), "brick": (8, 4, 4)},
    "faces->cells": {"line": (42, 1, 1), "rectangle": (7, 6, 1), "brick": (7, 3, 2)},
}
# Pixels along a side of the picture of a grid.
GRID_PIXELS = 360


@dataclass(frozen=True)
class Cut:
    """A plan, and the name of the blocks that it has."""

    loop: str
    name: str
    plan: Plan

    @property
    def figures(self) -> VariantMetrics:
        """What the plan says of its blocks."""
        return self.plan.metrics.loops[self.loop].variants[f"s{BLOCK_SIZE}"].after


def blocks_of_shape(centre: np.ndarray, shape: tuple[int, ...], layers: int) -> np.ndarray:
    """The block of each element: the box of so many sites in which its centre lies.

    A site is a cell, or a cell's three upper faces, whose centres lie in two ``layers``.
    """
    box = []
    for along, sites in zip(centre.T, shape, strict=True):
        layer = np.unique(along.round(9), return_inverse=True)[1]
        box.append(layer // layers // sites)
    return np.ravel_multi_index(box, [int(number.max()) + 1 for number in box])


def cuts(mesh: Mesh, folder: Path) -> Iterator[Cut]:
    """A plan for each shape, whose blocks are written to a file, and for each partitioner."""
    full = derive(mesh, list(SHAPES))
    for loop, shapes in SHAPES.items():
        over = loop.partition("->")[0]
        ways = {"contiguous": "contiguous"}
        for name, shape in shapes.items():
            file = folder / f"{name}-{over}.npy"
            centre = centroids(full, over)
            np.save(file, blocks_of_shape(centre, shape, layers=1 + (over == "faces")))
            ways[name] = f"file:{file}"
        ways |= {"metis": "metis", "blocks": "blocks"}
        for name, partition in ways.items():
            made = meshprep.reorder(
                mesh, [loop], partition=partition, block_size=BLOCK_SIZE
            )
            yield Cut(loop=loop, name=name, plan=made.plan)


def draw(mesh: Mesh, made: Sequence[Cut], path: Path) -> None:
    """The blocks of cells on the surface of the grid; reuse and thread colours below."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    of_loop = {loop: [cut for cut in made if cut.loop == loop] for loop in SHAPES}
    of_cells, of_faces = of_loop.values()
    figure = plt.figure(figsize=(12, 6.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.25))

    # The surface of each plan of the first loop, a colour a block.
    for axes, cut in zip(above.subplots(1, len(of_cells)), of_cells, strict=True):
        axes.imshow(picture_of(mesh, cut))
        axes.set_title(cut.name)
        axes.set_axis_off()

    # Bars of both figures, loop beside loop.
    for axes, shown in zip(below.subplots(1, 2), (of_cells, of_faces), strict=True):
        at = np.arange(len(shown))
        reuse = [cut.figures.reuse or 0.0 for cut in shown]
        colours = [cut.figures.thread_colours.mean or 0.0 for cut in shown]
        for shift, values, colour, label in (
            (-0.2, reuse, "#1565c0", "reuse factor"),
            (0.2, colours, "#ef6c00", "thread colours a block, mean"),
        ):
            bars = axes.bar(at + shift, values, width=0.38, color=colour, label=label)
            axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=1)
        axes.set_xticks(at, [_words(cut) for cut in shown], fontsize=9)
        axes.set_title(f"{shown[0].loop}, blocks of {BLOCK_SIZE} at most")
        axes.margins(y=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    below.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.canvas.draw()
    # A fraction of the size of what matplotlib writes.
    path.write_bytes(png(np.asarray(figure.canvas.buffer_rgba())))
    plt.close(figure)


def picture_of(mesh: Mesh, cut: Cut) -> np.ndarray:
    """The surface of the mesh by the blocks of a plan, as pixels."""
    from matplotlib.image import imread

    from meshprep.reporting.draw import views_of
    from meshprep.reporting.draw.colours import by_group
    from meshprep.reporting.draw.picture import png_of_view
    from meshprep.reporting.meshes import NamedMesh, block_values, scene_of

    block = block_values(cut.plan, cut.loop).block
    surface = views_of(scene_of(cut.plan, cut.loop, NamedMesh("grid", mesh)))[0]
    colours = by_group(surface, block, int(block.max()) + 1)
    return imread(io.BytesIO(png_of_view(surface, colours, GRID_PIXELS)))


def _words(cut: Cut) -> str:
    """The name of the blocks, with the sites of a shape."""
    shape = SHAPES[cut.loop].get(cut.name)
    if shape is None:
        return cut.name
    return f"{cut.name}\n{'x'.join(map(str, shape))}"


def main() -> None:
    """Write the files, print the table, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=64, help="along a side")
    parser.add_argument("--folder", type=Path, default=Path("shapes"))
    parser.add_argument("--picture", type=Path, help="PNG to draw")
    given = parser.parse_args()
    n = given.cells
    given.folder.mkdir(exist_ok=True, parents=True)
    mesh = generate("box", nx=n, ny=n, nz=n, type="hexahedron")
    meshprep.write(mesh, given.folder / "grid.msh", overwrite=True)

    print(
        f"{'loop':14}{'blocks':12}{'reuse':>6}{'thread colours':>16}{'block colours':>15}"
    )
    made = []
    for cut in cuts(mesh, given.folder):
        found = cut.figures
        print(
            f"{cut.loop:14}{cut.name:12}{found.reuse:6.2f}"
            f"{found.thread_colours.mean:16.2f}{found.block_colours:15}"
        )
        made.append(cut)
    if given.picture:
        draw(mesh, made, given.picture)


if __name__ == "__main__":
    main()
