"""miniAero whole: a step in whole arrays of NumPy, a known shock tube, and what must hold."""

import sys

import numpy as np
import pytest
from pages import blocks

import miniaero
from kernels.miniaero import WALL
from meshprep import MeshprepError, write
from meshprep.io.generate import generate
from meshprep.mesh import Dat, Mesh
from miniaero import CFL, STAGES, MiniAero

# Loops of many numbers, which take long to compile.
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]
GAM = 1.4
# Between the fan and the contact, and between the contact and the shock [Toro 2009, table 4.2].
PRESSURE, VELOCITY, BEHIND_FAN, BEHIND_SHOCK = 0.30313, 0.92745, 0.42632, 0.26557


def bent(nx, ny, nz):
    """A box of shuffled hexahedra whose inner nodes are moved by chance."""
    mesh = generate("box", nx=nx, ny=ny, nz=nz, type="hexahedron", shuffle=True)
    x = mesh.coordinates.copy()
    inner = ((x > 1e-9) & (x < x.max(axis=0) - 1e-9)).all(axis=1)
    by = np.random.default_rng(0).uniform(-0.15, 0.15, x.shape) / [nx, ny, nz]
    x += by * inner[:, None]
    return Mesh(
        mesh.sets.values(), mesh.maps.values(), [Dat("coordinates", "nodes", x)], mesh.tags
    )


def random_state(cells):
    random = np.random.default_rng(1)
    return [1.2, 0.3, -0.2, 0.1, 0.9] * (1 + 0.2 * random.random((cells, 5)))


def conserved(state):
    rho, velocity, p = state[:, :1], state[:, 1:4], state[:, 4:]
    energy = p / (GAM - 1) + 0.5 * rho * (velocity**2).sum(1, keepdims=True)
    return np.hstack([rho, rho * velocity, energy])


def primitive(values):
    rho, momentum, energy = values[:, :1], values[:, 1:4], values[:, 4:]
    p = (GAM - 1) * (energy - 0.5 * (momentum**2).sum(1, keepdims=True) / rho)
    return np.hstack([rho, momentum / rho, p])


def euler_flux(state, normal):
    """By the definition, through unit normals."""
    through = (state[:, 1:4] * normal).sum(1, keepdims=True)
    flux = conserved(state) * through
    flux[:, 1:4] += state[:, 4:] * normal
    flux[:, 4:] += state[:, 4:] * through
    return flux


def roe_flux(left, right, normal):
    """The mean flux less |A| / 2 times the jump; |A| as the polynomial in A that is |w| at each
    of its three speeds w."""
    roots = np.sqrt(left[:, :1]), np.sqrt(right[:, :1])

    def mean(a, b):
        return (roots[0] * a + roots[1] * b) / (roots[0] + roots[1])

    def enthalpy(s):
        return (conserved(s)[:, 4:] + s[:, 4:]) / s[:, :1]

    velocity = mean(left[:, 1:4], right[:, 1:4])
    total = mean(enthalpy(left), enthalpy(right))[:, 0]
    q2 = (velocity**2).sum(1)
    vn = (velocity * normal).sum(1)
    c = np.sqrt((GAM - 1) * (total - 0.5 * q2))
    # The derivative of the flux by (mass, momentum, energy).
    a = np.zeros((len(left), 5, 5))
    a[:, 0, 1:4] = normal
    half = 0.5 * (GAM - 1) * q2
    a[:, 1:4, 0] = half[:, None] * normal - velocity * vn[:, None]
    a[:, 1:4, 1:4] = velocity[:, :, None] * normal[:, None, :]
    a[:, 1:4, 1:4] -= (GAM - 1) * normal[:, :, None] * velocity[:, None, :]
    a[:, 1:4, 1:4] += vn[:, None, None] * np.eye(3)
    a[:, 1:4, 4] = (GAM - 1) * normal
    a[:, 4, 0] = (half - total) * vn
    a[:, 4, 1:4] = total[:, None] * normal - (GAM - 1) * velocity * vn[:, None]
    a[:, 4, 4] = GAM * vn
    jump = (conserved(right) - conserved(left))[:, :, None]
    speeds = [(vn + shift * c)[:, None, None] for shift in (-1, 0, 1)]
    absolute = np.zeros_like(jump)
    for i, speed in enumerate(speeds):
        part = np.abs(speed) * jump
        for other in speeds[:i] + speeds[i + 1 :]:
            part = (a @ part - other * part) / (speed - other)
        absolute += part
    return 0.5 * (euler_flux(left, normal) + euler_flux(right, normal) - absolute[:, :, 0])


