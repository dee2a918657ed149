"""From what a file holds to a mesh: numbers become positions, groups become tags."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, IndexList, Mesh
from ...mesh.assemble import Block, GroupTable, assemble, set_names
from ..text.tokens import ASCII
from .fields import FileCells, field_values
from .layout import ENTITY_DIM, ENTITY_TAG, PARAMETRIC, PERIODIC
from .numbering import Lookup, distinct, distinct_lists, is_range, merge_copies, one_each
from .raw import RawCells, RawElements, RawMesh, RawNodes, RawPeriodic
from .sections import NO_DIMENSION, GmshCursor, GmshNotes
from .types import DIMS, NAME_OF, TO_MEMORY


def build(raw: RawMesh, cursor: GmshCursor) -> Mesh:
    """Make the mesh; raises MeshprepError, naming section and number, where it is none."""
    nodes = cursor.nodes
    assert raw.nodes is not None
    assert nodes is not None
    assert raw.elements is not None
    notes = raw.notes or GmshNotes()
    try:
        # From numbers of the file to positions: elements first, as values may refer to
        # them.
        cells = [_cells_by_type(c, raw, notes) for c in raw.elements.cells]
        if cells:
            names = set_names(c.name for c in cells)
        else:
            names = {}
        raw.names = _names_by_dimension(raw.names, cells, notes)
        dats = _node_dats(raw.nodes, notes)
        values, tags = field_values(
            fields=raw.fields,
            nodes=nodes,
            cells=cells,
            names=names,
            taken={d.name for d in dats},
        )
        mesh, _ = assemble(
            points=raw.nodes.points,
            blocks=_blocks_without_counting(cells, notes),
            node_label=None if nodes.plain else raw.nodes.label,
            tag_names={(notes.physical, dim): table for dim, table in raw.names.items()},
            dats=[*dats, *values],
            lists=[_periodic(link, nodes) for link in raw.periodic],
            extras={
                "gmsh": _notes_of_gmsh(raw=raw, cells=cells, notes=notes, cursor=cursor)
            }
            | ({"unread": tuple(dict.fromkeys(cursor.unread))} if cursor.unread else {}),
        )
        if tags:
            return mesh.with_(tags=tags)
        return mesh
    except MeshprepError as error:
        raise MeshprepError(f"{cursor.path}: {error}") from None


def _names_by_dimension(
    names: dict[int, dict[int, str]], cells: list[FileCells], notes: GmshNotes
) -> dict[int, dict[int, str]]:
    """Give names of MSH 2.0, which lack a dimension, to the dimensions of their cells.

    A name of no cells goes to the highest one.
    """
    out = {dim: dict(table) for dim, table in names.items() if dim != NO_DIMENSION}
    held = [(c.dim, c.tags[notes.physical]) for c in cells if notes.physical in c.tags]
    for number, name in names.get(NO_DIMENSION, {}).items():
        dims = {dim for dim, table in held if number in table.group_id}
        for dim in dims or {max(c.dim for c in cells)}:
            out.setdefault(dim, {}).setdefault(number, name)
    return out


def _cells_by_type(raw: RawCells, mesh: RawMesh, notes: GmshNotes) -> FileCells:
    assert mesh.elements is not None
    name = NAME_OF[raw.number]
    dim = int(DIMS[raw.number])
    if raw.label.size and raw.label.min() < 0:
        raise MeshprepError(f"$Elements: number {raw.label.min()} is negative: renumber it")
    table = raw.nodes
    if name in TO_MEMORY:
        table = table[:, TO_MEMORY[name]]
    if raw.physical is not None:
        cell, tags = _tags2(raw=raw, elements=mesh.elements, notes=notes, dim=dim)
    else:
        cell = None
        tags = tags_of_entities(entity=raw.entity, mesh=mesh, notes=notes, dim=dim)
    tags = {key: tag for key, tag in tags.items() if tag.group_id.size}
    label = raw.label
    if cell is not None:
        # Copies were merged: the first element of each cell stands for it.
        first = distinct(cell).first
        table = table[first]
        label = label[first]
    return FileCells(
        name=name,
        dim=dim,
        nodes=table,
        label=label,
        tags=tags,
        element_label=raw.label,
        cell=cell,
    )


def _tags2(
    raw: RawCells, elements: RawElements, notes: GmshNotes, dim: int
) -> tuple[NDArray[np.int64] | None, dict[str, GroupTable]]:
    assert raw.part_start is not None
    assert raw.part_count is not None
    # An element of MSH 2 has the tags physical group, elementary entity and, behind their
    # number, its partitions; an element of several groups is there once for each.
    lists, part = distinct_lists(raw.part_start, raw.part_count, elements.parts)
    cell, physical = merge_copies(raw, part)
    entities = raw.entity
    owners = part
    if cell is not None:
        kept = distinct(cell).first
        entities = entities[kept]
        owners = owners[kept]
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
    # An entity of MSH 4.1 has groups, and its elements those of the entity. Numbers of
    # entities are unique within a dimension.
    entity_of_tag = {e.tag: e for e in mesh.entities or () if e.dim == dim}
    entity_of_tag |= {e.tag: e for e in mesh.partitioned if e.dim == dim}
    # Entities that we split for Gmsh are one again: the notes say of which one each was
    # made.
    unique, entity_index, _ = distinct(entity)
    origin = notes.entity.get(dim, {})
    groups_of_entity = [entity_of_tag.get(int(i)) for i in unique]
    groups = [tuple(dict.fromkeys(e.physical)) if e else () for e in groups_of_entity]
    old = distinct(np.array([origin.get(int(i), int(i)) for i in unique]))
    return {
        "entity": one_each(old.values, old.place[entity_index]),
        notes.physical: GroupTable.of(groups, entity_index),
        "partition": GroupTable.of(
            [e.partitions if e else () for e in groups_of_entity], entity_index
        ),
    }


def _node_dats(nodes: RawNodes, notes: GmshNotes) -> list[Dat]:
    """The entity of each node, and where it lies on that, where the file says so."""
    if nodes.entity is None or notes.nodes:
        return []
    dim, tag = nodes.entity
    dats = [Dat(ENTITY_DIM, "nodes", dim), Dat(ENTITY_TAG, "nodes", tag)]
    if nodes.parametric is not None and nodes.has_parametric is not None:
        held = np.flatnonzero(nodes.has_parametric).astype(np.int32)
        dats.append(
            Dat(name=PARAMETRIC, set="nodes", values=nodes.parametric[held], index=held)
        )
    return dats


def _periodic(link: RawPeriodic, nodes: Lookup) -> IndexList:
    pairs = nodes.find_all(link[1], "$Periodic", "node", "repair the file")
    return IndexList(
        name=PERIODIC, set="nodes", index=pairs, attrs={"kind": "periodic", **link[0]}
    )


def _blocks_without_counting(cells: list[FileCells], notes: GmshNotes) -> list[Block]:
    """The blocks, without the numbers of the cells where these only count."""
    # Gmsh counts elements through all types; numbers that only count need not be kept.
    labels = np.concatenate([*(c.label for c in cells), np.empty(0, np.int64)])
    plain = not notes.numbered and is_range(labels, 1)
    return [
        Block(
            cell_type=c.name, nodes=c.nodes, label=None if plain else c.label, tags=c.tags
        )
        for c in cells
    ]


def _notes_of_gmsh(
    raw: RawMesh, cells: list[FileCells], notes: GmshNotes, cursor: GmshCursor
) -> dict[str, Any]:
    """What only a Gmsh file has; nothing in it points into a set."""
    new_entities: set[tuple[int, int]] = set()
    for dim, pairs in notes.entity.items():
        new_entities.update((dim, new) for new in pairs)
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
        every = (*raw.entities, *raw.partitioned)
        out["entities"] = tuple(e for e in every if (e.dim, e.tag) not in new_entities)
    return out
