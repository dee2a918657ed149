"""Gather values of dats in the order of the mesh file: on one rank, and in files.

Files are HDF5 with a dataset for each dat, and do not depend on the number of ranks. Rank 0
makes a file with room for all values; then each rank writes a slice of every dataset, whose
rows the ranks that own them have sent to it [G10 2]. Each rank reads by itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..plan.file.atomic import new_file
from .dat import ProgramDat
from .exchange import matrix
from .mpi import SharedFile, from_root, open_shared, together

# Elements that a rank writes or reads at a time.
ELEMENTS_AT_ONCE = 1 << 21
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

    def cut(self, bounds: Sequence[int]) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
        """The owned elements in each run of numbers from one bound to the next, with rows.

        The numbers in the result count from the first bound of the run.
        """
        values = _on_host(self.dat)
        if self.dat.axis:
            values = values.T
        # Sort the elements by their numbers, and find where each run begins.
        order = np.argsort(self.numbers, kind="stable")
        ends = np.searchsorted(self.numbers[order], bounds).tolist()
        pieces = []
        for first, (begin, end) in zip(bounds[:-1], pairwise(ends), strict=True):
            inside = order[begin:end]
            rows = np.ascontiguousarray(values[inside])
            pieces.append((self.numbers[inside] - first, rows))
        return pieces


def fetch(comm: Any, rows: OwnedRows, root: int) -> NDArray[Any] | None:
    """All values on one rank, in the order of the mesh file."""
    what = f"fetch of dat {rows.dat.number}"
    (own,) = rows.cut([0, rows.size])
    gathered = comm.gather(own, root, what)
    if gathered is None:
        return None
    return _rows_in_order(gathered, rows.shape, rows.dat.dtype)


def write_fields(
    comm: Any, path: Path, fields: Mapping[str, OwnedRows], overwrite: bool
) -> None:
    """Write a new file; an error on one rank is raised on all, and leaves no file."""
    with ExitStack() as ending:

        def create_file() -> tuple[Path, dict[str, int]]:
            staged = ending.enter_context(new_file(path, overwrite=overwrite))
            return staged, _create_datasets(staged, fields)

        def open_file() -> SharedFile:
            file = _open_on_rank(comm, staged, path)
            ending.callback(file.close)
            return file

        # Rank 0 makes the file under a temporary name; then all open it.
        staged, start_of_field = from_root(comm, create_file, WRITING)
        file = together(comm, open_file, WRITING)

        # Of each run of elements every rank gets a slice, and writes it.
        for name, rows in fields.items():
            row_bytes = rows.dat.dim * rows.dat.dtype.itemsize
            for first, last in _runs(0, rows.size, comm.size * ELEMENTS_AT_ONCE):
                bounds = _equal_slices(first, last, comm.size)
                own = _receive_slice(comm, rows, bounds)
                start = start_of_field[name] + bounds[comm.rank] * row_bytes
                write_slice = partial(file.write, start, own)
                together(comm, partial(_on_disk, path, write_slice), WRITING)

        # All bytes are on the disk, and no rank has it open, before it gets its name.
        together(comm, partial(_on_disk, path, file.flush), WRITING)
        together(comm, partial(_on_disk, path, file.close), WRITING)
        together(comm, ending.close, WRITING)


def _create_datasets(path: Path, fields: Mapping[str, OwnedRows]) -> dict[str, int]:
    """Make a file with room for all values; returns where each field begins in it."""
    import h5py

    from ..plan.file.hdf5 import new_hdf5

    # The room is given at once, and nothing is written there.
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    starts = {}
    with new_hdf5(path, userblock=0) as file:
        for name, rows in fields.items():
            dtype = rows.dat.dtype
            dataset = file.create_dataset(name, rows.shape, dtype, dcpl=creation)
            # A dataset without values has no place.
            starts[name] = dataset.id.get_offset() or 0
    return starts


def _open_on_rank(comm: Any, staged: Path, path: Path) -> SharedFile:
    """The file that rank 0 has made; raises MeshprepError where this rank sees none."""
    try:
        return open_shared(comm, staged)
    except (OSError, RuntimeError) as error:
        raise MeshprepError(
            f"{path}: this rank cannot write to it ({_fault(error)}): each rank writes a "
            "slice of the file: choose a folder that all of them see"
        ) from error


def _on_disk(path: Path, work: Callable[[], None]) -> None:
    """Do what the disk may refuse; raises MeshprepError that names the file then."""
    try:
        work()
    except (OSError, RuntimeError) as error:
        raise MeshprepError(f"{path}: cannot write: {_fault(error)}") from error


def _fault(error: Exception) -> str:
    """What the system or MPI says, without the temporary name."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # MPI tells in several lines where it failed, and at the end why.
    *_, last_line = str(error).splitlines() or [type(error).__name__]
    return last_line.rpartition(": ")[2]


def _equal_slices(first: int, last: int, ranks: int) -> list[int]:
    """Where the slice of each rank begins, and the end of the last one."""
    return [first + (last - first) * rank // ranks for rank in range(ranks + 1)]


def _receive_slice(comm: Any, rows: OwnedRows, bounds: Sequence[int]) -> NDArray[Any]:
    """The slice that this rank writes, in the order of the mesh file."""
    outgoing = together(comm, partial(rows.cut, bounds), WRITING)
    incoming = comm.alltoall(outgoing, WRITING)
    size = bounds[comm.rank + 1] - bounds[comm.rank]
    return _rows_in_order(incoming, (size, rows.dat.dim), rows.dat.dtype)


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
        end = int(numbers.max()) + 1
        for first, last in _runs(int(numbers.min()), end, ELEMENTS_AT_ONCE):
            inside = np.flatnonzero((numbers >= first) & (numbers < last))
            if inside.size:
                run = dataset[first:last].reshape(-1, rows.dat.dim)
                values[inside] = run[numbers[inside] - first]
    return values


def _runs(start: int, stop: int, most: int) -> Iterator[tuple[int, int]]:
    """``start`` to ``stop`` in runs of at most ``most``."""
    for first in range(start, stop, most):
        yield first, min(first + most, stop)


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
