"""A graph with weights, as the kernels take it."""

from typing import NamedTuple

import numpy as np

from ...kernels import Float64s, Int32s, Int64s

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
