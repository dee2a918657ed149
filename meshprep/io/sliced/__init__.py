"""Mesh files read by slices: one process finds the layout, each reads its own rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input

from ..declared import COORDINATES, NO_MAPS, check_names, declared
from ..front import named
from ..guard import guarded
from ..op2.infer import InferredSets, check_fit, check_held, classify, infer
from ..op2.read import check_coordinates, index_range, name_of_map, sizes_of
from ..registry import find
from .stored import Hdf5Rows, SlicedMesh, StoredMap, StoredRows

__all__ = ["SlicedMesh", "scan"]

# Formats whose rows lie in the file as they are needed.
SLICED = ("gmsh", "op2")


def scan(
    path: Path, format: str | None = None, sets: Mapping[str, str] | None = None
) -> SlicedMesh:
    """What a mesh file holds, for one process, which may send it to others.

    Without ``format`` the ending of the name tells it; ``sets`` says what datasets are
    where the file does not. O(bytes) time, piece by piece: the hash of the mesh needs every
    row in turn. Raises MeshprepError as :func:`meshprep.io.read`, and for formats that are
    not read by slices.
    """
    with named(path):
        check_input(path)
        name = find(path, format).name
        if name not in SLICED:
            raise MeshprepError(
                f"format '{name}' is not read by slices, only {' and '.join(SLICED)}: "
                "write the mesh in one of these, or leave --slices out"
            )
        if sets and name != "op2":
            raise MeshprepError(
                f"format '{name}' says itself what it holds: leave --sets out"
            )
        if name == "gmsh":
            from .gmsh import scan_gmsh

            return scan_gmsh(path)
        return _scan_op2(path, declared(sets))


def _scan_op2(path: Path, places: Mapping[str, str]) -> SlicedMesh:
    """The layout of an OP2 file without values; raises MeshprepError if it is unclear."""
    with guarded("not a readable HDF5 file"), h5py.File(path, "r") as file:
        # Sizes and ends of the maps tell the sets, as for files that are read as a whole.
        datasets = classify(file, places)
        sizes, _ = sizes_of(file, datasets, places)
        check_names(
            declared=places, names=[f.path for f in datasets], sets=sizes, sets_in_file=True
        )
        inferred = infer(
            found=datasets,
            sizes=sizes,
            declared=places,
            range_of=lambda name: index_range(file[name]),
        )
        if not inferred.maps:
            raise MeshprepError(NO_MAPS)
        maps = {
            name: _stored_map(path=path, item=file[name], name=name, inferred=inferred)
            for name in inferred.maps
        }
        coordinates = _stored_coordinates(
            path=path, file=file, inferred=inferred, places=places
        )
    check_fit(maps, sizes, places)
    return SlicedMesh(sizes, tuple(maps.values()), coordinates).hashed()


def _stored_map(path: Path, item: Any, name: str, inferred: InferredSets) -> StoredMap:
    check_held(item)
    width = item.shape[1] if item.ndim == 2 else 1
    rows = Hdf5Rows(
        path=path, dataset=name, size=item.shape[0], width=width, base=inferred.base
    )
    return StoredMap(name_of_map(name, inferred), *inferred.maps[name], rows)


def _stored_coordinates(
    path: Path, file: Any, inferred: InferredSets, places: Mapping[str, str]
) -> StoredRows | None:
    """The rows that are declared the coordinates, or have their name."""
    chosen = places.get(COORDINATES)
    if chosen not in inferred.dats:
        if inferred.dats.get(COORDINATES) == "nodes":
            chosen = COORDINATES
        else:
            chosen = None
    if chosen is None:
        return None
    item = file[chosen]
    check_held(item)
    check_coordinates(chosen, inferred.dats[chosen], item)
    return Hdf5Rows(path, chosen, *item.shape)
