"""Writing files of parts: every part once, with the memory of one."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from ..file.hdf5 import fill, new_hdf5
from ..file.tree import Tree
from .batch import PartBatch
from .slices import PartsTable, SlicedDataset, digests, one_by_one, read_all
from .store import parts_table
from .structure import check_batch


@dataclass(frozen=True)
class LaidOut:
    """Where the slices of a file are to stand."""

    addresses: list[list[int]]  # of every dataset of every table
    # The slices lie between these, one after the other.
    begin: int
    end: int


def _declared(made: dict[str, Any], path: str, table: PartsTable, index: int) -> Any:
    """A dataset that has no place yet."""
    one = table.datasets[index]
    folder, _, leaf = path.rpartition("/")
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    creation.set_obj_track_times(False)
    space = h5py.h5s.create_simple((int(table.offset[index, -1]), *one.row))
    kind = h5py.h5t.py_create(np.dtype(one.dtype))
    return h5py.h5d.create(made[folder].id, leaf.encode(), kind, space, dcpl=creation)


def _placed(waiting: list[list[Any]]) -> LaidOut:
    """Make HDF5 place every dataset."""
    addresses: list[list[int]] = []
    begin = end = -1
    for datasets in waiting:
        addresses.append([])
        for one in datasets:
            size = int(np.prod(one.shape)) * one.dtype.itemsize
            if size:
                _write_a_row(one)
                address = int(one.get_offset())
                begin = address if begin < 0 else begin
                if end not in (-1, address):
                    raise RuntimeError("HDF5 left a gap between slices")
                end = address + size
            addresses[-1].append(int(one.get_offset()) if size else 0)
    return LaidOut(addresses, max(begin, 512), max(end, 512))


def _write_a_row(dataset: Any) -> None:
    row = (1, *dataset.shape[1:])
    space = dataset.get_space()
    space.select_hyperslab((0,) * len(row), row)
    dataset.write(h5py.h5s.create_simple(row), space, np.zeros(row, dataset.dtype))


# Bytes that are copied at once.
PIECE = 1 << 24


class KeptParts:
    """A split that a file has; parts ``held`` are copied with their digests, unread."""

    def __init__(self, path: Path, parts: int, held: range | None = None) -> None:
        self.table = parts_table(path, parts)
        self._held = range(parts) if held is None else held
        self._path = path

    def copy(self, ends: NDArray[np.int64], file: BinaryIO) -> None:
        """Write the parts to where :attr:`PartsTable.ends` says.

        Raises PlanError where the file is cut short.
        """
        first, last = self._held.start, self._held.stop
        with open(self._path, "rb", buffering=0) as old:
            for (begin, end), to in zip(
                self.table.ends[:, [first, last]].tolist(), ends[:, first].tolist(), strict=True
            ):
                file.seek(to)
                for at in range(begin, end, PIECE):
                    file.write(read_all(old, at, min(PIECE, end - at)))


@dataclass
class _Spilled:
    """Parts that wait in a file: array after array, each with those of one part after the other."""

    parts: range
    begin: int  # in the file
    dtype: dict[str, np.dtype]
    row: dict[str, tuple[int, ...]]
    rows: Mapping[str, NDArray[np.int64]]  # (k,) of each part
    digest: list[bytes]  # of each part

    def sizes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Bytes of each part in each array."""
        row = [prod(self.row[name]) * self.dtype[name].itemsize for name in names]
        rows = np.array([self.rows[name] for name in names], np.int64)
        return rows * np.array(row, np.int64)[:, None]


Gather = Callable[[Any], Sequence[Any]]


