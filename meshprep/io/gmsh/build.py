"""From what a file holds to a mesh: numbers become positions, groups become tags."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, IndexList, Mesh
from ...mesh.assemble import Block, GroupTable, assemble, set_names
from ..text.tokens import ASCII
from .fields import FileCells, field_values
from .layout import ENTITY_DIM, ENTITY_TAG, PERIODIC
from .numbering import Lookup, distinct, distinct_lists, is_range, merge_copies, one_each
from .raw import RawCells, RawElements, RawMesh, RawNodes, RawPeriodic
from .sections import GmshCursor, GmshNotes
from .types import DIMS, NAME_OF, TO_MEMORY


def build(raw: RawMesh, cursor: GmshCursor) -> Mesh:
    """Make the mesh; raises MeshprepError, naming section and number, where it is none."""
    nodes = cursor.nodes
    assert raw.nodes is not None
    assert nodes is not None
    assert raw.elements is not None
    notes = raw.notes or GmshNotes()
    try:
        cells = [_cells(c, raw, notes) for c in raw.elements.cells]
        names = set_names(c.name for c in cells) if cells else {}
        dats = _node_dats(raw.nodes, notes)
        values, tags = field_values(raw.fields, nodes, cells, names, {d.name for d in dats})
        mesh, _ = assemble(
            raw.nodes.points,
            _blocks(cells, notes),
            node_label=None if nodes.plain else raw.nodes.label,
            tag_names={(notes.physical, dim): table for dim, table in raw.names.items()},
            dats=[*dats, *values],
            lists=[_periodic(link, nodes) for link in raw.periodic],
            extras={"gmsh": _extras(raw, cells, notes, cursor)}
            | ({"unread": tuple(dict.fromkeys(cursor.unread))} if cursor.unread else {}),
        )
        return mesh.with_(tags=tags) if tags else mesh
    except MeshprepError as error:
        raise MeshprepError(f"{cursor.path}: {error}") from None


def _cells(raw: RawCells, mesh: RawMesh, notes: GmshNotes) -> FileCells:
    assert mesh.elements is not None
    name, dim = NAME_OF[raw.number], int(DIMS[raw.number])
    if raw.label.size and raw.label.min() < 0:
        raise MeshprepError(f"$Elements: number {raw.label.min()} is negative: renumber it")
    table = raw.nodes
    if name in TO_MEMORY:
        table = table[:, TO_MEMORY[name]]
    if raw.physical is not None:
        cell, tags = _tags2(raw, mesh.elements, notes, dim)
    else:
        cell, tags = None, tags_of_entities(raw.entity, mesh, notes, dim)
    tags = {key: tag for key, tag in tags.items() if tag.group_id.size}
    label = raw.label
    if cell is not None:
        # Copies were merged: the first element of each cell stands for it.
        first = distinct(cell).first
        table, label = table[first], label[first]
    return FileCells(name, dim, table, label, tags, raw.label, cell)


def _tags2(
    raw: RawCells, elements: RawElements, notes: GmshNotes, dim: int
) -> tuple[NDArray[np.int64] | None, dict[str, GroupTable]]:
    assert raw.part_start is not None
    assert raw.part_count is not None
    lists, part = distinct_lists(raw.part_start, raw.part_count, elements.parts)
    cell, physical = merge_copies(raw, part)
    entities, owners = raw.entity, part
    if cell is not None:
        kept = distinct(cell).first
        entities, owners = entities[kept], owners[kept]
    unique, place, _ = distinct(entities)
    origin = notes.entity.get(dim, {})
    entity = [(origin.get(int(i), int(i)),) for i in unique]
    tags = {
        "entity": GroupTable.of([e if e[0] else () for e in entity], place),
        notes.physical: physical,
        "partition": GroupTable.of(lists, owners),
    }
    return cell, tags


def tags_of_entities(
    entity: NDArray[np.int64], mesh: RawMesh, notes: GmshNotes, dim: int
) -> dict[str, GroupTable]:
    """Groups of the cells of MSH 4.1: entities have groups and partitions."""
    known = {e.tag: e for e in mesh.entities or () if e.dim == dim}
    known |= {e.tag: e for e in mesh.partitioned if e.dim == dim}
    unique, place, _ = distinct(entity)
    origin = notes.entity.get(dim, {})
    found = [known.get(int(i)) for i in unique]
    groups = [tuple(dict.fromkeys(e.physical)) if e else () for e in found]
    old = distinct(np.array([origin.get(int(i), int(i)) for i in unique]))
    return {
        "entity": one_each(old.values, old.place[place]),
        notes.physical: GroupTable.of(groups, place),
        "partition": GroupTable.of([e.partitions if e else () for e in found], place),
    }


def _node_dats(nodes: RawNodes, notes: GmshNotes) -> list[Dat]:
    """The entity of each node, in MSH 4.1."""
    if nodes.runs is None or notes.nodes:
        return []
    count = nodes.runs[:, 3]
    dim, tag = (np.repeat(nodes.runs[:, j].astype(np.int32), count) for j in (0, 1))
    return [Dat(ENTITY_DIM, "nodes", dim), Dat(ENTITY_TAG, "nodes", tag)]


def _periodic(link: RawPeriodic, nodes: Lookup) -> IndexList:
    pairs = nodes.find_all(link[1], "$Periodic", "node", "repair the file")
    return IndexList(PERIODIC, "nodes", pairs, {"kind": "periodic", **link[0]})


def _blocks(cells: list[FileCells], notes: GmshNotes) -> list[Block]:
    """The blocks, without the numbers of the cells where these are as if there were none."""
    labels = np.concatenate([*(c.label for c in cells), np.empty(0, np.int64)])
    plain = not notes.numbered and is_range(labels, 1)
    return [Block(c.name, c.nodes, None if plain else c.label, c.tags) for c in cells]


def _extras(
    raw: RawMesh, cells: list[FileCells], notes: GmshNotes, cursor: GmshCursor
) -> dict[str, Any]:
    """What only a Gmsh file has; nothing in it points into a set."""
    made = {(dim, new) for dim, pairs in notes.entity.items() for new in pairs}
    held = {c.dim for c in cells if notes.physical in c.tags}
    out: dict[str, Any] = {
        "version": cursor.version,
        "binary": cursor.mode != ASCII,
        "names": {dim: table for dim, table in raw.names.items() if dim not in held},
        "sections": tuple(raw.sections),
    }
    assert raw.elements is not None
    zero = [c for c in raw.elements.cells if not c.entity.all()]
    if zero:
        out["zero"] = tuple({int(DIMS[c.number]) for c in zero})
    if raw.entities is not None:
        every = (*raw.entities, *(replace(e, partitions=()) for e in raw.partitioned))
        out["entities"] = tuple(e for e in every if (e.dim, e.tag) not in made)
    return out
