"""Annealing of levels, each in groups of blocks by the schedule of its phase."""

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
from ..balancing.caps import within_cap
from ..coarsening.grouping import Grouping
from ..coarsening.levels import Level, element_level, in_space
from ..initial.bisection import bisect_places
from ..initial.geometry import Geometry, Sample, Sizes
from ..tuning import GROUP_SIZE, Phase, SearchTuning
from .centroids import block_metrics, mean_places, squared_radius
from .corners import Corners
from .groups import AnnealingSchedule, PriceScale, anneal_groups, unit_of


def phases(
    levels: Sequence[Level], d: int, tuning: SearchTuning, n_blocks: int
) -> list[tuple[Level, Phase]]:
    """Levels with their phases, from the largest clusters to elements.

    A move of larger clusters changes more of a border, which grows with the power (d - 1) /
    d of their size: the temperature rises with it.
    """
    t = tuning
    # Choose the phases by the dimension, and by the kind of elements.
    factor = 1.0
    if d == 2:
        # elements are edges between two cells, not edges between nodes
        n = levels[0].weight.size
        n_links = levels[0].neighbours.size
        between_cells = levels[0].points.size <= 2 * n and n_links <= t.edge_neighbours * n
        if between_cells:
            elements = t.plane_edges
        else:
            elements = t.plane_elements
        clusters = t.plane_clusters
        factor = min(
            t.most_times, power(max(1.0, n_blocks / t.many_blocks), t.many_blocks_power)
        )
    else:
        elements = replace(t.elements, group=t.space_group)
        first, second, third = (replace(phase, group=t.space_group) for phase in t.clusters)
        clusters = first, second, third
    # Scale the sweeps by the effort, and the temperatures by the size of the clusters.
    powers = _powers(elements=levels[0], d=d, n_blocks=n_blocks, tuning=t)
    sweep_factors = [factor * power(max(1.0, t.effort), by - 1.0) for by in powers]
    top = min(len(levels) - 1, len(clusters))
    usual = levels[top].weight.size
    cooling = math.prod([t.cooler] * (len(clusters) - top))
    todo = [(levels[0], elements.longer(sweep_factors[0]))]
    for k, level in enumerate(levels[1:], start=1):
        # The border of a cluster grows as this power of its size.
        usual_over_size = max(1.0, usual / level.weight.size)
        heating = cooling * power(usual_over_size, (d - 1) / d)
        phase = clusters[max(0, top - k)].hotter(heating)
        todo.append((level, phase.longer(sweep_factors[k > 1])))
    return todo[::-1]


def in_two(
    corners: Level, phase: Phase, elements: Level, tuning: SearchTuning
) -> list[tuple[Level, Phase]]:
    """The phase of elements in two parts: with corners alone, then with all points."""
    return [
        (corners, phase.longer(tuning.with_corners)),
        (elements, phase.end(tuning.with_all)),
    ]


def _powers(
    elements: Level, d: int, n_blocks: int, tuning: SearchTuning
) -> tuple[float, float]:
    """Powers of the effort by which sweeps grow: of small clusters, and of larger ones."""
    t = tuning
    n = max(1, elements.weight.size)
    # Longer searches gain less where blocks are large,
    elements_of_block = n / n_blocks
    lower = t.power_by_size[d > 2] * log(max(1.0, elements_of_block / t.usual_block))
    powers = t.plane_power, t.plane_power
    if d != 2:
        # and in space where elements have more points than the four of a tetrahedron.
        points_of_element = elements.points.size / n
        lower += t.power_by_points * log(max(1.0, points_of_element / 4.0))
        higher = t.power_by_blocks * log(max(1.0, n_blocks / t.many_blocks))
        powers = min(t.highest_power, t.space_powers[0] + higher), t.space_powers[1]
    power_of_small = max(t.lowest_power, powers[0] - lower)
    power_of_larger = max(t.lowest_power, powers[1] - lower)
    return power_of_small, power_of_larger


def _work(level: Level) -> float:
    """The work of a sweep over a level, for reports of progress."""
    return float(level.points.size + level.neighbours.size)


