"""Conjugate gradients and division by the diagonal, as an example of products [R14 3.3].

For real use there are scipy, PETSc and AMGX, which take a CSR matrix as it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cuda.device import current
from ..errors import MeshprepError, check_integer, check_number
from ..types.maps import on_device, rows_of_entries
from .products import check_place
from .stores import CsrMatrix, Ellpack, Store, check_store

Vector = NDArray[Any]


@dataclass(frozen=True, eq=False)
class CgSolution:
    """The result of conjugate gradients."""

    x: Vector  # (n,)
    iterations: int  # one product each
    residual: float  # norm of the last residual, over that of the right-hand side


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
        Returns ``A p`` of a vector, such as a Product; A is symmetric and positive
        definite.
    b : (n,) array
        Of NumPy, or of CuPy where the product takes such arrays.
    precondition : function or None
        Returns an approximate solution of ``A z = r``, such as Jacobi or ColouredSsor.
    tolerance : float
        The norm of the residual over that of b with which a solution is good enough.
    most : int
        Iterations, at most.
    dot : function
        The scalar product; on ranks that of ``dot_on``.

    Returns
    -------
    CgSolution

    Raises
    ------
    MeshprepError
        Where A is not positive definite, after ``most`` iterations, and where the squares
        of b leave its dtype.

    Notes
    -----
    b is divided by a power of 2 near its norm, so that the squares of small residuals do
    not vanish; that changes no bit of the result.
    """
    check_number("tolerance", tolerance)
    check_integer("most", most, 0)
    if b.dtype.kind != "f":
        raise MeshprepError(f"b is {b.dtype}, must be f4 or f8: pass b.astype(float)")
    # Scale b, and begin with x = 0, whose residual is b.
    scale, norm_of_b = _scaled_norm(b, dot)
    x = np.zeros_like(b)
    r = b / b.dtype.type(scale)
    goal = tolerance * norm_of_b
    p = np.zeros_like(b)
    old_rz = 1.0
    iterations = 0
    while not (norm := float(dot(r, r)) ** 0.5) <= goal:
        if iterations == most:
            raise MeshprepError(
                f"no solution after {most} iterations: the residual is {scale * norm:.2e}, "
                f"must be {scale * goal:.2e}; take a preconditioner, or more iterations"
            )
        # Make the new direction conjugate to the old ones: p_i A p_j = 0.
        z = r if precondition is None else precondition(r)
        new_rz = float(dot(r, z))
        p = z + (new_rz / old_rz if iterations else 0.0) * p
        # Go along p to where the error, measured by A, is the least.
        step = product(p)
        curvature = float(dot(p, step))
        if not curvature > 0:
            raise MeshprepError(
                f"p.Ap is {curvature:.2e} in iteration {iterations + 1}: conjugate "
                "gradients need a matrix that is symmetric and positive definite"
            )
        alpha = new_rz / curvature
        x += alpha * p
        r -= alpha * step
        old_rz = new_rz
        iterations += 1
    x *= b.dtype.type(scale)
    return CgSolution(x, iterations, norm / norm_of_b if norm_of_b else 0.0)


def _scaled_norm(b: Vector, dot: Callable[[Vector, Vector], Any]) -> tuple[float, float]:
    """The norm of b as (power of 2, number from 0.5 to 1); (1, 0) where b is zero.

    Raises MeshprepError where the squares of b overflow or vanish in its dtype.
    """
    square = float(dot(b, b))
    if square == 0:
        # Tell zeros from numbers whose squares vanish.
        filled = (b != 0).astype(b.dtype)
        square = np.nan if float(dot(filled, filled)) else 0.0
    if not np.isfinite(square):
        raise MeshprepError(
            f"the squares of b add up to no number of {b.dtype}: leave out nan and inf, "
            "divide b by its largest value, or pass b.astype(float)"
        )
    part, exponent = math.frexp(square**0.5)
    return math.ldexp(1.0, exponent) if square else 1.0, part


def diagonal(matrix: Store) -> Vector:
    """The diagonal of a matrix of any store, on the host.

    O(entries); O(elements x n) for matrices of elements.
    """
    matrix = matrix.to_host()
    if isinstance(matrix, CsrMatrix):
        row = rows_of_entries(matrix.row_ptr)
        on = matrix.columns == row
        rows = row[on].astype(np.int64)
        entries = matrix.values[on]
    elif isinstance(matrix, Ellpack):
        entry, rows = np.nonzero(matrix.columns == np.arange(matrix.shape[0]))
        entries = matrix.values[entry, rows]
    else:
        # The places of the diagonal in the matrix of an element.
        n = matrix.dofs.shape[1]
        if matrix.symmetric:
            step = np.arange(n, 0, -1)
        else:
            step = np.full(n, n + 1)
        places = np.concatenate([[0], np.cumsum(step)[:-1]])
        has_row = matrix.dofs >= 0
        rows = matrix.dofs[has_row].astype(np.int64)
        entries = matrix.values[:, places][has_row]
    # Dofs of several elements get the sum of their entries.
    total = np.zeros(matrix.shape[0], matrix.values.dtype)
    np.add.at(total, rows, entries)
    return total


class Jacobi:
    """Division by the diagonal, where the values of the matrix lie.

    Parameters
    ----------
    matrix : CsrMatrix, Ellpack or LocalMatrices

    Raises
    ------
    MeshprepError
        For a zero on the diagonal.
    """

    def __init__(self, matrix: Store) -> None:
        """Invert the diagonal; parameters and errors are those of the class.

        Notes
        -----
        O(nonzeros).
        """
        check_store(matrix)
        self._inverse = on_device_of(matrix, inverse_diagonal(matrix))

    def __call__(self, r: Vector) -> Vector:
        """The quotient of a residual and the diagonal.

        Parameters
        ----------
        r : (rows,) array
            Of NumPy; of CuPy where the values of the matrix lie on a GPU.

        Returns
        -------
        (rows,) array
            In new memory. O(rows).

        Raises
        ------
        MeshprepError
            For an array on the other side.
        """
        check_place("r", r, on_device(self._inverse))
        z: Vector = r * self._inverse
        return z


def on_device_of(matrix: Store, values: Vector) -> Any:
    """A vector on the device of the values of a matrix."""
    if matrix.on_gpu:
        return current().array(values)
    return values


def inverse_diagonal(matrix: Store) -> Vector:
    """One over the diagonal; raises MeshprepError for a zero."""
    on_diagonal = diagonal(matrix)
    if not on_diagonal.all():
        row = int(np.argmin(on_diagonal != 0))
        raise MeshprepError(
            f"the diagonal of row {row} is zero: this preconditioner divides by it"
        )
    inverse: Vector = 1 / on_diagonal
    return inverse
