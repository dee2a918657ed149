"""Constrained points of a map: those on the boundary of the mesh, or in a group of it."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh, Tag
from ..mesh.cells import shape_of
from .dofs import dofs_degree, facet_dofs
from .facets import find_facets
from .layout import Layout, layout_of, lower_sets
from .slots import Slots, slots_of
from .tags import locate, without_sense

# The name that stands for the facets of one cell, beside names and numbers of groups.
BOUNDARY = "boundary"
# The tag of the entities of Gmsh's geometry.
ENTITY = "entity"


def constrained_points(
    mesh: Mesh, map_name: str, groups: Sequence[str | int]
) -> NDArray[np.bool_]:
    """True for points (n_to,) of a map on the boundary of the mesh, or in a group.

    ``map_name`` is from cells to dofs, or to the nodes of cells of first order; where cells
    are of several types, those of all types count. A group is ``"boundary"``, the facets
    with one cell, or a name or number of tags on the to-set and of cells on facets. Gmsh's
    entities count as groups only where a set has no others. Raises MeshprepError for a
    group that there is not, and for facets whose points the map has not.
    """
    set_name = mesh.map(map_name).to_set
    flagged = np.zeros(mesh.size(set_name), np.bool_)
    for group in groups:
        # The points that a tag of their own has in the group.
        members = []
        for tag in _group_tags(mesh, set_name):
            rows = _members(tag, group)
            if rows is not None:
                members.append(rows)
        # Where no tag has the group, the points on its facets.
        if not members or group == BOUNDARY:
            flagged[_points_on_facets(mesh, map_name, group)] = True
        else:
            flagged[np.concatenate(members)] = True
    return flagged


def _group_tags(mesh: Mesh, set_name: str) -> list[Tag]:
    """The tags of a set; entities of Gmsh only where the set has no other tag."""
    tags = [t for t in mesh.tags if t.set == set_name]
    return [t for t in tags if t.name != ENTITY] or tags


def _members(tag: Tag, group: str | int) -> NDArray[np.int64] | None:
    """The elements that a tag has in a group; None where it does not have the group."""
    # A group is given by its number or by its name.
    ids = without_sense(tag.name, tag.group_id)
    numbers = set[int]()
    for number in set(ids.tolist()):
        if group in (number, tag.names.get(number)):
            numbers.add(number)
    if not numbers:
        return None

    # The rows of the table of groups that have the group, then the elements with these.
    rows = []
    for row, (begin, end) in enumerate(pairwise(tag.group_offset.tolist())):
        if not numbers.isdisjoint(ids[begin:end].tolist()):
            rows.append(row)
    return np.flatnonzero(np.isin(tag.values, rows))


def _points_on_facets(mesh: Mesh, map_name: str, group: str | int) -> NDArray[np.int32]:
    """The points of a map that lie on the facets of a group."""
    # The slots of the group, for facets of each number of corners.
    layout = layout_of(mesh)
    local = _local_points(layout, map_name)
    target = map_name.partition("->")[2]
    chosen = []
    for arity in layout.arities(layout.dim - 1):
        of_arity = _slots_under(mesh=mesh, layout=layout, group=group, arity=arity)
        if of_arity is not None:
            chosen.append(of_arity)
    if not chosen:
        raise _no_group(mesh, group)

    # For each type of cells, the points of the map on its facets in the group.
    points = [np.empty(0, np.int32)]
    for slots, slot in chosen:
        # Only types of cells with facets of this arity have slots, in their order.
        parts = [p for p in layout.parts if slots.arity in map(len, p.shape.facets)]
        for i, part in enumerate(parts):
            first_slot = slots.slot_start[i]
            end_slot = slots.slot_start[i + 1]
            of_part = slot[(slot >= first_slot) & (slot < end_slot)]
            cell, facet = np.divmod(of_part - first_slot, slots.n_local[i])
            facet_of_cell = slots.column[i, facet]
            table = mesh.map(f"{part.name}->{target}").table
            for k, columns in enumerate(local[part.name]):
                cells_on_facet = cell[facet_of_cell == k]
                points.append(table[np.ix_(cells_on_facet, columns)].ravel())
    return np.concatenate(points)


def _local_points(layout: Layout, map_name: str) -> dict[str, list[NDArray[np.int64]]]:
    """The columns of the map that lie on each facet of a cell, by type of cells."""
    # Only maps from cells have points on facets.
    degree = dofs_degree(map_name)
    source, _, target = map_name.partition("->")
    if layout.dim > 1 and source in [p.name for p in layout.parts]:
        # Dofs of Lagrange elements; or nodes, where these are the corners.
        if degree is not None:
            return {p.name: facet_dofs(p.shape, degree) for p in layout.parts}
        are_first_order = [p.table.shape[1] == p.shape.n_corners for p in layout.parts]
        if target == "nodes" and all(are_first_order):
            columns = {}
            for part in layout.parts:
                corners_of_facets = [np.array(facet) for facet in part.shape.facets]
                columns[part.name] = corners_of_facets
            return columns
    raise MeshprepError(
        f"map '{map_name}': what lies on the boundary is known of the maps from cells to "
        "dofs1 to dofs4, and to nodes where all cells are of first order"
    )


def _slots_under(
    mesh: Mesh,
    layout: Layout,
    group: str | int,
    arity: int,
) -> tuple[Slots, NDArray[np.integer]] | None:
    """The slots of facets with ``arity`` corners, and which of them are in the group.

    None where no tag has the group.
    """
    parts = layout.entity_parts(layout.dim - 1, arity)
    if group == BOUNDARY:
        facets = find_facets(parts, arity, layout.n_nodes)
        return facets.slots, np.flatnonzero(facets.n_cells[facets.number] == 1)
    slots = slots_of(parts, arity)
    slot = _slots_of_group(mesh=mesh, layout=layout, slots=slots, group=group)
    if slot is None:
        return None
    return (slots, slot)


def _slots_of_group(
    mesh: Mesh,
    layout: Layout,
    slots: Slots,
    group: str | int,
) -> NDArray[np.int32] | None:
    """Slots under the cells of lower dimension in a group; None where no tag has it."""
    arity = slots.arity
    pieces = []
    for s in lower_sets(mesh, layout):
        # Cells of the dimension of facets, with as many corners, lie on facets.
        shape = shape_of(str(s.cell_type))
        if shape.n_corners != arity or shape.dim != layout.dim - 1:
            continue
        for tag in _group_tags(mesh, s.name):
            # Find the slot of a facet by its corner nodes; a cell inside no facet has none.
            rows = _members(tag, group)
            if rows is not None:
                corners = mesh.cell_map(s.name).table[:, :arity]
                slot = locate(slots, corners[rows], layout.n_nodes)
                pieces.append(slot[slot >= 0])
    if pieces:
        return np.concatenate(pieces)
    return None


def _no_group(mesh: Mesh, group: str | int) -> MeshprepError:
    """The error for a group that there is not, which lists the groups that there are."""
    groups = set[str]()
    for set_name in mesh.sets:
        for tag in _group_tags(mesh, set_name):
            for number in without_sense(tag.name, tag.group_id).tolist():
                groups.add(str(tag.names.get(number, number)))
    has = ", ".join(sorted(groups)) or "none"
    return MeshprepError(
        f"there is no group '{group}' on the boundary: use \"{BOUNDARY}\", or one of: {has}"
    )
