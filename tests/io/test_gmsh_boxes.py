"""The boxes of entities that a mesh does not bring along, as the Gmsh writer makes them."""

import numpy as np
from gmsh_meshes import plate, section

from meshprep.io.gmsh import read, write
from meshprep.io.gmsh.layout import ENTITY_DIM
from meshprep.mesh.assemble import Block, assemble


def test_entities_made_up_have_the_box_of_the_mesh(tmp_path):
    points, triangles, lines = plate(2)
    tags = {"physical": np.array([4, 4, 4, 4, 9, 9, 9, 9])}
    blocks = [Block("vertex", np.array([[3]])), Block("line", lines)]
    blocks.append(Block("triangle", triangles, tags=tags))
    path = tmp_path / "made.msh"
    write(assemble(points, blocks)[0], path, binary=False)
    rows = [[float(x) for x in row] for row in section(path, "Entities")]
    assert rows[0] == [1, 1, 2, 0]
    box = [*points.min(axis=0), *points.max(axis=0)]
    # A record is a line. No group stands for none: 0 would be a group to Gmsh.
    assert rows[1] == [1, *points[3], 0]
    assert rows[2] == [1, *box, 0, 0]
    assert rows[3] == [1, *box, 1, 4, 0]
    assert rows[4] == [2, *box, 1, 9, 0]
    assert len(rows) == 5


def test_boxes_that_a_file_lists_stay(tmp_path):
    points, triangles, lines = plate(2)
    first, again = tmp_path / "first.msh", tmp_path / "again.msh"
    made = assemble(points, [Block("line", lines), Block("triangle", triangles)])[0]
    write(made, first, binary=False)
    # as of Gmsh, without the notes that entities were made up, and with a box of its own
    before, _, rest = first.read_text().partition("$Meshprep\n")
    text = before + rest.partition("$EndMeshprep\n")[2]
    first.write_text(
        text.replace("$Entities\n0 1 1 0\n1 0 ", "$Entities\n0 1 1 0\n1 0.25 ")
    )
    mesh = read(first)
    assert mesh.dat(ENTITY_DIM, "nodes") is not None
    write(mesh, again)
    assert section(again, "Entities") == section(first, "Entities")
    assert section(again, "Entities")[1][1] == "0.25"
