"""Airfoil: against the same scheme in whole arrays, and what must hold for any scheme."""

from types import SimpleNamespace

import numpy as np
import pytest

from airfoil import Airfoil, coordinates, prepared_airfoil
from kernels import airfoil as kernels

FREE = kernels.FREE_STREAM


@pytest.fixture(scope="module")
def small():
    return prepared_airfoil(1200, 128)


def pressure(q):
    return 0.4 * (q[:, 3] - 0.5 * (q[:, 1] ** 2 + q[:, 2] ** 2) / q[:, 0])


def flux(q1, q2, dx, dy, mu):
    """Of the airfoil page: the mean of both fluxes plus mu times the difference."""

    def one(q):
        p, vol = pressure(q), (q[:, 1] * dy - q[:, 2] * dx) / q[:, 0]
        parts = (vol * q[:, 0], vol * q[:, 1] + p * dy, vol * q[:, 2] - p * dx, vol * (q[:, 3] + p))
        return np.column_stack(parts)

    return 0.5 * (one(q1) + one(q2)) + mu[:, None] * (q1 - q2)


class WholeArrays:
    """The scheme with NumPy, written from the equations and not from the kernels."""

    def __init__(self, prepared):
        plan = prepared.plan
        t = {name: m.table for name, m in plan.maps.items()}
        x = coordinates(prepared)
        self.cells, self.inner, self.outer = (
            SimpleNamespace(side=np.roll(x[t["cells->nodes"]], -1, axis=1) - x[t["cells->nodes"]]),
            SimpleNamespace(cell=t["edges->cells"].T, d=self.step(x, t["edges->nodes"])),
            SimpleNamespace(
                cell=t["boundary_edges->cells"][:, 0], d=self.step(x, t["boundary_edges->nodes"])
            ),
        )
        self.wall = plan.tags["boundary_edges"]["physical"] == 1
        self.q = np.tile(FREE, (plan.sizes["cells"], 1))

    @staticmethod
    def step(x, nodes):
        return (x[nodes[:, 1]] - x[nodes[:, 0]]).T

    def residual(self, adt):
        (left, right), q = self.inner.cell, self.q
        f = flux(q[left], q[right], *self.inner.d, 0.025 * (adt[left] + adt[right]))
        res = np.zeros_like(q)
        np.add.at(res, left, f)
        np.subtract.at(res, right, f)
        cell, (dx, dy) = self.outer.cell, self.outer.d
        far = flux(q[cell], np.tile(FREE, (len(cell), 1)), dx, dy, 0.05 * adt[cell])
        p, none = pressure(q[cell]), np.zeros(len(cell))
        wall = np.column_stack([none, p * dy, -p * dx, none])
        np.add.at(res, cell, np.where(self.wall[:, None], wall, far))
        return res

    def iterate(self):
        old = self.q
        for _ in range(2):
            q, d = self.q, self.cells.side
            u, v = q[:, 1] / q[:, 0], q[:, 2] / q[:, 0]
            c = np.sqrt(1.4 * pressure(q) / q[:, 0])
            speed = np.abs(u[:, None] * d[..., 1] - v[:, None] * d[..., 0])
            adt = (speed + c[:, None] * np.hypot(d[..., 0], d[..., 1])).sum(axis=1) / 0.9
            change = self.residual(adt) / adt[:, None]
            self.q = old - change
        return float(np.sqrt((change**2).sum() / len(old)))


def test_whole_arrays_give_the_same(small):
    theirs = WholeArrays(small)
    ours = Airfoil(small, "hierarchical")
    for rms in ours.steps(20):
        assert rms == pytest.approx(theirs.iterate(), rel=1e-11)
    np.testing.assert_allclose(ours.dats["q"], theirs.q, rtol=1e-12, atol=1e-13)


def test_a_hundred_iterations(small):
    """A stored value, which the whole arrays gave too."""
    *_, last = Airfoil(small, "hierarchical").steps(100)
    assert f"{last:.5e}" == "1.44069e-04"


def test_the_free_stream_stays_where_it_meets_no_wall(small):
    """A closed cell in a uniform flow gets as much as it gives."""
    flow = Airfoil(small, "hierarchical")
    flow.dats["adt"][:] = 1.0
    flow.loops["res_calc"](**flow._given["res_calc"])
    flow.dats["bound"] = np.full_like(flow.dats["bound"], 2)
    given = {**flow._given["bres_calc"], "bound": flow.dats["bound"]}
    flow.loops["bres_calc"](**given)
    np.testing.assert_allclose(flow.dats["res"], 0, atol=1e-13)