def numpy_stage(flow, state):
    """What flows out of each cell in a stage."""
    known = flow.known
    pair = flow.full.map("faces->cells").table
    outer = flow.full.map("boundary_faces->cells").table[:, 0]
    # Gauss's gradients, and the values around each cell.
    gradient = np.zeros((len(state), 5, 3))
    low, high = state.copy(), state.copy()
    mean = state[pair].mean(axis=1)
    for side, sign in ((0, 1), (1, -1)):
        np.add.at(gradient, pair[:, side], sign * mean[:, :, None] * known["area"][:, None])
        np.minimum.at(low, pair[:, side], state[pair[:, 1 - side]])
        np.maximum.at(high, pair[:, side], state[pair[:, 1 - side]])
    np.add.at(gradient, outer, state[outer][:, :, None] * known["outer_area"][:, None])
    gradient /= known["volume"][:, None, None]
    # The limited values at the faces.
    limiter = np.ones_like(state)
    slopes = []
    for cell in pair.T:
        slope = np.einsum(
            "fkj,fj->fk", gradient[cell], known["middle"] - known["centre"][cell]
        )
        bound = np.where(slope > 0, high[cell], low[cell]) - state[cell]
        flat = np.abs(slope) <= 1e-14
        share = np.where(flat, 1.0, np.minimum(1.0, bound / np.where(flat, 1.0, slope)))
        np.minimum.at(limiter, cell, share)
        slopes.append(slope)
    left, right = (
        state[cell] + limiter[cell] * slope
        for cell, slope in zip(pair.T, slopes, strict=True)
    )
    size = np.linalg.norm(known["area"], axis=1, keepdims=True)
    flux = size * roe_flux(left, right, known["area"] / size)
    residual = np.zeros_like(state)
    np.add.at(residual, pair[:, 0], flux)
    np.subtract.at(residual, pair[:, 1], flux)
    # Outside: the pressure on walls, what flows through open ends.
    inside = state[outer].copy()
    wall = known["kind"] == WALL
    size = np.linalg.norm(known["outer_area"], axis=1, keepdims=True)
    out = euler_flux(inside, known["outer_area"] / size)
    still = inside[wall] * [1, 0, 0, 0, 1]
    out[wall] = euler_flux(still, (known["outer_area"] / size)[wall])
    np.add.at(residual, outer, size * out)
    return residual


def numpy_step(flow, state):
    """A step of Runge and Kutta, and its size."""
    speed = np.linalg.norm(state[:, 1:4], axis=1) + np.sqrt(GAM * state[:, 4] / state[:, 0])
    step = CFL * (flow.known["width"] / speed).min()
    old = conserved(state)
    for share in STAGES:
        change = share * step / flow.known["volume"][:, None] * numpy_stage(flow, state)
        state = primitive(old - change)
    return state, step


@pytest.mark.parametrize("strategy", ["auto", "hierarchical"])
def test_steps_are_those_of_whole_arrays(strategy):
    mesh = bent(9, 6, 5)
    state = random_state(mesh.size("cells"))
    flow = MiniAero(mesh, state, strategy=strategy, block_size=64)
    for _ in range(3):
        state, step = numpy_step(flow, state)
        flow.advance(flow.time + step)
        np.testing.assert_allclose(flow.state, state, rtol=1e-11, atol=1e-12)
    assert flow.steps == 3


def test_areas_close_every_cell():
    """So that a uniform flow between open ends stays."""
    mesh = bent(6, 4, 4)
    flow = MiniAero(mesh, np.tile([1.0, 0.5, 0.0, 0.0, 0.8], (mesh.size("cells"), 1)))
    known = flow.known
    total = np.zeros_like(known["centre"])
    pair = flow.full.map("faces->cells").table
    np.add.at(total, pair[:, 0], known["area"])
    np.subtract.at(total, pair[:, 1], known["area"])
    np.add.at(
        total, flow.full.map("boundary_faces->cells").table[:, 0], known["outer_area"]
    )
    np.testing.assert_allclose(total, 0, atol=1e-15)
    assert known["volume"].sum() == pytest.approx(mesh.coordinates.max(axis=0).prod())
    before = flow.state.copy()
    flow.advance(0.1)
    assert flow.steps >= 3
    np.testing.assert_allclose(flow.state, before, atol=1e-13)


def test_a_shock_tube_comes_to_its_known_values():
    mesh = generate("box", nx=100, ny=1, nz=1, type="hexahedron", shuffle=True)
    flow = MiniAero(mesh)
    mass = flow.known["volume"] @ flow.state[:, 0]
    flow.advance(0.2)
    x = flow.known["centre"][:, 0] - 0.5
    rho, u, v, w, p = flow.state.T
    # The fan ends at -0.014, the contact is at 0.185, the shock at 0.350 [Toro 2009].
    between = (x > 0.03) & (x < 0.32)
    np.testing.assert_allclose(p[between], PRESSURE, rtol=0.01)
    np.testing.assert_allclose(u[between], VELOCITY, rtol=0.01)
    np.testing.assert_allclose(rho[(x > 0.03) & (x < 0.14)], BEHIND_FAN, rtol=0.01)
    np.testing.assert_allclose(rho[(x > 0.23) & (x < 0.32)], BEHIND_SHOCK, rtol=0.02)
    np.testing.assert_array_equal(rho[x > 0.4], 0.125)
    assert np.abs([v, w]).max() < 1e-12
    assert flow.known["volume"] @ rho == pytest.approx(mass, rel=1e-13)


def run_program(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["miniaero.py", *words])
    miniaero.main()


def test_the_command_of_the_page(monkeypatch, capsys):
    """With fewer cells."""
    (command,) = blocks("research/miniaero.md", "sh")
    assert command == "python examples/miniaero.py --cells 200 8 8\n"
    run_program(monkeypatch, "--cells", "40", "2", "2")
    told = capsys.readouterr().out
    assert "velocity 0.9" in told
    assert "compute_face_flux" in told


def test_a_mesh_of_a_file(monkeypatch, capsys, tmp_path):
    write(generate("box", nx=20, ny=1, nz=1, type="hexahedron"), tmp_path / "tube.msh")
    run_program(monkeypatch, "--mesh", str(tmp_path / "tube.msh"), "--until", "0.05")
    assert " steps: density " in capsys.readouterr().out


def test_other_cells_are_refused():
    with pytest.raises(MeshprepError, match="not all of hexahedra"):
        MiniAero(generate("box", nx=2, ny=2, nz=2, type="tetra"))
