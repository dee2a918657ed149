"""Owned elements of several parts as one mesh, and the order of many small parts at once.

A part is small where each class of a set is one block, or blocks are runs of the order. Nothing is
then searched for a part alone, so that the steps of the serial pipeline order many of them as one
mesh whose orders mix no parts, and the interpreter takes its time once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshprep_runtime.plan.parts.batch import Numbers, begins
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, offsets_of, ranges
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Bools, Int32s, Int64s, kernel
from ..loops.options import Options
from ..loops.requests import LoopSpec
from ..mesh import Dat, ElementSet, Mesh
from ..mesh.geometry import CENTROID
from ..mesh.orderings import ordering_of
from ..pipeline.blocks import Cut, check_partitioner, settle_points
from ..pipeline.numbering import Numbering
from ..pipeline.order import locality_problem, order_by
from ..reorder import FOLLOW, propagate
from ..reorder.figures import envelope_costs
from ..reorder.gps import gps
from .halos import OwnedRuns
from .subject import SplitSubject

# Elements that parts own which are ordered, and made, together.
TOGETHER = 1 << 16

Parts = Int64s
Orders = dict[str, Int32s]
BlockEnds = dict[str, Int64s]


@dataclass(frozen=True, eq=False)
class JoinedParts:
    """Owned elements of several parts, concatenated; foreign points replaced by owned ones."""

    subject: SplitSubject
    elements: Mapping[str, Int32s]  # by set name: numbers of the input
    # By set name: (k, classes) elements of each class of each part, in each segment of a union.
    classes: Mapping[str, Numbers]
    maps: tuple[SetMap, ...]

    @classmethod
    def of(
        cls,
        subject: SplitSubject,
        runs: Mapping[str, OwnedRuns],
        place: Mapping[str, Int32s],
        parts: Parts,
    ) -> "JoinedParts":
        """Some parts; ``place`` has the number of every element in the split mesh."""
        elements = {name: run.elements[places_of(run, parts)] for name, run in runs.items()}
        classes = {
            name: _classes(elements[name], runs[name], parts, subject.segments.get(name))
            for name in subject.sizes
        }
        maps = []
        for m in subject.maps.values():
            ends = runs[m.to_set].offset[parts], runs[m.to_set].offset[parts + 1]
            rows, points = (classes[s].sum(axis=1) for s in (m.from_set, m.to_set))
            counts = np.stack([rows, *ends, begins(points)], axis=1)
            table = _owned_rows(m.table, elements[m.from_set], place[m.to_set], counts)
            maps.append(SetMap(m.name, m.from_set, m.to_set, table))
        return cls(subject, elements, classes, tuple(maps))

    def ends(self, name: str) -> Numbers:
        """Begin of each part, and the end."""
        return offsets_of(self.classes[name].sum(axis=1))

    def mesh(self) -> Mesh:
        """The sets as they are, without places."""
        return Mesh([ElementSet(name, own.size) for name, own in self.elements.items()], self.maps)

    def mesh_in_classes(self) -> Mesh:
        """One part as a mesh in which every set is a union of its classes."""
        sets: list[ElementSet] = []
        for name, (classes,) in self.classes.items():
            leaves = [ElementSet(f"{name} {i}", int(size)) for i, size in enumerate(classes)]
            names = tuple(leaf.name for leaf in leaves)
            sets += [*leaves, ElementSet(name, int(classes.sum()), parts=names)]
        where = self.subject.centroids.items()
        return Mesh(
            sets, self.maps, [Dat(CENTROID, name, of[self.elements[name]]) for name, of in where]
        )


def places_of(run: OwnedRuns, parts: Parts) -> Numbers:
    """Positions in a run of the elements of these parts."""
    count = run.offset[parts + 1] - run.offset[parts]
    return ranges(run.offset[parts], count)


def _classes(
    elements: Int32s, run: OwnedRuns, parts: Parts, segments: tuple[int, ...] | None
) -> Numbers:
    owned, core = run.offset[parts + 1] - run.offset[parts], run.core[parts]
    both = np.stack([core, owned - core], axis=1)
    if segments is None:
        return both
    run_of = np.repeat(np.arange(both.size), both.reshape(-1))
    segment = np.searchsorted(np.cumsum(segments), elements, side="right")
    count = both.size * len(segments)
    found = np.bincount(run_of * len(segments) + segment, minlength=count)
    return found.reshape(parts.size, -1)


def in_order_of_cuts(subject: SplitSubject) -> list[LoopSpec]:
    """Loops with maps first: they order their sets."""
    return sorted(subject.specs, key=lambda spec: not spec.loop.maps)


def _cuts(subject: SplitSubject, options: Options) -> list[tuple[LoopSpec, Options, str]]:
    """Loops in the order in which they are cut, and by which partitioner."""
    settled, found = set[str](), []
    for spec in in_order_of_cuts(subject):
        loop, own = spec.loop, options.for_names(spec.options)
        leads = loop.over not in settled and (loop.maps or own.partition)
        found.append((spec, own, own.partitioner if leads else "contiguous"))
        settled |= {loop.over, *(subject.maps[m].to_set for m in loop.maps)}
    return found


def small_parts(subject: SplitSubject, runs: Mapping[str, OwnedRuns], options: Options) -> Bools:
    """Mask of the parts that :func:`order_together` can order; raises as partitioners do."""
    owned = {name: np.diff(run.offset) for name, run in runs.items()}
    small: Bools = np.sum(list(owned.values()), axis=0) <= TOGETHER
    small &= options.method == "gps"
    for spec, own, name in _cuts(subject, options):
        if name == "contiguous":
            # parts are refused where blocks would be lists
            small &= spec.options.get("partition") in (None, "contiguous")
            continue
        check_partitioner(own)
        small &= name == "blocks" and "staged_bytes" not in own.given_to_partitioner
        over, core = spec.loop.over, runs[spec.loop.over].core
        small &= np.maximum(core, owned[over] - core) <= own.block_elements
    return small


def order_together(
    subject: SplitSubject, joined: JoinedParts, options: Options
) -> tuple[Orders, list[BlockEnds]]:
    """The order of all sets by parts and classes, and the blocks, of each part as alone."""
    mesh, classes = joined.mesh(), joined.classes
    numbering = Numbering.of(mesh, runs={name: one.reshape(-1) for name, one in classes.items()})
    chosen = [(spec.loop, options.for_names(spec.options)) for spec in subject.specs]
    numbering, _ = order_by(partial(_lead, joined), numbering, chosen)
    n_parts = len(next(iter(classes.values())))
    blocks: list[BlockEnds] = [{} for _ in range(n_parts)]
    for spec, own, name in _cuts(subject, options):
        loop = spec.loop
        offset, count = _chunks(classes[loop.over].reshape(-1), own.block_elements)
        grouped = own.target == "gpu" or name != "contiguous"
        whole = Cut(offset, None, name, None, {}) if grouped else None
        numbering = settle_points(numbering, loop, whole).settled(loop.over)
        ends = _of_each_part(offset, count.reshape(n_parts, -1).sum(axis=1))
        for one, found in zip(blocks, ends, strict=True):
            one[loop.name] = found
    follow = FOLLOW[chosen[0][1].target]
    rest = propagate(mesh, numbering.known(), follow, keep=numbering.in_runs)
    numbering = numbering.following(rest)
    return {name: numbering.ordering(name).new_to_old for name in subject.sizes}, blocks


def _lead(
    joined: JoinedParts, numbering: Numbering, points: str, loop: Loop, options: Options
) -> tuple[Int32s, None, None]:
    """The order of a loop's points in each part, where that narrows them."""
    graph, ends = locality_problem(numbering, loop, options).graph, joined.ends(points)
    here, found = Ordering.identity(graph.n_rows), ordering_of(gps(graph, ends))
    before, after = (
        envelope_costs(graph.offset, graph.index, order.old_to_new, ends) for order in (here, found)
    )
    gains = np.repeat(after < before, np.diff(ends))
    return np.where(gains, found.new_to_old, here.new_to_old), None, None


