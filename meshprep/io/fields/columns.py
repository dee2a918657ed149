"""Text tables with one line a row (``.csv``, ``.tsv``): lines move whole, as they are."""

import csv
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..declared import ANY, rows_of, values_of
from .permute import FieldFormat, Permuter, PlacedArray

ROWS = "rows"
_DELIMITERS = ",;\t"


def _read(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
    """The rows, and each column that is declared as indices, which is then left out of the rows."""
    head, lines, delimiter = _lines(path, permuter)
    out = {}
    for name, where in list(permuter.declared.items()):
        if values_of(where) is not None and name not in (ANY, ROWS):
            column = _column(head, name, delimiter)
            texts = [_fields(line, delimiter)[column] for line in lines]
            out[name] = PlacedArray(_numbers(name, texts), where)
            lines = [_with(line, delimiter, column, "") for line in lines]
            permuter.declared.setdefault(ROWS, rows_of(where))
    place = permuter.place(ROWS, len(lines))
    if place is not None:
        out[ROWS] = PlacedArray(np.array([*lines, b""], dtype=object)[:-1], rows_of(place))
    return out


def _lines(path: Path, permuter: Permuter) -> tuple[bytes, list[bytes], str]:
    """The header, empty where there is none, the lines of the rows, and what parts the fields.

    A byte order mark is kept as part of the header, with or without one: no row moves it.
    """
    data = path.read_bytes()
    if b"\0" in data:
        raise MeshprepError("holds zero bytes, as UTF-16 does: save it as UTF-8")
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    records = _records(data.removeprefix(mark))
    delimiter = _delimiter(records)
    has_head = bool(records) and not _is_numeric(records[0], delimiter)
    sizes = set(permuter.sizes.values())
    # Text in the first line makes it a header, unless other rows hold text as well and only with it
    # their number fits.
    alike = not all(_is_numeric(record, delimiter) for record in records[1:])
    if has_head and alike and len(records) - 1 not in sizes and len(records) in sizes:
        has_head = False
    if not has_head:
        return mark, records, delimiter
    return mark + records[0], records[1:], delimiter


def _records(data: bytes) -> list[bytes]:
    """The rows as they stand in the file, line ends included; quoted fields may hold line ends."""
    lines = data.splitlines(keepends=True)
    if b'"' in data:
        texts = iter([line.decode("latin-1") for line in lines])
        reader, records, before = csv.reader(texts), [], 0
        for _ in reader:
            records.append(b"".join(lines[before : reader.line_num]))
            before = reader.line_num
        lines = records
    while lines and not lines[-1].strip():
        lines.pop()
    # Lines move: the last one needs an end of its own.
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        lines[-1] += b"\n"
    return lines


def _delimiter(records: list[bytes]) -> str:
    first = records[0].decode("latin-1") if records else ""
    return max(_DELIMITERS, key=first.count)


def _is_numeric(line: bytes, delimiter: str) -> bool:
    try:
        [float(field) for field in _fields(line, delimiter) if field.strip()]
    except ValueError:
        return False
    return True


def _fields(line: bytes, delimiter: str) -> list[str]:
    return next(csv.reader([line.decode("latin-1")], delimiter=delimiter), [])


def _column(head: bytes, name: str, delimiter: str) -> int:
    names = [n.strip() for n in _fields(head.removeprefix(BOM_UTF8), delimiter)]
    if name not in names:
        raise MeshprepError(f"has no column '{name}': choose {', '.join(names) or 'another file'}")
    if names.count(name) > 1:
        raise MeshprepError(f"has several columns '{name}': give each another name")
    return names.index(name)


def _numbers(name: str, texts: list[str]) -> NDArray[np.int64]:
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        raise MeshprepError(f"column '{name}' holds something other than whole numbers") from None


def _write(source: Path, target: Path, arrays: Mapping[str, NDArray], permuter: Permuter) -> None:
    head, _, delimiter = _lines(source, permuter)
    lines = list(arrays[ROWS])
    for name, values in arrays.items():
        if name != ROWS:
            column = _column(head, name, delimiter)
            pairs = zip(lines, values.tolist(), strict=True)
            lines = [_with(line, delimiter, column, str(v)) for line, v in pairs]
    target.write_bytes(head + b"".join(lines))


def _with(line: bytes, delimiter: str, column: int, text: str) -> bytes:
    """The line with another text in one column."""
    if b'"' in line:
        raise MeshprepError("has quotes in lines with indices: write it without")
    body = line.rstrip(b"\r\n")
    fields = body.split(delimiter.encode())
    fields[column] = text.encode()
    return delimiter.encode().join(fields) + line[len(body) :]


CSV = FieldFormat(_read, _write)
