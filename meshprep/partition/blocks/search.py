"""The search for better blocks: annealing on every level, from large clusters to elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...colour.thread_colours import colour_threads
from ...kernels import clock, kernel
from ...mesh.incidence import Csr
from ..blocks_of import sort_by
from .bisection import bisect
from .caps import within_cap
from .centroids import block_metrics, squared_radius
from .geometry import Geometry, rotated
from .groups import AnnealingSchedule, Points, anneal_groups, unit_of
from .levels import Level, cluster_sizes, coarsen, element_level

# Elements of a group. Larger groups have fewer blocks at their rims, which stay as they are for a
# phase; smaller ones fit a cache. Their number is even, for machines with few cores.
GROUP_ELEMENTS = 120_000
LONE_GROUP = 40_000
# Clusters of a block that tell where it is and how wide its elements are.
SAMPLED = 24
# Sweeps over a lone group after which progress is told.
LONG = 100
# Groupings of a level, at least, where there is a time limit.
HURRIED = 4
# Sweeps at the end that only gain.
COLD_SWEEPS = 4
# Temperatures are in points, or in so many of those that an element loads where these are more.
HEAT_PRICE = 1.2
# The share of the sweeps after which excess and its price have their last values.
HOLDS = 0.9
FOREVER = 1e9


@dataclass(frozen=True)
class Phase:
    """How one level is annealed: sweeps, in how many groupings; first and last values.

    As of :class:`groups.AnnealingSchedule`; ``over`` counts the points that an element loads.
    """

    sweeps: int
    groupings: int
    settled: float
    temperature: tuple[float, float]
    facet: float
    excess: tuple[float, float]
    pull: tuple[float, float]
    over: tuple[float, float]


# Single elements, then ever larger clusters; the smallest of these twice where there are many.
ELEMENTS = Phase(30, 2, 0.9, (0.55, 0.05), 0.3, (0.03, 0.0), (0.3, 0.0), (0.6, 3.0))
CLUSTERS = (
    Phase(38, 2, 1.0, (3.0, 1.0), 0.25, (0.15, 0.1), (4.0, 1.0), (0.6, 0.6)),
    Phase(34, 2, 1.0, (2.3, 0.6), 0.25, (0.1, 0.08), (3.0, 0.5), (0.6, 1.0)),
    Phase(20, 2, 1.0, (0.9, 0.4), 0.25, (0.04, 0.01), (1.0, 0.5), (1.0, 2.0)),
)
# From blocks of another partitioner.
OTHER = Phase(8, 2, 0.9, (0.25, 0.0), 0.3, (0.02, 0.0), (0.0, 0.0), (0.6, 3.0))
# From blocks that follow the lines of a grid already, of a plane or of space.
GRIDS = (
    Phase(9, 1, 0.9, (0.2, 0.0), 0.15, (0.03, 0.0), (0.4, 0.0), (0.6, 3.0)),
    Phase(28, 2, 0.9, (0.4, 0.0), 0.15, (0.03, 0.0), (0.4, 0.0), (0.6, 3.0)),
)


@dataclass(eq=False)
class Search:
    """What one search needs; ``graph`` has the neighbours of each element.

    ``effort`` multiplies the sweeps; with ``until``, a time of ``clock``, there are as many as fit.
    ``colour`` is the price of one more thread colour in a block, in points. ``progress`` is told
    the share that is done. ``sweeps`` counts those over single elements, ``fragmented`` the blocks
    in several pieces, where that is known.
    """

    geometry: Geometry
    graph: Csr
    n_blocks: int
    cap: int
    seed: int
    effort: float
    colour: float = 0.0
    until: float = FOREVER
    progress: Callable[[float], None] = lambda share: None
    sweeps: int = field(default=0, init=False)
    loads_at_start: int = field(default=0, init=False)
    fragmented: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        g = self.geometry
        self._elements = element_level(g.table, self.graph, g.coordinates)
        self._budget = _Budget(self.effort, self.until, self.progress)

    @property
    def small(self) -> bool:
        """Whether all elements are annealed as one group."""
        return self._elements.weight.size <= LONE_GROUP

    def multilevel(self, rotation: float) -> NDArray[np.int32]:
        """Blocks from the bisection of the largest clusters, annealed on every level."""
        g, levels, labels = self.geometry, [self._elements], []
        for size in cluster_sizes(self.cap):
            level, label = coarsen(levels[-1], g.weight.size, size)
            levels.append(level)
            labels.append(label)
        top, coordinates = levels[-1], g.coordinates[levels[-1].example]
        frame = rotated(coordinates.shape[1], rotation)
        block = bisect(
            g.table[top.example], g.position, coordinates, frame, self.n_blocks, g.thinnest,
            top.weight,
        )  # fmt: skip
        fine = block
        for label in reversed(labels):
            fine = fine[label]
        self.loads_at_start = g.loads(fine, self.n_blocks)
        phases = [CLUSTERS[min(k, len(CLUSTERS) - 1)] for k in range(len(labels))] + [ELEMENTS]
        todo = list(zip(reversed(levels), phases, strict=True))
        for k, (level, phase) in enumerate(todo):
            self._anneal(level, phase, block, todo[k:])
            block = block[labels[-1 - k]] if k < len(labels) else block
        return block

    def improve(self, block: NDArray[np.int32], phase: Phase) -> NDArray[np.int32]:
        """Blocks within the cap, annealed element by element from those given; no worse."""
        self.loads_at_start = self.geometry.loads(block, self.n_blocks)
        found = block.copy()
        gained = self._anneal(self._elements, phase, found, [(self._elements, phase)])
        moved = self.within_cap(found)
        if moved or self.colour:
            return found if self.cost(found) <= self.cost(block) else block.copy()
        return found if gained >= 0 else block.copy()

    def within_cap(self, block: NDArray[np.int32]) -> bool:
        """Bring every block within the cap; whether any was over it."""
        return within_cap(self.geometry, self.graph, block, self.n_blocks, self.cap)

    def cost(self, block: NDArray[np.int32]) -> float:
        """The weighted loads, and the price of the colours."""
        g = self.geometry
        cost = float(g.loads(block, self.n_blocks))
        if self.colour:
            cost += self.colour * unit_of(g.weight) * self._colours(block)
        return cost

    def _colours(self, block: NDArray[np.int32]) -> int:
        """The thread colours of all blocks."""
        g = self.geometry
        offset, member = sort_by(block, self.n_blocks)
        # what is not written becomes a point of the element alone
        own = g.weight.size + np.arange(block.size, dtype=np.int32)[:, None]
        written = np.where((g.table >= 0) & g.written[g.table], g.table, own)
        colours = colour_threads(written[member], g.weight.size + block.size, offset)
        return int(colours.count.sum())

    def _anneal(
        self,
        level: Level,
        phase: Phase,
        block: NDArray[np.int32],
        todo: list[tuple[Level, Phase]],
    ) -> int:
        """Anneal one level, the first of those that are left to do; ``block`` is changed.

        Returns by how much the weighted loads fell.
        """
        last, gained = len(todo) == 1, 0
        total, begin = self._budget.sweeps(todo, 0.0), 0
        parts = min(total, max(1, round(phase.groupings * self.effort**0.5)))
        parts = 1 + total // LONG if self.small else parts
        # what fits into the time is found out on the way
        parts = min(total, max(parts, HURRIED)) if self.until < FOREVER else parts
        written = self.geometry.written if last and self.colour else None
        metric = self._metric(level, block) if phase.pull[0] else np.zeros((self.n_blocks, 6))
        for part in range(parts):
            end = begin + round((total - begin) / (parts - part))
            cold = COLD_SWEEPS if last and part == parts - 1 else 0
            number = 100 * len(todo) + part
            groups = self._groups(level, block, number)
            schedule = self._schedule(phase, total)._replace(begin=begin, end=end + cold)
            seed = (self.seed + 1_000_003 * number) % 2**31
            points = Points(self.geometry.weight, written)
            gained += anneal_groups(level, points, metric, block, groups, schedule, seed)
            self._budget.spend(level, end - begin)
            begin = end
            if self.until < FOREVER and part < parts - 1:
                total = begin + self._budget.sweeps(todo, begin / total)
        if last:
            self.sweeps += total
        return gained

    def _schedule(self, phase: Phase, total: int) -> AnnealingSchedule:
        """The whole schedule of a level."""
        unit = unit_of(self.geometry.weight)
        loaded = self.loads_at_start / unit / max(1, self._elements.weight.size)
        heat = max(1.0, HEAT_PRICE * loaded)
        first, final = phase.temperature
        # in a long search, whole regions would fill
        over = loaded * min(2.0, max(1.0, self.effort**0.5))
        return AnnealingSchedule(
            0, total, total, self.cap, phase.settled, HOLDS, (heat * first, heat * final),
            phase.excess, phase.pull, phase.facet,
            (phase.over[0] * over, phase.over[1] * over), float(self.colour), 1.0 / unit,
        )  # fmt: skip

    def _metric(self, level: Level, block: NDArray[np.int32]) -> NDArray[np.float64]:
        """Of each block, scaled so that the mean squared radius is 1."""
        g, step = self.geometry, self._sample(level)
        metric = block_metrics(
            g.table, g.position, g.coordinates, level.example[::step].copy(), block[::step].copy(),
            self.n_blocks, g.thinnest,
        )  # fmt: skip
        radius = squared_radius(
            level.place[::step].copy(), level.weight[::step].copy(), block[::step].copy(), metric
        )
        return metric / radius if radius > 0.0 else metric

    def _sample(self, level: Level) -> int:
        """Every so manyth cluster tells where blocks are and how wide their elements."""
        return max(1, level.weight.size // (SAMPLED * self.n_blocks))

    def groups(self, block: NDArray[np.int32], number: int) -> NDArray[np.int32]:
        """Groups of neighbouring blocks of elements, one where there are few."""
        return self._groups(self._elements, block, number)

    def _groups(self, level: Level, block: NDArray[np.int32], number: int) -> NDArray[np.int32]:
        """Groups of neighbouring blocks, cut in directions that differ from time to time."""
        if self.small:
            return np.zeros(self.n_blocks, np.int32)
        n_groups = 2 * -(-self._elements.weight.size // (2 * GROUP_ELEMENTS))
        step = self._sample(level)
        where = middles(
            level.place[::step].copy(), level.weight[::step].copy(), block[::step].copy(),
            self.n_blocks,
        )  # fmt: skip
        directions, _ = np.linalg.qr(np.random.default_rng(number).normal(size=(3, 3)))
        no_points = np.empty((self.n_blocks, 0), dtype=np.int32)
        nowhere = np.empty((0, 3), dtype=np.float64)
        return bisect(no_points, nowhere, where, directions, min(self.n_blocks, n_groups))


class _Budget:
    """How many sweeps there are: by effort, or as many as fit into the time that is left."""

    # Looks at clusters and their points in a second, until it is measured; of the time left, what
    # is kept for the end.
    USUAL_RATE, KEPT = 3e7, 0.1

    def __init__(self, effort: float, until: float, progress: Callable[[float], None]) -> None:
        self._effort, self._until, self._progress = effort, until, progress
        self._begun, self._done, self._left = clock(), 0.0, 0.0

    def sweeps(self, todo: list[tuple[Level, Phase]], done: float) -> int:
        """Sweeps, at least 1, that the first level to do still gets; a share of them is done."""
        works = [phase.sweeps * _work(level) for level, phase in todo]
        works[0] *= 1.0 - done
        effort = self._effort
        if self._until < FOREVER:
            spent = clock() - self._begun
            rate = self._done / spent if self._done and spent > 0 else self.USUAL_RATE
            time_left = max(0.0, self._until - clock()) * (1 - self.KEPT)
            effort = time_left * rate / max(1.0, sum(works))
        self._left = effort * sum(works)
        return max(1, round(todo[0][1].sweeps * (1.0 - done) * effort))

    def spend(self, level: Level, sweeps: int) -> None:
        """Take note of what was done."""
        done = sweeps * _work(level)
        self._done, self._left = self._done + done, max(0.0, self._left - done)
        self._progress(self._done / max(1.0, self._done + self._left))


def _work(level: Level) -> float:
    return float(level.points.size + level.neighbours.size)


@kernel
def middles(
    place: NDArray[np.float64], weight: NDArray[np.int32], block: NDArray[np.int32], n_blocks: int
) -> NDArray[np.float64]:
    """The mean place of the elements of every block, (n_blocks, 3). O(clusters)."""
    centroid = np.zeros((n_blocks, 3), np.float64)
    size = np.zeros(n_blocks, np.int64)
    for i in range(block.size):
        size[block[i]] += weight[i]
        for a in range(3):
            centroid[block[i], a] += weight[i] * place[i, a]
    for b in range(n_blocks):
        for a in range(3):
            centroid[b, a] /= max(1, size[b])
    return centroid
