"""Legacy VTK files, and cells as all of VTK's files have them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count
from .file_mesh import Cells, FileMesh

_NAMES = "1 vertex 3 line 5 triangle 7 polygon 9 quad 10 tetra 12 hexahedron 13 wedge 14 pyramid "
_NAMES += "21 line3 22 triangle6 23 quad8 24 tetra10 25 hexahedron20 26 wedge15 27 pyramid13 "
_NAMES += "28 quad9 29 hexahedron27 31 wedge12 32 wedge18 33 hexahedron24 34 triangle7 35 line4 "
_NAMES += "42 polyhedron 68 VTK_LAGRANGE_CURVE 69 VTK_LAGRANGE_TRIANGLE "
_NAMES += "70 VTK_LAGRANGE_QUADRILATERAL 71 VTK_LAGRANGE_TETRAHEDRON 72 VTK_LAGRANGE_HEXAHEDRON "
_NAMES += "73 VTK_LAGRANGE_WEDGE 74 VTK_LAGRANGE_PYRAMID"
# Cells by VTK's number.
_TYPES = {int(number): name for number, name in re.findall(r"(\d+) (\S+)", _NAMES)}
CELL_TYPES = tuple(t for t in _TYPES.values() if not t.startswith("poly"))
_NUMBER = {name: number for number, name in _TYPES.items()}
# VTK has wedges the other way round.
_WEDGE = [0, 2, 1, 3, 5, 4]
# VTK's types of numbers; its identifiers go to the file as 32 bits.
_KINDS = {
    **{"char": "int8", "signed_char": "int8", "unsigned_char": "uint8"},
    **{"short": "int16", "unsigned_short": "uint16", "int": "int32", "unsigned_int": "uint32"},
    **{"long": "int64", "unsigned_long": "uint64", "vtkidtype": "int32"},
    **{"float": "float32", "double": "float64"},
    **{f"vtktype{u}int{n}": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
}
_WRITTEN = {"int64": "vtktypeint64", "uint64": "vtktypeuint64"}
_WRITTEN |= {"float32": "float", "float64": "double"}
_WIDTHS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9}
# What VTK writes into names as it is.
_PLAIN = "".join(chr(i) for i in range(33, 127) if chr(i) not in '"%')


def cells_of(
    connectivity: NDArray[Any], stop: NDArray[Any], types: NDArray[Any], data: Mapping[str, NDArray]
) -> tuple[list[Cells], dict[str, list[NDArray]]]:
    """Blocks of cells, one for each type and size, and values on them. O(n).

    Raises MeshprepError where the arrays do not fit each other, or types are not known.
    """
    stop = stop.astype(np.int64)
    if len(stop) != len(types) or (stop[-1] if stop.size else 0) != len(connectivity):
        raise MeshprepError(
            f"its cells have {stop[-1] if stop.size else 0} nodes together, but "
            f"{len(connectivity)} are given: the file is truncated or damaged"
        )
    for name, values in data.items():
        if len(values) != len(types):
            raise MeshprepError(
                f"values '{name}' are {len(values)}, but there are {len(types)} cells: "
                "the file is truncated or damaged"
            )
    size = np.diff(stop, prepend=0)
    kinds, first, of = np.unique(
        types.astype(np.int64) << 32 | (size & 0xFFFFFFFF), return_index=True, return_inverse=True
    )
    cells, rows = [], [np.flatnonzero(of == k) for k in np.argsort(first)]
    for own in rows:
        number, n = int(types[own[0]]), int(size[own[0]])
        name = _TYPES.get(number, "")
        if not name or name.startswith("poly"):
            raise MeshprepError(
                f"holds cells of VTK's type {number} '{name}', which are not supported: split them "
                "into triangles, tetrahedra or the like"
            )
        check_node_count(f"cell {own[0] + 1}", name, n)
        whole = len(kinds) == 1
        at = slice(None) if whole else stop[own, None] + np.arange(-n, 0)
        table = connectivity[at].reshape(-1, n)
        cells.append(Cells(name, table[:, _WEDGE] if name == "wedge" else table))
    return cells, {name: [values[own] for own in rows] for name, values in data.items()}


def arrays_of(mesh: FileMesh) -> dict[str, NDArray[Any]]:
    """Connectivity, ends and types of the cells."""
    tables = [c.data[:, _WEDGE] if c.type == "wedge" else c.data for c in mesh.cells]
    counts = [len(table) for table in tables]
    stop = np.cumsum(np.repeat([table.shape[1] for table in tables], counts))
    kinds = np.array([_NUMBER[c.type] for c in mesh.cells], np.uint8)
    connectivity = np.concatenate([table.reshape(-1) for table in tables])
    return {"connectivity": connectivity, "offsets": stop, "types": np.repeat(kinds, counts)}


def whole_data(mesh: FileMesh) -> dict[str, NDArray[Any]]:
    """Values of all cells, one block after the other."""
    return {name: np.concatenate(blocks) for name, blocks in mesh.cell_data.items()}


def put(arrays: dict[str, NDArray], name: str, values: NDArray) -> None:
    """Add an array; raises MeshprepError where there is one of that name."""
    if name in arrays:
        raise MeshprepError(f"has several arrays of one name, '{name}': rename them")
    arrays[name] = values


class _Legacy:
    """A legacy file that is read."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.file, self.size = file, path.stat().st_size
        file.readline()
        file.readline()
        kind = file.readline().strip().upper()
        if kind not in (b"ASCII", b"BINARY"):
            raise MeshprepError("is neither ASCII nor BINARY: not a readable VTK file")
        self.text = kind == b"ASCII"

    def words(self) -> list[str]:
        """The words of the next line that has some; none at the end."""
        for line in iter(self.file.readline, b""):
            if line.strip():
                return line.decode().split()
        return []

    def numbers(self, n: int, kind: str) -> NDArray[Any]:
        """So many numbers of one of VTK's types."""
        if kind.lower() not in _KINDS:
            raise MeshprepError(
                f"holds values of type {kind}, which are not read: write them as int"
            )
        dtype = np.dtype(_KINDS[kind.lower()])
        left = self.size - self.file.tell()
        if not 0 <= n * (2 if self.text else dtype.itemsize) <= left + 1:
            raise MeshprepError(f"{n} numbers are declared, but {left} bytes are left")
        if self.text:
            found = np.fromfile(self.file, dtype, n, " ")
        else:
            found = np.fromfile(self.file, dtype.newbyteorder(">"), n).astype(dtype)
        if found.size < n:
            raise MeshprepError(f"{n} numbers are declared, but {found.size} follow")
        return found

    def rows(self, n: int, width: int, kind: str) -> NDArray[Any]:
        """Rows of numbers."""
        found = self.numbers(n * width, kind)
        return found.reshape(n, width) if width > 1 else found

    def cells(self, n: int, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Connectivity and ends of the cells."""
        start = self.file.tell()
        line = self.file.readline().split()
        if line[:1] == [b"OFFSETS"]:
            stop = self.numbers(n, line[1].decode())[1:]
            return self.numbers(size, self.words()[1]), stop
        self.file.seek(start)
        # older files have its number of nodes before each cell
        flat = self.numbers(size, "int")
        words, at, heads = flat.tolist(), 0, list[int]()
        while len(heads) < n and at < size:
            heads.append(at)
            at += 1 + max(words[at], 0)
        if at != size or len(heads) != n:
            raise MeshprepError(
                f"its {n} cells take {at} numbers, but {size} are given: the file is truncated or "
                "damaged"
            )
        return np.delete(flat, heads), np.array([*heads[1:], at]) - np.arange(1, n + 1)


def read(path: Path) -> FileMesh:
    """Read a legacy VTK file of an unstructured grid, with the names that VTK shows."""
    mesh, types = FileMesh(np.empty((0, 3)), []), np.empty(0, np.int32)
    cells, cell_data = (np.empty(0, np.int64), np.empty(0, np.int64)), dict[str, Any]()
    place, n = mesh.whole_values, 0
    with path.open("rb") as opened:
        file = _Legacy(path, opened)
        fields = 0
        while words := file.words():
            name, *rest = words
            key = name.upper()
            if key == "METADATA":
                for line in iter(lambda: opened.readline().strip(), b""):
                    if line == b"COMPONENT_NAMES":
                        mesh.left_out.append("names of components")
            elif fields:
                width, rows, kind = rest
                put(place, unquote(name), file.rows(int(rows), int(width), kind))
                fields -= 1
            elif key == "DATASET" and rest[0].upper() != "UNSTRUCTURED_GRID":
                by = f"meshio convert {path.name} new.vtu"
                if rest[0].upper() == "POLYDATA":
                    # which meshio does not read
                    by = "ParaView's filter Append Datasets, and save that as .vtu"
                raise MeshprepError(f"holds {rest[0]}: convert it with {by}")
            elif key == "POINTS":
                mesh.points = file.rows(int(rest[0]), 3, rest[1])
            elif key == "CELLS":
                cells = file.cells(int(rest[0]), int(rest[1]))
            elif key == "CELL_TYPES":
                types = file.numbers(int(rest[0]), "int")
            elif key in ("POINT_DATA", "CELL_DATA"):
                place, n = mesh.point_data if key[0] == "P" else cell_data, int(rest[0])
            elif key == "FIELD":
                fields = int(rest[1])
            elif key == "SCALARS":
                file.words()
                values = file.rows(n, int(rest[2]) if len(rest) > 2 else 1, rest[1])
                put(place, unquote(rest[0]), values)
            elif key in _WIDTHS:
                put(place, unquote(rest[0]), file.rows(n, _WIDTHS[key], rest[1]))
            elif key in ("LOOKUP_TABLE", "COLOR_SCALARS"):
                count = 4 * int(rest[1]) if key[0] == "L" else n * int(rest[1])
                file.numbers(count, "double" if file.text else "unsigned_char")
                what = "lookup table" if key[0] == "L" else "colours"
                mesh.left_out.append(f"{what} '{unquote(rest[0])}'")
            elif key != "DATASET":
                raise MeshprepError(f"has a section {name}, which is not known: take it out")
    mesh.cells, mesh.cell_data = cells_of(*cells, types, cell_data)
    return mesh


def write(path: Path, mesh: FileMesh) -> None:
    """Write a legacy VTK file, binary, with names that VTK reads as they are."""
    arrays = arrays_of(mesh)
    n_points, n_cells = len(mesh.points), len(arrays["types"])
    with path.open("wb") as file:

        def write(text: str, values: NDArray[Any], kind: str) -> None:
            file.write(f"{text}\n".encode())
            file.write(values.astype(f">{kind}").tobytes() + b"\n")

        file.write(b"# vtk DataFile Version 5.1\nwritten by meshprep\nBINARY\n")
        write(f"DATASET UNSTRUCTURED_GRID\nPOINTS {n_points} double", mesh.points, "f8")
        sizes = f"{n_cells + 1} {len(arrays['connectivity'])}"
        stop = np.concatenate([[0], arrays["offsets"]])
        write(f"CELLS {sizes}\nOFFSETS vtktypeint64", stop, "i8")
        write("CONNECTIVITY vtktypeint64", arrays["connectivity"], "i8")
        write(f"CELL_TYPES {n_cells}", arrays["types"], "i4")
        of_cells = whole_data(mesh)
        for place, n, data in (("POINT", n_points, mesh.point_data), ("CELL", n_cells, of_cells)):
            if data:
                file.write(f"{place}_DATA {n}\nFIELD FieldData {len(data)}\n".encode())
            for name, values in data.items():
                width = values.shape[1] if values.ndim == 2 else 1
                kind, word = values.dtype.str[1:], _WRITTEN[values.dtype.name]
                write(f"{quote(name, safe=_PLAIN)} {width} {n} {word}", values, kind)
