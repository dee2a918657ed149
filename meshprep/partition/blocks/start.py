"""How to begin: which directions to cut across and which temperature suits, from a sample.

Grids want blocks along their lines or along their diagonals, depending on what the elements and
points are; unstructured meshes hardly care. A sample of some dozens of blocks tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import read_only

from ..loads import weighted_loads_of
from .anneal import AnnealingSchedule
from .bisection import THINNEST, THINNEST_GUESSED, bisect, point_positions
from .centroids import BlockMetrics, block_metrics
from .groups import PointTable, refine_groups, unit_of
from .pivots import pivot_coordinates
from .point_degrees import colour_bounds

# Rotations of the frame, in radians. A little more than none, because elements of a grid stand in
# line: without it, where a line is cut through would be left to chance.
JITTER = 0.013
ROTATIONS = (JITTER, np.pi / 8 + JITTER, np.pi / 4 + JITTER, 3 * np.pi / 8 + JITTER)
# Grids want little of both, blocks with many elements at a point a low temperature, meshes of a
# mesher a large centroid weight.
TEMPERATURES_AND_CENTROID_WEIGHTS = (
    (0.3, 0.2), (0.3, 0.5), (0.5, 0.5), (0.5, 2.0), (0.75, 0.2), (0.75, 0.5), (0.75, 2.0),
    (1.0, 0.2), (1.0, 2.0),
)  # fmt: skip
# By what share of the loads another rotation must be better: less is chance.
WORTH_ROTATING = 0.01
SAMPLE_BLOCKS = 80
SAMPLE_ELEMENTS = 24_000
# Which rotation is best shows early.
ROTATION_SWEEPS = 10
COLD_SWEEPS = 3


@dataclass(frozen=True)
class Start:
    """Rotation of the frame, in radians; first temperature and centroid weight, in points."""

    rotation: float = ROTATIONS[0]
    temperature: float = 0.4
    centroid_weight: float = 0.15


@dataclass(frozen=True, eq=False)
class Geometry:
    """Elements to cut: their points, what these weigh, and where everything is.

    ``known`` tells that the coordinates are real; otherwise they stand for graph distances.
    """

    table: NDArray[np.int32]
    weight: NDArray[np.int32]
    written: NDArray[np.bool_]
    coordinates: NDArray[np.float64]
    position: NDArray[np.float64]
    known: bool

    @classmethod
    def of(
        cls,
        table: NDArray[np.int32],
        weight: NDArray[np.int32],
        written: NDArray[np.bool_],
        coordinates: NDArray[np.float64] | None,
    ) -> Geometry:
        """With the positions of the points, from their elements."""
        known = coordinates is not None
        if coordinates is None:
            coordinates = pivot_coordinates(table, weight.size)
        else:
            coordinates = _in_use(coordinates)
        position = point_positions(read_only(table), weight.size, read_only(coordinates))
        return cls(table, weight, written, coordinates, position, known)

    def __post_init__(self) -> None:
        # Kernels are compiled once for arrays that may be written to and once for others.
        for name in ("table", "weight", "written", "coordinates", "position"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def thinnest(self) -> float:
        """How thin elements may count as, relative to their widest direction."""
        return THINNEST if self.known else THINNEST_GUESSED

    def cut(self, rotation: float, n_blocks: int) -> NDArray[np.int32]:
        """Bisect in a frame that is rotated."""
        where = self.coordinates
        directions = rotated(where.shape[1], rotation)
        return bisect(self.table, self.position, where, directions, n_blocks, self.thinnest)

    def metrics(self, block: NDArray[np.int32], n_blocks: int, cap: int) -> BlockMetrics:
        """Where elements are and how wide, for the centroid term."""
        where = self.coordinates
        return block_metrics(self.table, self.position, where, block, n_blocks, cap, self.thinnest)


def rotated(d: int, rotation: float) -> NDArray[np.float64]:
    """Rows are ``d`` orthogonal directions: the axes, rotated in each plane of two next ones."""
    directions = np.eye(d)
    for a in range(d - 1):
        plane = np.eye(d)
        plane[a : a + 2, a : a + 2] = [
            [np.cos(rotation), np.sin(rotation)],
            [-np.sin(rotation), np.cos(rotation)],
        ]
        directions = plane @ directions
    return directions


def choose_start(
    geometry: Geometry, block_size: int, seed: int, sweeps: int, colour: float = 0.0
) -> Start:
    """Try rotations, then temperatures and centroid weights, on the elements around the centre.

    The latter for ``sweeps`` sweeps. The fewest loads win, with ``colour`` points added for each
    thread colour of each block. The trials run in parallel. O(n) for the sample, which is of
    bounded size itself.
    """
    sample = _around_the_centre(geometry, min(SAMPLE_ELEMENTS, SAMPLE_BLOCKS * block_size))
    n_blocks = block_count(sample.table.shape[0], block_size)
    if n_blocks < 4:
        return Start()
    trial = _Trial(sample, n_blocks, block_size, seed, colour)
    cuts = [sample.cut(rotation, n_blocks) for rotation in ROTATIONS]
    scores = trial.run(cuts, [Start(rotation) for rotation in ROTATIONS], ROTATION_SWEEPS)
    best = int(np.argmin(scores))
    best = best if scores[best] < (1 - WORTH_ROTATING) * scores[0] else 0
    starts = [
        Start(ROTATIONS[best], temperature, centroid_weight)
        for temperature, centroid_weight in TEMPERATURES_AND_CENTROID_WEIGHTS
    ]
    return starts[int(np.argmin(trial.run([cuts[best]] * len(starts), starts, sweeps)))]


@dataclass(frozen=True, eq=False)
class _Trial:
    """A sample on which starts are tried, each as a group of blocks of its own."""

    sample: Geometry
    n_blocks: int
    block_size: int
    seed: int
    colour: float

    def run(self, cuts: list[NDArray[np.int32]], starts: list[Start], sweeps: int) -> list[float]:
        """The loads that every start comes to from its cut."""
        count, sample = len(cuts), self.sample
        block = np.concatenate([cut + np.int32(k * self.n_blocks) for k, cut in enumerate(cuts)])
        table = np.tile(sample.table, (count, 1))
        group = np.repeat(np.arange(count, dtype=np.int32), self.n_blocks)
        each = [sample.metrics(cut, self.n_blocks, self.block_size) for cut in cuts]
        metrics = BlockMetrics(
            np.concatenate([p.coordinates for p in each]),
            np.concatenate([p.metric for p in each]),
        )
        schedules = [
            AnnealingSchedule(
                s.temperature, s.centroid_weight, self.colour, 0, sweeps + COLD_SWEEPS, sweeps
            )
            for s in starts
        ]
        points = PointTable(table, sample.weight, sample.written)
        refine_groups(points, metrics, block, group, self.block_size, schedules, self.seed)
        return [self._score(part) for part in np.split(block, count)]

    def _score(self, block: NDArray[np.int32]) -> float:
        local = block - block.min() // self.n_blocks * self.n_blocks
        sample, n_blocks = self.sample, self.n_blocks
        found = float(weighted_loads_of(sample.table, sample.weight, local, n_blocks))
        if self.colour > 0.0:
            bounds = colour_bounds(sample.table, sample.written, local, n_blocks)
            found += self.colour * unit_of(sample.weight) * float(bounds.sum())
        return found


def block_count(n: int, block_size: int) -> int:
    """Blocks for ``n`` elements: 1 % more than needed, so that elements can move; at most n.

    One more than needed where that is less than 1 %.
    """
    if n <= block_size:
        return min(n, 1)
    needed = -(-n // block_size)
    return min(n, -(-101 * n // (100 * block_size)), needed + max(1, needed // 100))


def _around_the_centre(geometry: Geometry, count: int) -> Geometry:
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
    table = np.ascontiguousarray(local, dtype=np.int32)
    position = geometry.position[points]
    return Geometry(
        table, geometry.weight[points], geometry.written[points], where[chosen], position,
        geometry.known,
    )  # fmt: skip


def _in_use(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without the axes along which everything is at one place, such as z of a plane mesh."""
    if not coordinates.size:
        return coordinates
    wide = coordinates.min(axis=0) < coordinates.max(axis=0)
    wide[0] |= not wide.any()
    return coordinates if wide.all() else np.ascontiguousarray(coordinates[:, wide])
