"""Square sparse matrices in Matrix Market files: rows are vertices, stored entries edges.

An entry (i, j) ties vertices i and j, so orders are found for the pattern of A + A^T.
Entries keep their order, repeated and zero ones too; of a symmetric matrix the edges are
its stored half.

Read here, since scipy takes the numbers that a line begins with and skips the rest.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, Mesh
from ..format import Format
from ..guard import guarded
from ..text.words import numbers, words_of_lines
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

# Narrower types are widened, which changes no value.
_WIDE: Mapping[str, type] = {
    "i": np.int64,
    "u": np.uint64,
    "f": np.float64,
    "c": np.complex128,
}
_HEAD = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+(\S+)[ \t]+"
    rb"(general|symmetric|skew-symmetric|hermitian)[ \t\r]*\n((?:%[^\n]*\n|[ \t\r]*\n)*+)"
    rb"[ \t]*(\d+)[ \t]+(\d+)(?:[ \t]+(\d+))?[ \t\r]*(?:\n|$)",
    re.IGNORECASE,
)
# By the type of the entries: that of the numbers in a line, and how many stand there.
_FIELDS: Mapping[str, tuple[type, int]] = {
    "pattern": (np.int64, 2),
    "integer": (np.int64, 3),
    "unsigned-integer": (np.uint64, 3),
    "real": (np.float64, 3),
    "double": (np.float64, 3),
    "complex": (np.float64, 4),
}


def _read_matrix(path: Path) -> Mesh:
    # Refuse what is no graph: other files, dense and oblong matrices.
    data = path.read_bytes()
    head = _HEAD.match(data)
    if head is None:
        field = ""
    else:
        field = head[2].decode("ascii", "replace").lower()
    if head is None or field not in _FIELDS:
        raise MeshprepError(
            "is no Matrix Market file: it must begin with %%MatrixMarket, form, type and "
            "symmetry of a matrix, and a line of rows, columns and entries"
        )
    if head[1].lower() != b"coordinate":
        raise MeshprepError(
            "holds a dense matrix, in which all are neighbours: give a sparse one"
        )
    n, columns, count = (int(found or 0) for found in head.group(5, 6, 7))
    if n != columns:
        raise MeshprepError(
            f"the matrix has {n} rows and {columns} columns: an order of its rows and "
            "columns needs as many of the one as of the other"
        )
    if not n:
        raise MeshprepError("the matrix has no rows")
    # Read the entries, each of which is an edge.
    table = _entries(data=data, start=head.end(), field=field, count=count)
    # An entry is row, column and value; rows and columns count from 1.
    pairs = table[:, :2].astype(np.int64)
    is_outside = (pairs != table[:, :2]) | (pairs < 1) | (pairs > n)
    outside = np.flatnonzero(is_outside.any(axis=1))
    if outside.size:
        bad = outside[0]
        place = " ".join(map(str, table[bad, :2].tolist()))
        raise MeshprepError(f"entry {bad + 1} stands at {place}, outside of the matrix")
    # Without entries scipy writes "real", whatever the type.
    if count and field != "pattern":
        dats = [Dat(WEIGHT, EDGES, _values_of_entries(table, field))]
    else:
        dats = []
    comments = head[4].decode("utf-8", "replace").splitlines()
    lines = tuple(line[1:] for line in comments if line.startswith("%"))
    notes = {"symmetry": head[3].decode().lower(), "comments": lines if any(lines) else ()}
    return graph_mesh(
        n_vertices=n, pairs=pairs - 1, dats=dats, extras={MATRIX_MARKET: notes}
    )


def _entries(data: bytes, start: int, field: str, count: int) -> NDArray[Any]:
    """The numbers of all entries, a row each; raises MeshprepError that names the line."""
    # Every line is one entry, so that a number too many or too few is found where it is.
    dtype, width = _FIELDS[field]
    words = words_of_lines(data[start:])
    wrong = np.flatnonzero((words != width) & (words > 0))
    if wrong.size:
        line = data.count(b"\n", 0, start) + wrong[0] + 1
        raise MeshprepError(
            f"line {line} is no entry of a matrix of type {field}: repair it"
        )
    try:
        table = numbers(data[start:], dtype).reshape(-1, width)
    except ValueError:
        raise MeshprepError(
            f"an entry is no number of type {field}, or out of range"
        ) from None
    if len(table) != count:
        raise MeshprepError(
            f"declares {count} entries, but {len(table)} follow: it is damaged"
        )
    return table


def _values_of_entries(table: NDArray[Any], field: str) -> NDArray[Any]:
    kind = np.dtype(np.complex128) if field == "complex" else table.dtype
    values = np.ascontiguousarray(table[:, 2:]).view(kind).reshape(-1)
    for bad in np.flatnonzero(np.isinf(values))[:1] if values.dtype.kind in "fc" else ():
        raise MeshprepError(
            f"entry {bad + 1} is infinite or past the largest double: repair it"
        )
    return values


def _write_matrix(mesh: Mesh, path: Path) -> None:
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    writable = _reduce_to_matrix(mesh)
    # Without values write a pattern: 1 stands for each entry.
    row, column = pairs_of(writable).T
    weight = writable.dat(WEIGHT, EDGES)
    if weight is None:
        values = np.ones(len(row))
    else:
        values = weight.values
    n = writable.size("vertices")
    # scipy gives every file this ending.
    written = path.with_name(f"{path.name}.mtx")
    with guarded("the Matrix Market file could not be written"):
        mmwrite(
            written,
            coo_array((values, (row, column)), shape=(n, n)),
            comment="\n".join(writable.extras[MATRIX_MARKET]["comments"]),
            field="pattern" if weight is None else None,
            symmetry=symmetry_of(writable),
        )
    written.replace(path)


def _losses_of_matrix(mesh: Mesh, **_options: object) -> list[str]:
    return other_losses(mesh, _why_values_are_lost)


def _why_values_are_lost(d: Dat) -> str | None:
    if (d.name, d.set) != (WEIGHT, EDGES):
        return ""
    if d.index is not None:
        return "not every edge has one"
    kind = d.values.dtype.kind
    one = d.values[:1].size <= 1
    if (
        not one
        or kind not in _WIDE
        or d.values.dtype.itemsize > np.dtype(_WIDE[kind]).itemsize
    ):
        return "an entry is one number of at most 8 bytes, or a complex one of 16"
    return None


def _reduce_to_matrix(mesh: Mesh) -> Mesh:
    """The mesh as reading gives it: lower halves of symmetric matrices, in wide types."""
    pairs = pairs_of(mesh)
    symmetry = symmetry_of(mesh)
    dats = [
        Dat(WEIGHT, EDGES, d.values.reshape(-1).astype(_WIDE[d.values.dtype.kind]))
        for d in mesh.dats
        if len(pairs) and _why_values_are_lost(d) is None
    ]
    # Files of symmetric matrices have the lower half: mirror entries above the diagonal.
    if symmetry != "general":
        above = pairs[:, 0] < pairs[:, 1]
        pairs = np.where(above[:, None], pairs[:, ::-1], pairs)
        dats = [replace(d, values=_mirrored(d.values, above, symmetry)) for d in dats]
    comments = mesh.extras.get(MATRIX_MARKET, {}).get("comments", ())
    notes = {"symmetry": symmetry, "comments": comments}
    return graph_mesh(
        n_vertices=mesh.size("vertices"),
        pairs=pairs,
        dats=dats,
        extras={MATRIX_MARKET: notes},
    )


def _mirrored(
    values: NDArray[Any], above: NDArray[np.bool_], symmetry: str
) -> NDArray[Any]:
    """The entries (j, i) in place of those (i, j) above the diagonal."""
    if symmetry == SYMMETRIC:
        return values
    if symmetry == "skew-symmetric":
        other = -values
    else:
        other = values.conj()
    return np.where(above, other, values)


FORMAT = Format(
    read=_read_matrix,
    write=_write_matrix,
    losses=_losses_of_matrix,
    reduce=_reduce_to_matrix,
    cells=False,
)
