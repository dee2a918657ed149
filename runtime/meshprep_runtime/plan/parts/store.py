"""Files of parts: list their splits, and read one part of a split."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import MeshprepError, PlanError, listed
from ..file import store
from ..file.seal import check_parts_seal
from .batch import PartBatch, part_of
from .model import PartPlan
from .slices import PartsTable, SlicedDataset
from .structure import check_batch


def kept(path: str | Path) -> list[int]:
    """The numbers of parts into which a file has a mesh split, ascending.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    list of int

    Raises
    ------
    PlanError
        When the file is missing, no file of parts, or damaged in its tables.
    """
    with _opened(path) as (file, _, _):
        return _numbers_of_parts(file)


def about(path: str | Path) -> dict[str, Any]:
    """The program that made a file, the mesh it was made from, and its bytes."""
    with _opened(path) as (file, _, size):
        return {**_parse_object(_read_text(file, "/about")), "bytes": size}


def parts_table(path: str | Path, parts: int) -> PartsTable:
    """Read where the slices of each part lie; one process may send the table to others.

    Parameters
    ----------
    path : str or Path
    parts : int
        One of :func:`kept`.

    Returns
    -------
    PartsTable

    Raises
    ------
    PlanError
        As of :func:`kept`, and where the file has no split into ``parts`` parts; the
        message lists its splits, and the command that adds one.

    Notes
    -----
    O(bytes of the tables): 8 for each part and dataset, and 32 for each part.
    """
    with _opened(path) as (file, slices, _):
        splits = _numbers_of_parts(file)
        if parts not in splits:
            raise PlanError(
                f"{path} is split into {listed(splits)} parts, not {parts}: "
                f"add that by 'meshprep split {path} --parts {parts}'"
            )
        group = f"/parts/{parts}"
        offset = np.asarray(file[f"{group}/offset"])
        # Note the address of each dataset: ranks read bytes, without HDF5.
        datasets: list[SlicedDataset] = []
        for name in json.loads(_read_text(file, f"{group}/datasets")):
            dataset = file[f"{group}/{name}"]
            # A dataset of a single value has no rows.
            n_rows = dataset.shape[0] if dataset.shape else 0
            if offset[len(datasets)].max() > n_rows:
                raise PlanError(
                    f"{path}: {group}/{name} has {n_rows} rows, and parts have more: "
                    "split anew"
                )
            size = prod(dataset.shape) * dataset.dtype.itemsize
            # HDF5 gives no address to a dataset without bytes.
            address = slices.start
            if size:
                address = int(dataset.id.get_offset())
            if not slices.start <= address <= address + size <= slices.stop:
                raise PlanError(
                    f"{path}: {group}/{name} lies outside of the slices: split anew"
                )
            datasets.append(
                SlicedDataset(
                    name=name,
                    dtype=dataset.dtype.str,
                    row=tuple(dataset.shape[1:]),
                    address=address,
                )
            )
        return PartsTable(
            parts=parts,
            description=_parse_object(_read_text(file, f"{group}/description")),
            datasets=datasets,
            offset=offset,
            digest=np.asarray(file[f"{group}/digest"]),
        )


def read_part(path: str | Path, table: PartsTable, part: int) -> PartPlan:
    """Read one part.

    Parameters
    ----------
    path : str or Path
    table : PartsTable
        Of :func:`parts_table`, for the same file.
    part : int
        From 0.

    Returns
    -------
    PartPlan

    Raises
    ------
    PlanError
        For a part that the table does not have, one that is damaged, and arrays that do
        not fit each other.

    Notes
    -----
    O(bytes of the part); no other part is read.
    """
    if not 0 <= part < table.parts:
        raise PlanError(f"{path}: there is no part {part}: choose 0..{table.parts - 1}")
    with _errors_that_name_file(path, part):
        return part_of(read_batch(path, table, range(part, part + 1)))


def read_batch(
    path: str | Path, table: PartsTable, parts: range, *, check: bool = True
) -> PartBatch:
    """Read neighbouring parts, as :func:`read_part`.

    Without ``check`` only their digests are checked.
    """
    with _errors_that_name_file(path, parts.start):
        # The rows of each dataset that belong to these parts stand side by side.
        begin = table.offset[:, parts.start : parts.stop]
        end = table.offset[:, parts.start + 1 : parts.stop + 1]
        names = [dataset.name for dataset in table.datasets]
        batch = PartBatch(
            description=table.description,
            parts=parts,
            count=table.parts,
            arrays=table.arrays(Path(path), parts),
            rows=dict(zip(names, end - begin, strict=True)),
        )
        if check:
            check_batch(batch)
    return batch


@contextmanager
def _errors_that_name_file(path: str | Path, part: int) -> Iterator[None]:
    """Turn errors of a part that is read into PlanError that names the file."""
    with _errors_as_damage(path, f"part {part}"):
        try:
            yield
        except MeshprepError as error:
            raise PlanError(f"{path}: {error}") from error
        except OSError as error:
            raise PlanError(f"cannot read parts {path}: {error.strerror}") from error


def load_part(path: str | Path, parts: int, part: int) -> PartPlan:
    """Read one part of a split, with its table.

    Parameters
    ----------
    path : str or Path
    parts : int
        One of :func:`kept`.
    part : int
        From 0 to ``parts - 1``.

    Returns
    -------
    PartPlan

    Raises
    ------
    PlanError
        As of :func:`parts_table` and :func:`read_part`.
    """
    return read_part(path, parts_table(path, parts), part)


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, range, int]]:
    """Yield a file with unchanged tables, the bytes of its slices, and its size."""
    hdf5: Any = store.hdf5_module()
    size = store.size_of_file(Path(path))
    try:
        slices = range(*check_parts_seal(Path(path)))
        with ExitStack() as ending:
            file = ending.enter_context(hdf5.opened(Path(path)))
            ending = ending.pop_all()
    except MeshprepError as error:
        raise PlanError(f"{path}: {error}") from error
    except OSError as error:
        raise PlanError(f"{path}: damaged, or no file of parts: split anew") from error
    with ending, _errors_as_damage(path, "its tables"):
        yield file, slices, size


@contextmanager
def _errors_as_damage(path: str | Path, damaged: str) -> Iterator[None]:
    """Turn other errors into PlanError: meshprep did not write this sealed file."""
    try:
        yield
    except MeshprepError:
        raise
    except Exception as error:
        # HDF5 and JSON raise exceptions of many kinds for damaged files.
        raise PlanError(
            f"{path}: damaged: {damaged} ({store.line_of(error)}): split the mesh anew"
        ) from error


def _numbers_of_parts(file: Any) -> list[int]:
    """The number of parts of each split in a file, ascending."""
    return sorted(int(name) for name in file["parts"])


def _read_text(file: Any, path: str) -> str:
    return bytes(file[path][()]).decode()


def _parse_object(text: str) -> dict[str, Any]:
    """A JSON object; raises ValueError for other values."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("a text is no JSON object")
    return value
