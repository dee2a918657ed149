"""The pattern of a sparse matrix, and where loops add to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import MeshprepError
from ..types.loops import Access, Arg, Loop
from ..types.maps import SetMap, read_only

if TYPE_CHECKING:
    from ..matrix.stores import CsrMatrix


@dataclass(frozen=True, eq=False)
class MatrixPlan:
    """All that assembling a matrix needs but the values [R14 3.2].

    Parameters
    ----------
    name : str
    row_set, column_set : str
        The sets whose elements have rows and columns.
    row_of, column_of : (n(set),) int32
        Row and column of each element, ascending; -1 for a constrained one, which has none. One
        array where the sets are one.
    row_ptr : (rows + 1,) int64
        The nonzeros of row ``i`` are ``row_ptr[i]`` to ``row_ptr[i + 1] - 1``.
    columns : (nonzeros,) int32
        Ascending in each row.
    place : mapping of loop name to (n_from, local rows * local columns) int32
        The nonzero to which each entry of an element's matrix, row after row, is added; -1 where
        its row or column is constrained.
    """

    name: str
    row_set: str
    column_set: str
    row_of: NDArray[np.int32]
    column_of: NDArray[np.int32]
    row_ptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    place: Mapping[str, NDArray[np.int32]]

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"MatrixPlan('{self.name}', {rows:,} x {columns:,}, {self.columns.size:,} nonzeros)"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.row_ptr.size - 1, int(np.count_nonzero(self.column_of >= 0))

    def csr(self, dtype: DTypeLike = "f8", values: NDArray[Any] | None = None) -> "CsrMatrix":
        """A matrix of this pattern.

        Parameters
        ----------
        dtype : dtype
            Of zeros, where there are no values.
        values : (nonzeros,) array, optional
            Not copied. None: the value 0 everywhere.

        Returns
        -------
        CsrMatrix
            A loop adds to its ``values``; the indices are shared.
        """
        from ..matrix.stores import CsrMatrix

        # of the type of the columns, as scipy wants it: places are int32, so all fit
        row_ptr = read_only(self.row_ptr.astype(np.int32))
        values = np.zeros(self.columns.size, dtype) if values is None else values
        return CsrMatrix(row_ptr, self.columns, values, self.shape[1])


def with_places(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    matrices: Mapping[str, MatrixPlan],
) -> tuple[dict[str, SetMap], dict[str, int]]:
    """The maps and sizes of a loop with the nonzeros that it adds to as sets, places as maps.

    Of a matrix that is not in ``matrices`` the loop stores the matrices of the elements. A place of
    -1 is none. Raises MeshprepError where a set has the name that the nonzeros get.
    """
    maps, sizes = dict(maps), dict(sizes)
    for arg in loop.matrices:
        if arg.name in matrices:
            to_set, matrix = nonzeros_of(arg.name), matrices[arg.name]
            if to_set in sizes:
                raise MeshprepError(f"a set has the name '{to_set}': give the matrix another one")
            place = SetMap(arg.name, loop.over, to_set, matrix.place[loop.name])
            maps[_places(loop, arg.name)], sizes[to_set] = place, matrix.columns.size
    return maps, sizes


def plain_args(loop: Loop, maps: Mapping[str, SetMap]) -> tuple[Arg, ...]:
    """The arguments of a loop, matrices as the dats that they are in memory.

    A matrix without places in ``maps``, see :func:`with_places`, is stored element by element.
    """
    return tuple(arg if arg.columns is None else _as_dat(loop, arg, maps) for arg in loop.args)


def _as_dat(loop: Loop, arg: Arg, maps: Mapping[str, SetMap]) -> Arg:
    name = _places(loop, arg.name)
    if name not in maps:
        return Arg(arg.name, Access.WRITE, arg.dim * len(arg.index), arg.dtype)
    return Arg(arg.name, arg.access, 1, arg.dtype, name, tuple(range(maps[name].arity)))


def _places(loop: Loop, matrix: str) -> str:
    """The name of the map to the nonzeros of a matrix."""
    return f"{loop.over}->{nonzeros_of(matrix)}"


def nonzeros_of(matrix: str) -> str:
    """The name of the set of its nonzeros."""
    return f"nonzeros of {matrix}"
