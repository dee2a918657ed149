"""Neighbours in an order change places: a lower profile at no more bandwidth."""

from numpy.typing import NDArray

from ..kernels import helper


@helper
def sweep(graph: tuple, order: NDArray, begin: int, sweeps: int, scratch: NDArray) -> None:
    """Lower the profile of one component's order, in place, by exchanges of adjacent places.

    Sweeps go up and down by turns. In every other pair of them exchanges that change nothing are
    made too, which leads off plateaus; no exchange widens the bandwidth. ``order`` are the vertices
    of the component, ``begin`` to ``begin + size - 1``; ``scratch`` (2 or more, n) is overwritten
    in its range. O(sweeps x edges of the component): an exchange moves every lowest neighbour by at
    most one place, so that its gain is found by counting.
    """
    if order.size < 3:
        return
    (offset, index), place, low = graph, scratch[0], scratch[1]
    for i in range(order.size):
        place[order[i]] = i
    bandwidth = 0
    for p in range(begin, begin + order.size):
        low[p] = place[p]
        for k in range(offset[p], offset[p + 1]):
            low[p] = min(low[p], place[index[k]])
        bandwidth = max(bandwidth, place[p] - low[p])
    for s in range(sweeps):
        limit = 0 if s % 4 < 2 else -1
        for j in range(order.size - 1):
            i = j if s % 2 == 0 else order.size - 2 - j
            if _change(graph, (order, place, low), i, bandwidth) <= limit:
                _exchange(graph, (order, place, low), i)


@helper
def _change(graph: tuple, line: tuple, i: int, bandwidth: int) -> int:
    """What the profile gains or loses when places i and i + 1 are exchanged; 1 when too wide."""
    (offset, index), (order, place, low) = graph, line
    u, v = order[i], order[i + 1]
    if low[u] < i and i + 1 - low[u] > bandwidth:
        return 1
    # vertices behind the two whose lowest neighbour moves by one, and u and v themselves
    change = -1 if low[v] <= i else 0
    meet = False
    for k in range(offset[v], offset[v + 1]):
        q = index[k]
        meet |= q == u
        if place[q] > i + 1:
            if place[q] - i > bandwidth:
                return 1
            change += low[q] >= i
    for k in range(offset[u], offset[u + 1]):
        q = index[k]
        if place[q] > i + 1 and low[q] == i:
            change -= 1
    return change + (1 if low[u] < i or meet else 0)


@helper
def _exchange(graph: tuple, line: tuple, i: int) -> None:
    """Exchange places i and i + 1, and keep the lowest neighbours right."""
    (offset, index), (order, place, low) = graph, line
    u, v = order[i], order[i + 1]
    meet = False
    for k in range(offset[u], offset[u + 1]):
        q = index[k]
        meet |= q == v
        if place[q] > i + 1 and low[q] == i:
            low[q] = i + 1
    for k in range(offset[v], offset[v + 1]):
        q = index[k]
        if place[q] > i + 1:
            low[q] = min(low[q], i)
    if low[u] == i and not meet:
        low[u] = i + 1
    low[v] = min(low[v], i)
    order[i], order[i + 1], place[u], place[v] = v, u, i + 1, i
