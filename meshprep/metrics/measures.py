"""What a report shows of a variant: reuse, blocks, colours, bytes, and how blocks differ."""

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

from ..colour.thread_colours import thread_bound
from ..kernels.parallel import at_once
from ..loops.reach import indirect_dats, maps_by_place, maps_by_set, written_table
from .traffic import LAYOUTS, LINE_BYTES, SECTOR_BYTES, staged_units, traffic

# The lists of a dat, its components, and bytes of one.
StagedDat = tuple[Staging, int, int]


def measure(plan: LoopPlan, variant: Variant | None = None) -> VariantMetrics:
    """:func:`variant_metrics` of a variant of a loop plan, the default one unless given."""
    chosen = plan.variant() if variant is None else variant
    reached = with_places(plan.loop, plan.maps, plan.sizes, plan.matrices)
    return variant_metrics(plan.loop, *reached, chosen)


def variant_metrics(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], variant: Variant
) -> VariantMetrics:
    """The measures of one variant.

    ``maps`` are in the plan's numbering, with places in matrices as :func:`~.traffic.traffic` takes
    them.

    O(n x arity + loads x dats).
    """
    counts, sets = np.zeros(3, np.int64), dict[str, SetReuse]()
    for to_set, names in maps_by_set(loop, maps).items():
        staging = variant.staging[to_set]
        accesses = sum(maps[name].table.size for name in names)
        own = accesses, staging.points.size, int(np.count_nonzero(staging.exclusive))
        sets[to_set], counts = _reuse(*own), counts + own
    overall = _reuse(*counts.tolist())
    # matrices are not staged
    matrices = {matrix.name for matrix in loop.matrices}
    dats, staged = list[StagedDat](), np.zeros(variant.n_blocks, np.int64)
    for (name, to_set), (dim, itemsize) in indirect_dats(loop, maps).items():
        if name not in matrices:
            dats.append((variant.staging[to_set], dim, itemsize))
            staged += np.diff(variant.staging[to_set].point_offset) * (dim * itemsize)
    elements = np.diff(variant.block_offset)
    least = -(-int(elements.sum()) // variant.block_size)
    colour_sizes = np.diff(variant.block_colour_offset)
    by_place = maps_by_place({name: maps[name] for name in loop.maps}, variant.elements)
    # the longest of them first; the others are counted beside it
    moved, bound, useful, transfers, warps = at_once(
        lambda: {name: traffic(loop, maps, sizes, variant, layout=name) for name in LAYOUTS},
        lambda: thread_bound(*written_table(loop, by_place, sizes), variant.block_offset),
        lambda: useful_bytes(loop, maps, sizes),
        lambda: {name: _transfers(dats, variant.n_blocks, name) for name in LAYOUTS},
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
        block_elements=_spread(elements),
        staged_bytes=StagedBytes(*_mean_max(staged)),
        thread_colours=ThreadColourMetrics(*_mean_max(variant.thread_colours), _mean_max(bound)[0]),
        block_colours=variant.n_block_colours,
        block_colour_blocks=_spread(colour_sizes),
        block_colour_sizes=tuple(colour_sizes.tolist()),
        warp_efficiency=warps,
        histograms=histograms(variant, sum(maps[m].arity for m in loop.maps)),
        useful_bytes=useful,
        **transfers,
        traffic={name: SectorCounts(t.read, t.written) for name, t in moved.items()},
    )


def _reuse(accesses: int, loads: int, exclusive: int) -> SetReuse:
    if not loads:
        return SetReuse(accesses, loads, None, None)
    return SetReuse(accesses, loads, accesses / loads, exclusive / loads)


def _transfers(dats: Sequence[StagedDat], n_blocks: int, layout: str) -> MemoryUnits:
    """Lines and sectors a block."""
    found = []
    for nbytes in (LINE_BYTES, SECTOR_BYTES):
        count = np.zeros(n_blocks, np.int64)
        for staging, dim, itemsize in dats:
            width, arrays = (itemsize, dim) if layout == "soa" else (dim * itemsize, 1)
            count += arrays * staged_units(staging, width, nbytes)
        found.append(UnitCount(_mean_max(count)[0], int(count.sum())))
    return MemoryUnits(*found)


def _spread(values: NDArray[Any]) -> Spread:
    return Spread(int(values.min()), *_mean_max(values)) if values.size else Spread()


def _mean_max(values: NDArray[Any]) -> tuple[float | None, int | None]:
    """Mean and largest; None where there are no values."""
    return (float(values.mean()), int(values.max())) if values.size else (None, None)


REUSE_STEP = 0.01


def histograms(variant: Variant, columns: int) -> Histograms:
    """Blocks by reuse factor, staged points and thread colours.

    ``columns`` counts the entries that an element has in the loop's maps together.

    O(blocks).
    """
    elements = np.diff(variant.block_offset)
    staged = np.zeros(variant.n_blocks, np.int64)
    for staging in variant.staging.values():
        staged += np.diff(staging.point_offset)
    reuse = None
    if staged.any():
        steps = elements * columns / np.maximum(staged, 1) / REUSE_STEP
        reuse = _counted(np.floor(steps + 1e-9).astype(np.int64), REUSE_STEP)
    return Histograms(reuse, _counted(staged), _counted(variant.thread_colours))


def warp_efficiency(variant: Variant) -> WarpEfficiency:
    """The share of a warp's 32 lanes that work, over all that its warps do [S19]. O(n)."""
    n = int(variant.block_offset[-1])
    if not n:
        return WarpEfficiency()
    block_offset, colour = variant.block_offset, variant.thread_colour
    warps = -(-np.diff(block_offset) // WARP)
    starts = np.repeat(block_offset[:-1], warps) + WARP * ranges(0, warps)
    # the thread colours of every warp, summed
    count, rounds = int(colour.max()) + 1, 0
    # a bit for each of 8 colours, as there are at most as a rule, or of 64
    kind = np.uint8 if count <= 8 else np.uint64
    width = 8 * kind(0).itemsize
    for base in range(0, count, width):
        bits = np.left_shift(kind(1), (colour % width).astype(kind))
        if count > width:
            bits[colour // width != base // width] = 0
        rounds += int(np.bitwise_count(np.bitwise_or.reduceat(bits, starts)).sum())
    return WarpEfficiency(n / (WARP * starts.size), n / (WARP * rounds))


def _counted(bins: NDArray[np.integer], width: float = 1) -> Histogram:
    found, blocks = np.unique(bins, return_counts=True)
    return Histogram(width, tuple(found.tolist()), tuple(blocks.tolist()))
