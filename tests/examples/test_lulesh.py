"""LULESH whole: a cycle in whole arrays of NumPy, the program's published results, refusals."""

import sys
from itertools import product

import numpy as np
import pytest
from pages import blocks

import lulesh
from kernels import lulesh as kernels
from lulesh import LENGTH, Blast, box
from meshprep import Dat, Mesh, MeshprepError, write
from meshprep.io.generate import generate
from meshprep_cuda_check.checked import run_checked
from meshprep_runtime.cuda import program

pytestmark = pytest.mark.usefixtures("one_thread")
# Cells a side: cycles, and the energy at the origin, as LULESH 2.0 prints them.
PUBLISHED = {5: (72, "7.853665e+03"), 10: (231, "2.720531e+04")}
# The signs of xi, eta and zeta at the nodes of a cell; two points of Gauss along each.
SIGNS = np.array(
    [
        (-1, -1, -1),
        (1, -1, -1),
        (1, 1, -1),
        (-1, 1, -1),
        (-1, -1, 1),
        (1, -1, 1),
        (1, 1, 1),
        (-1, 1, 1),
    ]
)
GAUSS = [np.array(point) / np.sqrt(3) for point in product((-1, 1), repeat=3)]
# Of each side, its nodes in turn, seen from outside against the clock.
FACES = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
LOOPS = (
    *lulesh.STRESS_LOOPS,
    *lulesh.MOTION_LOOPS,
    *lulesh.ELEMENT_LOOPS,
    "time_constraints",
)
COMPARED = (
    *("energy", "pressure", "viscosity", "sound", "relative", "rate", "length"),
    *("x", "velocity", "acceleration", "force"),
)


def derivatives(point):
    """Of the eight trilinear functions, by xi, eta and zeta: (8, 3)."""
    factors = 1 + SIGNS * point
    one = SIGNS[:, 0] * factors[:, 1] * factors[:, 2]
    two = SIGNS[:, 1] * factors[:, 2] * factors[:, 0]
    three = SIGNS[:, 2] * factors[:, 0] * factors[:, 1]
    return np.column_stack([one, two, three]) / 8


def volume_of(corners):
    """The integral of the Jacobian, by a rule that is exact for it."""
    return sum(
        np.linalg.det(np.einsum("nj,enk->ejk", derivatives(point), corners))
        for point in GAUSS
    )


def slopes_of(corners):
    """The volume's derivative by each node's place: the Jacobian's cofactors, integrated."""
    slopes = np.zeros_like(corners)
    for point in GAUSS:
        jacobian = np.einsum("nj,enk->ejk", derivatives(point), corners)
        cofactors = np.linalg.det(jacobian)[:, None, None] * np.linalg.inv(jacobian)
        slopes += np.einsum("nj,ekj->enk", derivatives(point), cofactors)
    return slopes


