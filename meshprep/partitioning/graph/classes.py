"""Parts for several columns of weights that lie apart, as those of cells of several types.

Recursive bisection balances columns that are mixed everywhere. Where they lie apart, a part
in one piece holds too much of one: there the vertices are sorted into classes of similar
weights, each class is cut by itself, and the pieces are put together where most edges join
them.
"""

from collections.abc import Callable

import numpy as np

from ...kernels import Float64s, Int32s, Int64s
from .graph import WeightedGraph, number_of_vertices, sizes_of_vertices


def parts_by_class(
    graph: WeightedGraph,
    share: Float64s,
    classes: int,
    cut: Callable[[WeightedGraph], Int32s],
) -> Int32s:
    """The part of each vertex, by this many classes; one for each column at least.

    ``cut`` gives the part of each vertex of a graph with one column of weights. O(edges)
    for each class, beside the cuts.
    """
    n = number_of_vertices(graph)
    k = share.size
    part = np.full(n, -1, np.int32)
    class_of_vertex = _classes_by_weight(graph.vertex_weight, classes)
    exchangeable = bool((share == share[0]).all())
    # Begin with the largest class, which leaves the fewest edges to the others.
    vertices_of_class = np.bincount(class_of_vertex)
    for class_number in np.argsort(-vertices_of_class, kind="stable"):
        inside = np.flatnonzero(class_of_vertex == class_number)
        if not inside.size:
            continue
        piece = cut(_graph_of_class(graph, inside))
        if exchangeable and (part >= 0).any():
            piece = _part_of_piece(graph, inside, piece, part, k)[piece]
        part[inside] = piece
    return part


def _classes_by_weight(vertex_weight: Int64s, classes: int) -> Int64s:
    """The class of each vertex: its heaviest column, and how much that outweighs others."""
    n_columns = vertex_weight.shape[1]
    share: Float64s = vertex_weight / np.maximum(vertex_weight.sum(axis=0), 1)
    heaviest = np.argmax(share, axis=1)
    levels = -(-classes // n_columns)
    if levels == 1:
        return heaviest
    # How much of a vertex is in its heaviest column, from 1/c to 1, in equal steps.
    of_all = np.maximum(share.sum(axis=1), np.finfo(np.float64).tiny)
    outweighs = share.max(axis=1) / of_all
    least = 1 / n_columns
    step = (outweighs - least) / (1 - least) * levels
    level = np.clip(step.astype(np.int64), 0, levels - 1)
    return heaviest * levels + level


def _graph_of_class(graph: WeightedGraph, inside: Int64s) -> WeightedGraph:
    """The graph of some vertices, weighed by all columns together."""
    n = number_of_vertices(graph)
    number = np.full(n, -1, np.int32)
    number[inside] = np.arange(inside.size, dtype=np.int32)
    row = np.repeat(number, np.diff(graph.offset))
    column_of_edge = number[graph.neighbour]
    both_ends_inside = (row >= 0) & (column_of_edge >= 0)
    degree = np.bincount(row[both_ends_inside], minlength=inside.size)
    weight = sizes_of_vertices(graph.vertex_weight)[inside, None]
    return WeightedGraph(
        offset=np.concatenate([[0], np.cumsum(degree)]).astype(np.int64),
        neighbour=column_of_edge[both_ends_inside],
        edge_weight=graph.edge_weight[both_ends_inside],
        vertex_weight=weight,
        size=weight[:, 0].copy(),
    )


def _part_of_piece(
    graph: WeightedGraph, inside: Int64s, piece: Int32s, part: Int32s, k: int
) -> Int32s:
    """The part that each piece of a class joins: together they share the most edges."""
    from scipy.optimize import linear_sum_assignment

    piece_of_vertex = np.full(part.size, -1, np.int64)
    piece_of_vertex[inside] = piece
    first = np.repeat(piece_of_vertex, np.diff(graph.offset))
    other = part[graph.neighbour]
    meets = (first >= 0) & (other >= 0)
    shared = np.zeros((k, k))
    np.add.at(shared, (first[meets], other[meets]), graph.edge_weight[meets])
    _, joined = linear_sum_assignment(shared, maximize=True)
    return joined.astype(np.int32)
