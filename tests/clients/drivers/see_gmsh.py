"""Gmsh's Python API: elements and nodes as it hands them out, entity by entity."""

import gmsh
from seen import CORNERS, main

SHAPES = {
    "Point": "vertex",
    "Line": "line",
    "Triangle": "triangle",
    "Quadrilateral": "quad",
    "Tetrahedron": "tetra",
    "Pyramid": "pyramid",
    "Prism": "wedge",
    "Hexahedron": "hexahedron",
}


def look(path):
    """In place of the order of nodes, that of their tags, which solvers go by."""
    gmsh.initialize(["gmsh", "-v", "1"], readConfigFiles=False, interruptible=False)
    try:
        gmsh.open(path)
        mesh = gmsh.model.mesh
        tags, flat, _ = mesh.getNodes()
        by_tag = sorted(zip(tags.tolist(), flat.reshape(-1, 3).tolist(), strict=True))
        row_of = {tag: row for row, (tag, _) in enumerate(by_tag)}
        cells = {}
        kinds, _, nodes = mesh.getElements()
        for kind, flat_nodes in zip(kinds, nodes, strict=True):
            name, _, _, width, _, _ = mesh.getElementProperties(kind)
            shape = SHAPES[name.split()[0]]
            rows = flat_nodes.reshape(-1, width)[:, : CORNERS[shape]]
            found = [[row_of[tag] for tag in row] for row in rows.tolist()]
            cells.setdefault(shape, []).extend(found)
        return [place for _, place in by_tag], cells
    finally:
        gmsh.finalize()


if __name__ == "__main__":
    main(look)
