"""The problem of numbering points, and figures of a numbering."""

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

# The order of elements that follows the order of their points, for each target.
FOLLOW = {"gpu": from_set_order, "cpu": order_by_ends}


@dataclass(frozen=True, eq=False)
class LocalityProblem:
    """The points of a map, to be numbered so that those of an element stand together."""

    # (n_from, arity): the points of each element, in 0..n_points-1.
    table: NDArray[np.int32]
    n_points: int
    # (n_points, d).
    coordinates: NDArray[np.float64] | None = None
    # ``"gpu"`` or ``"cpu"``: decides how elements follow, and by which figure orders are
    # compared.
    target: str = "gpu"
    # Elements that run together.
    block_size: int = 256
    # Bytes that a loop moves for one point.
    point_bytes: int = 8
    # True for a map of a set into itself: the first column is the element itself, 0 to n -
    # 1, and elements have the order of their points.
    rows_are_points: bool = False
    # (n_points,): points of a group stay together, in the order of the groups' numbers.
    group: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        table = self.table
        if table.ndim != 2 or table.dtype != np.int32:
            raise MeshprepError(
                f"locality order: the table has shape {table.shape} and dtype "
                f"{table.dtype}, must be int32 of shape (n_from, arity)"
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

    def with_groups(self, new_to_old: NDArray[np.int32]) -> NDArray[np.int32]:
        """An order of the points with groups together, stable inside each."""
        if self.group is None:
            return new_to_old
        return new_to_old[np.argsort(self.group[new_to_old], kind="stable")]

    @cached_property
    def graph(self) -> Csr:
        """The clique graph of the points, made on first use [S19 section 2.3.1]."""
        return point_graph(self.table, self.n_points)


@dataclass(frozen=True)
class Method:
    """A way to order the points of a map."""

    # ``function(problem) -> new_to_old``, an (n_points,) int32 permutation.
    function: Callable[[LocalityProblem], NDArray[np.int32]]
    # One line for help texts.
    description: str
    needs_coordinates: bool = False


# Bytes of a cache line of a GPU.
LINE_BYTES = 128


def figures(
    problem: LocalityProblem, old_to_new: Int32s | None = None, rows: Int32s | None = None
) -> Figures:
    """Measure a numbering of the points of a problem.

    Without ``old_to_new`` points and elements are measured as they stand. ``rows`` is the
    order of the elements that follows the numbering; it is computed where it is left out.
    O(n_from x arity + n_points).
    """
    table = problem.table
    n_points = problem.n_points
    if old_to_new is not None:
        if rows is None:
            rows = problem.follow(renumber_table(table, None, old_to_new))
        table = renumber_table(table, rows, old_to_new)
    table = read_only(table)
    tasks = [
        (_envelope, table, n_points),
        (_lines, table, n_points, problem.point_bytes, problem.block_size),
    ]
    (bandwidth, profile, rms), lines = each(call, tasks)
    return Figures(
        bandwidth=int(bandwidth),
        profile=int(profile),
        rms_wavefront=float(rms),
        lines=int(lines),
    )


@kernel
def _envelope(table: NDArray, n_points: int) -> tuple[int, int, float]:
    """Bandwidth, profile and root mean square wavefront of the clique graph.

    Found from the elements, whose points are neighbours, without the graph.
    """
    smallest = numbers(n_points)
    begins = np.zeros(n_points, np.int32)
    bandwidth = 0
    profile = 0
    front = 0
    squares = 0.0
    # The lowest neighbour of each point, and the widest element.
    for i in range(table.shape[0]):
        low = high = table[i, 0] if table.shape[1] else 0
        for j in range(1, table.shape[1]):
            low = min(low, table[i, j])
            high = max(high, table[i, j])
        bandwidth = max(bandwidth, high - low)
        for j in range(table.shape[1]):
            smallest[table[i, j]] = min(smallest[table[i, j]], low)
    # Point p is in the wavefronts smallest[p] to p: count where they begin.
    for p in range(n_points):
        profile += p - smallest[p]
        begins[smallest[p]] += 1
    for p in range(n_points):
        front += begins[p]
        squares += float(front) * front
        front -= 1
    return bandwidth, profile, np.sqrt(squares / max(1, n_points))


@kernel
def _lines(
    table: NDArray,
    n_points: int,
    point_bytes: int,
    block_size: int,
) -> int:
    """Cache lines that blocks of consecutive elements touch, summed over the blocks."""
    # The last block that touched each line.
    last = np.full(n_points * point_bytes // LINE_BYTES + 1, -1, np.int32)
    count = 0
    for i in range(table.shape[0]):
        block = i // block_size
        for j in range(table.shape[1]):
            begin = np.int64(table[i, j]) * point_bytes
            first_line = begin // LINE_BYTES
            last_line = (begin + point_bytes - 1) // LINE_BYTES
            for line in range(first_line, last_line + 1):
                if last[line] != block:
                    last[line] = block
                    count += 1
    return count
