"""Gather values of dats in the order of the mesh file: on one rank, and in files.

Files are HDF5 with a dataset for each dat, and do not depend on the number of ranks. One
rank writes them, a run of elements at a time; each rank reads by itself.
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
WRITING = "write_fields"


@dataclass(frozen=True, eq=False)
class OwnedRows:
    """A dat with the numbers that its owned elements have in the mesh file.

    ``size`` is the number of elements of the set on all ranks together.
    """

    numbers: NDArray[np.int64]
    size: int
    dat: ProgramDat

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the dataset."""
        return self.size, self.dat.dim

    def between(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The owned elements numbered ``first`` to below ``last``, and their rows.

        The numbers in the result count from ``first``.
        """
        inside = np.flatnonzero((self.numbers >= first) & (self.numbers < last))
        values = _on_host(self.dat)
        if self.dat.axis:
            rows = values[:, inside].T
        else:
            rows = values[inside]
        return self.numbers[inside] - first, np.ascontiguousarray(rows)


def fetch(comm: Any, rows: OwnedRows, root: int) -> NDArray[Any] | None:
    """All values on one rank, in the order of the mesh file."""
    what = f"fetch of dat {rows.dat.number}"
    gathered = comm.gather(rows.between(0, rows.size), root, what)
    if gathered is None:
        return None
    return _rows_in_order(gathered, rows.shape, rows.dat.dtype)


def write_fields(
    comm: Any, path: Path, fields: Mapping[str, OwnedRows], overwrite: bool
) -> None:
    """Write a new file; an error on one rank is raised on all, and leaves no file."""
    from ..plan.file.hdf5 import new_hdf5

    with ExitStack() as ending:

        def create_file() -> Any:
            if comm.rank != ROOT:
                return None
            staged = ending.enter_context(new_file(path, overwrite=overwrite))
            file = ending.enter_context(new_hdf5(staged, userblock=0))
            for name, rows in fields.items():
                file.create_dataset(name, rows.shape, rows.dat.dtype)
            return file

        # Open the file on rank 0; gather and write one run of elements after the other.
        file = together(comm, create_file, WRITING)
        for name, rows in fields.items():
            for first, last in _runs(0, rows.size):
                gathered = comm.gather(rows.between(first, last), ROOT, WRITING)
                write_run = partial(_write_run, file, name, (first, last), gathered)
                together(comm, write_run, WRITING)
        together(comm, ending.close, WRITING)


def _write_run(file: Any, name: str, run: tuple[int, int], gathered: Any) -> None:
    """Write a run of elements, on the rank that has gathered them; others do nothing."""
    if gathered is None:
        return
    first, last = run
    dataset = file[name]
    shape = (last - first, dataset.shape[1])
    dataset[first:last] = _rows_in_order(gathered, shape, dataset.dtype)


def read_fields(comm: Any, path: Path, fields: Mapping[str, OwnedRows]) -> None:
    """Fill the owned rows of dats from a file.

    Every rank reads those runs of the datasets that hold rows of its own.
    """
    from ..plan.file.hdf5 import opened

    def fill_dats() -> None:
        # Read everything before any dat changes.
        values_of_fields = {}
        try:
            with opened(path) as file:
                for name, rows in fields.items():
                    _check_dataset(path=path, file=file, name=name, rows=rows)
                for name, rows in fields.items():
                    values_of_fields[name] = _read_owned_rows(file[name], rows)
        except OSError as error:
            raise MeshprepError(f"{path}: cannot be read as HDF5: {error}") from error
        for name, rows in fields.items():
            _set_owned_rows(rows.dat, values_of_fields[name])

    together(comm, fill_dats, "read_fields")


def _set_owned_rows(dat: ProgramDat, values: NDArray[Any]) -> None:
    array = _on_host(dat)
    if dat.axis:
        array[:, : dat.owned] = values.T
    else:
        array[: dat.owned] = values
    if dat.on_device:
        dat.array.set(array.reshape(dat.array.shape))


def _read_owned_rows(dataset: Any, rows: OwnedRows) -> NDArray[Any]:
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
    """``start`` to ``stop`` in runs of at most ``ELEMENTS_AT_ONCE``."""
    for first in range(start, stop, ELEMENTS_AT_ONCE):
        yield first, min(first + ELEMENTS_AT_ONCE, stop)


def _on_host(dat: ProgramDat) -> Any:
    """The array of a dat with both axes; a copy where it lies on a GPU."""
    if not dat.on_device:
        return matrix(dat)
    array = dat.array.get()
    if array.ndim == 2:
        return array
    return array.reshape(-1, 1)


def _rows_in_order(
    parts: Sequence[tuple[NDArray[np.int64], NDArray[Any]]],
    shape: tuple[int, int],
    dtype: Any,
) -> NDArray[Any]:
    """The rows of all ranks in one array, each at its number."""
    values = np.zeros(shape, dtype)
    for numbers, rows in parts:
        values[numbers] = rows
    return values


def _check_dataset(path: Path, file: Any, name: str, rows: OwnedRows) -> None:
    """Raise MeshprepError unless a dataset holds values of a dat."""
    if name not in file:
        raise MeshprepError(f"{path} has no dataset '{name}': it has {', '.join(file)}")
    dataset = file[name]
    dat = rows.dat
    if not hasattr(dataset, "dtype"):
        raise MeshprepError(f"{path}: '{name}' is a group, must be a dataset")
    fits = dataset.shape == rows.shape
    if dat.dim == 1:
        fits = fits or dataset.shape == (rows.size,)
    if not fits or dataset.dtype != dat.dtype:
        raise MeshprepError(
            f"{path}: dataset '{name}' has shape {dataset.shape} and dtype "
            f"{dataset.dtype}, must be {rows.shape} of {dat.dtype}"
        )
