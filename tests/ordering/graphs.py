"""Small graphs and the obvious way to do things, for the tests of this folder."""

from typing import NamedTuple

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from meshprep.mesh.incidence import Csr
from meshprep.ordering import LocalityProblem, figures
from meshprep_runtime.types.maps import rows_of_entries


def graph(n, edges):
    """A symmetric graph without repeated neighbours, rows ascending; loops stay."""
    rows = [set() for _ in range(n)]
    for a, b in edges:
        rows[a].add(int(b))
        rows[b].add(int(a))
    offset = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Csr(offset, np.array([b for row in rows for b in sorted(row)], dtype=np.int32))


def neighbours(graph, i):
    return graph.index[graph.offset[i] : graph.offset[i + 1]].tolist()


def as_networkx(graph):
    out = nx.Graph()
    out.add_nodes_from(range(graph.n_rows))
    out.add_edges_from((i, j) for i in range(graph.n_rows) for j in neighbours(graph, i))
    return out


def grid(rows, columns):
    number = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], 1)
    return rows * columns, np.vstack([across, down])


def shuffled(n, edges, seed=0):
    number = np.random.default_rng(seed).permutation(n)
    return graph(n, number[np.asarray(edges)])


class Envelope(NamedTuple):
    """Bandwidth and profile of a numbering."""

    bandwidth: int
    profile: int

    @property
    def cost(self):
        return self.bandwidth * self.profile


def envelope(neighbours, old_to_new=None):
    """Those of the points of a map, by its table, or of the vertices of a graph."""
    if isinstance(neighbours, Csr):
        n = neighbours.n_rows
        table = np.stack([rows_of_entries(neighbours.offset), neighbours.index], axis=1)
    else:
        table, n = neighbours, int(neighbours.max(initial=-1)) + 1
    if not table.size:
        return Envelope(0, 0)
    n = n if old_to_new is None else old_to_new.size
    found = figures(LocalityProblem(table, n), old_to_new)
    return Envelope(found.bandwidth, found.profile)


def slow_envelope(graph, place=None):
    """Bandwidth and profile, neighbour by neighbour."""
    place = list(range(graph.n_rows)) if place is None else list(map(int, place))
    bandwidth = profile = 0
    for i in range(graph.n_rows):
        near = [place[j] for j in neighbours(graph, i)]
        bandwidth = max([bandwidth, *(abs(place[i] - j) for j in near)])
        profile += place[i] - min([place[i], *near])
    return bandwidth, profile


@st.composite
def edges_of(draw, max_n=40, max_edges=80):
    """A number of vertices and random edges, loops among them."""
    n = draw(st.integers(1, max_n))
    vertex = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(vertex, vertex), max_size=max_edges))


@st.composite
def tables(draw, max_rows=30, max_points=20, max_arity=5):
    """A map's table and the number of points it reaches."""
    n_points = draw(st.integers(1, max_points))
    n, arity = draw(st.integers(0, max_rows)), draw(st.integers(1, max_arity))
    seed = draw(st.integers(0, 2**32 - 1))
    table = np.random.default_rng(seed).integers(0, n_points, (n, arity))
    return table.astype(np.int32), n_points
