"""Meshes of AFLR and FUN3D, UGRID: text, or binary as the name of the file says."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..cell_blocks import Cells, FileMesh, read_only_format

# Nodes of each type of cell, in the order of the file; those of a pyramid stand otherwise
# there.
_FLAT = {"triangle": 3, "quad": 4}
_SOLID = {"tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
_PYRAMID = [1, 0, 3, 4, 2]
# By the ending before the last: whole numbers and coordinates; Fortran's have records.
_BINARY = {
    "b8": (">i4", ">f8"),
    "lb8": ("<i4", "<f8"),
    "b4": (">i4", ">f4"),
    "lb4": ("<i4", "<f4"),
}


class _UgridNumbers:
    """The numbers of a UGRID file, one after the other: of text, or of a binary kind."""

    def __init__(self, data: bytes, kind: tuple[str, str] | None) -> None:
        self.kind = kind
        self._data = data
        self._text = np.zeros(0)
        if kind is None:
            self._text = np.array(data.split(), np.float64)
        self._pos = 0  # numbers of a text that were taken, bytes of a binary file

    def take(self, count: int, real: bool = False) -> NDArray[np.generic]:
        """The next numbers; raises MeshprepError where the file has fewer."""
        numbers: NDArray[np.generic]
        if self.kind is None:
            numbers = self._text[self._pos : self._pos + count]
            self._pos += numbers.size
            if not real:
                if (numbers != np.rint(numbers)).any():
                    raise MeshprepError("a number of a node is no whole number")
                numbers = numbers.astype(np.int64)
        else:
            dtype = np.dtype(self.kind[real])
            n_there = (len(self._data) - self._pos) // dtype.itemsize
            numbers = np.frombuffer(self._data, dtype, min(count, n_there), self._pos)
            self._pos += numbers.nbytes
        if numbers.size < count:
            raise MeshprepError("it ends before the numbers that its head declares")
        return numbers

    def left(self) -> str:
        """What stands behind the numbers that were taken, in words; "" for nothing."""
        if self.kind is None:
            n_left = self._text.size - self._pos
            unit = "numbers"
        else:
            n_left = len(self._data) - self._pos
            unit = "bytes"
        return f"{n_left} {unit} after the cells" if n_left else ""


def read(path: Path) -> FileMesh:
    """A mesh of AFLR and FUN3D, text or binary (``.b8.ugrid``, ``.lb8.ugrid``, b4, lb4)."""
    kind = _BINARY.get(path.suffixes[-2][1:] if len(path.suffixes) > 1 else "")
    data = path.read_bytes()
    n_bytes = len(data)
    numbers = _UgridNumbers(data, kind)
    take = numbers.take
    # The head has the numbers of nodes, triangles, quads, tetrahedra, pyramids, wedges
    # and hexahedra; then come the coordinates.
    nodes, *counts = take(7).tolist()
    count = dict(zip((*_FLAT, *_SOLID), counts, strict=True))
    if min(nodes, *counts) < 0 or max(nodes, *counts) > n_bytes:
        raise MeshprepError(f"declares {max(nodes, *counts)} items in {n_bytes} bytes")
    mesh = FileMesh(take(3 * nodes, real=True).reshape(-1, 3), [])
    groups: list[NDArray[np.generic]] = []
    for types in (_FLAT, _SOLID):
        for name, width in types.items():
            table = take(count[name] * width).reshape(-1, width).astype(np.int64) - 1
            mesh.cells.append(
                Cells(name, table[:, _PYRAMID] if name == "pyramid" else table)
            )
        # Marks of the faces of the border stand between faces and volumes.
        if types is _FLAT:
            groups = [take(count[name]) for name in _FLAT]
    groups += [np.zeros(count[name], np.int64) for name in _SOLID]
    filled = [k for k, block in enumerate(mesh.cells) if len(block.data)]
    mesh.cells = [mesh.cells[k] for k in filled]
    mesh.cell_data = {"ugrid:ref": [groups[k] for k in filled]}
    left = numbers.left()
    if left:
        mesh.left_out = [left]
    return mesh


FORMAT = read_only_format(read)
