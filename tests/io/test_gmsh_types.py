"""Gmsh's element types and node orders, against meshio's and against geometry."""

import meshio.gmsh.common as theirs
import numpy as np
import pytest
from meshio._common import num_nodes_per_cell

from meshprep.io.gmsh.types import DIMS, NAME_OF, NODES, NUMBER_OF, TO_FILE, TO_MEMORY
from meshprep.mesh.cells import node_count, shape_of


def test_all_types_that_meshio_names():
    assert theirs._gmsh_to_meshio_type == NAME_OF
    assert {NAME_OF[i]: n for i, n in enumerate(NODES) if n} == {
        name: num_nodes_per_cell[name] for name in NUMBER_OF
    }
    assert all(DIMS[i] == shape_of(name).dim for i, name in NAME_OF.items())


# meshio leaves the nodes of wedge18 in Gmsh's order, also where it writes VTK.
@pytest.mark.parametrize("cell_type", sorted({*TO_MEMORY} - {"wedge18"}))
def test_order_as_meshio_has_it(cell_type):
    row = np.arange(node_count(cell_type))[None]
    assert theirs._gmsh_to_meshio_order(cell_type, row)[0].tolist() == TO_MEMORY[cell_type]
    assert theirs._meshio_to_gmsh_order(cell_type, row)[0].tolist() == TO_FILE[cell_type]


# The edges of the reference elements in the order of Gmsh's manual.
EDGES = {
    "tetra10": "01 12 20 30 32 31",
    "hexahedron20": "01 03 04 12 15 23 26 37 45 47 56 67",
    "wedge15": "01 02 03 12 14 25 34 35 45",
    "pyramid13": "01 03 04 12 14 23 24 34",
}


@pytest.mark.parametrize("cell_type", sorted(EDGES))
def test_edge_nodes_lie_on_their_edges(cell_type):
    shape = shape_of(cell_type)
    corners = np.random.default_rng(0).random((shape.n_corners, 3))
    ends = [[int(c) for c in pair] for pair in EDGES[cell_type].split()]
    gmsh = np.vstack([corners, corners[np.array(ends)].mean(axis=1)])
    memory = gmsh[TO_MEMORY[cell_type]]
    expected = corners[np.array(shape.edges)].mean(axis=1)
    assert np.allclose(memory[shape.n_corners :], expected)
    assert (memory[TO_FILE[cell_type]] == gmsh).all()
