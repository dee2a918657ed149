"""Gmsh's binary MSH by slices: blocks of nodes and elements are found by their headers."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import distinct

from ...mesh.assemble import set_names
from ...mesh.cells import shape_of
from ...mesh.model import hash_of_rows
from ..gmsh.types import NAME_OF, NODES
from .gmsh_blocks import READERS
from .gmsh_scan import GmshScan, RunRows
from .model import SlicedMesh, StoredMap, StoredRows, in_turn


def scan_gmsh(path: Path) -> SlicedMesh:
    """What a file holds; as :func:`meshprep.io.read` without values, groups and labels.

    Raises MeshprepError for a file that is damaged, text, of another version, or whose nodes are
    not numbered 1, 2, 3 and so on.
    """
    with open(path, "rb") as file:
        scan = GmshScan(file, os.fstat(file.fileno()).st_size)
        nodes, elements, scan.integer = READERS[scan.header()]
        seen: set[str] = set()
        while (name := scan.section()) is not None:
            if name in seen and name in ("Nodes", "Elements"):
                raise MeshprepError(f"section ${name} is there twice: remove one")
            seen.add(name)
            if name == "Nodes":
                nodes(scan)
            elif name == "Elements":
                elements(scan)
            scan.skip(name)
    if not scan.cells or not scan.points:
        raise MeshprepError("section $Nodes or $Elements is missing: the mesh is not there")
    _check_labels(RunRows(path, tuple(scan.labels), 1, scan.integer))
    for runs in scan.tags.values():
        _check_groups(RunRows(path, tuple(runs), 2, scan.integer))
    made = _mesh(path, scan)
    named = {m.name: m.rows for m in made.maps}

    def rows_of(name: str) -> Iterator[NDArray[Any]]:
        return in_turn(named[name])

    return replace(made, content_hash=hash_of_rows(made.shape(), made.sizes, rows_of))


def _mesh(path: Path, scan: GmshScan) -> SlicedMesh:
    """Sets and maps as :mod:`meshprep.mesh.assemble` names them."""
    points = RunRows(path, tuple(scan.points), 3, "<f8")
    types = {number: NAME_OF[number] for number in scan.cells}
    names = set_names(types.values())
    sizes, maps, cell_types = {"nodes": points.size}, [], {}
    for number, kind in types.items():
        rows = RunRows(path, tuple(scan.cells[number]), int(NODES[number]), scan.integer, 1)
        sizes[names[kind]], cell_types[names[kind]] = rows.size, kind
        maps.append(StoredMap(f"{names[kind]}->nodes", names[kind], "nodes", rows))
    unions = {}
    if "cells" not in sizes:
        dims = {name: shape_of(kind).dim for name, kind in cell_types.items()}
        top = tuple(name for name, dim in dims.items() if dim == max(dims.values()))
        unions, sizes["cells"] = {"cells": top}, sum(sizes[name] for name in top)
    return SlicedMesh(sizes, tuple(maps), points, "", cell_types, unions)


def _check_groups(tags: StoredRows) -> None:
    """Raise MeshprepError where an element may stand once for each of several groups."""
    width = np.int64(1 << 32)
    keys = [
        distinct(group.astype(np.int64) * width + entity)
        for group, entity in (piece.T for piece in in_turn(tags))
    ]
    pairs = distinct(np.concatenate(keys))
    if distinct(pairs % width).size < pairs.size:
        raise MeshprepError(
            "an entity is in several groups, for each of which MSH 2.2 repeats its elements: "
            "save the mesh with '-format msh41 -bin', or leave --slices out"
        )


def _check_labels(labels: StoredRows) -> None:
    first = 1
    for piece in in_turn(labels):
        if not np.array_equal(piece[:, 0], np.arange(first, first + len(piece))):
            raise MeshprepError(
                "the nodes are not numbered 1, 2, 3, ...: save the mesh so, or leave --slices out"
            )
        first += len(piece)
