"""Random things that the calls on arrays take, and slow versions of what they mean."""

from itertools import pairwise

import networkx
import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st


def tables(most_points=24, most_arity=4):
    """Tables of elements with distinct points in a row, and the number of points."""

    @st.composite
    def draw_table(draw):
        n_points = draw(st.integers(most_arity, most_points))
        arity = draw(st.integers(1, most_arity))
        row = st.permutations(range(n_points)).map(lambda p: p[:arity])
        rows = draw(st.lists(row, min_size=1, max_size=30))
        return np.array(rows), n_points

    return draw_table()


def ragged(most_points=20):
    """Rows of different lengths as (offset, index), and the number of points."""

    @st.composite
    def draw_rows(draw):
        n_points = draw(st.integers(3, most_points))
        row = st.lists(st.integers(0, n_points - 1), min_size=1, max_size=6, unique=True)
        rows = draw(st.lists(row, min_size=1, max_size=25))
        offset = np.cumsum([0, *map(len, rows)])
        return (offset, np.concatenate(rows)), n_points

    return draw_rows()


def graphs(most=30):
    """Graphs of networkx with loops and vertices without edges."""

    @st.composite
    def draw_graph(draw):
        n = draw(st.integers(1, most))
        ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
        graph = networkx.Graph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from(draw(st.lists(ends, max_size=3 * n)))
        return graph

    return draw_graph()


def rows_of(given):
    """The points of each element as sets, of a table or of (offset, index)."""
    if isinstance(given, tuple):
        offset, index = (np.asarray(a).tolist() for a in given)
        return [set(index[b:e]) for b, e in pairwise(offset)]
    return [set(row) for row in np.asarray(given).tolist()]


def forms_of_graph(graph):
    """The same graph in every form that is taken, as arguments."""
    n = len(graph)
    edges = np.array(list(graph.edges()), np.int64).reshape(-1, 2)
    both = np.concatenate([edges, edges[:, ::-1]])
    ones = np.ones(len(both))
    matrix = sp.coo_array((ones, tuple(both.T)), shape=(n, n))
    return {
        "networkx": {"given": graph},
        "csr": {"given": matrix.tocsr()},
        "coo": {"given": matrix},
        "spmatrix": {"given": sp.csr_matrix(matrix)},
        "edge_index": {"edge_index": edges.T, "n_points": n},
        "both ways": {"edge_index": both.T, "n_points": n},
        "pair": {"edge_index": (edges[:, 0], edges[:, 1]), "n_points": n},
        "lists": {"edge_index": edges.T.tolist(), "n_points": n},
    }
