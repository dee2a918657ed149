"""Further variants of a planned loop: other block sizes on the order that the plan has."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import LoopPlan, Plan, Variant
from meshprep_runtime.plan.metrics import BeforeAfter, LoopMetrics, PartitionMetrics
from meshprep_runtime.plan.ranges import ranges_for
from meshprep_runtime.types.maps import ranges, run_offset

from ..kernels import Int64s, kernel
from ..loops.reach import maps_by_place
from ..metrics.measures import measure
from .build_variant import baseline, build_variant
from .matrices import input_reach
from .staging import StagingError

# Unions and parts of blocks are used only if they are filled at least to this share.
LEAST_FILL = 0.9


def recut(plan: LoopPlan, block_size: int, target: str = "gpu") -> Variant:
    """Cut the plan's order into blocks of another size.

    Larger blocks are unions of consecutive blocks of the plan's default variant, which are
    numbered along its bisection tree, so that a union is compact, too. Smaller blocks are
    equal parts of its blocks. Blocks are plain runs of the order where the plan has none,
    or where unions and parts would be too empty. Where the default variant lists its
    elements, its list is the order.

    ``target`` is noted in the variant. Raises MeshprepError for a size below 1, and for
    blocks that reach too many points to be staged. O(n x arity).
    """
    if block_size < 1:
        raise MeshprepError(f"block size {block_size}: give at least 1")
    # Take unions or parts of the plan's blocks, unless they are many more than plain runs.
    n = plan.sizes[plan.loop.over]
    offset = run_offset(n, block_size)
    elements = None
    if plan.variants:
        elements = plan.variant().elements
        from_blocks = _joined_or_split(plan.variant().block_offset, block_size)
        n_blocks = from_blocks.size - 1
        n_runs = offset.size - 1
        if n_blocks <= n_runs / LEAST_FILL:
            offset = from_blocks
    variant = build_variant(
        loop=plan.loop,
        maps=maps_by_place(plan.maps, elements),
        sizes=plan.sizes,
        block_offset=offset,
        block_size=block_size,
        target=target,
        partitioner="recut",
    )
    return replace(variant, elements=elements)


def with_sizes(
    plan: LoopPlan, block_sizes: Iterable[int], target: str = "gpu"
) -> tuple[LoopPlan, list[str]]:
    """The loop with a variant for each further block size, and the sizes that are refused.

    A refusal is a line with the size and the reason: blocks that reach too many points.
    """
    variants = dict(plan.variants)
    refused = []
    for size in dict.fromkeys(block_sizes):
        if any(v.block_size == size for v in variants.values()):
            continue
        # A block may reach too many points for its local numbers: tell the size, go on.
        try:
            variant = recut(plan, size, target)
        except StagingError as error:
            refused.append(f"block size {size}: {error}")
        else:
            variants[variant.name] = variant
    default = plan.default or next(iter(variants), "")
    return with_variants(plan, variants, default), refused


def with_variants(
    plan: LoopPlan, variants: Mapping[str, Variant], default: str
) -> LoopPlan:
    """The loop with these variants; threads take whole blocks of the default one."""
    loop_plan = replace(plan, variants=dict(variants), default=default)
    if default == plan.default or plan.ranges is None:
        return loop_plan
    return replace(loop_plan, ranges=ranges_for(loop_plan))


def with_loop(plan: Plan, loop_plan: LoopPlan) -> Plan:
    """The plan with this loop in place of its own; new variants are measured."""
    # Measure the variants that have no figures yet, against the input order.
    name = loop_plan.loop.name
    measured = dict(plan.metrics.loops.get(name, LoopMetrics()).variants)
    new = [v for v in loop_plan.variants.values() if v.name not in measured]
    if new:
        maps, sizes = input_reach(plan, loop_plan)
        for variant in new:
            before = baseline(
                loop=loop_plan.loop,
                maps=maps,
                sizes=sizes,
                block_size=variant.block_size,
            )
            after = replace(measure(loop_plan, variant), partition=PartitionMetrics())
            measured[variant.name] = BeforeAfter(before, after)
    # Put the loop and its figures in place of the old ones.
    loops = {**plan.metrics.loops, name: LoopMetrics(measured)}
    metrics = replace(plan.metrics, loops=loops)
    return replace(plan, loops={**plan.loops, name: loop_plan}, metrics=metrics)


def _joined_or_split(offset: Int64s, block_size: int) -> Int64s:
    """Offsets of blocks that are unions, or equal parts, of blocks with these offsets."""
    if offset.size < 2:
        return offset
    sizes = np.diff(offset)
    if int(sizes.max()) <= block_size:
        return offset[_offsets_of_unions(offset, block_size)]
    # Part k of a block begins at k / n_parts of its elements.
    n_parts = -(-sizes // block_size)
    part = ranges(0, n_parts)
    parts_of_block = np.repeat(n_parts, n_parts)
    size_of_block = np.repeat(sizes, n_parts)
    start_of_block = np.repeat(offset[:-1], n_parts)
    starts = start_of_block + part * size_of_block // parts_of_block
    return np.append(starts, offset[-1])


@kernel
def _offsets_of_unions(offset: Int64s, block_size: int) -> Int64s:
    """The offsets that stay when consecutive blocks are joined while they fit together."""
    staying = np.empty(offset.size, np.int64)
    staying[0] = 0
    count = 1
    last = 0
    for i in range(1, offset.size):
        # The block before offset i has no room in the union: it begins the next one.
        if offset[i] - offset[last] > block_size:
            last = i - 1
            staying[count] = last
            count += 1
    staying[count] = offset.size - 1
    return staying[: count + 1]
