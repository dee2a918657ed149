"""Write files of parts, one part after the other, with the memory of one part."""

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
from ..file.seal import SIZE as SEAL_SIZE
from ..file.tree import Tree
from .batch import PartBatch
from .slices import PartsTable, SlicedDataset, digests, one_by_one, read_all
from .store import parts_table
from .structure import check_batch


@dataclass(frozen=True)
class LaidOut:
    """The places of the slices in a file.

    ``addresses`` has the first byte of every dataset of every table. All slices lie between
    ``begin`` and ``end``, one after the other.
    """

    addresses: list[list[int]]
    begin: int
    end: int


def _create_datasets(groups: dict[str, Any], table: PartsTable) -> list[Any]:
    """Create the datasets of a table; HDF5 gives them no addresses yet."""
    # Values are written later, so nothing is filled; without times, equal plans give equal
    # files.
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    creation.set_obj_track_times(False)
    created = []
    for dataset, n_rows in zip(table.datasets, table.offset[:, -1].tolist(), strict=True):
        path = f"/parts/{table.parts}/{dataset.name}"
        parent, _, leaf = path.rpartition("/")
        space = h5py.h5s.create_simple((n_rows, *dataset.row))
        kind = h5py.h5t.py_create(np.dtype(dataset.dtype))
        created.append(
            h5py.h5d.create(groups[parent].id, leaf.encode(), kind, space, dcpl=creation)
        )
    return created


def _place_datasets(datasets_of_tables: list[list[Any]]) -> LaidOut:
    """Make HDF5 give every dataset its address, one after the other without a gap."""
    addresses: list[list[int]] = []
    begin: int | None = None
    end: int | None = None
    for datasets in datasets_of_tables:
        addresses_of_table = []
        for dataset in datasets:
            size = int(np.prod(dataset.shape)) * dataset.dtype.itemsize
            # A dataset without bytes gets no address.
            address = 0
            if size:
                _write_first_row(dataset)
                address = int(dataset.get_offset())
                if begin is None:
                    begin = address
                if end is not None and address != end:
                    raise RuntimeError("HDF5 left a gap between slices")
                end = address + size
            addresses_of_table.append(address)
        addresses.append(addresses_of_table)
    # Without any bytes, the slices lie behind the seal.
    if begin is None or end is None:
        begin = SEAL_SIZE
        end = SEAL_SIZE
    return LaidOut(addresses=addresses, begin=begin, end=end)


def _write_first_row(dataset: Any) -> None:
    row = (1, *dataset.shape[1:])
    space = dataset.get_space()
    space.select_hyperslab((0,) * len(row), row)
    dataset.write(h5py.h5s.create_simple(row), space, np.zeros(row, dataset.dtype))


# Bytes that are copied at a time.
PIECE = 1 << 24


class KeptParts:
    """A split that a file has already.

    This process copies the parts in ``held``, with their digests, without reading them.
    """

    def __init__(self, path: Path, parts: int, held: range | None = None) -> None:
        self.table = parts_table(path, parts)
        self._held = range(parts) if held is None else held
        self._path = path

    def copy(self, ends: NDArray[np.int64], file: BinaryIO) -> None:
        """Write the parts to the bytes of the file that ``ends`` gives.

        ``ends`` is :attr:`PartsTable.ends` of the new file. Raises PlanError where the old
        file is cut short.
        """
        first = self._held.start
        stop = self._held.stop
        begins = self.table.ends[:, first].tolist()
        stops = self.table.ends[:, stop].tolist()
        targets = ends[:, first].tolist()
        with open(self._path, "rb", buffering=0) as old:
            for begin, end, target in zip(begins, stops, targets, strict=True):
                file.seek(target)
                for address in range(begin, end, PIECE):
                    file.write(read_all(old, address, min(PIECE, end - address)))


