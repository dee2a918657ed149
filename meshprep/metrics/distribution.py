"""How blocks differ: histograms over the blocks of a variant, and how full its warps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.strategies import WARP
from meshprep_runtime.plan import Variant

from ..kernels import kernel

REUSE_STEP = 0.01


def histograms(variant: Variant, columns: int) -> dict[str, Any]:
    """Blocks by reuse factor, staged points and thread colours, as JSON values.

    Parameters
    ----------
    variant : Variant
    columns : int
        Entries that an element has in the loop's maps together.

    Returns
    -------
    dict
        ``reuse`` (left out where nothing is indirect), ``staged_points`` and ``thread_colours``,
        each with ``width``, ``bins`` and ``blocks``: ``blocks[i]`` blocks lie from
        ``width * bins[i]`` to less than ``width * (bins[i] + 1)``. Empty bins are left out, the
        others ascend. Numbers that are whole have width 1. O(blocks).
    """
    elements = np.diff(variant.block_offset)
    staged = np.zeros(variant.n_blocks, np.int64)
    for staging in variant.staging.values():
        staged += np.diff(staging.point_offset)
    found = {"staged_points": _counted(staged), "thread_colours": _counted(variant.thread_colours)}
    if staged.any():
        reuse = elements * columns / np.maximum(staged, 1)
        steps = np.floor(reuse / REUSE_STEP + 1e-9).astype(np.int64)
        found = {"reuse": _counted(steps, REUSE_STEP)} | found
    return found


def warp_efficiency(variant: Variant) -> dict[str, float | None]:
    """The share of a warp's 32 lanes that work, over all that its warps do [S19].

    Returns
    -------
    dict
        ``computing``: with an element a lane, only the last warp of a block has idle lanes.
        ``increments``: a warp writes once for every thread colour among its elements, and only
        the lanes of that colour work; 1 at best, as good as ``computing`` where no elements of a
        warp differ in colour. None for a set without elements. O(n).
    """
    warps, rounds = _warp_rounds(variant.block_offset, variant.thread_colour)
    n = int(variant.block_offset[-1])
    return {
        "computing": n / (WARP * warps) if n else None,
        "increments": n / (WARP * rounds) if n else None,
    }


def _counted(bins: NDArray[np.integer], width: float = 1) -> dict[str, Any]:
    found, blocks = np.unique(bins, return_counts=True)
    return {"width": width, "bins": found.tolist(), "blocks": blocks.tolist()}


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
