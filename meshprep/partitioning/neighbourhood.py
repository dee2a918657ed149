"""The facet graph: elements are adjacent if they share the points of a facet.

A tetrahedron has 70 neighbours in the conflict graph, and four in the facet graph. Cells
and facets are not known here, only points: elements are neighbours when they share at least
``least`` points, and ``least`` is chosen on a sample so that an element has few neighbours:
3 for tetrahedra, 2 for plane cells, 4 for hexahedra, 1 for faces and their cells.
"""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import read_only

from ..kernels import Float64s, Int32s, Int64s, helper, kernel
from ..kernels.arrays import ZERO, first_not_below, scan_offsets
from ..kernels.parallel import in_pieces
from ..mesh.incidence import Csr, transpose

# Elements of the sample on which ``least`` is chosen.
SAMPLE = 2048
# Mean neighbours of an element: no choice of ``least`` may leave fewer,
FEWEST = 1.5
# the first choice with at most this many is taken,
FEW = 6.2
# and with more than this many, only the nearest in the order of the elements count.
MANY = 16.0
# At points with more elements than this, too, only the nearest in the order count.
HIGH_DEGREE = 128
# Elements on either side that are the nearest.
NEAREST = 8
# Elements whose pairs are worth a second thread.
LEAST_SHARED = 1 << 14