class Slow:
    """The blast on a box of its own numbering, x fastest; a line a formula, in whole arrays."""

    def __init__(self, counts, bend=None):
        nx, ny, nz = counts
        axes = [LENGTH * np.arange(n + 1) / n for n in (nz, ny, nx)]
        grid = np.meshgrid(*axes, indexing="ij")
        self.x = np.column_stack([axis.ravel() for axis in grid[::-1]])
        self.on_plane = self.x == 0
        number = np.arange(len(self.x)).reshape(nz + 1, ny + 1, nx + 1)
        corner = (SIGNS[:, ::-1] + 1) // 2
        self.nodes = np.stack(
            [number[k : k + nz, j : j + ny, i : i + nx].ravel() for k, j, i in corner],
            axis=1,
        )
        self.shape = (nz, ny, nx)
        if bend is not None:
            self.x = bend(self.x)
        self.initial = volume_of(self.x[self.nodes])
        self.node_mass = np.zeros(len(self.x))
        np.add.at(self.node_mass, self.nodes, self.initial[:, None] / 8)
        cells = len(self.nodes)
        self.velocity = np.zeros_like(self.x)
        self.energy = np.zeros(cells)
        self.energy[0] = 3.948746e7 * (LENGTH / 45) ** 3 / self.initial[0]
        self.pressure = np.zeros(cells)
        self.viscosity = np.zeros(cells)
        self.sound = np.zeros(cells)
        self.relative = np.ones(cells)
        self.step = 0.5 * np.cbrt(self.initial[0]) / np.sqrt(2 * self.energy[0])
        self.time = 0.0
        self.cycles = 0

    def advance(self, cycles=None):
        last = None if cycles is None else self.cycles + cycles
        while self.time < 0.01 and self.cycles != last:
            self.choose_step()
            self.move()
            self.follow()
            self.cycles += 1

    def choose_step(self):
        if self.cycles:
            old = self.step
            moving = self.rate != 0
            shock = np.where(self.rate < 0, 16 * self.length * self.rate, 0)
            waves = (self.length / np.hypot(self.sound, shock))[moving].min(
                initial=1e20
            ) / 2
            growth = (0.1 / (np.abs(self.rate) + 1e-20))[moving].min(initial=1e20)
            new = 2 * growth / 3 if growth < waves else waves
            keep = old <= new < 1.1 * old
            self.step = old if keep else min(new, 1.2 * old, 0.01)
        left = 0.01 - self.time
        if self.step < left < 4 * self.step / 3:
            left = 2 * self.step / 3
        self.step = min(self.step, left)
        self.time += self.step

    def move(self):
        corners = self.x[self.nodes]
        forces = np.zeros_like(corners)
        push = self.pressure + self.viscosity
        for face in FACES:
            a, b, c, d = corners[:, face].transpose(1, 0, 2)
            area = np.cross(c - a, d - b) / 2
            forces[:, face] += 0.25 * (push[:, None] * area)[:, None]

        # The hourglass modes, made orthogonal to all linear motion.
        xi, eta, zeta = SIGNS.T
        modes = np.stack([eta * zeta, xi * zeta, xi * eta, xi * eta * zeta], axis=1)
        volume = self.initial * self.relative
        factor = 0.03 * self.sound * self.initial / np.cbrt(volume)
        linear = np.einsum("jm,ejk->emk", modes, corners) / volume[:, None, None]
        pure = modes - np.einsum("eik,emk->eim", slopes_of(corners), linear)
        strength = np.einsum("eim,eik->emk", pure, self.velocity[self.nodes])
        forces -= factor[:, None, None] * np.einsum("eim,emk->eik", pure, strength)

        self.force = np.zeros_like(self.x)
        np.add.at(self.force, self.nodes, forces)
        self.acceleration = self.force / self.node_mass[:, None]
        self.acceleration[self.on_plane] = 0
        self.velocity = self.velocity + self.step * self.acceleration
        self.velocity[np.abs(self.velocity) < 1e-7] = 0
        self.x = self.x + self.step * self.velocity

    def follow(self):
        corners = self.x[self.nodes]
        speeds = self.velocity[self.nodes]
        volume = volume_of(corners)
        relative = volume / self.initial
        change = relative - self.relative
        areas = [
            np.linalg.norm(np.cross(c - a, d - b), axis=1) / 2
            for a, b, c, d in (corners[:, face].transpose(1, 0, 2) for face in FACES)
        ]
        self.length = volume / np.max(areas, axis=0)

        # The rate of the volume is the trace of the gradient in the middle of the step.
        centre = derivatives(np.zeros(3))
        half = np.einsum("nj,enk->ejk", centre, corners - self.step / 2 * speeds)
        growth = np.einsum("nj,enk->ejk", centre, speeds)
        self.rate = np.trace(np.linalg.solve(half, growth), axis1=1, axis2=2)

        linear, quadratic = self.viscosity_terms(corners, speeds, volume)
        self.change_state(relative, change, linear, quadratic)
        self.relative = np.where(np.abs(relative - 1) < 1e-10, 1.0, relative)

    def viscosity_terms(self, corners, speeds, volume):
        centre = 2 * derivatives(np.zeros(3))
        sides = np.einsum("nj,enk->jek", centre, corners)
        growth = np.einsum("nj,enk->jek", centre, speeds)
        linear = np.zeros(len(corners))
        quadratic = np.zeros(len(corners))
        for axis in range(3):
            across = np.cross(sides[axis - 2], sides[axis - 1])
            jump = (across * growth[axis]).sum(axis=1) / volume
            width = volume / np.linalg.norm(across, axis=1)
            # One more cell at both ends: a mirror in the plane of symmetry, and nothing.
            along = 2 - axis
            grid = jump.reshape(self.shape)
            first = np.take(grid, [0], axis=along)
            more = np.concatenate([first, grid, 0 * first], axis=along)
            inner = np.arange(self.shape[along])
            before = np.take(more, inner, axis=along).ravel() / (jump + 1e-36)
            behind = np.take(more, inner + 2, axis=along).ravel() / (jump + 1e-36)
            mean = (before + behind) / 2
            limit = np.clip(np.min([mean, 2 * before, 2 * behind], axis=0), 0, 1)
            pressed = np.minimum(jump * width, 0)
            linear += pressed * (1 - limit)
            quadratic += pressed**2 * (1 - limit**2)
        density = self.initial / volume
        grows = self.rate > 0
        linear = np.where(grows, 0, -0.5 * density * linear)
        quadratic = np.where(grows, 0, 2 / 3 * density * quadratic)
        return linear, quadratic

    def change_state(self, relative, change, linear, quadratic):
        def pressure(energy, v):
            p = 2 / 3 * energy / v
            return np.maximum(np.where(np.abs(p) < 1e-7, 0, p), 0)

        def sound(energy, p, v):
            square = 2 / 3 * (energy + v * p)
            return np.where(
                square <= 0.1111111e-36, 0.3333333e-18, np.sqrt(np.maximum(square, 0))
            )

        def extra(energy, p, v):
            q = sound(energy, p, v) * linear + quadratic
            return np.where(change > 0, 0, q)

        def clean(energy):
            return np.where(np.abs(energy) < 1e-7, 0, energy)

        # Energy by the work of the step: with the beginning, the middle, and Simpson's mean.
        old = self.pressure + self.viscosity
        middle = relative - change / 2
        energy = self.energy - change / 2 * old
        p = pressure(energy, middle)
        of_middle = p + extra(energy, p, middle)
        energy = clean(energy + change / 2 * (3 * old - 4 * of_middle))
        p = pressure(energy, relative)
        of_end = p + extra(energy, p, relative)
        energy = clean(energy - change / 6 * (7 * old - 8 * of_middle + of_end))
        self.energy = energy
        self.pressure = pressure(energy, relative)
        q = extra(energy, self.pressure, relative)
        self.viscosity = np.where(np.abs(q) < 1e-7, 0, q)
        self.sound = sound(energy, self.pressure, relative)


