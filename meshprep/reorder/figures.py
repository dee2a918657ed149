"""Points to be numbered, and figures of a numbering: bandwidth, profile, lines of blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import call

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.metrics import OrderFigures as Figures
from meshprep_runtime.types.maps import read_only
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s, kernel
from ..kernels.arrays import numbers
from ..kernels.parallel import each
from ..mesh.incidence import Csr, point_graph, renumber_table
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


LINE_BYTES = 128


def figures(
    problem: LocalityProblem, old_to_new: Int32s | None = None, rows: Int32s | None = None
) -> Figures:
    """Measure a numbering of the points of a problem.

    Without ``old_to_new`` points and elements are measured as they stand. ``rows`` is the order of
    the elements that follows the numbering, found here where it is not given. O(n_from x arity +
    n_points).
    """
    table, n_points = problem.table, problem.n_points
    if old_to_new is not None:
        if rows is None:
            rows = problem.follow(renumber_table(table, None, old_to_new))
        table = renumber_table(table, rows, old_to_new)
    known = read_only(table), n_points
    tasks = [(_envelope, *known), (_lines, *known, problem.point_bytes, problem.block_size)]
    (bandwidth, profile, rms), lines = each(call, tasks)
    return Figures(int(bandwidth), int(profile), float(rms), int(lines))


@kernel
def _envelope(table: NDArray, n_points: int) -> tuple[int, int, float]:
    """Bandwidth, profile and root mean square wavefront."""
    smallest, begins = numbers(n_points), np.zeros(n_points, np.int32)
    bandwidth, profile, front, squares = 0, 0, 0, 0.0
    for i in range(table.shape[0]):
        low = high = table[i, 0] if table.shape[1] else 0
        for j in range(1, table.shape[1]):
            low, high = min(low, table[i, j]), max(high, table[i, j])
        bandwidth = max(bandwidth, high - low)
        for j in range(table.shape[1]):
            smallest[table[i, j]] = min(smallest[table[i, j]], low)
    # point p is in the wavefronts smallest[p] .. p: count where they begin
    for p in range(n_points):
        profile += p - smallest[p]
        begins[smallest[p]] += 1
    for p in range(n_points):
        front += begins[p]
        squares += float(front) * front
        front -= 1
    return bandwidth, profile, np.sqrt(squares / max(1, n_points))


@kernel
def _lines(table: NDArray, n_points: int, point_bytes: int, block_size: int) -> int:
    last = np.full(n_points * point_bytes // LINE_BYTES + 1, -1, np.int32)
    count = 0
    for i in range(table.shape[0]):
        block = i // block_size
        for j in range(table.shape[1]):
            begin = np.int64(table[i, j]) * point_bytes
            for line in range(begin // LINE_BYTES, (begin + point_bytes - 1) // LINE_BYTES + 1):
                if last[line] != block:
                    last[line] = block
                    count += 1
    return count
