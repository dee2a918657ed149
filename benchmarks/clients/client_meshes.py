"""Meshes of Gmsh for the solvers of others: ``python client_meshes.py SHAPE CELLS FILE``.

Text of Gmsh's version 2.2, which all of them read, in the order in which Gmsh numbers it.
"""

import sys
from collections.abc import Callable

import gmsh

SIDE = 1e-6
# A small part of the cells that are asked for tells how large an edge has to be.
TRIAL_CELLS = 2_000
# The groups of the border and of the inside, by their numbers.
GROUPS = {1: "left", 2: "right", 3: "walls", 4: "fluid"}


def make_square() -> int:
    """A unit square; returns its dimension."""
    gmsh.model.occ.addRectangle(0, 0, 0, 1, 1)
    return 2


def make_cube() -> int:
    """A unit cube; returns its dimension."""
    gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
    return 3


SHAPES: dict[str, Callable[[], int]] = {"triangles": make_square, "tetrahedra": make_cube}


def name_groups(dimension: int) -> None:
    """The border at x = 0 is ``left``, at x = 1 ``right``, else ``walls``; cells are ``fluid``."""
    border: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for _, tag in gmsh.model.getEntities(dimension - 1):
        lowest_x = gmsh.model.getBoundingBox(dimension - 1, tag)[0]
        highest_x = gmsh.model.getBoundingBox(dimension - 1, tag)[3]
        if highest_x < SIDE:
            border[1].append(tag)
        elif lowest_x > 1 - SIDE:
            border[2].append(tag)
        else:
            border[3].append(tag)
    for group, tags in border.items():
        gmsh.model.addPhysicalGroup(dimension - 1, tags, group, GROUPS[group])
    inside = [tag for _, tag in gmsh.model.getEntities(dimension)]
    gmsh.model.addPhysicalGroup(dimension, inside, 4, GROUPS[4])


def generate(shape: str, size: float) -> int:
    """Mesh a shape with edges of about ``size``; returns the number of its cells."""
    gmsh.clear()
    dimension = SHAPES[shape]()
    gmsh.model.occ.synchronize()
    name_groups(dimension)
    gmsh.option.setNumber("Mesh.MeshSizeMin", size)
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.model.mesh.generate(dimension)
    _, tags, _ = gmsh.model.mesh.getElements(dimension)
    return sum(len(tag) for tag in tags)


def make(shape: str, cells: int, path: str) -> None:
    """Write a mesh of about ``cells`` cells."""
    gmsh.initialize(["gmsh", "-v", "1"], readConfigFiles=False, interruptible=False)
    gmsh.option.setNumber("Mesh.MshFileVersion", 2.2)
    dimension = 2 if shape == "triangles" else 3
    size = 0.1
    count = generate(shape, size)
    for enough in (TRIAL_CELLS, cells):
        size *= (count / enough) ** (1 / dimension)
        count = generate(shape, size)
    gmsh.write(path)
    gmsh.finalize()


if __name__ == "__main__":
    make(shape=sys.argv[1], cells=int(sys.argv[2]), path=sys.argv[3])