class InPython(Blast):
    """The same loops, one element after the other in plain Python: nothing is compiled."""

    def _run(self, *names):
        values = {name: dat.array for name, dat in self.dats.items()} | self.globals
        for name in names:
            plan = self.program.plan[name]
            for element in range(plan.sizes[plan.loop.over]):
                rows = []
                for arg in plan.loop.args:
                    array = values[arg.name]
                    if arg.is_global:
                        rows.append(array)
                    elif arg.map is None:
                        rows.append(array[element])
                    else:
                        points = plan.maps[arg.map].table[element]
                        rows += [array[points[k]] for k in arg.index]
                getattr(kernels, name)(*rows)


def bend(x):
    """Inner nodes move; those of the sides stay."""
    y = x / LENGTH
    bubble = (y * (1 - y)).prod(axis=1, keepdims=True)
    return x + LENGTH * bubble * np.sin(7 * y[:, [1, 2, 0]] + [0.5, 1.0, 2.0])


def bent(counts, shuffle=True):
    """A bent box, and where its nodes and cells lie before that, for the order of Slow."""
    nx, ny, nz = counts
    unit = generate("box", nx=nx, ny=ny, nz=nz, type="hexahedron", shuffle=shuffle)
    x = LENGTH * unit.coordinates
    places = Dat("coordinates", "nodes", bend(x))
    mesh = Mesh(unit.sets.values(), unit.maps.values(), [places], unit.tags)
    return mesh, order_of(x), order_of(x[mesh.map("cells->nodes").table].mean(axis=1))


