"""MED through meshio, which leaves out that volumes have their base turned round in MED files."""

from __future__ import annotations

from typing import Any

import meshio
from meshio.med import _med

from ...mesh.cells import shape_of

# Corners of a volume in memory, in the order of MED; twice is the order again.
_CORNERS = {
    "tetra": (0, 2, 1, 3),
    "pyramid": (0, 3, 2, 1, 4),
    "wedge": (0, 2, 1, 3, 5, 4),
    "hexahedron": (0, 3, 2, 1, 4, 7, 6, 5),
}


def read(path: str) -> Any:
    """Read a MED file as meshio does, volumes in VTK's order."""
    mesh = _med.read(path)
    _turn(mesh)
    return mesh


def write(path: str, mesh: meshio.Mesh) -> None:
    """Write a MED file as meshio does, volumes in MED's order; the mesh is changed."""
    _turn(mesh)
    _med.write(path, mesh)


def _turn(mesh: Any) -> None:
    for k, block in enumerate(mesh.cells):
        order = _order(block.type)
        if order is None or block.data.shape[1] != len(order):
            continue
        block.data = block.data[:, order]
        for values in mesh.cell_data.values():
            # Values at each node of a cell go with the nodes.
            if getattr(values[k], "ndim", 0) == 3 and values[k].shape[1] == len(order):
                values[k] = values[k][:, order]


def _order(cell_type: str) -> list[int] | None:
    """The column in memory of each column of MED, and the other way round."""
    shape = shape_of(cell_type)
    if shape.name not in _CORNERS:
        return None
    corners = _CORNERS[shape.name]
    if cell_type == shape.name:
        return list(corners)
    place = {frozenset(edge): shape.n_corners + i for i, edge in enumerate(shape.edges)}
    return [*corners, *(place[frozenset((corners[a], corners[b]))] for a, b in shape.edges)]
