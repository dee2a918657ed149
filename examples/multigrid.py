"""Multigrid on two levels of triangles, with a plan for each level and one between them.

    python examples/multigrid.py --side 100 --cycles 12

Poisson's equation with linear elements, zero around the square. The fine level halves every edge of
the coarse one. Each level is planned by itself; the map between them is brought into the numbering
of both, and its plan keeps that.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import meshprep
from kernels import multigrid as kernels
from meshprep import Dat, ElementSet, Mesh, Options, Ordering, SetMap
from meshprep.io.generate import generate
from meshprep_runtime import Program

KERNELS = Path(__file__).parent / "kernels"
SWEEPS = 2


def with_edges(mesh: Mesh) -> Mesh:
    """Triangles with every edge, its nodes, and the edges of each cell."""
    return meshprep.derive(mesh, ["cells->edges", "edges->nodes"])


def refine(coarse: Mesh) -> tuple[Mesh, SetMap]:
    """Every triangle in four; and from each new node the nodes that it lies between.

    The nodes of the coarse level come first and lie between themselves and themselves.
    """
    n, edges = coarse.size("nodes"), coarse.map("edges->nodes").table
    corners = coarse.map("cells->nodes").table
    middles = n + coarse.map("cells->edges").table
    x = coarse.coordinates[:, :2]
    between = np.concatenate([np.column_stack([np.arange(n)] * 2), edges])
    # Edge k of a triangle joins its corners k and k + 1.
    at_corners = [
        np.column_stack([corners[:, k], middles[:, k], middles[:, k - 1]]) for k in range(3)
    ]
    cells = np.concatenate([*at_corners, middles])
    sets = [ElementSet("nodes", len(between)), ElementSet("cells", len(cells), "triangle")]
    maps = [SetMap("cells->nodes", "cells", "nodes", cells)]
    fine = Mesh(sets, maps, [Dat("coordinates", "nodes", x[between].mean(axis=1))])
    return with_edges(fine), SetMap("nodes->coarse", "nodes", "coarse", between)


@dataclass(frozen=True, eq=False)
class Operator:
    """Linear elements for the Laplacian: a weight an edge, and what nodes need.

    Parameters
    ----------
    weight : (n_edges,) f8
    inverse : (n_nodes,) f8
        One over the diagonal; 0 on the boundary, where the value is given.
    area : (n_nodes,) f8
        A third of the triangles around a node.
    """

    weight: np.ndarray
    inverse: np.ndarray
    area: np.ndarray


def operator(mesh: Mesh) -> Operator:
    """Half the cotangents of the angles that look at an edge."""
    n, corners = mesh.size("nodes"), mesh.map("cells->nodes").table
    of_cells, ends = mesh.map("cells->edges").table, mesh.map("edges->nodes").table
    x = mesh.coordinates[corners, :2]
    weight = np.zeros(len(ends))
    for k in range(3):
        a, b = (x[:, (k + i) % 3] - x[:, (k + 2) % 3] for i in (0, 1))
        double = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        np.add.at(weight, of_cells[:, k], 0.5 * (a * b).sum(axis=1) / double)
    diagonal = np.bincount(ends.ravel(), np.repeat(weight, 2), n)
    rim = np.bincount(of_cells.ravel(), minlength=len(ends)) == 1
    inverse = 1.0 / diagonal
    inverse[ends[rim]] = 0.0
    area = np.bincount(corners.ravel(), np.repeat(double / 6, 3), n)
    return Operator(weight, inverse, area)


class Level:
    """One level: its plan, its values in the plan's numbering, and its two loops."""

    def __init__(self, mesh: Mesh, options: Options) -> None:
        self.n, known = mesh.size("nodes"), operator(mesh)
        requests = meshprep.read_requests(KERNELS / "multigrid.toml")
        self.program = Program(meshprep.prepare(mesh, requests, options).plan)
        self.nodes = self.program.plan.ordering["nodes"]
        self.weight = self.program.plan.ordering["edges"].apply(known.weight)
        self.inverse, self.area = (self.nodes.apply(v) for v in (known.inverse, known.area))
        self.source, self.residual, self.x = np.zeros((3, self.n))
        self._stiffness = self.program.loop(kernels.stiffness, "stiffness")
        self._smooth = self.program.loop(kernels.smooth, "smooth")

    def apply(self) -> None:
        """Leave minus the operator times x in the residual."""
        self._stiffness(weight=self.weight, x=self.x, residual=self.residual)

    def smooth(self) -> float:
        """One sweep; returns the norm of the residual before it."""
        square = np.zeros(1)
        self.apply()
        self._smooth(**self._nodes(), x=self.x, square=square)
        return float(square[0] ** 0.5)

    def solve(self, tolerance: float = 1e-10) -> None:
        """Conjugate gradients for the source, from zero."""
        free = self.inverse > 0
        left = np.where(free, self.source, 0.0)
        found, direction, square = np.zeros(self.n), left.copy(), left @ left
        enough = tolerance**2 * square
        while square > enough:
            self.x[:] = direction
            self.residual[:] = 0.0
            self.apply()
            image = np.where(free, -self.residual, 0.0)
            step = square / (direction @ image)
            found += step * direction
            left -= step * image
            square, before = left @ left, square
            direction = left + square / before * direction
        self.x[:] = found
        self.residual[:] = 0.0

    def _nodes(self) -> dict[str, Any]:
        return {"source": self.source, "inverse": self.inverse, "residual": self.residual}