def facet_graph(table: Int32s, n_points: int) -> Csr:
    """The facet graph: for each element the elements that share most points with it.

    ``table`` has -1 where a row names a point again. The graph is symmetric, without loops
    or repeats. An element with no neighbour that shares enough has those that share most;
    one that shares no point has none. O(n * arity * elements at a point), which are at most
    128 for each point.
    """
    # Choose, on a sample, how many points neighbours share: mean[k] elements share more
    # than k points with one.
    n = table.shape[0]
    table = read_only(table)
    entries = transpose(table, n_points)
    shared = _histogram(
        table=table, offset=entries.offset, entries=entries.index, step=max(1, n // SAMPLE)
    )
    mean = shared[:0:-1].cumsum()[::-1] / max(1, shared[0])
    least, window = _choose(mean)
    # Find the pairs; where elements are left alone, once more with a lower need of theirs.
    need = np.full(n, least, np.int32)
    graph = _graph_of_pairs(table=table, entries=entries, need=need, window=window)
    alone = (graph.offset[1:] == graph.offset[:-1]).any()
    if alone and _lower_needs(
        table=table,
        offset=entries.offset,
        entries=entries.index,
        begin=graph.offset,
        window=window,
        need=need,
    ):
        graph = _graph_of_pairs(table=table, entries=entries, need=need, window=window)
    return graph


def _choose(mean: Float64s) -> tuple[int, int]:
    """The least points that neighbours share, and the window of the nearest; 0 for none.

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


def _graph_of_pairs(table: Int32s, entries: Csr, need: Int32s, window: int) -> Csr:
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
    fill = offset[:-1].copy()
    index = np.empty(2 * low.size, np.int32)
    for k in range(low.size):
        i = low[k]
        j = high[k]
        index[fill[i]] = j
        index[fill[j]] = i
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
    """List the elements at an element's points in ``met``, itself included.

    ``count`` receives the number of points that each shares with it. Returns the length of
    the list.
    """
    n_met = 0
    for j in range(table.shape[1]):
        p = table[element, j]
        if p < 0:
            continue
        low = offset[p]
        high = offset[p + 1]
        # At a point with many elements, take only the nearest in their order.
        if window > 0 or high - low > HIGH_DEGREE:
            near = window if window > 0 else NEAREST
            at = first_not_below(values=entries, begin=low, end=high, value=element)
            low = max(low, at - near)
            high = min(high, at + near + 1)
        for s in range(low, high):
            e = entries[s]
            met[n_met] = e
            n_met += count[e] == 0
            count[e] += 1
    return n_met


@kernel
def _histogram(table: Int32s, offset: Int64s, entries: Int32s, step: int) -> Int64s:
    """Pairs of elements by the number of points they share, for every ``step``-th element.

    Entry 0 is the number of these elements.
    """
    n, arity = table.shape
    pairs = np.zeros(arity + 1, np.int64)
    count = np.zeros(n, np.int16)
    met = np.empty(HIGH_DEGREE * arity + 1, np.int32)
    for i in range(0, n, step):
        n_met = _count_shared(
            table=table,
            offset=offset,
            entries=entries,
            element=i,
            window=0,
            count=count,
            met=met,
        )
        pairs[0] += 1
        for k in range(n_met):
            if met[k] != i:
                pairs[count[met[k]]] += 1
            count[met[k]] = 0
    return pairs


@kernel
def _pairs(
    table: Int32s,
    offset: Int64s,
    entries: Int32s,
    need: Int32s,
    window: int,
    begin: int,
    end: int,
) -> tuple[Int32s, Int32s]:
    """Pairs of neighbours whose lower element is one of ``begin`` to ``end - 1``."""
    # Where the elements of each point that are not below ``begin`` stand.
    n, arity = table.shape
    count = np.zeros(n, np.int16)
    met = np.empty(HIGH_DEGREE * arity + 1, np.uint32)
    ahead = offset.copy()
    for k in range(begin):
        for j in range(arity):
            if table[k, j] >= 0:
                ahead[table[k, j]] += 1
    low, high = _with_room(
        low=np.empty(0, np.int32),
        high=np.empty(0, np.int32),
        used=ZERO,
        room=4 * (end - begin),
    )
    used = ZERO
    for i in range(begin, end):
        # Count the points shared with each element of higher number.
        n_met = 0
        for j in range(arity):
            p = table[i, j]
            if p < 0:
                continue
            first = ahead[p] + 1
            last = offset[p + 1]
            ahead[p] = first
            if window > 0:
                last = min(last, first + window)
            elif last - offset[p] > HIGH_DEGREE:
                last = min(last, first + NEAREST)
            for s in range(np.uint32(first), np.uint32(last)):
                e = np.uint32(entries[s])
                met[n_met] = e
                n_met += count[e] == 0
                count[e] += 1
        if used + n_met > low.size:
            low, high = _with_room(low=low, high=high, used=used, room=2 * (used + n_met))
        # Keep the pairs that share enough; the others are overwritten.
        own_need = need[i]
        for k in range(n_met):
            e = met[k]
            low[used] = i
            high[used] = e
            used += count[e] >= min(own_need, need[e])
            count[e] = 0
    return low[:used], high[:used]


@helper
def _with_room(low: Int32s, high: Int32s, used: int, room: int) -> tuple[Int32s, Int32s]:
    """The first ``used`` pairs, copied into arrays with room for ``room``."""
    new_low = np.empty(room + 64, np.int32)
    new_high = np.empty(room + 64, np.int32)
    for k in range(used):
        new_low[k] = low[k]
        new_high[k] = high[k]
    return new_low, new_high


@kernel
def _lower_needs(
    table: Int32s, offset: Int64s, entries: Int32s, begin: Int64s, window: int, need: Int32s
) -> bool:
    """Lower the need of elements without neighbours to the most points that they share.

    Returns whether any was lowered.
    """
    n, arity = table.shape
    count = np.zeros(n, np.int16)
    met = np.empty(HIGH_DEGREE * arity + 1, np.int32)
    lowered = False
    for i in range(n):
        if begin[i + 1] > begin[i]:
            continue
        # An element without neighbours: it needs what it shares with the nearest.
        n_met = _count_shared(
            table=table,
            offset=offset,
            entries=entries,
            element=i,
            window=window,
            count=count,
            met=met,
        )
        most = 0
        for k in range(n_met):
            if met[k] != i:
                most = max(most, count[met[k]])
            count[met[k]] = 0
        if most > 0:
            need[i] = most
            lowered = True
    return lowered
