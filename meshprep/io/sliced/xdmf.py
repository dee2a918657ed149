"""XDMF whose numbers lie in HDF5 files beside it, by slices."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, parse

import h5py
import numpy as np
from meshio.xdmf.common import xdmf_to_meshio_type
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, shape_of
from ...mesh.model import hash_of_rows
from ..meshio_adapter.harden import guarded
from ..meshio_adapter.xdmf import check_dimensions, refuse_unknown
from ..op2.objects import check_held
from .model import Hdf5Rows, SlicedMesh, StoredMap, in_turn


def scan_xdmf(path: Path) -> SlicedMesh:
    """What a file holds: one grid of cells of one type, and its points.

    Raises MeshprepError for several grids or types of cells, and numbers that do not lie in HDF5.
    """
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
    made = SlicedMesh(sizes, maps, points, "", {"cells": kind})

    def rows(name: str) -> Iterator[NDArray[Any]]:
        return in_turn(cells)

    return replace(made, content_hash=hash_of_rows(made.shape(), sizes, rows))


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
