"""Symmetric sweeps on ranks, with colours over the border of the parts [R14 3.3, 4.4.6]."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.strategies import Schedule, in_phases
from ..plan.parts import MapPart, Messages, SetPart
from ..program.dat import EXEC, HALO, ProgramDat
from ..program.distributed import DistributedPlan
from ..program.exchange import Exchange
from ..program.mpi import together
from ..types.maps import offsets_of, read_only, rows_of_entries, run_offset
from . import kernels
from .code import MatrixCode
from .parts import check_part_matrix
from .products import check_vector, csr_arrays
from .solve import inverse_diagonal
from .ssor import SWEEP_ROWS, check_colours
from .stores import CsrMatrix, check_matrix

Vector = NDArray[Any]


class PartSsor:
    """Symmetric Gauss-Seidel by colours on ranks; all ranks make it, and call it, together.

    A preconditioner for ``cg``, as :class:`ColouredSsor` on one rank. Rows of a colour are
    not coupled to each other, also where different ranks own them. After each colour its
    values are sent to the ranks that have copies of them.

    Parameters
    ----------
    matrix : CsrMatrix
        The matrix of a :class:`PartAssembly`, with a symmetric pattern; it is copied.
    plan : DistributedPlan
    set_name : str
        The set of the rows and columns.
    colour : (rows,) integers, optional
        The colour of each row that this rank owns. None: first-fit colours in the order of
        the ranks' rows, rank after rank, which one rank would find in this order, too.

    Raises
    ------
    MeshprepError
        For a matrix of another shape.
    DistributedError
        On all ranks, for a zero on the diagonal and rows of a colour that are coupled.

    Notes
    -----
    Every row sums its entries in the order of the global numbers. So the result has the
    bits of a :class:`ColouredSsor` of the whole matrix with the same colours, rows in this
    order. A call sends two messages to a neighbour for each colour but one.

    Examples
    --------
    >>> from meshprep_runtime.matrix import PartSsor, cg, dot_on  # doctest: +SKIP
    >>> sweeps = PartSsor(K, plan, "nodes")  # doctest: +SKIP
    >>> cg(product, load, sweeps, dot=dot_on(plan)).x  # doctest: +SKIP
    """

    def __init__(
        self,
        matrix: CsrMatrix,
        plan: DistributedPlan,
        set_name: str,
        colour: NDArray[np.integer] | None = None,
    ) -> None:
        """Colour the rows and sort them; parameters and errors are those of the class.

        Notes
        -----
        O(nonzeros log nonzeros). First-fit colours take up to as many exchanges as ranks.
        """
        check_matrix(matrix)
        set_part = check_part_matrix(matrix, plan, set_name)
        self._plan = plan
        self._owned = set_part.owned
        numbers = np.concatenate(
            [set_part.owned_start + np.arange(set_part.owned), set_part.copies]
        )
        sorted_matrix = _sort_by_number(matrix, numbers)
        # The colours of all columns: owned rows, and copies of the rows of other ranks.
        if colour is None:
            colours = _first_fit(sorted_matrix, numbers, plan, set_name)
        else:
            colours = plan.dat(set_name, 1, "i4", values=np.asarray(colour, np.int32))
        colour_of_column = colours.array.reshape(-1)

        def invert_diagonal() -> Vector:
            check_colours(
                row_ptr=matrix.row_ptr, columns=matrix.columns, colour=colour_of_column
            )
            return inverse_diagonal(matrix)

        inverse = together(plan.ranks, invert_diagonal, "the sweeps of a PartSsor")
        self.colour: NDArray[np.int32] = colour_of_column[: self._owned].copy()
        most = int(self.colour.max(initial=-1)) + 1
        self.colours = max(plan.ranks.allgather(most))

        # The values of all columns, and what is sent of each colour.
        self._inverse = inverse
        self._z = plan.dat(set_name, 1, matrix.values.dtype.str[1:])
        partial = _lists_by_colour(set_part, colour_of_column, self.colours)
        part = replace(plan.part, partial=partial)
        self._exchange = Exchange(plan.ranks, part)
        self._sweeps = [
            _sweep_of_colour(sorted_matrix, inverse, np.flatnonzero(self.colour == c))
            for c in range(self.colours)
        ]

    def __call__(self, r: Vector) -> Vector:
        """An approximate solution of ``A z = r``: a sweep forward, and one backward.

        All ranks call it together.

        Parameters
        ----------
        r : (rows,) array
            For the rows that this rank owns.

        Returns
        -------
        (rows,) array
            In new memory. O(nonzeros).

        Raises
        ------
        MeshprepError
            For an array of another size or type.
        """
        check_vector(name="r", array=r, size=self._owned, dtype=self._inverse.dtype)
        self._plan.ranks.begin(self._name, [("dat", self._z.number)])
        y = self._sweep(r * self._inverse, range(self.colours))
        return self._sweep(y, range(self.colours - 1, -1, -1))

    @property
    def _name(self) -> str:
        return f"sweeps of dat {self._z.number}"

    def _sweep(self, x: Vector, order: Sequence[int]) -> Vector:
        """``z_i = x_i - inverse_i (A z)_i`` for the rows of each colour in turn."""
        z = self._z.array.reshape(-1)
        # Rows of later colours are zero, so that whole rows can be summed.
        z[:] = 0
        for colour in order:
            sweep = self._sweeps[colour]
            if sweep is not None:
                sweep.run(x, z)
            # The next colours need these values where they are copied; the last has none.
            if colour != order[-1]:
                lists = (_list_name(colour, EXEC), _list_name(colour, HALO))
                self._exchange.start(self._name, [(self._z, lists)]).finish()
        result: Vector = z[: self._owned].copy()
        return result


def _sort_by_number(matrix: CsrMatrix, numbers: NDArray[np.int64]) -> CsrMatrix:
    """The matrix with the entries of each row by the global numbers of their columns."""
    row = rows_of_entries(matrix.row_ptr)
    order = np.lexsort((numbers[matrix.columns], row))
    return replace(
        matrix,
        columns=matrix.columns[order],
        values=np.ascontiguousarray(matrix.values[order]),
    )


def _first_fit(
    matrix: CsrMatrix, numbers: NDArray[np.int64], plan: DistributedPlan, set_name: str
) -> ProgramDat:
    """First-fit colours in the order of the global numbers, on rows and copies.

    In each round the ranks colour the rows whose neighbours of lower number have a colour.
    Numbers ascend from rank to rank, so that there are at most as many rounds as ranks.
    """
    from ..kernel.colouring import first_fit_ready_rows

    owned = matrix.shape[0]
    colours = plan.dat(set_name, 1, "i4", values=np.full(owned, -1, np.int32))
    colour = colours.array.reshape(-1)
    is_left = True
    while is_left:
        left = first_fit_ready_rows(matrix.row_ptr, matrix.columns, numbers, colour)
        plan.update(colours)
        is_left = any(plan.ranks.allgather(left))
    return colours


def _sweep_of_colour(
    matrix: CsrMatrix, inverse: Vector, rows: NDArray[np.integer]
) -> MatrixCode | None:
    """The sweep over the rows of one colour; None where this rank has none."""
    if not rows.size:
        return None
    offset = run_offset(rows.size, SWEEP_ROWS)
    turns = in_phases(offset[:-1], offset[1:], np.array([0, offset.size - 1]))
    arrays = {
        "rows": read_only(rows.astype(np.int32)),
        "inverse": read_only(inverse),
        **csr_arrays(matrix),
    }
    return MatrixCode(kernels.sweep_rows, arrays, Schedule(turns))


def _list_name(colour: int, kind: str) -> str:
    return f"colour {colour}, {kind}"


def _lists_by_colour(
    set_part: SetPart, colour: NDArray[np.int32], colours: int
) -> dict[str, MapPart]:
    """The rows of each colour that are sent and received, by the name of their list."""
    lists = {}
    for c in range(colours):
        lists[_list_name(c, EXEC)] = MapPart(
            send=_of_colour(set_part.send_exec, colour, c),
            receive=_of_colour(set_part.receive_exec, colour, c),
        )
        lists[_list_name(c, HALO)] = MapPart(
            send=_of_colour(set_part.send_halo, colour, c),
            receive=_of_colour(set_part.receive_halo, colour, c),
        )
    return lists


def _of_colour(messages: Messages, colour: NDArray[np.int32], c: int) -> Messages:
    """The rows of one colour; both sides keep the order, as both know all colours."""
    of_neighbour = rows_of_entries(messages.offset)
    chosen = colour[messages.rows] == c
    counts = np.bincount(of_neighbour[chosen], minlength=messages.parts.size)
    return Messages(
        parts=messages.parts, offset=offsets_of(counts), rows=messages.rows[chosen]
    )
