"""Symmetric sweeps over the rows of a matrix, colour by colour [R14 3.3, 4.4.6]."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.strategies import Schedule, in_phases
from ..errors import MeshprepError
from ..types.maps import distinct, offsets_of, read_only, rows_of_entries
from . import kernels
from .code import MatrixCode
from .products import check_place, check_vector, csr_arrays
from .solve import inverse_diagonal, on_device_of
from .stores import (
    CsrMatrix,
    Ellpack,
    LocalMatrices,
    check_matrix,
    entries_of_rows,
    rows_of_elements,
)

Vector = NDArray[Any]
# Rows of one colour that a thread takes at a time.
SWEEP_ROWS = 1024


class ColouredSsor:
    """Symmetric Gauss-Seidel by colours [R14 Algorithm 6].

    Rows of a colour, which are not coupled to each other, are taken at once.

    Parameters
    ----------
    matrix : CsrMatrix or LocalMatrices
        With a symmetric pattern; runs on a GPU where its values lie on one. Matrices of
        elements are not added up: a row takes its entries from each of its elements.
    colour : (rows,) integers or None
        The colour of each row; None for first-fit colours in the order of the rows.

    Raises
    ------
    MeshprepError
        For a zero on the diagonal, and rows of a colour that are coupled;
        for an Ellpack.

    Notes
    -----
    A call takes the work of two products. The result does not depend on the threads. Both
    stores of a matrix have the same colours, and so the same iterations.
    """

    def __init__(
        self, matrix: CsrMatrix | LocalMatrices, colour: NDArray[np.integer] | None = None
    ) -> None:
        """Sort the rows by colour; parameters and errors are those of the class.

        Notes
        -----
        O(nonzeros), and O(rows log rows) for the order; of matrices of elements
        O(entries log entries), for the rows that are coupled. Code is compiled in the first
        call.
        """
        check_matrix(matrix)
        if isinstance(matrix, Ellpack):
            raise MeshprepError(
                "sweeps over the rows of an Ellpack are slow, since rows of a colour do "
                "not lie side by side: give CsrMatrix.from_scipy(matrix.to_scipy())"
            )
        if matrix.shape[0] != matrix.shape[1]:
            raise MeshprepError(
                f"sweeps need a square matrix, not one of shape {matrix.shape}: on ranks "
                "take PartSsor"
            )
        # Rows of a colour are not coupled, so that threads take them at once.
        row_ptr, columns = _coupled_rows(matrix)
        if colour is None:
            from ..kernel.colouring import first_fit_rows

            colour = first_fit_rows(row_ptr, columns)
        if colour.shape != matrix.shape[:1]:
            raise MeshprepError(
                f"a matrix of shape {matrix.shape} has {colour.shape} colours"
            )
        check_colours(row_ptr=row_ptr, columns=columns, colour=colour)
        self.colour = colour
        self._matrix = matrix
        inverse = inverse_diagonal(matrix)
        self._inverse = on_device_of(matrix, inverse)
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
        arrays = {"rows": read_only(order), "inverse": read_only(self._inverse)}
        kernel: Callable[..., None]
        if isinstance(matrix, CsrMatrix):
            kernel = kernels.sweep_rows
            arrays.update(csr_arrays(matrix))
        else:
            kernel = kernels.sweep_local_rows
            arrays.update(_local_arrays(matrix))
        first_to_last, last_to_first = _sweep_schedules(np.bincount(colour, minlength=1))
        self._forward = MatrixCode(kernel, arrays, first_to_last)
        self._backward = MatrixCode(kernel, arrays, last_to_first)

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


def _local_arrays(matrix: LocalMatrices) -> dict[str, NDArray[Any]]:
    """The arrays of matrices of elements, as the sweep over rows takes them."""
    rows = rows_of_elements(matrix)
    return {
        "offset": read_only(rows.offset),
        "element": read_only(rows.element),
        "local_row": read_only(rows.local_row),
        "entry": read_only(entries_of_rows(matrix)),
        "dofs": read_only(matrix.dofs),
        "values": read_only(matrix.values),
    }


def _coupled_rows(
    matrix: CsrMatrix | LocalMatrices,
) -> tuple[NDArray[np.integer], NDArray[np.int32]]:
    """The rows that each row is coupled to, as offsets and columns."""
    if isinstance(matrix, CsrMatrix):
        return matrix.row_ptr, matrix.columns
    # Two dofs are coupled where they have a common element, as in the pattern of a plan.
    n_rows = max(matrix.n_rows, 1)
    row = matrix.dofs[:, :, None].astype(np.int64)
    column = matrix.dofs[:, None, :].astype(np.int64)
    keys = distinct((row * n_rows + column)[(row >= 0) & (column >= 0)])
    row_ptr = offsets_of(np.bincount(keys // n_rows, minlength=matrix.n_rows))
    return row_ptr, (keys % n_rows).astype(np.int32)


def check_colours(
    row_ptr: NDArray[np.integer],
    columns: NDArray[np.int32],
    colour: NDArray[np.integer],
) -> None:
    """Raise MeshprepError where a row is coupled to another one of its colour.

    ``colour`` has the colour of each column; rows are the first of the columns.
    """
    row = rows_of_entries(row_ptr)
    clash = (colour[columns] == colour[row]) & (columns != row)
    if clash.any():
        first = int(np.argmax(clash))
        raise MeshprepError(
            f"rows {row[first]} and {columns[first]} see each other and have one colour: "
            "give other colours, or a matrix with a symmetric pattern"
        )


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