def _chunks(sizes: Numbers, most: int) -> tuple[Numbers, Numbers]:
    """Runs in chunks of so many elements: the offset of these, and how many each run has."""
    count = -(-sizes // most)
    ends = np.repeat(begins(sizes), count) + most * ranges(1, count)
    return np.append(0, np.minimum(ends, np.repeat(np.cumsum(sizes), count))), count


def _of_each_part(offset: Numbers, count: Numbers) -> list[Numbers]:
    """The offset of the blocks of each part, which has so many."""
    first = np.cumsum(count) - count
    found = offset[ranges(first, count + 1)] - np.repeat(offset[first], count + 1)
    return np.split(found, np.cumsum(count + 1)[:-1])


@kernel
def _owned_rows(table: Int32s, rows: Int32s, place: Int32s, counts: Int64s) -> Int32s:
    """Rows in local numbers; a foreign point becomes the row's first owned one, or the last met.

    ``counts`` has a row for each part: its rows here, its first and last number of a point, and
    where its points begin.
    """
    out, row = np.empty((rows.size, table.shape[1]), np.int32), 0
    for p in range(counts.shape[0]):
        low, high, begin = counts[p, 1], counts[p, 2], counts[p, 3]
        own = begin
        for i in range(row, row + counts[p, 0]):
            for j in range(table.shape[1] - 1, -1, -1):
                at = place[table[rows[i], j]]
                if low <= at < high:
                    own = begin + at - low
            for j in range(table.shape[1]):
                at = place[table[rows[i], j]]
                out[i, j] = begin + at - low if low <= at < high else own
        row += counts[p, 0]
    return out
