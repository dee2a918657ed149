"""SfePy: the cells of a mesh of its own, by its own choice of reader."""

from seen import main
from sfepy.discrete.fem import Mesh

SHAPES = {
    "1_2": "line",
    "2_3": "triangle",
    "2_4": "quad",
    "3_4": "tetra",
    "3_6": "wedge",
    "3_8": "hexahedron",
}


def look(path):
    """Those of the highest dimension."""
    mesh = Mesh.from_file(path)
    cells = {SHAPES[name]: mesh.get_conn(name) for name in mesh.descs}
    return [[*point, 0.0][:3] for point in mesh.coors.tolist()], cells


if __name__ == "__main__":
    main(look)
