"""OP2's HDF5 meshes by slices; what they hold is found as :mod:`meshprep.io.op2` finds it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.model import hash_of_rows
from ..declared import COORDINATES, NO_MAPS, check_names
from ..meshio_adapter.harden import guarded
from ..op2.fit import check_fit
from ..op2.infer import InferredSets, infer
from ..op2.objects import check_held, classify
from ..op2.read import check_coordinates, index_range, name_of_map, sizes_of
from .model import Hdf5Rows, SlicedMesh, StoredMap, StoredRows, in_turn


def scan_op2(path: Path, declared: Mapping[str, str]) -> SlicedMesh:
    """What a file holds; as :func:`meshprep.io.op2.read.read` without the values.

    Raises MeshprepError where sets cannot be told apart, indices are out of range, or this is no
    such file.
    """
    with guarded("not a readable HDF5 file"), h5py.File(path, "r") as file:
        found = classify(file, declared)
        sizes, _ = sizes_of(file, found, declared)
        check_names(declared, [f.path for f in found], sizes, sets_in_file=True)
        inferred = infer(found, sizes, declared, lambda name: index_range(file[name]))
        if not inferred.maps:
            raise MeshprepError(NO_MAPS)
        maps = {name: _map(path, file[name], name, inferred) for name in inferred.maps}
        coordinates = _coordinates(path, file, inferred, declared)
    check_fit({name: _Sampled.of(m) for name, m in maps.items()}, sizes, declared)
    made = SlicedMesh(sizes, tuple(maps.values()), coordinates)
    named = {m.name: m for m in maps.values()}

    def rows(name: str) -> Iterator[NDArray[Any]]:
        return in_turn(named[name].rows)

    return replace(made, content_hash=hash_of_rows(made.shape(), sizes, rows))


def _map(path: Path, item: Any, name: str, inferred: InferredSets) -> StoredMap:
    check_held(item)
    width = item.shape[1] if item.ndim == 2 else 1
    rows = Hdf5Rows(path, name, item.shape[0], width, inferred.base)
    return StoredMap(name_of_map(name, inferred), *inferred.maps[name], rows)


def _coordinates(
    path: Path, file: Any, inferred: InferredSets, declared: Mapping[str, str]
) -> StoredRows | None:
    """The rows that are declared the coordinates, or have their name."""
    chosen = declared.get(COORDINATES)
    if chosen not in inferred.dats:
        chosen = COORDINATES if inferred.dats.get(COORDINATES) == "nodes" else None
    if chosen is None:
        return None
    item = file[chosen]
    check_held(item)
    check_coordinates(chosen, inferred.dats[chosen], item)
    return Hdf5Rows(path, chosen, *item.shape)


@dataclass(frozen=True, eq=False)
class _Sampled:
    """A map of which some rows are looked at."""

    from_set: str
    to_set: str
    size: int
    arity: int
    table: "_Table"

    @classmethod
    def of(cls, m: StoredMap) -> "_Sampled":
        return cls(m.from_set, m.to_set, m.rows.size, m.rows.width, _Table(m.rows))


@dataclass(frozen=True, eq=False)
class _Table:
    """Gives rows as an array would."""

    rows: StoredRows

    def __getitem__(self, wanted: Any) -> NDArray[Any]:
        if isinstance(wanted, slice):
            begin, end, _ = wanted.indices(self.rows.size)
            return self.rows.read(begin, end)
        which, place = np.unique(wanted, return_inverse=True)
        return self.rows.at(which)[place.reshape(np.shape(wanted))]
