"""Gmsh's binary MSH by slices: blocks of nodes and elements are found by their headers."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import distinct

from ...mesh.assemble import set_names
from ...mesh.cells import shape_of
from ..gmsh.build import notes_of, tags_of_blocks
from ..gmsh.read import read_sections
from ..gmsh.scan import GmshCursor
from ..gmsh.sections import NOTES_SECTION
from ..gmsh.types import DIMS, NAME_OF, NODES, TO_MEMORY
from .model import SlicedMesh, StoredMap, StoredRows, StoredTag, in_turn

# Bytes that are looked through at once for the end of a section.
_PIECE = 1 << 20
# Sections that say what groups there are.
SMALL = ("PhysicalNames", "Entities", "PartitionedEntities", NOTES_SECTION)


class Run(NamedTuple):
    """Rows that stand together: address, how many, bytes of each, bytes before the columns."""

    address: int
    rows: int
    row: int
    skip: int = 0


@dataclass(frozen=True)
class RunRows:
    """Rows in several runs of a file."""

    path: Path
    runs: tuple[Run, ...]
    width: int  # columns
    dtype: str
    base: int = 0  # is taken off every value

    @property
    def size(self) -> int:
        return sum(run.rows for run in self.runs)

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """See :class:`..model.StoredRows`."""
        found, first = [np.empty((0, self.width), self.dtype)], 0
        with open(self.path, "rb") as file:
            for run in self.runs:
                low, high = max(begin, first), min(end, first + run.rows)
                if low < high:
                    found.append(self._rows(file, run, low - first, high - low))
                first += run.rows
        return np.concatenate(found)

    def _rows(self, file: BinaryIO, run: Run, first: int, rows: int) -> NDArray[Any]:
        file.seek(run.address + first * run.row)
        data = np.fromfile(file, np.uint8, rows * run.row).reshape(rows, run.row)
        size = self.width * np.dtype(self.dtype).itemsize
        table = np.ascontiguousarray(data[:, run.skip : run.skip + size]).view(self.dtype)
        return table - self.base if self.base else table

    def at(self, which: NDArray[np.integer]) -> NDArray[Any]:
        return np.concatenate([self.read(int(one), int(one) + 1) for one in which])


@dataclass(frozen=True)
class RepeatedRows:
    """A row for each run of elements."""

    path: Path
    ends: NDArray[np.int64]  # of the runs
    values: NDArray[np.int32]
    width: int = 1

    @property
    def size(self) -> int:
        return int(self.ends[-1])

    def read(self, begin: int, end: int) -> NDArray[Any]:
        return self.at(np.arange(begin, end))

    def at(self, which: NDArray[np.integer]) -> NDArray[Any]:
        return self.values[np.searchsorted(self.ends, which, side="right"), None]


class GmshScan:
    """Goes from header to header of a binary file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self._size = file, size
        self.integer = "<i8"
        self.points: list[Run] = []
        self.labels: list[Run] = []
        # by type of elements; tags are group and entity, which version 4.1 does not repeat
        self.cells: dict[int, list[Run]] = {}
        self.tags: dict[int, list[Run]] = {}
        self.entities: dict[int, list[int]] = {}  # of each block, by type of elements
        self.small = b""  # the sections that are no nodes, elements and values

    def header(self) -> str:
        """The version, ``"4.1"`` or ``"2.2"``."""
        begin = self.file.tell()
        first, words = self.file.readline(64).split(), self.file.readline(64).split()
        known = words[1:] == [b"1", b"8"] and words[0] in (b"4.1", b"2.2")
        if first != [b"$MeshFormat"] or not known or self.ints(1, "<i4") != [1]:
            raise MeshprepError(
                "only Gmsh's binary MSH 4.1 and 2.2 are read by slices: save the mesh with "
                "'-format msh41 -bin', or leave --slices out"
            )
        self.skip("MeshFormat")
        self.keep(begin)
        return words[0].decode()

    def keep(self, begin: int) -> None:
        """Add what stands before this place to the small sections."""
        size = self.file.tell() - begin
        self.file.seek(begin)
        self.small += self.file.read(size)

    def section(self) -> str | None:
        """The name of the next section, None at the end."""
        while line := self.file.readline(256):
            if line.strip():
                if not line.startswith(b"$"):
                    raise self.damaged("a section does not begin with $")
                return line[1:].strip().decode("ascii", "replace")
        return None

    def skip(self, name: str) -> None:
        """Go behind the end of a section."""
        end, before = f"$End{name}".encode(), b""
        while piece := self.file.read(_PIECE):
            at = (before + piece).find(end)
            if at >= 0:
                self.file.seek(at + len(end) - len(before) - len(piece), os.SEEK_CUR)
                self.file.readline(64)
                return
            before = piece[-len(end) :]
        raise self.damaged(f"section ${name} does not end")

    def number(self) -> int:
        """A number on a line of its own."""
        line = self.file.readline(64).strip()
        if not line.isdigit():
            raise self.damaged("a number is missing")
        return int(line)

    def ints(self, count: int, dtype: str = "<i8") -> list[int]:
        """Numbers from 0."""
        found = np.fromfile(self.file, dtype, count)
        if found.size < count or found.min() < 0:
            raise self.damaged("a number is missing or negative")
        return [int(n) for n in found]

    def over(self, size: int) -> int:
        """Go over bytes; where they begin."""
        at = self.file.tell()
        if at + size > self._size:
            raise self.damaged(f"a block is longer than the file at byte {at}")
        self.file.seek(size, os.SEEK_CUR)
        return at

    def nodes_of(self, kind: int) -> int:
        """Nodes of a type of elements; raises MeshprepError for types that slices do not have."""
        if not (0 <= kind < NODES.size and NODES[kind] > 0 and NAME_OF[kind] not in TO_MEMORY):
            raise MeshprepError(f"elements of type {kind} are not read by slices")
        return int(NODES[kind])

    def damaged(self, what: str) -> MeshprepError:
        """What is wrong, and where."""
        return MeshprepError(f"{what}: the file is damaged at byte {self.file.tell()}")


