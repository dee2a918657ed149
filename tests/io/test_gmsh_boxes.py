"""The boxes of entities that a mesh does not bring along, as the Gmsh writer makes them."""

import numpy as np
import pytest
from gmsh_meshes import plate, section

from meshprep.io.gmsh import entities, read, write
from meshprep.io.gmsh.layout import ENTITY_DIM
from meshprep.mesh.assemble import Block, assemble


def test_entities_made_up_have_boxes(tmp_path):
    points, triangles, lines = plate(2)
    tags = {"physical": np.array([4, 4, 4, 4, 9, 9, 9, 9])}
    blocks = [Block("line", lines), Block("triangle", triangles, tags=tags)]
    path = tmp_path / "made.msh"
    write(assemble(points, blocks)[0], path, binary=False)
    rows = [[float(x) for x in row] for row in section(path, "Entities")]
    assert rows[0] == [0, 1, 2, 0]
    corner = points[triangles[:4]]
    box = [*corner.min(axis=(0, 1)), *corner.max(axis=(0, 1))]
    # A number or list is a line of its own.
    flat = [x for row in rows[1:] for x in row]
    whole = [*points[lines].min(axis=(0, 1)), *points[lines].max(axis=(0, 1))]
    # Group 0 is none: meshio wants one of every entity, or of none.
    assert flat[:10] == [1, *whole, 1, 0, 0]
    assert flat[10:20] == [1, *box, 1, 4, 0]
    assert flat[20] == 2
    assert flat[27:] == [1, 9, 0]


@pytest.mark.parametrize("far", [False, True])
def test_a_box_holds_the_nodes_of_cells_alone(tmp_path, far):
    points, triangles, _ = plate(2)
    lone = np.array([[9.0, -9.0, 0.0] if far else points.mean(axis=0)])
    path = tmp_path / "lone.msh"
    mesh = assemble(np.concatenate([points, lone]), [Block("triangle", triangles)])[0]
    write(mesh, path, binary=False)
    rows = [[float(x) for x in row] for row in section(path, "Entities")]
    assert rows[2] == [*points.min(axis=0), *points.max(axis=0)]


def test_boxes_that_a_file_lists_are_not_made_again(tmp_path, monkeypatch):
    def refuse(*args):
        raise AssertionError("boxes are made")

    points, triangles, lines = plate(2)
    first, again = tmp_path / "first.msh", tmp_path / "again.msh"
    made = assemble(points, [Block("line", lines), Block("triangle", triangles)])[0]
    write(made, first, binary=False)
    # as of Gmsh, without the notes that entities were made up
    first.write_text(first.read_text().partition("$Meshprep")[0])
    mesh = read(first)
    assert mesh.dat(ENTITY_DIM, "nodes") is not None
    monkeypatch.setattr(entities, "_boxes", refuse)
    write(mesh, again)
    assert section(again, "Entities") == section(first, "Entities")
    fresh = assemble(points, [Block("triangle", triangles)])[0]
    with pytest.raises(AssertionError, match="boxes are made"):
        write(fresh, again)
