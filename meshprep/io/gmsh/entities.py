"""Entity assignment: the entity that each cell is written in.

In MSH 4.1 the groups belong to entities, in a mesh to cells. Cells of one entity that differ in
their groups are split over new entities, and cells without an entity get one; the file notes which
entity a new one was made from, so that reading it gives the mesh as it was.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from meshprep_runtime.types.maps import read_only

from ...kernels import Float64s, Int32s, Int64s, kernel
from ...mesh import Mesh, Tag
from ...mesh.cells import shape_of
from .layout import CellBlock, FileLayout, NodeEntity, source
from .numbering import distinct, distinct_pairs
from .raw import Entity


@dataclass(frozen=True)
class CellKind:
    """Cells that may share an entity: dimension, entity in the mesh (0: none), groups."""

    dim: int
    old: int
    groups: tuple[int, ...] = ()


@dataclass(eq=False)
class EntityAssignment:
    """Entities of the cells as they are written."""

    # By set, (n,): the entity of each cell.
    number: dict[str, Int64s] = field(default_factory=dict)
    # By (dim, number).
    entities: dict[tuple[int, int], Entity] = field(default_factory=dict)
    notes: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class FileContent:
    """A mesh as it is written."""

    mesh: Mesh
    layout: FileLayout
    assignment: EntityAssignment
    cells: Sequence[CellBlock]
    node_label: Int64s  # (n,)

    @property
    def points(self) -> Float64s:
        """Three coordinates a node."""
        points = _points(self.mesh)
        missing = 3 - points.shape[1]
        return np.pad(points, ((0, 0), (0, missing))) if missing else points


def keep_entities(mesh: Mesh, layout: FileLayout) -> EntityAssignment:
    """For MSH 2.2: entities as they are; cells without one get one for each list of groups.

    Where the file had cells of entity 0, which stands for none, they get 0.
    """
    assignment = EntityAssignment()
    kinds, place = _kinds(layout)
    fresh = _fresh({(k.dim, k.old) for k in kinds})
    made = {(k.dim, k.groups): 0 for k in kinds if not k.old}
    for dim, groups in made:
        if dim not in source(mesh).get("zero", ()):
            made[dim, groups] = next(fresh[dim])
            assignment.notes.append((dim, made[dim, groups], 0))
    number = {k: k.old or made[k.dim, k.groups] for k in kinds}
    _fill_numbers(assignment, kinds, place, number)
    return assignment


def split_entities(mesh: Mesh, layout: FileLayout) -> EntityAssignment:
    """For MSH 4.1: entities so that all cells of one have its groups."""
    info = source(mesh)
    assignment = EntityAssignment()
    assignment.entities = {(e.dim, e.tag): e for e in info.get("entities", ())}
    kinds, place = _kinds(layout)
    taken = {(k.dim, k.old) for k in kinds} | set(assignment.entities)
    if layout.node_entity is not None:
        pairs, _, _ = distinct_pairs(*layout.node_entity)
        taken |= {(int(d), int(t)) for d, t in pairs}
    fresh = _fresh(taken)
    number = _keep_some(kinds, assignment, info.get("zero", ()))
    for k in kinds:
        if k not in number:
            number[k] = next(fresh[k.dim])
            assignment.notes.append((k.dim, number[k], k.old))
    _fill_numbers(assignment, kinds, place, number)
    _list_entities(mesh, layout, assignment, number)
    return assignment


def _fresh(taken: set[tuple[int, int]]) -> list[Iterator[int]]:
    """For each dimension, the numbers that no entity has, from 1 on."""

    def unused(dim: int) -> Iterator[int]:
        return (i for i in itertools.count(1) if (dim, i) not in taken)

    return [unused(dim) for dim in range(4)]


def _kinds(layout: FileLayout) -> tuple[list[CellKind], dict[str, Int64s]]:
    """All kinds of cells by first appearance, and the kind of every cell of each set."""
    kinds: dict[CellKind, int] = {}
    place = {}
    for s in layout.cells:
        dim = shape_of(str(s.cell_type)).dim
        entities, entity = row_lists(layout.entity.get(s.name), s.size)
        groups, group = row_lists(layout.physical.get(s.name), s.size)
        both = distinct_pairs(entity, group)
        numbers = np.empty(len(both.values), dtype=np.int64)
        for i in np.argsort(both.first):
            e, g = both.values[i]
            kind = CellKind(dim, (*entities[e], 0)[0], groups[g])
            numbers[i] = kinds.setdefault(kind, len(kinds))
        place[s.name] = numbers[both.place]
    return list(kinds), place


def row_lists(tag: Tag | None, n: int) -> tuple[list[tuple[int, ...]], Int64s]:
    """Distinct lists of groups, and which of them each cell has."""
    if tag is None:
        return [()], np.zeros(n, np.int64)
    found: dict[tuple[int, ...], int] = {}
    number = np.empty(max(tag.group_offset.size - 1, 1), dtype=np.int64)
    for row in range(tag.group_offset.size - 1):
        number[row] = found.setdefault(tuple(tag.groups(row)), len(found))
    return list(found) or [()], number[tag.values]


def _fill_numbers(
    assignment: EntityAssignment,
    kinds: Sequence[CellKind],
    place: Mapping[str, Int64s],
    number: Mapping[CellKind, int],
) -> None:
    table = np.array([number[k] for k in kinds], dtype=np.int64)
    assignment.number = {name: table[p] for name, p in place.items()}


def _keep_some(
    kinds: Sequence[CellKind], assignment: EntityAssignment, zero: Collection[int]
) -> dict[CellKind, int]:
    """For each entity, the kind that keeps its number: that with its groups, else the first.

    ``zero`` are the dimensions in which 0 is an entity of the file.
    """
    by_old: dict[tuple[int, int], list[CellKind]] = {}
    for k in kinds:
        if k.old or k.dim in zero:
            by_old.setdefault((k.dim, k.old), []).append(k)
    kept = {}
    for key, candidates in by_old.items():
        known = assignment.entities.get(key, Entity(*key, ()))
        same = [k for k in candidates if k.groups == known.physical]
        for k in (same or candidates)[:1]:
            kept[k] = k.old
    return kept


def _list_entities(
    mesh: Mesh, layout: FileLayout, assignment: EntityAssignment, number: Mapping[CellKind, int]
) -> None:
    """Complete the table: groups as the cells have them, and what it has not yet."""
    table = assignment.entities
    listed = all((k.dim, new) in table for k, new in number.items())
    boxes = {} if listed else _cell_boxes(mesh, layout, assignment)
    # MSH's number of no group: meshio reads no file in which only some cells have one
    none = (0,) if any(k.groups for k in number) else ()
    for k, new in number.items():
        key, groups = (k.dim, new), k.groups or none
        known = table[key] if key in table else Entity(*key, boxes[key])
        table[key] = replace(known, physical=groups)
    if layout.node_entity is not None:
        _list_node_entities(mesh, layout.node_entity, assignment)


def _list_node_entities(mesh: Mesh, of_nodes: NodeEntity, assignment: EntityAssignment) -> None:
    rows, place, _ = distinct_pairs(*of_nodes)
    if all((*row,) in assignment.entities for row in rows.tolist()):
        return
    every = np.arange(place.size, dtype=np.int32).reshape(-1, 1)
    box = _boxes(_points(mesh), every, place, len(rows))
    for (dim, tag), b in zip(rows.tolist(), box, strict=True):
        assignment.entities.setdefault((dim, tag), Entity(dim, tag, _as_box(dim, b)))


def _cell_boxes(
    mesh: Mesh, layout: FileLayout, assignment: EntityAssignment
) -> dict[tuple[int, int], tuple[float, ...]]:
    """Bounding boxes of the entities of the cells, from the nodes of these."""
    points = _points(mesh)
    found: dict[tuple[int, int], Float64s] = {}
    for s in layout.cells:
        dim = shape_of(str(s.cell_type)).dim
        tags, place, _ = distinct(assignment.number[s.name])
        table = mesh.cell_map(s.name).table
        box = _boxes(points, table, place, len(tags))
        for tag, b in zip(tags.tolist(), box, strict=True):
            old = found.get((dim, tag))
            if old is not None:
                b = np.concatenate([np.minimum(old[:3], b[:3]), np.maximum(old[3:], b[3:])])
            found[dim, tag] = b
    return {(dim, tag): _as_box(dim, b) for (dim, tag), b in found.items()}


def _points(mesh: Mesh) -> Float64s:
    points = mesh.coordinates
    assert points is not None
    return np.asarray(points, dtype=np.float64)


def _boxes(points: Float64s, table: Int32s, place: Int32s, n: int) -> Float64s:
    """The box (n, 6) of each place, from the nodes of its rows; from inf to -inf without any."""
    box = np.tile(np.array([np.inf] * 3 + [-np.inf] * 3), (n, 1))
    _grow(points, read_only(table), place, box)
    return box


def _as_box(dim: int, box: Float64s) -> tuple[float, ...]:
    """Six numbers, three for a point; zeros where nothing is inside."""
    if box[0] > box[3]:
        box = np.zeros(6)
    box = np.where(np.isfinite(box), box, 0.0)
    return tuple(box[: 3 if dim == 0 else 6].tolist())


@kernel
def _grow(points: Float64s, table: Int32s, place: Int32s, box: Float64s) -> None:
    """Extend the box of each place over the nodes of its rows. O(size of the table)."""
    for i in range(len(table)):
        b = box[place[i]]
        for node in table[i]:
            for k in range(points.shape[1]):
                b[k] = min(b[k], points[node, k])
                b[3 + k] = max(b[3 + k], points[node, k])
