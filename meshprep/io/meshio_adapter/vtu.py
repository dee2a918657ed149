"""VTU files: arrays as text, in base64 or raw, packed on all cores.

A packed array is a header (number of blocks, their size, the size of a last part, packed sizes) and
blocks of 32 KiB packed by themselves.
"""

import binascii
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal
from xml.etree.ElementTree import Element, fromstring
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...kernels.parallel import each, pieces
from .file_mesh import FileMesh
from .vtk import arrays_of, cells_of, put, whole_data

BLOCK = 1 << 15
# Meshes pack to nearly the same size at every level; this one takes half the time of the usual.
LEVEL = 1
# Fewer blocks than this are done faster than threads start.
_MANY = 16
_APPENDED = re.compile(rb"<AppendedData(\s[^>]*)?>\s*_")
_UNPACK = {"vtkZLibDataCompressor": zlib.decompress, "vtkLZMADataCompressor": lzma.decompress}
_COMPONENT = "ComponentName"


class _File:
    """The elements of a file, and how its arrays stand in it."""

    def __init__(self, data: bytes) -> None:
        begin = _APPENDED.search(data)
        head = data if begin is None else data[: begin.end() - 1] + b"</AppendedData></VTKFile>"
        self.appended = b"" if begin is None else data[begin.end() :]
        self.raw = begin is not None and b"raw" in begin[0]
        self.root = fromstring(head)
        self.order: Literal["<", ">"] = ">" if self.root.get("byte_order") == "BigEndian" else "<"
        width = int(self.root.get("header_type", "UInt32").removeprefix("UInt")) // 8
        self.header = np.dtype(f"{self.order}u{width}")
        name = self.root.get("compressor")
        if name is not None and name not in _UNPACK:
            raise MeshprepError(f"is packed by {name}, which is not read: save it with ZLib")
        self.unpack = _UNPACK.get(name or "")

    def array(self, item: Element) -> NDArray[Any]:
        """The values of a ``DataArray``."""
        kind = np.dtype(item.get("type", "").lower()).newbyteorder(self.order)
        if item.get("format", "ascii") == "ascii":
            values = np.fromstring(item.text or "", kind.newbyteorder("="), sep=" ")
        else:
            raw = item.get("format") == "appended" and self.raw
            blob = (item.text or "").encode()
            if item.get("format") == "appended":
                blob = self.appended[int(item.get("offset", "")) :]
            blob = blob if raw else b"".join(blob.partition(b"<")[0].split())
            values = np.frombuffer(self._bytes(blob, raw), kind).astype(kind.newbyteorder("="))
        width = int(item.get("NumberOfComponents") or 1)
        return values.reshape(-1, width) if width > 1 else values

    def _bytes(self, blob: bytes, raw: bool) -> bytes:
        """The bytes of an array, unpacked."""

        def take(at: int, n: int) -> bytes:
            """``n`` bytes; those of base64 begin at this letter."""
            piece = blob[at : at + n] if raw else binascii.a2b_base64(blob[at : at + _letters(n)])
            if not 0 <= n <= len(piece):
                raise ValueError(f"an array ends before the last of its {n} bytes")
            return piece[:n]

        width = self.header.itemsize
        count = int(np.frombuffer(take(0, width), self.header)[0])
        if self.unpack is None:
            # the size may be a text of its own
            together = raw or b"=" not in blob[: _letters(width)]
            return take(0, width + count)[width:] if together else take(_letters(width), count)
        size = width * (3 + count)
        sizes = np.frombuffer(take(0, size), self.header)[3:].astype(np.int64)
        stop = np.cumsum(sizes)
        if sizes.size and (sizes.min() < 0 or stop.max() > len(blob)):
            raise ValueError("an array ends before the last of its blocks")
        packed, start = memoryview(take(size if raw else _letters(size), sizes.sum())), stop - sizes
        tasks = [(packed, self.unpack, start[a:b], stop[a:b]) for a, b in pieces(count, _MANY)]
        return b"".join(each(_unpacked, tasks))


def _letters(n: int) -> int:
    """How many letters of base64 stand for ``n`` bytes."""
    return (n + 2) // 3 * 4


def _unpacked(view: memoryview, unpack: Any, start: NDArray[Any], stop: NDArray[Any]) -> bytes:
    return b"".join(unpack(view[a:b]) for a, b in zip(start.tolist(), stop.tolist(), strict=True))


