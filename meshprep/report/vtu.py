"""A mesh with what a plan says of it, as a file for ParaView."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan

from ..mesh import Dat, ElementSet, Mesh, SetMap
from ..mesh.cells import shape_of
from ..topology import derive
from ..topology.layout import layout_of
from ..topology.names import ENTITY_DIM, part_names
from .meshes import BlockValues, NamedMesh, block_values

# Cells of ParaView for the elements of a loop, by their number of nodes.
_AS_CELLS = {2: "line", 3: "triangle", 4: "quad"}
IDS = ("original_id", "plan_id")
FIELDS = ("block", "block_colour", "thread_colour", "input_block", *IDS, "reuse")


def paraview_mesh(plan: Plan, loop: str, named: NamedMesh) -> Mesh:
    """The mesh in the order of its file's making, with fields that tell the plan of a loop.

    Where the loop runs over cells or nodes, these carry the fields. Where it runs over edges or
    faces, these stand in the file as cells of their own, so that every element can be coloured, cut
    and selected; the cells they lie between are left out, since a picture of both would hide one
    behind the other. Raises MeshprepError where the mesh has no coordinates, or its elements no
    nodes.

    ``named`` is what :func:`~meshprep.report.meshes.mesh_of` gives.

    Returns
    -------
    Mesh
        Fields ``block``, ``block_colour`` and ``thread_colour`` (from 0), ``input_block`` (the
        element's block when the input order is cut into runs), ``original_id`` and ``plan_id``
        (places in the input and in the plan, from 0) and ``reuse`` (of the element's block).
    """
    mesh, over = named.mesh, plan[loop].loop.over
    if mesh.coordinates is None:
        raise MeshprepError(f"{named.name} has no coordinates: ParaView needs them")
    values = block_values(plan, loop)
    fields = _fields(values, plan.ordering[over].old_to_new)
    if over == "nodes":
        return _whole(mesh, "nodes", {"nodes": slice(None)}, fields)
    cells = mesh.sets.get("cells")
    parts = () if cells is None else cells.parts or ("cells",)
    if over in ("cells", *parts):
        return _whole(mesh, "cells", _slices(mesh, over, parts), fields)
    return _elements(mesh, plan, over, fields)


def write_vtu(plan: Plan, loop: str, named: NamedMesh, path: Path) -> None:
    """Write :func:`paraview_mesh`; checked by reading it back."""
    from .. import io

    io.write(paraview_mesh(plan, loop, named), path, format="vtu", overwrite=True)


def _fields(values: BlockValues, plan_id: NDArray[np.int32]) -> dict[str, NDArray]:
    columns = (
        values.block,
        values.block_colour,
        values.thread_colour,
        values.input_block,
        np.arange(plan_id.size, dtype=np.int32),
        plan_id,
        values.reuse,
    )
    return dict(zip(FIELDS, columns, strict=True))


def _slices(mesh: Mesh, over: str, parts: tuple[str, ...]) -> dict[str, slice]:
    """Which rows of the fields belong to each part of the cells that the loop runs over."""
    if over != "cells":
        return {over: slice(None)}
    found, start = {}, 0
    for part in parts:
        found[part] = slice(start, start + mesh.size(part))
        start += mesh.size(part)
    return found


def _whole(mesh: Mesh, what: str, rows: dict[str, slice], fields: dict[str, NDArray]) -> Mesh:
    """Nodes and the cells of the highest dimension, with the fields on what the loop runs over."""
    cells = mesh.sets["cells"]
    chosen = list(rows) if what == "cells" else list(cells.parts or ("cells",))
    # one type of cells alone is the set itself
    names = chosen if len(chosen) > 1 else ["cells"]
    sets, maps = [mesh.sets["nodes"]], []
    for old, name in zip(chosen, names, strict=True):
        sets.append(replace(mesh.sets[old], name=name))
        maps.append(SetMap(f"{name}->nodes", name, "nodes", mesh.cell_map(old).table))
    if len(names) > 1:
        sets.append(ElementSet("cells", sum(s.size for s in sets[1:]), parts=tuple(names)))
    set_names = dict(zip(chosen, names, strict=True)) | {"nodes": "nodes"}
    dats = [
        Dat(name, set_names[of], values[where])
        for of, where in rows.items()
        for name, values in fields.items()
    ]
    return Mesh(sets, maps, [_coordinates(mesh), *dats])


def _elements(mesh: Mesh, plan: Plan, over: str, fields: dict[str, NDArray]) -> Mesh:
    """Nodes and the elements of the loop as cells, type by type."""
    # a mesh file has no types without cells
    tables = [table for table in _nodes_of(mesh, plan, over) if len(table)]
    sets, maps, dats, start = [], [], [_coordinates(mesh)], 0
    names = [_AS_CELLS.get(table.shape[1], "") for table in tables]
    if not names:
        raise MeshprepError(f"there are no elements of '{over}': nothing is left for ParaView")
    if "" in names:
        raise MeshprepError(f"the elements of '{over}' have not 2, 3 or 4 nodes: not for ParaView")
    names = names if len(names) > 1 else ["cells"]
    for name, table in zip(names, tables, strict=True):
        sets.append(ElementSet(name, len(table), _AS_CELLS[table.shape[1]]))
        maps.append(SetMap(f"{name}->nodes", name, "nodes", table))
        rows = slice(start, start + len(table))
        dats += [Dat(field, name, values[rows]) for field, values in fields.items()]
        start += len(table)
    if len(names) > 1:
        sets.append(ElementSet("cells", start, parts=tuple(names)))
    return Mesh([mesh.sets["nodes"], *sets], maps, dats)


def _nodes_of(mesh: Mesh, plan: Plan, over: str) -> list[NDArray[np.int32]]:
    """Corner nodes of the elements, in the numbering of the mesh; a table for each face type."""
    if over in mesh.sets:
        table = mesh.map(f"{over}->nodes").table
        cell_type = mesh.sets[over].cell_type
        return [table if cell_type is None else table[:, : shape_of(cell_type).n_corners]]
    entity = over.removeprefix("boundary_")
    prefix = over.removesuffix(entity)
    parts = part_names(layout_of(mesh), entity, prefix) if entity in ENTITY_DIM else ()
    names = [f"{name}->nodes" for name in parts or (over,)]
    # derived with its map to cells the set holds the same elements as the plan's
    asked = [m for m in (f"{over}->cells",) if m in plan.maps]
    full = derive(mesh, [*asked, *names])
    return [full.map(name).table for name in names]


def _coordinates(mesh: Mesh) -> Dat:
    found = mesh.dat("coordinates", "nodes")
    assert found is not None
    return found
