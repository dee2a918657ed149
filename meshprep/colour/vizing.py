"""Edge colouring within the bound plus one, for elements that write two points.

Such elements are the edges of a graph whose vertices are the points. Vizing's theorem: with as
many colours as the fullest point has elements, plus the largest number of elements on the same
two points (one, on a mesh), every edge can be coloured. The proof is the algorithm: a fan of
edges around one end of the edge passes its colours on, after at most one alternating path is
swapped (Misra and Gries 1992; with parallel edges, the multi-fans of Stiebitz, Scheide, Toft and
Favrholdt, Graph Edge Coloring, 2012).
"""

from typing import NamedTuple

import numpy as np

from ..kernels import Int32s, helper
from ..kernels.arrays import largest
from ..mesh.blockwise import elements_of_points


class Graph(NamedTuple):
    """The edges, the edges at each vertex, and what the search marks."""

    ends: Int32s
    offset: Int32s
    edge: Int32s
    colour: Int32s
    in_fan: Int32s  # the last edge that had each vertex in its fan
    fan: Int32s  # rows: vertex, edge to it, place in the fan of who passes it on
    path: Int32s


@helper
def recolour_edges(local: Int32s, colour: Int32s, palette: int) -> None:
    """Give every element of a colour from ``palette`` on a colour below it.

    ``local`` are the points of the block's elements; one that names a point twice is at that point
    only. ``colour`` is changed in place, and proper before and after. ``palette`` is at least the
    bound: with the bound plus :func:`multiplicity` every element is recoloured, with less some may
    keep their colours. O(elements recoloured x (fullest point x palette + m)); memory O(m +
    palette).
    """
    graph = _graph(local, colour)
    for e in range(colour.size):
        if colour[e] >= palette:
            kept = colour[e]
            colour[e] = -1
            if not _insert(graph, e, palette):
                colour[e] = kept


@helper
def multiplicity(local: Int32s, n_points: int) -> int:
    """The largest number of a block's elements on the same two points. O(m)."""
    ends = local.copy()
    for e in range(len(ends)):
        if ends[e, 0] > ends[e, 1]:
            ends[e, 0], ends[e, 1] = local[e, 1], local[e, 0]
    offset, element = elements_of_points(ends[:, :1], n_points)
    last, count = np.full(n_points, -1, np.int32), np.zeros(n_points, np.int32)
    most = 0
    for p in range(n_points):
        for e in element[offset[p] : offset[p + 1]]:
            other = ends[e, 1]
            if last[other] != p:
                last[other] = p
                count[other] = 0
            count[other] += other != p
            most = max(most, count[other])
    return max(most, 1)


@helper
def _graph(local: Int32s, colour: Int32s) -> Graph:
    ends = local.copy()
    n_vertices = largest(ends.ravel()) + 1
    for e in range(len(ends)):
        # An element on one point ends in a vertex of its own.
        if ends[e, 0] == ends[e, 1]:
            ends[e, 1] = n_vertices
            n_vertices += 1
    offset, edge = elements_of_points(ends, n_vertices)
    in_fan = np.full(n_vertices, -1, np.int32)
    fan, path = np.empty((3, n_vertices), np.int32), np.empty(colour.size, np.int32)
    return Graph(ends, offset, edge, colour, in_fan, fan, path)


@helper
def _insert(g: Graph, e: int, palette: int) -> bool:
    """Colour ``e`` by a fan around its first end; False where the fan does not suffice."""
    x = g.ends[e, 0]
    at_x = np.full(palette, -1, np.int32)
    for f in g.edge[g.offset[x] : g.offset[x + 1]]:
        if 0 <= g.colour[f] < palette:
            at_x[g.colour[f]] = f
    holder = np.full(palette, -1, np.int32)
    used = np.full(palette, -1, np.int32)
    n = _append(g, e, x, -1, e, 0)
    i = 0
    while i < n:
        v = g.fan[0, i]
        for f in g.edge[g.offset[v] : g.offset[v + 1]]:
            if 0 <= g.colour[f] < palette:
                used[g.colour[f]] = i
        for c in range(palette):
            if used[c] == i:
                continue
            if at_x[c] < 0:
                _rotate(g, i, c)
                return True
            if holder[c] >= 0:
                _swap_and_rotate(g, x, holder[c], i, c, _place_of_smallest(at_x))
                return True
            holder[c] = i
            n = _append(g, at_x[c], x, i, e, n)
        i += 1
    return False


@helper
def _place_of_smallest(values: Int32s) -> int:
    """The first place of the smallest; numba's argmin brings scipy along, a third of a second."""
    found = 0
    for i in range(1, values.size):
        if values[i] < values[found]:
            found = i
    return found


@helper
def _append(g: Graph, f: int, x: int, passed_by: int, e: int, n: int) -> int:
    """Add the other end of ``f`` to the fan of ``e``, unless it is there; returns its length."""
    v = g.ends[f, 0] + g.ends[f, 1] - x
    if g.in_fan[v] == e:
        return n
    g.in_fan[v] = e
    g.fan[0, n] = v
    g.fan[1, n] = f
    g.fan[2, n] = passed_by
    return n + 1


@helper
def _rotate(g: Graph, i: int, colour: int) -> None:
    """Colour the edge at place ``i`` of the fan; each passes its old colour on, down to e."""
    while i >= 0:
        f = g.fan[1, i]
        colour, g.colour[f] = g.colour[f], colour
        i = g.fan[2, i]


@helper
def _swap_and_rotate(g: Graph, x: int, first: int, second: int, c: int, free: int) -> None:
    """Two places of the fan lack colour ``c``: make one of them lack ``free``, as x does."""
    place = first
    length, end = _trace(g, g.fan[0, first], free, c)
    # The path that starts at x ends at one of the two at most.
    if end == x:
        place = second
        length, end = _trace(g, g.fan[0, second], free, c)
    for k in range(length):
        g.colour[g.path[k]] = free + c - g.colour[g.path[k]]
    _rotate(g, place, free)


@helper
def _trace(g: Graph, v: int, colour: int, other: int) -> tuple[int, int]:
    """The path from ``v`` of edges of the two colours in turn: its length and its last vertex."""
    length = 0
    f = _edge_of(g, v, colour)
    while f >= 0:
        g.path[length] = f
        length += 1
        v = g.ends[f, 0] + g.ends[f, 1] - v
        colour, other = other, colour
        f = _edge_of(g, v, colour)
    return length, v


@helper
def _edge_of(g: Graph, v: int, colour: int) -> int:
    for f in g.edge[g.offset[v] : g.offset[v + 1]]:
        if g.colour[f] == colour:
            return f
    return -1
