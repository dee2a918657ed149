"""How blocks differ: histograms over the blocks of a variant, and how full its warps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.strategies import WARP
from meshprep_runtime.plan import Variant
from meshprep_runtime.plan.metrics import Histogram, Histograms, WarpEfficiency

REUSE_STEP = 0.01


def histograms(variant: Variant, columns: int) -> Histograms:
    """Blocks by reuse factor, staged points and thread colours.

    Parameters
    ----------
    columns : int
        Entries that an element has in the loop's maps together.

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
    warps, rounds = _warp_rounds(variant.block_offset, variant.thread_colour)
    return WarpEfficiency(n / (WARP * warps), n / (WARP * rounds))


def _counted(bins: NDArray[np.integer], width: float = 1) -> Histogram:
    found, blocks = np.unique(bins, return_counts=True)
    return Histogram(width, tuple(found.tolist()), tuple(blocks.tolist()))


def _warp_rounds(block_offset: NDArray[np.int64], colour: NDArray[Any]) -> tuple[int, int]:
    """Warps, and the thread colours of every warp summed."""
    warps = -(-np.diff(block_offset) // WARP)
    within = np.arange(warps.sum()) - np.repeat(np.cumsum(warps) - warps, warps)
    starts = np.repeat(block_offset[:-1], warps) + WARP * within
    count, rounds = int(colour.max()) + 1, 0
    # a bit for each of 8 colours, as there are at most as a rule, or of 64
    kind = np.uint8 if count <= 8 else np.uint64
    width = 8 * kind(0).itemsize
    for base in range(0, count, width):
        bits = np.left_shift(kind(1), (colour % width).astype(kind))
        if count > width:
            bits[colour // width != base // width] = 0
        rounds += int(np.bitwise_count(np.bitwise_or.reduceat(bits, starts)).sum())
    return starts.size, rounds
