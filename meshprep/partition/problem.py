"""What a partitioner is given: the elements of a loop and the points they reach."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, read_only


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """The elements of a set, to be cut into blocks that share few points; all checked."""

    # (n, arity): every map of the loop, stacked into the disjoint union of the to-sets
    # (:func:`~meshprep.mesh.stack`); rows in the current locality order. Arity 0 stands for a loop
    # without maps.
    table: NDArray[np.int32]
    n_points: int  # size of the union; every entry of ``table`` is in 0..n_points-1
    block_size: int  # the cap S: no block may have more elements
    # (n_points,): what staging a point costs, at least 0; None where all points cost the same.
    point_bytes: NDArray[np.int32] | None = None
    coordinates: NDArray[np.float64] | None = None  # (n, d): centroids of the elements, finite
    seed: int = 0  # from 0 to 2^31-1; the same seed gives the same blocks
    # Told the share of a long search that is done, from 0 to 1.
    progress: Callable[[float], None] = lambda share: None

    def __post_init__(self) -> None:
        table = np.asarray(self.table)
        if table.ndim != 2 or table.dtype != np.int32:
            raise MeshprepError(
                f"the table to partition has shape {table.shape} and dtype {table.dtype}, "
                "must be int32 of shape (n, arity)"
            )
        if table.size and (table.min() < 0 or table.max() >= self.n_points):
            raise MeshprepError(f"the table to partition points outside its {self.n_points} points")
        if not 1 <= self.block_size <= INDEX_LIMIT:
            raise MeshprepError(f"block size is {self.block_size}, must be within 1..2^31-1")
        if not 0 <= self.seed <= INDEX_LIMIT:
            raise MeshprepError(f"seed is {self.seed}, must be within 0..2^31-1")
        object.__setattr__(self, "table", read_only(table))
        self._check_weights()
        self._check_coordinates()

    def _check_weights(self) -> None:
        if self.point_bytes is None:
            return
        weights = np.asarray(self.point_bytes)
        if weights.shape != (self.n_points,) or weights.dtype.kind not in "iu":
            raise MeshprepError(
                f"point_bytes has shape {weights.shape} and dtype {weights.dtype}, "
                f"must be {self.n_points} integers"
            )
        if weights.size and (weights.min() < 0 or weights.max() > INDEX_LIMIT):
            raise MeshprepError("point_bytes has a value outside 0..2^31-1")
        object.__setattr__(self, "point_bytes", read_only(weights.astype(np.int32, copy=False)))

    def _check_coordinates(self) -> None:
        if self.coordinates is not None:
            where = np.asarray(self.coordinates, dtype=np.float64)
            check_coordinates(where, self.n)
            object.__setattr__(self, "coordinates", read_only(where))

    @property
    def n(self) -> int:
        """Number of elements."""
        return int(self.table.shape[0])


def check_coordinates(coordinates: NDArray[np.float64], n: int) -> None:
    """Raise MeshprepError unless there is a row of finite numbers for each of n elements."""
    if coordinates.ndim != 2 or len(coordinates) != n or not coordinates.shape[1]:
        raise MeshprepError(
            f"coordinates have shape {coordinates.shape}, must be ({n}, d) for {n} elements"
        )
    if not np.isfinite(coordinates).all():
        row = int(np.argmin(np.isfinite(coordinates).all(axis=1)))
        raise MeshprepError(f"the coordinates of element {row} are not finite")
