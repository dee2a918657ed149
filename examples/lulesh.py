"""LULESH whole: the blast of Sedov on hexahedra that move with the gas [S19].

    python examples/lulesh.py --size 30
    python examples/lulesh.py --mesh box.msh --cycles 100

Fifteen loops, those of a cycle of LULESH 2.0: forces of pressure, viscosity and hourglass modes
move the nodes, the cells follow, an ideal gas takes up the work, and waves and volumes limit the
next step. The gas rests in a box with planes of symmetry at the low ends of x, y and z; the cell
in their corner has all the energy. Prints the cycles, the energy that this cell has at the end, and
the time of each loop.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import meshprep
from kernels import lulesh as kernels
from meshprep import Dat, ElementSet, Mesh, MeshprepError, Options, SetMap
from meshprep.io.generate import generate
from meshprep_runtime import Program

LOOPS = Path(__file__).parent / "kernels" / "lulesh_whole.toml"
# The length of the box; the energy that a cell of the volume of 45 cells a side gets.
LENGTH = 1.125
ENERGY = 3.948746e7
ENERGY_VOLUME = (LENGTH / 45) ** 3
# When it ends, in seconds, and how a step may follow from the one before.
END = 0.01
LARGEST_STEP = 0.01
LEAST_GROWTH = 1.1
MOST_GROWTH = 1.2
MOST_VISCOSITY = 1e12
# The nodes of the sides of a cell, low and high, in xi, eta and zeta.
SIDES = (
    (0, 3, 4, 7),
    (1, 2, 5, 6),
    (0, 1, 4, 5),
    (2, 3, 6, 7),
    (0, 1, 2, 3),
    (4, 5, 6, 7),
)
STRESS_LOOPS = ("clear_force", "set_stress", "integrate_stress", "check_volume")
MOTION_LOOPS = (
    "resist_hourglass",
    "accelerate",
    "hold_symmetry",
    "change_velocity",
    "move_node",
)
ELEMENT_LOOPS = (
    "change_volume",
    "velocity_jumps",
    "limit_viscosity",
    "evaluate_state",
    "update_volume",
)
DATS = {
    "nodes": {
        "x": (3, "f8"),
        "velocity": (3, "f8"),
        "acceleration": (3, "f8"),
        "force": (3, "f8"),
        "node_mass": (1, "f8"),
    },
    "held_nodes": {"axis": (1, "i4")},
    "cells": {
        "energy": (1, "f8"),
        "pressure": (1, "f8"),
        "viscosity": (1, "f8"),
        "sound": (1, "f8"),
        "stress": (3, "f8"),
        "cell_mass": (1, "f8"),
        "initial": (1, "f8"),
        "volume": (1, "f8"),
        "relative": (1, "f8"),
        "new_relative": (1, "f8"),
        "change": (1, "f8"),
        "length": (1, "f8"),
        "rate": (1, "f8"),
        "jump_xi": (1, "f8"),
        "jump_eta": (1, "f8"),
        "jump_zeta": (1, "f8"),
        "width": (3, "f8"),
        "free": (6, "i4"),
        "linear": (1, "f8"),
        "quadratic": (1, "f8"),
    },
}


def box(size: int, shuffle: bool = False) -> Mesh:
    """LULESH's box of so many cells a side, in its order or in random order."""
    unit = generate("box", nx=size, ny=size, nz=size, type="hexahedron", shuffle=shuffle)
    return scaled(unit)


def scaled(unit: Mesh) -> Mesh:
    """A mesh of the unit cube, as large as LULESH's box."""
    places = Dat("coordinates", "nodes", LENGTH * unit.coordinates)
    return Mesh(unit.sets.values(), unit.maps.values(), [places], unit.tags)


