"""Conjugate gradients with two preconditioners, to show what products are for [R14 3.3].

For real use there are scipy, PETSc and AMGX, which take a CSR matrix as it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.strategies import Schedule, in_phases
from ..cuda.device import current
from ..errors import MeshprepError, check_integer, check_number
from ..types.maps import on_device, read_only, rows_of_entries
from . import kernels
from .code import MatrixCode
from .products import check_place, check_vector, csr_arrays
from .stores import CsrMatrix, Store, check_matrix, check_store

Vector = NDArray[Any]
# Rows of one colour that a thread takes at a time.
SWEEP_ROWS = 1024


@dataclass(frozen=True, eq=False)
class CgSolution:
    """What conjugate gradients found."""

    x: Vector  # (n,)
    iterations: int  # products that were taken
    residual: float  # norm of the last residual, over that of the right side


def cg(
    product: Callable[[Vector], Vector],
    b: Vector,
    precondition: Callable[[Vector], Vector] | None = None,
    *,
    tolerance: float = 1e-8,
    most: int = 10_000,
    dot: Callable[[Vector, Vector], Any] = np.dot,
) -> CgSolution:
    """Solve ``A x = b`` from ``x = 0`` by conjugate gradients [R14 Algorithm 5].

    Parameters
    ----------
    product : function
        ``A p`` of a vector, such as a Product; A is symmetric and positive definite.
    b : (n,) array
        NumPy's, or CuPy's where the product takes these.
    precondition : function or None
        An approximate solution of ``A z = r``, such as Jacobi or ColouredSsor.
    tolerance : float
        Of the residual's norm over that of b.
    most : int
        Iterations.
    dot : function
        The scalar product; on ranks that of ``dot_on``.

    Returns
    -------
    CgSolution

    Raises
    ------
    MeshprepError
        Where A is not positive definite, after ``most`` iterations, and where the squares of b
        leave its dtype.

    Notes
    -----
    b is divided by a power of 2 near its norm, which changes no bit of what is found, so that the
    squares of small residuals do not vanish.
    """
    check_number("tolerance", tolerance)
    check_integer("most", most, 0)
    if b.dtype.kind != "f":
        raise MeshprepError(f"b is {b.dtype}, must be f4 or f8: pass b.astype(float)")
    scale, size = _norm(b, dot)
    x, r = np.zeros_like(b), b / b.dtype.type(scale)
    wanted = tolerance * size
    p, old, iterations = np.zeros_like(b), 1.0, 0
    while not (norm := float(dot(r, r)) ** 0.5) <= wanted:
        if iterations == most:
            raise MeshprepError(
                f"no solution after {most} iterations: the residual is {scale * norm:.2e}, must be "
                f"{scale * wanted:.2e}; take a preconditioner, or more iterations"
            )
        z = r if precondition is None else precondition(r)
        new = float(dot(r, z))
        p = z + (new / old if iterations else 0.0) * p
        step = product(p)
        curvature = float(dot(p, step))
        if not curvature > 0:
            raise MeshprepError(
                f"p.Ap is {curvature:.2e} in iteration {iterations + 1}: conjugate gradients need "
                "a matrix that is symmetric and positive definite"
            )
        alpha = new / curvature
        x += alpha * p
        r -= alpha * step
        old, iterations = new, iterations + 1
    x *= b.dtype.type(scale)
    return CgSolution(x, iterations, norm / size if size else 0.0)


def _norm(b: Vector, dot: Callable[[Vector, Vector], Any]) -> tuple[float, float]:
    """The norm of b as a power of 2 times a number from 0.5 to 1; (1, 0) where b is zero.

    Raises MeshprepError where its square is no number of its dtype.
    """
    square = float(dot(b, b))
    if square == 0:
        filled = (b != 0).astype(b.dtype)
        square = np.nan if float(dot(filled, filled)) else 0.0
    if not np.isfinite(square):
        raise MeshprepError(
            f"the squares of b add up to no number of {b.dtype}: leave out nan and inf, divide b "
            "by its largest value, or pass b.astype(float)"
        )
    part, exponent = math.frexp(square**0.5)
    return math.ldexp(1.0, exponent) if square else 1.0, part


def diagonal(matrix: Store) -> Vector:
    """The diagonal of a matrix, whatever its store, on the host.

    O(entries); O(elements x n) for local ones.
    """
    matrix = matrix.to_host()
    if isinstance(matrix, CsrMatrix):
        row = rows_of_entries(matrix.row_ptr)
        on = matrix.columns == row
        rows, found = row[on].astype(np.int64), matrix.values[on]
    else:
        n = matrix.dofs.shape[1]
        step = np.arange(n, 0, -1) if matrix.symmetric else np.full(n, n + 1)
        at = np.concatenate([[0], np.cumsum(step)[:-1]])
        has_row = matrix.dofs >= 0
        rows, found = matrix.dofs[has_row].astype(np.int64), matrix.values[:, at][has_row]
    total = np.zeros(matrix.shape[0], matrix.values.dtype)
    np.add.at(total, rows, found)
    return total


class Jacobi:
    """Division by the diagonal, where the values of the matrix lie.

    Parameters
    ----------
    matrix : CsrMatrix or LocalMatrices

    Raises
    ------
    MeshprepError
        For a zero on the diagonal.
    """

    def __init__(self, matrix: Store) -> None:
        check_store(matrix)
        self._inverse = _beside(matrix, _inverse(matrix))

    def __call__(self, r: Vector) -> Vector:
        check_place("r", r, on_device(self._inverse))
        z: Vector = r * self._inverse
        return z


def _beside(matrix: Store, values: Vector) -> Any:
    """A vector, where the values of the matrix lie."""
    return current().array(values) if matrix.on_gpu else values


class ColouredSsor:
    """Symmetric Gauss-Seidel in the order of colours: rows of one colour at once [R14 Algorithm 6].

    Parameters
    ----------
    matrix : CsrMatrix
        With a symmetric pattern; on a GPU where its values lie there.
    colour : (rows,) integers or None
        None for first-fit colours in the order of the rows.

    Raises
    ------
    MeshprepError
        For a zero on the diagonal, rows of one colour that see each other, and stores other than a
        CsrMatrix: sweeps need whole rows.

    Notes
    -----
    Two products' work a call. The result does not depend on the threads.
    """

    def __init__(self, matrix: CsrMatrix, colour: NDArray[np.integer] | None = None) -> None:
        check_matrix(matrix)
        if not isinstance(matrix, CsrMatrix):
            raise MeshprepError(
                f"sweeps need whole rows, which {type(matrix).__name__} has not: give "
                "CsrMatrix.from_scipy(matrix.to_scipy()), or take Jacobi"
            )
        if matrix.shape[0] != matrix.shape[1]:
            raise MeshprepError(
                f"sweeps need a square matrix, not one of shape {matrix.shape}: on ranks take "
                "Jacobi"
            )
        if colour is None:
            from ..kernel.colouring import first_fit_rows

            colour = first_fit_rows(matrix.row_ptr, matrix.columns)
        _check_colours(matrix, colour)
        self.colour = colour
        self._matrix = matrix
        inverse = _inverse(matrix)
        self._inverse = _beside(matrix, inverse)
        if matrix.on_gpu:
            from .cuda_products import DeviceProduct, sweep_program

            self._there = [
                DeviceProduct(sweep_program(matrix, colour, inverse, backward=b), matrix.values)
                for b in (False, True)
            ]
            return
        order = np.argsort(colour, kind="stable").astype(np.int32)
        arrays = {"rows": order, "inverse": self._inverse}
        arrays = {name: read_only(a) for name, a in arrays.items()} | csr_arrays(matrix)
        sizes = np.bincount(colour, minlength=1)
        self._forward, self._backward = (
            MatrixCode(kernels.sweep_rows, arrays, made) for made in _sweeps(sizes)
        )

    def __reduce__(self) -> Any:
        """A copy works on the copy of the matrix."""
        return ColouredSsor, (self._matrix, self.colour)

    @property
    def colours(self) -> int:
        """How many there are."""
        return int(self.colour.max(initial=-1)) + 1

    def __call__(self, r: Vector) -> Vector:
        if self._matrix.on_gpu:
            forward, backward = self._there
            check_place("r", r, True)
            z: Vector = backward(forward(r * self._inverse))
            return z
        check_vector("r", r, self._inverse.size, self._inverse.dtype)
        y, z = np.zeros_like(r), np.zeros_like(r)
        # Rows that are not yet done are zero, so that whole rows can be summed.
        self._forward.run(r * self._inverse, y)
        self._backward.run(y, z)
        return z


def _sweeps(sizes: NDArray[np.integer]) -> tuple[Schedule, Schedule]:
    """The rows of one colour after the other, and the other way round."""
    offset, phases = [0], [0]
    for start, size in zip((np.cumsum(sizes) - sizes).tolist(), sizes.tolist(), strict=True):
        offset += [*range(start + SWEEP_ROWS, start + size, SWEEP_ROWS), start + size]
        phases.append(len(offset) - 1)
    ends, forward = np.array(offset, np.int64), np.array(phases, np.int64)
    backward = (forward[-1] - forward)[::-1]
    start, stop = ends[:-1], ends[1:]
    return (
        Schedule(in_phases(start, stop, forward)),
        Schedule(in_phases(start[::-1], stop[::-1], backward)),
    )


def _inverse(matrix: Store) -> Vector:
    found = diagonal(matrix)
    if not found.all():
        row = int(np.argmin(found != 0))
        raise MeshprepError(f"the diagonal of row {row} is zero: this preconditioner divides by it")
    inverse: Vector = 1 / found
    return inverse


def _check_colours(matrix: CsrMatrix, colour: NDArray[np.integer]) -> None:
    rows = matrix.shape[0]
    if colour.shape != (rows,):
        raise MeshprepError(f"a matrix of shape {matrix.shape} has {colour.shape} colours")
    row = rows_of_entries(matrix.row_ptr)
    clash = (colour[matrix.columns] == colour[row]) & (matrix.columns != row)
    if clash.any():
        at = int(np.argmax(clash))
        raise MeshprepError(
            f"rows {row[at]} and {matrix.columns[at]} see each other and have one colour: give "
            "other colours, or a matrix with a symmetric pattern"
        )
