"""Values of dats in the order of the mesh file: on one rank, and in files for any number of ranks.

Files are HDF5 with a dataset a dat. One rank writes them, a run of elements at a time; each rank
reads by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..plan.file.atomic import new_file
from .dat import ProgramDat
from .exchange import matrix
from .mpi import together

# Elements that are gathered and written, or read, at a time.
ELEMENTS_AT_ONCE = 1 << 21
ROOT = 0


@dataclass(frozen=True, eq=False)
class OwnedRows:
    """A dat with the numbers that its owned elements have in the mesh file."""

    numbers: NDArray[np.int64]
    size: int
    dat: ProgramDat

    @property
    def shape(self) -> tuple[int, int]:
        """Of the dataset."""
        return self.size, self.dat.dim

    def between(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Numbers from ``first`` to below ``last``, from 0, and the rows that go there."""
        inside = np.flatnonzero((self.numbers >= first) & (self.numbers < last))
        values = _on_host(self.dat)
        rows = values[:, inside].T if self.dat.axis else values[inside]
        return self.numbers[inside] - first, np.ascontiguousarray(rows)


def fetch(comm: Any, rows: OwnedRows, root: int) -> NDArray[Any] | None:
    """All values on one rank, in the order of the mesh file."""
    gathered = comm.gather(rows.between(0, rows.size), root)
    return None if gathered is None else _joined(gathered, rows.shape, rows.dat.dtype)


def write(comm: Any, path: Path, fields: Mapping[str, OwnedRows], overwrite: bool) -> None:
    """Write a new file; on all ranks or, with an error, not at all."""
    from ..plan.file.hdf5 import new_hdf5

    with ExitStack() as ending:

        def start() -> Any:
            if comm.rank != ROOT:
                return None
            staged = ending.enter_context(new_file(path, overwrite=overwrite))
            file = ending.enter_context(new_hdf5(staged, userblock=0))
            for name, rows in fields.items():
                file.create_dataset(name, rows.shape, rows.dat.dtype)
            return file

        file = together(comm, start)
        for name, rows in fields.items():
            for first, last in _runs(0, rows.size):
                gathered = comm.gather(rows.between(first, last), ROOT)
                put = partial(_put, file, name, (first, last), gathered)
                together(comm, put)
        together(comm, ending.close)


def _put(file: Any, name: str, run: tuple[int, int], gathered: Any) -> None:
    if gathered is not None:
        first, last = run
        dataset = file[name]
        dataset[first:last] = _joined(gathered, (last - first, dataset.shape[1]), dataset.dtype)


def read(comm: Any, path: Path, fields: Mapping[str, OwnedRows]) -> None:
    """Fill the owned rows of dats; every rank reads the runs of the file that have some of them."""
    from ..plan.file.hdf5 import opened

    def fill() -> None:
        try:
            with opened(path) as file:
                for name, rows in fields.items():
                    _check(path, file, name, rows)
                found = {name: _rows_of(file[name], rows) for name, rows in fields.items()}
        except OSError as error:
            raise MeshprepError(f"{path}: cannot be read as HDF5: {error}") from error
        for name, rows in fields.items():
            dat, values = rows.dat, found[name]
            array = _on_host(dat)
            owned = (slice(None),) * dat.axis + (slice(dat.owned),)
            array[owned] = values.T if dat.axis else values
            if dat.on_device:
                dat.array.set(array.reshape(dat.array.shape))

    together(comm, fill)


def _rows_of(dataset: Any, rows: OwnedRows) -> NDArray[Any]:
    """The rows of a dataset that this rank owns."""
    numbers = rows.numbers
    values = np.empty((numbers.size, rows.dat.dim), rows.dat.dtype)
    if numbers.size:
        for first, last in _runs(int(numbers.min()), int(numbers.max()) + 1):
            inside = np.flatnonzero((numbers >= first) & (numbers < last))
            if inside.size:
                run = dataset[first:last].reshape(-1, rows.dat.dim)
                values[inside] = run[numbers[inside] - first]
    return values


def _runs(start: int, stop: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, ELEMENTS_AT_ONCE):
        yield first, min(first + ELEMENTS_AT_ONCE, stop)


def _on_host(dat: ProgramDat) -> Any:
    """The array of a dat with both axes; a copy where it lies on a GPU."""
    if not dat.on_device:
        return matrix(dat)
    found = dat.array.get()
    return found if found.ndim == 2 else found.reshape(-1, 1)


def _joined(
    parts: Sequence[tuple[NDArray[np.int64], NDArray[Any]]], shape: tuple[int, int], dtype: Any
) -> NDArray[Any]:
    found = np.zeros(shape, dtype)
    for numbers, rows in parts:
        found[numbers] = rows
    return found


def _check(path: Path, file: Any, name: str, rows: OwnedRows) -> None:
    """Raise MeshprepError unless a dataset holds values of a dat."""
    if name not in file:
        raise MeshprepError(f"{path} has no dataset '{name}': it has {', '.join(file)}")
    found, dat = file[name], rows.dat
    if not hasattr(found, "dtype"):
        raise MeshprepError(f"{path}: '{name}' is a group, must be a dataset")
    flat = dat.dim == 1 and found.shape == (rows.size,)
    if not (flat or found.shape == rows.shape) or found.dtype != dat.dtype:
        raise MeshprepError(
            f"{path}: dataset '{name}' has shape {found.shape} and dtype {found.dtype}, must be "
            f"{rows.shape} of {dat.dtype}"
        )
