"""OP2's HDF5 meshes, and XDMF whose numbers lie in HDF5, by slices of their datasets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, parse

import h5py
import numpy as np
from meshio.xdmf.common import xdmf_to_meshio_type

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, shape_of
from ..declared import COORDINATES, NO_MAPS, check_names
from ..meshio_adapter.harden import guarded
from ..meshio_adapter.xdmf import check_dimensions, refuse_unknown
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
    sampled = {
        name: _Sampled(m.from_set, m.to_set, m.rows.size, m.rows.width, m.rows)
        for name, m in maps.items()
    }
    check_fit(sampled, sizes, declared)
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


class _Sampled(NamedTuple):
    """A map of which some rows are looked at."""

    from_set: str
    to_set: str
    size: int
    arity: int
    table: Any  # gives rows as an array would


def scan_xdmf(path: Path) -> SlicedMesh:
    """What a file holds: a grid of cells of one type in HDF5; raises MeshprepError for others."""
    try:
        root = parse(path).getroot()
    except ParseError as error:
        raise MeshprepError(f"not a readable xdmf file: {error}") from None
    refuse_unknown(root)
    topology, geometry = _only(root, "Topology"), _only(root, "Geometry")
    kind = xdmf_to_meshio_type.get(topology.get("TopologyType", topology.get("Type", "")))
    if kind is None or kind.startswith(("polygon", "vertex")):
        raise MeshprepError("only cells of one type are read by slices: write them so")
    with guarded("not a readable HDF5 file"):
        cells, points = _rows(path, topology, "iu"), _rows(path, geometry, "f")
    check_node_count("a cell", kind, cells.width)
    if cells.width != shape_of(kind).n_corners:
        raise MeshprepError("only cells of first order are read by slices from XDMF")
    sizes = {"nodes": points.size, "cells": cells.size}
    maps = (StoredMap("cells->nodes", "cells", "nodes", cells),)
    return SlicedMesh(sizes, maps, points, "", {"cells": kind}).hashed()


def _only(root: Element, tag: str) -> Element:
    found = list(root.iter(tag))
    if len(found) != 1:
        raise MeshprepError(f"holds {len(found)} of <{tag}>: only one grid is read by slices")
    return found[0]


def _rows(path: Path, item: Element, kinds: str) -> Hdf5Rows:
    """The rows of a data item in HDF5, which names a file and a dataset: ``mesh.h5:/data0``."""
    data = item.find("DataItem")
    text = "" if data is None else (data.text or "").strip()
    name, colon, dataset = text.rpartition(":")
    if data is None or data.get("Format") != "HDF" or not colon:
        raise MeshprepError("only numbers in HDF5 are read by slices: write them so")
    with h5py.File(path.parent / name, "r") as file:
        held = file[dataset]
        check_held(held)
        check_dimensions(data, held.shape)
        if held.ndim != 2 or held.dtype.kind not in kinds:
            raise MeshprepError(f"'{dataset}' must be a table of numbers of kind {kinds}")
        return Hdf5Rows(path.parent / name, dataset, *map(int, np.shape(held)))
