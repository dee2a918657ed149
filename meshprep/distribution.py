"""How blocks differ: histograms over the blocks of a variant, and how full its warps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from meshprep_runtime.plan import Variant

WARP = 32
MOST_BINS = 40


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
        each with ``edges`` (m + 1) and ``blocks`` (m): so many blocks lie in
        ``[edges[i], edges[i + 1])``. Bins are of one width, about 40 at most; those of whole
        numbers have whole numbers in their middle. O(blocks).
    """
    elements = np.diff(variant.block_offset)
    staged = np.zeros(variant.n_blocks, np.int64)
    for staging in variant.staging.values():
        staged += np.diff(staging.point_offset)
    found = {
        "staged_points": _whole(staged),
        "thread_colours": _whole(variant.thread_colours),
    }
    if staged.any():
        found = {"reuse": _real(elements * columns / np.maximum(staged, 1))} | found
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


def _whole(values: NDArray[np.integer]) -> dict[str, list[Any]]:
    """Bins around whole numbers, each of as many of them as keeps the bins few."""
    if not values.size:
        return {"edges": [], "blocks": []}
    low, high = int(values.min()), int(values.max())
    width = -(-(high - low + 1) // MOST_BINS)
    count = np.bincount((values - low) // width)
    edges = low - 0.5 + width * np.arange(count.size + 1)
    return {"edges": edges.tolist(), "blocks": count.tolist()}


def _real(values: NDArray[np.float64]) -> dict[str, list[Any]]:
    """Bins of 1, 2 or 5 times a power of ten."""
    if not values.size:
        return {"edges": [], "blocks": []}
    width = _round_width(float(values.max() - values.min()) / MOST_BINS)
    place = np.floor(values / width).astype(np.int64)
    first = int(place.min())
    count = np.bincount(place - first)
    edges = width * np.arange(first, first + count.size + 1)
    return {"edges": edges.round(12).tolist(), "blocks": count.tolist()}


def _round_width(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least ``least`` (or 0.01)."""
    least = max(least, 0.01)
    unit = 10.0 ** np.floor(np.log10(least))
    return float(next(m * unit for m in (1, 2, 5, 10) if m * unit >= least * (1 - 1e-12)))


@njit(cache=True)
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
