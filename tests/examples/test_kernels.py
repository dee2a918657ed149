"""The five kernels against what physics says, whatever their formulas."""

import numpy as np
import pytest

from kernels import bookleaf, lulesh, miniaero, volna
from meshprep_runtime import ParLoop


def run(kernel, plan, **arrays):
    loop = ParLoop(kernel, plan[kernel.__name__], strategy="hierarchical")
    loop.check_access(20, **arrays)
    loop(**arrays)


def test_water_is_neither_made_nor_lost(prepared):
    plan = prepared("volna", "delaunay2d", cells=300).plan
    rng = np.random.default_rng(1)
    edges, cells = plan.sizes["edges"], plan.sizes["cells"]
    arrays = {
        k: rng.random((edges, d)).astype("f4") for k, d in (("flux", 3), ("normal", 2))
    }
    volume = (1 + rng.random(cells)).astype("f4")
    rate = np.zeros((cells, 4), "f4")
    none = np.zeros((edges, 2), "f4")
    run(volna.space_discretization, plan, **arrays, volume=volume, rate=rate, source=none)
    # What leaves one cell enters another: volume times rate sums to nothing, wherever it went.
    total = (volume[:, None].astype("f8") * rate).sum(axis=0)
    np.testing.assert_allclose(total, 0, atol=1e-4)
    left, right = plan.maps["edges->cells"].table.T
    expected = np.zeros((cells, 3))
    np.subtract.at(expected, left, arrays["flux"] / volume[left, None])
    np.add.at(expected, right, arrays["flux"] / volume[right, None])
    np.testing.assert_allclose(rate[:, :3], expected, rtol=1e-4, atol=1e-5)
    assert not rate[:, 3].any()


def test_a_sloping_bottom_pushes_along_the_normal(prepared):
    plan = prepared("volna", "delaunay2d", cells=300).plan
    edges, cells = plan.sizes["edges"], plan.sizes["cells"]
    one, rate = np.ones((edges, 2), "f4"), np.zeros((cells, 4), "f4")
    flux, volume = np.zeros((edges, 3), "f4"), np.full(cells, 2.0, "f4")
    source = np.tile(np.array([3.0, 5.0], "f4"), (edges, 1))
    run(
        volna.space_discretization, plan, flux=flux, source=source, normal=one, volume=volume,
        rate=rate,
    )  # fmt: skip
    left, right = (
        np.bincount(c, minlength=cells) for c in plan.maps["edges->cells"].table.T
    )
    expected = -1.5 * left + 2.5 * right
    assert np.array_equal(rate[:, 1], expected)
    assert np.array_equal(rate[:, 2], expected)


@pytest.mark.slow
def test_corners_give_all_they_have(prepared):
    plan = prepared("bookleaf", "box", nx=9, ny=7, type="quad").plan
    cells, nodes = plan.sizes["cells"], plan.sizes["nodes"]
    rng = np.random.default_rng(2)
    names = ("corner_mass", "corner_area", "force_x", "force_y")
    arrays = {k: rng.random((cells, 4)) for k in names}
    arrays["corner_mass"][::3, 1] = 0.0
    density, node = rng.random(cells), np.zeros((nodes, 4))
    run(bookleaf.getacc_scatter, plan, **arrays, density=density, node=node)
    mass = arrays["corner_mass"].copy()
    mass[::3, 1] = density[::3] * arrays["corner_area"][::3, 1]
    given = (arrays["corner_area"], mass, arrays["force_x"], arrays["force_y"])
    table = plan.maps["cells->nodes"].table
    for k, values in enumerate(given):
        expected = np.bincount(table.ravel(), values.ravel(), nodes)
        np.testing.assert_allclose(node[:, k], expected, rtol=1e-13)


@pytest.fixture(scope="module")
def bent_box(prepared):
    """Hexahedra with their inner nodes moved about; plan, coordinates, inner nodes."""
    done = prepared("lulesh", "box", nx=5, ny=4, nz=4, type="hexahedron")
    x = np.ascontiguousarray(done.mesh.coordinates)
    inner = ((x > 1e-9) & (x < x.max(axis=0) - 1e-9)).all(axis=1)
    rng = np.random.default_rng(3)
    x = x + 0.03 * rng.standard_normal(x.shape) * inner[:, None] / 5
    return done.plan, x, inner


@pytest.mark.slow
def test_a_constant_stress_moves_nothing_inside(bent_box):
    plan, x, inner = bent_box
    cells = plan.sizes["cells"]
    force, volume = np.zeros_like(x), np.zeros(cells)
    stress = np.tile([-2.0, -3.0, -5.0], (cells, 1))
    run(lulesh.integrate_stress, plan, x=x, stress=stress, volume=volume, force=force)
    np.testing.assert_allclose(force[inner], 0, atol=1e-14)
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13)
    # On the sides x = largest the box pushes outwards: stress times the side's area.
    size = x.max(axis=0)
    for k, pressure in enumerate((2.0, 3.0, 5.0)):
        side = x[:, k] > size[k] - 1e-9
        area = size.prod() / size[k]
        assert force[side, k].sum() == pytest.approx(pressure * area, rel=1e-12)


