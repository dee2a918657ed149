"""The problem that a partitioner solves, the blocks that it gives, and their loads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, read_only

from ..kernels import Int32s, Int64s, kernel
from ..kernels.arrays import sort_by
from ..kernels.parallel import rows_in_pieces


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """The elements of a set, to be cut into blocks that share few points.

    Shapes, types and ranges are checked when the problem is made.
    """

    # (n, arity): every map of the loop, stacked into the disjoint union of the to-sets
    # (:func:`~meshprep.mesh.stack`); rows in the current locality order. Arity 0 stands for
    # a loop without maps.
    table: NDArray[np.int32]
    n_points: int  # size of the union; every entry of ``table`` is in 0..n_points-1
    block_size: int  # the cap S: no block may have more elements
    # (n_points,): what staging a point costs, at least 0; None where all points cost the
    # same.
    point_bytes: NDArray[np.int32] | None = None
    # (n, d): centroids of the elements, finite; None where the mesh has no coordinates.
    coordinates: NDArray[np.float64] | None = None
    seed: int = 0  # from 0 to 2^31-1; the same seed gives the same blocks
    # (n,): the number of each element's block, where blocks are given; at least 0.
    given: NDArray[np.integer] | None = None
    # Called during a long search with the share that is done, from 0 to 1.
    progress: Callable[[float], None] = lambda share: None

    def __post_init__(self) -> None:
        # The table, the cap and the seed.
        table = np.asarray(self.table)
        if table.ndim != 2 or table.dtype != np.int32:
            raise MeshprepError(
                f"the table to partition has shape {table.shape} and dtype {table.dtype}, "
                "must be int32 of shape (n, arity)"
            )
        if table.size and (table.min() < 0 or table.max() >= self.n_points):
            raise MeshprepError(
                f"the table to partition points outside its {self.n_points} points"
            )
        if not 1 <= self.block_size <= INDEX_LIMIT:
            raise MeshprepError(
                f"block size is {self.block_size}, must be within 1..2^31-1"
            )
        if not 0 <= self.seed <= INDEX_LIMIT:
            raise MeshprepError(f"seed is {self.seed}, must be within 0..2^31-1")
        object.__setattr__(self, "table", read_only(table))
        # The bytes of points and the coordinates, where there are any.
        if self.point_bytes is not None:
            weights = np.asarray(self.point_bytes)
            if weights.shape != (self.n_points,) or weights.dtype.kind not in "iu":
                raise MeshprepError(
                    f"point_bytes has shape {weights.shape} and dtype {weights.dtype}, "
                    f"must be {self.n_points} integers"
                )
            if weights.size and (weights.min() < 0 or weights.max() > INDEX_LIMIT):
                raise MeshprepError("point_bytes has a value outside 0..2^31-1")
            object.__setattr__(
                self, "point_bytes", read_only(weights.astype(np.int32, copy=False))
            )
        if self.coordinates is not None:
            where = np.asarray(self.coordinates, dtype=np.float64)
            check_coordinates(where, self.n)
            object.__setattr__(self, "coordinates", read_only(where))

    @property
    def n(self) -> int:
        """Number of elements."""
        return int(self.table.shape[0])


def check_coordinates(coordinates: NDArray[np.float64], n: int) -> None:
    """Raise MeshprepError unless each of ``n`` elements has finite coordinates."""
    if coordinates.ndim != 2 or len(coordinates) != n or not coordinates.shape[1]:
        raise MeshprepError(
            f"coordinates have shape {coordinates.shape}, must be ({n}, d) for {n} elements"
        )
    if not np.isfinite(coordinates).all():
        row = int(np.argmin(np.isfinite(coordinates).all(axis=1)))
        raise MeshprepError(f"the coordinates of element {row} are not finite")


@dataclass(frozen=True, eq=False)
class Blocks:
    """An order of the elements in which every block is a range."""

    # (n,): place in the current order of the element that now stands at each place.
    new_to_old: Int32s
    # (n_blocks + 1,): block ``b`` is ``new_to_old[block_offset[b]:block_offset[b + 1]]``;
    # none is empty.
    block_offset: Int64s
    # What the partitioner reports of its work: names and JSON values.
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.block_offset.size) - 1

    @property
    def block_of_element(self) -> Int32s:
        """The block of each element of the current order, (n,). O(n)."""
        block = np.empty(self.new_to_old.size, dtype=np.int32)
        numbers = np.arange(self.n_blocks, dtype=np.int32)
        block[self.new_to_old] = np.repeat(numbers, np.diff(self.block_offset))
        return block


def blocks_of(
    block_of_element: NDArray[np.integer],
    n_blocks: int,
    notes: Mapping[str, Any] | None = None,
    *,
    keep_numbers: bool = False,
) -> Blocks:
    """Blocks from the block of each element, sorted stably; empty blocks are removed.

    Elements inside a block keep the current order. With ``keep_numbers`` blocks stand in
    the order of their numbers; otherwise in that of their first elements. O(n + n_blocks).
    """
    block = np.ascontiguousarray(block_of_element, dtype=np.int32)
    offset, member = sort_by(block, n_blocks)
    used = np.flatnonzero(np.diff(offset))
    if not keep_numbers:
        # Number the blocks by their first elements: members ascend, the first is first.
        used = used[np.argsort(member[offset[used]])]
        rank = np.empty(n_blocks, np.int32)
        rank[used] = np.arange(used.size, dtype=np.int32)
        offset, member = sort_by(rank[block], used.size)
        used = np.arange(used.size)
    return Blocks(member, np.append(offset[used], block.size), dict(notes or {}))


def loads(table: Int32s, n_points: int, block_offset: Int64s) -> int:
    """The sum over blocks of the number of distinct points a block touches.

    Rows of ``table`` are in the order of the blocks. The sum is at least the number of
    points in use, and at most ``n * arity``; the reuse factor is ``table.size / loads``
    [S19]. O(n * arity + n_points).
    """
    return int(_count_loads(table, n_points, block_offset))


@kernel
def _count_loads(table: Int32s, n_points: int, block_offset: Int64s) -> int:
    """:func:`loads`: a point counts where the block before did not touch it last."""
    last_block = np.full(n_points, -1, np.int64)
    count = 0
    for b in range(block_offset.size - 1):
        for i in range(block_offset[b], block_offset[b + 1]):
            for j in range(table.shape[1]):
                if last_block[table[i, j]] != b:
                    last_block[table[i, j]] = b
                    count += 1
    return count


def staged_bytes(table: Int32s, weight: Int32s, block: Int32s, n_blocks: int) -> Int64s:
    """The weight of the distinct points of each block, (n_blocks,).

    ``table`` has -1 where there is no point; ``weight`` (n_points,) is what staging a point
    costs, ``block`` (n,) the block of each element. O(n * arity).
    """
    offset, member = sort_by(block, n_blocks)
    return np.concatenate(rows_in_pieces(_staged_bytes, offset, table, weight, member))


@kernel
def _staged_bytes(table: Int32s, weight: Int32s, member: Int32s, offset: Int64s) -> Int64s:
    """:func:`staged_bytes` of the blocks of ``offset``, whose elements ``member`` lists."""
    # Indices are unsigned, since numba tests signed ones for being negative.
    last_block = np.full(weight.size, -1, np.int32)
    total = np.zeros(offset.size - 1, np.int64)
    for b in range(offset.size - 1):
        block_weight = np.int64(0)
        for k in range(np.uint64(offset[b]), np.uint64(offset[b + 1])):
            for j in range(table.shape[1]):
                t = table[np.uint32(member[k]), j]
                if t >= 0:
                    p = np.uint32(t)
                    block_weight += weight[p] * (last_block[p] != b)
                    last_block[p] = b
        total[b] = block_weight
    return total
