"""The facet graph: neighbours share most points, whatever the cells are."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.io.generate import generate
from meshprep.partitioning import neighbourhood
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep.topology import derive


def slow_graph(table):
    """Pairs that share enough, from sets; what is enough is chosen as the module says."""
    rows = [{int(t) for t in row if t >= 0} for row in table]
    n = len(rows)
    shared = {(i, j): len(rows[i] & rows[j]) for i in range(n) for j in range(n) if i != j}
    least = 1
    for k in range(1, table.shape[1] + 1):
        mean = sum(count >= k for count in shared.values()) / max(1, n)
        if mean < 1.5:
            break
        least = k
        if mean <= 6.2:
            break
    need = []
    for i in range(n):
        most = max((shared[i, j] for j in range(n) if j != i), default=0)
        need.append(least if most >= least or most == 0 else most)
    lonely = any(k < least for k in need)
    need = need if lonely else [least] * n
    return [
        [j for j in range(n) if j != i and shared[i, j] >= min(need[i], need[j])]
        for i in range(n)
    ]


@settings(deadline=None, max_examples=effort.examples(80))
@given(data=st.data())
def test_neighbours_are_those_that_share_most_points(data, tables):
    table, n_points = data.draw(tables())
    rows = distinct_rows(table)
    graph = facet_graph(rows, n_points)
    found = [
        sorted(graph.index[a:b])
        for a, b in zip(graph.offset, graph.offset[1:], strict=False)
    ]
    expected = slow_graph(rows)
    mean = sum(map(len, expected)) / max(1, len(expected))
    if mean <= 16:
        assert found == expected
    assert all(i in found[j] for i, row in enumerate(found) for j in row)


@pytest.mark.parametrize(
    ("kind", "options", "loop", "inner"),
    [
        ("box", {"nx": 6, "ny": 6, "nz": 6, "type": "tetra"}, "cells->nodes", 4),
        ("box", {"nx": 6, "ny": 6, "nz": 6, "type": "hexahedron"}, "cells->nodes", 6),
        ("box", {"nx": 6, "ny": 6, "nz": 6, "type": "wedge"}, "cells->nodes", 5),
        ("box", {"nx": 9, "ny": 9, "nz": 0, "type": "triangle"}, "cells->nodes", 3),
        ("box", {"nx": 9, "ny": 9, "nz": 0, "type": "quad"}, "cells->nodes", 4),
        ("box", {"nx": 9, "ny": 9, "nz": 0, "type": "triangle"}, "edges->cells", 4),
        ("box", {"nx": 6, "ny": 6, "nz": 6, "type": "tetra"}, "faces->cells", 6),
        ("box", {"nx": 6, "ny": 6, "nz": 6, "type": "hexahedron"}, "faces->cells", 10),
    ],
)
def test_elements_of_a_mesh_are_beside_those_across_their_facets(
    kind, options, loop, inner
):
    mesh = derive(generate(kind, **options), [loop])
    found = mesh.map(loop)
    graph = facet_graph(found.table, mesh.size(found.to_set))
    assert np.diff(graph.offset).max() == inner


def test_edges_of_tetrahedra_are_beside_the_nearest_at_their_nodes():
    mesh = derive(generate("delaunay3d", cells=3000), ["edges->nodes"])
    graph = facet_graph(mesh.map("edges->nodes").table, mesh.size("nodes"))
    assert 4 < np.diff(graph.offset).mean() <= 16


def test_one_point_for_all_costs_no_square():
    table = np.stack([np.zeros(3000), np.arange(1, 3001)], axis=1).astype(np.int32)
    graph = facet_graph(table, 3001)
    assert np.diff(graph.offset).max() <= 2 * neighbourhood.NEAREST


def test_the_graph_does_not_depend_on_the_number_of_threads(quad_edges):
    table, n_points, _ = quad_edges(220, 200)
    threads, found = get_num_threads(), []
    for count in (threads, 1):
        set_num_threads(count)
        found.append(facet_graph(table, n_points))
    set_num_threads(threads)
    assert (found[0].index == found[1].index).all()
    assert (found[0].offset == found[1].offset).all()
