"""Figures of a variant: reuse, blocks, colours, bytes, and how blocks differ."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.strategies import WARP
from meshprep_runtime.plan import LoopPlan, Staging, Variant
from meshprep_runtime.plan.matrices import with_places
from meshprep_runtime.plan.metrics import (
    Histogram,
    Histograms,
    MemoryUnits,
    SectorCounts,
    SetReuse,
    Spread,
    StagedBytes,
    ThreadColourMetrics,
    UnitCount,
    VariantMetrics,
    WarpEfficiency,
)
from meshprep_runtime.program.timings import useful_bytes
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, ranges

from ..colouring.thread_colours import thread_bound
from ..kernels.parallel import at_once
from ..loops.reach import indirect_dats, maps_by_place, maps_by_set, written_table
from .traffic import LAYOUTS, LINE_BYTES, SECTOR_BYTES, staged_units, traffic

# A dat that blocks stage: the staging lists, its components, and the bytes of a component.
StagedDat = tuple[Staging, int, int]


def measure(plan: LoopPlan, variant: Variant | None = None) -> VariantMetrics:
    """:func:`variant_metrics` of a variant of a loop plan, the default one unless given."""
    if variant is None:
        variant = plan.variant()
    maps, sizes = with_places(
        loop=plan.loop,
        maps=plan.maps,
        sizes=plan.sizes,
        matrices=plan.matrices,
    )
    return variant_metrics(plan.loop, maps, sizes, variant)


def variant_metrics(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    variant: Variant,
) -> VariantMetrics:
    """The measures of one variant.

    ``maps`` are in the plan's numbering, with places in matrices as
    :func:`~.traffic.traffic` takes them.

    O(n x arity + loads x dats).
    """
    # Count accesses, loads and exclusive loads: of each set, and of all together.
    counts = np.zeros(3, np.int64)
    sets = dict[str, SetReuse]()
    for to_set, names in maps_by_set(loop, maps).items():
        staging = variant.staging[to_set]
        accesses = sum(maps[name].table.size for name in names)
        exclusive = int(np.count_nonzero(staging.exclusive))
        sets[to_set] = _reuse_of_loads(accesses, staging.points.size, exclusive)
        counts += (accesses, staging.points.size, exclusive)
    overall = _reuse_of_loads(*counts.tolist())

    # Add up the bytes that each block stages; matrices are not staged.
    matrices = {matrix.name for matrix in loop.matrices}
    dats = list[StagedDat]()
    staged = np.zeros(variant.n_blocks, np.int64)
    for (name, to_set), (dim, itemsize) in indirect_dats(loop, maps).items():
        if name not in matrices:
            dats.append((variant.staging[to_set], dim, itemsize))
            n_points = np.diff(variant.staging[to_set].point_offset)
            staged += n_points * (dim * itemsize)

    # Elements of each block, the fewest blocks that could hold them, blocks of each colour.
    elements = np.diff(variant.block_offset)
    n_elements = int(elements.sum())
    least = -(-n_elements // variant.block_size)
    colour_sizes = np.diff(variant.block_colour_offset)
    by_place = maps_by_place({name: maps[name] for name in loop.maps}, variant.elements)

    # Count traffic, which takes longest, and all else beside it.
    moved, bound, useful, transfers, warps = at_once(
        lambda: {
            name: traffic(
                loop=loop,
                maps=maps,
                sizes=sizes,
                variant=variant,
                layout=name,
            )
            for name in LAYOUTS
        },
        lambda: thread_bound(*written_table(loop, by_place, sizes), variant.block_offset),
        lambda: useful_bytes(loop, maps, sizes),
        lambda: {name: _units_of_block(dats, variant.n_blocks, name) for name in LAYOUTS},
        lambda: warp_efficiency(variant),
    )
    return VariantMetrics(
        block_size=variant.block_size,
        target=variant.target,
        partitioner=variant.partitioner,
        sorted_by_colour=variant.sorted_by_colour,
        listed=True if variant.elements is not None else None,
        accesses=overall.accesses,
        loads=overall.loads,
        reuse=overall.reuse,
        exclusive_share=overall.exclusive_share,
        sets=sets,
        blocks=variant.n_blocks,
        least_blocks=least,
        blocks_over_least=variant.n_blocks / least if least else None,
        block_elements=_spread_of(elements),
        staged_bytes=StagedBytes(*_mean_max(staged)),
        thread_colours=ThreadColourMetrics(
            *_mean_max(variant.thread_colours), _mean_max(bound)[0]
        ),
        block_colours=variant.n_block_colours,
        block_colour_blocks=_spread_of(colour_sizes),
        block_colour_sizes=tuple(colour_sizes.tolist()),
        warp_efficiency=warps,
        histograms=histograms(variant, sum(maps[m].arity for m in loop.maps)),
        useful_bytes=useful,
        **transfers,
        traffic={name: SectorCounts(t.read, t.written) for name, t in moved.items()},
    )


def _reuse_of_loads(accesses: int, loads: int, exclusive: int) -> SetReuse:
    """Accesses, loads, and their ratio, the reuse factor [S19]; None without loads."""
    if not loads:
        return SetReuse(accesses=accesses, loads=loads, reuse=None, exclusive_share=None)
    return SetReuse(
        accesses=accesses,
        loads=loads,
        reuse=accesses / loads,
        exclusive_share=exclusive / loads,
    )


def _units_of_block(dats: Sequence[StagedDat], n_blocks: int, layout: str) -> MemoryUnits:
    """Lines and sectors under the staged values: mean of a block, and all together."""
    counts = []
    for nbytes in (LINE_BYTES, SECTOR_BYTES):
        count = np.zeros(n_blocks, np.int64)
        for staging, dim, itemsize in dats:
            # As a structure of arrays, each component is an array of its own.
            if layout == "soa":
                width = itemsize
                arrays = dim
            else:
                width = dim * itemsize
                arrays = 1
            count += arrays * staged_units(staging, width, nbytes)
        mean, _ = _mean_max(count)
        counts.append(UnitCount(mean, int(count.sum())))
    return MemoryUnits(*counts)


def _spread_of(values: NDArray[Any]) -> Spread:
    """Least, mean and largest."""
    if values.size:
        return Spread(int(values.min()), *_mean_max(values))
    return Spread()


def _mean_max(values: NDArray[Any]) -> tuple[float | None, int | None]:
    """Mean and largest; None where there are no values."""
    if values.size:
        return (float(values.mean()), int(values.max()))
    return (None, None)


# Bins of reuse factors in a histogram have this width.
REUSE_STEP = 0.01


def histograms(variant: Variant, columns: int) -> Histograms:
    """Blocks by reuse factor, staged points and thread colours.

    ``columns`` counts the entries that an element has in the loop's maps together.

    O(blocks).
    """
    # Accesses and loads of each block.
    accesses = np.diff(variant.block_offset) * columns
    loads = np.zeros(variant.n_blocks, np.int64)
    for staging in variant.staging.values():
        loads += np.diff(staging.point_offset)
    reuse = None
    if loads.any():
        # In bins of REUSE_STEP; 1e-9 of a bin keeps whole ones in their own.
        steps = accesses / np.maximum(loads, 1) / REUSE_STEP
        reuse = _counted(np.floor(steps + 1e-9).astype(np.int64), REUSE_STEP)
    return Histograms(reuse, _counted(loads), _counted(variant.thread_colours))


def warp_efficiency(variant: Variant) -> WarpEfficiency:
    """The share of the 32 lanes of warps that work: in kernels, and in coloured sums [S19].

    O(n).
    """
    n = int(variant.block_offset[-1])
    if not n:
        return WarpEfficiency()
    # Where each warp begins: every 32 elements of a block, the last one of it with fewer.
    block_offset = variant.block_offset
    colour = variant.thread_colour
    warps = -(-np.diff(block_offset) // WARP)
    starts = np.repeat(block_offset[:-1], warps) + WARP * ranges(0, warps)
    # Count the thread colours of every warp: a bit for each of 8 colours, which as a rule
    # are enough, or of 64 in turn.
    count = int(colour.max()) + 1
    rounds = 0
    kind: type[np.uint8 | np.uint64] = np.uint64
    if count <= 8:
        kind = np.uint8
    width = 8 * kind(0).itemsize
    for base in range(0, count, width):
        bits = np.left_shift(kind(1), (colour % width).astype(kind))
        if count > width:
            bits[colour // width != base // width] = 0
        colours_of_warp = np.bitwise_or.reduceat(bits, starts)
        rounds += int(np.bitwise_count(colours_of_warp).sum())
    # A kernel is one round of each warp, a coloured sum a round for each of its colours.
    return WarpEfficiency(n / (WARP * starts.size), n / (WARP * rounds))


def _counted(bins: NDArray[np.integer], width: float = 1) -> Histogram:
    """The histogram of blocks by their bins."""
    used, blocks = np.unique(bins, return_counts=True)
    return Histogram(width, tuple(used.tolist()), tuple(blocks.tolist()))
