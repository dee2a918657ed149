"""From a mesh to that of a file, after :func:`meshprep.io.format.reduce.reduce`."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import offsets_of

from ...mesh import Dat, IndexList, Mesh
from ...mesh.cells import shape_of
from ..format import Capabilities
from ..format.names import (
    BETWEEN,
    EXODUS_NOTES,
    FIELD_DATA,
    GRID,
    LOOKUP_TABLES,
    MED_FIELDS,
    MED_MESH,
    STEP,
    STEP_DATA,
    TIME,
    VTK_ARRAYS,
    XDMF_GRID,
    array_of_group,
)
from .file_mesh import Cells, FileMesh, PartValues, SideSet
from .mesh_of_file import name_in_file


def file_of_mesh(mesh: Mesh, capabilities: Capabilities) -> FileMesh:
    """What the format carries, with one block a set, in the mesh's order."""
    names = [s.name for s in mesh.cell_sets]
    points = np.array(mesh.coordinates)
    of_nodes = [i for i in mesh.lists if i.set == "nodes"]
    file_mesh = FileMesh(
        points=points,
        cells=[
            Cells(str(s.cell_type), mesh.cell_map(s.name).table.copy())
            for s in mesh.cell_sets
        ],
        point_data=_values_of_nodes(mesh, capabilities),
        cell_data=_cell_data(mesh, capabilities, names),
        point_sets={i.name: i.index.copy() for i in of_nodes},
        cell_sets=_cell_sets_of_file(mesh, names),
        set_attrs={i.name: dict(i.attrs) for i in of_nodes},
        side_sets=_side_sets_of_file(mesh, names),
        times=[*mesh.extras.get(TIME, {}).values()] or [0.0],
        fields=mesh.extras.get(MED_FIELDS, {}),
        about=mesh.extras.get(MED_MESH, {}),
        whole_values=mesh.extras.get(FIELD_DATA, {}),
        arrays=mesh.extras.get(VTK_ARRAYS, {}),
        grid=mesh.extras.get(XDMF_GRID, ""),
        parts=_values_of_parts(mesh, names),
        tables=mesh.extras.get(LOOKUP_TABLES, {}),
        about_exodus=mesh.extras.get(EXODUS_NOTES),
        whole_steps=mesh.extras.get(STEP_DATA, {}),
    )
    _add_names(mesh, file_mesh)
    return file_mesh


def _side_sets_of_file(mesh: Mesh, names: list[str]) -> dict[str, SideSet]:
    """Cells through all sets and sides, in the order that they had.

    What stands beside the entries of a set is kept where all of them are still there.
    """
    sizes = [mesh.size(n) for n in names]
    start = dict(zip(names, offsets_of(sizes).tolist(), strict=False))
    lists_by_name: dict[str, list[IndexList]] = {}
    for i in mesh.lists:
        if i.attrs.get("kind") == "side_set":
            lists_by_name.setdefault(i.name, []).append(i)
    out = {}
    for name, lists in lists_by_name.items():
        # Distribution factors stand in the order of the whole set: bring its parts, one a
        # type of cell, back into that order.
        positions = np.concatenate([i.attrs["at"] for i in lists])
        cells = np.concatenate([i.index.astype(np.int64) + start[i.set] for i in lists])
        sides = np.concatenate([i.attrs["sides"] for i in lists])
        attrs = dict(lists[0].attrs)
        if attrs.get("whole") != positions.size:
            attrs.pop("factors", None)
            attrs.pop("values", None)
        order = np.argsort(positions)
        out[name] = SideSet(cells[order], sides[order], attrs)
    return out


def _values_of_nodes(mesh: Mesh, capabilities: Capabilities) -> dict[str, NDArray]:
    on_nodes = (d for d in mesh.dats if d.set == "nodes" and d.name != "coordinates")
    out = {_name_with_step(d): d.values.copy() for d in on_nodes}
    for t in mesh.tags:
        if t.set == "nodes":
            out[array_of_group(t.name)] = t.first_ids()
    # Formats with a number on every node write 1 where none is given, so give none as 0.
    if capabilities.node_tag not in (None, "*", "nastran:ref"):
        out.setdefault(str(capabilities.node_tag), np.zeros(mesh.size("nodes"), np.int64))
    return out


def _cell_data(
    mesh: Mesh, capabilities: Capabilities, names: list[str]
) -> dict[str, list[NDArray]]:
    out: dict[str, list[NDArray]] = {}
    # Values and groups are arrays of all blocks; groups of no number are 0.
    of_all = [d for d in mesh.dats if GRID not in d.attrs]
    values = {(d.set, _name_with_step(d)): d.values for d in of_all}
    for name in dict.fromkeys(_name_with_step(d) for d in of_all if d.set in names):
        out[name] = [values[s, name].copy() for s in names]
    for name in dict.fromkeys(t.name for t in mesh.tags if t.set in names):
        out[array_of_group(name)] = [_group_numbers(mesh, name, s) for s in names]
    if capabilities.tag not in (None, "*"):
        out.setdefault(
            str(capabilities.tag), [np.zeros(mesh.size(s), np.int64) for s in names]
        )
    return out


def _values_of_parts(mesh: Mesh, names: list[str]) -> list[PartValues]:
    """Values that only a part of the mesh has, with the rows of its cells."""
    out = []
    for dat in mesh.dats:
        if GRID in dat.attrs and dat.set in names:
            if dat.index is None:
                rows = np.arange(len(dat.values))
            else:
                rows = dat.index.astype(np.int64)
            name = name_in_file(dat.name)
            grid = str(dat.attrs[GRID])
            out.append(
                PartValues(
                    grid=grid,
                    name=name,
                    block=names.index(dat.set),
                    rows=rows,
                    values=np.array(dat.values),
                )
            )
    return out


def _name_with_step(d: Dat) -> str:
    """The name of values in meshio's mesh, with a zero byte and the step of later ones."""
    name = name_in_file(d.name)
    if STEP in d.attrs:
        return f"{name}\0{d.attrs[STEP]}"
    return name


def _group_numbers(mesh: Mesh, tag: str, set_name: str) -> NDArray[np.int64]:
    found = mesh.tag(tag, set_name)
    if found is None:
        return np.zeros(mesh.size(set_name), np.int64)
    return found.first_ids()


def _cell_sets_of_file(mesh: Mesh, names: list[str]) -> dict[str, list[NDArray]]:
    out: dict[str, list[NDArray]] = {}
    for i in mesh.lists:
        if i.set in names and i.attrs.get("kind") != "side_set":
            empty = [np.empty(0, np.int64) for _ in names]
            out.setdefault(i.name, empty)[names.index(i.set)] = i.index.copy()
    return out


def _add_names(mesh: Mesh, made: FileMesh) -> None:
    """Names of groups, also as ``field_data`` and MED's families, as meshio wants."""
    for tag in mesh.tags:
        made.group_names.setdefault(tag.name, {}).update(tag.names)
        split = {number: name.split(BETWEEN) for number, name in tag.names.items()}
        if tag.set == "nodes":
            made.point_tags = split
        elif tag.name == "cell_tags":
            made.cell_tags |= split
        else:
            dim = shape_of(str(mesh.sets[tag.set].cell_type)).dim
            made.field_data |= {n: np.array([i, dim]) for i, n in tag.names.items()}