def read(path: Path) -> FileMesh:
    """Read a VTU file; raises MeshprepError where it has several pieces, or names stand twice."""
    file = _File(path.read_bytes())
    parts = file.root.findall("UnstructuredGrid/Piece")
    if len(parts) != 1:
        raise MeshprepError(f"has {len(parts)} pieces: merge them into one first")
    found: dict[str, dict[str, NDArray[Any]]] = {}
    mesh = FileMesh(np.empty(0), [])
    for place in [*file.root.iter("FieldData"), *parts[0]]:
        arrays = found.setdefault(place.tag, {})
        said = {"": dict(place.attrib)}
        for item in place.iter("DataArray"):
            name = item.get("Name", "")
            if item.get("type") == "String":
                mesh.left_out.append(f"the text '{name}'")
                continue
            put(arrays, name, file.array(item))
            said[name] = {k: v for k, v in item.attrib.items() if k.startswith(_COMPONENT)}
        if place.tag in ("PointData", "CellData") and any(said.values()):
            mesh.arrays[place.tag] = said
    (mesh.points,) = found["Points"].values()
    mesh.point_data, mesh.whole_values = found.get("PointData", {}), found.get("FieldData", {})
    connectivity, stop, types = (
        found["Cells"][name] for name in ("connectivity", "offsets", "types")
    )
    data = found.get("CellData", {})
    mesh.cells, mesh.cell_data = cells_of(connectivity, stop, types, data)
    sizes = len(mesh.points), len(types)
    declared = tuple(int(parts[0].get(f"NumberOf{of}", "")) for of in ("Points", "Cells"))
    if sizes != declared:
        raise MeshprepError(
            f"declares {declared[0]} points and {declared[1]} cells, but has {sizes[0]} and "
            f"{sizes[1]}: the file is damaged"
        )
    return mesh


def write(path: Path, mesh: FileMesh) -> None:
    """Write a mesh of three coordinates a node, without sets, to a VTU file."""
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    n_cells = sum(len(block.data) for block in mesh.cells)
    with path.open("wb") as file:
        _put(
            file,
            f'<VTKFile type="UnstructuredGrid" version="0.1" byte_order="{order}" '
            f'header_type="UInt64" compressor="vtkZLibDataCompressor">\n<UnstructuredGrid>\n',
        )
        if mesh.whole_values:
            _put(file, "<FieldData>\n")
            for name, values in mesh.whole_values.items():
                _write_array(file, name, values, f' NumberOfTuples="{len(values)}"')
            _put(file, "</FieldData>\n")
        _put(file, f'<Piece NumberOfPoints="{len(mesh.points)}" NumberOfCells="{n_cells}">\n')
        for place, arrays in _places(mesh):
            said = mesh.arrays.get(place, {})
            roles = {role: name for role, name in said.get("", {}).items() if name in arrays}
            _put(file, f"<{place}{_attributes(roles)}>\n")
            for name, values in arrays.items():
                width = values.shape[1] if values.ndim == 2 else 1
                known = said.get(name, {}).items()
                names = {k: v for k, v in known if int(k.removeprefix(_COMPONENT)) < width}
                _write_array(file, name, values, _attributes(names))
            _put(file, f"</{place}>\n")
        _put(file, "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n")


def _put(file: BinaryIO, text: str) -> None:
    file.write(text.encode())


def _attributes(values: dict[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in values.items())


def _places(mesh: FileMesh) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    yield "Points", {"Points": mesh.points}
    arrays = arrays_of(mesh)
    if arrays["connectivity"].size <= np.iinfo(np.int32).max:
        arrays["offsets"] = arrays["offsets"].astype(np.int32)
    yield "Cells", arrays
    if mesh.point_data:
        yield "PointData", mesh.point_data
    if mesh.cell_data:
        yield "CellData", whole_data(mesh)


def _write_array(file: BinaryIO, name: str, values: NDArray[Any], attributes: str) -> None:
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    kind = values.dtype.name.replace("u", "U", 1) if values.dtype.kind == "u" else ""
    kind = (kind or values.dtype.name.capitalize()).replace("int", "Int")
    width = f' NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
    head = f'<DataArray type="{kind}" Name={quoteattr(name)}{width}{attributes} format="binary">'
    _put(file, head)
    data = values.reshape(-1).view(np.uint8).data
    count = -(-len(data) // BLOCK)
    parts = each(_packed, [(data, a, b) for a, b in pieces(count, _MANY)])
    packed = [block for part in parts for block in part]
    header = [count, BLOCK, len(data) - (count - 1) * BLOCK, *map(len, packed)]
    file.write(binascii.b2a_base64(np.array(header, np.uint64).data, newline=False))
    file.write(binascii.b2a_base64(b"".join(packed), newline=False))
    _put(file, "</DataArray>\n")


def _packed(data: memoryview, first: int, stop: int) -> list[bytes]:
    return [
        zlib.compress(data[i : i + BLOCK], LEVEL) for i in range(first * BLOCK, stop * BLOCK, BLOCK)
    ]
