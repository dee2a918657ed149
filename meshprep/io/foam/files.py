"""Files of OpenFOAM: a header, lists of numbers in text or binary, and other text."""

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT

from ...kernels import Bools, Int32s, Int64s, UInt8s, helper, kernel
from ..text.cursor import Cursor
from ..text.packed import read_gz
from ..text.tokens import ASCII, put_int, skip_blank

GZ = ".gz"
_LONGEST_HEADER = 1 << 16
_HEADER = re.compile(rb"FoamFile\s*\{((?:[^{}\"]|\"[^\"]*\")*)\}")
_ENTRY = re.compile(rb"(\w+)\s+(\"[^\"]*\"|[^;\s]+)\s*;")
_BETWEEN = re.compile(rb"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COUNT = re.compile(rb"([0-9]{1,18})(?=[\s({/])\s*")
_EMPTY = re.compile(rb"(?:\(\s*\))?")
_EVEN = re.compile(rb"\{[^{}]*\}")
_BARE = bytes.maketrans(b"()", b"  ")
_OPEN, _CLOSE, _MINUS, _PLUS, _BREAK, _BLANK = 40, 41, 45, 43, 10, 32
_MORE = "the file is truncated or damaged, write it again"


# A file one after the other.
Pieces = list[bytes | memoryview]


@dataclass(frozen=True, eq=False)
class FoamFile:
    """The bytes of a file, unpacked, and what its header says; ``name`` is for errors."""

    path: Path
    name: str
    raw: bytearray
    header: Mapping[str, str]
    start: int  # where the header ends

    @property
    def binary(self) -> bool:
        return self.header.get("format") == "binary"

    def kind(self, of: str) -> np.dtype[Any]:
        """The type of ``label``, ``scalar`` or ``bool`` in a binary file."""
        if of == "bool":
            return np.dtype(np.uint8)
        arch = self.header.get("arch", "LSB;label=32;scalar=64")
        match = re.search(rf"\b{of}=(32|64)\b", arch)
        if match is None or arch[:3] not in ("LSB", "MSB"):
            raise self.error(
                f'arch "{arch}" is unknown: convert the case with foamFormatConvert', 0
            )
        order = "<" if arch.startswith("LSB") else ">"
        letter = "i" if of == "label" else "f"
        return np.dtype(f"{order}{letter}{int(match[1]) // 8}")

    def error(self, problem: str, pos: int) -> MeshprepError:
        """An error that says where: the line of a text file, the byte of a binary one."""
        if self.binary:
            place = pos
        else:
            place = self.raw.count(b"\n", 0, pos) + 1
        return MeshprepError(
            f"{self.name}: {'byte' if self.binary else 'line'} {place}: {problem}"
        )

    def behind_blank(self, pos: int) -> int:
        """The first position at or behind ``pos`` that is neither blank nor a comment."""
        found = _BETWEEN.match(self.raw, pos)
        assert found is not None
        return found.end()

    def count(self, pos: int, limit: int | None = None) -> tuple[int, int]:
        """How many values a list has, at most ``limit``, and where they begin."""
        begin = self.behind_blank(pos)
        number = _COUNT.match(self.raw, begin)
        if number:
            n = int(number[1])
        else:
            n = -1
        if number is None or n > (INDEX_LIMIT if limit is None else limit):
            if limit is None:
                most = ""
            else:
                most = f" of at most {limit}"
            raise self.error(f"expected the size{most} of a list: {_MORE}", begin)
        return n, number.end()

    def numbers(
        self, pos: int, of: str, columns: int = 1, limit: int | None = None
    ) -> tuple[NDArray[Any], int]:
        """The rows of a list, (n, columns), at most ``limit``, and where it ends."""
        n, begin = self.count(pos, limit)
        opening = self.raw[begin : begin + 1]
        # One number in braces stands for a list of equal ones.
        if opening == b"{" and columns == 1 and limit is not None:
            even = re.compile(rb"\{\s*([0-9]{1,18})\s*\}").match(self.raw, begin)
            if even is None:
                raise self.error(f"expected one number: {_MORE}", begin)
            return np.full(
                (n, 1), int(even[1]), np.uint8 if of == "bool" else np.int64
            ), even.end()
        if opening != b"(":
            if n == 0:
                return np.zeros((0, columns), self.kind(of)), begin
            raise self.error(f"expected the values of a list: {_MORE}", begin)
        if self.binary:
            kind = self.kind(of)
            end = begin + 1 + n * columns * kind.itemsize
            if self.raw[end : end + 1] != b")":
                raise self.error(
                    f"a list of {n} values does not end where it should: {_MORE}", begin
                )
            rows = np.frombuffer(self.raw, kind, n * columns, begin + 1)
            return rows.reshape(n, columns), end + 1
        # In text, brackets around rows are blanks to the parser of numbers.
        cursor = Cursor(Path(self.name), np.frombuffer(self.raw.translate(_BARE), np.uint8))
        cursor.pos = begin + 1
        if of == "scalar":
            rows = cursor.doubles(n * columns)
        else:
            rows = cursor.ints(n * columns)
        return rows.reshape(n, columns), self.end_of_list(
            cursor.pos, 1 + (columns > 1 and n > 0)
        )

    def end_of_list(self, pos: int, brackets: int = 1) -> int:
        found = re.compile(rb"(?:\s*\)){%d}" % brackets).match(self.raw, pos)
        if found is None:
            raise self.error(f"a list does not end where it should: {_MORE}", pos)
        return found.end()

    def faces(self) -> tuple[Int64s, Int32s, int]:
        """Offsets and points of all faces, and where their list ends. O(bytes)."""
        if self.header.get("class") == "faceCompactList":
            # A faceCompactList is two lists: where each face begins, with the end of the
            # last one, and the points of all faces.
            offset, pos = self.numbers(self.start, "label", limit=len(self.raw))
            points, end = self.numbers(pos, "label")
            offset = offset[:, 0].astype(np.int64)
            good = offset.size and offset[0] == 0 and (offset[1:] >= offset[:-1]).all()
            if not good or offset[-1] != len(points):
                raise self.error(f"offsets of faces do not fit their points: {_MORE}", pos)
            return offset, as_index(self, points[:, 0], INDEX_LIMIT), end
        if self.binary:
            raise self.error(
                "binary faces must be a faceCompactList: use foamFormatConvert", 0
            )
        n, begin = self.count(self.start, len(self.raw))
        data = np.frombuffer(self.raw, np.uint8)
        # a number takes two bytes at least; memory that is not filled costs nothing
        points = np.empty(data.size // 2, np.int32)
        offset = np.zeros(n + 1, np.int64)
        pos = int(_take_faces(data=data, pos=begin + 1, offset=offset, points=points))
        if pos < 0 or self.raw[begin : begin + 1] != b"(":
            raise self.error(f"expected a face, its size and its points: {_MORE}", abs(pos))
        return offset, points[: offset[-1]], self.end_of_list(pos)

    def moved_rows(
        self, pos: int, width: int, new_to_old: Int32s, turned: Bools | None = None
    ) -> tuple[Pieces, int]:
        """The list at ``pos`` in another order, as bytes of the file, and where it ends.

        Rows of text keep their text; those of binary have ``width`` bytes. Rows behind
        those of ``new_to_old`` stay. Of ``turned`` rows the numbers change their sign.
        """
        n, begin_list = self.count(pos)
        # nothing, or the same value for all
        if (
            number := _EVEN.match(self.raw, begin_list)
            if n
            else _EMPTY.match(self.raw, begin_list)
        ):
            if turned is not None and re.search(rb"[1-9]", number[0]):
                raise self.error(
                    "values that are all the same cannot be turned: write each", pos
                )
            return [self.part(pos, number.end())], number.end()
        if self.binary:
            return self._moved_bytes(
                n=n, at=begin_list, width=width, new_to_old=new_to_old, turned=turned
            )
        data = np.frombuffer(self.raw, np.uint8)
        if n * 2 > data.size or self.raw[begin_list : begin_list + 1] != b"(":
            raise self.error(f"expected the values of a list: {_MORE}", begin_list)
        begin = np.empty(n, np.int64)
        end = np.empty(n, np.int64)
        stop = int(_find_text_rows(data=data, pos=begin_list + 1, begin=begin, end=end))
        if stop < 0:
            raise self.error(f"expected a number, or some in brackets: {_MORE}", -1 - stop)
        if turned is None:
            signs = np.zeros(0, np.bool_)
        else:
            signs = turned
        # a sign for each number that is turned: it has a byte and a separator
        out = np.empty(data.size + n if turned is None else 2 * data.size, np.uint8)
        size = _put_text_rows(
            data=data,
            begin=begin,
            end=end,
            order=np.array(new_to_old),
            turned=signs,
            out=out,
        )
        return [b"%d\n(\n" % n, out[:size].data, b")"], self.end_of_list(stop)

    def _moved_bytes(
        self, n: int, at: int, width: int, new_to_old: Int32s, turned: Bools | None
    ) -> tuple[Pieces, int]:
        end = at + 1 + n * width
        if self.raw[at : at + 1] + self.raw[end : end + 1] != b"()":
            raise self.error(
                f"a list of {n} values does not end where it should: {_MORE}", at
            )
        # Move rows as bytes, whatever their numbers are.
        rows = np.frombuffer(self.raw, np.dtype((np.void, width)), n, at + 1)
        moved = np.empty(n, rows.dtype)
        np.take(rows, new_to_old, out=moved[: new_to_old.size])
        moved[new_to_old.size :] = rows[new_to_old.size :]
        if turned is not None and turned.any():
            if self.header.get("class", "").startswith("label"):
                of = "label"
            else:
                of = "scalar"
            values = moved.view(self.kind(of)).reshape(n, -1)
            values[: turned.size][turned] *= -1
        return [b"%d\n(" % n, moved.view(np.uint8).data, b")"], end + 1

    def part(self, begin: int, end: int | None = None) -> memoryview:
        """Some of the bytes."""
        return memoryview(self.raw)[begin:end]

    def without_list(self, end: int) -> tuple["FoamFile", int]:
        """The file without its first list, which ends there, and where that stood."""
        begin = self.behind_blank(self.start)
        return replace(self, raw=self.raw[:begin] + self.raw[end:]), begin

    def list_of(self, values: NDArray[Any], of: str = "label") -> Pieces:
        """A list of whole numbers as it is to stand in this file."""
        if self.binary:
            rows = np.ascontiguousarray(values, self.kind(of))
            # brackets of an empty list would not be read
            whole = rows.view(np.uint8).data
            if len(values):
                return [b"%d\n(" % len(values), whole, b")"]
            return [b"0\n"]
        return [b"%d\n(\n" % len(values), text_of(values), b")"]

    def save(self, target: Path, pieces: Pieces) -> None:
        """Write the file anew: packed where it was packed."""
        packed = self.path.suffix == GZ
        with target.open("wb") as file:
            file.writelines(
                [gzip.compress(b"".join(pieces), 4, mtime=0)] if packed else pieces
            )


def header_of(raw: bytes | bytearray) -> tuple[dict[str, str], int]:
    """The entries of a header and where it ends; none and 0 where there is none."""
    head = _HEADER.search(raw, 0, _LONGEST_HEADER)
    if head is None:
        return {}, 0
    entries = _ENTRY.findall(head[1])
    header = {k.decode(): v.strip(b'"').decode("latin-1") for k, v in entries}
    return header, head.end()


def open_file(path: Path, root: Path | None = None, elements: int = 0) -> FoamFile:
    """A file with its header; errors name it from ``root`` on, if there is one.

    ``elements`` are those of the mesh, where it is known, that values may be of.
    """
    if root is None:
        name = str(path)
    else:
        name = path.relative_to(root).as_posix()
    # OpenFOAM may pack each file by itself, and adds .gz to its name.
    existing = next(
        (p for p in (path, path.with_name(path.name + GZ)) if p.is_file()), None
    )
    if existing is None:
        raise MeshprepError(f"{name} is missing: the mesh is not complete")
    if existing.suffix == GZ:
        raw = read_gz(existing, f"{name}:", elements)
    else:
        raw = bytearray(existing.stat().st_size)
        with existing.open("rb") as opened:
            opened.readinto(raw)
    # Nothing but comments stands before the header.
    head = _HEADER.search(raw, 0, _LONGEST_HEADER)
    between = _BETWEEN.match(raw)
    if head is None or between is None or head.start() != between.end():
        raise MeshprepError(f"{name}: line 1: it has no header FoamFile {{ ... }}: {_MORE}")
    header, end = header_of(raw)
    file = FoamFile(path=existing, name=name, raw=raw, header=header, start=end)
    if header.get("format") not in ("ascii", "binary"):
        raise file.error(
            f"format '{header.get('format', '')}' is neither ascii nor binary", 0
        )
    return file


def as_index(file: FoamFile, values: NDArray[Any], limit: int, *, least: int = 0) -> Int32s:
    """Whole numbers as indices below ``limit``; raises MeshprepError for others."""
    if values.size and (values.min() < least or values.max() >= limit):
        at = int(np.argmax((values < least) | (values >= limit)))
        raise MeshprepError(
            f"{file.name}: value {at + 1} is {values[at]}, outside {least}..{limit - 1}: "
            f"{_MORE}"
        )
    # the bytes of a file lie anywhere, and kernels are compiled anew for that
    return np.require(values, np.int32, ["A", "C"])


def text_of(values: NDArray[Any]) -> memoryview:
    """Whole numbers, one a line."""
    out = np.empty(21 * values.size, np.uint8)
    return out[: _put_labels(values.astype(np.int64), out)].data


@kernel
def _put_labels(values: Int64s, out: UInt8s) -> int:
    pos = int(np.int64(0))
    for value in values:
        pos = put_int(
            out=out,
            pos=pos,
            mode=ASCII,
            width=4,
            value=int(value),
            end=_BREAK,
        )
    return pos


@kernel
def put_faces(offset: Int64s, points: Int32s, out: UInt8s) -> int:
    """Write faces as text, ``4(0 1 2 3)`` a line; returns the number of bytes."""
    pos = int(np.int64(0))
    for f in range(offset.size - 1):
        begin = offset[f]
        end = offset[f + 1]
        pos = put_int(
            out=out,
            pos=pos,
            mode=ASCII,
            width=4,
            value=int(end - begin),
            end=_OPEN,
        )
        for i in range(begin, end):
            pos = put_int(
                out=out,
                pos=pos,
                mode=ASCII,
                width=4,
                value=int(points[i]),
                end=_BLANK,
            )
        out[pos - 1] = _CLOSE
        out[pos] = _BREAK
        pos += 1
    return pos


@helper
def _next_label(data: UInt8s, pos: int) -> tuple[int, int]:
    """A whole number after blanks and brackets, and the position after it, or -1."""
    while pos < data.size and (data[pos] <= _BLANK or data[pos] == _OPEN):
        pos += 1
    start = pos
    value = 0
    while pos < data.size and 48 <= data[pos] <= 57 and value < INDEX_LIMIT:
        value = 10 * value + int(data[pos]) - 48
        pos += 1
    return value, -1 if pos == start or value >= INDEX_LIMIT else pos


@kernel
def _take_faces(data: UInt8s, pos: int, offset: Int64s, points: Int32s) -> int:
    """Read faces into offsets and points; returns the position behind, or -1 minus one."""
    filled = 0
    for f in range(offset.size - 1):
        count, after = _next_label(data, pos)
        if after < 0 or count > points.size - filled:
            return -1 - pos
        pos = after
        for _ in range(count):
            value, after = _next_label(data, pos)
            if after < 0:
                return -1 - pos
            points[filled] = value
            pos = after
            filled += 1
        # A face is its size and, in brackets, its points.
        while pos < data.size and data[pos] <= _BLANK:
            pos += 1
        if pos == data.size or data[pos] != _CLOSE:
            return -1 - pos
        pos += 1
        offset[f + 1] = filled
    return pos


@helper
def _is_of_number(byte: int) -> bool:
    """Whether a number, ``nan`` and ``inf`` among them, may hold this byte."""
    digit = 48 <= byte <= 57 or byte in (_PLUS, _MINUS, 46)
    return digit or byte in (69, 101, 97, 102, 105, 110)


@kernel
def _find_text_rows(data: UInt8s, pos: int, begin: Int64s, end: Int64s) -> int:
    """Where each row of a text begins and ends: a number, or numbers in brackets.

    Returns the position behind, or -1 minus that of what is neither.
    """
    for i in range(begin.size):
        pos = skip_blank(data, pos)
        begin[i] = pos
        # A row is one number, or ends with the bracket that it began with.
        depth = 0
        while pos < data.size:
            byte = data[pos]
            if byte == _OPEN:
                depth += 1
            elif byte == _CLOSE and depth:
                depth -= 1
                if depth == 0:
                    pos += 1
                    break
            elif not _is_of_number(byte) and not (depth and byte <= _BLANK):
                break
            pos += 1
        if depth or pos == begin[i]:
            return -1 - pos
        end[i] = pos
    return pos


@kernel
def _put_text_rows(
    data: UInt8s, begin: Int64s, end: Int64s, order: Int32s, turned: Bools, out: UInt8s
) -> int:
    """Copy rows of a text in another order, one a line; returns the number of bytes."""
    pos = 0
    for i in range(begin.size):
        row = np.int64(order[i]) if i < order.size else i
        sign = i < turned.size and turned[i]
        for k in range(begin[row], end[row]):
            byte = data[k]
            before = data[k - 1]
            first = k == begin[row] or before == _OPEN or before <= _BLANK
            # Turn the sign of each number of the row: take its minus away, or give it
            # one.
            if sign and first and byte != _OPEN and byte > _BLANK:
                if byte in (_MINUS, _PLUS):
                    if byte == _PLUS:
                        out[pos] = _MINUS
                        pos += 1
                    continue
                out[pos] = _MINUS
                pos += 1
            out[pos] = byte
            pos += 1
        out[pos] = _BREAK
        pos += 1
    return pos
