"""Poisson's equation on a square of perturbed quads, by conjugate gradients.

    python examples/poisson.py --degree 2 --cells 64 [--device gpu]

Lagrange elements of degree 1 to 4; the boundary's dofs have no row. Prints, for each
preconditioner, iterations, seconds and the error of the solution. The vertices are perturbed since
the right side is an eigenvector on a uniform grid, where conjugate gradients end at once.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meshprep.mesh import Mesh
from meshprep.pipeline.steps import Options, Prepared, prepare
from meshprep_runtime.cuda.device import Device, current
from meshprep_runtime.matrix import CsrMatrix, LocalMatrices, to_gpu
from meshprep_runtime.matrix.products import Product
from meshprep_runtime.matrix.solve import CgSolution, Jacobi, cg
from meshprep_runtime.matrix.ssor import ColouredSsor

CELLS_TO_DOFS = "cells->dofs"


@dataclass(frozen=True, eq=False)
class Square:
    """n x n quads with Lagrange elements of one degree.

    ``vertices`` has the four corners of each cell (cells, 4, 2), ``dofs`` its dofs (cells, m), and
    ``row`` the row of each dof, -1 on the boundary.
    """

    degree: int
    vertices: np.ndarray
    dofs: np.ndarray
    row: np.ndarray

    @property
    def n_rows(self) -> int:
        """Free dofs."""
        return int(self.row.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class ReferenceElement:
    """Values and gradients at quadrature points, of the dofs and of the bilinear map."""

    weights: np.ndarray  # (q,)
    phi: np.ndarray  # (q, m)
    gradient: np.ndarray  # (q, 2, m)
    corners: np.ndarray  # (q, 4)
    corners_gradient: np.ndarray  # (q, 2, 4)


@dataclass(frozen=True, eq=False)
class Integrated:
    """Matrices (cells, m, m) and loads (cells, m), and what the error is measured with."""

    square: Square
    matrices: np.ndarray
    loads: np.ndarray
    weights: np.ndarray  # (cells, q)
    points: np.ndarray  # (cells, q, 2)

    def local(self) -> LocalMatrices:
        """The matrices as a store."""
        cells, m = self.square.dofs.shape
        rows = self.square.row[self.square.dofs].astype(np.int32)
        return LocalMatrices(
            self.matrices.reshape(cells, m * m), rows, False, self.square.n_rows
        )

    def csr(self) -> CsrMatrix:
        """The matrix, added up."""
        made = self.local().to_scipy()
        return CsrMatrix(made.indptr, made.indices, made.data)

    def load(self) -> np.ndarray:
        """The right side."""
        rows = self.square.row[self.square.dofs]
        free = rows >= 0
        return np.bincount(rows[free], self.loads[free], minlength=self.square.n_rows)

    def error(self, x: np.ndarray) -> float:
        """The L2 norm of what is wrong with a solution."""
        rows = self.square.row[self.square.dofs]
        at_dofs = np.where(rows >= 0, np.append(x, 0.0)[rows], 0.0)
        found = at_dofs @ reference(self.square.degree).phi.T
        exact = source(self.points) / (2 * np.pi**2)
        return float(np.sqrt((self.weights * (found - exact) ** 2).sum()))


def source(points: np.ndarray) -> np.ndarray:
    """The right side f; the solution is f / (2 pi^2)."""
    return np.sin(np.pi * points[..., 0]) * np.sin(np.pi * points[..., 1])


def square(n: int, degree: int, perturbed: float = 0.25, seed: int = 0) -> Square:
    """The unit square in n x n quads, inner vertices moved by up to ``perturbed`` cells."""
    line = np.linspace(0, 1, n + 1)
    place = np.stack(np.meshgrid(line, line, indexing="ij"))
    moved = (
        np.random.default_rng(seed).uniform(-perturbed, perturbed, (2, n + 1, n + 1)) / n
    )
    place[:, 1:-1, 1:-1] += moved[:, 1:-1, 1:-1]
    cell = np.arange(n)
    corner = [place[:, a : a + n, b : b + n] for a in (0, 1) for b in (0, 1)]
    vertices = np.stack(corner, axis=-1).transpose(1, 2, 3, 0).reshape(n * n, 4, 2)
    side = n * degree + 1
    along = cell[:, None] * degree + np.arange(degree + 1)
    dofs = along[:, None, :, None] * side + along[None, :, None, :]
    inside = np.zeros((side, side), bool)
    inside[1:-1, 1:-1] = True
    row = np.where(inside.ravel(), np.cumsum(inside.ravel()) - 1, -1)
    return Square(degree, vertices, dofs.reshape(n * n, -1).astype(np.int32), row)


def reference(degree: int) -> ReferenceElement:
    """Lagrange elements with evenly spaced nodes, and as many Gauss points."""
    points, weights = np.polynomial.legendre.leggauss(degree + 1)
    values, slopes = _lagrange(degree, points)
    linear, linear_slopes = _lagrange(1, points)
    return ReferenceElement(
        np.outer(weights, weights).ravel(),
        np.kron(values, values),
        np.stack([np.kron(slopes, values), np.kron(values, slopes)], axis=1),
        np.kron(linear, linear),
        np.stack([np.kron(linear_slopes, linear), np.kron(linear, linear_slopes)], axis=1),
    )


def _lagrange(degree: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes of the polynomials that are 1 at one node each."""
    nodes = np.linspace(-1, 1, degree + 1)
    coefficients = np.linalg.inv(np.polynomial.polynomial.polyvander(nodes, degree))
    powers = np.polynomial.polynomial.polyvander(points, degree)
    raised = np.zeros_like(powers)
    raised[:, 1:] = powers[:, :-1] * np.arange(1, degree + 1)
    return powers @ coefficients, raised @ coefficients


