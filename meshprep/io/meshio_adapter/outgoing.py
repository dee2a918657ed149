"""From our mesh to that of files, after :func:`meshprep.io.reduce.reduce` has left what fits."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import offsets_of

from ...mesh import Dat, IndexList, Mesh
from ...mesh.cells import shape_of
from .. import registry
from ..registry import Capabilities, array_of_group
from .file_mesh import Cells, FileMesh, SideSet
from .incoming import BETWEEN, name_in_file


def convert(mesh: Mesh, capabilities: Capabilities) -> FileMesh:
    """What the format carries, with one block a set, in the mesh's order."""
    names = [s.name for s in mesh.cell_sets]
    points = np.array(mesh.coordinates)
    of_nodes = [i for i in mesh.lists if i.set == "nodes"]
    made = FileMesh(
        _fitting(points) if capabilities.tag == "nastran:ref" else points,
        [Cells(str(s.cell_type), mesh.cell_map(s.name).table.copy()) for s in mesh.cell_sets],
        _node_data(mesh, capabilities),
        _cell_data(mesh, capabilities, names),
        point_sets={i.name: i.index.copy() for i in of_nodes},
        cell_sets=_cell_sets(mesh, names),
        set_numbers={i.name: i.attrs["number"] for i in of_nodes if "number" in i.attrs},
        side_sets=_side_sets(mesh, names),
        times=[*mesh.extras.get(registry.TIME, {}).values()] or [0.0],
        fields=mesh.extras.get(registry.MED_FIELDS, {}),
        about=mesh.extras.get(registry.MED_MESH, {}),
        whole_values=mesh.extras.get(registry.FIELD_DATA, {}),
        arrays=mesh.extras.get(registry.VTU_ARRAYS, {}),
    )
    _add_names(mesh, made)
    return made


def as_meshio(mesh: FileMesh) -> Any:
    """The ``meshio.Mesh`` of what it has a place for."""
    import meshio

    blocks = []
    for cells in mesh.cells:
        # meshio makes no block of some types that its formats have
        known = cells.type in meshio._mesh.topological_dimension
        blocks.append(meshio.CellBlock(cells.type if known else "vertex", cells.data))
        blocks[-1].type, blocks[-1].dim = cells.type, shape_of(cells.type).dim
    names = ("point_data", "cell_data", "field_data", "point_sets", "cell_sets")
    return meshio.Mesh(mesh.points, blocks, **{key: getattr(mesh, key) for key in names})


def write_by_meshio(name: str, path: Path, mesh: FileMesh) -> None:
    """Write a mesh in one of meshio's formats."""
    import meshio

    meshio.write(path, as_meshio(mesh), file_format=name)


def _side_sets(mesh: Mesh, names: list[str]) -> dict[str, SideSet]:
    """Number, cells through all sets and sides, in the order that they had."""
    start = dict(zip(names, offsets_of([mesh.size(n) for n in names]).tolist(), strict=False))
    found: dict[str, list[IndexList]] = {}
    for i in mesh.lists:
        if i.attrs.get("kind") == "side_set":
            found.setdefault(i.name, []).append(i)
    out = {}
    for name, lists in found.items():
        order = np.argsort(np.concatenate([i.attrs["at"] for i in lists]))
        cells = np.concatenate([i.index.astype(np.int64) + start[i.set] for i in lists])
        sides = np.concatenate([i.attrs["sides"] for i in lists])
        out[name] = int(lists[0].attrs["number"]), cells[order], sides[order]
    return out


def _fitting(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers of at most 16 characters, which is what a Nastran field holds."""
    values = points.ravel().tolist()
    exponents = (len(f"{x:.15e}".partition("e")[2].lstrip("+-").lstrip("0")) or 1 for x in values)
    digits = zip(values, exponents, strict=True)
    rounded = [float(f"{x:.{12 - e - (x < 0)}e}") + 0.0 for x, e in digits]
    return np.array(rounded).reshape(points.shape)


def _node_data(mesh: Mesh, capabilities: Capabilities) -> dict[str, NDArray]:
    on_nodes = (d for d in mesh.dats if d.set == "nodes" and d.name != "coordinates")
    out = {_key(d): d.values.copy() for d in on_nodes}
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
    values = {(d.set, _key(d)): d.values for d in mesh.dats}
    for name in dict.fromkeys(_key(d) for d in mesh.dats if d.set in names):
        out[name] = [values[s, name].copy() for s in names]
    for name in dict.fromkeys(t.name for t in mesh.tags if t.set in names):
        out[array_of_group(name)] = [_ids(mesh, name, s) for s in names]
    if capabilities.tag not in (None, "*"):
        out.setdefault(str(capabilities.tag), [np.zeros(mesh.size(s), np.int64) for s in names])
    return out


def _key(d: Dat) -> str:
    """The name of values in meshio's objects, with a zero byte and the step of later ones."""
    name = name_in_file(d.name)
    return f"{name}\0{d.attrs[registry.STEP]}" if registry.STEP in d.attrs else name


def _ids(mesh: Mesh, tag: str, set_name: str) -> NDArray[np.int64]:
    found = mesh.tag(tag, set_name)
    return np.zeros(mesh.size(set_name), np.int64) if found is None else found.first_ids()


def _cell_sets(mesh: Mesh, names: list[str]) -> dict[str, list[NDArray]]:
    out: dict[str, list[NDArray]] = {}
    for i in mesh.lists:
        if i.set in names and i.attrs.get("kind") != "side_set":
            empty = [np.empty(0, np.int64) for _ in names]
            out.setdefault(i.name, empty)[names.index(i.set)] = i.index.copy()
    return out


def _add_names(mesh: Mesh, made: FileMesh) -> None:
    """Names of groups, also where meshio looks for them: ``field_data``, and MED's families."""
    for t in mesh.tags:
        made.group_names.setdefault(t.name, {}).update(t.names)
        split = {number: name.split(BETWEEN) for number, name in t.names.items()}
        if t.set == "nodes":
            made.point_tags = split
        elif t.name == "cell_tags":
            made.cell_tags |= split
        else:
            dim = shape_of(str(mesh.sets[t.set].cell_type)).dim
            made.field_data |= {n: np.array([i, dim]) for i, n in t.names.items()}
