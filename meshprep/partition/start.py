"""How to begin: which directions to cut across and how much heat suits, tried on a sample.

Grids want blocks along their lines or along their diagonals, depending on what the elements and
points are; unstructured meshes hardly care. A sample of some dozens of blocks tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .bisection import bisect, point_positions
from .groups import refine_groups
from .level_bisection import bisect_by_levels
from .loads import weighted_loads_of
from .pivots import pivot_coordinates

# Turns of the frame, in radians. A little more than none, because elements of a grid stand in
# line: without it, where a line is cut through would be left to chance.
TILT = 0.013
TURNS = (TILT, np.pi / 8 + TILT, np.pi / 4 + TILT, 3 * np.pi / 8 + TILT)
HEATS = (0.4, 0.25, 0.65)
# By what share of the loads another turn must be better: less is chance.
WORTH_TURNING = 0.01
SAMPLE_BLOCKS = 96
SAMPLE_ELEMENTS = 40_000
SAMPLE_SWEEPS = 12


@dataclass(frozen=True)
class Start:
    """A turn of the frame of directions, in radians, and the heat to begin with, in points."""

    turn: float = TURNS[0]
    heat: float = HEATS[0]


@dataclass(frozen=True, eq=False)
class Geometry:
    """Elements to cut: their points, what these weigh, and where everything is.

    Without real places, ``coordinates`` are graph distances: good enough to tell which blocks are
    near each other, too coarse to cut by.
    """

    table: NDArray[np.int32]
    weight: NDArray[np.int32]
    coordinates: NDArray[np.float64]
    position: NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        table: NDArray[np.int32],
        weight: NDArray[np.int32],
        coordinates: NDArray[np.float64] | None,
    ) -> Geometry:
        """With the positions of the points, from their elements."""
        if coordinates is None:
            return cls(table, weight, pivot_coordinates(table, weight.size), None)
        position = point_positions(table, weight.size, coordinates)
        return cls(table, weight, coordinates, position)

    def cut(self, turn: float, n_blocks: int) -> NDArray[np.int32]:
        """Bisect in a frame that is turned, or by graph distances."""
        if self.position is None:
            return bisect_by_levels(self.table, self.weight.size, n_blocks)
        directions = turned(self.coordinates.shape[1], turn)
        return bisect(self.table, self.position, self.coordinates, directions, n_blocks)


def turned(d: int, turn: float) -> NDArray[np.float64]:
    """Rows are ``d`` orthogonal directions: the axes, turned in each plane of two next ones."""
    directions = np.eye(d)
    for a in range(d - 1):
        plane = np.eye(d)
        plane[a : a + 2, a : a + 2] = [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
        directions = plane @ directions
    return directions


def choose_start(geometry: Geometry, block_size: int, seed: int) -> Start:
    """Try turns and heats on the elements around the middle one; the fewest loads win.

    O(n) for the sample, which is of bounded size itself.
    """
    sample = _around_the_middle(geometry, min(SAMPLE_ELEMENTS, SAMPLE_BLOCKS * block_size))
    n_blocks = block_count(sample.table.shape[0], block_size)
    if n_blocks < 4:
        return Start()

    def score(start: Start) -> int:
        return _try(sample, start, n_blocks, block_size, seed)

    best, loads = Start(), score(Start())
    for turn in TURNS[1:] if sample.position is not None else ():
        found = score(Start(turn=turn))
        if found < (1 - WORTH_TURNING) * loads:
            best, loads = Start(turn=turn), found
    return min((replace(best, heat=heat) for heat in HEATS), key=score)


def block_count(n: int, block_size: int) -> int:
    """Blocks for ``n`` elements: 1 % more than needed, so that elements can move; at most n."""
    if n <= block_size:
        return min(n, 1)
    return min(n, -(-101 * n // (100 * block_size)))


def _around_the_middle(geometry: Geometry, count: int) -> Geometry:
    where = geometry.coordinates
    n = where.shape[0]
    chosen = np.arange(n)
    if n > count:
        far = np.zeros(n)
        for axis in where.T:
            off = axis - axis[n // 2]
            off *= off
            far += off
        chosen = np.flatnonzero(far <= np.partition(far, count)[count])[: 2 * count]
    points, local = np.unique(geometry.table[chosen], return_inverse=True)
    local = local.reshape(chosen.size, -1)
    if points.size and points[0] < 0:
        points, local = points[1:], local - 1
    return Geometry.of(
        np.ascontiguousarray(local, dtype=np.int32),
        geometry.weight[points],
        None if geometry.position is None else where[chosen],
    )


def _try(sample: Geometry, start: Start, n_blocks: int, block_size: int, seed: int) -> int:
    block = sample.cut(start.turn, n_blocks)
    raw = int(weighted_loads_of(sample.table, sample.weight, block, n_blocks))
    schedule = (start.heat, 0, SAMPLE_SWEEPS + 3, SAMPLE_SWEEPS)
    one_group = np.zeros(n_blocks, dtype=np.int32)
    return raw - refine_groups(
        sample.table, sample.weight, block, one_group, block_size, schedule, seed
    )
