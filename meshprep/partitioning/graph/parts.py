"""Parts of a graph with their loads, and moves of vertices between them."""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, helper, inlined
from .graph import WeightedGraph


class GraphParts(NamedTuple):
    """The part of each vertex, and what follows from it.

    The parts around a vertex ``v``, its own among them, are the ``n_near[v]`` entries of
    ``near`` from ``offset[v]`` on: as many as it has neighbours, at most.
    """

    part: Int32s  # (n,)
    load: Int64s  # (k, c): weight of each part
    members: Int64s  # (k,): vertices of each part
    cap: Int64s  # (k, c)
    n_near: Int32s  # (n,)
    near: Int32s  # (m,): a part around a vertex
    tie: Int64s  # (m,): weight of the edges from the vertex to that part


@helper
def empty_parts(graph: WeightedGraph, part: Int32s, cap: Int64s) -> GraphParts:
    """Parts without loads, which :func:`add_vertices` adds."""
    n_entries = graph.neighbour.size
    return GraphParts(
        part=part,
        load=np.empty(cap.shape, np.int64),
        members=np.empty(cap.shape[0], np.int64),
        cap=cap,
        n_near=np.empty(part.size, np.int32),
        near=np.empty(n_entries, np.int32),
        tie=np.empty(n_entries, np.int64),
    )


@arrayless
def add_vertices(graph: WeightedGraph, parts: GraphParts) -> None:
    """Count the loads of parts, and find the parts around each vertex. O(edges)."""
    n_columns = parts.cap.shape[1]
    for p in range(parts.cap.shape[0]):
        parts.members[p] = 0
        for j in range(n_columns):
            parts.load[p, j] = 0
    for v in range(parts.part.size):
        p = parts.part[v]
        parts.members[p] += 1
        for j in range(n_columns):
            parts.load[p, j] += graph.vertex_weight[v, j]
        # Add up the weight of the edges to each part around the vertex.
        begin = graph.offset[v]
        end = begin
        for e in range(begin, graph.offset[v + 1]):
            q = parts.part[graph.neighbour[e]]
            i = begin
            while i < end and parts.near[i] != q:
                i += 1
            if i == end:
                parts.near[i] = q
                parts.tie[i] = 0
                end += 1
            parts.tie[i] += graph.edge_weight[e]
        parts.n_near[v] = end - begin


@inlined
def has_room(graph: WeightedGraph, parts: GraphParts, p: int, v: int) -> bool:
    """Whether a part can take a vertex without going over a cap."""
    for j in range(parts.cap.shape[1]):
        weight = graph.vertex_weight[v, j]
        # A part over a cap may still take what weighs nothing in that column.
        if weight > 0 and parts.load[p, j] + weight > parts.cap[p, j]:
            return False
    return True


@arrayless
def is_over(parts: GraphParts, p: int) -> bool:
    """Whether a part is over a cap."""
    over = False
    for j in range(parts.cap.shape[1]):
        over = over or parts.load[p, j] > parts.cap[p, j]
    return over


@arrayless
def relief(graph: WeightedGraph, parts: GraphParts, v: int, target: int) -> float:
    """How much less parts are over their caps once a vertex has moved to another part.

    Columns are made comparable by the cap of the first part. The target may get over a cap
    in one column, where its source comes closer to one in another: so vertices are
    exchanged in several moves.
    """
    source = parts.part[v]
    taken_off = 0.0
    for j in range(parts.cap.shape[1]):
        weight = graph.vertex_weight[v, j]
        over_source = max(0, parts.load[source, j] - parts.cap[source, j])
        over_target = max(0, parts.load[target, j] + weight - parts.cap[target, j])
        change = min(weight, over_source) - min(weight, over_target)
        taken_off += change / max(1, parts.cap[0, j])
    return taken_off


@arrayless
def emptiest_part(graph: WeightedGraph, parts: GraphParts, v: int) -> int:
    """The part with the most room among those where a vertex is a relief, or -1. O(k).

    The last vertex of a part stays.
    """
    source = parts.part[v]
    target = -1
    most = 0
    if parts.members[source] == 1 or not is_over(parts, source):
        return target
    for p in range(parts.cap.shape[0]):
        room = parts.cap[p, 0] - parts.load[p, 0]
        if (target < 0 or room > most) and relief(graph, parts, v, p) > 0:
            target = p
            most = room
    return target


@arrayless
def move(graph: WeightedGraph, parts: GraphParts, v: int, target: int) -> None:
    """Move a vertex to another part. O(its neighbours, and the parts around them)."""
    source = parts.part[v]
    parts.part[v] = target
    parts.members[source] -= 1
    parts.members[target] += 1
    for j in range(parts.cap.shape[1]):
        parts.load[source, j] -= graph.vertex_weight[v, j]
        parts.load[target, j] += graph.vertex_weight[v, j]
    for e in range(graph.offset[v], graph.offset[v + 1]):
        u = graph.neighbour[e]
        weight = graph.edge_weight[e]
        # Find both parts among those around the neighbour.
        begin = graph.offset[u]
        end = begin + parts.n_near[u]
        at_source = end
        at_target = end
        for i in range(begin, end):
            if parts.near[i] == source:
                at_source = i
            elif parts.near[i] == target:
                at_target = i
        # An edge that stands at one of its ends alone is not known here.
        if at_source == end:
            continue
        # Move the weight of the edge from one to the other.
        parts.tie[at_source] -= weight
        if at_target < end:
            parts.tie[at_target] += weight
            if parts.tie[at_source] == 0:
                parts.near[at_source] = parts.near[end - 1]
                parts.tie[at_source] = parts.tie[end - 1]
                parts.n_near[u] -= 1
        elif parts.tie[at_source] == 0:
            parts.near[at_source] = target
            parts.tie[at_source] = weight
        elif end < graph.offset[u + 1]:
            parts.near[end] = target
            parts.tie[end] = weight
            parts.n_near[u] += 1


@arrayless
def excess_and_cut(graph: WeightedGraph, parts: GraphParts) -> tuple[int, int]:
    """How much parts are over their caps, and twice the weight of the edges cut."""
    excess = 0
    for p in range(parts.cap.shape[0]):
        for j in range(parts.cap.shape[1]):
            excess += max(0, parts.load[p, j] - parts.cap[p, j])
    cut = 0
    for v in range(parts.part.size):
        begin = graph.offset[v]
        for i in range(begin, begin + parts.n_near[v]):
            if parts.near[i] != parts.part[v]:
                cut += parts.tie[i]
    return excess, cut
