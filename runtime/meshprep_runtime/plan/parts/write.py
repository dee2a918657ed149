"""Writing files of parts: every part once, with the memory of one."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..tree import Tree
from .arrays import arrays_of, describe_parts
from .model import PartPlan
from .slices import PartsTable, SlicedDataset, read_all
from .store import parts_table
from .structure import check_part

if TYPE_CHECKING:
    from .layout import LaidOut


# Bytes that are copied at once.
PIECE = 1 << 24


class KeptParts:
    """A split that a file has already; its parts ``held`` are copied as they are.

    Their digests are copied, too, so that damage is found where a part is read.
    """

    def __init__(self, path: Path, parts: int, held: range | None = None) -> None:
        self.table = parts_table(path, parts)
        self._held = range(parts) if held is None else held
        self._path = path

    def copy(self, ends: NDArray[np.int64], file: BinaryIO) -> None:
        """Write the parts to where :attr:`PartsTable.ends` says.

        Raises PlanError where the file is cut short.
        """
        first, last = self._held.start, self._held.stop
        old = os.open(self._path, os.O_RDONLY)
        try:
            for (begin, end), to in zip(
                self.table.ends[:, [first, last]].tolist(), ends[:, first].tolist(), strict=True
            ):
                file.seek(to)
                for at in range(begin, end, PIECE):
                    file.write(read_all(old, at, min(PIECE, end - at)))
        finally:
            os.close(old)


@dataclass
class _Spilled:
    """One array of a part that waits in a file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int  # its first byte among those of the part


_Found = dict[int, dict[str, _Spilled]]
Gather = Callable[[Any], Sequence[Any]]


class SpilledParts:
    """Parts that are built one after another and wait in a file for their final places.

    Where several processes build parts, each has some of them: those that it added. With ``check``,
    a part is looked at when it is added, and not only when it is read again.
    """

    def __init__(self, file: BinaryIO, parts: int, *, check: bool = True) -> None:
        self._file, self._parts, self._check = file, parts, check
        self._arrays: _Found = {}
        # where each part begins in the file, its bytes, and their digest
        self._places: dict[int, tuple[int, int, bytes]] = {}
        self._description: dict[str, Any] = {}

    @property
    def held(self) -> Sequence[int]:
        """The parts that were added here."""
        return sorted(self._arrays)

    def add(self, part: PartPlan) -> None:
        """Add a part; PlanError where its arrays do not fit each other."""
        if self._check:
            check_part(part)
        self._description = self._description or describe_parts(part)
        found, pieces, size = {}, [], 0
        for name, array in sorted(arrays_of(part).items()):
            found[name] = _Spilled(array.dtype, array.shape, size)
            pieces.append(np.ascontiguousarray(array).data)
            size += array.nbytes
        data = b"".join(pieces)
        place = self._file.seek(0, os.SEEK_END), size, hashlib.sha256(data).digest()
        self._file.write(data)
        self._arrays[part.part], self._places[part.part] = found, place

    def finish(self, figures: Mapping[str, Any], gather: Gather = lambda value: [value]) -> None:
        """Say what the parts have in common, when all of them are there.

        Parameters
        ----------
        figures : mapping
            JSON values that stand in the description.
        gather : callable
            Gives the values of all processes.
        """
        every: _Found = {}
        for arrays, words in gather((self._arrays, self._description)):
            every |= arrays
            self._description = self._description or words
        names = sorted(every[0])
        datasets, offset = [], np.zeros((len(names), self._parts + 1), np.int64)
        for i, name in enumerate(names):
            column = [every[part][name] for part in range(self._parts)]
            dtype = np.result_type(*{one.dtype for one in column})
            datasets.append(SlicedDataset(name, dtype.str, column[0].shape[1:]))
            offset[i, 1:] = np.cumsum([one.shape[0] for one in column])
        digest = np.zeros((self._parts, 32), np.uint8)
        description = {**self._description, "figures": figures}
        self.table = PartsTable(self._parts, description, tuple(datasets), offset, digest)
        for found in gather({part: self._digest(part) for part in self.held}):
            for part, one in found.items():
                digest[part] = np.frombuffer(one, np.uint8)

    def _digest(self, part: int) -> bytes:
        spilled = self._arrays[part]
        if all(spilled[one.name].dtype == one.dtype for one in self.table.datasets):
            return self._places[part][2]
        whole = hashlib.sha256()
        for data in self._slices(part):
            whole.update(np.ascontiguousarray(data).data)
        return whole.digest()

    def copy(self, ends: NDArray[np.int64], file: BinaryIO) -> None:
        """Write the parts that were added here, as :meth:`KeptParts.copy`."""
        for part in self.held:
            for begin, data in zip(ends[:, part].tolist(), self._slices(part), strict=True):
                if data.size:
                    file.seek(begin)
                    file.write(np.ascontiguousarray(data).data)

    def _slices(self, part: int) -> Sequence[NDArray[Any]]:
        """The arrays of a part in the order of the datasets."""
        address, size, _ = self._places[part]
        self._file.seek(address)
        data = self._file.read(size)
        return [_array(data, self._arrays[part][one.name], one) for one in self.table.datasets]


# Splits whose parts can be copied into a file; their tables have addresses of their own.
PartsSource = KeptParts | SpilledParts


def _array(data: bytes, spilled: _Spilled, dataset: SlicedDataset) -> NDArray[Any]:
    found = np.frombuffer(data, spilled.dtype, prod(spilled.shape), spilled.begin)
    return found.reshape(spilled.shape).astype(dataset.dtype, copy=False)


def begin_file(path: Path, about: Mapping[str, Any], sources: Sequence[PartsSource]) -> "LaidOut":
    """Everything but the slices, and room for them; the first of three steps."""
    from .layout import lay_out

    tree = Tree()
    tree.datasets["/about"] = json.dumps(about)
    tree.group("/parts")
    for position, source in enumerate(sources):
        at, table = f"/parts/{source.table.parts}", source.table
        tree.group(at, position=position)
        tree.datasets[f"{at}/description"] = json.dumps(table.description)
        tree.datasets[f"{at}/datasets"] = json.dumps([one.name for one in table.datasets])
        tree.datasets[f"{at}/offset"], tree.datasets[f"{at}/digest"] = table.offset, table.digest
        for one in table.datasets:
            _group_of(tree, f"{at}/{one.name}")
    laid_out = lay_out(tree, [source.table for source in sources])
    with open(path, "r+b" if path.exists() else "w+b") as file:
        file.truncate(laid_out.size)
        for address, piece in laid_out.pieces.items():
            file.seek(address)
            file.write(piece)
    return laid_out


def copy_slices(path: Path, laid_out: "LaidOut", sources: Sequence[PartsSource]) -> None:
    """The second step: the parts that this process holds."""
    with open(path, "r+b") as file:
        for source, addresses in zip(sources, laid_out.addresses, strict=True):
            _copy(source, addresses, file)


def _group_of(tree: Tree, path: str) -> None:
    folder = path.rpartition("/")[0]
    if folder not in tree.groups:
        _group_of(tree, folder)
        tree.group(folder)


def _copy(source: PartsSource, addresses: Sequence[int], file: BinaryIO) -> None:
    table = source.table
    placed = replace(
        table,
        datasets=tuple(
            replace(one, address=at) for one, at in zip(table.datasets, addresses, strict=True)
        ),
    )
    source.copy(placed.ends, file)


@contextmanager
def spill_file(path: Path) -> Iterator[BinaryIO]:
    """A file for parts that wait, removed afterwards."""
    try:
        with open(path, "w+b") as file:
            yield file
    finally:
        path.unlink(missing_ok=True)