def scan_gmsh(path: Path) -> SlicedMesh:
    """What a file holds; as :func:`meshprep.io.read` without values, partitions and labels.

    Groups are Gmsh's own: those that meshprep writes as values, since Gmsh has no such, are left
    out.

    Raises MeshprepError for a file that is damaged, text, of another version, or whose nodes are
    not numbered 1, 2, 3 and so on.
    """
    with open(path, "rb") as file:
        scan = GmshScan(file, os.fstat(file.fileno()).st_size)
        nodes, elements, scan.integer = READERS[scan.header()]
        seen, begin = set[str](), file.tell()
        while (name := scan.section()) is not None:
            if name in seen and name in ("Nodes", "Elements"):
                raise MeshprepError(f"section ${name} is there twice: remove one")
            seen.add(name)
            if name == "Nodes":
                nodes(scan)
            elif name == "Elements":
                elements(scan)
            scan.skip(name)
            if name in SMALL:
                scan.keep(begin)
            begin = file.tell()
    if not scan.cells or not scan.points:
        raise MeshprepError("section $Nodes or $Elements is missing: the mesh is not there")
    _check_labels(RunRows(path, tuple(scan.labels), 1, scan.integer))
    for runs in scan.tags.values():
        _check_groups(RunRows(path, tuple(runs), 2, scan.integer))
    made = _mesh(path, scan)
    return replace(made, tags=tuple(_tags(path, scan, made))).hashed()


def _mesh(path: Path, scan: GmshScan) -> SlicedMesh:
    """Sets and maps as :mod:`meshprep.mesh.assemble` names them."""
    points = RunRows(path, tuple(scan.points), 3, "<f8")
    types = {number: NAME_OF[number] for number in scan.cells}
    names = set_names(types.values())
    sizes, maps, cell_types = {"nodes": points.size}, [], {}
    for number, kind in types.items():
        rows = RunRows(path, tuple(scan.cells[number]), int(NODES[number]), scan.integer, 1)
        sizes[names[kind]], cell_types[names[kind]] = rows.size, kind
        maps.append(StoredMap(f"{names[kind]}->nodes", names[kind], "nodes", rows))
    unions = {}
    if "cells" not in sizes:
        dims = {name: shape_of(kind).dim for name, kind in cell_types.items()}
        top = tuple(name for name, dim in dims.items() if dim == max(dims.values()))
        unions, sizes["cells"] = {"cells": top}, sum(sizes[name] for name in top)
    return SlicedMesh(sizes, tuple(maps), points, "", cell_types, unions)


