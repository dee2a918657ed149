"""Conjugate gradients with two preconditioners, as an example of products [R14 3.3].

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
    matrix : CsrMatrix or LocalMatrices

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
        self._inverse = _on_device_of(matrix, _inverse_diagonal(matrix))

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


def _on_device_of(matrix: Store, values: Vector) -> Any:
    """A vector on the device of the values of a matrix."""
    if matrix.on_gpu:
        return current().array(values)
    return values


class ColouredSsor:
    """Symmetric Gauss-Seidel by colours [R14 Algorithm 6].

    Rows of a colour, which are not coupled to each other, are taken at once.

    Parameters
    ----------
    matrix : CsrMatrix
        With a symmetric pattern; runs on a GPU where its values lie on one.
    colour : (rows,) integers or None
        The colour of each row; None for first-fit colours in the order of the rows.

    Raises
    ------
    MeshprepError
        For a zero on the diagonal, rows of a colour that are coupled, and stores other than
        a CsrMatrix: sweeps need whole rows.

    Notes
    -----
    A call takes the work of two products. The result does not depend on the threads.
    """

    def __init__(
        self, matrix: CsrMatrix, colour: NDArray[np.integer] | None = None
    ) -> None:
        """Sort the rows by colour; parameters and errors are those of the class.

        Notes
        -----
        O(nonzeros), and O(rows log rows) for the order. Code is compiled in the first call.
        """
        check_matrix(matrix)
        if not isinstance(matrix, CsrMatrix):
            raise MeshprepError(
                f"sweeps need whole rows, which {type(matrix).__name__} has not: give "
                "CsrMatrix.from_scipy(matrix.to_scipy()), or take Jacobi"
            )
        if matrix.shape[0] != matrix.shape[1]:
            raise MeshprepError(
                f"sweeps need a square matrix, not one of shape {matrix.shape}: on ranks "
                "take Jacobi"
            )
        # Rows of a colour are not coupled, so that threads take them at once.
        if colour is None:
            from ..kernel.colouring import first_fit_rows

            colour = first_fit_rows(matrix.row_ptr, matrix.columns)
        _check_colours(matrix, colour)
        self.colour = colour
        self._matrix = matrix
        inverse = _inverse_diagonal(matrix)
        self._inverse = _on_device_of(matrix, inverse)
        # On a GPU a launch runs a colour.
        if matrix.on_gpu:
            from .cuda_products import DeviceProduct, sweep_program

            self._sweeps_on_gpu = []
            for backward in (False, True):
                sweep = sweep_program(matrix, colour, inverse, backward=backward)
                self._sweeps_on_gpu.append(DeviceProduct(sweep, matrix.values))
            return
        # On cores a phase of the schedule runs a colour.
        order = np.argsort(colour, kind="stable").astype(np.int32)
        arrays = {
            "rows": read_only(order),
            "inverse": read_only(self._inverse),
            **csr_arrays(matrix),
        }
        first_to_last, last_to_first = _sweep_schedules(np.bincount(colour, minlength=1))
        self._forward = MatrixCode(kernels.sweep_rows, arrays, first_to_last)
        self._backward = MatrixCode(kernels.sweep_rows, arrays, last_to_first)

    def __reduce__(self) -> Any:
        """Makes a preconditioner of the copied matrix."""
        return ColouredSsor, (self._matrix, self.colour)

    @property
    def colours(self) -> int:
        """The number of colours."""
        return int(self.colour.max(initial=-1)) + 1

    def __call__(self, r: Vector) -> Vector:
        """An approximate solution of ``A z = r``: a sweep forward, and one backward.

        Parameters
        ----------
        r : (rows,) array
            Of the type of the values; of CuPy where they lie on a GPU.

        Returns
        -------
        (rows,) array
            In new memory. O(nonzeros).

        Raises
        ------
        MeshprepError
            For an array of another size, type or side.
        """
        if self._matrix.on_gpu:
            forward, backward = self._sweeps_on_gpu
            check_place("r", r, True)
            z: Vector = backward(forward(r * self._inverse))
            return z
        check_vector(name="r", array=r, size=self._inverse.size, dtype=self._inverse.dtype)
        y = np.zeros_like(r)
        z = np.zeros_like(r)
        # Rows of later colours are zero, so that whole rows can be summed.
        self._forward.run(r * self._inverse, y)
        self._backward.run(y, z)
        return z


def _sweep_schedules(sizes: NDArray[np.integer]) -> tuple[Schedule, Schedule]:
    """The rows by colour, forward and backward; ``sizes`` are the rows of each colour."""
    # Cut the rows of each colour into pieces, with a phase for each colour.
    offset = [0]
    phases = [0]
    start = 0
    for size in sizes.tolist():
        offset += [*range(start + SWEEP_ROWS, start + size, SWEEP_ROWS), start + size]
        phases.append(len(offset) - 1)
        start += size
    ends = np.array(offset, np.int64)
    forward_phases = np.array(phases, np.int64)
    backward_phases = (forward_phases[-1] - forward_phases)[::-1]
    forward = in_phases(ends[:-1], ends[1:], forward_phases)
    backward = in_phases(ends[:-1][::-1], ends[1:][::-1], backward_phases)
    return Schedule(forward), Schedule(backward)


def _inverse_diagonal(matrix: Store) -> Vector:
    """One over the diagonal; raises MeshprepError for a zero."""
    on_diagonal = diagonal(matrix)
    if not on_diagonal.all():
        row = int(np.argmin(on_diagonal != 0))
        raise MeshprepError(
            f"the diagonal of row {row} is zero: this preconditioner divides by it"
        )
    inverse: Vector = 1 / on_diagonal
    return inverse


def _check_colours(matrix: CsrMatrix, colour: NDArray[np.integer]) -> None:
    """Raise MeshprepError where rows of a colour are coupled."""
    rows = matrix.shape[0]
    if colour.shape != (rows,):
        raise MeshprepError(f"a matrix of shape {matrix.shape} has {colour.shape} colours")
    row = rows_of_entries(matrix.row_ptr)
    clash = (colour[matrix.columns] == colour[row]) & (matrix.columns != row)
    if clash.any():
        first = int(np.argmax(clash))
        raise MeshprepError(
            f"rows {row[first]} and {matrix.columns[first]} see each other and have one "
            "colour: give other colours, or a matrix with a symmetric pattern"
        )
