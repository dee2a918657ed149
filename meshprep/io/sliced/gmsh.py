"""Gmsh's binary MSH 4.1 by slices: blocks of nodes and elements from their headers."""

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
from .stored import (
    NumberedRows,
    Run,
    RunRows,
    SlicedMesh,
    StoredMap,
    StoredRows,
    StoredTag,
    in_turn,
)

_NUMBERED = (
    "the nodes are not numbered 1, 2, 3, ..., rising on each entity: save the mesh so, or "
    "leave --slices out"
)
# Sections that say what groups there are.
_SMALL = ("PhysicalNames", "Entities", "PartitionedEntities", "Meshprep")


def scan_gmsh(path: Path) -> SlicedMesh:
    """What a file holds; as :func:`meshprep.io.read` without values, partitions and labels.

    Raises MeshprepError for a file that is damaged, text, of another version, or whose
    nodes are not numbered 1, 2, 3 and so on.
    """
    readers = {name: READERS["4.1"][name] for name in _SMALL}
    readers |= {
        "Nodes": ("nodes", _runs_of_nodes),
        "Elements": ("elements", _runs_of_elements),
    }
    cursor = GmshCursor(path, np.asarray(np.memmap(path, np.uint8, "c")))
    raw: Any = read_sections(cursor, {"4.1": readers, "2.2": readers})
    labels, runs = raw.nodes
    points = _sorted_points(path=path, labels=labels, points=runs, notes=raw.notes)
    made = _sliced_mesh(path, points, raw.elements)
    return replace(made, tags=tuple(_stored_tags(raw))).hashed()


def _sorted_points(
    path: Path, labels: list[Run], points: list[Run], notes: GmshNotes | None
) -> StoredRows:
    """The coordinates in the order of the nodes' numbers, as :mod:`..gmsh` has them."""
    # Go through the numbers piece by piece: each block must rise, all must be 1 to n.
    n = sum(run.rows for run in labels)
    plain = True
    has_position = np.zeros(n, dtype=np.bool_)
    ends = np.zeros((len(labels), 2), dtype=np.int64)
    before = 0
    for i, run in enumerate(labels):
        last = 0
        for begin, piece in in_turn(RunRows(path=path, runs=[run], width=1, dtype="<i8")):
            numbers = piece[:, 0]
            rising = numbers[0] > last and (numbers[1:] > numbers[:-1]).all()
            if not rising or numbers[-1] > n or has_position[numbers - 1].any():
                raise MeshprepError(_NUMBERED)
            if not last:
                ends[i, 0] = numbers[0]
            last = int(numbers[-1])
            plain &= last == before + begin + len(numbers)
            has_position[numbers - 1] = True
        ends[i, 1] = last
        before += run.rows
    # Rows that are in order are read as they lie, others by the numbers of their block.
    if plain:
        return RunRows(path=path, runs=points, width=3, dtype="<f8")
    if notes is not None and notes.placed:
        raise MeshprepError(_NUMBERED)
    return NumberedRows(
        path=path,
        numbers=labels,
        runs=points,
        ends=ends,
        width=3,
        dtype="<f8",
    )


def _block_heads(cursor: GmshCursor, what: str) -> Iterator[tuple[int, int, int, int]]:
    """The heads of blocks, each where the block begins; who takes it goes behind."""
    if cursor.mode == ASCII or cursor.version != "4.1":
        raise cursor.error(
            "only Gmsh's binary MSH 4.1 is read by slices: save the mesh with "
            "'-format msh41 -bin', or leave --slices out"
        )
    # Binary blocks have rows of a known length, so that their heads alone tell where all
    # begins.
    n_blocks, n = read_header(cursor=cursor, what=what, text=0, binary=16)
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
    return Run(address=at, rows=rows, width=width, first=first)


def _runs_of_nodes(cursor: GmshCursor) -> tuple[list[Run], list[Run]]:
    """Where the numbers of the nodes stand, and their coordinates."""
    labels = []
    points = []
    for _, _, parametric, count in _block_heads(cursor, "nodes"):
        if parametric:
            raise cursor.error("parametric nodes are not read by slices: save without them")
        labels.append(_run(cursor, count, 1))
        points.append(_run(cursor, count, 3))
    return labels, points


def _runs_of_elements(cursor: GmshCursor) -> dict[int, list[tuple[int, Run]]]:
    """By type: the entity of each block, and where its nodes stand."""
    runs_by_type: dict[int, list[tuple[int, Run]]] = {}
    for dim, entity, kind, count in _block_heads(cursor, "elements"):
        known = (
            0 <= kind < NODES.size and NODES[kind] > 0 and NAME_OF[kind] not in TO_MEMORY
        )
        if not known or dim != DIMS[kind]:
            raise cursor.error(f"elements of type {kind} are not read by slices")
        run = _run(cursor=cursor, rows=count, width=1 + int(NODES[kind]), first=1)
        if count:
            runs_by_type.setdefault(kind, []).append((entity, run))
    return runs_by_type


def _sliced_mesh(
    path: Path, points: StoredRows, cells: dict[int, list[tuple[int, Run]]]
) -> SlicedMesh:
    """Sets and maps as :mod:`meshprep.mesh.assemble` names them."""
    if not cells:
        raise MeshprepError(
            "there are no cells: the file needs lines, faces or volumes to work on"
        )
    names = set_names(NAME_OF[number] for number in cells)
    sizes = {"nodes": points.size}
    # A set for each type of cell, whose rows are the runs of all its blocks.
    maps = []
    cell_types = {}
    for number, blocks in cells.items():
        kind = NAME_OF[number]
        rows = RunRows(
            path=path,
            runs=[run for _, run in blocks],
            width=int(NODES[number]),
            dtype="<i8",
            base=1,
        )
        sizes[names[kind]] = rows.size
        cell_types[names[kind]] = kind
        maps.append(
            StoredMap(
                name=f"{names[kind]}->nodes",
                from_set=names[kind],
                to_set="nodes",
                rows=rows,
            )
        )
    # Where types are mixed, the cells are the union of those of the highest dimension.
    unions = {}
    if "cells" not in sizes:
        dims = {name: shape_of(kind).dim for name, kind in cell_types.items()}
        top = tuple(name for name, dim in dims.items() if dim == max(dims.values()))
        unions = {"cells": top}
        sizes["cells"] = sum(sizes[name] for name in top)
    return SlicedMesh(
        sizes=sizes,
        maps=tuple(maps),
        coordinates=points,
        content_hash="",
        cell_types=cell_types,
        unions=unions,
    )


def _stored_tags(raw: Any) -> Iterator[StoredTag]:
    """Entities and groups of cells, which the file says of blocks."""
    notes = raw.notes or GmshNotes()
    names = set_names(NAME_OF[number] for number in raw.elements)
    for number, blocks in raw.elements.items():
        dim = int(DIMS[number])
        on = names[NAME_OF[number]]
        entities = np.array([entity for entity, _ in blocks])
        # All cells of a block are of its entity, so that groups are those of runs.
        ends = np.cumsum([run.rows for _, run in blocks])
        for name, table in tags_of_entities(
            entity=entities, mesh=raw, notes=notes, dim=dim
        ).items():
            if table.group_id.size and name != "partition":
                if name == notes.physical:
                    group_names = raw.names.get(dim, {})
                else:
                    group_names = {}
                yield StoredTag(
                    name=name, set=on, ends=ends, table=table, names=group_names
                )
