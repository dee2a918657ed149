"""The multilevel search: annealing from the largest clusters down to single elements."""

from dataclasses import dataclass, replace

import numpy as np

from meshprep_runtime.types.maps import distinct

from ...kernels import Float64s, Int32s
from ...kernels.arithmetic import random_frame
from ...kernels.parallel import each, give_back, take
from .balancing.components import (
    apart_first,
    components_of,
    moved_together,
    of_several,
    reunited,
    torn_share,
)
from .coarsening.grouping import Grouping
from .coarsening.levels import (
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
from .initial.bisection import bisect, bisect_places
from .initial.geometry import Geometry, Sample, rotated
from .refinement.annealing import Annealing, phases
from .refinement.groups import AnnealingSchedule, anneal_groups
from .tuning import Phase, SearchTuning

# The frames of further starts are drawn with seeds above this.
FRAMES = 100


@dataclass(eq=False)
class Search(Annealing):
    """Annealing that starts from the largest clusters.

    With several ``starts``, the best one after the small levels is continued. A ``lean``
    search, for few blocks, takes less memory and a little more time; its geometry has no
    table when :meth:`multilevel` returns.
    """

    starts: int = 1
    lean: bool = False

    def multilevel(self, rotation: float) -> Int32s:
        """Blocks that are bisected on the largest clusters and annealed on every level."""
        # Coarsen, and bisect the largest clusters.
        todo, labels, blocks = self._begin(rotation)
        component = self._component
        n_small = sum(level.weight.size <= self.tuning.start_clusters for level, _ in todo)
        pressure = np.zeros((len(blocks), self.n_blocks))
        start = blocks[0].copy()
        # Anneal level by level, from the largest clusters to elements.
        for k in range(len(todo)):
            for tasks in self._groupings(todo[k:], blocks, pressure):
                each(anneal_groups, tasks)
            if k == 0 and self._misled(
                todo=todo[1:], block=blocks[0], labels=labels, pressure=pressure[0]
            ):
                # Begin this level again, without the pull.
                self._guided = 0.0
                blocks = [start]
                pressure = np.zeros_like(pressure)
                for tasks in self._groupings(todo, blocks, pressure):
                    each(anneal_groups, tasks)
            if k < len(labels) and self.sizes is None:
                blocks = [reunited(todo[k][0], block, component) for block in blocks]
                if component is not None:
                    component = take(component, labels[-1 - k])
            # Free the level that is done before the next, larger one.
            todo[k] = todo[-1]
            tasks = []
            # Each cluster hands its block on to its members.
            if k < len(labels):
                blocks = [take(block, labels[-1 - k]) for block in blocks]
                # A lean search contracts the smallest clusters again when they are next.
                if self.lean and k + 1 == len(todo) - 2:
                    n_points = self.geometry.weight.size
                    level = contract(self._elements, n_points, labels[0])
                    todo[k + 1] = level, todo[k + 1][1]
                    del level
                if self.lean:
                    give_back()
            # After the small levels, continue the best start alone.
            if k + 1 == n_small and len(blocks) > 1:
                level, _ = todo[min(n_small, len(labels))]
                weight = self.geometry.weight
                facet = self.tuning.elements.facet * self._unit
                costs = [cost_of_clusters(level, block, weight, facet) for block in blocks]
                del level
                best = int(np.argmin(costs))
                blocks = [blocks[best]]
                pressure = pressure[best:]
        return blocks[0]

    def _begin(
        self, rotation: float
    ) -> tuple[list[tuple[Level, Phase]], list[Int32s], list[Int32s]]:
        """The levels with their phases, their labels, and the starts on the top level."""
        # The dimension of the mesh, before graph distances in space replace coordinates.
        d = min(3, self.geometry.coordinates.shape[1])
        # Coarsen, and cut the top level.
        levels, labels = self._levels()
        blocks = self._starts(levels, labels, rotation)
        # Cut by graph distances instead where coordinates mislead.
        if (guessed := self._by_distances(levels, labels, blocks[0])) is not None:
            self.geometry, blocks[0] = guessed
            self._prepare()
            levels = in_other_places(levels, labels, self._elements.place)
            if self._component is not None:
                blocks = self._starts(levels, labels, rotation)
        # Keep components apart, and components that share a block together.
        component = self._component
        if self.sizes is None:
            blocks = [reunited(levels[-1], block, component) for block in blocks]
            if component is not None:
                self._sizes = self._sizes.held(of_several(component, blocks[0]))
        if self.lean:
            self._let_go()
        elif component is not None:
            levels = moved_together(
                levels=levels, labels=labels, block=blocks[0], component=component
            )
        # Plan the phases, from the top level down to the elements.
        todo = phases(levels=levels, d=d, tuning=self.tuning, n_blocks=self.n_blocks)
        if d == 2 and guessed is not None:
            todo = [
                (level, phase.longer(self.tuning.after_distances)) for level, phase in todo
            ]
        todo[-1:] = self._of_elements(*todo[-1])
        del levels
        if self.lean:
            give_back()
        return todo, labels, blocks

    def _starts(
        self, levels: list[Level], labels: list[Int32s], rotation: float
    ) -> list[Int32s]:
        """Bisections of the largest clusters, each in another frame."""
        # One frame as the coordinates are, the others drawn, where clusters are few.
        top = levels[-1]
        d = self.geometry.coordinates.shape[1]
        self._component = components_of(top)
        if top.weight.size <= self.tuning.start_clusters:
            count = self.starts
        else:
            count = 1
        frames = [rotated(d, rotation)]
        seeds = range(FRAMES + 1, FRAMES + count)
        frames += [random_frame(seed, d) for seed in seeds]
        # An element stands for each cluster: its width is that of all.
        g = self._measured.geometry
        rows = self._measured.rows(top.example)
        blocks = list[Int32s]()
        for frame in frames:
            table = g.table[rows]
            where = g.coordinates[rows]
            position = g.position
            directions = frame
            if self._component is not None:
                # components are cut apart first
                where, position, directions = apart_first(
                    component=self._component,
                    table=table,
                    where=where,
                    position=position,
                    frame=frame,
                )
            block = bisect(
                table=table,
                position=position,
                coordinates=where,
                directions=directions,
                n_blocks=self.n_blocks,
                thinnest=g.thinnest,
                weight=top.weight,
                share=self._sizes.share,
            )
            blocks.append(block)
        self._start_from(refined(blocks[0], labels))
        return blocks

    def _levels(self) -> tuple[list[Level], list[Int32s]]:
        """Levels of ever larger clusters, and the cluster of each member of a level."""
        levels = [self._first]
        labels = list[Int32s]()
        arity = self.geometry.table.shape[1]
        mean_weight = self._sizes.mean_weight
        if self.lean:
            self._let_go()
            self._measured = Sample(self.geometry)
        examples = [self._examples(self._elements)]
        n_points = self.geometry.weight.size
        mean_cap = int(self._sizes.cap.mean() / mean_weight)
        for size in cluster_sizes(mean_cap, self.tuning):
            level, label = coarsen(levels[-1], n_points, round(size * mean_weight))
            if self.lean and labels:
                # The smallest clusters take the most memory: contract them again later.
                levels[1] = hollow(levels[1])
            levels.append(level)
            labels.append(label)
            examples.append(self._examples(level))
            if self.lean:
                give_back()
        if self.lean:
            self.geometry = replace(self.geometry, table=rows_of(self._elements, arity))
            # The sampled elements of all levels, and all examples of the top level, which
            # is bisected.
            elements = distinct(np.concatenate([*examples, levels[-1].example]))
            self._measured = Sample(self.geometry.sample(elements), elements)
        return levels, labels

    def _let_go(self) -> None:
        """Free the table; the level of elements has its points, too."""
        nothing = np.empty((0, self.geometry.table.shape[1]), np.int32)
        self.geometry = replace(self.geometry, table=nothing)

    def _by_distances(
        self, levels: list[Level], labels: list[Int32s], cut: Int32s
    ) -> tuple[Geometry, Int32s] | None:
        """Graph distances as coordinates, and their start; None to keep the coordinates.

        They are tried where the coordinates give a start with blocks in pieces, ``cut``,
        and taken where their start loads fewer points.
        """
        # Blocks that are whole speak for the coordinates.
        top = levels[-1]
        g = self.geometry
        if self.lean or not g.known:
            return None
        torn = torn_share(
            top=top, block=cut, n_blocks=self.n_blocks, component=self._component
        )
        if torn < self.tuning.torn:
            return None
        # Bisect by distances, and compare the loads.
        distances = places_of_clusters(top)
        block = bisect_places(
            place=distances,
            n_blocks=self.n_blocks,
            weight=top.weight,
            share=self._sizes.share,
        )
        of_elements = refined(block, labels)
        loads = g.loads(of_elements, self.n_blocks)
        if loads >= self.tuning.worth_guessing * self.loads_at_start:
            return None
        self._start_from(of_elements)
        distances = smoothed_places(levels, labels, distances)
        guessed = Geometry.of(
            table=g.table, weight=g.weight, coordinates=distances, known=False
        )
        return guessed.placed(), block

    def _misled(
        self,
        todo: list[tuple[Level, Phase]],
        block: Int32s,
        labels: list[Int32s],
        pressure: Float64s,
    ) -> bool:
        """Whether a trial on the second level gains more without the pull.

        There is no trial in a plane.
        """
        # A trial pays only in space, where coordinates may mislead, and on many blocks.
        plane = self.geometry.known and self.geometry.coordinates.shape[1] < 3
        t = self.tuning
        few = self.n_blocks < 3 * t.trial_blocks or not labels
        if plane or self.sizes or self.lean or few:
            return False
        # Anneal some groups of blocks a few sweeps, with the pull and without.
        level, phase = todo[0]
        finer = take(block, labels[-1])
        sweeps = min(t.trial_sweeps, max(1, round(phase.sweeps * self.effort)))
        groups = self._groups(
            level=level, block=finer, number=0, count=self.n_blocks // t.trial_blocks
        )
        schedule = self._schedule(phase, sweeps, len(todo) == 1)._replace(seed=self.seed)
        weight = self.geometry.weight
        metric = self._metric(level, phase, finer)
        return misled(
            level=level,
            point_weight=weight,
            metric=metric,
            block=finer,
            group_of_block=groups,
            schedule=schedule,
            pressure=pressure,
            tuning=t,
        )


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
    """Whether two groups of blocks gain more without a pull; nothing is changed.

    In layers over a bent surface, or where graph distances fold, a block's centroid may be
    far from all its elements. No measure of coordinates recognised such meshes, so both
    ways are tried.
    """
    # without pressure, whose corrections would add noise
    schedule = schedule._replace(rate=0.0)
    grouping = Grouping.of(block, group_of_block)
    chosen = np.unique([int(share * grouping.groups) for share in tuning.trial_groups])
    tasks = []
    for trial in (schedule, schedule._replace(pull=(0.0, 0.0))):
        arrays = level, point_weight, metric, block.copy(), grouping
        tasks.append((*arrays, chosen, trial, pressure.copy()))
    guided, free = each(anneal_groups, tasks)
    return bool(free > tuning.trial_chance * guided)
