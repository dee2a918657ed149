"""Entity assignment: the entity that each cell is written in.

In MSH 4.1 the groups belong to entities, in a mesh to cells. Cells of one entity that differ in
their groups are split over new entities, and cells without an entity get one; the file notes which
entity a new one was made from, so that reading it gives the mesh as it was.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...kernels import Float64s, Int64s
from ...mesh import Mesh, Tag
from ...mesh.cells import shape_of
from ...mesh.geometry import bounding_box
from .layout import CellBlock, FileLayout, source
from .numbering import distinct_pairs
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
    table = np.array([number[k] for k in kinds], dtype=np.int64)
    assignment.number = {name: table[p] for name, p in place.items()}
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
    table = np.array([number[k] for k in kinds], dtype=np.int64)
    assignment.number = {name: table[p] for name, p in place.items()}
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
    """Complete the table: groups as the cells have them, and what it has not yet.

    The box of a new entity is that of the whole mesh; a point is where a node of it is.
    """
    points, table = mesh.coordinates, assignment.entities
    assert points is not None
    zeros = (0.0,) * (3 - points.shape[1])
    low, high = (tuple(corner.tolist()) + zeros for corner in bounding_box(points))
    # MSH's number of no group: meshio reads no file in which only some cells have one
    none = (0,) if any(k.groups for k in number) else ()
    for k, new in number.items():
        place = low + high
        if not k.dim:
            s = next(s for s in layout.cells if s.cell_type == "vertex")
            row = int(np.argmax(assignment.number[s.name] == new))
            place = tuple(points[mesh.cell_map(s.name).table[row, 0]].tolist()) + zeros
        known = table.get((k.dim, new), Entity(k.dim, new, place))
        table[k.dim, new] = replace(known, physical=k.groups or none)
    if layout.node_entity is not None:
        rows, _, first = distinct_pairs(*layout.node_entity)
        for (dim, tag), node in zip(rows.tolist(), first, strict=True):
            place = low + high if dim else tuple(points[node].tolist()) + zeros
            table.setdefault((dim, tag), Entity(dim, tag, place))


def three_coordinates(mesh: Mesh) -> Float64s:
    """Three coordinates a node."""
    points = mesh.coordinates
    assert points is not None
    return np.pad(points.astype(np.float64), ((0, 0), (0, 3 - points.shape[1])))
