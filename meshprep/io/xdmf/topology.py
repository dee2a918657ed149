"""Cells of XDMF files: types by name and number, and tables of several types."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, node_count
from ..cell_blocks.file_mesh import Cells
from ..text.quoting import quoted

# By XDMF's name, and by the number that stands before cells of several types; nodes are in
# VTK's order.
NAMES = {
    "vertex": ("Polyvertex", 0x1),
    "line": ("Polyline", 0x2),
    "triangle": ("Triangle", 0x4),
    "quad": ("Quadrilateral", 0x5),
    "tetra": ("Tetrahedron", 0x6),
    "pyramid": ("Pyramid", 0x7),
    "wedge": ("Wedge", 0x8),
    "hexahedron": ("Hexahedron", 0x9),
    "line3": ("Edge_3", 0x22),
    "quad9": ("Quadrilateral_9", 0x23),
    "triangle6": ("Triangle_6", 0x24),
    "quad8": ("Quadrilateral_8", 0x25),
    "tetra10": ("Tetrahedron_10", 0x26),
    "pyramid13": ("Pyramid_13", 0x27),
    "wedge15": ("Wedge_15", 0x28),
    "wedge18": ("Wedge_18", 0x29),
    "hexahedron20": ("Hexahedron_20", 0x30),
    "hexahedron24": ("Hexahedron_24", 0x31),
    "hexahedron27": ("Hexahedron_27", 0x32),
}
CELL_TYPES = tuple(NAMES)
_TYPES = {name.lower(): cell_type for cell_type, (name, _) in NAMES.items()}
_SHORT = {
    "tri": "triangle",
    "quad": "quadrilateral",
    "tet": "tetrahedron",
    "hex": "hexahedron",
}
_OF_NUMBER = {number: cell_type for cell_type, (_, number) in NAMES.items()}
# Types that say how many nodes they have, which other files may give any number of.
_COUNTED = ("vertex", "line")


def cells_of(kind: str, numbers: NDArray[Any]) -> list[Cells]:
    """The blocks of a topology of one type, whose numbers may stand in a single row."""
    flat = numbers.reshape(-1)
    whole = flat.astype(np.int64)
    if (whole != flat).any():
        raise MeshprepError("a number of a node is no whole number")
    if kind.lower() == "mixed":
        return [*_split_mixed_cells(whole)]
    name = _cell_type(kind)
    n = node_count(name)
    width = numbers.shape[1] if numbers.ndim == 2 else n
    if width != n:
        check_node_count("cell 1", name, width)
    if whole.size % n:
        raise MeshprepError(
            f"{whole.size} numbers are given for cells of {n} nodes: the file is damaged"
        )
    return [Cells(name, whole.reshape(-1, n))]


def _cell_type(name: str) -> str:
    shape, line, digits = name.lower().partition("_")
    cell_type = _TYPES.get(f"{_SHORT.get(shape, shape)}{line}{digits}")
    if cell_type is None:
        if re.search("(?i)mesh", name):
            what = "a structured grid"
        else:
            what = "not known"
        raise MeshprepError(
            f"has a topology of type {quoted(name)}, which is {what}: write its cells as "
            "triangles, tetrahedra or the like"
        )
    return cell_type


def _split_mixed_cells(numbers: NDArray[np.int64]) -> Iterator[Cells]:
    """Blocks from (type, nodes) one after the other; points and lines give their counts."""
    words = numbers.tolist()
    pos = 0
    rows: dict[str, list[list[int]]] = {}
    cells = 0
    while pos < len(words):
        cells += 1
        cell_type = _OF_NUMBER.get(words[pos])
        if cell_type is None:
            raise MeshprepError(
                f"cell {cells} is of XDMF's type {words[pos]}, which is not known"
            )
        pos += 1
        # Polyvertices and polylines have any number of nodes, which stands before these.
        if cell_type in _COUNTED:
            check_node_count(
                f"cell {cells}", cell_type, words[pos] if pos < len(words) else 0
            )
            pos += 1
        nodes = words[pos : pos + node_count(cell_type)]
        check_node_count(f"cell {cells}", cell_type, len(nodes))
        pos += len(nodes)
        rows.setdefault(cell_type, []).append(nodes)
    return (Cells(cell_type, np.array(own)) for cell_type, own in rows.items())


def numbered(cells: Cells) -> NDArray[Any]:
    """The number of its type before each cell, and its number of nodes if that varies."""
    n = cells.data.shape[1]
    before = [NAMES[cells.type][1]]
    if cells.type in _COUNTED:
        before.append(n)
    return np.column_stack([np.full((len(cells.data), len(before)), before), cells.data])
