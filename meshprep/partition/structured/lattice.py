"""Where the elements of a structured mesh stand: whole-number positions, from their centroids.

The centroids of a mesh of straight lines have few distinct values along each axis. Cells stand on
all combinations of them. Edges and faces stand on some: one direction between two cells along x,
another along y; so do the two triangles of a split square. These elements share *sites*, each with
one element of every kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Values closer than this share of the axis, or of the longest axis, are one: coordinates read
# from text are rounded, and flat meshes are not quite flat.
SAME, SAME_OVERALL = 1e-7, 1e-10
# A lattice fills at least this share of its box; scattered centroids hardly fill any.
FILLED = 0.25


@dataclass(frozen=True, eq=False)
class Lattice:
    """Sites in whole numbers, and the elements on them.

    Parameters
    ----------
    position : (n, d) int32
        The site of every element, from 0 on in each part; d is 1 to 3.
    part : (n,) int32
        Parts do not touch, or meet where the lattice is broken; each has positions of its own.
    per_site : int
        The kinds of elements: a site has no more, but for a few where a lattice is broken.
    """

    position: NDArray[np.int32]
    part: NDArray[np.int32]
    per_site: int


def lattice_of_centroids(coordinates: NDArray[np.float64]) -> Lattice | None:
    """The lattice that centroids stand on, or None where they stand on none.

    Parameters
    ----------
    coordinates : (n, d) float64
        In any order. The lines may be spaced unevenly, but must be parallel to the axes.

    O(n log n).
    """
    limit = SAME_OVERALL * np.ptp(coordinates, axis=0).max()
    columns = [_ranks(axis, limit) for axis in coordinates.T]
    extent = [int(rank.max()) + 1 for rank in columns]
    kept = [i for i, count in enumerate(extent) if count > 1]
    if not 1 <= len(kept) <= 3 or np.prod([extent[i] for i in kept], dtype=float) > 2.0**62:
        return None
    fine = np.column_stack([columns[i] for i in kept])
    kinds = int(np.count_nonzero(np.bincount(_keys(fine % 2))))
    staggered = kinds < 2 ** len(kept)
    position = fine // 2 if staggered else fine
    least = FILLED * np.prod(position.max(axis=0) + 1.0)
    if len(fine) < least or _distinct(fine) < len(fine) or _distinct(position) < least:
        return None
    return Lattice(position, np.zeros(len(fine), np.int32), kinds if staggered else 1)


def _ranks(values: NDArray[np.float64], least: float) -> NDArray[np.int32]:
    """The rank of every value among the distinct ones, at least ``least`` apart."""
    order = np.argsort(values)
    ascending = values[order]
    limit = max(SAME * (ascending[-1] - ascending[0]), least)
    steps = np.concatenate([[0], np.cumsum(np.diff(ascending) > limit)])
    rank = np.empty(values.size, np.int32)
    rank[order] = steps
    return rank


def _distinct(position: NDArray[np.int32]) -> int:
    return 1 + int(np.count_nonzero(np.diff(np.sort(_keys(position)))))


def _keys(position: NDArray[np.int32]) -> NDArray[np.int64]:
    """One number for each position."""
    key = np.zeros(len(position), np.int64)
    for axis in position.T:
        key = key * (int(axis.max()) + 1) + axis
    return key
