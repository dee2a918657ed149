"""Files of parts: which there are, and reading one part of them."""

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

    Raises PlanError when the file is missing, no file of parts, or damaged in its tables.
    """
    with _opened(path) as (file, _, _):
        return _numbers(file)


def about(path: str | Path) -> dict[str, Any]:
    """What a file says of itself: who made it, from which mesh, and the number of its bytes."""
    with _opened(path) as (file, _, size):
        return {**json.loads(_text(file, "/about")), "bytes": size}


def parts_table(path: str | Path, parts: int) -> PartsTable:
    """Where the slices of each part lie; for one process, which may send it to others.

    ``parts`` is one of :func:`kept`. Raises PlanError as :func:`kept`, and where the file is
    not split into so many; the message lists those there are, and the command that adds one.
    O(bytes of the tables): 8 for each part and dataset, and 32 for each part.
    """
    with _opened(path) as (file, slices, _):
        known = _numbers(file)
        if parts not in known:
            raise PlanError(
                f"{path} is split into {listed(known)} parts, not {parts}: "
                f"add that by 'meshprep split {path} --parts {parts}'"
            )
        at, datasets = f"/parts/{parts}", []
        for name in json.loads(_text(file, f"{at}/datasets")):
            found = file[f"{at}/{name}"]
            size = prod(found.shape) * found.dtype.itemsize
            address = int(found.id.get_offset()) if size else slices.start
            if not slices.start <= address <= address + size <= slices.stop:
                raise PlanError(f"{path}: {at}/{name} lies outside of the slices: split anew")
            datasets.append(SlicedDataset(name, found.dtype.str, tuple(found.shape[1:]), address))
        description = json.loads(_text(file, f"{at}/description"))
        offset, digest = (np.asarray(file[f"{at}/{name}"]) for name in ("offset", "digest"))
        return PartsTable(parts, description, datasets, offset, digest)


def read_part(path: str | Path, table: PartsTable, part: int) -> PartPlan:
    """One part, checked against its digest and itself; raises PlanError where that fails."""
    if not 0 <= part < table.parts:
        raise PlanError(f"{path}: there is no part {part}: choose 0..{table.parts - 1}")
    with _named(path, part):
        return part_of(read_batch(path, table, range(part, part + 1)))


def read_batch(
    path: str | Path, table: PartsTable, parts: range, *, check: bool = True
) -> PartBatch:
    """Neighbouring parts, as :func:`read_part`; by digests alone without ``check``."""
    with _named(path, parts.start):
        begin, end = (table.offset[:, parts.start + i : parts.stop + i] for i in (0, 1))
        names = [one.name for one in table.datasets]
        rows = dict(zip(names, end - begin, strict=True))
        arrays = table.arrays(Path(path), parts)
        found = PartBatch(table.description, parts, table.parts, arrays, rows)
        if check:
            check_batch(found)
    return found


@contextmanager
def _named(path: str | Path, part: int) -> Iterator[None]:
    """Errors of a part that is read, as PlanError that names the file."""
    try:
        yield
    except MeshprepError as error:
        raise PlanError(f"{path}: {error}") from error
    except OSError as error:
        raise PlanError(f"cannot read parts {path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(f"{path}: damaged: part {part} ({error}): split the mesh anew") from error


def load_part(path: str | Path, parts: int, part: int) -> PartPlan:
    """:func:`read_part` of :func:`parts_table`, for a process that is alone."""
    return read_part(path, parts_table(path, parts), part)


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, range, int]]:
    """A file whose tables are proved unchanged, where its slices lie, and the number of bytes."""
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
    with ending:
        yield file, slices, size


def _numbers(file: Any) -> list[int]:
    return sorted(int(name) for name in file["parts"])


def _text(file: Any, path: str) -> str:
    return bytes(file[path][()]).decode()
