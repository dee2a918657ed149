"""VTU files: arrays as text, in base64 or raw, packed on all cores.

A packed array is a header (number of blocks, their size, the size of a last part, packed
sizes) and blocks of 32 KiB packed by themselves.
"""

import binascii
import re
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal
from xml.etree.ElementTree import Element, fromstring
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...kernels.parallel import each, pieces
from ..cell_blocks.file_mesh import FileMesh
from ..guard import DamagedFileError
from ..text.packed import Unpack, check_unpacked, packer, unpack_block
from ..text.quoting import quoted
from .cells import arrays_of, cells_of, put, whole_data
from .notes import FIELDS, POINTS, component, is_component, is_computed, notes_on

BLOCK = 1 << 15
# Meshes pack to nearly the same size at every level; this one takes half the time of the
# usual.
LEVEL = 1
# Fewer blocks than this are done faster than threads start.
_MANY = 16
# How files of VTK's older format begin, which some programs give this ending.
_LEGACY = b"# vtk DataFile"
_APPENDED = re.compile(rb"<AppendedData(\s[^>]*)?>\s*_")
_ENDS = "an array ends before the last of its"
# What is read of the cells, and what is there for polyhedra alone, which are refused.
_CELL_ARRAYS = ("types", "offsets", "connectivity")
_OF_POLYHEDRA = (
    "faces",
    "faceoffsets",
    "face_connectivity",
    "face_offsets",
    "polyhedron_to_faces",
    "polyhedron_offsets",
)