@dataclass(eq=False)
class Annealing:
    """Annealing of given blocks; ``graph`` has the neighbours of each element.

    ``effort`` multiplies the sweeps. ``progress`` is called with the share that is done.
    ``sizes`` replaces ``cap`` where blocks are of unequal size. With ``corners``, elements
    are annealed by their corners before all their points. Results: ``sweeps`` over single
    elements; ``loads_at_start``; ``fragmented``, the number of blocks in several pieces, -1
    if unknown.
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
        """Make the level of elements with all points, and that with corners alone."""
        g = self.geometry
        weight = self._sizes.weight
        self._elements = element_level(g.table, self.graph, g.coordinates, weight)
        # Corners tell nearly all that points cost, at a fraction of the time.
        if self.corners:
            table = self.corners.table
            self._first = element_level(table, self.graph, g.coordinates, weight)
            self._measured = Sample(replace(g, table=table))
        else:
            self._first = self._elements
            self._measured = Sample(g)

    @property
    def small(self) -> bool:
        """True if all elements are annealed as one group."""
        t = self.tuning
        if self.n_blocks >= 2 * t.group_blocks:
            limit = t.lone_group_of_many
        else:
            limit = t.lone_group
        return self._elements.weight.size <= limit

    def _start_from(self, block: Int32s) -> None:
        """Set the loads at the start, of all points and of corners."""
        self.loads_at_start = self.geometry.loads(block, self.n_blocks)
        if self.corners:
            weight = self.geometry.weight
            self._loaded_corners = self.corners.loaded(weight, block, self.n_blocks)

    def _of_elements(self, first: Level, phase: Phase) -> list[tuple[Level, Phase]]:
        """The levels of a phase of elements: a long phase begins with the corners alone."""
        elements = self._elements._replace(place=first.place)
        if self.corners and phase.sweeps >= self.tuning.worth_corners:
            return in_two(corners=first, phase=phase, elements=elements, tuning=self.tuning)
        return [(elements, phase)]

    def improve(self, block: Int32s, phase: Phase) -> Int32s:
        """Blocks within the cap, annealed element by element."""
        self._start_from(block)
        annealed = block.copy()
        pressure = np.zeros((1, self.n_blocks))
        gained = 0.0
        todo = self._of_elements(self._first, phase)
        for k in range(len(todo)):
            for tasks in self._groupings(todo[k:], [annealed], pressure):
                gained += sum(each(anneal_groups, tasks))
        # Keep the blocks of the start where they load less. The gain is that of all points
        # unless blocks were brought under the cap, or corners were annealed first.
        moved = self.within_cap(annealed)
        if moved or len(todo) > 1:
            better = self.loads(annealed) <= self.loads_at_start
        else:
            better = gained >= 0
        if better:
            return annealed
        return block.copy()

    def within_cap(self, block: Int32s) -> bool:
        """Bring every block within the cap, in place; returns whether any was over it."""
        return within_cap(
            geometry=self.geometry,
            graph=self.graph,
            block=block,
            n_blocks=self.n_blocks,
            cap=self.cap,
        )

    def loads(self, block: Int32s) -> int:
        """The weighted loads, counted afresh."""
        return self.geometry.loads(block, self.n_blocks)

    def _groupings(
        self, todo: list[tuple[Level, Phase]], blocks: list[Int32s], pressure: Float64s
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The tasks of :func:`anneal_groups` for the first of the remaining levels.

        Yields a list of tasks for each grouping. ``blocks`` and ``pressure`` have an entry
        for every start. The caller runs each list before it takes the next, which groups
        the resulting blocks in another way.
        """
        # The sweeps of the level, the groupings that share them, and the work that is left.
        level, phase = todo[0]
        last = len(todo) == 1
        total = max(1, round(phase.sweeps * self.effort))
        begin = 0
        left = self.effort * sum(phase.sweeps * _work(level) for level, phase in todo)
        parts = self._grouping_count(phase, total)
        metrics = [self._metric(level, phase, block) for block in blocks]
        for part in range(parts):
            # Sweeps ``begin`` to ``end - 1``; the last ones of elements accept no loss.
            end = begin + round((total - begin) / (parts - part))
            cold = self.tuning.cold_sweeps if last and part == parts - 1 else 0
            number = 100 * len(todo) + part
            schedule = self._schedule(phase, total, last)
            schedule = schedule._replace(begin=begin, end=end + cold)
            # Group the blocks of each start anew; threads share the groups.
            tasks: list[tuple[Any, ...]] = []
            for start, block in enumerate(blocks):
                count = self._group_count(phase.group)
                grouping = Grouping.of(
                    block,
                    self._groups(level=level, block=block, number=number, count=count),
                )
                seed = (self.seed + start + 1_000_003 * number) % 2**31
                seeded = schedule._replace(seed=seed)
                arrays = level, self.geometry.weight, metrics[start], block, grouping
                tasks += [
                    (*arrays, share, seeded, pressure[start]) for share in grouping.shares()
                ]
            yield tasks
            # Report the share of all work that is done.
            done = (end - begin) * _work(level)
            self._done += done
            left = max(0.0, left - done)
            self.progress(self._done / max(1.0, self._done + left))
            begin = end
        if level.weight.size == self._elements.weight.size:
            self.sweeps += total

    def _grouping_count(self, phase: Phase, total: int) -> int:
        """The number of times that the blocks are grouped during ``total`` sweeps."""
        t = self.tuning
        # The one group of a small mesh is split only to report progress.
        if self.small:
            return 1 + total // t.report_sweeps
        groupings = phase.groupings
        if self._elements.weight.size <= t.lone_group:
            groupings *= t.more_groupings
        by_effort = round(groupings * math.sqrt(self.effort))
        return min(total, max(1, by_effort))

    def _schedule(self, phase: Phase, total: int, last: bool) -> AnnealingSchedule:
        """The schedule of all sweeps of a level."""
        if self.corners and not last:
            unit = self.corners.unit
            loads_per_element = self._loaded_corners
        else:
            unit = self._unit
            n = max(1, self._elements.weight.size)
            loads_per_element = self.loads_at_start / self._unit / n
        # Coordinates that stand in for real ones guide less; parts of unlike sizes are
        # guided by them all the same.
        guidance = self._guided
        if not self.geometry.known and not self.sizes:
            guidance *= self.tuning.pull_guessed
        scale = PriceScale(
            sizes=self._sizes,
            even_sizes=not self.sizes,
            unit=unit,
            loads_per_element=loads_per_element,
            guidance=guidance,
        )
        return AnnealingSchedule.for_phase(phase, self.tuning, scale, total)

    def _metric(self, level: Level, phase: Phase, block: Int32s) -> Float64s:
        """The metric of each block, with a mean squared radius of 1; 0 without a pull."""
        if not phase.pull[0]:
            return np.zeros((self.n_blocks, 6))
        # Measure the elements of some clusters of each block.
        g = self._measured.geometry
        step = self._stride(level)
        metric = block_metrics(
            table=g.table,
            position=g.position,
            coordinates=g.coordinates,
            example=self._measured.rows(self._examples(level)),
            block=block[::step].copy(),
            n_blocks=self.n_blocks,
            thinnest=g.thinnest,
        )
        # Scale by the mean squared radius of the blocks.
        place = level.place[::step]
        radius = squared_radius(
            place=place,
            weight=level.weight[::step].copy(),
            block=block[::step].copy(),
            metric=metric,
        )
        if radius > 0.0:
            return metric / radius
        return metric

    def _stride(self, level: Level) -> int:
        """The stride at which clusters are sampled for centroids and metrics."""
        return max(1, level.weight.size // (self.tuning.sampled * self.n_blocks))

    def _examples(self, level: Level) -> Int32s:
        """An element of each sampled cluster."""
        return level.example[:: self._stride(level)].copy()

    def groups(self, block: Int32s, number: int, near: Bools) -> Int32s:
        """The group of each block; one group if the ``near`` blocks have few elements."""
        # Groups share the work among threads, which few elements are not worth.
        if np.count_nonzero(near) * self.cap <= self.tuning.lone_group:
            return np.zeros(self.n_blocks, np.int32)
        return self._groups(
            level=self._elements,
            block=block,
            number=number,
            count=self._group_count(GROUP_SIZE),
        )

    def _group_count(self, most: int) -> int:
        """The number of groups of about ``most`` elements, an even one; 0 for one group."""
        pairs = -(-self._elements.weight.size // (2 * most))
        if self.small:
            return 0
        return 2 * min(pairs, self.n_blocks // (2 * self.tuning.group_blocks))

    def _groups(self, level: Level, block: Int32s, number: int, count: int) -> Int32s:
        """The group of each block, bisected in a frame that is drawn for ``number``."""
        if count < 2:
            return np.zeros(self.n_blocks, np.int32)
        # A sample of the clusters tells where blocks are.
        step = self._stride(level)
        where = mean_places(
            place=in_space(level.place[::step]),
            weight=level.weight[::step].copy(),
            block=block[::step].copy(),
            n_blocks=self.n_blocks,
        )
        return bisect_places(where, count, directions=random_frame(number, 3))
