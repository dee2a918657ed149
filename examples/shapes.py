"""Lines, rectangles and bricks of a grid of hexahedra as blocks [S19 3.1.6, Figures 20 and 21].

    python examples/shapes.py --cells 64

Writes shapes/grid.msh and the block of each cell and of each face as shapes/*.npy, for
`meshprep plan shapes/grid.msh --loop cells:nodes --block-size 128 --partition file:...`, and shows
what plans of these blocks and of meshprep's own come to.
"""

import argparse
from pathlib import Path

import numpy as np

import meshprep
from meshprep.io.generate import generate
from meshprep.mesh.geometry import centroids
from meshprep.topology import derive

# Sites along x, y and z: 128 cells in a block of a grid of 64 a side, and 126 faces.
SHAPES = {
    "cells->nodes": {"line": (64, 1, 1), "rectangle": (16, 8, 1), "brick": (8, 4, 4)},
    "faces->cells": {"line": (42, 1, 1), "rectangle": (7, 6, 1), "brick": (7, 3, 2)},
}


def blocks_of_shape(centre: np.ndarray, shape: tuple[int, ...], layers: int) -> np.ndarray:
    """The block of each element: the box of so many sites in which its centre lies.

    A site is a cell, or a cell's three upper faces, whose centres lie in two ``layers``.
    """
    box = []
    for along, sites in zip(centre.T, shape, strict=True):
        layer = np.unique(along.round(9), return_inverse=True)[1]
        box.append(layer // layers // sites)
    return np.ravel_multi_index(box, [int(number.max()) + 1 for number in box])


def main() -> None:
    """Write the files and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=64, help="along a side")
    n = parser.parse_args().cells
    folder = Path("shapes")
    folder.mkdir(exist_ok=True)
    mesh = generate("box", nx=n, ny=n, nz=n, type="hexahedron")
    meshprep.write(mesh, folder / "grid.msh", overwrite=True)
    full = derive(mesh, list(SHAPES))

    print(
        f"{'loop':14}{'blocks':12}{'reuse':>6}{'thread colours':>16}{'block colours':>15}"
    )
    for loop, shapes in SHAPES.items():
        # What meshprep finds, and each shape from a file.
        over = loop.partition("->")[0]
        ways = {"contiguous": "contiguous", "blocks": "blocks"}
        for name, shape in shapes.items():
            file = folder / f"{name}-{over}.npy"
            centre = centroids(full, over)
            np.save(file, blocks_of_shape(centre, shape, layers=1 + (over == "faces")))
            ways[name] = f"file:{file}"
        for name, partition in ways.items():
            made = meshprep.reorder(mesh, [loop], partition=partition, block_size=128)
            found = made.plan.metrics.loops[loop].variants["s128"].after
            threads = found.thread_colours.mean
            print(
                f"{loop:14}{name:12}{found.reuse:6.2f}{threads:16.2f}"
                f"{found.block_colours:15}"
            )


if __name__ == "__main__":
    main()
