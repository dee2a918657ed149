"""NGSolve: Netgen's own reader of Gmsh files."""

from netgen.read_gmsh import ReadGmsh
from seen import main

SURFACE = {3: "triangle", 4: "quad", 6: "triangle", 8: "quad"}
VOLUME = {
    4: "tetra",
    5: "pyramid",
    6: "wedge",
    8: "hexahedron",
    10: "tetra",
    13: "pyramid",
    15: "wedge",
    20: "hexahedron",
}
CORNERS = {"triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}


def look(path):
    """Points are numbered from 1 there."""
    mesh = ReadGmsh(path)
    cells = {}
    for elements, shapes in ((mesh.Elements2D(), SURFACE), (mesh.Elements3D(), VOLUME)):
        for element in elements:
            nodes = [vertex.nr - 1 for vertex in element.vertices]
            shape = shapes[len(nodes)]
            cells.setdefault(shape, []).append(nodes[: CORNERS[shape]])
    return [point.p for point in mesh.Points()], cells


if __name__ == "__main__":
    main(look)
