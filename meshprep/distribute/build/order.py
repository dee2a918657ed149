"""The order of owned elements: the steps of a plan, inside core and inside boundary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Int32s, Int64s, SetMap

from ...kernels import kernel
from ...loops.options import Options
from ...mesh import Dat, ElementSet, Mesh
from ...mesh.geometry import CENTROID
from ...ordering import FOLLOW, propagate
from ...registry.partitioners import is_given
from ...staging.blocks import cut
from ...staging.numbering import Numbering
from ...staging.order import order_for_locality
from ..halos.ghosts import OwnedRuns
from ..ranks import ALONE, Ranks, agreed, in_turn, own_parts
from ..subject import SplitSubject

Orders = dict[str, Int32s]
BlockEnds = dict[str, Int64s]


@dataclass(frozen=True, eq=False)
class OrderedParts:
    """The owned elements of every part in their final order, and the blocks of loops."""

    runs: Mapping[str, OwnedRuns]  # by set name
    # Of each part: blocks of owned elements; none has elements of both core and boundary.
    blocks: list[BlockEnds]


def order_parts(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    ranks: Ranks = ALONE,
    own: range | None = None,
) -> OrderedParts:
    """Order every part's owned elements by the steps that order a whole mesh.

    Core and boundary of each set stand one after the other, as the cell types of a mixed
    mesh do, and so no block has elements of both. Ranks share the parts, and all have the
    result; with ``own``, each rank orders these parts of its own runs. Where the subject
    has blocks, its order stays. O(size of the mesh), and the memory of a part for each
    thread.
    """
    # The parts to order here: a share of all parts, or all of this rank's own runs.
    if own is None:
        n_parts = next(iter(runs.values())).offset.size - 1
        parts = own_parts(ranks, n_parts)
    else:
        n_parts = len(own)
        parts = own
    # A file of parts is in order already.
    if subject.blocks:
        blocks_of_file = kept_blocks(
            subject=subject,
            runs=runs,
            parts=n_parts,
            options=options,
        )
        return OrderedParts(runs, blocks_of_file)
    number = {name: run.number for name, run in runs.items()}
    elements = {name: run.elements.copy() for name, run in runs.items()}

    def order_part(part: int) -> tuple[int, Orders, BlockEnds]:
        mesh = part_mesh(subject=subject, runs=runs, place=number, part=part)
        return part, *_order_and_cut(subject, mesh, options)

    # Order the parts of this rank, several at once.
    chosen = agreed(ranks, lambda: _parts_to_order(subject, runs, parts))
    results = agreed(ranks, lambda: list(in_turn(order_part, chosen, progress)))
    if own is None:
        results = list(chain.from_iterable(ranks.allgather(results)))
    # Put the owned elements of each part into its order.
    blocks: list[BlockEnds] = [{}] * n_parts
    for part, order, ends in results:
        blocks[part] = ends
        for name, new_to_old in order.items():
            run = runs[name]
            begin, end = run.offset[part : part + 2]
            elements[name][begin:end] = run.of(part)[new_to_old]
    ordered = {name: replace(run, elements=elements[name]) for name, run in runs.items()}
    return OrderedParts(ordered, blocks)


def _parts_to_order(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], parts: range
) -> list[int]:
    """The parts whose elements are ordered.

    A part that owns nothing keeps its order, and so does one that has rows of a map and
    owns none of its points.
    """
    owned = {name: np.diff(run.offset) for name, run in runs.items()}
    to_order = np.sum(list(owned.values()), axis=0) > 0
    for m in subject.maps.values():
        to_order &= (owned[m.from_set] == 0) | (owned[m.to_set] > 0)
    return [part for part in parts if to_order[part]]


def part_mesh(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    place: Mapping[str, Int32s],
    part: int,
) -> Mesh:
    """The owned elements of a part as a mesh; owned points stand in for ghosts.

    Every set is a union of its classes: core and boundary, in each segment of a union.
    ``place`` has the number of every element in the split mesh.
    """
    elements = {name: run.of(part) for name, run in runs.items()}
    # Sets: the classes of each, and their union.
    sets: list[ElementSet] = []
    for name, owned in elements.items():
        in_boundary = np.arange(owned.size) >= runs[name].core[part]
        segment_ends = np.cumsum(subject.segments.get(name, ()))
        n_segments = max(1, segment_ends.size)
        # Number the classes: the segments of the core, then those of the boundary.
        class_of_element = in_boundary * n_segments
        if segment_ends.size:
            class_of_element += np.searchsorted(segment_ends, owned, side="right")
        sizes = np.bincount(class_of_element, minlength=2 * n_segments).tolist()
        classes = [ElementSet(f"{name} {i}", size) for i, size in enumerate(sizes)]
        union = ElementSet(name, owned.size, parts=tuple(leaf.name for leaf in classes))
        sets += [*classes, union]
    # Maps, in local numbers.
    maps = []
    for m in subject.maps.values():
        low, high = runs[m.to_set].offset[part : part + 2]
        table = _owned_rows(
            table=m.table,
            rows=elements[m.from_set],
            place=place[m.to_set],
            low=low,
            high=high,
        )
        maps.append(SetMap(name=m.name, from_set=m.from_set, to_set=m.to_set, table=table))
    centroids = [
        Dat(CENTROID, name, where[elements[name]])
        for name, where in subject.centroids.items()
    ]
    return Mesh(sets, maps, centroids)


@kernel
def _owned_rows(
    table: Int32s,
    rows: Int32s,
    place: Int32s,
    low: int,
    high: int,
) -> Int32s:
    """Rows in local numbers, with owned points alone.

    In place of a ghost stands the first owned point of the row; in a row of ghosts alone,
    the point that stood for those of the row before.
    """
    out = np.empty((rows.size, table.shape[1]), np.int32)
    stand_in = 0
    for i in range(rows.size):
        # Find the first owned point: from the last column on, it is found last.
        for j in range(table.shape[1] - 1, -1, -1):
            point = place[table[rows[i], j]]
            if low <= point < high:
                stand_in = point - low
        # Number the owned points from 0; put it in place of the others.
        for j in range(table.shape[1]):
            point = place[table[rows[i], j]]
            if low <= point < high:
                out[i, j] = point - low
            else:
                out[i, j] = stand_in
    return out


def refuse_lists(subject: SplitSubject, options: Options) -> None:
    """Raise MeshprepError for options that blocks of parts cannot have."""
    if options.own_blocks or any(spec.options.get("own_blocks") for spec in subject.specs):
        raise MeshprepError("blocks of parts are runs of their order: leave own_blocks out")
    if options.given_to_partitioner.get("staged_bytes"):
        raise MeshprepError(
            "blocks of parts stage copies besides what they are cut by: "
            "leave staged_bytes out, and take smaller blocks"
        )
    for spec in subject.specs:
        if is_given(options.for_names(spec.options).partitioner):
            raise MeshprepError(
                "blocks from outside are of the whole mesh, and parts have blocks of their "
                "own: give them to reorder or plan"
            )
    if options.sort_by_colour:
        raise MeshprepError(
            "blocks of parts are not sorted by colour: leave sort_by_colour out"
        )


def _order_and_cut(
    subject: SplitSubject, local: Mesh, options: Options
) -> tuple[Orders, BlockEnds]:
    """The order of a part's sets, and the blocks of its loops, by the steps of a plan."""
    # Order for locality, by the map that leads.
    numbering = Numbering.of(local)
    chosen = [(spec.loop, options.for_names(spec.options)) for spec in subject.specs]
    numbering, _ = order_for_locality(numbering, chosen)
    # Cut the loops into blocks. Loops with maps come first: they order their sets.
    blocks = {}
    for spec in sorted(subject.specs, key=lambda spec: not spec.loop.maps):
        numbering, blocks_of_loop = cut(numbering, spec, options.for_names(spec.options))
        if blocks_of_loop.elements is not None:
            raise MeshprepError(
                f"loop '{spec.loop.name}': another loop has ordered its set, and blocks "
                "of parts are runs of that order: leave 'partition' out of its table"
            )
        blocks[spec.loop.name] = blocks_of_loop.block_offset
    # All other sets follow.
    follow = FOLLOW[chosen[0][1].target]
    numbering = numbering.following(propagate(local, numbering.known(), follow))
    return {name: numbering.ordering(name).new_to_old for name in subject.sizes}, blocks


