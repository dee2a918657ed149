"""Values of dats in the order of the mesh file: on one rank, and in files for any number of ranks.

Files are HDF5 with contiguous datasets. One rank makes and writes them, a run of elements at a
time; each rank reads what it needs by its place in the file, without HDF5.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..plan.file.atomic import new_file
from .dat import ProgramDat
from .exchange import matrix
from .mpi import from_root, together

# Elements that are gathered and written at a time.
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


@dataclass(frozen=True)
class Dataset:
    """Where a dataset's values lie in its file."""

    offset: int
    dtype: str
    shape: tuple[int, ...]


def fetch(comm: Any, rows: OwnedRows, root: int) -> NDArray[Any] | None:
    """All values on one rank, in the order of the mesh file."""
    gathered = comm.gather(rows.between(0, rows.size), root)
    return None if gathered is None else _joined(gathered, rows.shape, rows.dat.dtype)


def write(comm: Any, path: Path, fields: Mapping[str, OwnedRows], overwrite: bool) -> None:
    """Write a new file; on all ranks or, with an error, not at all."""
    with ExitStack() as ending:

        def start() -> tuple[Path, dict[str, Dataset]]:
            if comm.rank != ROOT:
                return path, {}
            staged = ending.enter_context(new_file(path, overwrite=overwrite))
            return staged, _create(staged, fields)

        staged, places = together(comm, start)
        for name, rows in fields.items():
            for first in range(0, rows.size, ELEMENTS_AT_ONCE):
                last = min(first + ELEMENTS_AT_ONCE, rows.size)
                gathered = comm.gather(rows.between(first, last), ROOT)

                def put(
                    name: str = name, first: int = first, last: int = last, parts: Any = gathered
                ) -> None:
                    if parts is not None:
                        shape = (last - first, fields[name].dat.dim)
                        values = _joined(parts, shape, fields[name].dat.dtype)
                        _put(staged, places[name], first, values)

                together(comm, put)
        together(comm, ending.close)


def read(comm: Any, path: Path, fields: Mapping[str, OwnedRows]) -> None:
    """Fill the owned rows of dats."""
    places = from_root(comm, lambda: _places(path, fields))

    def fill() -> None:
        for name, rows in fields.items():
            place = places[name]
            if not rows.size:
                continue
            shape = rows.shape
            values = np.memmap(path, place.dtype, "r", place.offset, shape)[rows.numbers]
            _fill(rows.dat, values)

    together(comm, fill)


def _fill(dat: ProgramDat, values: NDArray[Any]) -> None:
    array = _on_host(dat)
    array[(slice(None),) * dat.axis + (slice(dat.owned),)] = values.T if dat.axis else values
    if dat.on_device:
        dat.array.set(array.reshape(dat.array.shape))


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


def _create(path: Path, fields: Mapping[str, OwnedRows]) -> dict[str, Dataset]:
    """The file with room for all values, and where that is."""
    import h5py

    from ..plan.file.hdf5 import new_hdf5

    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    found = {}
    with _refused(), new_hdf5(path, userblock=0) as file:
        for name, rows in fields.items():
            space = h5py.h5s.create_simple(rows.shape)
            kind = h5py.h5t.py_create(rows.dat.dtype)
            made = h5py.h5d.create(file.id, name.encode(), kind, space, creation)
            found[name] = Dataset(made.get_offset() or 0, rows.dat.dtype.str, rows.shape)
    return found


def _put(path: Path, place: Dataset, first: int, values: NDArray[Any]) -> None:
    with _refused(), path.open("r+b") as file:
        file.seek(place.offset + first * values.shape[1] * values.dtype.itemsize)
        file.write(values.data)


@contextmanager
def _refused() -> Iterator[None]:
    """What the disk refuses, as an error of one line."""
    try:
        yield
    except OSError as error:
        raise MeshprepError(f"cannot write fields: {error.strerror}") from error


def _places(path: Path, fields: Mapping[str, OwnedRows]) -> dict[str, Dataset]:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return {name: _place(path, file, name, rows) for name, rows in fields.items()}
    except OSError as error:
        raise MeshprepError(f"{path}: cannot be read as HDF5: {error}") from error


def _place(path: Path, file: Any, name: str, rows: OwnedRows) -> Dataset:
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
    if not rows.size:
        return Dataset(0, found.dtype.str, found.shape)
    if not _in_one_piece(found.id):
        raise MeshprepError(
            f"{path}: dataset '{name}' is stored in chunks, filtered, elsewhere or not at all: "
            "write it contiguous"
        )
    return Dataset(found.id.get_offset(), found.dtype.str, found.shape)


def _in_one_piece(dataset: Any) -> bool:
    """Asked of the layout: behind a user block, HDF5 gives an offset for any dataset."""
    import h5py

    creation = dataset.get_create_plist()
    contiguous = creation.get_layout() == h5py.h5d.CONTIGUOUS
    here = contiguous and not creation.get_external_count()
    nbytes = dataset.get_space().get_simple_extent_npoints() * dataset.get_type().get_size()
    return here and dataset.get_storage_size() == nbytes
