"""The pattern of a sparse matrix, and the nonzeros that loops add to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import MeshprepError
from ..types.loops import Access, Arg, Loop
from ..types.maps import SetMap, read_only
from .tuned import ProductThreads

if TYPE_CHECKING:
    from ..matrix.stores import CsrMatrix


@dataclass(frozen=True, eq=False)
class MatrixPlan:
    """The pattern of a matrix, and where each loop adds to it [R14 3.2].

    Parameters
    ----------
    name : str
    row_set, column_set : str
        The sets whose elements have rows and columns.
    row_of, column_of : (n(set),) int32
        Row and column of each element, ascending; -1 for a constrained one, which has none.
        One array where the sets are one.
    row_ptr : (rows + 1,) int64
        The nonzeros of row ``i`` are ``row_ptr[i]`` to ``row_ptr[i + 1] - 1``.
    columns : (nonzeros,) int32
        Ascending in each row.
    place : mapping of loop name to (n_from, local rows * local columns) int32
        The nonzero to which each entry of an element's matrix, row after row, is added; -1
        where its row or column is constrained.
    tuned : list of ProductThreads
        What products with the matrix have found on GPUs. The matrices that :meth:`csr`
        gives have the same list, so that it grows while a solver runs; ``Plan.save`` keeps
        it.
    """

    name: str
    row_set: str
    column_set: str
    row_of: NDArray[np.int32]
    column_of: NDArray[np.int32]
    row_ptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    place: Mapping[str, NDArray[np.int32]]
    tuned: list[ProductThreads] = field(default_factory=list)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"MatrixPlan('{self.name}', {rows:,} x {columns:,}, "
            f"{self.columns.size:,} nonzeros)"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.row_ptr.size - 1, int(np.count_nonzero(self.column_of >= 0))

    def csr(
        self, dtype: DTypeLike = "f8", values: NDArray[Any] | None = None
    ) -> "CsrMatrix":
        """A matrix of this pattern.

        Parameters
        ----------
        dtype : dtype
            Of the zeros, where no values are given.
        values : (nonzeros,) array, optional
            Not copied. None: zeros.

        Returns
        -------
        CsrMatrix
            A loop adds to its ``values``; the indices are shared.
        """
        from ..matrix.stores import CsrMatrix

        # SciPy takes offsets and columns of one type; int32 holds all offsets, as it holds
        # the numbers of all nonzeros in `place`.
        row_ptr = read_only(self.row_ptr.astype(np.int32))
        if values is None:
            values = np.zeros(self.columns.size, dtype)
        return CsrMatrix(
            row_ptr=row_ptr,
            columns=self.columns,
            values=values,
            n_columns=self.shape[1],
            tuned=self.tuned,
        )


def with_places(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    matrices: Mapping[str, MatrixPlan],
) -> tuple[dict[str, SetMap], dict[str, int]]:
    """The maps and sizes of a loop, with matrices as sets of nonzeros.

    Each matrix of the loop in ``matrices`` adds the set of its nonzeros, and the map from
    an element to the nonzeros that it adds to, with -1 for none. Of a matrix that is not in
    ``matrices`` the loop stores the matrices of the elements. Raises MeshprepError where
    another set has the name of the nonzeros.
    """
    maps = dict(maps)
    sizes = dict(sizes)
    for arg in loop.matrices:
        if arg.name not in matrices:
            continue
        matrix = matrices[arg.name]
        to_set = nonzeros_of(arg.name)
        if to_set in sizes:
            raise MeshprepError(
                f"a set has the name '{to_set}': give the matrix another one"
            )
        # A nonzero is a point, and the places are the map to it: the rest treats matrices
        # like dats.
        sizes[to_set] = matrix.columns.size
        maps[_map_to_nonzeros(loop, arg.name)] = SetMap(
            name=arg.name,
            from_set=loop.over,
            to_set=to_set,
            table=matrix.place[loop.name],
        )
    return maps, sizes


def plain_args(loop: Loop, maps: Mapping[str, SetMap]) -> tuple[Arg, ...]:
    """The arguments of a loop, with matrices as dats.

    A matrix is a dat on its nonzeros where ``maps`` has the map to them, see
    :func:`with_places`; otherwise a dat on the elements, of the matrix of each element.
    """
    args = []
    for arg in loop.args:
        if arg.columns is None:
            args.append(arg)
        else:
            args.append(_matrix_as_dat(loop, arg, maps))
    return tuple(args)


def _matrix_as_dat(loop: Loop, arg: Arg, maps: Mapping[str, SetMap]) -> Arg:
    name = _map_to_nonzeros(loop, arg.name)
    # Without the places of nonzeros each element writes its own matrix.
    if name not in maps:
        return Arg(
            name=arg.name,
            access=Access.WRITE,
            dim=arg.dim * len(arg.index),
            dtype=arg.dtype,
        )
    # With them the matrix is a dat on its nonzeros, reached by a map.
    return Arg(
        name=arg.name,
        access=arg.access,
        dim=1,
        dtype=arg.dtype,
        map=name,
        index=tuple(range(maps[name].arity)),
    )


def _map_to_nonzeros(loop: Loop, matrix: str) -> str:
    """The name of the map of a loop to the nonzeros of a matrix."""
    return f"{loop.over}->{nonzeros_of(matrix)}"


def nonzeros_of(matrix: str) -> str:
    """The name of the set of the nonzeros of a matrix."""
    return f"nonzeros of {matrix}"
