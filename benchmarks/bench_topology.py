"""Faces and edges from cells, on one core, against sorting all faces with ``np.unique``.

Bar: faces of a million tets within 1.5 s.
"""

import numpy as np
from common import best, mesh_of, report, timed
from numba import set_num_threads

from meshprep.mesh import Mesh
from meshprep.mesh.cells import shape_of
from meshprep.topology import derive

CASES = [
    ("delaunay3d", "faces->cells"),
    ("delaunay3d", "edges->nodes"),
    ("delaunay2d", "edges->cells"),
]


def main() -> None:
    """Print and save the table."""
    set_num_threads(1)
    rows = []
    for kind, name in CASES:
        mesh = mesh_of(kind, 1_000_000)
        seconds = best(lambda mesh=mesh, name=name: derive(mesh, [name]))
        peer = timed(lambda mesh=mesh, name=name: _unique(mesh, name))
        rows.append(
            {
                "mesh": f"{kind}, {mesh.size('cells')} cells",
                "map": name,
                "seconds": seconds,
                "np.unique": peer,
                "times faster": peer / seconds,
            }
        )
    report("topology", rows)


def _unique(mesh: Mesh, name: str) -> None:
    """The usual way: stack the facets of all cells, sort each, find equal rows."""
    shape = shape_of(str(mesh.sets["cells"].cell_type))
    corners = shape.faces if name.startswith("faces") else shape.edges
    table = mesh.map("cells->nodes").table
    facets = np.sort(np.concatenate([table[:, list(c)] for c in corners]), axis=1)
    np.unique(facets, axis=0, return_inverse=True)


if __name__ == "__main__":
    main()
