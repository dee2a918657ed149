"""A variant of a loop: its blocks with their colours and staging lists."""

from collections.abc import Mapping, Sequence

import numpy as np

from meshprep_runtime.plan import Staging, Variant
from meshprep_runtime.plan.matrices import with_places
from meshprep_runtime.plan.metrics import VariantMetrics
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, UInt16s, run_offset

from ..colouring.block_colours import colour_blocks
from ..colouring.thread_colours import ThreadColours, colour_threads
from ..kernels import Int64s
from ..kernels.parallel import at_once
from ..loops.reach import written_table
from ..loops.requests import LoopSpec
from ..mesh import Mesh
from ..metrics.measures import variant_metrics
from .matrices import build_matrices
from .numbering import Numbering
from .staging import StagingError, stage_maps


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

    ``maps`` are at least those of the loop, in the new numbering, with a row for each place
    of an element in a block. ``block_offset`` rises from 0 to the size of the loop's set.
    ``thread_colours`` are given where the elements of each block are sorted by them. The
    variant is named ``s{block_size}``; a loop without maps has one colour and nothing
    staged. Raises MeshprepError when a block stages more than 65,536 points or needs more
    than 65,536 colours.
    """
    table, n_points = written_table(loop, maps, sizes)

    def colour_and_stage_threads() -> tuple[
        ThreadColours, tuple[dict[str, Staging], dict[str, UInt16s]]
    ]:
        threads = thread_colours or colour_threads(table, n_points, block_offset)
        staged = stage_maps(loop=loop, maps=maps, sizes=sizes, block_offset=block_offset)
        return threads, staged

    # The colours of blocks are found on one core, all else on the others meanwhile.
    blocks, (threads, (staging, local)) = at_once(
        lambda: colour_blocks(table, n_points, block_offset), colour_and_stage_threads
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


def baseline(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    block_size: int,
) -> VariantMetrics | None:
    """The figures of runs of the order as it is; None where they cannot be staged."""
    try:
        variant = baseline_variant(loop=loop, maps=maps, sizes=sizes, block_size=block_size)
    except StagingError:
        return None
    return variant_metrics(loop=loop, maps=maps, sizes=sizes, variant=variant)


def input_baselines(
    full: Mesh, specs: Sequence[LoopSpec], block_sizes: Sequence[int]
) -> dict[tuple[str, int], VariantMetrics | None]:
    """The figures of loops in the order of a mesh, by loop and block size.

    They are those of :func:`baseline`.
    """
    matrices = build_matrices(Numbering.of(full), specs)
    baselines = {}
    for spec, block_size in zip(specs, block_sizes, strict=True):
        # A loop that adds to a matrix reaches its nonzeros by one more map.
        maps, sizes = with_places(
            loop=spec.loop,
            maps=full.maps,
            sizes=full.sizes,
            matrices=matrices,
        )
        baselines[spec.loop.name, block_size] = baseline(
            loop=spec.loop,
            maps=maps,
            sizes=sizes,
            block_size=block_size,
        )
    return baselines


def baseline_variant(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    block_size: int,
) -> Variant:
    """The order as it is, cut into blocks of ``block_size`` elements."""
    return build_variant(
        loop=loop,
        maps=maps,
        sizes=sizes,
        block_offset=run_offset(sizes[loop.over], block_size),
        block_size=block_size,
        target="gpu",
        partitioner="contiguous",
    )
