"""Element types and node order of Gmsh, and those in memory (VTK's)."""

import numpy as np

from ...mesh.cells import node_count, shape_of

# Gmsh's number of each type; where the name ends in a number, that is how many nodes it
# has.
NUMBER_OF: dict[str, int] = {
    "line": 1,
    "triangle": 2,
    "quad": 3,
    "tetra": 4,
    "hexahedron": 5,
    "wedge": 6,
    "pyramid": 7,
    "line3": 8,
    "triangle6": 9,
    "quad9": 10,
    "tetra10": 11,
    "hexahedron27": 12,
    "wedge18": 13,
    "pyramid14": 14,
    "vertex": 15,
    "quad8": 16,
    "hexahedron20": 17,
    "wedge15": 18,
    "pyramid13": 19,
    "triangle10": 21,
    "triangle15": 23,
    "triangle21": 25,
    "line4": 26,
    "line5": 27,
    "line6": 28,
    "tetra20": 29,
    "tetra35": 30,
    "tetra56": 31,
    "quad16": 36,
    "quad25": 37,
    "quad36": 38,
    # Orders 6 to 10 and 3 to 9: p is the order of the polynomials.
    **{f"triangle{(p + 1) * (p + 2) // 2}": 36 + p for p in range(6, 11)},
    **{f"quad{(p + 1) ** 2}": 41 + p for p in range(6, 11)},
    **{f"line{n}": 55 + n for n in range(7, 12)},
    **{f"tetra{(p + 1) * (p + 2) * (p + 3) // 6}": 65 + p for p in range(6, 11)},
    **{f"wedge{(p + 1) ** 2 * (p + 2) // 2}": 87 + p for p in (3, 4)},
    **{f"hexahedron{(p + 1) ** 3}": 89 + p for p in range(3, 10)},
    **{f"wedge{(p + 1) ** 2 * (p + 2) // 2}": 101 + p for p in range(5, 10)},
}
NAME_OF: dict[int, str] = {number: name for name, number in NUMBER_OF.items()}


# By Gmsh's number; NODES is 0 for the types that meshprep does not know.
NODES, DIMS = np.zeros((2, max(NAME_OF) + 1), dtype=np.int64)
for _number, _name in NAME_OF.items():
    NODES[_number] = node_count(_name)
    DIMS[_number] = shape_of(_name).dim

# Corners stand as in memory; the nodes inside edges and faces are those at these positions
# of Gmsh.
_INSIDE: dict[str, tuple[int, list[int]]] = {
    "tetra10": (4, [4, 5, 6, 7, 9, 8]),
    "hexahedron20": (8, [8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 14, 15]),
    "hexahedron27": (
        8,
        [8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 14, 15, 22, 23, 21, 24, 20, 25, 26],
    ),
    "wedge15": (6, [6, 9, 7, 12, 14, 13, 8, 10, 11]),
    "wedge18": (6, [6, 9, 7, 12, 14, 13, 8, 10, 11, 15, 17, 16]),
    "pyramid13": (5, [5, 8, 10, 6, 7, 9, 11, 12]),
}
TO_MEMORY = {name: [*range(n), *inside] for name, (n, inside) in _INSIDE.items()}
"""Column ``TO_MEMORY[t][i]`` of Gmsh is column ``i`` in memory; other types are the same.
"""

TO_FILE: dict[str, list[int]] = {t: np.argsort(o).tolist() for t, o in TO_MEMORY.items()}
