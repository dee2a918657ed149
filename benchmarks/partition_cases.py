"""The loops that the partitioners are held against, in the locality order of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from common import mesh_of
from mesher import mesher_file
from numpy.typing import NDArray

from meshprep.io import read
from meshprep.io.generate import generate
from meshprep.mesh import Mesh
from meshprep.mesh.geometry import centroids
from meshprep.partition import BlockProblem
from meshprep.reorder import LocalityProblem, from_set_order, locality_order
from meshprep.topology import derive


@dataclass(frozen=True, eq=False)
class Case:
    """One loop: its map as the file has it, where things are, and the bars of each effort."""

    name: str
    table: NDArray[np.int32]
    points: NDArray[np.float64]
    elements: NDArray[np.float64]
    block_size: int
    bars: tuple[float | None, float | None]

    def ordered(self, method: str) -> BlockProblem:
        """The loop with points in a locality order, and elements in that of their points."""
        known = LocalityProblem(self.table, len(self.points), self.points)
        number = locality_order(known, method).ordering.old_to_new
        table = number[self.table]
        rows = from_set_order(table)
        table = np.ascontiguousarray(table[rows])
        where = self.elements[rows]
        return BlockProblem(table, len(self.points), self.block_size, coordinates=where)

    def as_given(self) -> BlockProblem:
        """The loop in the order of the file."""
        return BlockProblem(self.table, len(self.points), self.block_size)


def _airfoil(scale: float) -> Mesh:
    side = scale**0.5
    return generate("airfoil", i=max(3, round(800 * side)), j=max(3, round(1200 * side)))


def _hexes(side: int, scale: float) -> Mesh:
    m = max(4, round(side * scale ** (1 / 3)))
    return generate("box", nx=m, ny=m, nz=m)


def _of_mesher(shape: str, scale: float) -> Mesh:
    return read(mesher_file(shape, round(1_000_000 * scale)))


def _delaunay(d: int, scale: float) -> Mesh:
    return mesh_of(f"delaunay{d}d", round(1_000_000 * scale))


Bars = tuple[float | None, float | None]
Loops = dict[str, tuple[int, Bars]]
MESHES: dict[str, tuple[Callable[[float], Mesh], Loops]] = {
    "airfoil": (_airfoil, {"edges->cells": (448, (3.59, 3.62))}),
    "hexes 70^3": (lambda s: _hexes(70, s), {"cells->nodes": (320, (5.05, 5.15))}),
    "hexes 50^3": (lambda s: _hexes(50, s), {"faces->cells": (384, (4.00, 4.12))}),
    "triangles": (
        lambda s: _of_mesher("airfoil-triangles", s),
        {"cells->nodes": (256, (5.04, 5.08)), "edges->cells": (320, (2.72, 2.75))},
    ),
    "tetrahedra": (
        lambda s: _of_mesher("holes-tetrahedra", s),
        {"cells->nodes": (256, (10.3, 10.6)), "faces->cells": (256, (3.00, 3.04))},
    ),
    "delaunay2d": (
        lambda s: _delaunay(2, s),
        {"cells->nodes": (256, (None, None)), "edges->cells": (320, (None, None))},
    ),
    "delaunay3d": (
        lambda s: _delaunay(3, s),
        {"cells->nodes": (256, (None, None)), "faces->cells": (256, (None, None))},
    ),
}


def cases(scale: float, chosen: str = "") -> Iterator[Case]:
    """The cases whose name holds ``chosen``, with meshes of ``scale`` times the elements."""
    for mesh_name, (make, loops) in MESHES.items():
        wanted = {m: loop for m, loop in loops.items() if chosen in f"{mesh_name} {m}"}
        if not wanted:
            continue
        mesh = derive(make(scale), wanted)
        for map_name, (block_size, bars) in wanted.items():
            from_set, _, to_set = map_name.partition("->")
            points, elements = centroids(mesh, to_set), centroids(mesh, from_set)
            assert points is not None
            assert elements is not None
            table = mesh.map(map_name).table
            bars = bars if scale == 1 else (None, None)
            yield Case(f"{mesh_name} {map_name}", table, points, elements, block_size, bars)
