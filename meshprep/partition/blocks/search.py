"""The search for better blocks: phases of annealing, until the schedule or the time has run out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...kernels import clock, kernel
from ..loads import weighted_loads_of
from .anneal import CENTROID_TERM_ENDS, AnnealingSchedule
from .bisection import bisect
from .centroids import BlockMetrics
from .components import count_components
from .groups import PointTable, reconnect_groups, refine_groups, unit_of
from .point_degrees import colour_bounds
from .start import Geometry, Start

# Elements of a group. Larger groups have fewer blocks at their rims, which stay as they are for a
# phase; smaller ones fit a cache. Their number is even, for machines with few cores.
GROUP_ELEMENTS = 120_000
# Cuts by graph distances leave more to do than cuts by coordinates.
GUESSED_SWEEPS = 2
LONE_GROUP = 40_000
# Sweeps at the end that only gain.
COLD_SWEEPS = 6
# How often blocks are grouped to reconnect them; one block of so many may stay fragmented.
REUNIONS = 3
FEW = 300


@dataclass(frozen=True)
class Effort:
    """How long to search: sweeps above temperature 0, and over how many phases."""

    sweeps: int
    phases: int


EFFORTS: Mapping[str, Effort] = {
    "fast": Effort(sweeps=16, phases=3),
    "default": Effort(sweeps=32, phases=4),
    "strong": Effort(sweeps=300, phases=12),
}


def loads_now(geometry: Geometry, block: NDArray[np.int32], n_blocks: int) -> int:
    """The weighted loads, counted afresh. O(n * arity)."""
    return int(weighted_loads_of(geometry.table, geometry.weight, block, n_blocks))


@dataclass(eq=False)
class Search:
    """What one search needs; ``until`` is a time of ``clock``, ``sweeps`` what was made.

    ``progress`` is told the share that is done.
    """

    geometry: Geometry
    n_blocks: int
    cap: int
    seed: int
    start: Start
    colour: float
    until: float
    progress: Callable[[float], None]
    sweeps: int = field(default=0, init=False)
    metrics: BlockMetrics | None = field(default=None, init=False)

    def run(self, start_block: NDArray[np.int32], effort: Effort) -> NDArray[np.int32]:
        """Blocks no worse than those at the start, which are not changed."""
        block, g = start_block.copy(), self.geometry
        points = PointTable(g.table, g.weight, g.written)
        first = self.cost(start_block)
        total = effort.sweeps if g.known else effort.sweeps * GUESSED_SWEEPS
        phase, sweep, step = 0, 0, -(-total // effort.phases)
        while sweep < total:
            begin = clock()
            end = min(total, sweep + step)
            last = COLD_SWEEPS if end == total else 0
            schedule = AnnealingSchedule(
                self.start.temperature, self.start.centroid_weight, self.colour, sweep,
                end + last, total,
            )  # fmt: skip
            refine_groups(
                points, self._metrics(block, sweep, total), block, self._groups(block, phase),
                self.cap, [schedule], (self.seed + 1_000_003 * phase) % 2**31,
            )  # fmt: skip
            phase, sweep = phase + 1, end
            self.progress(sweep / total)
            # What does not fit into the time is left out: the rest of the way is cooler sooner.
            seconds = (clock() - begin) / step
            fits = int((self.until - clock()) / max(seconds, 1e-9)) - COLD_SWEEPS
            if sweep < total and sweep + fits < total:
                total = sweep + max(fits, 1)
        self._reconnect(block, phase)
        self.sweeps = sweep
        return block if self.cost(block) <= first else start_block

    def _metrics(self, block: NDArray[np.int32], sweep: int, total: int) -> BlockMetrics:
        # blocks drift, and elements are not equally wide everywhere
        if self.metrics is None or sweep < CENTROID_TERM_ENDS * total:
            self.metrics = self.geometry.metrics(block, self.n_blocks, self.cap)
        return self.metrics

    def _reconnect(self, block: NDArray[np.int32], phase: int) -> None:
        g = self.geometry
        for k in range(REUNIONS):
            components = count_components(g.table, g.weight.size, block, self.n_blocks)
            if (components > 1).sum() * FEW <= self.n_blocks:
                return
            groups = self._groups(block, phase + k)
            reconnect_groups(g.table, g.weight, block, groups, self.cap, components > 1)

    def cost(self, block: NDArray[np.int32]) -> float:
        """The weighted loads, and the price of the colours."""
        g = self.geometry
        cost = float(loads_now(g, block, self.n_blocks))
        if self.colour:
            bounds = colour_bounds(g.table, g.written, block, self.n_blocks)
            cost += self.colour * unit_of(g.weight) * float(bounds.sum())
        return cost

    def _groups(self, block: NDArray[np.int32], phase: int) -> NDArray[np.int32]:
        """Groups of neighbouring blocks, cut in directions that differ from phase to phase."""
        if block.size <= LONE_GROUP:
            return np.zeros(self.n_blocks, np.int32)
        n_groups = min(self.n_blocks, 2 * -(-block.size // (2 * GROUP_ELEMENTS)))
        where = middles(self.geometry.coordinates, block, self.n_blocks)
        d = where.shape[1]
        directions, _ = np.linalg.qr(np.random.default_rng(phase).normal(size=(d, d)))
        no_points = np.empty((self.n_blocks, 0), dtype=np.int32)
        nowhere = np.empty((0, d), dtype=np.float64)
        return bisect(no_points, nowhere, where, directions, n_groups)


@kernel
def middles(
    coordinates: NDArray[np.float64], block: NDArray[np.int32], n_blocks: int
) -> NDArray[np.float64]:
    """The mean place of the elements of every block. O(n d)."""
    centroid = np.zeros((n_blocks, coordinates.shape[1]), np.float64)
    size = np.zeros(n_blocks, np.int64)
    for i in range(block.size):
        size[block[i]] += 1
        for a in range(coordinates.shape[1]):
            centroid[block[i], a] += coordinates[i, a]
    for b in range(n_blocks):
        for a in range(coordinates.shape[1]):
            centroid[b, a] /= max(1, size[b])
    return centroid
