"""Headers of Gmsh's binary files, and the rows that lie between them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..gmsh.types import NAME_OF, NODES, TO_MEMORY

# Bytes that are looked through at once for the end of a section.
_PIECE = 1 << 20


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

    def header(self) -> str:
        """The version, ``"4.1"`` or ``"2.2"``."""
        first, words = self.file.readline(64).split(), self.file.readline(64).split()
        known = words[1:] == [b"1", b"8"] and words[0] in (b"4.1", b"2.2")
        if first != [b"$MeshFormat"] or not known or self.ints(1, "<i4") != [1]:
            raise MeshprepError(
                "only Gmsh's binary MSH 4.1 and 2.2 are read by slices: save the mesh with "
                "'-format msh41 -bin', or leave --slices out"
            )
        self.skip("MeshFormat")
        return words[0].decode()

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
