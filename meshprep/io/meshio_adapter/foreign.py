"""Formats that are read alone: UGRID, and by meshio TetGen and Netgen."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .file_mesh import Cells, FileMesh

# Nodes of each type of cell, in the order of the file; those of a pyramid stand otherwise there.
_FLAT = {"triangle": 3, "quad": 4}
_SOLID = {"tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
_PYRAMID = [1, 0, 3, 4, 2]
# By the ending before the last: whole numbers and coordinates; Fortran's have records.
_BINARY = {"b8": (">i4", ">f8"), "lb8": ("<i4", "<f8"), "b4": (">i4", ">f4"), "lb4": ("<i4", "<f4")}


def read_ugrid(path: Path) -> FileMesh:
    """A mesh of AFLR and FUN3D, text or binary (``.b8.ugrid``, ``.lb8.ugrid``, b4, lb4)."""
    kind = _BINARY.get(path.suffixes[-2][1:] if len(path.suffixes) > 1 else "")
    data = path.read_bytes()
    text = np.array(data.split(), np.float64) if kind is None else np.zeros(0)
    at = 0

    def take(count: int, real: bool = False) -> NDArray[np.generic]:
        nonlocal at
        if kind is None:
            found = text[at : at + count]
            at += found.size
            if not real and (found != np.rint(found)).any():
                raise MeshprepError("a number of a node is no whole number")
            made = found if real else found.astype(np.int64)
        else:
            dtype = np.dtype(kind[real])
            made = np.frombuffer(data, dtype, min(count, (len(data) - at) // dtype.itemsize), at)
            at += made.nbytes
        if made.size < count:
            raise MeshprepError("it ends before the numbers that its head declares")
        return made

    nodes, *counts = take(7).tolist()
    count = dict(zip((*_FLAT, *_SOLID), counts, strict=True))
    if min(nodes, *counts) < 0 or max(nodes, *counts) > len(data):
        raise MeshprepError(f"declares {max(nodes, *counts)} items in {len(data)} bytes")
    made = FileMesh(take(3 * nodes, real=True).reshape(-1, 3), [])
    groups: list[NDArray[np.generic]] = []
    for types in (_FLAT, _SOLID):
        for name, width in types.items():
            table = take(count[name] * width).reshape(-1, width).astype(np.int64) - 1
            made.cells.append(Cells(name, table[:, _PYRAMID] if name == "pyramid" else table))
        if types is _FLAT:
            groups = [take(count[name]) for name in _FLAT]
    groups += [np.zeros(count[name], np.int64) for name in _SOLID]
    kept = [k for k, block in enumerate(made.cells) if len(block.data)]
    made.cells = [made.cells[k] for k in kept]
    made.cell_data = {"ugrid:ref": [groups[k] for k in kept]}
    rest = text.size - at if kind is None else len(data) - at
    if rest:
        made.left_out = [f"{rest} {'numbers' if kind is None else 'bytes'} after the cells"]
    return made


def read_tetgen(path: Path) -> FileMesh:
    """A ``.node`` file and the ``.ele`` file beside it."""
    other = path.with_suffix(".ele" if path.suffix == ".node" else ".node")
    if not other.is_file():
        raise MeshprepError(f"needs {other.name} beside it, which does not exist")
    for one in (path, other):
        _check_counts(one, rb"\A(?:\s|#.*\n)*(\d+)")
    return _by_meshio("tetgen", path.with_suffix(".node"))


def read_netgen(path: Path) -> FileMesh:
    """A mesh of Netgen, as text."""
    _check_counts(path, rb"(?m)^[a-z]\w*[ \t]*\r?\n[ \t]*(\d+)[ \t]*\r?$")
    return _by_meshio("netgen", path)


def _check_counts(path: Path, pattern: bytes) -> None:
    """Refuse files that declare more than they can hold, before memory is made for it."""
    data = path.read_bytes()
    if (most := max(map(int, re.findall(pattern, data)), default=0)) > len(data):
        raise MeshprepError(f"declares {most} items in {len(data)} bytes")


def _by_meshio(name: str, path: Path) -> FileMesh:
    import meshio

    from ..meshio_objects import of_meshio

    return of_meshio(meshio.read(path, file_format=name))
