"""LULESH as its authors run it on threads, in numba: corner forces, then sums at the nodes.

No two cells add to one node: each cell stores what its eight corners get, and each node sums the
corners that meet there. The kernels are those of the example, the mesh and its order are given.
"""

import importlib.util
import inspect
import math
from types import ModuleType

import numpy as np
from common import EXAMPLES
from numba import njit, prange

from lulesh import Blast
from meshprep.mesh import Mesh


def compiled_kernels() -> ModuleType:
    """The example's kernels, each compiled by numba, in a module of their own.

    Inlined by force: as calls they take two to five times as long.
    """
    path = EXAMPLES / "kernels" / "lulesh.py"
    spec = importlib.util.spec_from_file_location("compiled_lulesh", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == module.__name__:
            setattr(module, name, njit(function, error_model="numpy", forceinline=True))
    return module


K = compiled_kernels()
parallel = njit(parallel=True, error_model="numpy")


class Corners(Blast):
    """The blast on the plan's order of the mesh, by loops of one's own."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh)
        maps = self.program.plan.maps
        self.nodes = maps["cells->nodes"].table
        self.neighbours = maps["cells->neighbours"].table
        self.held = maps["held_nodes->nodes"].table[:, 0]
        self.corner = np.zeros((*self.nodes.shape, 3))
        # The corners of each node, one after the other.
        self.corners_of_node = np.argsort(self.nodes.ravel(), kind="stable")
        counts = np.bincount(self.nodes.ravel(), minlength=len(self.array("x")))
        self.first_corner = np.concatenate([[0], np.cumsum(counts)])

    def array(self, name: str) -> np.ndarray:
        """A dat, (elements, values), in the plan's order."""
        return self.dats[name].array

    def move_nodes(self) -> None:
        """Forces, accelerations, velocities, places."""
        a = self.array
        step = self.globals["step"]
        self.globals["least"][0] = add_stress(
            self.nodes, a("x"), a("pressure"), a("viscosity"), a("stress"), a("volume"),
            a("relative"), self.corner,
        )  # fmt: skip
        self._check_volumes()
        resist_hourglass(
            self.nodes, a("x"), a("velocity"), a("initial"), a("relative"), a("cell_mass"),
            a("sound"), self.corner,
        )  # fmt: skip
        accelerate(
            self.first_corner, self.corners_of_node, self.corner.reshape(-1, 3),
            a("force"), a("node_mass"), a("acceleration"),
        )  # fmt: skip
        hold_symmetry(self.held, a("axis"), a("acceleration"))
        move(a("acceleration"), step, a("velocity"), a("x"))

    def update_elements(self) -> None:
        """Volumes, viscosity, energy and pressure."""
        a = self.array
        self.globals["least"][0] = change_volume(
            self.nodes, a("x"), a("velocity"), a("initial"), a("relative"),
            self.globals["step"], a("new_relative"), a("change"), a("length"), a("rate"),
        )  # fmt: skip
        velocity_jumps(
            self.nodes, a("x"), a("velocity"), a("initial"), a("new_relative"),
            a("jump_xi"), a("jump_eta"), a("jump_zeta"), a("width"),
        )  # fmt: skip
        evaluate(
            self.neighbours, a("jump_xi"), a("jump_eta"), a("jump_zeta"), a("free"),
            a("width"), a("rate"), a("cell_mass"), a("initial"), a("new_relative"),
            a("linear"), a("quadratic"), a("change"), a("energy"), a("pressure"),
            a("viscosity"), a("sound"), a("relative"),
        )  # fmt: skip
        self._check_volumes()

    def constrain_step(self) -> None:
        """What waves and volumes allow the next step to be."""
        a = self.array
        courant, growth = constrain(a("sound"), a("rate"), a("length"))
        self.globals["courant"][0] = courant
        self.globals["growth"][0] = growth


@parallel
def add_stress(nodes, x, pressure, viscosity, stress, volume, relative, corner):
    """Corner forces of the stress; the least volume."""
    least = math.inf
    for e in prange(len(nodes)):
        n = nodes[e]
        f = corner[e]
        f[:] = 0.0
        K.set_stress(pressure[e], viscosity[e], stress[e])
        K.integrate_stress(
            x[n[0]], x[n[1]], x[n[2]], x[n[3]], x[n[4]], x[n[5]], x[n[6]], x[n[7]],
            stress[e], volume[e], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7],
        )  # fmt: skip
        least = min(least, volume[e, 0])
        least = min(least, relative[e, 0])
    return least