def integrate(square: Square) -> Integrated:
    """Matrices and loads of all cells, point by point."""
    element = reference(square.degree)
    cells, m = square.dofs.shape
    matrices, loads = np.zeros((cells, m, m)), np.zeros((cells, m))
    points = element.corners @ square.vertices
    weights = np.empty((cells, element.weights.size))
    for q, weight in enumerate(element.weights):
        jacobian = element.corners_gradient[q] @ square.vertices
        weights[:, q] = weight * np.linalg.det(jacobian)
        gradient = np.linalg.solve(
            jacobian, np.broadcast_to(element.gradient[q], (cells, 2, m))
        )
        matrices += weights[:, q, None, None] * (gradient.transpose(0, 2, 1) @ gradient)
        loads += (weights[:, q] * source(points[:, q]))[:, None] * element.phi[q]
    return Integrated(square, matrices, loads, weights, points)


def prepared_square(
    square: Square, block_size: int = 1024, target: str = "cpu"
) -> tuple[Prepared, Square]:
    """A plan of the loop that adds to the dofs, and the square in its numbering."""
    sets = {"cells": len(square.dofs), "dofs": square.row.size}
    mesh = Mesh(sets, {CELLS_TO_DOFS: square.dofs})
    made = prepare(mesh, [CELLS_TO_DOFS], Options(block_size=block_size, target=target))
    cell, dof = (made.plan.ordering[name].new_to_old for name in ("cells", "dofs"))
    free = square.row[dof] >= 0
    row = np.where(free, np.cumsum(free) - 1, -1)
    table = made.plan.maps[CELLS_TO_DOFS].table
    return made, Square(square.degree, square.vertices[cell], table, row)


def solutions(
    square: Square, device: Device | None = None
) -> Iterator[tuple[str, CgSolution]]:
    """What each product and preconditioner finds, in the plan's numbering; on a device, there."""
    size, target = (1024, "cpu") if device is None else (256, "gpu")
    prepared, ordered = prepared_square(square, size, target)
    problem = integrate(ordered)
    matrix, local, load = problem.csr(), problem.local(), problem.load()
    if device is not None:
        matrix, local, load = to_gpu(matrix), to_gpu(local), device.array(load)
    by_rows, by_cells = Product(matrix), Product(local, prepared.plan[CELLS_TO_DOFS])
    ssor, jacobi = ColouredSsor(matrix), Jacobi(matrix)
    print(f"{load.size} rows, {matrix.values.size} nonzeros, {ssor.colours} colours")
    for product, name, precondition in (
        (by_rows, "CSR, none", None),
        (by_rows, "CSR, Jacobi", jacobi),
        (by_rows, "CSR, coloured SSOR", ssor),
        (by_cells, "local matrices, Jacobi", jacobi),
        (by_cells, "local matrices, coloured SSOR", ColouredSsor(local)),
    ):
        start = time.perf_counter()
        found = cg(product, load, precondition)
        seconds = time.perf_counter() - start
        error = problem.error(found.x if device is None else found.x.get())
        print(
            f"{name:29} {found.iterations:5} iterations {seconds:8.3f} s  error {error:.2e}"
        )
        yield name, found


def main() -> None:
    """Solve and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--degree", type=int, default=2, choices=(1, 2, 3, 4))
    parser.add_argument("--cells", type=int, default=64, help="along a side")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    given = parser.parse_args()
    device = current() if given.device == "gpu" else None
    list(solutions(square(given.cells, given.degree), device))


if __name__ == "__main__":
    main()
