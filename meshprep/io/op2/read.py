"""Reading OP2's HDF5 meshes, and any other HDF5 file whose datasets are declared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.seal import is_parts, is_plan

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ..declared import BASE, COORDINATES, NO_MAPS, NO_SET, check_names, rows_of
from ..guard import guarded
from ..hdf.dump import check_hdf5
from .infer import (
    DatasetInfo,
    InferredSets,
    Range,
    check_fit,
    classify,
    infer,
    load,
    pieces,
)
from .layout import CONSTANTS, INFERRED, NOTES, ORIGINAL_ID, Op2Notes
from .write import image, references


def read(path: Path, declared: Mapping[str, str]) -> Mesh:
    """Read a file; every map is named ``from->to``, with ``:NAME`` where there are several.

    Sets that are ``declared`` (:mod:`meshprep.io.declared`) and not in the file are as
    large as what is on them. Raises MeshprepError where sets cannot be told apart, or
    indices are wrong.
    """
    if is_plan(path) or is_parts(path):
        kind = "plan" if is_plan(path) else "mesh in parts"
        raise MeshprepError(f"is a {kind}: meshprep info shows what it holds")
    with guarded("not a readable HDF5 file"):
        # all of it, since what is no set, map or dat is copied
        check_hdf5(path)
        with h5py.File(path, "r") as file:
            return _mesh_of_file(file, declared)


def _mesh_of_file(file: Any, declared: Mapping[str, str]) -> Mesh:
    # Find the sets that maps and dats are on, by their sizes and what is declared.
    datasets = classify(file, declared)
    sizes, paths = sizes_of(file, datasets, declared)
    check_names(
        declared=declared, names=[f.path for f in datasets], sets=sizes, sets_in_file=True
    )
    inferred = infer(
        found=datasets,
        sizes=sizes,
        declared=declared,
        range_of=lambda path: index_range(file[path]),
    )
    maps, map_paths = _read_maps(file, inferred)
    check_fit({map_paths[m.name]: m for m in maps}, sizes, declared)
    dats, dat_paths = _read_dats(file, inferred, declared)
    if not maps:
        raise MeshprepError(NO_MAPS)
    # Keep all else of the file, to be written back as it is.
    moving = {*map_paths.values(), *dat_paths.values()}
    remainder = image(file, moving)
    fixed = tuple(path for path, place in declared.items() if place == NO_SET)
    notes = Op2Notes(
        sets=paths,
        maps=map_paths,
        dats=dat_paths,
        base=inferred.base,
        rest=remainder,
        fixed=fixed,
    )
    extras: dict[str, Any] = {NOTES: notes}
    # Note what was found out: commands tell it, and templates of loops declare it.
    undeclared = [
        f"{p}={'->'.join(pair)}" for p, pair in inferred.maps.items() if p not in declared
    ]
    undeclared += [f"{p}={on}" for p, on in inferred.dats.items() if p not in declared]
    if inferred.base and BASE not in declared:
        undeclared.append(f"{BASE}={inferred.base}")
    if undeclared:
        extras[INFERRED] = tuple(undeclared)
    constants = tuple(f.path for f in datasets if f.path not in {*moving, *paths.values()})
    if constants:
        extras[CONSTANTS] = constants
    if unread := references(file):
        extras["unread"] = unread
    sets = [ElementSet(name, size) for name, size in sizes.items()]
    return Mesh(sets=sets, maps=maps, dats=dats, extras=extras)


def sizes_of(
    file: Any, found: Sequence[DatasetInfo], declared: Mapping[str, str]
) -> tuple[dict[str, int], dict[str, str]]:
    """Sizes of the sets, and the paths of those that the file has."""
    sizes: dict[str, int] = {}
    paths: dict[str, str] = {}
    for dataset in found:
        if dataset.kind == "set":
            # A set's name has no slash in meshprep.
            name = dataset.path.replace("/", ".")
            if name in paths:
                raise MeshprepError(
                    f"two sets, '{paths[name]}' and '{dataset.path}', have one name"
                )
            sizes[name] = int(file[dataset.path][0])
            paths[name] = dataset.path
    by_path = {dataset.path: dataset for dataset in found}
    for path, place in declared.items():
        if path in by_path and path not in (BASE, COORDINATES) and place != NO_SET:
            sizes.setdefault(rows_of(place), by_path[path].rows)
    return sizes, paths


def index_range(item: Any) -> Range:
    """Smallest and largest index of a map, None where it has no rows."""
    if item.dtype.kind not in "iu":
        raise MeshprepError(
            f"map '{item.name[1:]}' holds {item.dtype}, must be whole numbers"
        )
    ends = [(int(one.min()), int(one.max())) for one in pieces(item) if one.size]
    if ends:
        return (min(low for low, _ in ends), max(high for _, high in ends))
    return None


def _read_maps(file: Any, inferred: InferredSets) -> tuple[list[SetMap], dict[str, str]]:
    maps = []
    paths = {}
    for path, (source, target) in inferred.maps.items():
        name = name_of_map(path, inferred)
        values = load(file[path])
        table: NDArray[Any] = values if values.ndim == 2 else values[:, None]
        if inferred.base:
            table = table.astype(np.int64) - inferred.base
        maps.append(SetMap(name=name, from_set=source, to_set=target, table=table))
        paths[name] = path
    return maps, paths


def name_of_map(path: str, inferred: InferredSets) -> str:
    """``from->to``; with the path behind it where another map of these sets comes first."""
    pair = inferred.maps[path]
    first = next(p for p, other in inferred.maps.items() if other == pair)
    name = "->".join(pair)
    return (name if path == first else f"{name}:{path}").replace("/", ".")


def _read_dats(
    file: Any, inferred: InferredSets, declared: Mapping[str, str]
) -> tuple[list[Dat], dict[tuple[str, str], str]]:
    dats = []
    paths = {}
    for path, on in inferred.dats.items():
        name = path
        if declared.get(COORDINATES) == path:
            name = COORDINATES
        elif path == f"{ORIGINAL_ID}_{on}":
            name = ORIGINAL_ID
        values = load(file[path])
        if values.dtype.kind == "O":
            raise MeshprepError(
                f"dataset '{path}' holds texts of any length, and a mesh only those of a "
                f"fixed one: say by --sets '{path}={NO_SET}' that it is on no set"
            )
        if name == COORDINATES:
            check_coordinates(path, on, values)
        dats.append(Dat(name, on, values))
        paths[on, name] = path
    return dats, paths


def check_coordinates(path: str, on: str, values: Any) -> None:
    """Raise MeshprepError for what cannot be the coordinates of nodes."""
    doubles = values.dtype.newbyteorder("=") == "f8"
    if on != "nodes" or values.ndim != 2 or values.shape[1] not in (2, 3) or not doubles:
        raise MeshprepError(
            f"'{path}' of shape {values.shape} on '{on}' cannot be the coordinates: they "
            "are two or three doubles on the set 'nodes'"
        )
