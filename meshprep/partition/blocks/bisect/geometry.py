"""Geometry of the elements to cut, and sizes of the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Bools, Float64s, Int32s, Int64s, chunks, read_only

from ....kernels.arithmetic import cosine_and_sine
from ...blocks_of import staged_bytes
from .bisection import THINNEST, THINNEST_GUESSED, bisect, point_positions

FIRST = 1000


@dataclass(frozen=True, eq=False)
class Geometry:
    """Elements to cut, with their points, weights and coordinates.

    ``known`` tells that the coordinates are real; otherwise they stand for graph distances. The
    ``positions`` of the points are the means of their elements where they are left out.
    """

    table: Int32s
    weight: Int32s
    coordinates: Float64s
    known: bool
    positions: Float64s | None = None

    @classmethod
    def of(
        cls, table: Int32s, weight: Int32s, coordinates: Float64s, *, known: bool = True
    ) -> Geometry:
        """The geometry without axes along which all are equal, such as z of a plane mesh."""
        wide = np.zeros(coordinates.shape[1], np.bool_)
        for k, axis in enumerate(coordinates.T):
            # mostly decided by the first values
            wide[k] = (axis[:FIRST] != axis[:1]).any() or (axis[FIRST:] != axis[:1]).any()
        wide[:1] |= not wide.any()
        if coordinates.size and not wide.all():
            coordinates = np.ascontiguousarray(coordinates[:, wide])
        return cls(table, weight, coordinates, known)

    def __post_init__(self) -> None:
        # Kernels are compiled once for arrays that may be written to and once for others.
        for name in ("table", "weight", "coordinates"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @cached_property
    def position(self) -> Float64s:
        """The coordinates of the points, (n_points, d): as much memory as all else."""
        if self.positions is not None:
            return read_only(self.positions)
        return read_only(point_positions(self.table, self.weight.size, self.coordinates))

    def placed(self) -> Geometry:
        """The same geometry, with positions computed now rather than on first use."""
        return replace(self, positions=self.position)

    def sample(self, chosen: NDArray[np.integer]) -> Geometry:
        """The geometry of some elements; positions of points are those of all elements."""
        points, local = np.unique(self.table[chosen], return_inverse=True)
        local = local.reshape(len(chosen), -1)
        if points.size and points[0] < 0:
            points, local = points[1:], local - 1
        return Geometry(
            np.ascontiguousarray(local, np.int32), self.weight[points], self.coordinates[chosen],
            self.known, self._positions_of(points),
        )  # fmt: skip

    def _positions_of(self, points: Int32s) -> Float64s:
        """The positions of some points, ascending, from the elements that have them. O(n)."""
        if self.positions is not None or "position" in self.__dict__:
            return self.position[points]
        # the last one is that of -1
        wanted = np.zeros(self.weight.size + 1, np.bool_)
        wanted[points] = True
        tables, places = [self.table[:0]], [self.coordinates[:0]]
        for some in chunks(len(self.table)):
            beside = np.flatnonzero(wanted[self.table[some]].any(axis=1))
            near = self.table[some][beside]
            local = np.where(wanted[near], np.searchsorted(points, near), -1)
            tables.append(local.astype(np.int32))
            places.append(self.coordinates[some][beside])
        table, where = np.concatenate(tables), np.concatenate(places)
        del tables, places
        return point_positions(read_only(table), points.size, read_only(where))

    @property
    def thinnest(self) -> float:
        """The least width of an element that counts, relative to its widest direction."""
        return THINNEST if self.known else THINNEST_GUESSED

    def cut(self, rotation: float, n_blocks: int) -> Int32s:
        """Blocks by bisection in a rotated frame."""
        where = self.coordinates
        directions = rotated(where.shape[1], rotation)
        return bisect(self.table, self.position, where, directions, n_blocks, self.thinnest)

    def loads(self, block: Int32s, n_blocks: int) -> int:
        """The weighted loads of blocks, counted afresh. O(n * arity)."""
        return int(staged_bytes(self.table, self.weight, block, n_blocks).sum())


class Sample(NamedTuple):
    """Elements from which centroids and widths are measured: all, or some in rising order."""

    geometry: Geometry
    elements: Int32s | None = None

    def rows(self, example: Int32s) -> Int32s:
        """The rows of elements in the geometry."""
        if self.elements is None:
            return example
        return np.searchsorted(self.elements, example).astype(np.int32)


def rotated(d: int, rotation: float) -> Float64s:
    """Orthogonal directions as rows, (d, d): the axes, rotated in each plane of two next ones."""
    directions, (cosine, sine) = np.eye(d), cosine_and_sine(rotation)
    for a in range(d - 1):
        first, second = directions[a].copy(), directions[a + 1].copy()
        directions[a] = cosine * first + sine * second
        directions[a + 1] = cosine * second - sine * first
    return directions


def block_count(n: int, block_size: int) -> int:
    """Blocks for ``n`` elements: 1 % of room to move, or half a percent of small meshes."""
    if n <= block_size:
        return min(n, 1)
    needed = -(-n // block_size)
    if needed < 100:
        return min(n, -(-201 * n // (200 * block_size)))
    return min(n, -(-101 * n // (100 * block_size)), needed + needed // 100)


# Least size of a block that must not dissolve, over its cap.
HELD = 0.9


@dataclass(frozen=True, eq=False)
class Sizes:
    """Weights of the elements, and the size of each block in these."""

    weight: Int32s  # (n,): at least 1; below 2^31 together
    # (n_blocks,): the most that a block may have, at least the largest weight.
    cap: Int64s
    least: Int64s  # (n_blocks,): what a block should have
    share: Int64s  # (n_blocks,): sizes in proportion, at least 1; below 2^31 together

    @classmethod
    def equal(cls, n: int, n_blocks: int, cap: int) -> Sizes:
        """Blocks of at most ``cap`` elements of weight 1."""
        cap_of_block, nothing = np.full(n_blocks, cap), np.zeros(n_blocks, np.int64)
        return cls(np.ones(n, np.int32), cap_of_block, nothing, np.ones(n_blocks, np.int64))

    def held(self, some: Bools) -> Sizes:
        """The same sizes with a least size for some blocks, which must not dissolve."""
        return replace(self, least=np.where(some, HELD * self.cap, 0).astype(np.int64))

    @cached_property
    def mean_weight(self) -> float:
        """The mean weight of an element."""
        return float(self.weight.mean()) if self.weight.size else 1.0
