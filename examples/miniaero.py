"""miniAero whole: compressible flow in a tube of hexahedra, of second order [S19].

    python examples/miniaero.py --cells 200 8 8
    python examples/miniaero.py --mesh tube.msh

Ten loops: a step of Runge and Kutta has four stages of gradients, limited slopes, Roe's fluxes and
a change of the state. Gas at rest has the pressure 1 and the density 1 where x is below the middle
of the tube, 0.1 and 0.125 beyond it [Sod 1978]. Prints the density and the velocity between the
waves, and the time of each loop.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import meshprep
from kernels import miniaero as kernels
from meshprep import Mesh, MeshprepError, Options
from meshprep.io.generate import generate
from meshprep_runtime import Program

LOOPS = Path(__file__).parent / "kernels" / "miniaero_whole.toml"
MAPS = (
    "faces->cells",
    "faces->nodes",
    "boundary_faces->cells",
    "boundary_faces->nodes",
)
# Of the time in which a wave would cross a cell, and the shares of the step of the four stages.
CFL = 0.6
STAGES = (1 / 4, 1 / 3, 1 / 2, 1.0)
STAGE_LOOPS = (
    "begin_stage",
    "add_gradient",
    "add_outer_gradient",
    "finish_gradient",
    "limit_slopes",
    "compute_face_flux",
    "compute_outer_flux",
)
DATS = {
    "cells": {
        "state": (5, "f8"),
        "old": (5, "f8"),
        "residual": (5, "f8"),
        "gradient": (15, "f8"),
        "low": (5, "f8"),
        "high": (5, "f8"),
        "limiter": (5, "f8"),
        "centre": (3, "f8"),
        "volume": (1, "f8"),
        "width": (1, "f8"),
    },
    "faces": {"area": (3, "f8"), "middle": (3, "f8")},
    "boundary_faces": {"outer_area": (3, "f8"), "kind": (1, "i4")},
}
LEFT = (1.0, 0.0, 0.0, 0.0, 1.0)
RIGHT = (0.125, 0.0, 0.0, 0.0, 0.1)


def geometry(mesh: Mesh) -> dict[str, np.ndarray]:
    """What the loops want to know of cells and faces; areas point to the second cell, or out."""
    x = mesh.coordinates
    centre = x[mesh.map("cells->nodes").table].mean(axis=1)
    pair = mesh.map("faces->cells").table
    outer = mesh.map("boundary_faces->cells").table[:, 0]

    # Area vectors, half the cross product of the diagonals, turned outwards.
    area, middle = _areas(x[mesh.map("faces->nodes").table])
    area *= np.sign((area * (centre[pair[:, 1]] - centre[pair[:, 0]])).sum(1))[:, None]
    outer_area, outer_middle = _areas(x[mesh.map("boundary_faces->nodes").table])
    outer_area *= np.sign((outer_area * (outer_middle - centre[outer])).sum(1))[:, None]

    # The volume of a cell is a third of the sum of x . area over its faces.
    cell = np.concatenate([pair[:, 0], pair[:, 1], outer])
    areas = np.concatenate([area, -area, outer_area])
    middles = np.concatenate([middle, middle, outer_middle])
    from_centre = middles - centre[cell]
    volume = np.bincount(cell, (from_centre * areas).sum(1), len(centre)) / 3.0
    largest = np.zeros(len(centre))
    np.maximum.at(largest, cell, np.linalg.norm(areas, axis=1))

    # The ends of the tube are open.
    along = np.abs(outer_area[:, 0]) > 0.9 * np.linalg.norm(outer_area, axis=1)
    return {
        "centre": centre,
        "area": area,
        "middle": middle,
        "outer_area": outer_area,
        "volume": volume,
        "width": volume / largest,
        "kind": np.where(along, 0, kernels.WALL),
    }


def _areas(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Area vectors and middles of faces, by the places of their corners."""
    first, second, third, fourth = corners.transpose(1, 0, 2)
    area = 0.5 * np.cross(third - first, fourth - second)
    return area, corners.mean(axis=1)


