"""Gmsh's binary MSH 4.1 by slices: blocks of nodes and elements are found by their headers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ...mesh.assemble import set_names
from ...mesh.cells import shape_of
from ..gmsh.build import tags_of_entities
from ..gmsh.read import READERS, read_sections
from ..gmsh.sections import GmshCursor, GmshNotes
from ..gmsh.tables import read_header
from ..gmsh.types import DIMS, NAME_OF, NODES, TO_MEMORY
from ..text.tokens import ASCII
from .stored import Run, RunRows, SlicedMesh, StoredMap, StoredTag, in_turn

# Sections that say what groups there are.
_SMALL = ("PhysicalNames", "Entities", "PartitionedEntities", "Meshprep")


def scan_gmsh(path: Path) -> SlicedMesh:
    """What a file holds; as :func:`meshprep.io.read` without values, partitions and labels.

    Raises MeshprepError for a file that is damaged, text, of another version, or whose nodes are
    not numbered 1, 2, 3 and so on.
    """
    readers = {name: READERS["4.1"][name] for name in _SMALL}
    readers |= {"Nodes": ("nodes", _nodes), "Elements": ("elements", _elements)}
    cursor = GmshCursor(path, np.asarray(np.memmap(path, np.uint8, "c")))
    raw: Any = read_sections(cursor, {"4.1": readers, "2.2": readers})
    labels, points = raw.nodes
    for begin, piece in in_turn(RunRows(path, labels, 1, "<i8")):
        if not np.array_equal(piece[:, 0], np.arange(begin + 1, begin + 1 + len(piece))):
            raise MeshprepError(
                "the nodes are not numbered 1, 2, 3, ...: save the mesh so, or leave --slices out"
            )
    made = _mesh(path, RunRows(path, points, 3, "<f8"), raw.elements)
    return replace(made, tags=tuple(_tags(raw))).hashed()


def _blocks(cursor: GmshCursor, what: str) -> Iterator[tuple[int, int, int, int]]:
    """The heads of blocks, each where the block begins; who takes it goes behind."""
    if cursor.mode == ASCII or cursor.version != "4.1":
        raise cursor.error(
            "only Gmsh's binary MSH 4.1 is read by slices: save the mesh with "
            "'-format msh41 -bin', or leave --slices out"
        )
    n_blocks, n = read_header(cursor, what, 0, 16)
    for _ in range(n_blocks):
        first, second, third = cursor.ints(3, what=f"a block of {what}").tolist()
        count = cursor.count(f"{what} of a block")
        yield first, second, third, count
        n -= count
    if n:
        raise cursor.error(f"the blocks do not hold all {what}: the file is damaged")


def _run(cursor: GmshCursor, rows: int, width: int, first: int = 0) -> Run:
    cursor.need(rows, 0, 8 * width, "rows of a block")
    at = cursor.pos
    cursor.pos += 8 * width * rows
    return Run(at, rows, width, first)


def _nodes(cursor: GmshCursor) -> tuple[list[Run], list[Run]]:
    """Where the numbers of the nodes stand, and their coordinates."""
    labels, points = [], []
    for _, _, parametric, count in _blocks(cursor, "nodes"):
        if parametric:
            raise cursor.error("parametric nodes are not read by slices: save without them")
        labels.append(_run(cursor, count, 1))
        points.append(_run(cursor, count, 3))
    return labels, points


def _elements(cursor: GmshCursor) -> dict[int, list[tuple[int, Run]]]:
    """By type: the entity of each block, and where its nodes stand."""
    found: dict[int, list[tuple[int, Run]]] = {}
    for dim, entity, kind, count in _blocks(cursor, "elements"):
        known = 0 <= kind < NODES.size and NODES[kind] > 0 and NAME_OF[kind] not in TO_MEMORY
        if not known or dim != DIMS[kind]:
            raise cursor.error(f"elements of type {kind} are not read by slices")
        run = _run(cursor, count, 1 + int(NODES[kind]), 1)
        if count:
            found.setdefault(kind, []).append((entity, run))
    return found


def _mesh(path: Path, points: RunRows, cells: dict[int, list[tuple[int, Run]]]) -> SlicedMesh:
    """Sets and maps as :mod:`meshprep.mesh.assemble` names them."""
    if not cells:
        raise MeshprepError("there are no cells: the file needs lines, faces or volumes to work on")
    names = set_names(NAME_OF[number] for number in cells)
    sizes, maps, cell_types = {"nodes": points.size}, [], {}
    for number, blocks in cells.items():
        kind = NAME_OF[number]
        rows = RunRows(path, [run for _, run in blocks], int(NODES[number]), "<i8", 1)
        sizes[names[kind]], cell_types[names[kind]] = rows.size, kind
        maps.append(StoredMap(f"{names[kind]}->nodes", names[kind], "nodes", rows))
    unions = {}
    if "cells" not in sizes:
        dims = {name: shape_of(kind).dim for name, kind in cell_types.items()}
        top = tuple(name for name, dim in dims.items() if dim == max(dims.values()))
        unions, sizes["cells"] = {"cells": top}, sum(sizes[name] for name in top)
    return SlicedMesh(sizes, tuple(maps), points, "", cell_types, unions)


def _tags(raw: Any) -> Iterator[StoredTag]:
    """Entities and groups of cells, which the file says of blocks."""
    notes, names = raw.notes or GmshNotes(), set_names(NAME_OF[number] for number in raw.elements)
    for number, blocks in raw.elements.items():
        dim, on = int(DIMS[number]), names[NAME_OF[number]]
        entities = np.array([entity for entity, _ in blocks])
        ends = np.cumsum([run.rows for _, run in blocks])
        for name, table in tags_of_entities(entities, raw, notes, dim).items():
            if table.group_id.size and name != "partition":
                group_names = raw.names.get(dim, {}) if name == notes.physical else {}
                yield StoredTag(name, on, ends, table, group_names)