@dataclass
class _SpilledBatch:
    """A batch of parts that waits in a file: array after array, each part after part.

    Attributes
    ----------
    parts : range
    begin : int
        Its first byte in the file.
    dtype : mapping of array name to dtype
    row : mapping of array name to tuple of int
        The shape of one row.
    rows : mapping of array name to (k,) int64
        The rows of each part.
    digest : list of bytes
        SHA-256 of each part.
    """

    parts: range
    begin: int
    dtype: dict[str, np.dtype]
    row: dict[str, tuple[int, ...]]
    rows: Mapping[str, NDArray[np.int64]]
    digest: list[bytes]

    def sizes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Bytes of each part in each array, (n_arrays, k)."""
        row_bytes = [prod(self.row[name]) * self.dtype[name].itemsize for name in names]
        rows = np.array([self.rows[name] for name in names], np.int64)
        return rows * np.array(row_bytes, np.int64)[:, None]


# Gives the values of all processes for the value of this one.
Gather = Callable[[Any], Sequence[Any]]


class SpilledParts:
    """Parts that are made one after another and wait in a file for their final places.

    Where several processes make parts, each adds some of them. With ``check``, parts are
    checked when they are added, and not only when they are read again.
    """

    def __init__(self, file: BinaryIO, parts: int, *, check: bool = True) -> None:
        self._file = file
        self._parts = parts
        self._check = check
        self._waiting: list[_SpilledBatch] = []
        self._description: dict[str, Any] = {}

    def add(self, batch: PartBatch) -> None:
        """Add some parts; raises PlanError where their arrays do not fit each other."""
        if self._check:
            check_batch(batch)
        self._description = self._description or dict(batch.description)
        names = sorted(batch.arrays)
        arrays = {name: np.ascontiguousarray(batch.arrays[name]) for name in names}
        # Write the arrays to a temporary file: the place of each in the result depends on
        # all parts.
        data = [_bytes_of(array) for array in arrays.values()]
        spilled = _SpilledBatch(
            parts=batch.parts,
            begin=self._file.seek(0, os.SEEK_END),
            dtype={name: array.dtype for name, array in arrays.items()},
            row={name: array.shape[1:] for name, array in arrays.items()},
            rows=batch.rows,
            digest=[],
        )
        spilled.digest = digests(data, spilled.sizes(names))
        for array_bytes in data:
            self._file.write(array_bytes)
        self._waiting.append(spilled)

    def finish(
        self, figures: Mapping[str, Any], gather: Gather = lambda value: [value]
    ) -> None:
        """Make the table of the parts, once all of them were added.

        ``figures`` are JSON values for the description; ``gather`` gives the values of all
        processes.
        """
        # Collect the rows and types of all parts.
        batches: list[_SpilledBatch] = []
        for waiting, description in gather((self._waiting, self._description)):
            batches += waiting
            self._description = self._description or description
        names = sorted(batches[0].dtype)
        offset = np.zeros((len(names), self._parts + 1), np.int64)
        for batch in batches:
            rows = np.array([batch.rows[name] for name in names])
            offset[:, batch.parts.start + 1 : batch.parts.stop + 1] = rows
        # A dataset has the smallest type that holds the arrays of all parts.
        datasets = []
        for name in names:
            dtypes = {batch.dtype[name] for batch in batches}
            dtype = np.result_type(*dtypes).str
            datasets.append(SlicedDataset(name, dtype, batches[0].row[name]))
        digest = np.zeros((self._parts, 32), np.uint8)
        self.table = PartsTable(
            parts=self._parts,
            description={**self._description, "figures": figures},
            datasets=tuple(datasets),
            offset=offset.cumsum(axis=1),
            digest=digest,
        )

        # Collect the digests, of arrays in these types.
        digests_here = [(batch.parts, self._digests(batch)) for batch in self._waiting]
        for digests_of_process in gather(digests_here):
            for parts, digests_of_parts in digests_of_process:
                digest[parts.start : parts.stop] = [
                    np.frombuffer(line, np.uint8) for line in digests_of_parts
                ]

    def _digests(self, batch: _SpilledBatch) -> list[bytes]:
        """The digests of the parts of a batch, computed anew where a type has changed."""
        datasets = self.table.datasets
        if all(batch.dtype[dataset.name] == dataset.dtype for dataset in datasets):
            return batch.digest
        ends = self.table.ends[:, batch.parts.start : batch.parts.stop + 1]
        return digests([_bytes_of(data) for data in self._arrays(batch)], np.diff(ends))

    def copy(self, ends: NDArray[np.int64], file: BinaryIO) -> None:
        """Write the parts that were added here, as :meth:`KeptParts.copy`."""
        for batch in self._waiting:
            begins = ends[:, batch.parts.start].tolist()
            for begin, data in zip(begins, self._arrays(batch), strict=True):
                if data.size:
                    file.seek(begin)
                    file.write(_bytes_of(data))

    def _arrays(self, batch: _SpilledBatch) -> Iterator[NDArray[Any]]:
        """The arrays of a batch in the order and types of the datasets."""
        datasets = self.table.datasets
        sizes = batch.sizes([dataset.name for dataset in datasets]).sum(axis=1)
        self._file.seek(batch.begin)
        for dataset, size in zip(datasets, sizes, strict=True):
            data = np.frombuffer(self._file.read(size), batch.dtype[dataset.name])
            yield data.astype(dataset.dtype, copy=False)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


# Splits whose parts can be copied into a file; their tables have addresses of their own.
PartsSource = KeptParts | SpilledParts


def begin_file(
    path: Path, about: Mapping[str, Any], sources: Sequence[PartsSource]
) -> LaidOut:
    """Write everything but the slices, with room for them: the first of three steps.

    HDF5 gives a dataset its address when it is first written to. One row of each is written
    when all groups and tables have their addresses; so the slices lie in one piece behind
    them.
    """

    # Write the groups and tables.
    tree = Tree()
    tree.datasets["/about"] = json.dumps(about)
    tree.group("/parts")
    for position, source in enumerate(sources):
        table = source.table
        group = f"/parts/{table.parts}"
        names = [dataset.name for dataset in table.datasets]
        tree.group(group, position=position)
        tree.datasets[f"{group}/description"] = json.dumps(table.description)
        tree.datasets[f"{group}/datasets"] = json.dumps(names)
        tree.datasets[f"{group}/offset"] = table.offset
        tree.datasets[f"{group}/digest"] = table.digest
        for name in names:
            _add_groups_above(tree, f"{group}/{name}")
    with new_hdf5(path) as file:
        groups = fill(file, tree)
        # Create the datasets of the slices, and then give them their addresses.
        datasets_of_tables = [_create_datasets(groups, source.table) for source in sources]
        file.flush()
        laid_out = _place_datasets(datasets_of_tables)
        # HDF5 closes the file only when no group or dataset is open any more.
        del groups, datasets_of_tables
    return laid_out


def copy_slices(
    path: Path,
    laid_out: LaidOut,
    sources: Sequence[PartsSource],
    together: Callable[..., Any] = one_by_one,
) -> None:
    """Write the slices of the parts that this process holds: the second of three steps.

    ``together`` calls a function for each source, and may call them at the same time.
    """

    def copy(source: PartsSource, addresses: Sequence[int]) -> None:
        datasets = []
        for dataset, address in zip(source.table.datasets, addresses, strict=True):
            datasets.append(replace(dataset, address=address))
        table = replace(source.table, datasets=tuple(datasets))
        with open(path, "r+b") as file:
            source.copy(table.ends, file)

    copies = []
    for source, addresses in zip(sources, laid_out.addresses, strict=True):
        copies.append(partial(copy, source, addresses))
    together(*copies)


def _add_groups_above(tree: Tree, path: str) -> None:
    """Add the groups that a dataset lies in, where they are missing."""
    parent = path.rpartition("/")[0]
    if parent not in tree.groups:
        _add_groups_above(tree, parent)
        tree.group(parent)


@contextmanager
def spill_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file for parts that wait; it is removed afterwards."""
    try:
        with open(path, "w+b") as file:
            yield file
    finally:
        path.unlink(missing_ok=True)
