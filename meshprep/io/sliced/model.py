"""A mesh that stays in its file, and rows of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from ...mesh import Dat, ElementSet, Mesh, SetMap, Tag
from ...mesh.assemble import GroupTable
from ...mesh.model import hash_of_rows

# Rows that are read at once where all are read in turn.
ROWS = 1 << 17


class StoredRows(Protocol):
    """Rows in a file; can be sent to other processes."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def size(self) -> int:
        """How many."""

    @property
    def width(self) -> int:
        """Columns."""

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Some consecutive rows, (end - begin, width)."""

    def at(self, which: NDArray[np.integer]) -> NDArray[Any]:
        """A few rows by their numbers."""


@dataclass(frozen=True)
class Hdf5Rows:
    """Rows of a dataset."""

    path: Path
    dataset: str
    size: int
    width: int
    base: int = 0  # is taken off every value

    def read(self, begin: int, end: int) -> NDArray[Any]:
        with h5py.File(self.path, "r") as file:
            return self._plain(file[self.dataset][begin:end])

    def at(self, which: NDArray[np.integer]) -> NDArray[Any]:
        with h5py.File(self.path, "r") as file:
            item = file[self.dataset]
            return self._plain(np.array([item[int(one)] for one in which], item.dtype))

    def _plain(self, found: NDArray[Any]) -> NDArray[Any]:
        found = found.reshape(-1, self.width)
        if not found.dtype.isnative:
            found = found.astype(found.dtype.newbyteorder("="))
        return found.astype(np.int64) - self.base if self.base else found


def in_turn(rows: StoredRows) -> Iterator[NDArray[Any]]:
    """All rows, some at a time."""
    for begin in range(0, rows.size, ROWS):
        yield rows.read(begin, min(begin + ROWS, rows.size))


@dataclass(frozen=True)
class StoredMap:
    """A map in a file."""

    name: str
    from_set: str
    to_set: str
    rows: StoredRows


@dataclass(frozen=True)
class StoredTag:
    """Groups of a set in a file: a number of each element in one column."""

    name: str
    set: str
    rows: StoredRows
    column: int = 0
    # The groups that each number stands for; without them numbers are groups.
    lists: tuple[tuple[int, ...], ...] | None = None
    renamed: Mapping[int, int] = field(default_factory=dict)  # groups by the number in the file
    names: Mapping[int, str] = field(default_factory=dict)

    def read(self, begin: int, end: int) -> Tag:
        """The groups of some consecutive elements."""
        values = self.rows.read(begin, end)[:, self.column]
        if self.lists is None:
            known, place = np.unique(values, return_inverse=True)
            ids = np.array([self.renamed.get(one, one) for one in known.tolist()], np.int64)
            return Tag.from_ids(self.name, self.set, ids[place.reshape(-1)], self.names)
        made = GroupTable.of(self.lists, values.astype(np.int32))
        arrays = made.values, made.group_offset, made.group_id
        return Tag(self.name, self.set, *arrays, self.names)


@dataclass(frozen=True)
class SlicedMesh:
    """What a mesh file holds."""

    sizes: Mapping[str, int]  # by set name
    maps: tuple[StoredMap, ...]
    coordinates: StoredRows | None  # of the nodes
    content_hash: str = ""  # :meth:`meshprep.mesh.Mesh.content_hash` of the mesh
    cell_types: Mapping[str, str] = field(default_factory=dict)  # by set name
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by set name
    tags: tuple[StoredTag, ...] = ()

    def shape(self) -> Mesh:
        """The same sets and maps without elements, from which loops and maps are looked up."""
        kinds, unions = self.cell_types, self.unions
        sets = [ElementSet(n, 0, kinds.get(n), unions.get(n, ())) for n in self.sizes]
        tables = [np.empty((0, m.rows.width), np.int32) for m in self.maps]
        ends = zip(self.maps, tables, strict=True)
        maps = [SetMap(m.name, m.from_set, m.to_set, table) for m, table in ends]
        dats = []
        if self.coordinates is not None:
            dats.append(Dat("coordinates", "nodes", np.empty((0, self.coordinates.width))))
        return Mesh(sets, maps, dats)

    def hashed(self) -> "SlicedMesh":
        """With the hash of its content, for which all rows are read."""
        rows = {m.name: m.rows for m in self.maps}
        found = hash_of_rows(self.shape(), self.sizes, lambda name: in_turn(rows[name]))
        return replace(self, content_hash=found)

    def map(self, name: str) -> StoredMap | None:
        """A map of the file by its name."""
        return next((m for m in self.maps if m.name == name), None)
