"""The facet graph of the elements: which share so many points that they lie side by side.

The conflict graph of tetrahedra has 70 neighbours an element, that of cells with a facet in common
four. Nothing is known here of cells and facets: elements are neighbours when they share at least
``least`` points, and ``least`` is chosen on a sample so that an element has few of them: 3 for
tetrahedra, 2 for plane cells, 4 for hexahedra, 1 for faces and their cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import helper, kernel
from ..kernels.parallel import each, pieces
from ..mesh.incidence import Csr, transpose

# Elements of the sample; the mean number of neighbours wanted.
SAMPLE = 2048
FEWEST, FEW, MANY = 1.5, 7.0, 16.0
# At points with more elements than this, and at all where an element would have MANY neighbours,
# elements are beside the nearest in their order alone.
HIGH_DEGREE = 128
NEAREST = 8


def facet_graph(table: NDArray[np.int32], n_points: int) -> Csr:
    """Each element's neighbours: those that share most points with it.

    Parameters
    ----------
    table : (n, arity) int32
        Points of the elements, with -1 where a row names a point again.
    n_points : int

    Returns
    -------
    Csr
        Symmetric, without loops or repeats. An element with no neighbour that shares enough has
        those that share most; one that shares no point has none.

    Notes
    -----
    O(n * arity * elements at a point), which are at most 128 for each point.
    """
    n = table.shape[0]
    offset, entries = _entries(table, n_points)
    shared = _histogram(table, offset, entries, max(1, n // SAMPLE))
    mean = shared[:0:-1].cumsum()[::-1] / max(1, shared[0])
    least, window = _choose(mean)
    need = np.full(n, least, np.int32)
    graph = _rows(table, offset, entries, need, window)
    if _lower_needs(table, offset, entries, graph.offset, window, need):
        graph = _rows(table, offset, entries, need, window)
    return graph


def _entries(table: NDArray[np.int32], n_points: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    known = table
    if table.size and table.min() < 0:
        known = np.where(table < 0, np.int32(n_points), table)
    touching = transpose(known, n_points + 1)
    return touching.offset, touching.index


def _choose(mean: NDArray[np.float64]) -> tuple[int, int]:
    """Points that neighbours share, and how near they stand at a point; 0 for any distance.

    ``mean[k]`` is the mean number of elements that share more than ``k`` points with one.
    """
    least = 1
    for k, count in enumerate(mean, start=1):
        if count < FEWEST:
            break
        least = k
        if count <= FEW:
            break
    many = bool(mean.size) and mean[least - 1] > MANY
    return least, max(1, NEAREST // mean.size) if many else 0


def _rows(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    entries: NDArray[np.int32],
    need: NDArray[np.int32],
    window: int,
) -> Csr:
    n = table.shape[0]
    tasks = [(table, offset, entries, need, window, *piece) for piece in pieces(n)]
    found = each(_neighbours, tasks)
    degree = np.concatenate([rows[0] for rows in found])
    begin = np.zeros(n + 1, np.int64)
    np.cumsum(degree, out=begin[1:])
    return Csr(begin, np.concatenate([rows[1] for rows in found]))


@helper
def _count_shared(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    entries: NDArray[np.int32],
    element: int,
    window: int,
    count: NDArray[np.int16],
    met: NDArray[np.int32],
) -> int:
    """List the elements at the points of one, and count the points that they share with it.

    ``count`` is 0 for all before, and stays so for the element itself.
    """
    found = 0
    for j in range(table.shape[1]):
        p = table[element, j]
        if p < 0:
            continue
        low, high = offset[p], offset[p + 1]
        if window > 0 or high - low > HIGH_DEGREE:
            near = window if window > 0 else NEAREST
            at = _place(entries, low, high, element)
            low, high = max(low, at - near), min(high, at + near + 1)
        for s in range(low, high):
            e = entries[s]
            if e == element:
                continue
            if count[e] == 0:
                if found == met.size:
                    continue
                met[found] = e
                found += 1
            count[e] += 1
    return found


@helper
def _place(entries: NDArray[np.int32], low: int, high: int, element: int) -> int:
    """Where an element stands in an ascending list that has it."""
    while high - low > 1:
        middle = (low + high) >> 1
        if entries[middle] <= element:
            low = middle
        else:
            high = middle
    return low


@kernel
def _histogram(
    table: NDArray[np.int32], offset: NDArray[np.int64], entries: NDArray[np.int32], step: int
) -> NDArray[np.int64]:
    """At ``k`` the pairs that share ``k`` points, of every ``step``-th element; at 0 these."""
    n, arity = table.shape
    pairs = np.zeros(arity + 1, np.int64)
    count, met = np.zeros(n, np.int16), np.empty(HIGH_DEGREE * arity + 1, np.int32)
    for i in range(0, n, step):
        found = _count_shared(table, offset, entries, i, 0, count, met)
        pairs[0] += 1
        for k in range(found):
            pairs[count[met[k]]] += 1
            count[met[k]] = 0
    return pairs


@kernel
def _neighbours(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    entries: NDArray[np.int32],
    need: NDArray[np.int32],
    window: int,
    begin: int,
    end: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How many neighbours the elements ``begin`` to ``end - 1`` have, and which."""
    n, arity = table.shape
    count, met = np.zeros(n, np.int16), np.empty(HIGH_DEGREE * arity + 1, np.int32)
    degree = np.zeros(end - begin, np.int32)
    out, used = np.empty((end - begin) * 6 + 64, np.int32), 0
    for i in range(begin, end):
        found = _count_shared(table, offset, entries, i, window, count, met)
        if used + found > out.size:
            longer = np.empty(2 * (used + found), np.int32)
            for k in range(used):
                longer[k] = out[k]
            out = longer
        for k in range(found):
            e = met[k]
            if count[e] >= min(need[i], need[e]):
                out[used] = e
                used += 1
                degree[i - begin] += 1
            count[e] = 0
    return degree, out[:used].copy()


@kernel
def _lower_needs(
    table: NDArray[np.int32],
    offset: NDArray[np.int64],
    entries: NDArray[np.int32],
    begin: NDArray[np.int64],
    window: int,
    need: NDArray[np.int32],
) -> bool:
    """Lower what elements without neighbours need to the most points that they share."""
    n, arity = table.shape
    count, met = np.zeros(n, np.int16), np.empty(HIGH_DEGREE * arity + 1, np.int32)
    lowered = False
    for i in range(n):
        if begin[i + 1] > begin[i]:
            continue
        found, most = _count_shared(table, offset, entries, i, window, count, met), 0
        for k in range(found):
            most = max(most, count[met[k]])
            count[met[k]] = 0
        if most > 0:
            need[i] = most
            lowered = True
    return lowered
