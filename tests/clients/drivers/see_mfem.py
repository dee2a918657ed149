"""MFEM, by PyMFEM: elements and the elements of the boundary."""

import mfem.ser as mfem
from seen import main

SHAPES = {
    mfem.Geometry.POINT: "vertex",
    mfem.Geometry.SEGMENT: "line",
    mfem.Geometry.TRIANGLE: "triangle",
    mfem.Geometry.SQUARE: "quad",
    mfem.Geometry.TETRAHEDRON: "tetra",
    mfem.Geometry.PYRAMID: "pyramid",
    mfem.Geometry.PRISM: "wedge",
    mfem.Geometry.CUBE: "hexahedron",
}


def look(path):
    """Neither refined nor turned, as the file has it."""
    mesh = mfem.Mesh(path, 1, 0, False)
    places = mesh.GetVertexArray()
    cells = {}
    for i in range(mesh.GetNE()):
        element = mesh.GetElement(i)
        shape = SHAPES[element.GetGeometryType()]
        cells.setdefault(shape, []).append(element.GetVerticesArray())
    return [list(place) for place in places], cells


if __name__ == "__main__":
    main(look)
