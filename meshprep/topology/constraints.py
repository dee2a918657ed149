"""Which points of a map are constrained: those on the boundary of the mesh, or in a group of it."""

from collections.abc import Sequence

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

BOUNDARY = "boundary"
# The tag of Gmsh's geometry.
ENTITY = "entity"


def constrained_points(mesh: Mesh, map_name: str, groups: Sequence[str | int]) -> NDArray[np.bool_]:
    """Which elements (n_to,) of a map's to-set lie on the boundary of the mesh, or in a group.

    ``map_name`` is from cells to dofs, or to the nodes of cells of first order; of several types
    all count. Groups are ``"boundary"``, the facets with one cell, or names and numbers of tags on
    the to-set and of cells on facets; Gmsh's entities only where a set has no others. Raises
    MeshprepError for a group that there is not, and facets whose points the map has not.
    """
    flagged = np.zeros(mesh.size(mesh.map(map_name).to_set), np.bool_)
    for group in groups:
        # Elements of the set in a group of its own tags; None where no tag has the group
        set_name = mesh.map(map_name).to_set
        found = [_members(t, group) for t in _group_tags(mesh, set_name)]
        rows = [r for r in found if r is not None]
        own = np.concatenate(rows) if rows else None
        facets = own is None or group == BOUNDARY
        flagged[_on_facets(mesh, map_name, group) if facets else own] = True
    return flagged


def _group_tags(mesh: Mesh, set_name: str) -> list[Tag]:
    """The tags of a set; Gmsh's entities, whose numbers are others, only where that is all."""
    tags = [t for t in mesh.tags if t.set == set_name]
    return [t for t in tags if t.name != ENTITY] or tags


def _members(tag: Tag, group: str | int) -> NDArray[np.int64] | None:
    ids = without_sense(tag.name, tag.group_id)
    numbers = {i for i in set(ids.tolist()) if group in (i, tag.names.get(i))}
    if not numbers:
        return None
    ends = tag.group_offset
    rows = [r for r in range(ends.size - 1) if {*ids[ends[r] : ends[r + 1]].tolist()} & numbers]
    return np.flatnonzero(np.isin(tag.values, rows))


def _on_facets(mesh: Mesh, map_name: str, group: str | int) -> NDArray[np.int32]:
    layout = layout_of(mesh)
    local, target = _local_points(layout, map_name), map_name.partition("->")[2]
    chosen = [_slots_under(mesh, layout, group, a) for a in layout.arities(layout.dim - 1)]
    known = [found for found in chosen if found is not None]
    if not known:
        raise _no_group(mesh, group)
    points = [np.empty(0, np.int32)]
    for slots, slot in known:
        # the types of cells with facets of so many corners have slots, in their order
        parts = [p for p in layout.parts if slots.arity in map(len, p.shape.facets)]
        for i, part in enumerate(parts):
            own = slot[(slot >= slots.slot_start[i]) & (slot < slots.slot_start[i + 1])]
            cell, facet = np.divmod(own - slots.slot_start[i], slots.n_local[i])
            table, column = mesh.map(f"{part.name}->{target}").table, slots.column[i, facet]
            for k, on in enumerate(local[part.name]):
                points.append(table[np.ix_(cell[column == k], on)].ravel())
    return np.concatenate(points)


def _local_points(layout: Layout, map_name: str) -> dict[str, list[NDArray[np.int64]]]:
    """For each type of cells, which columns of the map lie on each of their facets."""
    degree, (source, _, target) = dofs_degree(map_name), map_name.partition("->")
    if layout.dim > 1 and source in [p.name for p in layout.parts]:
        if degree is not None:
            return {p.name: facet_dofs(p.shape, degree) for p in layout.parts}
        if target == "nodes" and all(p.table.shape[1] == p.shape.n_corners for p in layout.parts):
            return {p.name: [np.array(facet) for facet in p.shape.facets] for p in layout.parts}
    raise MeshprepError(
        f"map '{map_name}': what lies on the boundary is known of the maps from cells to dofs1 to "
        "dofs4, and to nodes where all cells are of first order"
    )


def _slots_under(
    mesh: Mesh, layout: Layout, group: str | int, arity: int
) -> tuple[Slots, NDArray[np.integer]] | None:
    """The facets with ``arity`` corners, and those of them in the group; None: no tag has it."""
    parts = layout.entity_parts(layout.dim - 1, arity)
    if group == BOUNDARY:
        found = find_facets(parts, arity, layout.n_nodes)
        return found.slots, np.flatnonzero(found.n_cells[found.number] == 1)
    slots = slots_of(parts, arity)
    slot = _of_group(mesh, layout, slots, group)
    return None if slot is None else (slots, slot)


def _of_group(
    mesh: Mesh, layout: Layout, slots: Slots, group: str | int
) -> NDArray[np.int32] | None:
    """Slots under the cells of lower dimension in a group; None where no tag has it."""
    arity, found = slots.arity, []
    for s in lower_sets(mesh, layout):
        shape = shape_of(str(s.cell_type))
        for tag in _group_tags(mesh, s.name) if shape.n_corners == arity else []:
            rows = _members(tag, group)
            if rows is not None and shape.dim == layout.dim - 1:
                corners = mesh.cell_map(s.name).table[:, :arity]
                slot = locate(slots, corners[rows], layout.n_nodes)
                found.append(slot[slot >= 0])
    return np.concatenate(found) if found else None


def _no_group(mesh: Mesh, group: str | int) -> MeshprepError:
    tags = (t for name in mesh.sets for t in _group_tags(mesh, name))
    ids = ((t, without_sense(t.name, t.group_id).tolist()) for t in tags)
    known = {t.names.get(i, i) for t, numbers in ids for i in numbers}
    has = ", ".join(sorted(map(str, known))) or "none"
    return MeshprepError(
        f"there is no group '{group}' on the boundary: use \"{BOUNDARY}\", or one of: {has}"
    )
