"""Coarsening: vertices grow into clusters, which are the vertices of a smaller graph."""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, helper, kernel
from .graph import WeightedGraph, number_of_vertices
from .random import shuffle

# Coarsening ends where a level has more than this share of the vertices of the one before.
LEAST_GAIN = 0.95


class Hierarchy(NamedTuple):
    """A graph and ever smaller ones of it.

    ``clusters[i]`` is the vertex of ``graphs[i + 1]`` that each vertex of ``graphs[i]`` is
    in.
    """

    graphs: list[WeightedGraph]
    clusters: list[Int32s]


def coarsened(
    graph: WeightedGraph, size: int, heaviest_cluster: float, seed: int
) -> Hierarchy:
    """Coarsen a graph to about ``size`` vertices, if its clusters can grow so far."""
    whole = int(graph.size.sum())
    heaviest_vertex = int(graph.size.max())
    graphs = [graph]
    clusters = list[Int32s]()
    n = number_of_vertices(graph)
    while n > size:
        # Bound the clusters by a share of the mean, so that coarse vertices stay alike.
        heaviest = max(heaviest_vertex, int(heaviest_cluster * whole / n))
        cluster, count = cluster_vertices(graphs[-1], heaviest, seed + len(graphs))
        if count > LEAST_GAIN * n:
            break
        graphs.append(contract(graphs[-1], cluster, count))
        clusters.append(cluster)
        n = count
    return Hierarchy(graphs, clusters)


@kernel
def cluster_vertices(graph: WeightedGraph, heaviest: int, seed: int) -> tuple[Int32s, int]:
    """The cluster of each vertex, and the number of clusters.

    In random order, vertices that are alone join the cluster around them of the highest
    rating, if its size stays within ``heaviest``. The rating is the square of the weight of
    the edges to it over its size [SS11, expansion*2]. A vertex that can join none, as the
    leaves of a star, is paired with another one that has the same heaviest neighbour.
    """
    n = graph.size.size
    leader = np.empty(n, np.int32)
    is_alone = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    # Weight of the edges from a vertex to each cluster; 0 between two uses.
    joined = np.empty(n, np.int64)
    near = np.empty(n, np.int32)
    # The vertex that waits for another one with this heaviest neighbour; the last entry is
    # of vertices without neighbours.
    waiting = np.empty(n + 1, np.int32)
    size = np.empty(n, np.int64)
    # Each vertex leads a cluster of its own.
    for i in range(n):
        leader[i] = i
        joined[i] = 0
        size[i] = graph.size[i]
        is_alone[i] = 1
        order[i] = i
        waiting[i] = -1
    waiting[n] = -1
    shuffle(order, n, seed)
    # Join the cluster of the highest rating; a vertex that is already joined by others
    # stays.
    for v in order:
        if is_alone[v] == 0:
            continue
        best, hub = best_cluster(graph, int(v), leader, size, heaviest, joined, near)
        if best < 0:
            # Pair the vertex with the one that waits at the same hub, or let it wait.
            best = int(waiting[hub])
            waiting[hub] = v
            if best >= 0 and (is_alone[best] == 0 or size[best] + size[v] > heaviest):
                best = -1
        if best >= 0:
            leader[v] = best
            size[best] += size[v]
            is_alone[v] = 0
            is_alone[best] = 0
    return numbered(leader)


@arrayless
def best_cluster(
    graph: WeightedGraph,
    v: int,
    leader: Int32s,
    size: Int64s,
    heaviest: int,
    joined: Int64s,
    near: Int32s,
) -> tuple[int, int]:
    """The cluster of the highest rating around a vertex, or -1; and its heaviest neighbour.

    The number of vertices stands for the neighbour of a vertex that has none.
    """
    # Add up the weight of the edges to each cluster.
    n_near = 0
    heaviest_neighbour = np.int64(size.size)
    most = 0
    for e in range(graph.offset[v], graph.offset[v + 1]):
        u = graph.neighbour[e]
        weight = graph.edge_weight[e]
        if weight > most:
            most = weight
            heaviest_neighbour = u
        c = leader[u]
        if joined[c] == 0:
            near[n_near] = c
            n_near += 1
        joined[c] += weight
    # Choose the cluster.
    best = -1
    best_rating = 0.0
    for k in range(n_near):
        c = near[k]
        tie = float(joined[c])
        joined[c] = 0
        rating = tie * tie / float(size[c])
        if c != v and rating > best_rating and size[c] + size[v] <= heaviest:
            best = c
            best_rating = rating
    return best, int(heaviest_neighbour)


@helper
def numbered(leader: Int32s) -> tuple[Int32s, int]:
    """The cluster of each vertex, numbered by their leaders; and the number of clusters."""
    count = 0
    cluster = np.empty(leader.size, np.int32)
    # Number the leaders first: a leader may stand behind its followers.
    for v in range(leader.size):
        if leader[v] == v:
            cluster[v] = count
            count += 1
    for v in range(leader.size):
        cluster[v] = cluster[leader[v]]
    return cluster, count


@kernel
def contract(graph: WeightedGraph, cluster: Int32s, count: int) -> WeightedGraph:
    """The graph of the clusters: parallel edges are added up, loops left out. O(edges).

    Vertices in the cluster -1 are left out.
    """
    n = cluster.size
    n_columns = graph.vertex_weight.shape[1]
    vertex_weight = np.empty((count, n_columns), np.int64)
    size = np.empty(count, np.int64)
    # Add up the weights, and link the members of each cluster.
    first = np.empty(count, np.int32)
    following = np.empty(n, np.int32)
    entry = np.empty(count, np.int64)
    for c in range(count):
        size[c] = 0
        for j in range(n_columns):
            vertex_weight[c, j] = 0
        first[c] = -1
        entry[c] = -1
    for v in range(n - 1, -1, -1):
        c = cluster[v]
        if c < 0:
            continue
        size[c] += graph.size[v]
        for j in range(n_columns):
            vertex_weight[c, j] += graph.vertex_weight[v, j]
        following[v] = first[c]
        first[c] = v
    # Add up the edges of each cluster to each other one.
    offset = np.empty(count + 1, np.int64)
    neighbour = np.empty(graph.neighbour.size, np.int32)
    edge_weight = np.empty(graph.neighbour.size, np.int64)
    offset[0] = 0
    end = 0
    for c in range(count):
        begin = end
        v = first[c]
        while v >= 0:
            for e in range(graph.offset[v], graph.offset[v + 1]):
                d = cluster[graph.neighbour[e]]
                if d == c or d < 0:
                    continue
                # Open an entry for a neighbouring cluster; entries below ``begin`` are
                # those of clusters before this one.
                if entry[d] < begin:
                    entry[d] = end
                    neighbour[end] = d
                    edge_weight[end] = 0
                    end += 1
                edge_weight[entry[d]] += graph.edge_weight[e]
            v = following[v]
        offset[c + 1] = end
    return WeightedGraph(
        offset=offset,
        neighbour=neighbour[:end],
        edge_weight=edge_weight[:end],
        vertex_weight=vertex_weight,
        size=size,
    )
