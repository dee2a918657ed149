"""Bandwidth and profile of a numbering, without and with the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import read_only

from ..kernels import kernel
from ..kernels.arrays import numbers
from ..mesh.incidence import Csr


@dataclass(frozen=True)
class Envelope:
    """How far apart neighbours are numbered; the diagonal is not counted.

    Parameters
    ----------
    bandwidth : int
        Largest difference of two neighbours' numbers: 0 without neighbours, 1 for a chain in
        order, n - 1 at worst.
    profile : int
        Sum over the points of the distance back to the smallest neighbour's number, 0 where
        that is larger: 0 without neighbours, n - 1 for a chain in order, n (n - 1) / 2 at worst.
    """

    bandwidth: int
    profile: int

    @property
    def cost(self) -> int:
        """Bandwidth times profile: the figure by which orders are compared."""
        return self.bandwidth * self.profile


def envelope(
    neighbours: Csr | NDArray[np.int32], old_to_new: NDArray[np.int32] | None = None
) -> Envelope:
    """Measure a numbering of the points of a map, or of the vertices of a graph.

    Parameters
    ----------
    neighbours : Csr, or (n_from, arity) int32
        A symmetric graph, or a map's table: the points of one element are neighbours.
    old_to_new : (n_points,) int32 or None
        The numbering to measure; None for the present one.

    Notes
    -----
    O(n_from x arity) from a table, O(edges) from a graph; both give the same figures.
    """
    if isinstance(neighbours, Csr):
        n = neighbours.n_rows
        place = _numbers(n, old_to_new)
        return Envelope(*_of_graph(neighbours.offset, neighbours.index, place))
    if neighbours.size == 0:
        return Envelope(0, 0)
    place = _numbers(int(neighbours.max()) + 1, old_to_new)
    return Envelope(*_of_table(read_only(neighbours), read_only(place)))


def _numbers(n: int, old_to_new: NDArray[np.int32] | None) -> NDArray[np.int32]:
    return np.arange(n, dtype=np.int32) if old_to_new is None else old_to_new


@kernel
def _of_graph(offset: NDArray, index: NDArray, place: NDArray) -> tuple[int, int]:
    bandwidth, profile = 0, 0
    for i in range(offset.size - 1):
        low = high = place[i]
        for k in range(offset[i], offset[i + 1]):
            j = place[index[k]]
            low = min(low, j)
            high = max(high, j)
        bandwidth = max(bandwidth, high - place[i])
        profile += place[i] - low
    return bandwidth, profile


@kernel
def _of_table(table: NDArray, place: NDArray) -> tuple[int, int]:
    smallest = numbers(place.size)
    bandwidth, profile = 0, 0
    for i in range(table.shape[0]):
        low = high = place[table[i, 0]]
        for j in range(1, table.shape[1]):
            low = min(low, place[table[i, j]])
            high = max(high, place[table[i, j]])
        bandwidth = max(bandwidth, high - low)
        for j in range(table.shape[1]):
            p = place[table[i, j]]
            smallest[p] = min(smallest[p], low)
    for p in range(place.size):
        profile += p - smallest[p]
    return bandwidth, profile
