"""Aero: against the same equations in whole arrays, solved without conjugate gradients."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import spsolve

from aero import Aero, prepared_aero
from kernels.aero import GM1, MACH
from poisson import reference

pytestmark = pytest.mark.slow
# Corners of a cell in the order of poisson's elements.
TURN = [0, 3, 1, 2]


@pytest.fixture(scope="module")
def small():
    return prepared_aero(900, 64)


class WholeArrays:
    """Newton's method with NumPy, written from the equations and not from the kernels."""

    def __init__(self, prepared):
        maps = prepared.plan.maps
        self.cells = maps["cells->nodes"].table[:, TURN]
        x = prepared.mesh.coordinates[:, :2]
        element = reference(1)
        jacobian = np.einsum("qrv,evd->eqrd", element.gradient, x[self.cells])
        self.weight = np.linalg.det(jacobian) * element.weights
        self.gradient = np.linalg.inv(jacobian) @ element.gradient
        self.free = np.ones(len(x), bool)
        self.free[maps["fixed->nodes"].table] = False
        self.phi = MACH * x[:, 0]

    def residual(self):
        velocity = np.einsum("eqdi,ei->eqd", self.gradient, self.phi[self.cells])
        d = 1 + 0.5 * GM1 * (MACH**2 - (velocity**2).sum(axis=2))
        rho = self.weight * d ** (1 / GM1)
        along = np.einsum("eqd,eqdi->eqi", velocity, self.gradient)
        res = np.zeros(self.phi.size)
        np.add.at(res, self.cells, np.einsum("eq,eqi->ei", rho, along))
        k = np.einsum("eq,eqdi,eqdj->eij", rho, self.gradient, self.gradient)
        return res, k - np.einsum("eq,eqi,eqj->eij", rho / d, along, along)

    def step(self):
        res, k = self.residual()
        i, j = np.repeat(self.cells, 4, axis=1), np.tile(self.cells, (1, 4))
        shape = (res.size, res.size)
        matrix = scipy.sparse.coo_array((k.ravel(), (i.ravel(), j.ravel())), shape).tocsr()
        inside = matrix[self.free][:, self.free]
        self.phi[self.free] -= spsolve(inside.tocsc(), res[self.free])


@pytest.fixture(scope="module")
def converged(small):
    flow = WholeArrays(small)
    assert (flow.weight > 0).all()
    for _ in range(6):
        flow.step()
    assert abs(flow.residual()[0][flow.free]).max() < 1e-13
    return flow


@pytest.mark.parametrize(
    "strategy", ["sequential", pytest.param("hierarchical", marks=pytest.mark.long)]
)
def test_newton_with_inner_iterations_finds_the_same_potential(small, converged, strategy):
    ours = Aero(small, strategy)
    steps = list(ours.steps(20))
    rms, inner = zip(*steps, strict=True)
    assert rms[-1] < 1e-10 * rms[0]
    assert max(inner) <= 200
    assert min(inner) > 0
    np.testing.assert_allclose(ours.phi.array.ravel(), converged.phi, atol=1e-9)


def test_the_first_residual_and_matrix(small):
    theirs, ours = WholeArrays(small), Aero(small, "sequential")
    res, k = theirs.residual()
    ours.loops["res_calc"](x=ours.x, phi=ours.phi, k=ours.k, res=ours.res)
    np.testing.assert_allclose(ours.res.array.ravel(), res, atol=1e-14)
    # the upper half, with corners as the mesh has them
    back = np.argsort(TURN)
    i, j = np.triu_indices(4)
    half = k[:, back][:, :, back][:, i, j]
    np.testing.assert_allclose(ours.k.array, half, rtol=1e-11, atol=1e-14)


def test_the_far_potential_stays(small):
    flow = Aero(small, "sequential")
    fixed = small.plan.maps["fixed->nodes"].table.ravel()
    before = flow.phi.array.copy()
    next(flow.steps(1))
    np.testing.assert_array_equal(flow.phi.array[fixed], before[fixed])
    assert (flow.phi.array != before).any()
