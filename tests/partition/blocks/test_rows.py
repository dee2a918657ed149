import numpy as np
import pytest

from meshprep.colour import colour_threads
from meshprep.io.generate import generate
from meshprep.mesh.geometry import centroids
from meshprep.partition import BlockProblem, partition
from meshprep.partition.blocks.rows import rows
from meshprep.partition.neighbourhood import facet_graph
from meshprep.topology import derive


def mesh_with(kind, loop, **values):
    """A shuffled mesh, the map of a loop over its edges or faces, and the size of the to-set."""
    mesh = derive(generate(kind, seed=3, shuffle=True, **values), [loop, "edges->nodes"])
    return mesh, mesh.map(loop).table, mesh.size(loop.partition("->")[2])


def pairs_of(table, n_points):
    """The pairs of elements that :func:`rows` finds."""
    found = rows(table, facet_graph(table, n_points), n_points)
    if found is None:
        return None
    count, ahead = found
    return set(zip(np.repeat(np.arange(len(table)), count).tolist(), ahead.tolist(), strict=True))


def test_rows_of_edges_between_quads_lie_side_by_side():
    mesh, table, n_points = mesh_with("box", "edges->cells", nx=7, ny=9, type="quad")
    nodes = mesh.map("edges->nodes").table
    wanted = {
        (i, j)
        for i in range(len(table))
        for j in range(len(table))
        if set(table[i]) & set(table[j]) and not set(nodes[i]) & set(nodes[j])
        if {*table[i]} != {*table[j]}
    }
    assert pairs_of(table, n_points) == wanted


def test_rows_of_edges_between_nodes_of_a_grid_are_its_lines():
    mesh, table, n_points = mesh_with("box", "edges->nodes", nx=5, ny=6, type="quad")
    where = next(d.values for d in mesh.dats if d.set == "nodes")
    middle, along = where[table].mean(axis=1), np.abs(np.diff(where[table], axis=1)[:, 0])
    wanted = set()
    for i in range(len(table)):
        for j in range(len(table)):
            if i != j and set(table[i]) & set(table[j]):
                off = np.abs(middle[i] - middle[j])
                if np.allclose(off, along[i]):
                    wanted.add((i, j))
    assert pairs_of(table, n_points) == wanted


def test_triangles_have_no_rows():
    _, table, n_points = mesh_with("delaunay2d", "edges->cells", cells=2000)
    assert pairs_of(table, n_points) is None


@pytest.mark.parametrize(
    ("kind", "loop", "least", "most"),
    [
        ({"nx": 70, "ny": 50, "type": "quad"}, "edges->cells", 1.9, 2.01),
        ({"nx": 50, "ny": 40, "type": "quad"}, "edges->nodes", 1.9, 2.01),
        ({"nx": 14, "ny": 14, "nz": 14, "type": "hexahedron"}, "faces->cells", 1.8, 2.05),
    ],
)
def test_a_high_price_of_colours_leads_to_rows(kind, loop, least, most):
    mesh, table, n_points = mesh_with("box", loop, **kind)
    where = centroids(mesh, loop.partition("->")[0])
    problem = BlockProblem(table, n_points, 128, coordinates=where)
    blocks = partition(problem, "blocks", {"colour_weight": 1000})
    table = np.ascontiguousarray(table[blocks.new_to_old])
    assert colour_threads(table, n_points, blocks.block_offset).count.mean() < most
    assert table.size / blocks.notes["loads"] > least
