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

# Elements that decide for most axes whether all coordinates along them are equal.
FIRST = 1000


@dataclass(frozen=True, eq=False)
class Geometry:
    """Elements to cut, with their points, weights and coordinates.

    ``known`` tells that the coordinates are real; otherwise they stand for graph distances.
    The ``positions`` of the points are the means of their elements where they are left out.
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
        """The geometry without axes of no extent, such as z of a plane mesh."""
        wide = np.zeros(coordinates.shape[1], np.bool_)
        for k, axis in enumerate(coordinates.T):
            # Mostly the first values decide.
            origin = axis[:1]
            wide[k] = (axis[:FIRST] != origin).any() or (axis[FIRST:] != origin).any()
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
        """The coordinates of the points, (n_points, d): half of a geometry's memory."""
        if self.positions is not None:
            return read_only(self.positions)
        return read_only(point_positions(self.table, self.weight.size, self.coordinates))

    def placed(self) -> Geometry:
        """The same geometry, with positions computed now rather than on first use."""
        return replace(self, positions=self.position)

    def sample(self, chosen: NDArray[np.integer]) -> Geometry:
        """The geometry of some elements, with points placed by all of their elements."""
        points, local = np.unique(self.table[chosen], return_inverse=True)
        local = local.reshape(len(chosen), -1)
        # -1, for no point, comes first among the sorted numbers: it keeps its number.
        if points.size and points[0] < 0:
            points = points[1:]
            local = local - 1
        return Geometry(
            table=np.ascontiguousarray(local, np.int32),
            weight=self.weight[points],
            coordinates=self.coordinates[chosen],
            known=self.known,
            positions=self._positions_of(points),
        )

    def _positions_of(self, points: Int32s) -> Float64s:
        """The positions of some points in rising order, from their elements. O(n)."""
        if self.positions is not None or "position" in self.__dict__:
            return self.position[points]
        # the last entry is that of -1
        is_chosen = np.zeros(self.weight.size + 1, np.bool_)
        is_chosen[points] = True
        # Take the elements around the points chunk by chunk: a table of all elements in
        # local numbers would take as much memory as the mesh.
        tables = [self.table[:0]]
        places = [self.coordinates[:0]]
        for chunk in chunks(len(self.table)):
            beside = np.flatnonzero(is_chosen[self.table[chunk]].any(axis=1))
            near = self.table[chunk][beside]
            local = np.where(is_chosen[near], np.searchsorted(points, near), -1)
            tables.append(local.astype(np.int32))
            places.append(self.coordinates[chunk][beside])
        # Average over these elements only.
        table = np.concatenate(tables)
        where = np.concatenate(places)
        del tables, places
        return point_positions(read_only(table), points.size, read_only(where))

    @property
    def thinnest(self) -> float:
        """The least width of an element that counts, relative to its widest direction."""
        if self.known:
            return THINNEST
        return THINNEST_GUESSED

    def cut(self, rotation: float, n_blocks: int) -> Int32s:
        """Blocks by bisection in a rotated frame."""
        where = self.coordinates
        directions = rotated(where.shape[1], rotation)
        return bisect(
            table=self.table,
            position=self.position,
            coordinates=where,
            directions=directions,
            n_blocks=n_blocks,
            thinnest=self.thinnest,
        )

    def loads(self, block: Int32s, n_blocks: int) -> int:
        """The weighted loads of blocks, counted afresh. O(n * arity)."""
        return int(
            staged_bytes(
                table=self.table, weight=self.weight, block=block, n_blocks=n_blocks
            ).sum()
        )


class Sample(NamedTuple):
    """The elements that are measured for centroids and widths: all, or some, in order."""

    geometry: Geometry
    elements: Int32s | None = None

    def rows(self, example: Int32s) -> Int32s:
        """The rows of elements in the geometry."""
        if self.elements is None:
            return example
        return np.searchsorted(self.elements, example).astype(np.int32)


def rotated(d: int, rotation: float) -> Float64s:
    """The axes as rows, (d, d), rotated in turn in the planes of two successive ones."""
    directions = np.eye(d)
    cosine, sine = cosine_and_sine(rotation)
    for a in range(d - 1):
        first = directions[a].copy()
        second = directions[a + 1].copy()
        directions[a] = cosine * first + sine * second
        directions[a + 1] = cosine * second - sine * first
    return directions


def block_count(n: int, block_size: int) -> int:
    """The number of blocks for ``n`` elements, with room to move: 1 %, or 0.5 % if few."""
    if n <= block_size:
        return min(n, 1)
    needed = -(-n // block_size)
    if needed < 100:
        half_a_percent_more = -(-201 * n // (200 * block_size))
        return min(n, half_a_percent_more)
    one_percent_more = -(-101 * n // (100 * block_size))
    return min(n, one_percent_more, needed + needed // 100)


# Share of its cap below which a block that must not dissolve should not fall.
HELD = 0.9


@dataclass(frozen=True, eq=False)
class Sizes:
    """Weights of the elements, and the size of each block in these."""

    # (n,): at least 1; below 2^31 together.
    weight: Int32s
    # (n_blocks,): the most that a block may have, at least the largest weight.
    cap: Int64s
    # (n_blocks,): the size that a block should have at least.
    least: Int64s
    # (n_blocks,): sizes in proportion, at least 1; below 2^31 together.
    share: Int64s

    @classmethod
    def equal(cls, n: int, n_blocks: int, cap: int) -> Sizes:
        """Blocks of at most ``cap`` elements of weight 1."""
        cap_of_block = np.full(n_blocks, cap)
        nothing = np.zeros(n_blocks, np.int64)
        return cls(
            weight=np.ones(n, np.int32),
            cap=cap_of_block,
            least=nothing,
            share=np.ones(n_blocks, np.int64),
        )

    def held(self, some: Bools) -> Sizes:
        """The same sizes with a least size for some blocks, which must not dissolve."""
        least = np.where(some, HELD * self.cap, 0)
        return replace(self, least=least.astype(np.int64))

    @cached_property
    def mean_weight(self) -> float:
        """The mean weight of an element."""
        if self.weight.size:
            return float(self.weight.mean())
        return 1.0
