"""Parts for OP2 programs that cut their mesh by a dat from outside (its ``EXTERNAL``)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from meshprep_runtime.plan.hdf5 import new_hdf5
from meshprep_runtime.plan.parts import parts_table, read_part

from ..io.op2.write import describe

# Bytes that are written at once.
PIECE = 1 << 20


def write_external(path: Path, source: Path, counts: Sequence[int], name: str) -> None:
    """Write the part of each element of a set as OP2's dats ``part_K``.

    ``path`` is made anew from the file of parts ``source``: HDF5 with one contiguous dataset (n, 1)
    of int32 for each number of parts in ``counts``, in the order of the mesh that was read.
    ``name`` is the leading set. O(n) for each number of parts, and the memory of one part.
    """
    tables = [parts_table(source, parts) for parts in counts]
    with new_hdf5(path, userblock=0) as file:
        address = [
            _dataset(file, f"part_{table.parts}", int(table.description["sets"][name]))
            for table in tables
        ]
    for table, begin in zip(tables, address, strict=True):
        n = int(table.description["sets"][name])
        if n:
            _reserve(path, begin, 4 * n)
        values = np.memmap(path, "<i4", "r+", begin, (n,)) if n else np.empty(0, np.int32)
        for part in range(table.parts):
            values[read_part(source, table, part).sets[name].original] = part
        if isinstance(values, np.memmap):
            values.flush()


def _reserve(path: Path, begin: int, nbytes: int) -> None:
    """Take room on the disk; where there is none, a mapped page would end the process."""
    with path.open("r+b") as file:
        file.seek(begin)
        for left in range(nbytes, 0, -PIECE):
            file.write(bytes(min(left, PIECE)))


def _dataset(file: Any, name: str, n: int) -> int:
    """An int dat with its place in the file; where that is."""
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    space = h5py.h5s.create_simple((n, 1))
    made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, early)
    describe(file[name], {"size": 4, "dim": 1}, "int")
    return int(made.get_offset() or 0)
