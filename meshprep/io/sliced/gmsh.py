"""Gmsh's binary MSH 4.1 by slices: blocks of nodes and elements are found by their headers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.assemble import set_names
from ...mesh.cells import shape_of
from ...mesh.model import hash_of_rows
from ..gmsh.types import DIMS, NAME_OF, NODES, TO_MEMORY
from .model import SlicedMesh, StoredMap, StoredRows, in_turn

# Bytes that are looked through at once for the end of a section.
_PIECE = 1 << 20
_SIZE = 8
_Run = tuple[int, int]


@dataclass(frozen=True)
class RunRows:
    """Rows of words of 8 bytes in several runs of a file.

    Parameters
    ----------
    path : Path
    runs : tuple of (address, rows)
    skip, width : int
        Words before the columns of each row, and columns.
    dtype : str
    base : int
        Is taken off every value.
    """

    path: Path
    runs: tuple[_Run, ...]
    skip: int
    width: int
    dtype: str
    base: int = 0

    @property
    def size(self) -> int:
        """How many."""
        return sum(rows for _, rows in self.runs)

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """See :class:`..model.StoredRows`."""
        found, first = [np.empty((0, self.width), self.dtype)], 0
        row = (self.skip + self.width) * _SIZE
        with open(self.path, "rb") as file:
            for address, rows in self.runs:
                low, high = max(begin, first), min(end, first + rows)
                if low < high:
                    found.append(self._rows(file, address + (low - first) * row, high - low))
                first += rows
        return np.concatenate(found)

    def _rows(self, file: BinaryIO, address: int, rows: int) -> NDArray[Any]:
        file.seek(address)
        words = np.fromfile(file, self.dtype, rows * (self.skip + self.width))
        table = words.reshape(rows, -1)[:, self.skip :]
        return table - self.base if self.base else table

    def at(self, which: NDArray[np.integer]) -> NDArray[Any]:
        """See :class:`..model.StoredRows`."""
        return np.concatenate([self.read(int(one), int(one) + 1) for one in which])


def scan_gmsh(path: Path) -> SlicedMesh:
    """What a file holds; as :func:`meshprep.io.read` without values, groups and labels.

    Raises
    ------
    MeshprepError
        For a file that is damaged, text, of another version, or whose nodes are not numbered
        1, 2, 3 and so on.
    """
    with open(path, "rb") as file:
        scan = _Scan(file, os.fstat(file.fileno()).st_size)
        scan.header()
        seen: set[str] = set()
        while (name := scan.section()) is not None:
            if name in seen and name in ("Nodes", "Elements"):
                raise MeshprepError(f"section ${name} is there twice: remove one")
            seen.add(name)
            if name == "Nodes":
                scan.nodes()
            elif name == "Elements":
                scan.elements()
            scan.skip(name)
    if not scan.cells or not scan.points:
        raise MeshprepError("section $Nodes or $Elements is missing: the mesh is not there")
    _check_labels(RunRows(path, tuple(scan.labels), 0, 1, "<i8"))
    made = _mesh(path, scan)
    named = {m.name: m.rows for m in made.maps}

    def rows_of(name: str) -> Iterator[NDArray[Any]]:
        return in_turn(named[name])

    return replace(made, content_hash=hash_of_rows(made.shape(), made.sizes, rows_of))


def _mesh(path: Path, scan: _Scan) -> SlicedMesh:
    """Sets and maps as :mod:`meshprep.mesh.assemble` names them."""
    points = RunRows(path, tuple(scan.points), 0, 3, "<f8")
    types = {number: NAME_OF[number] for number in scan.cells}
    names = set_names(types.values())
    sizes, maps, cell_types = {"nodes": points.size}, [], {}
    for number, kind in types.items():
        rows = RunRows(path, tuple(scan.cells[number]), 1, int(NODES[number]), "<i8", 1)
        sizes[names[kind]], cell_types[names[kind]] = rows.size, kind
        maps.append(StoredMap(f"{names[kind]}->nodes", names[kind], "nodes", rows))
    unions = {}
    if "cells" not in sizes:
        dims = {name: shape_of(kind).dim for name, kind in cell_types.items()}
        top = tuple(name for name, dim in dims.items() if dim == max(dims.values()))
        unions, sizes["cells"] = {"cells": top}, sum(sizes[name] for name in top)
    return SlicedMesh(sizes, tuple(maps), points, "", cell_types, unions)


def _check_labels(labels: StoredRows) -> None:
    first = 1
    for piece in in_turn(labels):
        if not np.array_equal(piece[:, 0], np.arange(first, first + len(piece))):
            raise MeshprepError(
                "the nodes are not numbered 1, 2, 3, ...: save the mesh so, or leave --slices out"
            )
        first += len(piece)


class _Scan:
    """Goes from header to header of a binary file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self.points: list[_Run] = []
        self.labels: list[_Run] = []
        self.cells: dict[int, list[_Run]] = {}

    def header(self) -> None:
        words = [self._file.readline(64).split(), self._file.readline(64).split()]
        if words != [[b"$MeshFormat"], [b"4.1", b"1", b"8"]] or self._ints(1, "<i4") != [1]:
            raise MeshprepError(
                "only Gmsh's binary MSH 4.1 is read by slices: save the mesh with "
                "'-format msh41 -bin', or leave --slices out"
            )
        self.skip("MeshFormat")

    def section(self) -> str | None:
        """The name of the next section, None at the end."""
        while line := self._file.readline(256):
            if line.strip():
                if not line.startswith(b"$"):
                    raise self._damaged("a section does not begin with $")
                return line[1:].strip().decode("ascii", "replace")
        return None

    def skip(self, name: str) -> None:
        """Go behind the end of a section."""
        end, before = f"$End{name}".encode(), b""
        while piece := self._file.read(_PIECE):
            at = (before + piece).find(end)
            if at >= 0:
                self._file.seek(at + len(end) - len(before) - len(piece), os.SEEK_CUR)
                self._file.readline(64)
                return
            before = piece[-len(end) :]
        raise self._damaged(f"section ${name} does not end")

    def nodes(self) -> None:
        n_blocks, n, _, _ = self._ints(4)
        for _ in range(n_blocks):
            dim, _, parametric = self._ints(3, "<i4")
            (count,) = self._ints(1)
            width = 3 + (dim if parametric else 0)
            if parametric:
                raise MeshprepError("parametric nodes are not read by slices: save without them")
            self.labels.append((self._over(count), count))
            self.points.append((self._over(count * width), count))
        if sum(count for _, count in self.points) != n:
            raise self._damaged("the blocks do not hold all nodes")

    def elements(self) -> None:
        n_blocks, n, _, _ = self._ints(4)
        for _ in range(n_blocks):
            dim, _, kind = self._ints(3, "<i4")
            (count,) = self._ints(1)
            known = 0 <= kind < NODES.size and NODES[kind] > 0 and NAME_OF[kind] not in TO_MEMORY
            if not known or dim != DIMS[kind]:
                raise MeshprepError(f"elements of type {kind} are not read by slices")
            at = self._over(count * (1 + int(NODES[kind])))
            if count:
                self.cells.setdefault(kind, []).append((at, count))
        if sum(count for runs in self.cells.values() for _, count in runs) != n:
            raise self._damaged("the blocks do not hold all elements")

    def _ints(self, count: int, dtype: str = "<i8") -> list[int]:
        found = np.fromfile(self._file, dtype, count)
        if found.size < count or found.min() < 0:
            raise self._damaged("a number is missing or negative")
        return [int(n) for n in found]

    def _over(self, words: int) -> int:
        """Go over words; where they begin."""
        at = self._file.tell()
        if at + words * _SIZE > self._size:
            raise self._damaged(f"a block is longer than the file at byte {at}")
        self._file.seek(words * _SIZE, os.SEEK_CUR)
        return at

    def _damaged(self, what: str) -> MeshprepError:
        return MeshprepError(f"{what}: the file is damaged at byte {self._file.tell()}")