@parallel
def resist_hourglass(nodes, x, velocity, initial, relative, mass, sound, corner):
    """Adds what resists the hourglass modes to the corner forces."""
    u = velocity
    for e in prange(len(nodes)):
        n = nodes[e]
        f = corner[e]
        K.resist_hourglass(
            x[n[0]], x[n[1]], x[n[2]], x[n[3]], x[n[4]], x[n[5]], x[n[6]], x[n[7]],
            u[n[0]], u[n[1]], u[n[2]], u[n[3]], u[n[4]], u[n[5]], u[n[6]], u[n[7]],
            initial[e], relative[e], mass[e], sound[e],
            f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7],
        )  # fmt: skip


@parallel
def accelerate(first_corner, corners_of_node, corner, force, mass, acceleration):
    """Each node sums its corners."""
    for n in prange(len(force)):
        fx = fy = fz = 0.0
        for k in range(first_corner[n], first_corner[n + 1]):
            c = corners_of_node[k]
            fx += corner[c, 0]
            fy += corner[c, 1]
            fz += corner[c, 2]
        force[n, 0] = fx
        force[n, 1] = fy
        force[n, 2] = fz
        K.accelerate(force[n], mass[n], acceleration[n])


@parallel
def hold_symmetry(held, axis, acceleration):
    """A node on a plane of symmetry stays on it."""
    for i in prange(len(held)):
        acceleration[held[i], axis[i, 0]] = 0.0


@parallel
def move(acceleration, step, velocity, x):
    """New velocities and places."""
    for n in prange(len(x)):
        K.change_velocity(acceleration[n], step, velocity[n])
        K.move_node(velocity[n], step, x[n])


@parallel
def change_volume(
    nodes, x, velocity, initial, relative, step, new_relative, change, length, rate
):
    """The kernel's own least volume goes into the new volume, which it leaves as it is."""
    u = velocity
    least = math.inf
    for e in prange(len(nodes)):
        n = nodes[e]
        K.change_volume(
            x[n[0]], x[n[1]], x[n[2]], x[n[3]], x[n[4]], x[n[5]], x[n[6]], x[n[7]],
            u[n[0]], u[n[1]], u[n[2]], u[n[3]], u[n[4]], u[n[5]], u[n[6]], u[n[7]],
            initial[e], relative[e], step, new_relative[e], change[e], length[e], rate[e],
            new_relative[e],
        )  # fmt: skip
        least = min(least, new_relative[e, 0])
    return least


@parallel
def velocity_jumps(nodes, x, velocity, initial, new_relative, xi, eta, zeta, width):
    """How fast each cell grows along its directions."""
    u = velocity
    for e in prange(len(nodes)):
        n = nodes[e]
        K.velocity_jumps(
            x[n[0]], x[n[1]], x[n[2]], x[n[3]], x[n[4]], x[n[5]], x[n[6]], x[n[7]],
            u[n[0]], u[n[1]], u[n[2]], u[n[3]], u[n[4]], u[n[5]], u[n[6]], u[n[7]],
            initial[e], new_relative[e], xi[e], eta[e], zeta[e], width[e],
        )  # fmt: skip


@parallel
def evaluate(
    neighbours, xi, eta, zeta, free, width, rate, mass, initial, new_relative,
    linear, quadratic, change, energy, pressure, viscosity, sound, relative,
):  # fmt: skip
    """Viscosity, state and volume in one loop: none of them needs what another cell gets."""
    for e in prange(len(neighbours)):
        b = neighbours[e]
        K.limit_viscosity(
            xi[e], xi[b[0]], xi[b[1]], eta[e], eta[b[2]], eta[b[3]],
            zeta[e], zeta[b[4]], zeta[b[5]], free[e], width[e], rate[e], mass[e],
            initial[e], new_relative[e], linear[e], quadratic[e],
        )  # fmt: skip
        K.evaluate_state(
            new_relative[e], change[e], linear[e], quadratic[e],
            energy[e], pressure[e], viscosity[e], sound[e],
        )  # fmt: skip
        K.update_volume(new_relative[e], relative[e])


@parallel
def constrain(sound, rate, length):
    """The least times in which a wave crosses a cell, and a volume changes."""
    courant = 1e20
    growth = 1e20
    for e in prange(len(sound)):
        r = rate[e, 0]
        if r != 0.0:
            shock = 8.0 * K.SHOCK * length[e, 0] * r if r < 0.0 else 0.0
            speed = math.sqrt(sound[e, 0] ** 2 + shock**2)
            courant = min(courant, length[e, 0] / speed)
            growth = min(growth, K.MOST_CHANGE / (abs(r) + 1e-20))
    return courant, growth
