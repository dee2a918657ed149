"""VTU, where nearly all time goes into packing: blocks of zlib on all cores, else as meshio does.

The file is the same: arrays in base64, each as a header (number of blocks, their size, the size of
a last part, packed sizes) and blocks of 32 KiB packed by themselves.
"""

import binascii
import re
import sys
import zlib
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from html import unescape
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...kernels.parallel import each, pieces
from .own import meshio

_vtu = meshio.vtu._vtu

BLOCK = 1 << 15
# Meshes pack to nearly the same size at every level; this one takes half the time of the usual.
LEVEL = 1
_OF_CELLS = ("connectivity", "offsets", "types", "faces", "faceoffsets")
# Fewer blocks than this are done faster than threads start.
_MANY = 16
_RAW = re.compile(rb"""<AppendedData\s[^>]*encoding\s*=\s*["']raw""")


def read(path: str) -> meshio.Mesh:
    """Read a VTU file as meshio does; raises MeshprepError where it has several pieces."""
    found = _parsed(path)
    if found.names["connectivity"] > 1:
        count = len(re.findall(rb"<Piece[\s>]", Path(path).read_bytes()))
        if count > 1:
            raise MeshprepError(f"has {count} pieces: merge them into one first")
    _check_names(found)
    values = {"point_data": found.point_data, "cell_data": found.cell_data}
    mesh = meshio.Mesh(found.points, found.cells, **values)
    mesh.whole_values = found.field_data
    mesh.arrays = read_arrays(path)
    return mesh


def _parsed(path: str) -> "_VtuReader":
    """meshio's reader cuts raw arrays at their last line break, and not every file ends in one."""
    with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        end = data.rfind(b"</AppendedData>")
        if end < 0 or not _RAW.search(data):
            return _VtuReader(path)
        tail = data[max(end - 80, 0) : end]
        if tail.rstrip(b" \t\r").endswith(b"\n"):
            try:
                return _VtuReader(path)
            except Exception:
                # that of a tetrahedron as the last of the types is no line break
                if not tail.endswith(b"\n"):
                    raise
        with NamedTemporaryFile(suffix=".vtu") as copy:
            copy.write(data[:end] + b"\n" + data[end:])
            copy.flush()
            return _VtuReader(copy.name)


def _check_names(found: "_VtuReader") -> None:
    """Raise MeshprepError where one of several arrays of a name is lost."""
    kept = Counter[str]()
    for arrays in (found.point_data, found.cell_data, found.field_data):
        kept.update(list(arrays or ()))
    more = found.names - kept - Counter(_OF_CELLS)
    # one of them is that of the points, whatever its name
    if more.total() > 1:
        name = next((n for n in more if kept[n]), next(iter(more)))
        raise MeshprepError(f"has several arrays '{name}' of one kind: rename them")


class _VtuReader(meshio.vtu._vtu.VtuReader):
    """meshio's reader, with its slowest part on all cores.

    ``names`` counts the arrays of each name.
    """

    def __init__(self, path: str) -> None:
        self.names: Counter[str] = Counter()
        super().__init__(path)

    def read_data(self, c: Any) -> NDArray:
        """The values of a ``DataArray``."""
        self.names[c.get("Name", "")] += 1
        return super().read_data(c)

    def read_compressed_binary(self, data: str, dtype: np.dtype) -> NDArray:
        """The values of an array; raises ValueError or zlib.error where it is damaged."""
        found = None
        if self.compression == "vtkZLibDataCompressor":
            big = self.byte_order == "BigEndian"
            kind = np.dtype(_vtu.vtu_to_numpy_type[self.header_type])
            found = _unpack(data, kind.newbyteorder(">" if big else "<"))
        if found is None:
            return super().read_compressed_binary(data, dtype)
        return np.frombuffer(found, dtype.newbyteorder(">" if big else "<"))


