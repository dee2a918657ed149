"""Reference cells: dimension, corners, and which corners make the edges and faces.

Cell types carry meshio's names (``"tetra"``, ``"hexahedron20"``, ``"VTK_LAGRANGE_QUADRILATERAL"``).
Every convention puts the corners first, so topology needs corners only, at any order.
"""

import re
from dataclasses import dataclass
from functools import cache

from meshprep_runtime.errors import MeshprepError

Corners = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CellShape:
    """Local corners of the edges and, in 3-D, faces, whose normals point outward, as in VTK."""

    name: str
    dim: int
    n_corners: int
    edges: Corners
    faces: Corners = ()

    @property
    def facets(self) -> Corners:
        """What bounds the shape: corners of a line, edges in 2-D, faces in 3-D."""
        if self.dim == 1:
            return tuple((i,) for i in range(self.n_corners))
        return self.faces if self.dim == 3 else self.edges


SHAPES: dict[str, CellShape] = {
    s.name: s
    for s in (
        CellShape("vertex", 0, 1, ()),
        CellShape("line", 1, 2, ((0, 1),)),
        CellShape("triangle", 2, 3, ((0, 1), (1, 2), (2, 0))),
        CellShape("quad", 2, 4, ((0, 1), (1, 2), (2, 3), (3, 0))),
        CellShape(
            "tetra",
            3,
            4,
            ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
            ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
        ),
        CellShape(
            "pyramid",
            3,
            5,
            ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)),
            ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
        ),
        CellShape(
            "wedge",
            3,
            6,
            ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
            ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
        ),
        CellShape(
            "hexahedron",
            3,
            8,
            (
                *((0, 1), (1, 2), (2, 3), (3, 0)),
                *((4, 5), (5, 6), (6, 7), (7, 4)),
                *((0, 4), (1, 5), (2, 6), (3, 7)),
            ),
            (
                *((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4)),
                *((1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
            ),
        ),
    )
}

_LAGRANGE = {
    "CURVE": "line",
    "TRIANGLE": "triangle",
    "QUADRILATERAL": "quad",
    "TETRAHEDRON": "tetra",
    "HEXAHEDRON": "hexahedron",
    "WEDGE": "wedge",
    "PYRAMID": "pyramid",
}


@cache
def shape_of(cell_type: str) -> CellShape:
    """The shape of a cell type of any order; raises MeshprepError for shapes without one."""
    name = re.sub(r"\d+$", "", cell_type)
    if cell_type.startswith("VTK_LAGRANGE_"):
        name = _LAGRANGE.get(cell_type.removeprefix("VTK_LAGRANGE_"), "")
    if name not in SHAPES:
        raise MeshprepError(
            f"cells of type '{cell_type}' are not supported: "
            f"use {', '.join(SHAPES)} and their high-order kin"
        )
    return SHAPES[name]


def node_count(cell_type: str) -> int:
    """Nodes of a cell of this type; 0 for Lagrange cells, which are of any order."""
    shape = shape_of(cell_type)
    digits = cell_type.removeprefix(shape.name)
    if cell_type.startswith("VTK_LAGRANGE_"):
        return 0
    return int(digits) if digits else shape.n_corners


def check_node_count(which: str, cell_type: str, found: int) -> None:
    """Raise MeshprepError unless a cell of this type can have that many nodes.

    ``which`` is the cell in words, with which the message begins: ``"cell 3 of set 'cells'"``;
    ``found`` are the nodes that the file gives the cell.
    """
    problem = node_count_problem(which, cell_type, found)
    if problem:
        raise MeshprepError(problem)


def node_count_problem(which: str, cell_type: str, found: int) -> str:
    """What is wrong with that many nodes, see :func:`check_node_count`; empty where they fit."""
    wanted = node_count(cell_type)
    least = wanted or shape_of(cell_type).n_corners
    if found == least or (not wanted and found > least):
        return ""
    count = f"{'' if wanted else 'at least '}{least} nodes"
    return (
        f"{which} is of type '{cell_type}', which has {count}, but has {found} in the file: "
        "correct its type or its nodes"
    )
