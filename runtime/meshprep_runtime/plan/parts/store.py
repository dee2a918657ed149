"""Files of parts: which there are, and reading one part of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
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
    with _Opened(path) as opened:
        return opened.kept()


def about(path: str | Path) -> dict[str, Any]:
    """What a file says of itself: who made it, from which mesh, and the number of its bytes."""
    with _Opened(path) as opened:
        return {**json.loads(opened.text("/about")), "bytes": opened.size}


def parts_table(path: str | Path, parts: int) -> PartsTable:
    """Where the slices of each part lie; for one process, which may send it to others.

    ``parts`` is one of :func:`kept`. Raises PlanError as :func:`kept`, and where the file is
    not split into so many; the message lists those there are, and the command that adds one.
    O(bytes of the tables): 8 for each part and dataset, and 32 for each part.
    """
    with _Opened(path) as opened:
        return opened.table(parts)


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


class _Opened:
    """A file of parts whose tables are proved unchanged."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __enter__(self) -> "_Opened":
        hdf5: Any = store.hdf5_module()
        self.size = store.size_of_file(self.path)
        try:
            self.begin, self.end = check_parts_seal(self.path)
            self._file = hdf5.opened(self.path)
            self.file = self._file.__enter__()
        except MeshprepError as error:
            raise PlanError(f"{self.path}: {error}") from error
        except OSError as error:
            raise PlanError(f"{self.path}: damaged, or no file of parts: split anew") from error
        return self

    def __exit__(self, *ended: object) -> None:
        self._file.__exit__(*ended)

    def kept(self) -> list[int]:
        return sorted(int(name) for name in self.file["parts"])

    def text(self, path: str) -> str:
        return bytes(self.file[path][()]).decode()

    def table(self, parts: int) -> PartsTable:
        known = self.kept()
        if parts not in known:
            raise PlanError(
                f"{self.path} is split into {listed(known)} parts, not {parts}: "
                f"add that by 'meshprep split {self.path} --parts {parts}'"
            )
        at = f"/parts/{parts}"
        datasets = tuple(
            self._dataset(at, name) for name in json.loads(self.text(f"{at}/datasets"))
        )
        return PartsTable(
            parts,
            json.loads(self.text(f"{at}/description")),
            datasets,
            np.asarray(self.file[f"{at}/offset"]),
            np.asarray(self.file[f"{at}/digest"]),
        )

    def _dataset(self, at: str, name: str) -> SlicedDataset:
        found = self.file[f"{at}/{name}"]
        size = prod(found.shape) * found.dtype.itemsize
        address = int(found.id.get_offset()) if size else self.begin
        if not self.begin <= address <= address + size <= self.end:
            raise PlanError(f"{self.path}: {at}/{name} lies outside of the slices: split anew")
        return SlicedDataset(name, found.dtype.str, tuple(found.shape[1:]), address)
