"""Where HDF5 puts the tables and slices of a file of parts, found without writing a slice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from ..hdf5 import create, fill
from ..tree import Tree
from .slices import PartsTable


@dataclass(frozen=True)
class LaidOut:
    """A file without its slices."""

    pieces: dict[int, bytes]  # by address: everything else
    addresses: list[list[int]]  # of every dataset of every table
    # The slices lie between these, one after the other.
    begin: int
    end: int
    size: int  # bytes of the file


def lay_out(tree: Tree, tables: Sequence[PartsTable]) -> LaidOut:
    """Lay out a file with these tables and room for their slices.

    HDF5 gives a dataset its place when it is first written to: that is done with one row each when
    all groups and tables have theirs, so that the slices lie in one piece behind them.
    """
    buffer = _Pieces()
    with h5py.File(create(buffer)) as file:
        made = fill(file, tree)
        waiting = [
            [
                _declared(made, f"/parts/{table.parts}/{one.name}", table, i)
                for i, one in enumerate(table.datasets)
            ]
            for table in tables
        ]
        file.flush()
        addresses, begin, end = _placed(waiting)
        del made, waiting
    pieces = {at: piece for at, piece in buffer.pieces.items() if not begin <= at < end}
    return LaidOut(pieces, addresses, begin, end, buffer.size)


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


def _placed(waiting: list[list[Any]]) -> tuple[list[list[int]], int, int]:
    """Make HDF5 place every dataset; their addresses, and where the slices begin and end."""
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
    return addresses, max(begin, 512), max(end, 512)


def _write_a_row(dataset: Any) -> None:
    row = (1, *dataset.shape[1:])
    space = dataset.get_space()
    space.select_hyperslab((0,) * len(row), row)
    dataset.write(h5py.h5s.create_simple(row), space, np.zeros(row, dataset.dtype))


class _Pieces:
    """A file that keeps what is written to it by address, and reads nothing."""

    closed = False

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.size = self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        self.pieces[self._at] = bytes(data)
        self._at += len(data)
        self.size = max(self.size, self._at)
        return len(data)

    def readinto(self, buffer: Any) -> int:
        """What was written here before in one go; zeros elsewhere."""
        piece = self.pieces.get(self._at, b"")[: len(buffer)]
        buffer[:] = piece.ljust(len(buffer), b"\0")
        self._at += len(buffer)
        return len(buffer)

    def truncate(self, size: int | None = None) -> int:
        self.size = self._at if size is None else size
        return self.size

    def flush(self) -> None:
        """Nothing to do."""
