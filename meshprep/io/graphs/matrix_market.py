"""Square sparse matrices in Matrix Market files: rows are vertices, stored entries edges.

An entry (i, j) ties vertices i and j, so orders are found for the pattern of A + A^T. Entries keep
their order, repeated and zero ones too; of a symmetric matrix the edges are its stored half.

scipy takes the numbers that a line begins with and skips the rest, and reads past the end of a file
whose last line is cut off. So the text is looked at, line by line, before.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, Mesh
from ..meshio_adapter.harden import guarded
from ..registry import Format
from .common import (
    EDGES,
    MATRIX_MARKET,
    SYMMETRIC,
    WEIGHT,
    graph_mesh,
    other_losses,
    pairs_of,
    symmetry_of,
)

# The shortest line of an entry is "1 1" and its end.
_LINE_BYTES = 4
# The types that scipy reads; narrower ones are widened, which changes no value.
_WIDE: Mapping[str, type] = {"i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}
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


def _read(path: Path) -> Mesh:
    # Imported here, since scipy takes longer to import than a command to print its help.
    from scipy.io import mminfo, mmread

    # By path: with a file of Python's, scipy may end the process where it meets an error.
    with guarded("not a readable Matrix Market file"), _whole_lines(path) as text:
        rows, columns, count, form, field, symmetry = mminfo(text)
        _check(rows, columns, count, form, text.stat().st_size)
        _check_entries(text, field)
        found = mmread(text, spmatrix=False)
    # What follows from the symmetry comes after the entries of the file.
    pairs = np.column_stack([found.row[:count], found.col[:count]])
    values = found.data[:count]
    if values.dtype.kind in "fc" and np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        raise MeshprepError(f"entry {at + 1} is infinite or past the largest double: repair it")
    # Without entries scipy writes "real", whatever the type.
    dats = [Dat(WEIGHT, EDGES, values)] if count and field != "pattern" else []
    notes = {"symmetry": symmetry, "comments": _comments(path)}
    return graph_mesh(rows, pairs, dats, {MATRIX_MARKET: notes})


def _comments(path: Path) -> tuple[str, ...]:
    """The lines between the first one and the sizes, without their ``%``."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.readline()
        found = takewhile(lambda line: line.startswith("%"), file)
        lines = [line[1:].rstrip("\n") for line in found]
    return tuple(lines) if any(lines) else ()


def _check(rows: int, columns: int, count: int, form: str, size: int) -> None:
    if form != "coordinate":
        raise MeshprepError("holds a dense matrix, in which all are neighbours: give a sparse one")
    if rows != columns:
        raise MeshprepError(
            f"the matrix has {rows} rows and {columns} columns: an order of its rows and columns "
            "needs as many of the one as of the other"
        )
    if not rows:
        raise MeshprepError("the matrix has no rows")
    if count * _LINE_BYTES > size:
        raise MeshprepError(f"declares {count} entries, more than the file has room for")


def _write(mesh: Mesh, path: Path) -> None:
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    kept = _reduced(mesh)
    row, column = pairs_of(kept).T
    weight = kept.dat(WEIGHT, EDGES)
    values = np.ones(len(row)) if weight is None else weight.values
    n = kept.size("vertices")
    # scipy gives every file this ending.
    written = path.with_name(f"{path.name}.mtx")
    with guarded("the Matrix Market file could not be written"):
        mmwrite(
            written,
            coo_array((values, (row, column)), shape=(n, n)),
            comment="\n".join(kept.extras[MATRIX_MARKET]["comments"]),
            field="pattern" if weight is None else None,
            symmetry=symmetry_of(kept),
        )
    written.replace(path)


def _losses(mesh: Mesh, **_options: object) -> list[str]:
    return other_losses(mesh, _refusal)


def _refusal(d: Dat) -> str | None:
    if (d.name, d.set) != (WEIGHT, EDGES):
        return ""
    if d.index is not None:
        return "not every edge has one"
    kind, one = d.values.dtype.kind, d.values[:1].size <= 1
    if not one or kind not in _WIDE or d.values.dtype.itemsize > np.dtype(_WIDE[kind]).itemsize:
        return "an entry is one number of at most 8 bytes, or a complex one of 16"
    return None


def _reduced(mesh: Mesh) -> Mesh:
    """The mesh as reading gives it: of a symmetric matrix the lower half, in widened types."""
    pairs, symmetry = pairs_of(mesh), symmetry_of(mesh)
    dats = [_wide(d) for d in mesh.dats if len(pairs) and _refusal(d) is None]
    if symmetry != "general":
        above = pairs[:, 0] < pairs[:, 1]
        pairs = np.where(above[:, None], pairs[:, ::-1], pairs)
        dats = [replace(d, values=_mirrored(d.values, above, symmetry)) for d in dats]
    comments = mesh.extras.get(MATRIX_MARKET, {}).get("comments", ())
    notes = {"symmetry": symmetry, "comments": comments}
    return graph_mesh(mesh.size("vertices"), pairs, dats, {MATRIX_MARKET: notes})


def _wide(d: Dat) -> Dat:
    return Dat(d.name, d.set, d.values.reshape(-1).astype(_WIDE[d.values.dtype.kind]))


def _mirrored(values: NDArray[Any], above: NDArray[np.bool_], symmetry: str) -> NDArray[Any]:
    """The entries (j, i) in place of those (i, j) above the diagonal."""
    if symmetry == SYMMETRIC:
        return values
    other = -values if symmetry == "skew-symmetric" else values.conj()
    return np.where(above, other, values)


@contextmanager
def _whole_lines(path: Path) -> Iterator[Path]:
    """The file, or where its last line has no end a copy in which it has.

    Raises MeshprepError where there is no first line and no line of sizes.
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


def _check_entries(path: Path, field: str) -> None:
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


FORMAT = Format(MATRIX_MARKET, (".mtx",), _read, _write, _losses, reduce=_reduced, cells=False)
