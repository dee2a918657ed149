"""The order of what each part owns: the serial pipeline, inside core and inside boundary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import SetMap

from ..kernels import kernel
from ..loops.options import Options
from ..mesh import Dat, ElementSet, Mesh
from ..mesh.geometry import CENTROID
from ..pipeline.blocks import cut
from ..pipeline.numbering import Numbering
from ..pipeline.order import order_for_locality
from ..reorder import FOLLOW, propagate
from .halos import OwnedRuns
from .kept import kept_blocks
from .ranks import ALONE, Ranks, agreed, in_turn, own_parts
from .subject import SplitSubject

BlockEnds = dict[str, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class OrderedParts:
    """The owned elements of every part in their final order, and how loops are cut there."""

    runs: Mapping[str, OwnedRuns]  # by set name
    blocks: list[BlockEnds]  # blocks of owned elements; none crosses from core to boundary

    def owns_any(self, part: int) -> bool:
        """Whether a part has any element; without, it reaches none either."""
        return owns_any(self.runs, part)


def order_parts(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    ranks: Ranks = ALONE,
    own: range | None = None,
) -> OrderedParts:
    """Order every part's owned elements by the steps of the serial pipeline.

    Core and boundary of each set stand one after the other, as the cell types of a mixed mesh do,
    and so no block has elements of both. O(size of the mesh), and the memory of a part for each
    thread. Ranks share the parts, and all have the result; with ``own``, each rank orders these
    parts of its own runs. Where the subject has blocks, it is in the order that parts keep.
    """
    n_made = next(iter(runs.values())).offset.size - 1 if own is None else len(own)
    if subject.blocks:
        return OrderedParts(runs, [kept_blocks(subject, runs, p, options) for p in range(n_made)])
    place = {name: run.number for name, run in runs.items()}
    elements = {name: run.elements.copy() for name, run in runs.items()}

    def ordered(part: int) -> tuple[int, dict[str, NDArray[np.int32]], BlockEnds]:
        local = _owned_mesh(subject, runs, place, part)
        return part, *_ordered(subject, local, options)

    mine = own_parts(ranks, n_made) if own is None else own
    some = [part for part in mine if owns_any(runs, part)]
    found = agreed(ranks, lambda: list(in_turn(ordered, some, progress)))
    blocks: list[BlockEnds] = [{}] * n_made
    every = chain.from_iterable(ranks.allgather(found)) if own is None else found
    for part, order, blocks[part] in every:
        for name, new_to_old in order.items():
            low, high = runs[name].offset[part : part + 2]
            elements[name][low:high] = runs[name].of(part)[new_to_old]
    done = {name: replace(run, elements=elements[name]) for name, run in runs.items()}
    return OrderedParts(done, blocks)


def owns_any(runs: Mapping[str, OwnedRuns], part: int) -> bool:
    return any(run.offset[part] < run.offset[part + 1] for run in runs.values())


def refuse_lists(subject: SplitSubject, options: Options) -> None:
    """Raise MeshprepError for wishes that blocks of parts cannot have."""
    if options.own_blocks or any(spec.options.get("own_blocks") for spec in subject.specs):
        raise MeshprepError("blocks of parts are runs of their order: leave own_blocks out")
    if options.given_to_partitioner.get("staged_bytes"):
        raise MeshprepError(
            "blocks of parts stage copies besides what they are cut by: leave staged_bytes out, "
            "and take smaller blocks"
        )
    if options.sort_by_colour:
        raise MeshprepError("blocks of parts are not sorted by colour: leave sort_by_colour out")


def _ordered(
    subject: SplitSubject, local: Mesh | None, options: Options
) -> tuple[dict[str, NDArray[np.int32]], BlockEnds]:
    """The order of a part's sets, and the blocks of its loops."""
    if local is None:
        return {}, {}
    numbering = Numbering(local)
    chosen = [(spec.loop, options.for_loop(spec.options)) for spec in subject.specs]
    order_for_locality(numbering, chosen)
    blocks = {}
    for spec in sorted(subject.specs, key=lambda s: not s.loop.maps):
        found = cut(numbering, spec, options.for_loop(spec.options))
        if found.elements is not None:
            raise MeshprepError(
                f"loop '{spec.loop.name}': another loop has ordered its set, and blocks of parts "
                "are runs of that order: leave 'partition' out of its table"
            )
        blocks[spec.loop.name] = found.block_offset
    follow = FOLLOW[chosen[0][1].target]
    numbering.finish(propagate(local, numbering.settled(), follow))
    return {name: numbering.ordering(name).new_to_old for name in subject.sizes}, blocks


def _owned_mesh(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    place: Mapping[str, NDArray[np.int32]],
    part: int,
) -> Mesh | None:
    """What a part owns as a mesh in which every set is a union of its classes.

    Foreign points give way to owned ones of the same row. None where there are none to give.
    """
    sets: list[ElementSet] = []
    for name in subject.sizes:
        leaves = _leaves(subject, runs[name], name, part)
        size = sum(leaf.size for leaf in leaves)
        sets += [*leaves, ElementSet(name, size, parts=tuple(leaf.name for leaf in leaves))]
    size_of = {s.name: s.size for s in sets}
    maps = []
    for m in subject.maps.values():
        rows = runs[m.from_set].of(part)
        if rows.size and not size_of[m.to_set]:
            return None
        low, high = runs[m.to_set].offset[part : part + 2]
        table = _owned_rows(m.table, rows, place[m.to_set], low, high)
        maps.append(SetMap(m.name, m.from_set, m.to_set, table))
    dats = [
        Dat(CENTROID, name, where[runs[name].of(part)]) for name, where in subject.centroids.items()
    ]
    return Mesh(sets, maps, dats)


def _leaves(subject: SplitSubject, run: OwnedRuns, name: str, part: int) -> list[ElementSet]:
    """Core and boundary of a part, each in the segments of a union."""
    segments = subject.segments.get(name, (subject.sizes[name],))
    bound, leaves = np.cumsum([0, *segments]), []
    owned, core = run.of(part), int(run.core[part])
    for kind, elements in (("core", owned[:core]), ("boundary", owned[core:])):
        ends = np.searchsorted(elements, bound)
        leaves += [
            ElementSet(f"{name} {kind} {i}", int(size)) for i, size in enumerate(np.diff(ends))
        ]
    return leaves


@kernel
def _owned_rows(
    table: NDArray[np.int32],
    rows: NDArray[np.int32],
    place: NDArray[np.int32],
    low: int,
    high: int,
) -> NDArray[np.int32]:
    """Rows in local numbers; a foreign point becomes the row's first owned one, or the last met."""
    out, own = np.empty((rows.size, table.shape[1]), np.int32), 0
    for i in range(rows.size):
        for j in range(table.shape[1] - 1, -1, -1):
            at = place[table[rows[i], j]]
            if low <= at < high:
                own = at - low
        for j in range(table.shape[1]):
            at = place[table[rows[i], j]]
            out[i, j] = at - low if low <= at < high else own
    return out
