"""scikit-fem: the cells that a loaded mesh has."""

import skfem
from seen import main

SHAPES = {
    "MeshLine": "line",
    "MeshTri": "triangle",
    "MeshQuad": "quad",
    "MeshTet": "tetra",
    "MeshWedge": "wedge",
    "MeshHex": "hexahedron",
}


def look(path):
    """Columns of scikit-fem's tables are cells."""
    mesh = skfem.Mesh.load(path)
    names = (one.__name__.rstrip("12") for one in type(mesh).__mro__)
    shape = next(SHAPES[name] for name in names if name in SHAPES)
    points = [[*column, 0.0, 0.0][:3] for column in mesh.p.T.tolist()]
    return points, {shape: mesh.t.T}


if __name__ == "__main__":
    main(look)
