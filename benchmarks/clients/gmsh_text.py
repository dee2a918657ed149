"""Points and cells of Gmsh's text of version 2.2, for solvers that are given arrays."""

import numpy as np

# Gmsh's number of a type: its name and its points.
TYPES = {1: ("line", 2), 2: ("triangle", 3), 4: ("tetrahedron", 4)}


def read_gmsh(path):
    """Points (n, 3); of each type its cells (n, k), from 0, and the groups of these (n,)."""
    lines = path.read_text().splitlines()
    first = lines.index("$Nodes") + 2
    points = np.array(
        [line.split()[1:4] for line in lines[first : first + int(lines[first - 1])]]
    )
    first = lines.index("$Elements") + 2
    cells = {}
    tags = {}
    for line in lines[first : first + int(lines[first - 1])]:
        words = line.split()
        name, n_points = TYPES[int(words[1])]
        cells.setdefault(name, []).append(words[-n_points:])
        tags.setdefault(name, []).append(words[3])
    corners = {name: np.array(rows).astype(int) - 1 for name, rows in cells.items()}
    groups = {name: np.array(rows).astype(int) for name, rows in tags.items()}
    return points.astype(float), corners, groups
