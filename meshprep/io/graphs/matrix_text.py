"""Whether the text of a Matrix Market file is one, line by line, before scipy reads it.

scipy takes the numbers that a line begins with and skips the rest, and reads past the end of a file
whose last line is cut off.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from meshprep_runtime.errors import MeshprepError

_HEAD = re.compile(
    rb"%%MatrixMarket[^\n]*\n(?:%[^\n]*\n|[ \t\r]*\n)*+[ \t]*\d+[ \t]+\d+(?:[ \t]+\d+)?[ \t\r]*\n",
    re.IGNORECASE,
)
_REAL = rb"[-+]?(?:\d+\.?\d*|\.\d+|nan|inf(?:inity)?)(?:e[-+]?\d+)?"
# What follows the row and the column of an entry.
_VALUES = {
    "pattern": rb"",
    "integer": rb"[ \t]+[-+]?\d+",
    "unsigned-integer": rb"[ \t]+\d+",
    "real": rb"[ \t]+" + _REAL,
    "double": rb"[ \t]+" + _REAL,
    "complex": (rb"[ \t]+" + _REAL) * 2,
}
# Bytes that are looked at together.
_AT_ONCE = 1 << 20


@contextmanager
def whole_lines(path: Path) -> Iterator[Path]:
    """The file, or where its last line has no end a copy in which it has.

    Raises
    ------
    MeshprepError
        Where there is no first line and no line of sizes.
    """
    data = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        if not data.endswith(b"\n"):
            path = Path(folder) / "whole.mtx"
            path.write_bytes(data + b"\n")
        if _HEAD.match(data if data.endswith(b"\n") else data + b"\n") is None:
            raise MeshprepError(
                "is no Matrix Market file: it must begin with %%MatrixMarket, and a line of rows, "
                "columns and entries"
            )
        yield path


def check_entries(path: Path, field: str) -> None:
    """Raise MeshprepError, naming the line, unless every entry is two whole numbers and a value."""
    data = path.read_bytes()
    head = _HEAD.match(data)
    start = 0 if head is None else head.end()
    while start < len(data):
        stop = data.find(b"\n", start + _AT_ONCE) + 1 or len(data)
        found = _lines(field).match(data, start, stop)
        end = start if found is None else found.end()
        if end < stop:
            line = data.count(b"\n", 0, end) + 1
            raise MeshprepError(f"line {line} is no entry of a matrix of type {field}: repair it")
        start = stop


@cache
def _lines(field: str) -> re.Pattern[bytes]:
    entry = rb"[ \t]*\d+[ \t]+\d+" + _VALUES[field] + rb"[ \t\r]*\n"
    return re.compile(rb"(?:" + entry + rb"|[ \t\r]*\n)*+", re.IGNORECASE)
