"""From the cells of a mesh to the sets and maps that loops ask for."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..kernels.parallel import at_once
from ..mesh import ElementSet, Mesh, SetMap, Tag
from .dofs import derive_dofs, dofs_degree
from .facets import (
    Selection,
    check_manifold,
    facets_to_cells,
    facets_to_nodes,
    fill_cell_facets,
    find_facets,
    select,
)
from .layout import Layout, layout_of
from .names import ENTITY_DIM, any_mesh_loop, check_names, entity_of, part_names, steps_of
from .tags import attach, transfer


class Additions(NamedTuple):
    """Sets, maps and tags to add to a mesh."""

    sets: list[ElementSet]
    maps: list[SetMap]
    tags: list[Tag]


def derive(mesh: Mesh, names: Iterable[str]) -> Mesh:
    """Add the sets, maps and tags that the named maps need.

    What may be named, for cells of any order (corner nodes count):

    - 2-D and surfaces: ``edges->cells`` (arity 2), ``edges->nodes``,
      ``boundary_edges->cells`` (arity 1), ``boundary_edges->nodes``, ``cells->edges``.
    - 3-D: ``faces->cells``, ``faces->nodes``, ``boundary_faces->cells``,
      ``boundary_faces->nodes``, ``cells->faces``, and ``edges->nodes``, ``cells->edges``.
    - Where faces are triangles and quads, ``triangle_faces->nodes`` and
      ``quad_faces->nodes`` stand for ``faces->nodes``; with either, ``faces`` is the union
      of ``triangle_faces`` and ``quad_faces`` (in that order), without them a set of its
      own in the same order. The same for ``boundary_faces``.
    - ``cells->...`` only where all cells have the same number; 1-D meshes give nothing.
    - ``cells->dofs1`` to ``cells->dofs4``: the dofs of Lagrange elements of this degree,
      see :func:`derive_dofs`; where cells are of several types, ``triangle->dofs1`` and so
      on.
    - Maps of maps, ``edges->cells->nodes``: composed of the maps above and of maps that the
      mesh has.

    What ``edges`` (2-D) or ``faces`` (3-D) holds depends on what is asked: with
    ``edges->cells`` or ``faces->cells``, the interior ones, which have two cells, as in
    OP2's Airfoil [G12 section 2]; otherwise all. ``edges`` of a 3-D mesh are always all of
    them.

    Numbers follow first appearance by (cell, local facet), under each face type by itself.
    Column 0 of the map to cells is the lower cell, and the nodes are listed with the normal
    pointing out of that cell (in 2-D: the cell on the left from the first node to the
    second, where cells are numbered anticlockwise). Every tag of the lower-dimension cells
    comes along, matched by corner nodes: on the boundary sets always, on the others where
    any element has it.

    Parameters
    ----------
    mesh : Mesh
        With the set ``cells``, of one type or a union of parts.
    names : iterable of str
        Maps; those that the mesh has are left alone.

    Returns
    -------
    Mesh
        ``mesh`` itself when nothing is missing.

    Raises
    ------
    MeshprepError
        For a name that the mesh cannot give (the message lists what it can), for maps over
        the interior and over all facets asked together, for a set that exists without the
        map, and for a facet of three or more cells when its cells are asked for.

    Notes
    -----
    Expected O(cells x facets); 8 bytes a slot (cell and local facet) beside the result.
    """
    missing = [name for name in dict.fromkeys(names) if name not in mesh.maps]
    steps = dict.fromkeys(chain.from_iterable(map(steps_of, missing)))

    # Dofs first; where cells are of several types, all their maps come with the first.
    of_entities = list[str]()
    for name in steps:
        if name not in mesh.maps and dofs_degree(name):
            mesh = derive_dofs(mesh, name)
        elif name not in mesh.maps:
            of_entities.append(name)

    # Edges, then faces.
    if of_entities:
        layout = layout_of(mesh, of_entities)
        check_names(mesh, layout, of_entities)
        sets: list[ElementSet] = []
        maps: list[SetMap] = []
        tags: list[Tag] = []
        for entity in ENTITY_DIM:
            names_of_entity = [n for n in of_entities if entity_of(n) == entity]
            if not names_of_entity:
                continue
            additions = _derive_entity(
                mesh=mesh,
                layout=layout,
                entity=entity,
                asked=names_of_entity,
            )
            sets += additions.sets
            maps += additions.maps
            tags += additions.tags
        mesh = mesh.with_(sets=sets, maps=maps, tags=tags)

    # Maps along several maps.
    composed = []
    for name in missing:
        maps_of_path = [mesh.map(step) for step in steps_of(name)]
        if len(maps_of_path) > 1:
            composed.append(replace(reduce(SetMap.compose, maps_of_path), name=name))
    if composed:
        return mesh.with_(maps=composed)
    return mesh


def _derive_entity(
    mesh: Mesh,
    layout: Layout,
    entity: str,
    asked: Sequence[str],
) -> Additions:
    """The sets ``entity`` and ``boundary_entity``, as far as asked, from one matching."""
    # Number the unique entities of each number of corners, and find the tagged ones.
    dim = ENTITY_DIM[entity]
    types = []
    for arity in layout.arities(dim):
        parts = layout.entity_parts(dim, arity)
        types.append(find_facets(parts, arity, layout.n_nodes))
    attachments = attach(mesh=mesh, layout=layout, dim=dim, types=types)
    other = any_mesh_loop(mesh, layout)

    def derived(prefix: str) -> Additions:
        # One side at a time: maps of the boundary, or all others.
        names = [name for name in asked if ("boundary_" in name) == bool(prefix)]
        if not names:
            return Additions([], [], [])

        # Select the facets: between cells, on the boundary, or all.
        kind = "boundary" if prefix else "all"
        if f"{entity}->cells" in names:
            kind = "interior"
            for facets in types:
                check_manifold(facets, entity, other)
        chosen = [select(facets, kind) for facets in types]

        # Unless a loop runs over one face type by itself, the types may mix in one order.
        set_name = f"{prefix}{entity}"
        parts = part_names(layout, entity, prefix)
        if not any(f"{part}->nodes" in names for part in parts):
            parts = ()
        sets = [
            ElementSet(part, selection.size)
            for part, selection in zip(parts, chosen, strict=False)
        ]
        size = sum(selection.size for selection in chosen)
        sets.append(ElementSet(set_name, size, parts=parts))
        # Give the set its maps, and the tags of the cells that lie on it.
        maps = [
            _derive_map(layout=layout, name=name, union=set_name, chosen=chosen)
            for name in names
        ]
        tags = transfer(
            mesh=mesh,
            set_name=set_name,
            chosen=chosen,
            attachments=attachments,
            keep_empty=bool(prefix),
        )
        return Additions(sets, maps, tags)

    # One matching serves the facets between cells and those on the boundary.
    inner, boundary = at_once(partial(derived, ""), partial(derived, "boundary_"))
    return Additions(
        sets=inner.sets + boundary.sets,
        maps=inner.maps + boundary.maps,
        tags=inner.tags + boundary.tags,
    )


def _derive_map(
    layout: Layout,
    name: str,
    union: str,
    chosen: Sequence[Selection],
) -> SetMap:
    """The map ``name``, which starts or ends at the set ``union`` or a part of it."""
    source, _, to = name.partition("->")
    if source == "cells":
        # Entities of each number of corners are numbered after those before, as in a union.
        arity = layout.fixed_count(ENTITY_DIM[to]) or 1
        table = np.empty((layout.n_cells, arity), np.int32)
        base = 0
        for c in chosen:
            fill_cell_facets(c, base, table)
            base += c.size
    elif to == "cells":
        # A facet inside has two cells, one on the boundary has one.
        arity = 1 if source.startswith("boundary_") else 2
        tables = [facets_to_cells(c, arity) for c in chosen]
        table = tables[0] if len(tables) == 1 else np.concatenate(tables)
    else:
        # Nodes: facets of one number of corners, a set by itself or a part of the union.
        entity = entity_of(name)
        parts = part_names(layout, entity, prefix=union.removesuffix(entity))
        part = parts.index(source) if parts else 0
        table = facets_to_nodes(chosen[part])
    return SetMap(name=name, from_set=source, to_set=to, table=table)
