"""A graph with weights, as the kernels take it."""

from typing import NamedTuple

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, kernel

# The sizes of vertices add up to so much for each vertex, where there are several columns.
SIZE = 16.0


class WeightedGraph(NamedTuple):
    """Vertices and edges with weights; each edge stands at both of its ends.

    The neighbours of vertex ``v`` are ``neighbour[offset[v]:offset[v + 1]]``.
    """

    offset: Int64s  # (n + 1,)
    neighbour: Int32s  # (m,)
    edge_weight: Int64s  # (m,): at least 1
    vertex_weight: Int64s  # (n, c): each column is balanced; at least 0
    size: Int64s  # (n,): stands for all columns where clusters grow; at least 1


def number_of_vertices(graph: WeightedGraph) -> int:
    """The number of vertices of a graph."""
    return int(graph.size.size)


def sizes_of_vertices(vertex_weight: Int64s) -> Int64s:
    """One number for each vertex that stands for its weights, at least 1."""
    n, n_columns = vertex_weight.shape
    if n_columns == 1:
        return np.maximum(vertex_weight[:, 0], 1)
    total = np.maximum(vertex_weight.sum(axis=0), 1)
    share: Float64s = vertex_weight / total
    return np.maximum((SIZE * n * share.sum(axis=1)).astype(np.int64), 1)


@kernel
def subgraph(graph: WeightedGraph, member: Int32s, local: Int32s) -> WeightedGraph:
    """The graph of some vertices, numbered in their sequence. O(their edges).

    ``local`` (n,) is -1 before and after.
    """
    n = member.size
    n_columns = graph.vertex_weight.shape[1]
    # Number the members, and count the entries that there may be.
    most = 0
    for i in range(n):
        v = member[i]
        local[v] = i
        most += graph.offset[v + 1] - graph.offset[v]
    offset = np.empty(n + 1, np.int64)
    neighbour = np.empty(most, np.int32)
    edge_weight = np.empty(most, np.int64)
    vertex_weight = np.empty((n, n_columns), np.int64)
    size = np.empty(n, np.int64)
    # Copy the members, and the edges between them.
    offset[0] = 0
    end = 0
    for i in range(n):
        v = member[i]
        size[i] = graph.size[v]
        for j in range(n_columns):
            vertex_weight[i, j] = graph.vertex_weight[v, j]
        for e in range(graph.offset[v], graph.offset[v + 1]):
            u = local[graph.neighbour[e]]
            if u >= 0:
                neighbour[end] = u
                edge_weight[end] = graph.edge_weight[e]
                end += 1
        offset[i + 1] = end
    # Leave the scratch as it was.
    for i in range(n):
        local[member[i]] = -1
    return WeightedGraph(
        offset=offset,
        neighbour=neighbour[:end],
        edge_weight=edge_weight[:end],
        vertex_weight=vertex_weight,
        size=size,
    )
