"""Which points of a map are constrained: those on the boundary of the mesh, or in a group of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh, Tag
from ..mesh.cells import shape_of
from .attach import locate, lower_corners
from .dofs import dofs_degree, facet_dofs
from .facets import find_facets
from .layout import CellPart, Layout, layout_of, local_corners, lower_sets
from .slots import Slots, slots_of

BOUNDARY = "boundary"


def constrained_points(mesh: Mesh, map_name: str, groups: Sequence[str | int]) -> NDArray[np.bool_]:
    """Which elements of a map's to-set lie on the boundary of the mesh, or in a group.

    Parameters
    ----------
    mesh : Mesh
        With the map.
    map_name : str
        ``cells->dofs1`` to ``cells->dofs4``, or the nodes of cells of first order.
    groups : sequence of str or int
        ``"boundary"``: the facets with one cell. Names or numbers of groups: those of the tags on
        the to-set itself, and of cells on facets.

    Returns
    -------
    (n_to,) bool

    Raises
    ------
    MeshprepError
        For a group that there is not, and for facets of which the map has no points.

    Notes
    -----
    Expected O(cells x facets).
    """
    flagged = np.zeros(mesh.size(mesh.map(map_name).to_set), np.bool_)
    for group in groups:
        own = _on_set(mesh, mesh.map(map_name).to_set, group)
        facets = own is None or group == BOUNDARY
        flagged[_on_facets(mesh, map_name, group) if facets else own] = True
    return flagged


def _on_set(mesh: Mesh, set_name: str, group: str | int) -> NDArray[np.int64] | None:
    """Elements of the set in a group of its own tags; None where no tag has the group."""
    found = [_members(t, group) for t in mesh.tags if t.set == set_name]
    rows = [r for r in found if r is not None]
    return np.concatenate(rows) if rows else None


def _members(tag: Tag, group: str | int) -> NDArray[np.int64] | None:
    numbers = [i for i in set(tag.group_id.tolist()) if group in (i, tag.names.get(i))]
    if not numbers:
        return None
    rows = [r for r in range(tag.group_offset.size - 1) if {*tag.groups(r)} & {*numbers}]
    return np.flatnonzero(np.isin(tag.values, rows))


def _on_facets(mesh: Mesh, map_name: str, group: str | int) -> NDArray[np.int32]:
    layout = layout_of(mesh)
    part, local = _part(layout, map_name)
    facets = local_corners(part.shape, part.shape.dim - 1)
    arity = len(facets[0])
    if group == BOUNDARY:
        found = find_facets(layout.entity_parts(part.shape.dim - 1, arity), arity, layout.n_nodes)
        slot: NDArray[np.integer] = np.flatnonzero(found.count[found.number] == 1)
    else:
        slots = slots_of(layout.entity_parts(part.shape.dim - 1, arity), arity)
        slot = _of_group(mesh, layout, slots, group)
    cell, facet = np.divmod(slot, len(facets))
    table = mesh.map(map_name).table
    points = [table[np.ix_(cell[facet == k], on)].ravel() for k, on in enumerate(local)]
    return np.concatenate(points)


def _part(layout: Layout, map_name: str) -> tuple[CellPart, list[NDArray[np.int64]]]:
    """The cells, and which columns of the map lie on each of their facets."""
    part, degree = layout.parts[0], dofs_degree(map_name)
    if len(layout.parts) == 1 and part.shape.dim > 1:
        if degree is not None:
            return part, facet_dofs(part.shape, degree)
        if map_name == "cells->nodes" and part.table.shape[1] == part.shape.n_corners:
            return part, [np.array(facet) for facet in part.shape.facets]
    raise MeshprepError(
        f"map '{map_name}': what lies on the boundary is known of cells->dofs1 to cells->dofs4, "
        "and of cells->nodes where all cells are of one type and of first order"
    )


def _of_group(mesh: Mesh, layout: Layout, slots: Slots, group: str | int) -> NDArray[np.int32]:
    """Slots under the cells of lower dimension in a group."""
    arity, found = slots.arity, []
    for s in lower_sets(mesh, layout):
        shape = shape_of(str(s.cell_type))
        for tag in (t for t in mesh.tags if t.set == s.name and shape.n_corners == arity):
            rows = _members(tag, group)
            if rows is not None and shape.dim == layout.dim - 1:
                slot = locate(slots, lower_corners(mesh, s.name)[rows], layout.n_nodes)
                found.append(slot[slot >= 0])
    if not found:
        known = {n for t in mesh.tags for i in t.group_id.tolist() for n in (t.names.get(i, i),)}
        has = ", ".join(sorted(map(str, known))) or "none"
        raise MeshprepError(
            f"there is no group '{group}' on the boundary: use \"{BOUNDARY}\", or one of: {has}"
        )
    return np.concatenate(found)
