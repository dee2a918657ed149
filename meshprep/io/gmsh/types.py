"""Gmsh's element types and node order, against the names and the order (VTK's) in memory."""

import numpy as np
from numpy.typing import NDArray

from ...mesh.cells import SHAPES, node_count, shape_of

# Gmsh's number of each type; where the name ends in a number, that is how many nodes it has.
NUMBER_OF: dict[str, int] = {
    **{"line": 1, "triangle": 2, "quad": 3, "tetra": 4, "hexahedron": 5, "wedge": 6},
    **{"pyramid": 7, "line3": 8, "triangle6": 9, "quad9": 10, "tetra10": 11},
    **{"hexahedron27": 12, "wedge18": 13, "pyramid14": 14, "vertex": 15, "quad8": 16},
    **{"hexahedron20": 17, "wedge15": 18, "pyramid13": 19},
    **{f"triangle{n}": i for n, i in ((10, 21), (15, 23), (21, 25))},
    **{f"line{n}": 22 + n for n in (4, 5, 6)},
    **{f"tetra{n}": i for n, i in ((20, 29), (35, 30), (56, 31))},
    **{f"quad{n}": i for n, i in ((16, 36), (25, 37), (36, 38))},
    **{f"triangle{(p + 1) * (p + 2) // 2}": 36 + p for p in range(6, 11)},
    **{f"quad{(p + 1) ** 2}": 41 + p for p in range(6, 11)},
    **{f"line{n}": 55 + n for n in range(7, 12)},
    **{f"tetra{(p + 1) * (p + 2) * (p + 3) // 6}": 65 + p for p in range(6, 11)},
    **{f"wedge{(p + 1) ** 2 * (p + 2) // 2}": 87 + p for p in (3, 4)},
    **{f"hexahedron{(p + 1) ** 3}": 89 + p for p in range(3, 10)},
    **{f"wedge{(p + 1) ** 2 * (p + 2) // 2}": 101 + p for p in range(5, 10)},
}
NAME_OF: dict[int, str] = {number: name for name, number in NUMBER_OF.items()}


def _table(of: str) -> NDArray[np.int64]:
    out = np.zeros(max(NAME_OF) + 1, dtype=np.int64)
    for number, name in NAME_OF.items():
        out[number] = node_count(name) if of == "nodes" else shape_of(name).dim
    return out


# By Gmsh's number; NODES is 0 for the types that meshprep does not know.
NODES, DIMS = _table("nodes"), _table("dims")

# The order in which Gmsh numbers the nodes inside edges and faces, by the corners at their ends;
# in memory they stand in the order of Shape.edges.
_TETRA = ((0, 1), (1, 2), (2, 0), (0, 3), (2, 3), (1, 3))
_HEXAHEDRON = (
    *((0, 1), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3)),
    *((2, 6), (3, 7), (4, 5), (4, 7), (5, 6), (6, 7)),
)
_WEDGE = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (3, 5), (4, 5))
_PYRAMID = ((0, 1), (0, 3), (0, 4), (1, 2), (1, 4), (2, 3), (2, 4), (3, 4))
_HEXAHEDRON_FACES = (
    *((0, 1, 2, 3), (0, 1, 4, 5), (0, 3, 4, 7)),
    *((1, 2, 5, 6), (2, 3, 6, 7), (4, 5, 6, 7)),
)
_VTK_HEXAHEDRON_FACES = (
    *((0, 3, 4, 7), (1, 2, 5, 6), (0, 1, 4, 5)),
    *((2, 3, 6, 7), (0, 1, 2, 3), (4, 5, 6, 7)),
)
_WEDGE_FACES = ((0, 1, 3, 4), (0, 2, 3, 5), (1, 2, 4, 5))
_VTK_WEDGE_FACES = ((0, 1, 3, 4), (1, 2, 4, 5), (0, 2, 3, 5))


def _order(shape: str, edges: tuple[tuple[int, ...], ...]) -> list[int]:
    """Gmsh's position of each corner and edge node, in the order in memory."""
    corners = SHAPES[shape].n_corners
    position = {frozenset(e): corners + i for i, e in enumerate(edges)}
    return [*range(corners), *(position[frozenset(e)] for e in SHAPES[shape].edges)]


_HEXAHEDRON20 = _order("hexahedron", _HEXAHEDRON)
_WEDGE15 = _order("wedge", _WEDGE)
TO_MEMORY: dict[str, list[int]] = {
    "tetra10": _order("tetra", _TETRA),
    "hexahedron20": _HEXAHEDRON20,
    "hexahedron27": [
        *_HEXAHEDRON20,
        *(20 + _HEXAHEDRON_FACES.index(f) for f in _VTK_HEXAHEDRON_FACES),
        26,
    ],
    "wedge15": _WEDGE15,
    "wedge18": [*_WEDGE15, *(15 + _WEDGE_FACES.index(f) for f in _VTK_WEDGE_FACES)],
    "pyramid13": _order("pyramid", _PYRAMID),
}
"""Column ``TO_MEMORY[t][i]`` of Gmsh is column ``i`` in memory; other types stand as in Gmsh."""

TO_FILE: dict[str, list[int]] = {t: np.argsort(o).tolist() for t, o in TO_MEMORY.items()}