def order_of(places):
    """As Slow numbers them: x fastest."""
    return np.lexsort(np.round(places, 9).T)


def same_fields(blast, slow, nodes, cells, tolerance):
    assert blast.cycles == slow.cycles
    assert blast.time == pytest.approx(slow.time, rel=tolerance)
    for name in COMPARED:
        found = blast.values(name)
        wanted = getattr(slow, name)
        order = nodes if len(found) == len(nodes) else cells
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(
            found[order].reshape(wanted.shape), wanted, 0, tolerance * scale, err_msg=name
        )


def test_whole_arrays_come_to_the_published_results():
    slow = Slow((5, 5, 5))
    slow.advance()
    assert (slow.cycles, f"{slow.energy[0]:.6e}") == PUBLISHED[5]


def test_kernels_in_plain_python_are_those_of_whole_arrays():
    counts = (4, 3, 2)
    mesh, nodes, cells = bent(counts)
    blast = InPython(mesh, block_size=8)
    slow = Slow(counts, bend)
    for _ in range(4):
        blast.advance(1)
        slow.advance(1)
        same_fields(blast, slow, nodes, cells, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", "hierarchical"])
def test_cycles_are_those_of_whole_arrays(strategy):
    """On bent hexahedra in random order: 30 cycles, in blocks and colours."""
    counts = (7, 6, 5)
    mesh, nodes, cells = bent(counts)
    blast = Blast(mesh, strategy=strategy, block_size=32)
    slow = Slow(counts, bend)
    for _ in range(3):
        blast.advance(10)
        slow.advance(10)
        same_fields(blast, slow, nodes, cells, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("size", PUBLISHED)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("keep_order", [False, True])
def test_published_results(size, shuffle, keep_order):
    """In LULESH's numbering, in random order, and in the order of the plan."""
    blast = Blast(box(size, shuffle), keep_order=keep_order, block_size=256)
    blast.advance()
    assert (blast.cycles, f"{blast.origin_energy:.6e}") == PUBLISHED[size]
    assert blast.time == pytest.approx(0.01, rel=1e-14)


@pytest.mark.slow
def test_any_order_gives_the_same_to_rounding():
    """Energies, places and velocities of the full run, and the symmetry of x, y and z."""
    blasts = {shuffle: Blast(box(6, shuffle), block_size=32) for shuffle in (False, True)}
    found = {}
    for shuffle, blast in blasts.items():
        blast.advance()
        x = box(6, shuffle).coordinates
        cells = order_of(x[blast.full.map("cells->nodes").table].mean(axis=1))
        nodes = order_of(x)
        energy = blast.values("energy")[cells].reshape(6, 6, 6)
        found[shuffle] = (
            energy,
            blast.values("x")[nodes],
            blast.values("velocity")[nodes],
        )
        np.testing.assert_allclose(energy, energy.transpose(2, 0, 1), rtol=1e-10)
        np.testing.assert_allclose(energy, energy.transpose(0, 2, 1), rtol=1e-10)
    for ours, theirs in zip(*found.values(), strict=True):
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * scale)


@pytest.mark.slow
def test_kernels_keep_to_their_access():
    blast = Blast(box(3), block_size=8)
    blast.advance(3)
    values = {name: dat.array for name, dat in blast.dats.items()} | blast.globals
    for loop in blast.loops.values():
        names = {arg.name for arg in loop.loop.args}
        loop.par_loop.check_access(27, **{name: values[name] for name in names})


@pytest.mark.long
@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("name", LOOPS)
def test_a_gpu_takes_the_kernels(name):
    """The numbers of plain Python, in CUDA's text under g++."""
    mesh, _, _ = bent((3, 3, 2))
    blast = InPython(mesh, block_size=8)
    blast.advance(3)
    strategy = "hierarchical" if name == "hold_symmetry" else "global-atomics"
    made = program(getattr(kernels, name), blast.program.plan[name], strategy, threads=64)
    values = {key: dat.array for key, dat in blast.dats.items()} | blast.globals
    found = {slot.name: values[slot.name].copy() for slot in made.slots}
    run_checked(made, **found)
    blast._run(name)
    for key, array in found.items():
        tolerance = 1e-14 * np.abs(values[key]).max()
        np.testing.assert_allclose(array, values[key], 0, tolerance, err_msg=key)


def test_neighbours_share_a_side():
    """Of a box in its own order: x fastest."""
    nodes = box(3).map("cells->nodes").table
    table, others = lulesh.neighbours(nodes)
    cells = np.arange(27).reshape(3, 3, 3)
    for axis in range(3):
        along = 2 - axis
        index = np.arange(3)
        low = np.take(cells, np.maximum(index - 1, 0), axis=along).ravel()
        high = np.take(cells, np.minimum(index + 1, 2), axis=along).ravel()
        np.testing.assert_array_equal(table[:, 2 * axis], low)
        np.testing.assert_array_equal(table[:, 2 * axis + 1], high)
    np.testing.assert_array_equal(others, table != np.arange(27)[:, None])


def test_a_cell_without_volume_is_refused():
    blast = InPython(box(2), block_size=8)
    blast.advance(2)
    blast.globals["step"][0] *= 100
    blast.move_nodes()
    with pytest.raises(MeshprepError, match="no volume left"):
        blast.update_elements()
    with pytest.raises(MeshprepError, match="no volume left"):
        blast.move_nodes()


def test_too_much_viscosity_is_refused(monkeypatch):
    blast = InPython(box(2), block_size=8)
    blast.advance(2)
    monkeypatch.setattr(lulesh, "MOST_VISCOSITY", 1e-3)
    with pytest.raises(MeshprepError, match="viscosity is out of bounds"):
        blast.advance(2)


def changed(mesh, table):
    """The mesh with other nodes of its cells."""
    maps = [m for m in mesh.maps.values() if m.name != "cells->nodes"]
    bare = Mesh(mesh.sets.values(), maps, mesh.dats, mesh.tags)
    return bare.with_(maps={"cells->nodes": table})


def test_other_meshes_are_refused():
    with pytest.raises(MeshprepError, match="not all of hexahedra"):
        Blast(generate("box", nx=2, ny=2, nz=2, type="tetra"))
    mesh = box(2)
    table = mesh.map("cells->nodes").table
    turned = table.copy()
    turned[0] = table[0][[1, 2, 3, 0, 5, 6, 7, 4]]
    with pytest.raises(MeshprepError, match="in other directions"):
        Blast(changed(mesh, turned))
    with pytest.raises(MeshprepError, match="inside out"):
        Blast(changed(mesh, table[:, [4, 5, 6, 7, 0, 1, 2, 3]]))


def run_program(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["lulesh.py", *words])
    lulesh.main()


@pytest.mark.slow
def test_the_command_of_the_page(monkeypatch, capsys):
    """With fewer cells."""
    (command,) = blocks("research/lulesh.md", "sh")
    assert command == "python examples/lulesh.py --size 30\n"
    run_program(monkeypatch, "--size", "5")
    told = capsys.readouterr().out
    assert told.startswith("72 cycles: energy at the origin 7.853665e+03\n")
    assert "integrate_stress" in told


@pytest.mark.slow
def test_a_mesh_of_a_file(monkeypatch, capsys, tmp_path):
    write(box(5, shuffle=True), tmp_path / "box.msh")
    run_program(monkeypatch, "--mesh", str(tmp_path / "box.msh"), "--cycles", "10")
    assert "10 cycles: energy at the origin 3.245955e+04\n" in capsys.readouterr().out
