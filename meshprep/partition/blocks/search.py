"""The multilevel search: annealing on every level, from the largest clusters to elements."""

from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from meshprep_runtime.types.maps import distinct

from ...kernels import Float64s, Int32s
from ...kernels.arithmetic import random_frame
from ...kernels.parallel import each, give_back, take
from .anneal.annealing import Annealing, phases
from .anneal.groups import AnnealingSchedule, anneal_groups
from .bisect.bisection import bisect, bisect_places
from .bisect.geometry import Geometry, Sample, rotated
from .grouping import Grouping
from .levels import (
    Level,
    cluster_sizes,
    coarsen,
    contract,
    cost_of_clusters,
    hollow,
    in_other_places,
    places_of_clusters,
    refined,
    rows_of,
    smoothed_places,
)
from .mend.apart import apart_first, components_of, moved_together, of_several, reunited, torn_share
from .tuning import Phase, SearchTuning

# Seeds of the frames that are drawn are above this.
FRAMES = 100


@dataclass(eq=False)
class Search(Annealing):
    """Annealing that starts from the largest clusters.

    The best of several ``starts`` is continued. A ``lean`` search of few blocks takes less memory
    and a little more time; its geometry has no table when :meth:`multilevel` returns.
    """

    starts: int = 1
    lean: bool = False

    def multilevel(self, rotation: float) -> Int32s:
        """Blocks that are bisected on the largest clusters and annealed on every level."""
        todo, labels, blocks = self._begin(rotation)
        component = self._component
        few = sum(level.weight.size <= self.tuning.start_clusters for level, _ in todo)
        pressure = np.zeros((len(blocks), self.n_blocks))
        start = blocks[0].copy()
        for k in range(len(todo)):
            for tasks in self._groupings(todo[k:], blocks, pressure):
                each(anneal_groups, tasks)
            if k == 0 and self._misled(todo[1:], blocks[0], labels, pressure[0]):
                self._guided, blocks, pressure = 0.0, [start], np.zeros_like(pressure)
                for tasks in self._groupings(todo, blocks, pressure):
                    each(anneal_groups, tasks)
            if k < len(labels) and self.sizes is None:
                blocks = [reunited(todo[k][0], block, component) for block in blocks]
                component = None if component is None else take(component, labels[-1 - k])
            # free a level that is done before the next, larger one
            todo[k], tasks = todo[-1], []
            if k < len(labels):
                blocks = [take(block, labels[-1 - k]) for block in blocks]
                # the smallest clusters of a lean search are contracted again when they are next
                if self.lean and k + 1 == len(todo) - 2:
                    n_points = self.geometry.weight.size
                    level = contract(self._elements, n_points, labels[0])
                    todo[k + 1] = level, todo[k + 1][1]
                    del level
                if self.lean:
                    give_back()
            if k + 1 == few and len(blocks) > 1:
                level, _ = todo[min(few, len(labels))]
                prices = self.geometry.weight, self.tuning.elements.facet * self._unit
                costs = [cost_of_clusters(level, block, *prices) for block in blocks]
                del level
                best = int(np.argmin(costs))
                blocks, pressure = [blocks[best]], pressure[best:]
        return blocks[0]

    def _begin(
        self, rotation: float
    ) -> tuple[list[tuple[Level, Phase]], list[Int32s], list[Int32s]]:
        """The levels with their phases, their labels, and the starts on the largest clusters."""
        # before graph distances, which have three coordinates, replace those of a plane
        d = min(3, self.geometry.coordinates.shape[1])
        levels, labels = self._levels()
        blocks = self._starts(levels, labels, rotation)
        if (guessed := self._by_distances(levels, labels, blocks[0])) is not None:
            self.geometry, blocks[0] = guessed
            self._prepare()
            levels = in_other_places(levels, labels, self._elements.place)
            if self._component is not None:
                blocks = self._starts(levels, labels, rotation)
        component = self._component
        if self.sizes is None:
            blocks = [reunited(levels[-1], block, component) for block in blocks]
            if component is not None:
                self._sizes = self._sizes.held(of_several(component, blocks[0]))
        if self.lean:
            self._let_go()
        elif component is not None:
            levels = moved_together(levels, labels, blocks[0], component)
        todo = phases(levels, d, self.tuning, self.n_blocks)
        if d == 2 and guessed is not None:
            todo = [(level, phase.longer(self.tuning.after_distances)) for level, phase in todo]
        todo[-1:] = self._of_elements(*todo[-1])
        del levels
        if self.lean:
            give_back()
        return todo, labels, blocks

    def _starts(self, levels: list[Level], labels: list[Int32s], rotation: float) -> list[Int32s]:
        """Bisections of the largest clusters, each in another frame."""
        top, d = levels[-1], self.geometry.coordinates.shape[1]
        self._component = components_of(top)
        count = self.starts if top.weight.size <= self.tuning.start_clusters else 1
        seeds = range(FRAMES + 1, FRAMES + count)
        g, rows = self._looked_at.geometry, self._looked_at.rows(top.example)
        blocks = list[Int32s]()
        for frame in (rotated(d, rotation), *map(random_frame, seeds, repeat(d))):
            table, where, position, axes = g.table[rows], g.coordinates[rows], g.position, frame
            if self._component is not None:
                # components are cut apart first
                where, position, axes = apart_first(self._component, table, where, position, frame)
            sizes = self.n_blocks, g.thinnest, top.weight, self._sizes.share
            blocks.append(bisect(table, position, where, axes, *sizes))
        self._start_from(refined(blocks[0], labels))
        return blocks

    def _levels(self) -> tuple[list[Level], list[Int32s]]:
        """Levels of ever larger clusters, and for each but the last its clusters' labels."""
        levels, labels = [self._first], list[Int32s]()
        arity, one = self.geometry.table.shape[1], self._sizes.mean_weight
        if self.lean:
            self._let_go()
            self._looked_at = Sample(self.geometry)
        examples = [self._examples(self._elements)]
        for size in cluster_sizes(int(self._sizes.cap.mean() / one), self.tuning):
            level, label = coarsen(levels[-1], self.geometry.weight.size, round(size * one))
            if self.lean and labels:
                # the smallest clusters take the most memory: they are contracted again later
                levels[1] = hollow(levels[1])
            levels.append(level)
            labels.append(label)
            examples.append(self._examples(level))
            if self.lean:
                give_back()
        if self.lean:
            self.geometry = replace(self.geometry, table=rows_of(self._elements, arity))
            # of the last one, all are bisected
            elements = distinct(np.concatenate([*examples, levels[-1].example]))
            self._looked_at = Sample(self.geometry.sample(elements), elements)
        return levels, labels

    def _let_go(self) -> None:
        """Free the table, whose points the level of elements has, too."""
        nothing = np.empty((0, self.geometry.table.shape[1]), np.int32)
        self.geometry = replace(self.geometry, table=nothing)

    def _by_distances(
        self, levels: list[Level], labels: list[Int32s], cut: Int32s
    ) -> tuple[Geometry, Int32s] | None:
        """Graph distances as coordinates, and a start, if the real ones give a torn, worse one."""
        top, g = levels[-1], self.geometry
        if self.lean or not g.known:
            return None
        if torn_share(top, cut, self.n_blocks, self._component) < self.tuning.torn:
            return None
        place = places_of_clusters(top)
        block = bisect_places(place, self.n_blocks, top.weight, self._sizes.share)
        of_elements = refined(block, labels)
        if g.loads(of_elements, self.n_blocks) >= self.tuning.worth_guessing * self.loads_at_start:
            return None
        self._start_from(of_elements)
        place = smoothed_places(levels, labels, place)
        return Geometry.of(g.table, g.weight, place, known=False).placed(), block

    def _misled(
        self, todo: list[tuple[Level, Phase]], block: Int32s, labels: list[Int32s],
        pressure: Float64s,
    ) -> bool:  # fmt: skip
        """True if the pull loses on the second level, by a trial; in a plane there is none."""
        plane = self.geometry.known and self.geometry.coordinates.shape[1] < 3
        t = self.tuning
        few = self.n_blocks < 3 * t.trial_blocks or not labels
        if plane or self.sizes or self.lean or few:
            return False
        (level, phase), finer = todo[0], take(block, labels[-1])
        sweeps = min(t.trial_sweeps, max(1, round(phase.sweeps * self.effort)))
        groups = self._groups(level, finer, 0, self.n_blocks // t.trial_blocks)
        schedule = self._schedule(phase, sweeps, len(todo) == 1)._replace(seed=self.seed)
        weight, metric = self.geometry.weight, self._metric(level, phase, finer)
        return misled(level, weight, metric, finer, groups, schedule, pressure, t)


# In layers over a bent surface, or where graph distances fold, a block's centroid may be far from
# all its elements. No measure of coordinates recognised such meshes, so both ways are tried.


def misled(
    level: Level,
    point_weight: Int32s,
    metric: Float64s,
    block: Int32s,
    group_of_block: Int32s,
    schedule: AnnealingSchedule,
    pressure: Float64s,
    tuning: SearchTuning,
) -> bool:
    """True if two groups of blocks gain more without a pull; nothing is changed."""
    # without pressure, whose corrections would add noise
    schedule = schedule._replace(rate=0.0)
    grouping = Grouping.of(block, group_of_block)
    chosen = np.unique([int(share * grouping.groups) for share in tuning.trial_groups])
    tasks = [
        (level, point_weight, metric, block.copy(), grouping, chosen, one, pressure.copy())
        for one in (schedule, schedule._replace(pull=(0.0, 0.0)))
    ]
    guided, free = each(anneal_groups, tasks)
    return bool(free > tuning.trial_chance * guided)
