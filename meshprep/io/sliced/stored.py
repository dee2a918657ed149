"""A mesh that stays in its file, and rows of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from ...mesh import Dat, ElementSet, Mesh, SetMap, Tag
from ...mesh.assemble import GroupTable
from ...mesh.model import hash_of_rows

# Rows that are read at once where all are read in turn.
ROWS = 1 << 17


@dataclass(frozen=True)
class Hdf5Rows:
    """Rows of a dataset; can be sent to other processes."""

    path: Path
    dataset: str
    size: int
    width: int
    base: int = 0  # is taken off every value

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Some consecutive rows, (end - begin, width)."""
        return self[begin:end]

    def __getitem__(self, wanted: Any) -> NDArray[Any]:
        """Rows as of an array, by a slice or by their numbers, of any shape."""
        with h5py.File(self.path, "r") as file:
            item = file[self.dataset]
            if isinstance(wanted, slice):
                selected = item[wanted].reshape(-1, self.width)
            else:
                # Read each row once, in rising order, and put it where it is wanted.
                which, place = np.unique(wanted, return_inverse=True)
                rows = np.array([item[int(one)] for one in which], item.dtype)
                selected = rows.reshape(-1, self.width)[place.reshape(np.shape(wanted))]
        if not selected.dtype.isnative:
            selected = selected.astype(selected.dtype.newbyteorder("="))
        if self.base:
            return selected.astype(np.int64) - self.base
        return selected


class Run(NamedTuple):
    """Rows of numbers of 8 bytes that stand together."""

    address: int
    rows: int
    width: int
    first: int  # the column at which those of interest begin


@dataclass(frozen=True)
class RunRows:
    """Rows in several runs of a file."""

    path: Path
    runs: Sequence[Run]
    width: int
    dtype: str
    base: int = 0  # is taken off every value

    @property
    def size(self) -> int:
        return sum(run.rows for run in self.runs)

    def read(self, begin: int, end: int) -> NDArray[Any]:
        pieces = [np.empty((0, self.width), self.dtype)]
        start = 0
        for address, rows, width, first in self.runs:
            low = max(begin - start, 0)
            high = min(end - start, rows)
            if low < high:
                at = address + 8 * width * low
                count = (high - low) * width
                table = np.fromfile(self.path, self.dtype, count, offset=at).reshape(
                    -1, width
                )
                pieces.append(table[:, first:])
            start += rows
        whole = np.concatenate(pieces)
        if self.base:
            return whole - self.base
        return whole


@dataclass(frozen=True)
class NumberedRows:
    """Rows in several runs of a file, in the order of their numbers.

    These are 1, 2, ... through all runs, and rise inside each.
    """

    path: Path
    numbers: Sequence[Run]
    runs: Sequence[Run]  # the rows of these numbers
    ends: NDArray[np.int64]  # (m, 2): the lowest and highest number of each run
    width: int
    dtype: str

    @property
    def size(self) -> int:
        return sum(run.rows for run in self.runs)

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """The rows with the numbers ``begin + 1`` to ``end``. O(runs + rows)."""
        pieces = np.empty((end - begin, self.width), self.dtype)
        bytes_of = np.memmap(self.path, np.uint8, "r")
        inside = (self.ends[:, 0] <= end) & (self.ends[:, 1] > begin)
        for i in np.flatnonzero(inside).tolist():
            number = self.numbers[i]
            run = self.runs[i]
            # The numbers of a run rise: the wanted ones stand together.
            held = bytes_of[number.address : number.address + 8 * number.rows].view("<i8")
            low, high = np.searchsorted(held, [begin + 1, end + 1]).tolist()
            at = run.address
            row = 8 * run.width
            rows = bytes_of[at + row * low : at + row * high].view(self.dtype)
            pieces[held[low:high] - (begin + 1)] = rows.reshape(-1, run.width)
        return pieces


StoredRows = Hdf5Rows | RunRows | NumberedRows


def in_turn(rows: StoredRows) -> Iterator[tuple[int, NDArray[Any]]]:
    """All rows, some at a time, each time with the number of the first."""
    for begin in range(0, rows.size, ROWS):
        yield begin, rows.read(begin, min(begin + ROWS, rows.size))


@dataclass(frozen=True)
class StoredMap:
    """A map in a file."""

    name: str
    from_set: str
    to_set: str
    rows: StoredRows

    @property
    def size(self) -> int:
        return self.rows.size

    @property
    def arity(self) -> int:
        return self.rows.width

    @property
    def table(self) -> StoredRows:
        return self.rows


@dataclass(frozen=True)
class StoredTag:
    """Groups of a set, the same for all elements of a run."""

    name: str
    set: str
    ends: NDArray[np.int64]  # of the runs
    table: GroupTable  # of the runs
    names: Mapping[int, str]

    def read(self, begin: int, end: int) -> Tag:
        """The groups of some consecutive elements."""
        runs = np.searchsorted(self.ends, np.arange(begin, end), side="right")
        t = self.table
        return Tag(
            name=self.name,
            set=self.set,
            values=t.values[runs],
            group_offset=t.group_offset,
            group_id=t.group_id,
            names=self.names,
        )


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
        """The same sets and maps without elements, for looking up loops and maps."""
        kinds = self.cell_types
        unions = self.unions
        sets = [
            ElementSet(name=n, size=0, cell_type=kinds.get(n), parts=unions.get(n, ()))
            for n in self.sizes
        ]
        tables = [np.empty((0, m.rows.width), np.int32) for m in self.maps]
        ends = zip(self.maps, tables, strict=True)
        maps = [
            SetMap(name=m.name, from_set=m.from_set, to_set=m.to_set, table=table)
            for m, table in ends
        ]
        dats = []
        if self.coordinates is not None:
            dats.append(Dat("coordinates", "nodes", np.empty((0, self.coordinates.width))))
        return Mesh(sets, maps, dats)

    def hashed(self) -> "SlicedMesh":
        """With the hash of its content, for which all rows are read."""
        rows = {m.name: m.rows for m in self.maps}
        found = hash_of_rows(
            self.shape(), self.sizes, lambda name: (part for _, part in in_turn(rows[name]))
        )
        return replace(self, content_hash=found)

    def map(self, name: str) -> StoredMap | None:
        """A map of the file by its name."""
        return next((m for m in self.maps if m.name == name), None)
