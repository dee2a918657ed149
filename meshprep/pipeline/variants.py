"""Further variants of a planned loop: other block sizes on the order that the plan has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import LoopPlan, Plan, Staging, Variant
from meshprep_runtime.plan.matrices import with_places
from meshprep_runtime.plan.metrics import BeforeAfter, LoopMetrics, PartitionMetrics, VariantMetrics
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, UInt16s, offsets_of, ranges, read_only, run_offset

from ..colour.block_colours import colour_blocks
from ..colour.thread_colours import ThreadColours, colour_threads
from ..kernels import Bools, Int32s, Int64s, kernel
from ..kernels.arrays import sort
from ..kernels.parallel import at_once, each, pieces
from ..loops.reach import joined_tables, maps_by_place, maps_by_set, written_table
from ..loops.requests import LoopSpec
from ..mesh import Mesh
from ..mesh.incidence import number_points
from ..metrics.measures import measure, variant_metrics
from .matrices import build_matrices, input_reach
from .numbering import Numbering

# Blocks filled less than this on average are no blocks of that size any more.
LEAST_FILL = 0.9


def recut(plan: LoopPlan, block_size: int, target: str = "gpu") -> Variant:
    """Cut the plan's order into blocks of another size.

    Larger blocks are unions of consecutive blocks of the plan's default variant, which are numbered
    along its bisection tree, so that a union is compact, too; smaller ones are equal parts of its
    blocks. Where that leaves blocks too empty, and where the plan has no blocks, plain runs of the
    order. Where the default variant lists its elements, its list is the order. ``target`` is what
    the variant will say. Raises MeshprepError for a size below 1, and blocks that reach too many
    points to be staged. O(n x arity).
    """
    if block_size < 1:
        raise MeshprepError(f"block size {block_size}: give at least 1")
    n = plan.sizes[plan.loop.over]
    offset = run_offset(n, block_size)
    elements = None
    if plan.variants:
        elements = plan.variant().elements
        kept = _joined_or_split(plan.variant().block_offset, block_size)
        if kept.size - 1 <= (offset.size - 1) / LEAST_FILL:
            offset = kept
    variant = build_variant(
        plan.loop,
        maps_by_place(plan.maps, elements),
        plan.sizes,
        offset,
        block_size=block_size,
        target=target,
        partitioner="recut",
    )
    return replace(variant, elements=elements)


def with_sizes(
    plan: LoopPlan, block_sizes: Iterable[int], target: str = "gpu"
) -> tuple[LoopPlan, list[str]]:
    """The loop with a variant for each further block size; a line for each that is too large."""
    variants, refused = dict(plan.variants), []
    for size in dict.fromkeys(block_sizes):
        if any(v.block_size == size for v in variants.values()):
            continue
        try:
            variant = recut(plan, size, target)
        except StagingError as error:
            refused.append(f"block size {size}: {error}")
        else:
            variants[variant.name] = variant
    default = plan.default or next(iter(variants), "")
    return replace(plan, variants=variants, default=default), refused


def with_loop(plan: Plan, loop_plan: LoopPlan) -> Plan:
    """The plan with this loop in place of its own, new variants measured as the others are."""
    name = loop_plan.loop.name
    measured = dict(plan.metrics.loops.get(name, LoopMetrics()).variants)
    reached: tuple[dict[str, SetMap], dict[str, int]] | None = None
    for variant in loop_plan.variants.values():
        if variant.name not in measured:
            reached = reached or input_reach(plan, loop_plan)
            base = baseline(loop_plan.loop, *reached, variant.block_size)
            after = replace(measure(loop_plan, variant), partition=PartitionMetrics())
            measured[variant.name] = BeforeAfter(base, after)
    loops = {**plan.metrics.loops, name: LoopMetrics(measured)}
    metrics = replace(plan.metrics, loops=loops)
    return replace(plan, loops={**plan.loops, name: loop_plan}, metrics=metrics)


def _joined_or_split(offset: Int64s, block_size: int) -> Int64s:
    """Ends of blocks that are unions or equal parts of these."""
    if offset.size < 2:
        return offset
    if int(np.diff(offset).max()) <= block_size:
        return offset[_joined(offset, block_size)]
    parts = -(-np.diff(offset) // block_size)
    step = ranges(0, parts)
    size, start = np.repeat(np.diff(offset), parts), np.repeat(offset[:-1], parts)
    return np.append(start + step * size // np.repeat(parts, parts), offset[-1])


@kernel
def _joined(offset: Int64s, block_size: int) -> Int64s:
    """Which offsets stay when consecutive blocks are joined as long as they fit together."""
    kept = np.empty(offset.size, np.int64)
    count, last = 1, 0
    kept[0] = 0
    for i in range(1, offset.size):
        if offset[i] - offset[last] > block_size:
            last = i - 1
            kept[count] = last
            count += 1
    kept[count] = offset.size - 1
    return kept[: count + 1]


def build_variant(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    block_offset: Int64s,
    *,
    block_size: int,
    target: str,
    partitioner: str,
    thread_colours: ThreadColours | None = None,
) -> Variant:
    """Colour and stage the blocks of a loop.

    ``maps`` are in the new numbering, place by place, at least those of the loop; ``block_offset``
    rises from 0 to the size of the loop's set. ``thread_colours`` are those by which the elements
    of each block are sorted already. The variant is named ``s{block_size}``; a loop without maps
    has one colour and nothing staged. Raises MeshprepError when a block stages more than 65,536
    points or needs more than 65,536 colours.
    """
    table, n_points = written_table(loop, maps, sizes)
    # the colours of blocks are found on one core
    blocks, (threads, (staging, local)) = at_once(
        lambda: colour_blocks(table, n_points, block_offset),
        lambda: (
            thread_colours or colour_threads(table, n_points, block_offset),
            stage_maps(loop, maps, sizes, block_offset),
        ),
    )
    return Variant(
        name=f"s{block_size}",
        block_size=block_size,
        target=target,
        partitioner=partitioner,
        sorted_by_colour=thread_colours is not None,
        block_offset=np.asarray(block_offset, dtype=np.int64),
        block_colour_offset=blocks.offset,
        block_order=blocks.order,
        thread_colour=threads.colour,
        thread_colours=threads.count,
        staging=staging,
        local=local,
    )


def stage_maps(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], block_offset: Int64s
) -> tuple[dict[str, Staging], dict[str, UInt16s]]:
    """The staging lists of every to-set of a loop, and its local maps."""
    staging: dict[str, Staging] = {}
    local: dict[str, UInt16s] = {}
    for to_set, names in maps_by_set(loop, maps).items():
        tables = [maps[name].table for name in names]
        staging[to_set], found = build_staging(tables, sizes[to_set], block_offset)
        local |= dict(zip(names, found, strict=True))
    return staging, local


def baseline(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], block_size: int
) -> VariantMetrics | None:
    """:func:`variant_metrics` of blocks of the order as it is; None if they cannot be staged."""
    try:
        return variant_metrics(loop, maps, sizes, baseline_variant(loop, maps, sizes, block_size))
    except StagingError:
        return None


def input_baselines(
    full: Mesh, specs: Sequence[LoopSpec], block_sizes: Sequence[int]
) -> dict[tuple[str, int], VariantMetrics | None]:
    """The figures of loops in the order of a mesh, by loop and block size; see :func:`baseline`."""
    matrices = build_matrices(Numbering.of(full), specs)
    found = {}
    for spec, block_size in zip(specs, block_sizes, strict=True):
        reached = with_places(spec.loop, full.maps, full.sizes, matrices)
        found[spec.loop.name, block_size] = baseline(spec.loop, *reached, block_size)
    return found


def baseline_variant(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], block_size: int
) -> Variant:
    """The order as it is, cut into blocks of ``block_size`` elements."""
    return build_variant(
        loop,
        maps,
        sizes,
        run_offset(sizes[loop.over], block_size),
        block_size=block_size,
        target="gpu",
        partitioner="contiguous",
    )


# A block works on its own copy of the to-set elements it touches [G10 section 6]: the staging list
# says which, and the local map where in the list each argument of an element stands.
STAGED_LIMIT = 65536
PLACE_BITS = 16
# Fewer blocks than this are staged faster than threads start.
FEW_BLOCKS = 256


class StagingError(MeshprepError):
    """A block touches more points than a staging list can number."""


def build_staging(
    tables: Sequence[Int32s], n_to: int, block_offset: Int64s
) -> tuple[Staging, list[UInt16s]]:
    """List the points of one to-set that each block touches, through any of the maps into it.

    ``tables`` are the maps into the set, in the new numbering; at least one. The points of each
    block ascend, each once; each map becomes positions in the block's list, (arity, n_from). Raises
    MeshprepError when a block touches more than 65,536 points. O(n x arity) and the sorting of each
    block's points; parallel over blocks.
    """
    table, block_offset = read_only(joined_tables(tables)), read_only(block_offset)
    (n, arity), n_blocks = table.shape, block_offset.size - 1
    loads, local = np.zeros(n_blocks, np.int64), np.empty((arity, n), np.uint16)
    # room for all accesses: pages that are never written cost nothing
    room = np.empty(table.size, np.int32)
    shares = pieces(n_blocks, FEW_BLOCKS)
    each(_stage, [(table, block_offset, *share, loads, room, local) for share in shares])
    most = int(loads.max(initial=0))
    if most > STAGED_LIMIT:
        raise StagingError(
            f"block {int(loads.argmax())} touches {most} points of one set, but a block stages at "
            f"most {STAGED_LIMIT}: lower the block size"
        )
    point_offset = offsets_of(loads)
    begins = [int(block_offset[first]) * arity for first, _ in shares]
    points = np.concatenate(
        [
            room[begin : begin + int(point_offset[last] - point_offset[first])]
            for begin, (first, last) in zip(begins, shares, strict=True)
        ]
    )
    rows = np.cumsum([t.shape[1] for t in tables])[:-1]
    return Staging(point_offset, points, _exclusive(points, n_to)), np.split(local, rows)


@kernel
def _stage(
    table: Int32s,
    block_offset: Int64s,
    first: int,
    last: int,
    loads: Int64s,
    room: Int32s,
    local: UInt16s,
) -> None:
    """Stage the blocks ``first`` to ``last - 1``: how many points, which, and the local map.

    The points stand one after the other in ``room``, from where the rows of the first block begin
    in the table. Of a block with too many only the number is told.
    """
    end = block_offset[first] * table.shape[1]
    for b in range(first, last):
        found, first_touch = number_points(table[block_offset[b] : block_offset[b + 1]])
        loads[b] = found.size
        if found.size > STAGED_LIMIT:
            continue
        # points with their places in one word, to be sorted by the points
        order = np.empty(found.size, np.int64)
        for i in range(found.size):
            order[i] = (np.int64(found[i]) << PLACE_BITS) + i
        sort(order, 0, found.size)
        place = np.empty(found.size, np.uint16)
        for i in range(found.size):
            room[end] = order[i] >> PLACE_BITS
            place[order[i] & ((1 << PLACE_BITS) - 1)] = i
            end += 1
        for e in range(first_touch.shape[0]):
            for j in range(first_touch.shape[1]):
                local[j, block_offset[b] + e] = place[first_touch[e, j]]


@kernel
def _exclusive(points: Int32s, n_to: int) -> Bools:
    """True where a point is in one block's list only."""
    blocks = np.zeros(n_to, np.uint8)
    for p in points:
        blocks[p] = min(blocks[p] + 1, 2)
    out = np.empty(points.size, np.bool_)
    for i in range(points.size):
        out[i] = blocks[points[i]] == 1
    return out
