"""Annealing of one level: its groups, its schedule, and the loads of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....kernels import Bools, Float64s, Int32s
from ....kernels.arithmetic import log, power, random_frame
from ....kernels.parallel import each
from ....mesh.incidence import Csr
from ..bisect.bisection import bisect_places
from ..bisect.geometry import Geometry, Sample, Sizes
from ..grouping import Grouping
from ..levels import Level, element_level, in_space
from ..mend.caps import within_cap
from ..tuning import GROUP_SIZE, Phase, SearchTuning
from .centroids import block_metrics, middles, squared_radius
from .corners import Corners
from .groups import AnnealingSchedule, anneal_groups, unit_of
from .sweep import acceptance_thresholds


def phases(
    levels: Sequence[Level], d: int, tuning: SearchTuning, n_blocks: int
) -> list[tuple[Level, Phase]]:
    """Levels with their phases, from the largest clusters to elements.

    A move of larger clusters changes more of a border, which grows with the power (d - 1) / d of
    their size: the temperature rises with it.
    """
    t, more = tuning, 1.0
    if d == 2:
        # elements are edges between two cells, not edges between nodes
        n, beside = levels[0].weight.size, levels[0].neighbours.size
        between_cells = levels[0].points.size <= 2 * n and beside <= t.edge_neighbours * n
        elements, clusters = t.plane_edges if between_cells else t.plane_elements, t.plane_clusters
        more = min(t.most_times, power(max(1.0, n_blocks / t.many_blocks), t.many_blocks_power))
    else:
        elements = replace(t.elements, group=t.space_group)
        first, second, third = (replace(phase, group=t.space_group) for phase in t.clusters)
        clusters = first, second, third
    powers = _powers(levels[0], d, n_blocks, t)
    times = [more * power(max(1.0, t.effort), by - 1.0) for by in powers]
    top = min(len(levels) - 1, len(clusters))
    usual, fewer = levels[top].weight.size, math.prod([t.cooler] * (len(clusters) - top))
    found = [(levels[0], elements.longer(times[0]))]
    for k, level in enumerate(levels[1:], start=1):
        growth = fewer * power(max(1.0, usual / level.weight.size), (d - 1) / d)
        found.append((level, clusters[max(0, top - k)].hotter(growth).longer(times[k > 1])))
    return found[::-1]


def in_two(
    corners: Level, phase: Phase, elements: Level, tuning: SearchTuning
) -> list[tuple[Level, Phase]]:
    """The phase of elements in two parts: with corners alone, then with all points."""
    return [(corners, phase.longer(tuning.with_corners)), (elements, phase.end(tuning.with_all))]


def _powers(elements: Level, d: int, n_blocks: int, t: SearchTuning) -> tuple[float, float]:
    """Powers of the effort by which sweeps grow: of small clusters, and of larger ones."""
    n = max(1, elements.weight.size)
    lower = t.power_by_size[d > 2] * log(max(1.0, n / n_blocks / t.usual_block))
    powers = t.plane_power, t.plane_power
    if d != 2:
        lower += t.power_by_points * log(max(1.0, elements.points.size / n / 4.0))
        higher = t.power_by_blocks * log(max(1.0, n_blocks / t.many_blocks))
        powers = min(t.highest_power, t.space_powers[0] + higher), t.space_powers[1]
    return max(t.lowest_power, powers[0] - lower), max(t.lowest_power, powers[1] - lower)


def _work(level: Level) -> float:
    return float(level.points.size + level.neighbours.size)


@dataclass(eq=False)
class Annealing:
    """Annealing of given blocks; ``graph`` has the neighbours of each element.

    ``effort`` multiplies the sweeps. ``progress`` is called with the share that is done. ``sizes``
    replaces ``cap`` where blocks are of unequal size. Elements with ``corners`` are annealed by
    these first. Results: ``sweeps`` over single elements; ``fragmented``, the number of blocks in
    several pieces, -1 if unknown.
    """

    geometry: Geometry
    graph: Csr
    n_blocks: int
    cap: int
    seed: int
    effort: float
    progress: Callable[[float], None] = lambda share: None
    sizes: Sizes | None = None
    corners: Corners | None = None
    sweeps: int = field(default=0, init=False)
    loads_at_start: int = field(default=0, init=False)
    fragmented: int = field(default=-1, init=False)
    _done: float = field(default=0.0, init=False)
    _loaded_corners: float = field(default=0.0, init=False)
    _guided: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        self.tuning = SearchTuning.of(self.effort)
        self._unit = unit_of(self.geometry.weight)
        n = self.geometry.table.shape[0]
        self._sizes = self.sizes or Sizes.equal(n, self.n_blocks, self.cap)
        self._prepare()

    def _prepare(self) -> None:
        g = self.geometry
        known = self.graph, g.coordinates, self._sizes.weight
        self._elements = element_level(g.table, *known)
        # elements with their corners, or with all points
        self._first = element_level(self.corners.table, *known) if self.corners else self._elements
        self._looked_at = Sample(replace(g, table=self.corners.table) if self.corners else g)

    @property
    def small(self) -> bool:
        """True if all elements are annealed as one group."""
        t = self.tuning
        many = self.n_blocks >= 2 * t.group_blocks
        return self._elements.weight.size <= (t.lone_group_of_many if many else t.lone_group)

    def _start_from(self, block: Int32s) -> None:
        """Set the loads at the start, of all points and of corners."""
        known = block, self.n_blocks
        self.loads_at_start = self.geometry.loads(*known)
        if self.corners:
            self._loaded_corners = self.corners.loaded(self.geometry.weight, *known)

    def _of_elements(self, first: Level, phase: Phase) -> list[tuple[Level, Phase]]:
        """The levels of a phase of elements: a long phase begins with the corners alone."""
        elements = self._elements._replace(place=first.place)
        if self.corners and phase.sweeps >= self.tuning.worth_corners:
            return in_two(first, phase, elements, self.tuning)
        return [(elements, phase)]

    def improve(self, block: Int32s, phase: Phase) -> Int32s:
        """Blocks within the cap, annealed element by element."""
        self._start_from(block)
        found, pressure, gained = block.copy(), np.zeros((1, self.n_blocks)), 0.0
        todo = self._of_elements(self._first, phase)
        for k in range(len(todo)):
            for tasks in self._groupings(todo[k:], [found], pressure):
                gained += sum(each(anneal_groups, tasks))
        moved = self.within_cap(found)
        if moved or len(todo) > 1:
            return found if self.loads(found) <= self.loads_at_start else block.copy()
        return found if gained >= 0 else block.copy()

    def within_cap(self, block: Int32s) -> bool:
        """Bring every block within the cap, in place; returns whether any was over it."""
        return within_cap(self.geometry, self.graph, block, self.n_blocks, self.cap)

    def loads(self, block: Int32s) -> int:
        """The weighted loads, counted afresh."""
        return self.geometry.loads(block, self.n_blocks)

    def _groupings(
        self, todo: list[tuple[Level, Phase]], blocks: list[Int32s], pressure: Float64s
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The tasks of :func:`anneal_groups` for the first remaining level, one list a grouping.

        ``blocks`` and ``pressure`` have an entry for every start. The caller runs each list before
        it takes the next, which groups the resulting blocks in another way.
        """
        (level, phase), last = todo[0], len(todo) == 1
        total, begin = max(1, round(phase.sweeps * self.effort)), 0
        left = self.effort * sum(phase.sweeps * _work(level) for level, phase in todo)
        t = self.tuning
        often = t.more_groupings if self._elements.weight.size <= t.lone_group else 1
        parts = min(total, max(1, round(often * phase.groupings * math.sqrt(self.effort))))
        parts = 1 + total // t.report_sweeps if self.small else parts
        metrics = [self._metric(level, phase, block) for block in blocks]
        for part in range(parts):
            end = begin + round((total - begin) / (parts - part))
            cold = t.cold_sweeps if last and part == parts - 1 else 0
            number = 100 * len(todo) + part
            schedule = self._schedule(phase, total, last)._replace(begin=begin, end=end + cold)
            tasks: list[tuple[Any, ...]] = []
            for start, block in enumerate(blocks):
                count = self._group_count(phase.group)
                grouping = Grouping.of(block, self._groups(level, block, number, count))
                own = schedule._replace(seed=(self.seed + start + 1_000_003 * number) % 2**31)
                given = level, self.geometry.weight, metrics[start], block, grouping
                tasks += [(*given, share, own, pressure[start]) for share in grouping.shares()]
            yield tasks
            done = (end - begin) * _work(level)
            self._done, left = self._done + done, max(0.0, left - done)
            self.progress(self._done / max(1.0, self._done + left))
            begin = end
        self.sweeps += total if level.weight.size == self._elements.weight.size else 0

    def _schedule(self, phase: Phase, total: int, last: bool) -> AnnealingSchedule:
        """The schedule of all sweeps of a level."""
        t, unit, n = self.tuning, self._unit, max(1, self._elements.weight.size)
        loaded = self.loads_at_start / unit / n
        if self.corners and not last:
            unit, loaded = self.corners.unit, self._loaded_corners
        heat = max(1.0, t.heat * loaded)
        (first, final), one = phase.temperature, self._sizes.mean_weight
        drawn = self._guided * (1.0 if self.geometry.known or self.sizes else t.pull_guessed)
        # parts of unlike sizes have shares to keep to instead
        rate = 0.0 if self.sizes else phase.rate / math.sqrt(self.effort)
        # in a long search, whole regions would fill
        over = min(loaded, t.most_over * heat) * min(2.0, max(1.0, math.sqrt(self.effort))) / one
        return AnnealingSchedule(
            0, total, total, self._sizes.cap, self._sizes.least, phase.settled,
            (heat * first, heat * final), phase.excess,
            (drawn * phase.pull[0], drawn * phase.pull[1]), phase.facet,
            (phase.over[0] * over, phase.over[1] * over), t.even / one,
            rate, t.halved, 1.0 / unit, 0, acceptance_thresholds(),
        )  # fmt: skip

    def _metric(self, level: Level, phase: Phase, block: Int32s) -> Float64s:
        """The metric of each block, with a mean squared radius of 1; 0 where the pull is 0."""
        if not phase.pull[0]:
            return np.zeros((self.n_blocks, 6))
        g, step = self._looked_at.geometry, self._sample(level)
        metric = block_metrics(
            g.table, g.position, g.coordinates, self._looked_at.rows(self._examples(level)),
            block[::step].copy(), self.n_blocks, g.thinnest,
        )  # fmt: skip
        place = level.place[::step]
        radius = squared_radius(place, level.weight[::step].copy(), block[::step].copy(), metric)
        return metric / radius if radius > 0.0 else metric

    def _sample(self, level: Level) -> int:
        """The stride at which clusters are sampled for centroids and metrics."""
        return max(1, level.weight.size // (self.tuning.sampled * self.n_blocks))

    def _examples(self, level: Level) -> Int32s:
        return level.example[:: self._sample(level)].copy()

    def groups(self, block: Int32s, number: int, near: Bools) -> Int32s:
        """The group of each block; one group if the ``near`` blocks have few elements."""
        if np.count_nonzero(near) * self.cap <= self.tuning.lone_group:
            return np.zeros(self.n_blocks, np.int32)
        return self._groups(self._elements, block, number, self._group_count(GROUP_SIZE))

    def _group_count(self, most: int) -> int:
        """The number of groups of about ``most`` elements, an even one; 0 for one group."""
        pairs = -(-self._elements.weight.size // (2 * most))
        return 0 if self.small else 2 * min(pairs, self.n_blocks // (2 * self.tuning.group_blocks))

    def _groups(self, level: Level, block: Int32s, number: int, count: int) -> Int32s:
        """The group of each block, bisected in a frame that is drawn for ``number``."""
        if count < 2:
            return np.zeros(self.n_blocks, np.int32)
        step = self._sample(level)
        where = middles(
            in_space(level.place[::step]), level.weight[::step].copy(), block[::step].copy(),
            self.n_blocks,
        )  # fmt: skip
        return bisect_places(where, count, directions=random_frame(number, 3))
