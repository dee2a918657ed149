"""The search for better blocks: annealing on every level, from large clusters to elements."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meshprep_runtime.maps import distinct, read_only

from ...kernels import Bools, Float64s, Int32s
from ...kernels.memory import give_back
from ...kernels.parallel import each, take
from ...mesh.incidence import Csr
from .anneal import EVEN_GAIN
from .apart import ComponentRow, apart_first, moved_together, torn_share
from .bisection import bisect, bisect_places
from .budget import FOREVER, Budget
from .caps import within_cap
from .centroids import block_metrics, middles, squared_radius
from .geometry import Geometry, Sample, frames
from .groups import AnnealingSchedule, Grouping, Points, anneal_groups, unit_of
from .guide import TRIAL_BLOCKS, TRIAL_SWEEPS, misled
from .levels import (
    Level,
    cluster_sizes,
    coarsen,
    contract,
    cost_of_clusters,
    element_level,
    hollow,
    in_other_places,
    in_space,
    places_of_clusters,
    refined,
    rows_of,
    smoothed_places,
)
from .phases import ELEMENTS, Phase, phases
from .point_degrees import colours_of
from .sizes import Sizes

# Elements of a group. Larger groups have fewer blocks at their rims, which stay as they are for a
# phase; smaller ones fit a cache. Their number is even, for machines with few cores.
GROUP_ELEMENTS = 120_000
LONE_GROUP = 40_000
# In a long search fewer elements are one group, so that two threads take half of the time. What
# lies between is grouped more often, for the blocks at rims.
LONG_SEARCH, LONG_LONE_GROUP, MORE_GROUPINGS = 4.0, 8_000, 2
# Blocks of a group at least: of fewer, most would be at its rim.
GROUP_BLOCKS = 16
# Several starts are annealed on levels of at most so many clusters, then the best alone.
START_CLUSTERS = 3000
# Clusters of a block that tell where it is and how wide its elements are.
SAMPLED = 24
# Sweeps over a lone group after which progress is told.
LONG = 100
# Groupings of a level, at least, where there is a time limit.
HURRIED = 4
# Sweeps at the end that only gain.
COLD_SWEEPS = 4
# Places that stand in for real ones draw clusters less: they are right on the whole, not in detail.
PULL_GUESSED = 0.4
# Pressure at which elements are drawn to centroids by half: a few times what chance adds up to.
HALVED = 0.3
# A start is torn where this share of its blocks is in pieces; graph distances replace coordinates
# where the start that they give has less than this share of its loads.
TORN, WORTH_GUESSING = 0.2, 0.99
# Temperatures are in points, or in so many of those that an element loads where these are more.
HEAT_PRICE = 1.2


@dataclass(eq=False)
class Search:
    """What one search needs; ``graph`` has the neighbours of each element.

    ``effort`` multiplies the sweeps; with ``until``, a time of ``clock``, there are as many as fit.
    ``colour`` is the price of one more thread colour in a block, in points. ``progress`` is told
    the share that is done. ``sizes`` stands in for ``cap`` where blocks differ. The best of so many
    ``starts`` is gone on with. A ``lean`` search of few blocks takes less memory and a little more
    time; its geometry has no table when :meth:`multilevel` returns. ``sweeps`` counts those over
    single elements, ``fragmented`` the blocks in several pieces, where that is known.
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
    sizes: Sizes | None = None
    starts: int = 1
    lean: bool = False
    sweeps: int = field(default=0, init=False)
    loads_at_start: int = field(default=0, init=False)
    fragmented: int = field(default=-1, init=False)
    _guided: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        self._unit = unit_of(self.geometry.weight)
        n = self.geometry.table.shape[0]
        self._sizes = self.sizes or Sizes.equal(n, self.n_blocks, self.cap)
        self._budget = Budget(self.effort, self.until, self.progress)
        self._prepare()

    def _prepare(self) -> None:
        g = self.geometry
        self._elements = element_level(g.table, self.graph, g.coordinates, self._sizes.weight)
        self._looked_at = Sample(g)

    @property
    def small(self) -> bool:
        """Whether all elements are annealed as one group."""
        shared = self.effort >= LONG_SEARCH and self.n_blocks >= 2 * GROUP_BLOCKS
        return self._elements.weight.size <= (LONG_LONE_GROUP if shared else LONE_GROUP)

    def multilevel(self, rotation: float) -> Int32s:
        """Blocks from the bisection of the largest clusters, annealed on every level."""
        todo, labels, blocks = self._begin(rotation)
        few = sum(level.weight.size <= START_CLUSTERS for level, _ in todo)
        pressure = np.zeros((len(blocks), self.n_blocks))
        start = blocks[0].copy()
        for k in range(len(todo)):
            for tasks in self._groupings(todo[k:], blocks, pressure):
                each(anneal_groups, tasks)
            if k == 0 and self._misled(todo[1:], blocks[0], labels, pressure[0]):
                self._guided, blocks, pressure = 0.0, [start], np.zeros_like(pressure)
                for tasks in self._groupings(todo, blocks, pressure):
                    each(anneal_groups, tasks)
            # memory of a level that is done is for those of more clusters
            todo[k], tasks = todo[-1], []
            if k < len(labels):
                blocks = [take(block, labels[-1 - k]) for block in blocks]
                self._bring_back(todo, k + 1, labels)
            if k + 1 == few and len(blocks) > 1:
                level, _ = todo[min(few, len(labels))]
                weight, facet = self.geometry.weight, ELEMENTS.facet * self._unit
                costs = [cost_of_clusters(level, b, self.n_blocks, weight, facet) for b in blocks]
                del level
                best = int(np.argmin(costs))
                blocks, pressure = [blocks[best]], pressure[best:]
        return blocks[0]

    def _begin(
        self, rotation: float
    ) -> tuple[list[tuple[Level, Phase]], list[Int32s], list[Int32s]]:
        """The levels to anneal, their labels, and the blocks of the largest clusters."""
        levels, labels = self._levels()
        blocks = self._starts(levels, labels, rotation)
        guessed = self._by_distances(levels, labels, blocks[0])
        if guessed is not None:
            self.geometry = guessed
            self._prepare()
            levels = in_other_places(levels, labels, self._elements)
            blocks = self._starts(levels, labels, rotation)
        if self.lean:
            self._let_go()
        else:
            levels = moved_together(levels, labels, blocks[0], self._row)
        d = min(3, self.geometry.coordinates.shape[1])
        todo = phases(levels, d, self.effort, self.n_blocks)
        del levels
        self._tidy()
        return todo, labels, blocks

    def _starts(self, levels: list[Level], labels: list[Int32s], rotation: float) -> list[Int32s]:
        """The blocks of the largest clusters to start from."""
        few = sum(level.weight.size <= START_CLUSTERS for level in levels)
        d, count = self.geometry.coordinates.shape[1], self.starts if few else 1
        self._row = ComponentRow.of(levels[-1], self._sizes)
        blocks = [self._bisect(levels[-1], frame) for frame in frames(d, rotation, count)]
        self.loads_at_start = self.geometry.loads(refined(blocks[0], labels), self.n_blocks)
        return blocks

    def _levels(self) -> tuple[list[Level], list[Int32s]]:
        """Elements and ever larger clusters, and the cluster that each of one level is in."""
        levels, labels = [self._elements], list[Int32s]()
        arity, one = self.geometry.table.shape[1], self._sizes.mean_weight
        if self.lean:
            self._let_go()
            self._looked_at = Sample(self.geometry)
        examples = [self._examples(self._elements)]
        for size in cluster_sizes(int(self._sizes.cap.mean() / one)):
            level, label = coarsen(levels[-1], self.geometry.weight.size, round(size * one))
            if self.lean and labels:
                # the smallest clusters take the most memory, and come back in time
                levels[1] = hollow(levels[1])
            levels.append(level)
            labels.append(label)
            examples.append(self._examples(level))
            self._tidy()
        if self.lean:
            self.geometry = replace(self.geometry, table=rows_of(self._elements, arity))
            # of the last one, all are bisected
            elements = distinct(np.concatenate([*examples, levels[-1].example]))
            self._looked_at = Sample(self.geometry.sample(elements), elements)
        return levels, labels

    def _let_go(self) -> None:
        """Go on without the table, whose points the level of elements has, too."""
        nothing = np.empty((0, self.geometry.table.shape[1]), np.int32)
        self.geometry = replace(self.geometry, table=nothing)

    def _bring_back(self, todo: list[tuple[Level, Phase]], k: int, labels: list[Int32s]) -> None:
        """Make the smallest clusters again where they are next."""
        if self.lean and 0 < k == len(todo) - 2:
            level = contract(self._elements, self.geometry.weight.size, labels[0])
            todo[k] = level, todo[k][1]
        self._tidy()

    def _tidy(self) -> None:
        """In a lean search, return what is free; the allocator keeps much of it in small pieces."""
        if self.lean:
            give_back()

    def _bisect(self, top: Level, frame: Float64s) -> Int32s:
        """Blocks of the largest clusters."""
        g, rows = self._looked_at.geometry, self._looked_at.rows(top.example)
        table, where, position = g.table[rows], g.coordinates[rows], g.position
        where, position, frame = apart_first(self._row, table, where, position, frame)
        return bisect(
            table, position, where, frame, self.n_blocks, g.thinnest, top.weight, self._row.share
        )

    def _by_distances(
        self, levels: list[Level], labels: list[Int32s], cut: Int32s
    ) -> Geometry | None:
        """Graph distances as places, where coordinates tear the start and these load less."""
        top, g = levels[-1], self.geometry
        if self.lean or not g.known or torn_share(top, cut, self.n_blocks) < TORN:
            return None
        place = places_of_clusters(top)
        block = bisect_places(place, self.n_blocks, top.weight, self._sizes.share)
        loads = g.loads(refined(block, labels), self.n_blocks)
        if loads >= WORTH_GUESSING * self.loads_at_start:
            return None
        place = smoothed_places(levels, labels, place)
        return Geometry.of(g.table, g.weight, g.written, place, known=False).placed()

    def improve(self, block: Int32s, phase: Phase) -> Int32s:
        """Blocks within the cap, annealed element by element from those given; no worse."""
        self.loads_at_start = self.geometry.loads(block, self.n_blocks)
        found = block.copy()
        groupings = self._groupings(
            [(self._elements, phase)], [found], np.zeros((1, self.n_blocks))
        )
        gained = sum(sum(each(anneal_groups, tasks)) for tasks in groupings)
        moved = self.within_cap(found)
        if moved or self.colour:
            before = self.cost(block, self.loads_at_start)
            return found if self.cost(found) <= before else block.copy()
        return found if gained >= 0 else block.copy()

    def within_cap(self, block: Int32s) -> bool:
        """Bring every block within the cap; whether any was over it."""
        return within_cap(self.geometry, self.graph, block, self.n_blocks, self.cap)

    def cost(self, block: Int32s, loads: int | None = None) -> float:
        """The weighted loads, counted unless they are given, and the price of the colours."""
        g = self.geometry
        cost = float(g.loads(block, self.n_blocks) if loads is None else loads)
        if self.colour:
            cost += self.colour * self._unit * colours_of(g, block, self.n_blocks)
        return cost

    def _groupings(
        self, todo: list[tuple[Level, Phase]], blocks: list[Int32s], pressure: Float64s
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The tasks of :func:`anneal_groups` that anneal the first level of those left to do.

        ``blocks`` and ``pressure`` have those of every start. Each list of tasks groups them
        another way, and changes them before the next one is made.
        """
        (level, phase), last = todo[0], len(todo) == 1
        total, begin = self._budget.sweeps(todo, 0.0), 0
        parts = self._parts(phase, total)
        written = self.geometry.written if last and self.colour else None
        points = Points(self.geometry.weight, written)
        metrics = [self._metric(level, phase, block) for block in blocks]
        for part in range(parts):
            end = begin + round((total - begin) / (parts - part))
            cold = COLD_SWEEPS if last and part == parts - 1 else 0
            number = 100 * len(todo) + part
            schedule = self._schedule(phase, total)._replace(begin=begin, end=end + cold)
            tasks: list[tuple[Any, ...]] = []
            for start, block in enumerate(blocks):
                grouping = Grouping.of(block, self._groups(level, block, number))
                own = schedule._replace(seed=(self.seed + start + 1_000_003 * number) % 2**31)
                tasks += [
                    (level, points, metrics[start], block, grouping, share, own, pressure[start])
                    for share in grouping.shares()
                ]
            yield tasks
            self._budget.spend(level, end - begin)
            begin = end
            if self.until < FOREVER and part < parts - 1:
                total = begin + self._budget.sweeps(todo, begin / total)
        if last:
            self.sweeps += total

    def _misled(
        self, todo: list[tuple[Level, Phase]], block: Int32s, labels: list[Int32s],
        pressure: Float64s,
    ) -> bool:  # fmt: skip
        """Whether centroids do not help clusters below the largest, in these blocks of them.

        In a plane whose places are known they do; of few blocks, or parts, none are tried.
        """
        plane = self.geometry.known and self.geometry.coordinates.shape[1] < 3
        if plane or self.sizes or self.n_blocks < 3 * TRIAL_BLOCKS or not todo:
            return False
        (level, phase), finer = todo[0], take(block, labels[-1])
        sweeps = min(TRIAL_SWEEPS, self._budget.sweeps(todo, 0.0))
        groups = self._groups(level, finer, 0, self.n_blocks // TRIAL_BLOCKS)
        schedule = self._schedule(phase, sweeps)._replace(seed=self.seed)
        points, metric = Points(self.geometry.weight, None), self._metric(level, phase, finer)
        return misled(level, points, metric, finer, groups, schedule, pressure)

    def _parts(self, phase: Phase, total: int) -> int:
        """How often a level is grouped for so many sweeps."""
        often = MORE_GROUPINGS if self._elements.weight.size <= LONE_GROUP else 1
        parts = min(total, max(1, round(often * phase.groupings * self.effort**0.5)))
        parts = 1 + total // LONG if self.small else parts
        # what fits into the time is found out on the way
        return min(total, max(parts, HURRIED)) if self.until < FOREVER else parts

    def _schedule(self, phase: Phase, total: int) -> AnnealingSchedule:
        """The whole schedule of a level."""
        loaded = self.loads_at_start / self._unit / max(1, self._elements.weight.size)
        heat = max(1.0, HEAT_PRICE * loaded)
        first, final = phase.temperature
        one = self._sizes.mean_weight
        drawn = self._guided * (1.0 if self.geometry.known or self.sizes else PULL_GUESSED)
        # parts of unlike sizes have shares to keep to instead
        rate = 0.0 if self.sizes else phase.rate / self.effort**0.5
        # in a long search, whole regions would fill
        over = loaded * min(2.0, max(1.0, self.effort**0.5)) / one
        return AnnealingSchedule(
            0, total, total, self._sizes.cap, self._sizes.least, phase.settled,
            (heat * first, heat * final), phase.excess,
            (drawn * phase.pull[0], drawn * phase.pull[1]), phase.facet,
            (phase.over[0] * over, phase.over[1] * over), EVEN_GAIN / one,
            rate, HALVED, float(self.colour),
            1.0 / self._unit, 0,
        )  # fmt: skip

    def _metric(self, level: Level, phase: Phase, block: Int32s) -> Float64s:
        """Of each block, scaled so that the mean squared radius is 1; 0 where nothing pulls."""
        if not phase.pull[0]:
            return np.zeros((self.n_blocks, 6))
        g, step = self._looked_at.geometry, self._sample(level)
        metric = block_metrics(
            g.table, g.position, g.coordinates, self._looked_at.rows(self._examples(level)),
            block[::step].copy(), self.n_blocks, g.thinnest,
        )  # fmt: skip
        place = read_only(level.place[::step].copy())
        radius = squared_radius(place, level.weight[::step].copy(), block[::step].copy(), metric)
        return metric / radius if radius > 0.0 else metric

    def _sample(self, level: Level) -> int:
        """Every so manyth cluster tells where blocks are and how wide their elements."""
        return max(1, level.weight.size // (SAMPLED * self.n_blocks))

    def _examples(self, level: Level) -> Int32s:
        return level.example[:: self._sample(level)].copy()

    def groups(self, block: Int32s, number: int, near: Bools) -> Int32s:
        """Groups of neighbouring blocks, one where the elements of those ``near`` are few."""
        if np.count_nonzero(near) * self.cap <= LONE_GROUP:
            return np.zeros(self.n_blocks, np.int32)
        return self._groups(self._elements, block, number)

    def _groups(self, level: Level, block: Int32s, number: int, count: int = 0) -> Int32s:
        """Groups of neighbouring blocks, cut in directions that differ from time to time.

        As many as fit a cache, where no ``count`` is given.
        """
        if not count and not self.small:
            n_pairs = -(-self._elements.weight.size // (2 * GROUP_ELEMENTS))
            count = 2 * min(n_pairs, self.n_blocks // (2 * GROUP_BLOCKS))
        if count < 2:
            return np.zeros(self.n_blocks, np.int32)
        step = self._sample(level)
        where = middles(
            in_space(level.place[::step]), level.weight[::step].copy(), block[::step].copy(),
            self.n_blocks,
        )  # fmt: skip
        directions, _ = np.linalg.qr(np.random.default_rng(number).normal(size=(3, 3)))
        return bisect_places(where, count, directions=directions)
