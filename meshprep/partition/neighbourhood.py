"""The facet graph: elements are adjacent if they share the points of a facet.

The conflict graph of tetrahedra has 70 neighbours an element, that of cells with a facet in common
four. Nothing is known here of cells and facets: elements are neighbours when they share at least
``least`` points, and ``least`` is chosen on a sample so that an element has few of them: 3 for
tetrahedra, 2 for plane cells, 4 for hexahedra, 1 for faces and their cells.
"""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import read_only

from ..kernels import Float64s, Int32s, Int64s, helper, kernel
from ..kernels.arrays import first_not_below, scan_offsets
from ..kernels.parallel import in_pieces
from ..mesh.incidence import Csr, transpose

# Elements of the sample; the mean number of neighbours wanted.
SAMPLE = 2048
FEWEST, FEW, MANY = 1.5, 6.2, 16.0
# At points with more elements than this, and at all where an element would have MANY neighbours,
# elements are beside the nearest in their order alone.
HIGH_DEGREE = 128
NEAREST = 8
# Elements whose pairs are worth a second thread.
LEAST_SHARED = 1 << 14


def facet_graph(table: Int32s, n_points: int) -> Csr:
    """The neighbours of each element, which share most points with it.

    ``table`` has -1 where a row names a point again. The graph is symmetric, without loops or
    repeats. An element with no neighbour that shares enough has those that share most; one that
    shares no point has none. O(n * arity * elements at a point), which are at most 128 for each
    point.
    """
    n, table = table.shape[0], read_only(table)
    entries = transpose(table, n_points)
    shared = _histogram(table, entries.offset, entries.index, max(1, n // SAMPLE))
    mean = shared[:0:-1].cumsum()[::-1] / max(1, shared[0])
    least, window = _choose(mean)
    need = np.full(n, least, np.int32)
    graph = _graph(table, entries, need, window)
    alone = (graph.offset[1:] == graph.offset[:-1]).any()
    if alone and _lower_needs(table, entries.offset, entries.index, graph.offset, window, need):
        graph = _graph(table, entries, need, window)
    return graph


def _choose(mean: Float64s) -> tuple[int, int]:
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


def _graph(table: Int32s, entries: Csr, need: Int32s, window: int) -> Csr:
    """Neighbours are pairs that share as many points as one of them needs."""
    given = table, entries.offset, entries.index, need, window
    pairs = in_pieces(_pairs, len(table), *given, least=LEAST_SHARED)
    low, high = map(np.concatenate, zip(*pairs, strict=True))
    return Csr(*_rows_of_pairs(low, high, len(table)))


@kernel
def _rows_of_pairs(low: Int32s, high: Int32s, n: int) -> tuple[Int64s, Int32s]:
    """The neighbours of each element, from both sides of every pair."""
    offset = np.zeros(n + 1, np.int64)
    for k in range(low.size):
        offset[low[k] + 1] += 1
        offset[high[k] + 1] += 1
    scan_offsets(offset)
    fill, index = offset[:-1].copy(), np.empty(2 * low.size, np.int32)
    for k in range(low.size):
        i, j = low[k], high[k]
        index[fill[i]], index[fill[j]] = j, i
        fill[i] += 1
        fill[j] += 1
    return offset, index


@helper
def _count_shared(
    table: Int32s,
    offset: Int64s,
    entries: Int32s,
    element: int,
    window: int,
    count: NDArray[np.int16],
    met: Int32s,
) -> int:
    """List the elements at an element's points, itself too, with the points they share."""
    found = 0
    for j in range(table.shape[1]):
        p = table[element, j]
        if p < 0:
            continue
        low, high = offset[p], offset[p + 1]
        if window > 0 or high - low > HIGH_DEGREE:
            near = window if window > 0 else NEAREST
            at = first_not_below(entries, low, high, element)
            low, high = max(low, at - near), min(high, at + near + 1)
        for s in range(low, high):
            e = entries[s]
            met[found] = e
            found += count[e] == 0
            count[e] += 1
    return found


@kernel
def _histogram(table: Int32s, offset: Int64s, entries: Int32s, step: int) -> Int64s:
    """At ``k`` the pairs that share ``k`` points, of every ``step``-th element; at 0 these."""
    n, arity = table.shape
    pairs = np.zeros(arity + 1, np.int64)
    count, met = np.zeros(n, np.int16), np.empty(HIGH_DEGREE * arity + 1, np.int32)
    for i in range(0, n, step):
        found = _count_shared(table, offset, entries, i, 0, count, met)
        pairs[0] += 1
        for k in range(found):
            if met[k] != i:
                pairs[count[met[k]]] += 1
            count[met[k]] = 0
    return pairs


@kernel
def _pairs(
    table: Int32s, offset: Int64s, entries: Int32s, need: Int32s, window: int, begin: int, end: int
) -> tuple[Int32s, Int32s]:
    """The neighbours of the elements ``begin`` to ``end - 1`` that stand after them, as pairs."""
    n, arity = table.shape
    count, met = np.zeros(n, np.int16), np.empty(HIGH_DEGREE * arity + 1, np.uint32)
    ahead = offset.copy()
    for k in range(begin):
        for j in range(arity):
            if table[k, j] >= 0:
                ahead[table[k, j]] += 1
    low, high = _with_room(np.empty(0, np.int32), np.empty(0, np.int32), 0, 4 * (end - begin))
    used = 0
    for i in range(begin, end):
        found = 0
        for j in range(arity):
            p = table[i, j]
            if p < 0:
                continue
            first, last = ahead[p] + 1, offset[p + 1]
            ahead[p] = first
            if window > 0:
                last = min(last, first + window)
            elif last - offset[p] > HIGH_DEGREE:
                last = min(last, first + NEAREST)
            for s in range(np.uint32(first), np.uint32(last)):
                e = np.uint32(entries[s])
                met[found] = e
                found += count[e] == 0
                count[e] += 1
        if used + found > low.size:
            low, high = _with_room(low, high, used, 2 * (used + found))
        own = need[i]
        for k in range(found):
            e = met[k]
            low[used], high[used] = i, e
            used += count[e] >= min(own, need[e])
            count[e] = 0
    return low[:used], high[:used]


@helper
def _with_room(low: Int32s, high: Int32s, used: int, room: int) -> tuple[Int32s, Int32s]:
    """The first ``used`` pairs with room for ``room``."""
    new_low, new_high = np.empty(room + 64, np.int32), np.empty(room + 64, np.int32)
    for k in range(used):
        new_low[k], new_high[k] = low[k], high[k]
    return new_low, new_high


@kernel
def _lower_needs(
    table: Int32s, offset: Int64s, entries: Int32s, begin: Int64s, window: int, need: Int32s
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
            if met[k] != i:
                most = max(most, count[met[k]])
            count[met[k]] = 0
        if most > 0:
            need[i] = most
            lowered = True
    return lowered
