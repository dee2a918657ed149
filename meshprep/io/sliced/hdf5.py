"""OP2's HDF5 meshes by slices of their datasets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from meshprep_runtime.errors import MeshprepError

from ..declared import COORDINATES, NO_MAPS, check_names
from ..meshio_adapter.harden import guarded
from ..op2.fit import check_fit
from ..op2.infer import InferredSets, check_held, classify, infer
from ..op2.read import check_coordinates, index_range, name_of_map, sizes_of
from .model import Hdf5Rows, SlicedMesh, StoredMap, StoredRows


def scan_op2(path: Path, declared: Mapping[str, str]) -> SlicedMesh:
    """What a file of OP2 holds, without the values; raises MeshprepError where that is unclear."""
    with guarded("not a readable HDF5 file"), h5py.File(path, "r") as file:
        found = classify(file, declared)
        sizes, _ = sizes_of(file, found, declared)
        check_names(declared, [f.path for f in found], sizes, sets_in_file=True)
        inferred = infer(found, sizes, declared, lambda name: index_range(file[name]))
        if not inferred.maps:
            raise MeshprepError(NO_MAPS)
        maps = {name: _map(path, file[name], name, inferred) for name in inferred.maps}
        coordinates = _coordinates(path, file, inferred, declared)
    check_fit(maps, sizes, declared)
    return SlicedMesh(sizes, tuple(maps.values()), coordinates).hashed()


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