def _unpack(data: str, kind: np.dtype) -> bytes | None:
    """The bytes of an array; None where its base64 is interrupted, by line breaks say."""
    count = int(np.frombuffer(_begin(data, kind.itemsize), kind)[0])
    header_bytes = (3 + count) * kind.itemsize
    size = np.frombuffer(_begin(data, header_bytes), kind)[3:].astype(np.int64)
    stop = np.cumsum(size)
    total = int(size.sum())
    if size.size and (size.min() < 0 or stop.min() < 0 or total > len(data)):
        raise ValueError("an array ends before the last of its blocks")
    begin = _letters(header_bytes)
    try:
        packed = binascii.a2b_base64(data[begin : begin + _letters(total)], strict_mode=True)
    except binascii.Error:
        return None
    if len(packed) != total:
        return None
    view, start = memoryview(packed), (stop - size).tolist()
    tasks = [(view, start[a:b], stop[a:b].tolist()) for a, b in pieces(count, _MANY)]
    return b"".join(each(_unpacked, tasks))


def _letters(n: int) -> int:
    """How many letters of base64 stand for ``n`` bytes."""
    return (n + 2) // 3 * 4


def _begin(data: str, n: int) -> bytes:
    out = binascii.a2b_base64(data[: _letters(n)])[:n]
    if len(out) < n:
        raise ValueError(f"an array begins with {n} bytes, which are not there")
    return out


def _unpacked(view: memoryview, start: list[int], stop: list[int]) -> bytes:
    return b"".join(zlib.decompress(view[a:b]) for a, b in zip(start, stop, strict=True))


def write(path: str, mesh: meshio.Mesh, *, header_type: str = "UInt64") -> None:
    """Write a mesh of three coordinates a node, without sets, to a VTU file.

    ``header_type`` is ``"UInt32"`` or ``"UInt64"``: the numbers that sizes are written as.
    """
    if header_type not in ("UInt32", "UInt64"):
        raise ValueError(f"header_type is {header_type}, must be UInt32 or UInt64")
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    n_cells = sum(len(block.data) for block in mesh.cells)
    with open(path, "wb") as file:
        _put(
            file,
            f'<VTKFile type="UnstructuredGrid" version="0.1" byte_order="{order}" '
            f'header_type="{header_type}" compressor="vtkZLibDataCompressor">\n'
            f"<UnstructuredGrid>\n",
        )
        if whole := getattr(mesh, "whole_values", {}):
            _put(file, "<FieldData>\n")
            for name, values in whole.items():
                _write_array(file, name, values, header_type, f' NumberOfTuples="{len(values)}"')
            _put(file, "</FieldData>\n")
        _put(file, f'<Piece NumberOfPoints="{len(mesh.points)}" NumberOfCells="{n_cells}">\n')
        said = getattr(mesh, "arrays", {})
        for group, arrays in _groups(mesh):
            told = said.get(group, PlaceArrays())
            _put(file, f"<{group}{told.roles_of(arrays)}>\n")
            for name, values in arrays.items():
                _write_array(file, name, values, header_type, told.names_of(name, values))
            _put(file, f"</{group}>\n")
        _put(file, "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n")


def _put(file: BinaryIO, text: str) -> None:
    file.write(text.encode())


def _groups(mesh: meshio.Mesh) -> Iterator[tuple[str, dict[str, NDArray]]]:
    yield "Points", {"Points": mesh.points}
    yield "Cells", dict(_cell_arrays(mesh))
    if mesh.point_data:
        yield "PointData", mesh.point_data
    if mesh.cell_data:
        yield "CellData", meshio._common.raw_from_cell_data(mesh.cell_data)