def _tags(path: Path, scan: GmshScan, mesh: SlicedMesh) -> Iterator[StoredTag]:
    """Entities and groups of cells, which MSH 4.1 says of blocks, and MSH 2.2 of each element."""
    raw = read_sections(GmshCursor(path, np.frombuffer(scan.small, np.uint8)), ("MeshFormat",))
    notes, names = notes_of(raw), set_names(NAME_OF[number] for number in scan.cells)
    for number, runs in scan.cells.items():
        dim, on = int(DIMS[number]), names[NAME_OF[number]]
        named = {notes.physical: raw.names.get(dim, {})}
        if number in scan.tags:
            rows = RunRows(path, tuple(scan.tags[number]), 2, scan.integer)
            for column, name in enumerate((notes.physical, "entity")):
                renamed = {} if column == 0 else notes.entity.get(dim, {})
                yield StoredTag(name, on, rows, column, None, renamed, named.get(name, {}))
            continue
        blocks = np.array([[one, 1] for one in scan.entities[number]])
        ends = np.cumsum([run.rows for run in runs])
        for name, table in tags_of_blocks(blocks, raw, notes, dim).items():
            if table.group_id.size and name != "partition":
                each, lists = RepeatedRows(path, ends, table.values), tuple(table.lists())
                yield StoredTag(name, on, each, 0, lists, {}, named.get(name, {}))


def _check_groups(tags: StoredRows) -> None:
    """Raise MeshprepError where an element may stand once for each of several groups."""
    width = np.int64(1 << 32)
    keys = [
        distinct(group.astype(np.int64) * width + entity)
        for group, entity in (piece.T for piece in in_turn(tags))
    ]
    pairs = distinct(np.concatenate(keys))
    if distinct(pairs % width).size < pairs.size:
        raise MeshprepError(
            "an entity is in several groups, for each of which MSH 2.2 repeats its elements: "
            "save the mesh with '-format msh41 -bin', or leave --slices out"
        )


def _check_labels(labels: StoredRows) -> None:
    first = 1
    for piece in in_turn(labels):
        if not np.array_equal(piece[:, 0], np.arange(first, first + len(piece))):
            raise MeshprepError(
                "the nodes are not numbered 1, 2, 3, ...: save the mesh so, or leave --slices out"
            )
        first += len(piece)


def _nodes(scan: GmshScan) -> None:
    n_blocks, n, _, _ = scan.ints(4)
    for _ in range(n_blocks):
        _, _, parametric = scan.ints(3, "<i4")
        (count,) = scan.ints(1)
        if parametric:
            raise MeshprepError("parametric nodes are not read by slices: save without them")
        scan.labels.append(Run(scan.over(count * 8), count, 8))
        scan.points.append(Run(scan.over(count * 24), count, 24))
    if sum(run.rows for run in scan.points) != n:
        raise scan.damaged("the blocks do not hold all nodes")


def _elements(scan: GmshScan) -> None:
    n_blocks, n, _, _ = scan.ints(4)
    for _ in range(n_blocks):
        dim, entity, kind = scan.ints(3, "<i4")
        (count,) = scan.ints(1)
        row = 8 * (1 + scan.nodes_of(kind))
        if dim != DIMS[kind]:
            raise MeshprepError(f"elements of type {kind} are not read by slices")
        at = scan.over(count * row)
        if count:
            scan.cells.setdefault(kind, []).append(Run(at, count, row, 8))
            scan.entities.setdefault(kind, []).append(entity)
    if sum(run.rows for runs in scan.cells.values() for run in runs) != n:
        raise scan.damaged("the blocks do not hold all elements")


def _nodes2(scan: GmshScan) -> None:
    """A row is a number of 4 bytes, and three coordinates."""
    count, row = scan.number(), 28
    at = scan.over(count * row)
    scan.labels.append(Run(at, count, row))
    scan.points.append(Run(at, count, row, 4))


def _elements2(scan: GmshScan) -> None:
    """A row is the element's number, its tags and its nodes, all of 4 bytes."""
    n, read = scan.number(), 0
    while read < n:
        kind, count, n_tags = scan.ints(3, "<i4")
        if n_tags < 2:
            raise MeshprepError("elements without group and entity are not read by slices")
        row = 4 * (1 + n_tags + scan.nodes_of(kind))
        at = scan.over(count * row)
        if not 0 < count <= n - read:
            raise scan.damaged("a block holds no elements, or more than there are")
        scan.tags.setdefault(kind, []).append(Run(at, count, row, 4))
        scan.cells.setdefault(kind, []).append(Run(at, count, row, 4 * (1 + n_tags)))
        read += count


Reader = Callable[[GmshScan], None]
# By version: of the sections $Nodes and $Elements, and the type of their numbers.
READERS: dict[str, tuple[Reader, Reader, str]] = {
    "4.1": (_nodes, _elements, "<i8"),
    "2.2": (_nodes2, _elements2, "<i4"),
}
