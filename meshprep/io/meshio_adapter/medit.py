"""Medit's files, text and binary: read here, and written through meshio."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import node_count
from .file_mesh import Cells, FileMesh
from .outgoing import write_by_meshio

# Types by keyword, and the numbers of keywords in binary files.
_TYPES = {
    **{"Edges": "line", "Triangles": "triangle", "Quadrilaterals": "quad", "Tetrahedra": "tetra"},
    **{"Prisms": "wedge", "Hexahedra": "hexahedron", "Hexaedra": "hexahedron"},
    "Pyramids": "pyramid",
}
_KEYWORDS = {3: "Dimension", 4: "Vertices", 5: "Edges", 6: "Triangles", 7: "Quadrilaterals"}
_KEYWORDS |= {8: "Tetrahedra", 9: "Prisms", 10: "Hexahedra", 49: "Pyramids"}
_END = 54
# By version: whole numbers, others, and places in the file.
_WIDTHS = {
    1: ("i4", "f4", "i4"),
    2: ("i4", "f8", "i4"),
    3: ("i4", "f8", "i8"),
    4: ("i8", "f8", "i8"),
}
_SECTION = re.compile(r"^\s*([A-Za-z]{3,})\b", re.MULTILINE)
_REF = "medit:ref"


def read(path: Path) -> FileMesh:
    """Read a file; sections that are no nodes and cells are left out, and listed."""
    data = path.read_bytes()
    binary = int.from_bytes(data[:4], "little") in (1, 1 << 24)
    mesh, dim = FileMesh(np.empty((0, 3)), []), 3
    mesh.cell_data[_REF] = []
    for name, count, values in _binary_sections(data) if binary else _sections(data):
        if name == "Dimension":
            dim = count
        elif name == "Vertices":
            rows = _rows(name, count, values, dim + 1)
            mesh.points, mesh.point_data[_REF] = rows[:, :dim], rows[:, dim].astype(np.int64)
        elif name in _TYPES:
            rows = _rows(name, count, values, 1 + node_count(_TYPES[name])).astype(np.int64)
            mesh.cells.append(Cells(_TYPES[name], rows[:, :-1] - 1))
            mesh.cell_data[_REF].append(rows[:, -1])
        elif name not in ("End", "MeshVersionFormatted") and count:
            mesh.left_out.append(name)
    return mesh


def _rows(name: str, count: int, values: NDArray[Any], width: int) -> NDArray[Any]:
    if values.size != count * width:
        raise MeshprepError(
            f"declares {count} {name} of {width} numbers each, but has {values.size} numbers: "
            "the file is truncated or damaged"
        )
    return values.reshape(count, width)


def _sections(data: bytes) -> Iterator[tuple[str, int, NDArray[Any]]]:
    """Name, first number and the other numbers of each section of a text."""
    text = re.sub(r"#.*", "", data.decode())
    found = [*_SECTION.finditer(text)]
    for one, end in zip(found, [*(f.start() for f in found[1:]), len(text)], strict=True):
        if one[1] in ("Dimension", "Vertices", *_TYPES):
            values = np.fromstring(text[one.end() : end], sep=" ")
            yield one[1], int(values[0]), values[1:]
        else:
            count = text[one.end() : end].split(maxsplit=1)
            yield one[1], int(count[0] != "0") if count else 0, np.empty(0)


def _binary_sections(data: bytes) -> Iterator[tuple[str, int, NDArray[Any]]]:
    order = "<" if data[0] == 1 else ">"
    version = int(np.frombuffer(data, f"{order}i4", 1, 4)[0])
    whole, real, place = (f"{order}{kind}" for kind in _WIDTHS[version])
    at, dim = 8, 3
    while True:
        key = int(np.frombuffer(data, f"{order}i4", 1, at)[0])
        if key == _END:
            return
        after = int(np.frombuffer(data, place, 1, at + 4)[0])
        begin = at + 4 + np.dtype(place).itemsize
        name = _KEYWORDS.get(key, f"keyword {key}")
        if name == "Dimension":
            dim = int(np.frombuffer(data, f"{order}i4", 1, begin)[0])
            yield name, dim, np.empty(0)
        else:
            count, begin = int(np.frombuffer(data, whole, 1, begin)[0]), begin + int(whole[-1])
            values = np.empty(0)
            if name == "Vertices":
                row = np.dtype([("x", real, (dim,)), ("ref", whole)])
                rows = np.frombuffer(data, row, count, begin)
                values = np.column_stack([rows["x"], rows["ref"]])
            elif name in _TYPES:
                width = 1 + node_count(_TYPES[name])
                values = np.frombuffer(data, whole, count * width, begin)
            yield name, count, values.reshape(-1)
        if after <= at:
            raise MeshprepError(f"section {name} ends before it begins: the file is damaged")
        at = after


def write(path: Path, mesh: FileMesh) -> None:
    """Write a file, text or binary as its ending says."""
    write_by_meshio("medit", path, mesh)