@pytest.mark.slow
def test_any_stress_leaves_the_sum_of_forces_at_zero(bent_box):
    plan, x, _ = bent_box
    cells = plan.sizes["cells"]
    force, volume = np.zeros_like(x), np.zeros(cells)
    stress = np.random.default_rng(4).standard_normal((cells, 3))
    run(lulesh.integrate_stress, plan, x=x, stress=stress, volume=volume, force=force)
    assert np.abs(force).max() > 0.01
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13)
    assert volume.min() > 0
    assert volume.sum() == pytest.approx(x.max(axis=0).prod(), rel=1e-3)


@pytest.fixture(scope="module")
def aero(prepared):
    """Faces of a box of hexahedra: plan, area vectors from cell 1 to cell 2, middles, centres."""
    done = prepared("miniaero", "box", nx=5, ny=4, nz=4, type="hexahedron")
    corners = done.mesh.coordinates[done.mesh.map("cells->nodes").table]
    centre = corners.mean(axis=1)
    left, right = done.plan.maps["faces->cells"].table.T
    step = centre[right] - centre[left]
    spacing = np.ptp(corners[0], axis=0)
    area = np.sign(np.where(np.abs(step) > 1e-9, step, 0)) * spacing.prod() / spacing
    return (
        done.plan,
        np.ascontiguousarray(area),
        0.5 * (centre[left] + centre[right]),
        centre,
    )


def residual_of(aero, state, gradient=None, limiter=0.0):
    plan, area, middle, centre = aero
    cells = plan.sizes["cells"]
    residual = np.zeros((cells, 5))
    arrays = {
        "gradient": np.zeros((cells, 15)) if gradient is None else gradient,
        "limiter": np.full((cells, 5), limiter),
    }
    run(
        miniaero.compute_face_flux, plan, state=state, centre=centre, area=area,
        middle=middle, residual=residual, **arrays,
    )  # fmt: skip
    return residual


FLOW = np.array([1.2, 0.3, -0.2, 0.1, 0.9])


def euler_flux(s, n):
    """Flux of the Euler equations through area vector n, from their definition."""
    rho, velocity, p = s[0], s[1:4], s[4]
    energy = p / 0.4 + 0.5 * rho * velocity @ velocity
    through = velocity @ n
    return np.array(
        [rho * through, *(rho * velocity * through + p * n), (energy + p) * through]
    )


@pytest.mark.slow
def test_a_uniform_flow_stays(aero):
    plan, area, _, centre = aero
    residual = residual_of(aero, np.tile(FLOW, (len(centre), 1)))
    left, right = plan.maps["faces->cells"].table.T
    faces = np.bincount(left, minlength=len(centre)) + np.bincount(
        right, minlength=len(centre)
    )
    # Cells with all six faces, of 5 x 4 x 4; then one at a corner, with three.
    assert (faces == 6).sum() == 3 * 2 * 2
    np.testing.assert_allclose(residual[faces == 6], 0, atol=1e-15)
    corner = int(np.flatnonzero(faces == 3)[0])
    expected = sum(euler_flux(FLOW, a) for a in area[left == corner])
    expected -= sum(euler_flux(FLOW, a) for a in area[right == corner])
    np.testing.assert_allclose(residual[corner], expected, rtol=1e-12, atol=1e-16)


@pytest.mark.slow
def test_mass_momentum_and_energy_are_kept(aero):
    cells = aero[0].sizes["cells"]
    rng = np.random.default_rng(5)
    state = FLOW * (1 + 0.2 * rng.random((cells, 5)))
    gradient = 0.1 * rng.standard_normal((cells, 15))
    residual = residual_of(aero, state, gradient, 0.5)
    assert np.abs(residual).max() > 1e-3
    np.testing.assert_allclose(residual.sum(axis=0), 0, atol=1e-14)


@pytest.mark.slow
def test_a_linear_field_meets_itself_at_the_faces(aero):
    """With its exact gradient both sides agree, so the flux is that of the value there."""
    plan, area, middle, centre = aero
    slope = 0.1 * np.random.default_rng(6).standard_normal((5, 3))
    state = FLOW + centre @ slope.T
    gradient = np.tile(slope.ravel(), (len(centre), 1))
    residual = residual_of(aero, state, gradient, 1.0)
    expected = np.zeros_like(residual)
    for f, (left, right) in enumerate(plan.maps["faces->cells"].table):
        flux = euler_flux(FLOW + slope @ middle[f], area[f])
        expected[left] += flux
        expected[right] -= flux
    np.testing.assert_allclose(residual, expected, rtol=1e-12, atol=1e-14)


def test_supersonic_flow_takes_the_upwind_side():
    """All waves run one way: Roe's flux is that of the side they come from [Roe 1981]."""
    normal = np.array([0.6, 0.0, 0.8])
    left = np.array([1.0, 3.0, 0.2, 2.0, 0.8])
    right = np.array([0.9, 2.8, 0.1, 2.2, 0.7])
    found = miniaero.roe_flux(tuple(left), tuple(right), *normal)
    np.testing.assert_allclose(found, euler_flux(left, normal), rtol=1e-12)
    back = miniaero.roe_flux(tuple(left), tuple(right), *-normal)
    np.testing.assert_allclose(back, euler_flux(right, -normal), rtol=1e-12)
