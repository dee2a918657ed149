"""Reading legacy VTK files of unstructured grids."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..cell_blocks.file_mesh import FileMesh
from ..guard import DamagedFileError
from ..text.quoting import quoted
from .cells import cells_of, put
from .notes import (
    FIELDS,
    KEYWORD,
    LAYOUT,
    POINTS,
    ROLES,
    TABLE,
    TITLE,
    LegacyLayout,
    component,
    is_computed,
    notes_on,
)

# VTK's types of numbers; its identifiers go to the file as 32 bits.
_KINDS = {
    "char": "int8",
    "signed_char": "int8",
    "unsigned_char": "uint8",
    "short": "int16",
    "unsigned_short": "uint16",
    "int": "int32",
    "unsigned_int": "uint32",
    "long": "int64",
    "unsigned_long": "uint64",
    "vtkidtype": "int32",
    "float": "float32",
    "double": "float64",
}
for _kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
    _KINDS[f"vtktype{_kind}"] = _kind
_VERSION = re.compile(rb"Version\s+(\d\.\d)")
_WIDTHS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9, "TENSORS6": 6}
# By the two highest bits of the first byte: bytes that say how long a text is.
_LENGTH_BYTES = {3: 1, 2: 2, 1: 4, 0: 8}


class _LegacyFile:
    """The words and arrays of a legacy file, text or binary."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.file = file
        self.size = path.stat().st_size
        # The first three lines are the version, a title, and ASCII or BINARY.
        version = _VERSION.search(file.readline())
        if version:
            self.version = version[1].decode()
        else:
            self.version = LegacyLayout.version
        self.title = file.readline().rstrip(b"\r\n").decode("utf-8", "replace")
        kind = file.readline().strip().upper()
        if kind not in (b"ASCII", b"BINARY"):
            raise MeshprepError("is neither ASCII nor BINARY: not a readable VTK file")
        self.text = kind == b"ASCII"

    def line(self) -> str | None:
        """The next line without its end, None at the end of the file."""
        line = self.file.readline()
        if line:
            return line.strip().decode()
        return None

    def words(self) -> list[str]:
        """The words of the next line that has some; none at the end."""
        for line in iter(self.file.readline, b""):
            if line.strip():
                return self._decoded(line).split()
        return []

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise MeshprepError(
                f"has {quoted(line)} where a keyword belongs: the file is damaged"
            ) from None

    def next_is(self, word: str) -> list[str]:
        """Take the next line if it begins with this word; return its words or nothing."""
        start = self.file.tell()
        words = self.words()
        if words and words[0].upper() == word:
            return words
        self.file.seek(start)
        return []

    def numbers(self, n: int, kind: str) -> NDArray[Any]:
        """So many numbers of one of VTK's types; bits are whole numbers, 0 or 1."""
        bits = kind.lower() == "bit"
        if not bits and kind.lower() not in _KINDS:
            raise MeshprepError(
                f"holds values of type {quoted(kind)}, which is none of VTK's: write them "
                "as int"
            )
        if bits and not self.text:
            return np.unpackbits(self._numbers(-(-n // 8), np.dtype(np.uint8)))[:n]
        return self._numbers(n, np.dtype("uint8" if bits else _KINDS[kind.lower()]))

    def _numbers(self, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        left = self.size - self.file.tell()
        if not 0 <= n * (2 if self.text else dtype.itemsize) <= left + 1:
            raise MeshprepError(f"{n} numbers are declared, but {left} bytes are left")
        # Binary numbers are big-endian, whatever the machine.
        if self.text:
            values = np.fromfile(self.file, dtype, n, " ")
        else:
            values = np.fromfile(self.file, dtype.newbyteorder(">"), n).astype(dtype)
        if values.size < n:
            raise MeshprepError(f"{n} numbers are declared, but {values.size} follow")
        return values

    def rows(self, n: int, width: int, kind: str) -> NDArray[Any]:
        """Rows of numbers, or of texts."""
        if kind.lower() in ("string", "utf8_string"):
            values = self.texts(n * width)
        else:
            values = self.numbers(n * width, kind)
        if width > 1:
            return values.reshape(n, width)
        return values

    def texts(self, n: int) -> NDArray[np.str_]:
        """So many texts: a line each, or bytes behind their number."""
        left = self.size - self.file.tell()
        if not 0 <= n <= left + 1:
            raise MeshprepError(f"{n} texts are declared, but {left} bytes are left")
        if self.text:
            # of the line that names the array nothing is left
            lines = [self.line() for _ in range(n)]
            if None in lines:
                raise MeshprepError(f"{n} texts are declared, but the file ends before")
            return np.array([unquote(str(line)) for line in lines], np.str_)
        return np.array([self._binary_text() for _ in range(n)], np.str_)

    def _binary_text(self) -> str:
        first = self.file.read(1)
        if not first:
            raise MeshprepError("a text is declared, but the file ends before")
        width = _LENGTH_BYTES[first[0] >> 6]
        head = first + self.file.read(width - 1)
        length = int.from_bytes(head, "big") & ((1 << (8 * width - 2)) - 1)
        left = self.size - self.file.tell()
        if length > left:
            raise MeshprepError(
                f"a text of {length} bytes is declared, but {left} are left"
            )
        return self.file.read(length).decode()

    def cells(self, n: int, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Connectivity and ends of the cells."""
        start = self.file.tell()
        line = self.file.readline().split()
        if line[:1] == [b"OFFSETS"]:
            # From version 5.1 on the first number of CELLS counts the offsets, which
            # begin with 0, and the second is the length of the connectivity.
            stop = self.numbers(n, line[1].decode())[1:]
            return self.numbers(size, self.words()[1]), stop
        self.file.seek(start)
        # older files have its number of nodes before each cell
        flat = self.numbers(size, "int")
        words = flat.tolist()
        pos = 0
        heads = list[int]()
        while len(heads) < n and pos < size:
            heads.append(pos)
            pos += 1 + max(words[pos], 0)
        if pos != size or len(heads) != n:
            raise MeshprepError(
                f"its {n} cells take {pos} numbers, but {size} are given: the file is "
                "truncated or damaged"
            )
        return np.delete(flat, heads), np.array([*heads[1:], pos]) - np.arange(1, n + 1)


class _LegacyReader:
    """A mesh that grows section by section."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = _LegacyFile(path, file)
        self.mesh = FileMesh(np.empty((0, 3)), [])
        self.connectivity: NDArray[Any] = np.empty(0, np.int64)
        self.stop: NDArray[Any] = np.empty(0, np.int64)
        self.types: NDArray[Any] = np.empty(0, np.int32)
        # where arrays go, how many rows they have, and what is known of the last one
        self.place = FIELDS
        self.n = 0
        self.arrays: dict[str, dict[str, Any]] = {
            FIELDS: {},
            "PointData": {},
            "CellData": {},
        }
        self.last: tuple[str, str, int] = ("", "", 0)
        self.mesh.arrays[TITLE] = self.file.title
        self.mesh.arrays[LAYOUT] = LegacyLayout(self.file.version, self.file.text)

    def read(self) -> FileMesh:
        # A section begins with its keyword; each reader takes as much as its first line
        # declares.
        while words := self.file.words():
            key = words[0].upper()
            take = _SECTIONS.get(key)
            if take is None:
                raise MeshprepError(
                    f"has a section {quoted(words[0])}, which is none of VTK's: take it out"
                )
            try:
                take(self, key, words[1:])
            except (IndexError, ValueError):
                raise DamagedFileError(
                    f"section {key} is not written as the format wants"
                ) from None
        mesh = self.mesh
        mesh.whole_values = self.arrays[FIELDS]
        mesh.point_data = self.arrays["PointData"]
        mesh.cells, mesh.cell_data = cells_of(
            connectivity=self.connectivity,
            stop=self.stop,
            types=self.types,
            data=self.arrays["CellData"],
        )
        return mesh

    def dataset(self, key: str, rest: list[str]) -> None:
        kind = rest[0].upper()
        if kind == "UNSTRUCTURED_GRID":
            return
        by = f"meshio convert {self.path.name} new.vtu"
        if kind == "POLYDATA":
            # which meshio does not read
            by = "ParaView's filter Append Datasets, and save that as .vtu"
        raise MeshprepError(f"holds {quoted(rest[0])[1:-1]}: convert it with {by}")

    def points(self, key: str, rest: list[str]) -> None:
        kind = rest[1]
        if self.file.text and kind.lower() == "float":
            # programs that read text go by its digits, whatever the type
            layout = self.mesh.arrays[LAYOUT]
            self.mesh.arrays[LAYOUT] = replace(layout, points="float")
            kind = "double"
        self.mesh.points = self.file.rows(int(rest[0]), 3, kind)
        self.last = (POINTS, POINTS, 3)

    def cells(self, key: str, rest: list[str]) -> None:
        self.connectivity, self.stop = self.file.cells(int(rest[0]), int(rest[1]))

    def cell_types(self, key: str, rest: list[str]) -> None:
        self.types = self.file.numbers(int(rest[0]), "int")

    def begin_data(self, key: str, rest: list[str]) -> None:
        if key == "POINT_DATA":
            self.place = "PointData"
        else:
            self.place = "CellData"
        self.n = int(rest[0])

    def field(self, key: str, rest: list[str]) -> None:
        """Arrays without a role; each may have notes behind it."""
        for _ in range(int(rest[1])):
            words = self.file.words()
            while words and words[0].upper() == "METADATA":
                self.metadata("METADATA", words[1:])
                words = self.file.words()
            name, width, rows, kind = words
            if int(width) < 1:
                raise MeshprepError(f"array {quoted(name)} has {width} components")
            values = self.file.rows(int(rows), int(width), kind)
            self.put(name=name, values=values, width=int(width), notes={})

    def scalars(self, key: str, rest: list[str]) -> None:
        # SCALARS NAME TYPE WIDTH is followed by a line with a table of colours, which may
        # be missing.
        width = int(rest[2]) if len(rest) > 2 else 1
        table = self.file.next_is("LOOKUP_TABLE")
        values = self.file.rows(self.n, width, rest[1])
        notes = {KEYWORD: key}
        if len(table) > 1 and table[1] != "default":
            notes[TABLE] = unquote(table[1])
        self.put(name=rest[0], values=values, width=width, notes=notes)

    def of_fixed_width(self, key: str, rest: list[str]) -> None:
        width = _WIDTHS[key]
        values = self.file.rows(self.n, width, rest[1])
        self.put(name=rest[0], values=values, width=width, notes={KEYWORD: key})

    def texture(self, key: str, rest: list[str]) -> None:
        width = int(rest[1])
        values = self.file.rows(self.n, width, rest[2])
        self.put(name=rest[0], values=values, width=width, notes={KEYWORD: key})

    def single(self, key: str, rest: list[str]) -> None:
        values = self.file.rows(self.n, 1, rest[1])
        self.put(name=rest[0], values=values, width=1, notes={KEYWORD: key})

    def colours(self, key: str, rest: list[str]) -> None:
        width = int(rest[1])
        self.put(
            name=rest[0],
            values=self._bytes_of_colours(self.n, width),
            width=width,
            notes={KEYWORD: key},
        )

    def lookup_table(self, key: str, rest: list[str]) -> None:
        name = unquote(rest[0])
        self.mesh.tables[name] = self._bytes_of_colours(int(rest[1]), 4)

    def _bytes_of_colours(self, n: int, width: int) -> NDArray[np.uint8]:
        """Colours, which texts have as fractions of 255, as bytes."""
        if not self.file.text:
            return self.file.rows(n, width, "unsigned_char")
        shares = self.file.rows(n, width, "double")
        return np.rint(np.clip(shares, 0, 1) * 255).astype(np.uint8)

    def put(
        self, name: str, values: NDArray[Any], width: int, notes: dict[str, str]
    ) -> None:
        name = unquote(name)
        put(self.arrays[self.place], name, values)
        self.last = (self.place, name, width)
        if notes:
            notes_on(self.mesh, self.place, name).update(notes)
            # the first of a kind is the active one
            notes_on(self.mesh, self.place, "").setdefault(ROLES[notes[KEYWORD]], name)

    def metadata(self, key: str, rest: list[str]) -> None:
        """Names of components and other notes on the last array, up to an empty line."""
        target, name, width = self.last
        while line := self.file.line():
            words = line.split()
            if words[0].upper() == "COMPONENT_NAMES":
                for i in range(width):
                    if text := self.file.line():
                        notes_on(self.mesh, target, name)[component(i)] = unquote(text)
            elif words[0].upper() == "NAME" and not is_computed(words[1]):
                self.mesh.left_out.append(f"the note {words[1]} on {quoted(name)}")


_Take = Callable[[_LegacyReader, str, list[str]], None]
_SECTIONS: dict[str, _Take] = {
    "DATASET": _LegacyReader.dataset,
    "POINTS": _LegacyReader.points,
    "CELLS": _LegacyReader.cells,
    "CELL_TYPES": _LegacyReader.cell_types,
    "POINT_DATA": _LegacyReader.begin_data,
    "CELL_DATA": _LegacyReader.begin_data,
    "FIELD": _LegacyReader.field,
    "SCALARS": _LegacyReader.scalars,
    "COLOR_SCALARS": _LegacyReader.colours,
    "VECTORS": _LegacyReader.of_fixed_width,
    "NORMALS": _LegacyReader.of_fixed_width,
    "TENSORS": _LegacyReader.of_fixed_width,
    "TENSORS6": _LegacyReader.of_fixed_width,
    "TEXTURE_COORDINATES": _LegacyReader.texture,
    "GLOBAL_IDS": _LegacyReader.single,
    "PEDIGREE_IDS": _LegacyReader.single,
    "EDGE_FLAGS": _LegacyReader.single,
    "LOOKUP_TABLE": _LegacyReader.lookup_table,
    "METADATA": _LegacyReader.metadata,
}


def read(path: Path) -> FileMesh:
    """Read a legacy VTK file of an unstructured grid, with the names that VTK shows."""
    with path.open("rb") as opened:
        return _LegacyReader(path, opened).read()
