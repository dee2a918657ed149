"""Gmsh: meshes as users bring them, in every kind of file that Gmsh writes.

``python make_meshes.py FOLDER`` writes ``NAME-VERSION-ENCODING.msh``. Cells are called ``fluid``
and every entity of the border has a group of its own: PyFR wants both.
"""

import sys
from pathlib import Path

import gmsh

ENCODINGS = {"ascii": 0, "binary": 1}
VERSIONS = {"22": 2.2, "41": 4.1}


def two_squares() -> None:
    """Two surfaces that share a line."""
    left = gmsh.model.occ.addRectangle(0, 0, 0, 1, 1)
    right = gmsh.model.occ.addRectangle(1, 0, 0, 1, 1)
    gmsh.model.occ.fragment([(2, left)], [(2, right)])


def box() -> None:
    """One volume."""
    gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)


def two_boxes() -> None:
    """Two volumes that share a face."""
    left = gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
    right = gmsh.model.occ.addBox(1, 0, 0, 1, 1, 1)
    gmsh.model.occ.fragment([(3, left)], [(3, right)])


def half_quads() -> None:
    """A surface of quadrilaterals beside one of triangles."""
    two_squares()
    gmsh.model.occ.synchronize()
    _, tag = gmsh.model.getEntities(2)[0]
    gmsh.model.mesh.setRecombine(2, tag)


# Name -> function, dimension, size of an edge, order of the cells.
MESHES = {
    "two_squares": (two_squares, 2, 0.08, 1),
    "half_quads": (half_quads, 2, 0.08, 1),
    "box": (box, 3, 0.16, 1),
    "two_boxes": (two_boxes, 3, 0.22, 1),
    "box_of_second_order": (box, 3, 0.25, 2),
}


def name_groups(dim: int) -> None:
    """One group of all cells, one of each entity of the border."""
    cells = [tag for _, tag in gmsh.model.getEntities(dim)]
    gmsh.model.addPhysicalGroup(dim, cells, name="fluid")
    border = gmsh.model.getBoundary([(dim, tag) for tag in cells], oriented=False)
    for _, tag in border:
        gmsh.model.addPhysicalGroup(dim - 1, [tag], name=f"border{tag}")


def make(name: str, folder: Path) -> None:
    """Mesh one, and write it in every kind of file."""
    build, dim, size, order = MESHES[name]
    gmsh.clear()
    build()
    gmsh.model.occ.synchronize()
    name_groups(dim)
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.model.mesh.generate(dim)
    gmsh.model.mesh.setOrder(order)
    for version, number in VERSIONS.items():
        for encoding, binary in ENCODINGS.items():
            gmsh.option.setNumber("Mesh.MshFileVersion", number)
            gmsh.option.setNumber("Mesh.Binary", binary)
            gmsh.write(str(folder / f"{name}-{version}-{encoding}.msh"))


if __name__ == "__main__":
    gmsh.initialize(["gmsh", "-v", "1"], readConfigFiles=False, interruptible=False)
    for each in MESHES:
        make(each, Path(sys.argv[1]))
    gmsh.finalize()
