"""Entity assignment: the entity that each cell is written in.

In MSH 4.1 the groups belong to entities, in a mesh to cells. Cells of one entity that
differ in their groups are split over new entities, and cells without an entity get one; the
file notes which entity a new one was made from, so that reading it gives the mesh as it
was.
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


@dataclass(frozen=True, order=True)
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
    kinds, kind_of_cell = _kinds_of_cells(layout)
    # Elements of MSH 2 have groups of their own: entities need not be split.
    fresh = _fresh({(k.dim, k.old) for k in kinds})
    new_entities = {(k.dim, k.groups): 0 for k in kinds if not k.old}
    for dim, groups in new_entities:
        if dim not in source(mesh).get("zero", ()):
            new_entities[dim, groups] = next(fresh[dim])
            assignment.notes.append((dim, new_entities[dim, groups], 0))
    number = {k: k.old or new_entities[k.dim, k.groups] for k in kinds}
    table = np.array([number[k] for k in kinds], dtype=np.int64)
    assignment.number = {name: table[p] for name, p in kind_of_cell.items()}
    return assignment


def split_entities(mesh: Mesh, layout: FileLayout) -> EntityAssignment:
    """For MSH 4.1: entities so that all cells of one have its groups."""
    info = source(mesh)
    assignment = EntityAssignment()
    for e in info.get("entities", ()):
        # Partitions of entities are kept where the cells still have them.
        whole = replace(e, partitions=(), parent=(0, 0))
        if layout.partitioned:
            assignment.entities[e.dim, e.tag] = e
        else:
            assignment.entities[e.dim, e.tag] = whole
    # An entity has one list of groups: give each kind of cells an entity of its own,
    # under a number that neither cells nor nodes use.
    kinds, kind_of_cell = _kinds_of_cells(layout)
    used_numbers = {(k.dim, k.old) for k in kinds} | set(assignment.entities)
    if layout.node_entity is not None:
        pairs, _, _ = distinct_pairs(*layout.node_entity)
        used_numbers |= {(int(d), int(t)) for d, t in pairs}
    fresh = _fresh(used_numbers)
    number = _keep_some(kinds, assignment, info.get("zero", ()))
    for k in kinds:
        if k not in number:
            number[k] = next(fresh[k.dim])
            assignment.notes.append((k.dim, number[k], k.old))
    table = np.array([number[k] for k in kinds], dtype=np.int64)
    assignment.number = {name: table[p] for name, p in kind_of_cell.items()}
    _list_entities(mesh=mesh, layout=layout, assignment=assignment, number=number)
    return assignment


def assign_entities(mesh: Mesh, layout: FileLayout, version: str) -> EntityAssignment:
    """The entities of the cells in a file of this version."""
    if version == "4.1":
        return split_entities(mesh, layout)
    return keep_entities(mesh, layout)


def _fresh(taken: set[tuple[int, int]]) -> list[Iterator[int]]:
    """For each dimension, the numbers that no entity has, from 1 on."""

    def unused(dim: int) -> Iterator[int]:
        return (i for i in itertools.count(1) if (dim, i) not in taken)

    return [unused(dim) for dim in range(4)]


def _kinds_of_cells(layout: FileLayout) -> tuple[list[CellKind], dict[str, Int64s]]:
    """All kinds of cells in rising order, and the kind of every cell of each set.

    The order does not depend on that of the cells: entities that are made up stay the same
    when the cells move.
    """
    kinds: dict[CellKind, int] = {}
    kind_of_cell = {}
    for cell_set in layout.cells:
        # Find the pairs of entity and groups that occur.
        dim = shape_of(str(cell_set.cell_type)).dim
        entities, entity = row_lists(layout.entity.get(cell_set.name), cell_set.size)
        groups, group = row_lists(layout.physical.get(cell_set.name), cell_set.size)
        pairs = distinct_pairs(entity, group)
        numbers = np.empty(len(pairs.values), dtype=np.int64)
        for i, (e, g) in enumerate(pairs.values):
            kind = CellKind(dim, (*entities[e], 0)[0], groups[g])
            numbers[i] = kinds.setdefault(kind, len(kinds))
        kind_of_cell[cell_set.name] = numbers[pairs.place]
    rising = sorted(kinds)
    rank = np.empty(len(kinds), dtype=np.int64)
    for new, kind in enumerate(rising):
        rank[kinds[kind]] = new
    return rising, {name: rank[numbers] for name, numbers in kind_of_cell.items()}


def row_lists(tag: Tag | None, n: int) -> tuple[list[tuple[int, ...]], Int64s]:
    """Distinct lists of groups, and which of them each cell has."""
    if tag is None:
        return [()], np.zeros(n, np.int64)
    number_of_list: dict[tuple[int, ...], int] = {}
    number = np.empty(max(tag.group_offset.size - 1, 1), dtype=np.int64)
    for row in range(tag.group_offset.size - 1):
        number[row] = number_of_list.setdefault(tuple(tag.groups(row)), len(number_of_list))
    return list(number_of_list) or [()], number[tag.values]


def _keep_some(
    kinds: Sequence[CellKind], assignment: EntityAssignment, zero: Collection[int]
) -> dict[CellKind, int]:
    """For each entity, the kind of cells that keeps its number.

    It is the kind that has its groups, else the first.

    ``zero`` are the dimensions in which 0 is an entity of the file.
    """
    by_old: dict[tuple[int, int], list[CellKind]] = {}
    for k in kinds:
        if k.old or k.dim in zero:
            by_old.setdefault((k.dim, k.old), []).append(k)
    entity_of_kind = {}
    for key, candidates in by_old.items():
        known = assignment.entities.get(key, Entity(*key, ()))
        same = [k for k in candidates if k.groups == known.physical]
        for k in (same or candidates)[:1]:
            entity_of_kind[k] = k.old
    return entity_of_kind


def _list_entities(
    mesh: Mesh,
    layout: FileLayout,
    assignment: EntityAssignment,
    number: Mapping[CellKind, int],
) -> None:
    """Complete the table: groups as the cells have them, and what it has not yet.

    The box of a new entity is that of the whole mesh; a point is where a node of it is.
    """
    points = mesh.coordinates
    table = assignment.entities
    assert points is not None
    # Gmsh has three coordinates, and a box (x, y, z twice) for each entity but points.
    zeros = (0.0,) * (3 - points.shape[1])
    low, high = (tuple(corner.tolist()) + zeros for corner in bounding_box(points))
    for k, new in number.items():
        box = low + high
        if not k.dim:
            s = next(s for s in layout.cells if s.cell_type == "vertex")
            row = int(np.argmax(assignment.number[s.name] == new))
            box = tuple(points[mesh.cell_map(s.name).table[row, 0]].tolist()) + zeros
        known = table.get((k.dim, new), Entity(k.dim, new, box))
        of = table.get((k.dim, k.old), known)
        table[k.dim, new] = replace(
            known, physical=k.groups, partitions=of.partitions, parent=of.parent
        )
    # Entities that only nodes are on must be in the table, too.
    if layout.node_entity is not None:
        rows, _, first = distinct_pairs(*layout.node_entity)
        for (dim, tag), node in zip(rows.tolist(), first, strict=True):
            if dim:
                box = low + high
            else:
                box = tuple(points[node].tolist()) + zeros
            table.setdefault((dim, tag), Entity(dim, tag, box))


def three_coordinates(mesh: Mesh) -> Float64s:
    """Three coordinates a node."""
    points = mesh.coordinates
    assert points is not None
    return np.pad(points.astype(np.float64), ((0, 0), (0, 3 - points.shape[1])))