class SpilledParts:
    """Parts that are built one after another and wait in a file for their final places.

    Where several processes build parts, each has some of them: those that it added. With ``check``,
    parts are looked at when they are added, and not only when they are read again.
    """

    def __init__(self, file: BinaryIO, parts: int, *, check: bool = True) -> None:
        self._file, self._parts, self._check = file, parts, check
        self._waiting: list[_Spilled] = []
        self._description: dict[str, Any] = {}

    def add(self, batch: PartBatch) -> None:
        """Add some parts; PlanError where their arrays do not fit each other."""
        if self._check:
            check_batch(batch)
        self._description = self._description or dict(batch.description)
        names = sorted(batch.arrays)
        arrays = {name: np.ascontiguousarray(batch.arrays[name]) for name in names}
        found = _Spilled(
            batch.parts,
            self._file.seek(0, os.SEEK_END),
            {name: array.dtype for name, array in arrays.items()},
            {name: array.shape[1:] for name, array in arrays.items()},
            batch.rows,
            [],
        )
        data = [_bytes_of(array) for array in arrays.values()]
        found.digest = digests(data, found.sizes(names))
        for one in data:
            self._file.write(one)
        self._waiting.append(found)

    def finish(self, figures: Mapping[str, Any], gather: Gather = lambda value: [value]) -> None:
        """Say what the parts have in common, when all of them are there.

        ``figures`` are JSON values that stand in the description; ``gather`` gives the values of
        all processes.
        """
        every: list[_Spilled] = []
        for waiting, words in gather((self._waiting, self._description)):
            every += waiting
            self._description = self._description or words
        names = sorted(every[0].dtype)
        offset = np.zeros((len(names), self._parts + 1), np.int64)
        for one in every:
            rows = np.array([one.rows[name] for name in names])
            offset[:, one.parts.start + 1 : one.parts.stop + 1] = rows
        dtype = {n: np.result_type(*{one.dtype[n] for one in every}).str for n in names}
        datasets = tuple(SlicedDataset(n, dtype[n], every[0].row[n]) for n in names)
        digest = np.zeros((self._parts, 32), np.uint8)
        description = {**self._description, "figures": figures}
        table = PartsTable(self._parts, description, datasets, offset.cumsum(axis=1), digest)
        self.table = table
        for found in gather([(one.parts, self._digest(one)) for one in self._waiting]):
            for parts, lines in found:
                digest[parts.start : parts.stop] = [np.frombuffer(one, np.uint8) for one in lines]

    def _digest(self, one: _Spilled) -> list[bytes]:
        if all(one.dtype[dataset.name] == dataset.dtype for dataset in self.table.datasets):
            return one.digest
        ends = self.table.ends[:, one.parts.start : one.parts.stop + 1]
        return digests([_bytes_of(data) for data in self._arrays(one)], np.diff(ends))

    def copy(self, ends: NDArray[np.int64], file: BinaryIO) -> None:
        """Write the parts that were added here, as :meth:`KeptParts.copy`."""
        for one in self._waiting:
            begins = ends[:, one.parts.start].tolist()
            for begin, data in zip(begins, self._arrays(one), strict=True):
                if data.size:
                    file.seek(begin)
                    file.write(_bytes_of(data))

    def _arrays(self, one: _Spilled) -> Iterator[NDArray[Any]]:
        """The arrays of some parts in the order of the datasets, and of their types."""
        names = [dataset.name for dataset in self.table.datasets]
        self._file.seek(one.begin)
        for dataset, size in zip(self.table.datasets, one.sizes(names).sum(axis=1), strict=True):
            data = np.frombuffer(self._file.read(size), one.dtype[dataset.name])
            yield data.astype(dataset.dtype, copy=False)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


# Splits whose parts can be copied into a file; their tables have addresses of their own.
PartsSource = KeptParts | SpilledParts


def begin_file(path: Path, about: Mapping[str, Any], sources: Sequence[PartsSource]) -> LaidOut:
    """Everything but the slices, and room for them; the first of three steps.

    HDF5 gives a dataset its place when it is first written to: that is done with one row each when
    all groups and tables have theirs, so that the slices lie in one piece behind them.
    """

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
    with new_hdf5(path) as file:
        made = fill(file, tree)
        waiting = [
            [
                _declared(made, f"/parts/{table.parts}/{one.name}", table, i)
                for i, one in enumerate(table.datasets)
            ]
            for table in (source.table for source in sources)
        ]
        file.flush()
        laid_out = _placed(waiting)
        del made, waiting
    return laid_out


def copy_slices(
    path: Path,
    laid_out: LaidOut,
    sources: Sequence[PartsSource],
    together: Callable[..., Any] = one_by_one,
) -> None:
    """The second step: the parts that this process holds, by ``together`` at once."""

    def copy(source: PartsSource, addresses: Sequence[int]) -> None:
        known = zip(source.table.datasets, addresses, strict=True)
        placed = replace(
            source.table, datasets=tuple(replace(one, address=at) for one, at in known)
        )
        with open(path, "r+b") as file:
            source.copy(placed.ends, file)

    pairs = zip(sources, laid_out.addresses, strict=True)
    together(*(partial(copy, *pair) for pair in pairs))


def _group_of(tree: Tree, path: str) -> None:
    folder = path.rpartition("/")[0]
    if folder not in tree.groups:
        _group_of(tree, folder)
        tree.group(folder)


@contextmanager
def spill_file(path: Path) -> Iterator[BinaryIO]:
    """A file for parts that wait, removed afterwards."""
    try:
        with open(path, "w+b") as file:
            yield file
    finally:
        path.unlink(missing_ok=True)
