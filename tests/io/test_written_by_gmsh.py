"""Files that Gmsh writes in other formats: every cell has the nodes that it has in Gmsh."""

import numpy as np
import other_readers
import pytest
from scipy.spatial import cKDTree

from meshprep import io
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.cells import shape_of

pytestmark = pytest.mark.usefixtures("read_here")

# What Gmsh writes of each type, in the formats that hold it.
FIRST = ("inp", "vtk", "med", "bdf", "mesh", "su2")
SECOND = ("inp", "vtk", "med", "bdf")
TYPES = {
    **dict.fromkeys(("triangle", "quad", "tetra", "hexahedron"), FIRST),
    **{"wedge": ("vtk", "med", "bdf", "su2"), "pyramid": ("vtk", "med", "su2")},
    **dict.fromkeys(("triangle6", "quad8", "tetra10", "hexahedron20", "wedge15"), SECOND),
    **{"line3": ("inp", "vtk", "med"), "pyramid13": ("med",)},
}
# The corners of one cell.
CORNERS = {
    "line": [[0, 0, 0], [1, 0, 0]],
    "triangle": [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
    "quad": [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]],
    "tetra": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "pyramid": [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]],
    "wedge": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]],
}
CORNERS["hexahedron"] = CORNERS["quad"] + [[x, y, 1] for x, y, _ in CORNERS["quad"]]


def two_cells(cell_type):
    """Two cells apart from each other, their nodes in an order of their own."""
    corners = np.array(CORNERS[shape_of(cell_type).name], float)
    nodes = np.array(
        [corners[list(c)].mean(axis=0) for c in other_readers.parts_of(cell_type)]
    )
    points = np.concatenate([nodes, nodes * 0.5 + [3, 3, 0]])
    new = np.random.default_rng(len(points)).permutation(len(points))
    table = new.reshape(2, -1)
    return assemble(points[np.argsort(new)], [Block(cell_type, table)])[0]


@pytest.mark.parametrize("cell_type", TYPES)
def test_cells_have_the_nodes_that_they_have_in_gmsh(cell_type, tmp_path):
    gmsh = other_readers.package("gmsh")
    mesh = two_cells(cell_type)
    io.write(mesh, tmp_path / "a.msh", version="4.1", binary=False)
    gmsh.initialize()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("Mesh.SaveAll", 1)
        gmsh.open(str(tmp_path / "a.msh"))
        for ending in TYPES[cell_type]:
            gmsh.write(str(tmp_path / f"a.{ending}"))
    finally:
        gmsh.finalize()
    if "su2" in TYPES[cell_type]:
        # Gmsh leaves markers out where there are no groups; SU2 wants their number
        with (tmp_path / "a.su2").open("a") as file:
            file.write("NMARK= 0\n")
    for ending in TYPES[cell_type]:
        found = io.read(tmp_path / f"a.{ending}")
        points = np.pad(found.coordinates, ((0, 0), (0, 3 - found.coordinates.shape[1])))
        apart, node = cKDTree(mesh.coordinates).query(points)
        assert apart.max() < 1e-6
        np.testing.assert_array_equal(
            node[found.map("cells->nodes").table], mesh.map("cells->nodes").table, ending
        )
