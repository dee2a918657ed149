"""Input and signature of a locality method."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

from ..mesh.incidence import Csr, point_graph
from .lexicographic import from_set_order, order_by_ends

# How the elements of a map follow its points, for each target.
FOLLOW = {"gpu": from_set_order, "cpu": order_by_ends}


@dataclass(frozen=True, eq=False)
class LocalityProblem:
    """The points of a map, to be numbered so that those of an element stand together."""

    table: NDArray[np.int32]  # (n_from, arity): the points of each element, in 0..n_points-1
    n_points: int
    coordinates: NDArray[np.float64] | None = None  # (n_points, d)
    target: str = "gpu"  # ``"gpu"`` or ``"cpu"``: how the elements follow, and which figure counts
    block_size: int = 256  # elements that run together
    point_bytes: int = 8  # what a loop moves for one point
    # True for a map of a set into itself: the first column is the element itself, 0 to n - 1, and
    # elements stand where their points stand.
    rows_are_points: bool = False

    def __post_init__(self) -> None:
        table = self.table
        if table.ndim != 2 or table.dtype != np.int32:
            raise MeshprepError(
                f"locality order: the table has shape {table.shape} and dtype {table.dtype}, "
                "must be int32 of shape (n_from, arity)"
            )
        if table.size and (table.min() < 0 or table.max() >= self.n_points):
            raise MeshprepError(
                f"locality order: the table names points {table.min()}..{table.max()}, "
                f"but there are {self.n_points}"
            )
        where = self.coordinates
        if where is not None and (where.ndim != 2 or where.shape[0] != self.n_points):
            raise MeshprepError(
                f"locality order: coordinates have shape {where.shape}, "
                f"must be ({self.n_points}, d), one row a point"
            )

    def follow(self, table: NDArray[np.int32]) -> NDArray[np.int32]:
        """The order of elements that follows their points: new_to_old, (n_from,) int32."""
        if self.rows_are_points:
            return Ordering.from_new_to_old(table[:, 0]).old_to_new
        return FOLLOW[self.target](table)

    @cached_property
    def graph(self) -> Csr:
        """The clique graph of the points, made when first asked for [S19 section 2.3.1]."""
        return point_graph(self.table, self.n_points)


@dataclass(frozen=True)
class Method:
    """A way to order the points of a map."""

    # ``function(problem) -> new_to_old``, an (n_points,) int32 permutation.
    function: Callable[[LocalityProblem], NDArray[np.int32]]
    description: str  # one line for help texts
    needs_coordinates: bool = False