def tube(centre: np.ndarray) -> np.ndarray:
    """The gas of [Sod 1978] at rest, (cells, 5)."""
    x = centre[:, 0]
    half = 0.5 * (x.min() + x.max())
    return np.where((x < half)[:, None], LEFT, RIGHT)


class MiniAero:
    """The gas on a mesh, in the numbering of a plan, and the loops that move it on.

    ``state`` is (density, velocity in x, y, z, pressure) of each cell of the mesh at the beginning;
    without one it is that of :func:`tube`. ``keep_order`` plans on the numbering of the mesh.
    """

    def __init__(
        self,
        mesh: Mesh,
        state: np.ndarray | None = None,
        *,
        strategy: str = "auto",
        keep_order: bool = False,
        block_size: int = 4096,
    ) -> None:
        if "cells->nodes" not in mesh.maps or mesh.cell_map("cells").arity != 8:
            raise MeshprepError("the mesh is not all of hexahedra: give one that is")
        self.time = 0.0
        self.steps = 0
        full = meshprep.derive(mesh, MAPS)
        self.known = geometry(full)
        options = Options(block_size=block_size, target="cpu")
        requests = meshprep.read_requests(LOOPS)
        prepared = meshprep.prepare(full, requests, options, keep_order=keep_order)
        self.full = full
        self.order = prepared.plan.ordering
        self.program = Program(prepared.plan)
        begin = tube(self.known["centre"]) if state is None else state
        self.dats = self._dats(self.known | {"state": begin})
        self.step = np.zeros(1)
        self.pace = np.zeros(1)
        self.loops = {
            name: self.program.loop(getattr(kernels, name), name, strategy=strategy)
            for name in prepared.plan.loops
        }

    def _dats(self, known: Mapping[str, np.ndarray]) -> dict[str, Any]:
        made = {}
        for on, dats in DATS.items():
            for name, (dim, dtype) in dats.items():
                values = np.zeros((self.program.plan.sizes[on], dim), dtype)
                if name in known:
                    given = self.order[on].apply(known[name])
                    values[:] = given.reshape(values.shape)
                made[name] = self.program.dat(on, dim, dtype, values=values)
        return made

    def advance(self, until: float) -> None:
        """Steps of the largest size that is stable; the last one ends at this time."""
        while self.time < until:
            self.step[0] = np.inf
            self._run("save_flow", "time_step")
            left = until - self.time
            step = min(CFL * float(self.step[0]), left)
            for share in STAGES:
                self._run(*STAGE_LOOPS)
                self.pace[0] = share * step
                self._run("advance")
            self.time = until if step == left else self.time + step
            self.steps += 1

    def _run(self, *names: str) -> None:
        values = {**self.dats, "step": self.step, "pace": self.pace}
        for name in names:
            loop = self.loops[name]
            loop(**{arg.name: values[arg.name] for arg in loop.loop.args})

    @property
    def state(self) -> np.ndarray:
        """The values of each cell, in the order of the mesh."""
        found: np.ndarray = self.order["cells"].restore(self.dats["state"].array)
        return found


def main() -> None:
    """Run the tube, and print what is between its waves and the time of each loop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, nargs=3, default=[200, 8, 8])
    parser.add_argument("--mesh", type=Path, help="default: a generated box")
    parser.add_argument("--until", type=float, default=0.2, help="for a tube of length 1")
    given = parser.parse_args()
    nx, ny, nz = given.cells
    try:
        if given.mesh:
            mesh = meshprep.read(given.mesh)
        else:
            mesh = generate("box", nx=nx, ny=ny, nz=nz, type="hexahedron")
        flow = MiniAero(mesh)
        flow.advance(given.until)
    except MeshprepError as error:
        sys.exit(f"error: {error}")
    # Between the fan and the shock the gas has one velocity and one pressure.
    x = flow.known["centre"][:, 0]
    half = 0.5 * (x.min() + x.max())
    place = half + 0.5 * given.until
    cell = np.argmin(np.abs(x - place))
    rho, u, _, _, p = flow.state[cell]
    print(f"{flow.steps} steps: density {rho:.4f}, velocity {u:.4f}, pressure {p:.4f}")
    print(flow.program.timings())


if __name__ == "__main__":
    main()
