"""Parts of a graph with their loads, and moves of vertices between them."""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, helper, inlined
from .graph import WeightedGraph


class GraphParts(NamedTuple):
    """The part of each vertex, and what follows from it."""

    part: Int32s  # (n,)
    load: Int64s  # (k, c): weight of each part
    members: Int64s  # (k,): vertices of each part
    cap: Int64s  # (k, c)
    # Weight of the edges from a vertex to each part; 0 between two uses.
    joined: Int64s  # (k,)
    near: Int32s  # (k,): parts around a vertex


@helper
def parts_with_loads(graph: WeightedGraph, part: Int32s, cap: Int64s) -> GraphParts:
    """Count the loads of parts. O(n)."""
    k, n_columns = cap.shape
    load = np.zeros((k, n_columns), np.int64)
    members = np.zeros(k, np.int64)
    for v in range(part.size):
        p = part[v]
        members[p] += 1
        for j in range(n_columns):
            load[p, j] += graph.vertex_weight[v, j]
    return GraphParts(
        part=part,
        load=load,
        members=members,
        cap=cap,
        joined=np.zeros(k, np.int64),
        near=np.empty(k, np.int32),
    )


@inlined
def has_room(graph: WeightedGraph, parts: GraphParts, p: int, v: int) -> bool:
    """Whether a part can take a vertex without going over a cap."""
    for j in range(parts.cap.shape[1]):
        weight = graph.vertex_weight[v, j]
        # A part over a cap may still take what weighs nothing in that column.
        if weight > 0 and parts.load[p, j] + weight > parts.cap[p, j]:
            return False
    return True


@inlined
def is_over(parts: GraphParts, p: int) -> bool:
    """Whether a part is over a cap."""
    over = False
    for j in range(parts.cap.shape[1]):
        over = over or parts.load[p, j] > parts.cap[p, j]
    return over


@inlined
def free_room(parts: GraphParts, p: int) -> int:
    """The room of a part in the first column, which decides between equal targets."""
    return parts.cap[p, 0] - parts.load[p, 0]


@arrayless
def emptiest_part(graph: WeightedGraph, parts: GraphParts, v: int) -> int:
    """The part with the most room among those that can take a vertex, or -1. O(k)."""
    target = -1
    for p in range(parts.cap.shape[0]):
        if has_room(graph, parts, p, v) and (
            target < 0 or free_room(parts, p) > free_room(parts, target)
        ):
            target = p
    return target


@arrayless
def move(graph: WeightedGraph, parts: GraphParts, v: int, target: int) -> None:
    """Move a vertex to another part."""
    source = parts.part[v]
    parts.part[v] = target
    parts.members[source] -= 1
    parts.members[target] += 1
    for j in range(parts.cap.shape[1]):
        parts.load[source, j] -= graph.vertex_weight[v, j]
        parts.load[target, j] += graph.vertex_weight[v, j]


@arrayless
def best_move(graph: WeightedGraph, parts: GraphParts, v: int) -> tuple[int, int]:
    """The part with room to which a move of a vertex gains most, or -1; and the gain.

    Of equals the part with the most room is taken. The last vertex of a part stays.
    """
    source = parts.part[v]
    if parts.members[source] == 1:
        return -1, 0
    # Add up the weight of the edges to each part.
    n_near = 0
    inside = 0
    for e in range(graph.offset[v], graph.offset[v + 1]):
        p = parts.part[graph.neighbour[e]]
        weight = graph.edge_weight[e]
        if p == source:
            inside += weight
        else:
            if parts.joined[p] == 0:
                parts.near[n_near] = p
                n_near += 1
            parts.joined[p] += weight
    # Choose the target.
    target = -1
    most = 0
    for k in range(n_near):
        p = parts.near[k]
        weight = parts.joined[p]
        parts.joined[p] = 0
        if weight < most or not has_room(graph, parts, p, v):
            continue
        if weight > most or free_room(parts, p) > free_room(parts, target):
            target = p
            most = weight
    return target, most - inside


@arrayless
def excess_and_cut(graph: WeightedGraph, parts: GraphParts) -> tuple[int, int]:
    """How much parts are over their caps, and twice the weight of the edges cut."""
    excess = 0
    for p in range(parts.cap.shape[0]):
        for j in range(parts.cap.shape[1]):
            excess += max(0, parts.load[p, j] - parts.cap[p, j])
    cut = 0
    for v in range(parts.part.size):
        for e in range(graph.offset[v], graph.offset[v + 1]):
            if parts.part[graph.neighbour[e]] != parts.part[v]:
                cut += graph.edge_weight[e]
    return excess, cut
