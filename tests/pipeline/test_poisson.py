"""Poisson's equation on dofs of every degree: the error falls as theory has it [R14 3.1, 4.2.1].

-div grad u = f on the unit square, u = 0 on its boundary, f = sin(pi x) sin(pi y). All dofs come
from the plan; the matrices of the elements are NumPy's.
"""

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.mesh.cells import SHAPES
from meshprep.pipeline.steps import prepare
from meshprep.topology.dofs import local_points
from meshprep_runtime.matrix import BatchSums

# Squares a side, the error with as many and with twice as many, by an independent program that
# integrates the error, too, with degree + 1 points an axis.
QUADS = {
    1: (16, 8.13e-05, 2.03e-05),
    2: (8, 1.04e-05, 1.30e-06),
    3: (8, 2.26e-07, 1.42e-08),
}
QUADS |= {4: (4, 1.32e-07, 4.17e-09)}


def exponents(kind, degree):
    """Of the monomials that span the element."""
    pairs = np.indices((degree + 1, degree + 1)).reshape(2, -1).T
    return pairs if kind == "quad" else pairs[pairs.sum(axis=1) <= degree]


def basis(kind, degree, at):
    """Values (points, dofs) and gradients (points, dofs, 2) of the nodal basis."""
    powers = exponents(kind, degree)
    points = local_points(SHAPES[kind], degree) / degree
    nodal = np.linalg.inv(np.prod(points[:, None] ** powers, axis=2))
    less = np.maximum(powers - 1, 0)
    by_x = powers[:, 0] * at[:, None, 0] ** less[:, 0] * at[:, None, 1] ** powers[:, 1]
    by_y = powers[:, 1] * at[:, None, 0] ** powers[:, 0] * at[:, None, 1] ** less[:, 1]
    values = np.prod(at[:, None] ** powers, axis=2) @ nodal
    return values, np.stack([by_x @ nodal, by_y @ nodal], axis=2)


def quadrature(kind, n):
    """Points in the reference cell, and weights; a triangle's by collapsing a square."""
    x, w = np.polynomial.legendre.leggauss(n)
    x, w = (x + 1) / 2, w / 2
    u, v = (a.ravel() for a in np.meshgrid(x, x))
    weight = np.outer(w, w).ravel()
    if kind == "quad":
        return np.stack([u, v], axis=1), weight
    return np.stack([u * (1 - v), v], axis=1), weight * (1 - v)


def integrated(kind, degree, corners):
    """Matrices, loads and, for the error, weights, values and places of all quadrature points."""
    at, weight = quadrature(kind, degree + (1 if kind == "quad" else 2))
    values, gradients = basis(kind, degree, at)
    shapes, slopes = basis(kind, 1, at)
    where = np.einsum("qc,ecd->eqd", shapes, corners)
    jacobian = np.einsum("qcr,ecd->eqdr", slopes, corners)
    det = np.abs(np.linalg.det(jacobian)) * weight
    mapped = np.einsum("qir,eqrd->eqid", gradients, np.linalg.inv(jacobian))
    matrices = np.einsum("eq,eqid,eqjd->eij", det, mapped, mapped)
    source = np.sin(np.pi * where[..., 0]) * np.sin(np.pi * where[..., 1])
    return matrices, np.einsum("eq,eq,qi->ei", det, source, values), det, values, where


def error_of(kind, degree, n):
    """The error in L2 on n x n squares."""
    dofs = f"cells->dofs{degree}"
    args = [
        {"dat": "x", "map": "cells->nodes", "dim": 2},
        {"mat": "K", "rows": dofs, "columns": dofs, "access": "inc", "fixed": "boundary"},
    ]
    request = LoopRequest("poisson", {"over": "cells", "args": args}, "test")
    done = prepare(generate("box", nx=n, ny=n, nz=0, type=kind, shuffle=True), [request])
    plan, matrix = done.plan, done.plan.matrices["K"]
    corners = done.mesh.coordinates[plan.maps["cells->nodes"].table][:, :, :2]
    corners = corners / corners.max()
    matrices, loads, det, values, where = integrated(kind, degree, corners)
    sums = BatchSums(matrix.place["poisson"], matrix.columns.size)
    csr = matrix.csr()
    csr.values[:] = sums(matrices)
    table = plan.maps[dofs].table
    load = np.bincount(table.ravel(), loads.ravel(), plan.sizes[f"dofs{degree}"])
    free = matrix.row_of >= 0
    found = np.zeros(free.size)
    found[free] = spsolve(csr.to_scipy().tocsc(), load[free])
    exact = np.sin(np.pi * where[..., 0]) * np.sin(np.pi * where[..., 1]) / (2 * np.pi**2)
    return np.sqrt((det * (found[table] @ values.T - exact) ** 2).sum())


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_the_error_falls_with_the_degree(kind, degree):
    n, *wanted = QUADS[degree]
    found = [error_of(kind, degree, n), error_of(kind, degree, 2 * n)]
    order = np.log2(found[0] / found[1])
    assert order == pytest.approx(degree + 1, abs=0.1)
    if kind == "quad":
        assert found == pytest.approx(wanted, rel=0.005)
