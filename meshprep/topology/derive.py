"""From the cells of a mesh to the sets and maps that loops ask for."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain

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

Found = tuple[list[ElementSet], list[SetMap], list[Tag]]


def derive(mesh: Mesh, names: Iterable[str]) -> Mesh:
    """Add the sets, maps and tags that the named maps need.

    What may be named, for cells of any order (corner nodes count):

    - 2-D and surfaces: ``edges->cells`` (arity 2), ``edges->nodes``, ``boundary_edges->cells``
      (arity 1), ``boundary_edges->nodes``, ``cells->edges``.
    - 3-D: ``faces->cells``, ``faces->nodes``, ``boundary_faces->cells``,
      ``boundary_faces->nodes``, ``cells->faces``, and ``edges->nodes``, ``cells->edges``.
    - Where faces are triangles and quads, ``triangle_faces->nodes`` and ``quad_faces->nodes``
      stand for ``faces->nodes``; with either, ``faces`` is the union of ``triangle_faces`` and
      ``quad_faces`` (in that order), without them a set of its own in the same order. The same
      for ``boundary_faces``.
    - ``cells->...`` only where all cells have the same number; 1-D meshes give nothing.
    - ``cells->dofs1`` to ``cells->dofs4``: the dofs of Lagrange elements of this degree, see
      :func:`derive_dofs`; where cells are of several types, ``triangle->dofs1`` and so on.
    - Maps of maps, ``edges->cells->nodes``: composed of those and of maps that the mesh has.

    What ``edges`` (2-D) or ``faces`` (3-D) holds depends on what is asked: with ``edges->cells``
    or ``faces->cells``, the interior ones, which have two cells, as in OP2's Airfoil
    [G12 section 2]; otherwise all. ``edges`` of a 3-D mesh are always all of them.

    Numbers follow first appearance by (cell, local facet), under each face type by itself.
    Column 0 of the map to cells is the lower cell, and the nodes are listed with the normal
    pointing out of that cell (in 2-D: the cell on the left from the first node to the second,
    where cells are numbered anticlockwise). Every tag of the lower-dimension cells comes along,
    matched by corner nodes: on the boundary sets always, on the others where any element has it.

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
        For a name that the mesh cannot give (the message lists what it can), for maps over the
        interior and over all facets asked together, for a set that exists without the map, and
        for a facet of three or more cells when its cells are asked for.

    Notes
    -----
    Expected O(cells x facets); 8 bytes a slot (cell and local facet) beside the result.
    """
    asked = [n for n in dict.fromkeys(names) if n not in mesh.maps]
    paths, wanted = [n for n in asked if len(steps_of(n)) > 1], list[str]()
    for name in dict.fromkeys(chain.from_iterable(map(steps_of, asked))):
        # where cells are of several types, the maps to dofs of all of them come with the first
        if name not in mesh.maps and dofs_degree(name):
            mesh = derive_dofs(mesh, name)
        elif name not in mesh.maps:
            wanted.append(name)
    if wanted:
        layout = layout_of(mesh, wanted)
        check_names(mesh, layout, wanted)
        sets: list[ElementSet] = []
        maps: list[SetMap] = []
        tags: list[Tag] = []
        for entity in [e for e in ENTITY_DIM if e in map(entity_of, wanted)]:
            own = [n for n in wanted if entity_of(n) == entity]
            found = _derive_entity(mesh, layout, entity, own)
            sets, maps, tags = sets + found[0], maps + found[1], tags + found[2]
        mesh = mesh.with_(sets=sets, maps=maps, tags=tags)
    made = [replace(reduce(SetMap.compose, map(mesh.map, steps_of(p))), name=p) for p in paths]
    return mesh.with_(maps=made) if paths else mesh


def _derive_entity(mesh: Mesh, layout: Layout, entity: str, asked: Sequence[str]) -> Found:
    """The sets ``entity`` and ``boundary_entity``, as far as asked, from one matching."""
    dim = ENTITY_DIM[entity]
    parts = [(layout.entity_parts(dim, a), a) for a in layout.arities(dim)]
    types = [find_facets(p, arity, layout.n_nodes) for p, arity in parts]
    attachments = attach(mesh, layout, dim, types)
    other = any_mesh_loop(mesh, layout)

    def derived(prefix: str) -> Found:
        own = [n for n in asked if ("boundary_" in n) == bool(prefix)]
        if not own:
            return [], [], []
        name = f"{prefix}{entity}"
        kind = "interior" if f"{entity}->cells" in own else "boundary" if prefix else "all"
        for facets in types if kind == "interior" else ():
            check_manifold(facets, entity, other)
        chosen = [select(facets, kind) for facets in types]
        # Unless a loop wants one face type by itself, the types stay free to mix in one order.
        names = part_names(layout, entity, prefix)
        parted = names if any(f"{p}->nodes" in own for p in names) else ()
        sets = list(map(ElementSet, parted, [c.size for c in chosen]))
        sets.append(ElementSet(name, sum(c.size for c in chosen), parts=parted))
        return (
            sets,
            [_map(layout, m, name, chosen) for m in own],
            transfer(mesh, name, chosen, attachments, keep_empty=bool(prefix)),
        )

    inner, boundary = at_once(partial(derived, ""), partial(derived, "boundary_"))
    return inner[0] + boundary[0], inner[1] + boundary[1], inner[2] + boundary[2]


def _map(layout: Layout, name: str, union: str, chosen: Sequence[Selection]) -> SetMap:
    """The map ``name``, which starts or ends at the set ``union`` or at one of its parts."""
    source, _, to = name.partition("->")
    if source == "cells":
        table = np.empty((layout.n_cells, layout.fixed_count(ENTITY_DIM[to]) or 1), np.int32)
        base = 0
        for c in chosen:
            fill_cell_facets(c, base, table)
            base += c.size
    elif to == "cells":
        arity = 1 if source.startswith("boundary_") else 2
        tables = [facets_to_cells(c, arity) for c in chosen]
        table = tables[0] if len(tables) == 1 else np.concatenate(tables)
    else:
        parts = part_names(layout, entity_of(name), union.removesuffix(entity_of(name)))
        table = facets_to_nodes(chosen[parts.index(source) if parts else 0])
    return SetMap(name, source, to, table)