def _cell_arrays(mesh: meshio.Mesh) -> Iterator[tuple[str, NDArray]]:
    tables = []
    for block in mesh.cells:
        order = meshio._vtk_common.meshio_to_vtk_order(block.type)
        tables.append(block.data if order is None else block.data[:, order])
    yield "connectivity", np.concatenate([table.reshape(-1) for table in tables])
    counts = [len(table) for table in tables]
    offsets = np.cumsum(np.repeat([table.shape[1] for table in tables], counts))
    small = offsets[-1] <= np.iinfo(np.int32).max
    yield "offsets", offsets.astype(np.int32 if small else np.int64)
    kinds = [meshio._vtk_common.meshio_to_vtk_type[block.type] for block in mesh.cells]
    yield "types", np.repeat(np.array(kinds, dtype=np.uint8), counts)


def _write_array(file: BinaryIO, name: str, values: NDArray, header_type: str, names: str) -> None:
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    width = f' NumberOfComponents="{values.shape[1]}"{names}' if values.ndim == 2 else names
    kind = _vtu.numpy_to_vtu_type[values.dtype]
    _put(file, f'<DataArray type="{kind}" Name={quoteattr(name)}{width} format="binary">')
    data = values.reshape(-1).view(np.uint8).data
    count = -(-len(data) // BLOCK)
    parts = each(_packed, [(data, a, b) for a, b in pieces(count, _MANY)])
    packed = [block for part in parts for block in part]
    header = [count, BLOCK, len(data) - (count - 1) * BLOCK, *map(len, packed)]
    head = np.array(header, dtype=_vtu.vtu_to_numpy_type[header_type])
    file.write(binascii.b2a_base64(head.data, newline=False))
    file.write(binascii.b2a_base64(b"".join(packed), newline=False))
    _put(file, "</DataArray>\n")


def _packed(data: memoryview, first: int, stop: int) -> list[bytes]:
    return [
        zlib.compress(data[i : i + BLOCK], LEVEL) for i in range(first * BLOCK, stop * BLOCK, BLOCK)
    ]


_PLACES = ("PointData", "CellData")
_ATTRIBUTE = rb"""\s+([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')"""
_TAG = re.compile(rb"<(PointData|CellData|FieldData|Points|Cells|DataArray)((?:%b)*)" % _ATTRIBUTE)
_COMPONENT = re.compile(r"ComponentName(\d+)")


@dataclass(frozen=True)
class PlaceArrays:
    """What is said of the arrays of nodes, or of cells."""

    roles: dict[str, str] = field(default_factory=dict)  # such as Scalars, Vectors, GlobalIds
    # By name of array and number of the component.
    components: dict[str, dict[int, str]] = field(default_factory=dict)

    def roles_of(self, arrays: Container[str]) -> str:
        """The attributes that give these arrays their roles."""
        held = {role: name for role, name in self.roles.items() if name in arrays}
        return "".join(f" {role}={quoteattr(name)}" for role, name in held.items())

    def names_of(self, array: str, values: NDArray) -> str:
        """The attributes that name the components of an array."""
        width = values.shape[1] if values.ndim == 2 else 1
        names = self.components.get(array, {})
        return "".join(
            f" ComponentName{i}={quoteattr(name)}" for i, name in names.items() if i < width
        )


def read_arrays(path: str) -> dict[str, PlaceArrays]:
    """What a file says, by place; only places of which it says something. O(bytes)."""
    found = {place: PlaceArrays() for place in _PLACES}
    place = ""
    with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        tags = [(m[1].decode(), _attributes(m[2])) for m in _TAG.finditer(data)]
    for tag, attributes in tags:
        if tag != "DataArray":
            place = tag
            if place in found:
                found[place].roles.update(attributes)
        elif place in found:
            matches = ((_COMPONENT.fullmatch(key), value) for key, value in attributes.items())
            names = {int(match[1]): value for match, value in matches if match}
            if names:
                found[place].components[attributes.get("Name", "")] = names
    return {place: said for place, said in found.items() if said != PlaceArrays()}


def _attributes(text: bytes) -> dict[str, str]:
    pairs = re.findall(_ATTRIBUTE, text)
    return {
        key.decode(): unescape((double or single).decode("utf-8", "replace"))
        for key, double, single in pairs
    }
