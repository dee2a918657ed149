"""The order of what each part owns: the serial pipeline, inside core and inside boundary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Int32s, Int64s, SetMap

from ..kernels import kernel
from ..loops.options import Options
from ..mesh import Dat, ElementSet, Mesh
from ..mesh.geometry import CENTROID
from ..pipeline.blocks import cut
from ..pipeline.numbering import Numbering
from ..pipeline.order import order_for_locality
from ..reorder import FOLLOW, propagate
from .halos import OwnedRuns
from .ranks import ALONE, Ranks, agreed, in_turn, own_parts
from .subject import SplitSubject

Orders = dict[str, Int32s]
BlockEnds = dict[str, Int64s]


@dataclass(frozen=True, eq=False)
class OrderedParts:
    """The owned elements of every part in their final order, and how loops are cut there."""

    runs: Mapping[str, OwnedRuns]  # by set name
    blocks: list[BlockEnds]  # blocks of owned elements; none crosses from core to boundary


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
        return OrderedParts(runs, kept_blocks(subject, runs, n_made, options))
    place = {name: run.number for name, run in runs.items()}
    elements = {name: run.elements.copy() for name, run in runs.items()}
    mine = own_parts(ranks, n_made) if own is None else own

    def ordered(part: int) -> tuple[int, Orders, BlockEnds]:
        mesh = part_mesh(subject, runs, place, part)
        return part, *_ordered(subject, mesh, options)

    wanted = agreed(ranks, lambda: _ordered_parts(subject, runs, mine))
    found = agreed(ranks, lambda: list(in_turn(ordered, wanted, progress)))
    blocks: list[BlockEnds] = [{}] * n_made
    every = chain.from_iterable(ranks.allgather(found)) if own is None else found
    for part, order, ends in every:
        blocks[part] = ends
        for name, new_to_old in order.items():
            run = runs[name]
            elements[name][run.offset[part] : run.offset[part + 1]] = run.of(part)[new_to_old]
    done = {name: replace(run, elements=elements[name]) for name, run in runs.items()}
    return OrderedParts(done, blocks)


def _ordered_parts(subject: SplitSubject, runs: Mapping[str, OwnedRuns], parts: range) -> list[int]:
    """The parts whose elements are ordered.

    What owns nothing keeps its order, and so do rows where the part owns no point of their map.
    """
    owned = {name: np.diff(run.offset) for name, run in runs.items()}
    wanted = np.sum(list(owned.values()), axis=0) > 0
    for m in subject.maps.values():
        wanted &= (owned[m.from_set] == 0) | (owned[m.to_set] > 0)
    return [part for part in parts if wanted[part]]


def part_mesh(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], place: Mapping[str, Int32s], part: int
) -> Mesh:
    """The owned elements of a part; foreign points are replaced by owned ones.

    Every set is a union of its classes: core and boundary, in each segment of a union. ``place``
    has the number of every element in the split mesh.
    """
    elements, maps = {name: run.of(part) for name, run in runs.items()}, []
    sets: list[ElementSet] = []
    for name, own in elements.items():
        core = np.arange(own.size) >= runs[name].core[part]
        ends = np.cumsum(subject.segments.get(name, ()))
        count = max(1, ends.size)
        kind = core * count + np.searchsorted(ends, own, side="right") if ends.size else core
        classes = np.bincount(kind, minlength=2 * count).tolist()
        leaves = [ElementSet(f"{name} {i}", size) for i, size in enumerate(classes)]
        union = ElementSet(name, own.size, parts=tuple(leaf.name for leaf in leaves))
        sets += [*leaves, union]
    for m in subject.maps.values():
        low, high = runs[m.to_set].offset[part : part + 2]
        table = _owned_rows(m.table, elements[m.from_set], place[m.to_set], low, high)
        maps.append(SetMap(m.name, m.from_set, m.to_set, table))
    where = subject.centroids.items()
    return Mesh(sets, maps, [Dat(CENTROID, name, of[elements[name]]) for name, of in where])


@kernel
def _owned_rows(table: Int32s, rows: Int32s, place: Int32s, low: int, high: int) -> Int32s:
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


def _ordered(subject: SplitSubject, local: Mesh, options: Options) -> tuple[Orders, BlockEnds]:
    """The order of a part's sets, and the blocks of its loops."""
    numbering = Numbering.of(local)
    chosen = [(spec.loop, options.for_names(spec.options)) for spec in subject.specs]
    numbering, _ = order_for_locality(numbering, chosen)
    blocks = {}
    # loops with maps first: they order their sets
    for spec in sorted(subject.specs, key=lambda spec: not spec.loop.maps):
        numbering, found = cut(numbering, spec, options.for_names(spec.options))
        if found.elements is not None:
            raise MeshprepError(
                f"loop '{spec.loop.name}': another loop has ordered its set, and blocks of parts "
                "are runs of that order: leave 'partition' out of its table"
            )
        blocks[spec.loop.name] = found.block_offset
    follow = FOLLOW[chosen[0][1].target]
    numbering = numbering.following(propagate(local, numbering.known(), follow))
    return {name: numbering.ordering(name).new_to_old for name in subject.sizes}, blocks


# Options that change neither orders nor blocks.
OTHERS = ("block_size", "seed", "proof")


def with_kept_blocks(subject: SplitSubject, options: Options) -> SplitSubject:
    """The subject without its blocks where options ask for others than it has."""
    plain = replace(Options(), **{name: getattr(options, name) for name in OTHERS})
    sizes = {spec.options.get("block_size") for spec in subject.specs}
    if options == plain and options.block_size in (None, *(sizes if len(sizes) == 1 else ())):
        return subject
    return replace(subject.with_block_size(options.block_size), blocks={})


def kept_blocks(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], parts: int, options: Options
) -> list[dict[str, Int64s]]:
    """Block ends of each loop in each part: the blocks of the file, cut to the part.

    Pieces of blocks are joined with what follows them while there is room. O(owned elements).
    """
    found: list[dict[str, Int64s]] = [{} for _ in range(parts)]
    for spec in subject.specs:
        name, run = spec.loop.name, runs[spec.loop.over]
        size = options.for_names(spec.options).block_elements
        for part, ends in enumerate(found):
            core = int(run.core[part])
            ends[name] = _joined_pieces(run.of(part), core, subject.blocks[name], size)
    return found


@kernel
def _joined_pieces(elements: Int32s, core: int, block: NDArray[np.integer], size: int) -> Int64s:
    """0, and where blocks end: elements of one block stay together, core and boundary do not."""
    ends = np.zeros(elements.size + 1, np.int64)
    n, begin, i = 0, 0, 0
    while i < elements.size:
        limit = core if i < core else elements.size
        j = i + 1
        while j < limit and block[elements[j]] == block[elements[i]]:
            j += 1
        if i > begin and (i == core or j - begin > size):
            n += 1
            ends[n], begin = i, i
        i = j
    if elements.size > begin:
        n += 1
        ends[n] = elements.size
    return ends[: n + 1].copy()