class _VtuFile:
    """The elements of a file, and how its arrays stand in it."""

    def __init__(self, data: bytes) -> None:
        begin = _APPENDED.search(data)
        if begin is None:
            head = data
        else:
            # Appended data begin behind an underscore and are no XML: parse what stands
            # before them alone.
            head = data[: begin.end() - 1] + b"</AppendedData></VTKFile>"
        self.size = len(data)
        if begin is None:
            self.appended = b""
        else:
            self.appended = data[begin.end() :]
        self.raw = begin is not None and b"raw" in begin[0]
        self.root = fromstring(head)
        self.order: Literal["<", ">"] = (
            ">" if self.root.get("byte_order") == "BigEndian" else "<"
        )
        # The whole numbers before each array have the type header_type, by default of 32
        # bits.
        width = int(self.root.get("header_type", "UInt32").removeprefix("UInt")) // 8
        self.header = np.dtype(f"{self.order}u{width}")
        # bytes of all arrays so far, and how many elements are known to have values
        self.unpacked = 0
        self.elements = 0

    def array(self, item: Element, rows: int | None = None) -> NDArray[Any]:
        """The values of a ``DataArray``, which must be so many rows."""
        width = int(item.get("NumberOfComponents") or 1)
        if width < 1:
            raise MeshprepError(f"array {_array_name(item)} has {width} components")
        if rows is None:
            count = None
        else:
            count = rows * width
        values = self._numbers(item, count)
        if count is None and values.size % width:
            raise MeshprepError(
                f"array {_array_name(item)} has {values.size} numbers, no rows of {width}: "
                "the file is damaged"
            )
        if count is not None and values.size != count:
            raise MeshprepError(
                f"array {_array_name(item)} has {values.size} numbers where {count} "
                "belong: the file is damaged"
            )
        if width > 1:
            return values.reshape(-1, width)
        return values

    def _numbers(self, item: Element, count: int | None) -> NDArray[Any]:
        word = item.get("type", "").lower()
        bits = word == "bit"
        # Bits stand packed, eight a byte; text has them as whole numbers.
        kind = np.dtype("uint8" if bits else word).newbyteorder(self.order)
        if item.get("format", "ascii") == "ascii":
            return _numbers_of_text(item, kind.newbyteorder("="))
        most = None
        if count is not None:
            if bits:
                most = -(-count // 8)
            else:
                most = count * kind.itemsize
        stored = np.frombuffer(self.bytes(item, most), kind).astype(kind.newbyteorder("="))
        if bits:
            return np.unpackbits(stored)[:count]
        return stored

    def texts(self, item: Element, rows: int | None = None) -> NDArray[np.str_]:
        """The texts of an array of strings, each of which ends with a zero."""
        width = int(item.get("NumberOfComponents") or 1)
        if item.get("format", "ascii") == "ascii":
            # VTK writes bytes above 127 with a sign
            data = (_numbers_of_text(item, np.dtype(np.int64)) & 255).astype("u1").tobytes()
        else:
            data = self.bytes(item)
        words = data.split(b"\0")[:-1]
        if rows is not None and len(words) != rows * width:
            raise MeshprepError(
                f"array {_array_name(item)} has {len(words)} texts where {rows * width} "
                "belong: the file is damaged"
            )
        made = np.array([text.decode() for text in words], np.str_)
        if width > 1:
            return made.reshape(-1, width)
        return made

    def bytes(self, item: Element, count: int | None = None) -> bytes:
        """The unpacked bytes of an array of numbers: as many as declared, if known."""
        # Inline data are base64 in the element; appended data begin at the offset of the
        # array, raw or base64.
        raw = item.get("format") == "appended" and self.raw
        blob = (item.text or "").encode()
        if item.get("format") == "appended":
            blob = self.appended[int(item.get("offset", "")) :]
        if raw:
            blob = blob
        else:
            blob = b"".join(blob.partition(b"<")[0].split())
        name = self.root.get("compressor")
        if name is None:
            return _plain_bytes(blob, raw, self.header)
        blocks = _Blocks(blob, raw, self.header)
        if count is not None and blocks.total != count:
            raise MeshprepError(
                f"array {_array_name(item)} declares {blocks.total} bytes where {count} "
                "belong: the file is damaged"
            )
        self.unpacked += blocks.total
        check_unpacked(
            what="it", n_bytes=self.unpacked, packed=self.size, elements=self.elements
        )
        return blocks.unpacked(packer(name))


def _array_name(item: Element) -> str:
    return quoted(item.get("Name", ""))


def _numbers_of_text(item: Element, kind: np.dtype[Any]) -> NDArray[Any]:
    # NumPy cuts numbers that do not fit: wider ones tell
    if kind.kind in "iu" and kind != np.uint64:
        wide = np.dtype(np.int64)
    else:
        wide = kind
    try:
        parsed = np.fromstring(item.text or "", wide, sep=" ")
    except (ValueError, DeprecationWarning):
        raise DamagedFileError(
            f"array {_array_name(item)} holds something that is no number"
        ) from None
    with np.errstate(over="ignore"):
        values = parsed.astype(kind)
    if kind.kind in "iu" and (values != parsed).any():
        raise DamagedFileError(
            f"array {_array_name(item)} holds a number too large for {kind.name}"
        )
    return values


def _decode_bytes(blob: bytes, raw: bool, at: int, n: int) -> bytes:
    """``n`` bytes; those of base64 begin at this letter."""
    if raw:
        piece = blob[at : at + n]
    else:
        piece = _decoded(blob[at : at + _letters(n)])
    if not 0 <= n <= len(piece):
        raise DamagedFileError(f"{_ENDS} {n} bytes")
    return piece[:n]


def _decoded(letters: bytes) -> bytes:
    try:
        return binascii.a2b_base64(letters)
    except binascii.Error:
        raise DamagedFileError("an array is no base64 text") from None


def _letters(n: int) -> int:
    """How many letters of base64 stand for ``n`` bytes."""
    return (n + 2) // 3 * 4


def _plain_bytes(blob: bytes, raw: bool, header: np.dtype[Any]) -> bytes:
    """The bytes of an array that is not packed, behind their number."""
    width = header.itemsize
    count = int(np.frombuffer(_decode_bytes(blob=blob, raw=raw, at=0, n=width), header)[0])
    # the number may be a text of its own, which then ends as such a text does
    padding = b"=" * (-width % 3)
    if raw or not blob[: _letters(width)].endswith(padding):
        return _decode_bytes(blob=blob, raw=raw, at=0, n=width + count)[width:]
    return _decode_bytes(blob=blob, raw=raw, at=_letters(width), n=count)


class _Blocks:
    """The packed blocks of an array, and how many bytes they are to hold."""

    def __init__(self, blob: bytes, raw: bool, header: np.dtype[Any]) -> None:
        width = header.itemsize
        self.count = int(
            np.frombuffer(_decode_bytes(blob=blob, raw=raw, at=0, n=width), header)[0]
        )
        # Before packed blocks stand their number, the bytes of an unpacked block, those
        # of the last one (0 where it is full), and the packed bytes of each.
        head = width * (3 + self.count)
        # of nothing there may be no more than the number of blocks
        if self.count == 0:
            head = width
        words = np.frombuffer(
            _decode_bytes(blob=blob, raw=raw, at=0, n=head), header
        ).astype(np.int64)
        # Find where each block begins and ends, and what it unpacks to.
        packed = words[3:]
        self.stop = np.cumsum(packed)
        if packed.size and (packed.min() < 0 or self.stop.max() > len(blob)):
            raise DamagedFileError(f"{_ENDS} blocks")
        self.start = self.stop - packed
        self.sizes = np.full(self.count, words[1] if self.count else 0)
        if self.count and words[2]:
            self.sizes[-1] = words[2]
        if self.sizes.size and not 0 <= self.sizes.min() <= self.sizes.max() < 1 << 40:
            raise DamagedFileError("an array declares blocks of an impossible size")
        self.total = sum(self.sizes.tolist())
        if raw:
            start = head
        else:
            start = _letters(head)
        self.packed = memoryview(
            _decode_bytes(blob=blob, raw=raw, at=start, n=int(packed.sum()))
        )

    def unpacked(self, unpack: Unpack) -> bytes:
        """The bytes of all blocks."""
        tasks = [
            (self.packed, unpack, self.start[a:b], self.stop[a:b], self.sizes[a:b])
            for a, b in pieces(self.count, _MANY)
        ]
        return b"".join(each(_unpacked, tasks))


def _unpacked(
    view: memoryview,
    unpack: Unpack,
    start: NDArray[Any],
    stop: NDArray[Any],
    sizes: NDArray[Any],
) -> bytes:
    parts = zip(start.tolist(), stop.tolist(), sizes.tolist(), strict=True)
    return b"".join(unpack_block(unpack, view[a:b], n) for a, b, n in parts)


class _VtuReader:
    """A mesh that grows place by place, and a list of what has no place in it."""

    def __init__(self, path: Path) -> None:
        self.file = _VtuFile(path.read_bytes())
        self.mesh = FileMesh(np.empty(0), [])
        grids = self.file.root.findall("UnstructuredGrid")
        if len(grids) != 1:
            kind = quoted(self.file.root.get("type", self.file.root.tag))
            raise MeshprepError(f"holds {kind}, not UnstructuredGrid: save it as such")
        self.grid = grids[0]
        parts = self.grid.findall("Piece")
        if len(parts) != 1:
            raise MeshprepError(f"has {len(parts)} pieces: merge them into one first")
        self.piece = parts[0]

    def read(self) -> FileMesh:
        mesh = self.mesh
        n_points = self._declared("NumberOfPoints")
        n_cells = self._declared("NumberOfCells")
        places: dict[str, dict[str, NDArray[Any]]] = {}
        # points and cells first: they say how many values there can be
        mesh.points = self._points(n_points)
        arrays = self._cell_arrays(n_cells)
        self.file.elements = n_points + n_cells
        for section in [*self.grid, *self.piece]:
            if section.tag == FIELDS:
                self._add_arrays(section, None, places.setdefault(FIELDS, {}))
            elif section.tag == "PointData":
                self._add_arrays(section, n_points, places.setdefault("PointData", {}))
            elif section.tag == "CellData":
                self._add_arrays(section, n_cells, places.setdefault("CellData", {}))
            elif section.tag not in ("Piece", "Cells", POINTS):
                mesh.left_out.append(f"the section {section.tag}")
        mesh.whole_values = places.get(FIELDS, {})
        mesh.point_data = places.get("PointData", {})
        mesh.cells, mesh.cell_data = cells_of(
            connectivity=arrays["connectivity"],
            stop=arrays["offsets"],
            types=arrays["types"],
            data=places.get("CellData", {}),
        )
        return mesh

    def _declared(self, name: str) -> int:
        text = self.piece.get(name, "")
        if not text.strip().isdigit():
            raise DamagedFileError(f"{name} is {quoted(text)}, no number")
        return int(text)

    def _add_arrays(
        self, place: Element, rows: int | None, found: dict[str, NDArray[Any]]
    ) -> None:
        """The arrays of a place, and what it says of them."""
        if place.attrib:
            notes_on(self.mesh, place.tag, "").update(place.attrib)
        for item in place:
            if item.tag not in ("DataArray", "Array"):
                self.mesh.left_out.append(f"the element {item.tag} of {place.tag}")
                continue
            declared_rows = rows
            if rows is None and item.get("NumberOfTuples"):
                declared_rows = int(item.get("NumberOfTuples", ""))
            if item.get("type") == "String":
                values: NDArray[Any] = self.file.texts(item, declared_rows)
            else:
                values = self.file.array(item, declared_rows)
            put(found, item.get("Name", ""), values)
            self._add_notes(place.tag, item.get("Name", ""), item)

    def _points(self, n_points: int) -> NDArray[Any]:
        items = self.piece.findall("Points/DataArray")
        if len(items) != 1:
            raise DamagedFileError(f"it has {len(items)} arrays of points in place of one")
        self._add_notes(POINTS, POINTS, items[0])
        return self.file.array(items[0], n_points)

    def _cell_arrays(self, n_cells: int) -> dict[str, NDArray[Any]]:
        """Types, ends and nodes of the cells, of which the ends say how many there are."""
        items = {i.get("Name", ""): i for i in self.piece.findall("Cells/DataArray")}
        self.mesh.left_out += [
            f"the array {quoted(name)} of the cells"
            for name in items
            if name not in (*_CELL_ARRAYS, *_OF_POLYHEDRA)
        ]
        for name in _CELL_ARRAYS:
            if name not in items:
                raise DamagedFileError(f"the array {quoted(name)} of the cells is missing")
        # Offsets are the ends of the cells in the connectivity: the last is its length.
        types = self.file.array(items["types"], n_cells)
        offsets = self.file.array(items["offsets"], n_cells)
        if offsets.size and (offsets.min() < 0 or (offsets[1:] < offsets[:-1]).any()):
            raise DamagedFileError("the offsets of its cells do not rise")
        count = int(offsets[-1]) if offsets.size else 0
        connectivity = self.file.array(items["connectivity"], count)
        return {"types": types, "offsets": offsets, "connectivity": connectivity}

    def _add_notes(self, place: str, name: str, item: Element) -> None:
        for key, value in item.attrib.items():
            if is_component(key):
                notes_on(self.mesh, place, name)[key] = value
        for note in item:
            word = note.get("name", note.tag)
            if not is_computed(word):
                self.mesh.left_out.append(
                    f"the note {quoted(word)[1:-1]} on {quoted(name)}"
                )


def read(path: Path) -> FileMesh:
    """Read a VTU file; raises MeshprepError for several pieces and repeated names."""
    with path.open("rb") as file:
        if file.read(len(_LEGACY)) == _LEGACY:
            raise MeshprepError(
                "is a legacy VTK file: give it the ending .vtk, or name its format by "
                "--format vtk (in Python format='vtk')"
            )
    return _VtuReader(path).read()


def write(mesh: FileMesh, path: Path) -> None:
    """Write a mesh of three coordinates a node, without sets, to a VTU file."""
    if sys.byteorder == "little":
        order = "LittleEndian"
    else:
        order = "BigEndian"
    n_cells = sum(len(block.data) for block in mesh.cells)
    with path.open("wb") as file:
        _put_text(
            file,
            f'<VTKFile type="UnstructuredGrid" version="0.1" byte_order="{order}" '
            'header_type="UInt64" compressor="vtkZLibDataCompressor">\n'
            "<UnstructuredGrid>\n",
        )
        # Values of the whole mesh stand before the piece, which has points and cells.
        if mesh.whole_values:
            _put_text(file, "<FieldData>\n")
            field_notes = mesh.arrays.get(FIELDS, {})
            for name, values in mesh.whole_values.items():
                rows = {"NumberOfTuples": str(len(values))}
                notes = rows | _components(field_notes.get(name, {}), values)
                _write_array(
                    file=file, name=name, values=values, attributes=_array_attributes(notes)
                )
            _put_text(file, "</FieldData>\n")
        _put_text(
            file, f'<Piece NumberOfPoints="{len(mesh.points)}" NumberOfCells="{n_cells}">\n'
        )
        # An element of values names which of its arrays have a role, such as Scalars="p".
        for section, arrays in _sections_of_values(mesh):
            field_notes = mesh.arrays.get(section, {})
            roles = {
                role: name
                for role, name in field_notes.get("", {}).items()
                if name in arrays
            }
            _put_text(file, f"<{section}{_array_attributes(roles)}>\n")
            for name, values in arrays.items():
                notes = _components(field_notes.get(name, {}), values)
                if values.dtype.kind == "U":
                    notes["NumberOfTuples"] = str(len(values))
                _write_array(
                    file=file, name=name, values=values, attributes=_array_attributes(notes)
                )
            _put_text(file, f"</{section}>\n")
        _put_text(file, "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n")


def _put_text(file: BinaryIO, text: str) -> None:
    file.write(text.encode())


def _components(notes: dict[str, str], values: NDArray[Any]) -> dict[str, str]:
    """The names of those components that the array has."""
    width = values.shape[1] if values.ndim == 2 else 1
    keys = [component(i) for i in range(width)]
    return {key: notes[key] for key in keys if key in notes}


def _array_attributes(values: dict[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in values.items())


def _sections_of_values(mesh: FileMesh) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
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
    tag, kind, data = _as_stored(values)
    if values.ndim == 2:
        width = f' NumberOfComponents="{values.shape[1]}"'
    else:
        width = ""
    head = (
        f'<{tag} type="{kind}" Name={quoteattr(name)}{width}{attributes} format="binary">'
    )
    _put_text(file, head)
    # Pack the blocks on all cores; the header says how long each became.
    count = -(-len(data) // BLOCK)
    parts = each(_packed, [(data, a, b) for a, b in pieces(count, _MANY)])
    packed = [*chain.from_iterable(parts)]
    header = [count, BLOCK, len(data) - (count - 1) * BLOCK, *map(len, packed)]
    file.write(binascii.b2a_base64(np.array(header, np.uint64).data, newline=False))
    file.write(binascii.b2a_base64(b"".join(packed), newline=False))
    _put_text(file, f"</{tag}>\n")


def _as_stored(values: NDArray[Any]) -> tuple[str, str, memoryview]:
    """The element that an array is, its type in VTK's words, and its bytes."""
    if values.dtype.kind == "U":
        texts = "".join(f"{text}\0" for text in values.reshape(-1).tolist())
        return "Array", "String", memoryview(texts.encode())
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    if values.dtype.kind == "u":
        kind = values.dtype.name.replace("u", "U", 1)
    else:
        kind = ""
    kind = (kind or values.dtype.name.capitalize()).replace("int", "Int")
    return "DataArray", kind, values.reshape(-1).view(np.uint8).data


def _packed(data: memoryview, first: int, stop: int) -> list[bytes]:
    return [
        zlib.compress(data[i : i + BLOCK], LEVEL)
        for i in range(first * BLOCK, stop * BLOCK, BLOCK)
    ]