def neighbours(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The six neighbours of each cell, itself where there is none; which of them are others."""
    cells = len(nodes)
    corners = np.sort(nodes[:, SIDES], axis=2).reshape(-1, 4)

    # Two cells share a side if its nodes stand one after the other in the order of all.
    order = np.lexsort(corners.T)
    shared = (corners[order[1:]] == corners[order[:-1]]).all(axis=1)
    first = order[:-1][shared]
    second = order[1:][shared]
    if (first % 6 != second % 6 ^ 1).any():
        raise MeshprepError(
            "two neighbours number their nodes in other directions: "
            "number them alike in all cells, as in a box"
        )
    table = np.repeat(np.arange(cells, dtype=np.int32), 6)
    table[first] = second // 6
    table[second] = first // 6
    others = np.zeros(6 * cells, np.bool_)
    others[first] = True
    others[second] = True
    return table.reshape(-1, 6), others.reshape(-1, 6)


class Blast:
    """The gas on a mesh, in the numbering of a plan, and the loops that move it on.

    ``keep_order`` plans on the numbering of the mesh.
    """

    def __init__(
        self,
        mesh: Mesh,
        *,
        strategy: str = "auto",
        keep_order: bool = False,
        block_size: int = 4096,
    ) -> None:
        if "cells->nodes" not in mesh.maps or mesh.cell_map("cells").arity != 8:
            raise MeshprepError("the mesh is not all of hexahedra: give one that is")
        full, self.known = describe(mesh)
        self.full = full
        self.origin = int(np.argmax(self.known["energy"]))
        requests = meshprep.read_requests(LOOPS)
        options = Options(block_size=block_size, target="cpu")
        prepared = meshprep.prepare(full, requests, options, keep_order=keep_order)
        self.order = prepared.plan.ordering
        self.program = Program(prepared.plan)
        self.dats = self._dats(self.known)
        self.globals = {
            name: np.zeros(1)
            for name in ("step", "least", "courant", "growth", "most_viscosity")
        }
        self.loops = {
            name: self.program.loop(getattr(kernels, name), name, strategy=strategy)
            for name in prepared.plan.loops
        }
        self.time = 0.0
        self.cycles = 0
        # A sound wave of the hot cell crosses half of it.
        volume = self.known["initial"][self.origin]
        energy = self.known["energy"][self.origin]
        self.globals["step"][0] = 0.5 * np.cbrt(volume) / np.sqrt(2.0 * energy)

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

    def advance(self, cycles: int | None = None) -> None:
        """So many cycles more, or all to the end."""
        last = None if cycles is None else self.cycles + cycles
        while self.time < END and self.cycles != last:
            self.choose_step()
            self.move_nodes()
            self.update_elements()
            self.constrain_step()
            self.cycles += 1

    def choose_step(self) -> None:
        """As large as both constraints allow, and not much larger than the one before."""
        step = float(self.globals["step"][0])
        if self.cycles > 0:
            largest = 1e20
            courant = float(self.globals["courant"][0])
            growth = float(self.globals["growth"][0])
            if courant < largest:
                largest = courant / 2.0
            if growth < largest:
                largest = growth * 2.0 / 3.0
            if not 1.0 <= largest / step < LEAST_GROWTH:
                step = min(largest, step * MOST_GROWTH, LARGEST_STEP)

        # No tiny step at the end.
        left = END - self.time
        if step < left < 4.0 * step / 3.0:
            left = 2.0 * step / 3.0
        step = min(step, left)
        self.globals["step"][0] = step
        self.time += step

    def move_nodes(self) -> None:
        """LULESH's Lagrange nodal step: forces, accelerations, velocities, places."""
        self.globals["least"][0] = np.inf
        self._run(*STRESS_LOOPS)
        self._check_volumes()
        self._run(*MOTION_LOOPS)

    def update_elements(self) -> None:
        """LULESH's Lagrange elements: volumes, viscosity, energy and pressure."""
        self._run(*ELEMENT_LOOPS)
        self._check_volumes()

    def _check_volumes(self) -> None:
        if not self.globals["least"][0] > 0.0:
            raise MeshprepError(f"cycle {self.cycles}: a cell has no volume left")

    def constrain_step(self) -> None:
        """What waves and volumes allow the next step to be."""
        self.globals["courant"][0] = 1e20
        self.globals["growth"][0] = 1e20
        self.globals["most_viscosity"][0] = 0.0
        self._run("time_constraints")
        if self.globals["most_viscosity"][0] > MOST_VISCOSITY:
            raise MeshprepError(f"cycle {self.cycles}: the viscosity is out of bounds")

    def _run(self, *names: str) -> None:
        values = {**self.dats, **self.globals}
        for name in names:
            loop = self.loops[name]
            loop(**{arg.name: values[arg.name] for arg in loop.loop.args})

    def values(self, name: str) -> np.ndarray:
        """A dat, such as energy or x, in the order of the mesh."""
        dat = self.dats[name]
        found: np.ndarray = self.order[dat.set].restore(dat.array)
        return found

    @property
    def origin_energy(self) -> float:
        """Of the cell that had all of it: the figure that LULESH prints."""
        return float(self.values("energy").reshape(-1)[self.origin])


def describe(mesh: Mesh) -> tuple[Mesh, dict[str, np.ndarray]]:
    """The mesh with neighbours and planes of symmetry, and how the gas begins."""
    x = mesh.coordinates
    nodes = mesh.map("cells->nodes").table
    table, others = neighbours(nodes)
    low = x.min(axis=0)
    on_plane = x <= low + 1e-9 * (x.max(axis=0) - low)
    held, axis = np.nonzero(on_plane)
    full = mesh.with_(
        sets=[ElementSet("held_nodes", len(held))],
        maps=[
            SetMap("cells->neighbours", "cells", "cells", table),
            SetMap("held_nodes->nodes", "held_nodes", "nodes", held[:, None]),
        ],
    )
    # A side is free if it has no other cell behind it and lies on no plane.
    symmetric = on_plane[nodes[:, SIDES]].all(axis=2).any(axis=2)
    volume = kernels.exact_volume(*x[nodes].transpose(1, 2, 0))
    if not (volume > 0.0).all():
        raise MeshprepError("a cell is inside out: number its nodes as VTK does")

    # Each node takes an eighth of the mass of its cells.
    node_mass = np.bincount(nodes.ravel(), np.repeat(volume / 8.0, 8), len(x))
    centre = x[nodes].mean(axis=1)
    origin = np.argmin(((centre - low) ** 2).sum(axis=1))
    energy = np.zeros(len(nodes))
    energy[origin] = ENERGY * ENERGY_VOLUME / volume[origin]
    return full, {
        "x": x,
        "node_mass": node_mass,
        "axis": axis,
        "energy": energy,
        "cell_mass": volume,
        "initial": volume,
        "relative": np.ones(len(nodes)),
        "free": ~(others | symmetric),
    }


def main() -> None:
    """Run the blast, and print what is left at the origin and the time of each loop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=30, help="cells a side")
    parser.add_argument("--mesh", type=Path, help="default: a generated box")
    parser.add_argument("--cycles", type=int, help="default: all to the end")
    given = parser.parse_args()
    try:
        blast = Blast(meshprep.read(given.mesh) if given.mesh else box(given.size))
        blast.advance(given.cycles)
    except MeshprepError as error:
        sys.exit(f"error: {error}")
    print(f"{blast.cycles} cycles: energy at the origin {blast.origin_energy:.6e}")
    print(blast.program.timings())


if __name__ == "__main__":
    main()
