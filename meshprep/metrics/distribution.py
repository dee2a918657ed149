"""How blocks differ: histograms over the blocks of a variant, and how full its warps are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.strategies import WARP
from meshprep_runtime.plan import Variant
from meshprep_runtime.plan.metrics import Histogram, Histograms, WarpEfficiency

from ..kernels import kernel

REUSE_STEP = 0.01


def histograms(variant: Variant, columns: int) -> Histograms:
    """Blocks by reuse factor, staged points and thread colours.

    Parameters
    ----------
    variant : Variant
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
    warps, rounds = _warp_rounds(variant.block_offset, variant.thread_colour)
    n = int(variant.block_offset[-1])
    return WarpEfficiency(n / (WARP * warps), n / (WARP * rounds)) if n else WarpEfficiency()


def _counted(bins: NDArray[np.integer], width: float = 1) -> Histogram:
    found, blocks = np.unique(bins, return_counts=True)
    return Histogram(width, tuple(found.tolist()), tuple(blocks.tolist()))


@kernel
def _warp_rounds(block_offset: NDArray[np.int64], colour: NDArray[np.integer]) -> tuple[int, int]:
    """Warps, and the thread colours of every warp summed."""
    warps, rounds = 0, 0
    last_seen = np.full(65536, -1, np.int64)
    for b in range(block_offset.size - 1):
        for start in range(block_offset[b], block_offset[b + 1], WARP):
            for e in range(start, min(start + WARP, block_offset[b + 1])):
                if last_seen[colour[e]] != warps:
                    last_seen[colour[e]] = warps
                    rounds += 1
            warps += 1
    return warps, rounds
