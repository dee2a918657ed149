"""Reference cells: dimension, corners, and which corners make the edges and faces.

Cell types carry meshio's names (``"tetra"``, ``"hexahedron20"``,
``"VTK_LAGRANGE_QUADRILATERAL"``). Every convention puts the corners first, so topology
needs corners only, at any order.
"""

import re
from dataclasses import dataclass
from functools import cache

from meshprep_runtime.errors import MeshprepError

Corners = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CellShape:
    """Local corners of the edges and, in 3-D, of the faces of a cell, as VTK has them.

    The normals of faces point outward.
    """

    name: str
    dim: int
    n_corners: int
    edges: Corners
    faces: Corners = ()

    @property
    def facets(self) -> Corners:
        """The corners of a line, the edges of a plane shape, the faces of a solid."""
        if self.dim == 1:
            return tuple((i,) for i in range(self.n_corners))
        if self.dim == 3:
            return self.faces
        return self.edges


SHAPES: dict[str, CellShape] = {
    s.name: s
    for s in (
        CellShape(name="vertex", dim=0, n_corners=1, edges=()),
        CellShape(name="line", dim=1, n_corners=2, edges=((0, 1),)),
        CellShape(name="triangle", dim=2, n_corners=3, edges=((0, 1), (1, 2), (2, 0))),
        CellShape(name="quad", dim=2, n_corners=4, edges=((0, 1), (1, 2), (2, 3), (3, 0))),
        CellShape(
            name="tetra",
            dim=3,
            n_corners=4,
            edges=((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
            faces=((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
        ),
        CellShape(
            name="pyramid",
            dim=3,
            n_corners=5,
            edges=((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)),
            faces=((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
        ),
        CellShape(
            name="wedge",
            dim=3,
            n_corners=6,
            edges=((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
            faces=((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
        ),
        CellShape(
            name="hexahedron",
            dim=3,
            n_corners=8,
            edges=(
                (0, 1),
                (1, 2),
                (2, 3),
                (3, 0),
                (4, 5),
                (5, 6),
                (6, 7),
                (7, 4),
                (0, 4),
                (1, 5),
                (2, 6),
                (3, 7),
            ),
            faces=(
                (0, 3, 2, 1),
                (4, 5, 6, 7),
                (0, 1, 5, 4),
                (1, 2, 6, 5),
                (2, 3, 7, 6),
                (3, 0, 4, 7),
            ),
        ),
    )
}

# Cells of any order, by the middle of VTK's names for them.
_OF_ANY_ORDER = re.compile(r"VTK_(?:LAGRANGE|BEZIER)_(.*)")
_SHAPE_OF_ANY_ORDER = {
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
    """The shape of a cell type of any order; raises MeshprepError for other types."""
    # ``hexahedron20``: the number of nodes tells the order, not the shape.
    name = re.sub(r"\d+$", "", cell_type)
    if any_order := _OF_ANY_ORDER.fullmatch(cell_type):
        name = _SHAPE_OF_ANY_ORDER.get(any_order[1], "")
    if name not in SHAPES:
        raise MeshprepError(
            f"cells of type '{cell_type}' are not supported: "
            f"use {', '.join(SHAPES)} and their high-order kin"
        )
    return SHAPES[name]


def node_count(cell_type: str) -> int:
    """Nodes of a cell of this type; 0 for Lagrange and Bezier cells, as these differ."""
    shape = shape_of(cell_type)
    digits = cell_type.removeprefix(shape.name)
    if _OF_ANY_ORDER.fullmatch(cell_type):
        return 0
    if digits:
        return int(digits)
    return shape.n_corners


def check_node_count(which: str, cell_type: str, found: int) -> None:
    """Raise MeshprepError unless a cell of this type can have that many nodes.

    ``which`` is the cell in words, with which the message begins: ``"cell 3 of set
    'cells'"``; ``found`` are the nodes that the file gives the cell.
    """
    problem = node_count_problem(which, cell_type, found)
    if problem:
        raise MeshprepError(problem)


def node_count_problem(which: str, cell_type: str, found: int) -> str:
    """The message of :func:`check_node_count`; empty where the number of nodes fits."""
    # Cells of any order have at least their corners.
    exact = node_count(cell_type)
    least = exact or shape_of(cell_type).n_corners
    if found == least or (not exact and found > least):
        return ""
    count = f"{least} nodes"
    if not exact:
        count = f"at least {count}"
    return (
        f"{which} is of type '{cell_type}', which has {count}, "
        f"but has {found} in the file: correct its type or its nodes"
    )