class TwoLevels:
    """Cycles on a fine and a coarse level of triangles."""

    def __init__(self, mesh: Mesh, block_size: int = 4096) -> None:
        options = Options(block_size=block_size, target="cpu")
        coarse = with_edges(mesh)
        self.mesh, between = refine(coarse)
        self.fine, self.coarse = Level(self.mesh, options), Level(coarse, options)
        order = {"nodes": self.fine.nodes, "coarse": self.coarse.nodes}
        self.program = Program(plan_between(between, order, options))
        self._restrict = self.program.loop(kernels.restrict, "restrict")
        self._prolong = self.program.loop(kernels.prolong, "prolong")
        # A source of 1 everywhere.
        self.fine.source[:] = self.fine.area

    def cycles(self, count: int) -> Iterator[float]:
        """Move on; yields after each cycle the norm of the residual before it."""
        fine, coarse = self.fine, self.coarse
        for _ in range(count):
            norms = [fine.smooth() for _ in range(SWEEPS)]
            fine.apply()
            coarse.source[:] = 0.0
            self._restrict(**fine._nodes(), coarse=coarse.source)
            coarse.solve()
            self._prolong(inverse=fine.inverse, coarse=coarse.x, x=fine.x)
            for _ in range(SWEEPS):
                fine.smooth()
            yield norms[0]

    @property
    def x(self) -> np.ndarray:
        """The solution, in the order of ``mesh``."""
        return np.array(self.fine.nodes.restore(self.fine.x))


def plan_between(between: SetMap, order: dict[str, Ordering], options: Options) -> Any:
    """The plan for the map between two levels in their numberings, which it keeps."""
    sizes = {name: len(one.new_to_old) for name, one in order.items()}
    mesh = Mesh(sizes, [between])
    requests = meshprep.read_requests(KERNELS / "multigrid_levels.toml")
    return meshprep.prepare(mesh.renumber(order), requests, options, keep_order=True).plan


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--side", type=int, default=100, help="coarse squares along a side")
    parser.add_argument("--cycles", type=int, default=12)
    given = parser.parse_args()
    n = given.side
    levels = TwoLevels(generate("box", nx=n, ny=n, type="triangle", shuffle=True))
    last = 0.0
    for i, norm in enumerate(levels.cycles(given.cycles)):
        print(f"{i:4} residual {norm:.4e}" + (f", factor {norm / last:.3f}" if i else ""))
        last = norm
    print(levels.fine.program.timings())


if __name__ == "__main__":
    main()