# Options with which a file of parts keeps its orders and blocks; the size must be theirs.
OTHERS = ("block_size", "seed", "proof")


def with_kept_blocks(subject: SplitSubject, options: Options) -> SplitSubject:
    """The subject without its blocks where options ask for others than it has."""
    same_others = {name: getattr(options, name) for name in OTHERS}
    plain = replace(Options(), **same_others)
    sizes = {spec.options.get("block_size") for spec in subject.specs}
    same_size = options.block_size is None or sizes == {options.block_size}
    if options == plain and same_size:
        return subject
    return replace(subject.with_block_size(options.block_size), blocks={})


def kept_blocks(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    parts: int,
    options: Options,
) -> list[dict[str, Int64s]]:
    """Block ends of each loop in each part: the blocks of the file, cut to the part.

    Pieces of blocks are joined with what follows them while there is room. O(owned
    elements).
    """
    blocks: list[dict[str, Int64s]] = [{} for _ in range(parts)]
    for spec in subject.specs:
        name = spec.loop.name
        run = runs[spec.loop.over]
        size = options.for_names(spec.options).block_elements
        for part, ends in enumerate(blocks):
            core = int(run.core[part])
            ends[name] = _joined_pieces(
                elements=run.of(part),
                core=core,
                block=subject.blocks[name],
                size=size,
            )
    return blocks


@kernel
def _joined_pieces(
    elements: Int32s,
    core: int,
    block: NDArray[np.integer],
    size: int,
) -> Int64s:
    """0, and where blocks end: pieces of the file's blocks, joined up to ``size`` elements.

    No block has elements of both core and boundary.
    """
    ends = np.zeros(elements.size + 1, np.int64)
    n = 0
    begin = 0
    i = 0
    while i < elements.size:
        # Find the end of the piece that begins here.
        limit = core if i < core else elements.size
        j = i + 1
        while j < limit and block[elements[j]] == block[elements[i]]:
            j += 1
        # End the block before it where it has no room, or where the boundary begins.
        if i > begin and (i == core or j - begin > size):
            n += 1
            ends[n] = i
            begin = i
        i = j
    if elements.size > begin:
        n += 1
        ends[n] = elements.size
    return ends[: n + 1].copy()
