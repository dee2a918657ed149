"""From the mesh of a file to ours."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import as_indices, distinct

from ...mesh import Dat, IndexList, Mesh, Tag
from ...mesh.assemble import Block, CellRange, assemble
from ..reduce import with_used_names
from ..registry import FIELD_DATA, MED_FIELDS, MED_MESH, STEP, TIME, VTU_ARRAYS, group_of_array
from .file_mesh import NUMBERS, FileMesh

# What stands between the names of several groups that MED gives a family.
BETWEEN = ", "
# Arrays of these names would be taken for something else: they have a prefix more in memory.
_PREFIX = "data:"
_RESERVED = re.compile(rf"({_PREFIX})*(coordinates|label)")
# meshio's names for types that come under several names.
_ALIAS = {"tetra4": "tetra"}
# Numbers from here on are no groups, which have 64 bits with a sign.
_MOST_GROUP = 2.0**63
# What meshio keeps among sets of cells, though it names entities of Gmsh's geometry.
_BOUNDS = "gmsh:bounding_entities"


def convert(source: FileMesh) -> Mesh:
    """Build a Mesh: blocks merged by type, integers of groups as tags, sets as index lists.

    ``extras["unread"]`` keeps for writing what the reader left out.
    """
    points = np.asarray(source.points)
    if points.ndim != 2 or points.shape[1] not in (1, 2, 3):
        raise MeshprepError(f"the points have the shape {points.shape}, must be (n, 2) or (n, 3)")
    if points.shape[1] == 1:
        points = np.pad(points, ((0, 0), (0, 1)))
    numbered = _is_numbering(source.cell_data.get("label", ()))
    blocks = [_block(source, k, numbered) for k in range(len(source.cells))]
    dats, tags = _node_data(source.point_data, source.point_tags)
    extras = _extras(source, [*source.left_out, *_empty_sets(source)])
    mesh, places = assemble(
        np.ascontiguousarray(points, dtype=np.float64),
        blocks,
        tag_names=_names(source, blocks),
        dats=dats,
        extras=extras,
    )
    lists = [*_point_sets(source), *_cell_sets(source, places), *_side_sets(source, places)]
    # some formats list the names of all cells together
    shared = ("cell_tags", "exodus:block")
    held = (t for t in mesh.tags if t.group_id.size or t.names)
    kept = (with_used_names(t) if t.name in shared else t for t in held)
    # values of a later time step say so
    named = ((d, *d.name.partition("\0")) for d in mesh.dats)
    values = (replace(d, name=n, attrs={STEP: int(s)}) if s else d for d, n, _, s in named)
    made = replace(mesh, dats=tuple(values), tags=(*kept, *tags), lists=tuple(lists))
    return without_counts(made) if source.numbered else made


def without_counts(mesh: Mesh) -> Mesh:
    """The mesh without numbers that only count: cells type by type, each where it comes first."""
    for sets in (["nodes"], [s.name for s in mesh.cell_sets]):
        found = [d.values for d in (mesh.dat(NUMBERS, n) for n in sets) if d and d.is_numbering]
        numbers = np.concatenate(found or [np.zeros(0)])
        if len(found) == len(sets) and np.array_equal(numbers, np.arange(1, numbers.size + 1)):
            kept = (d for d in mesh.dats if not (d.is_numbering and d.set in sets))
            mesh = replace(mesh, dats=tuple(kept))
    return mesh


def name_in_file(name: str) -> str:
    """The name of an array in a file, by that of its values in memory."""
    return name.removeprefix(_PREFIX) if _RESERVED.fullmatch(name) else name


def _name_in_memory(name: str, numbered: bool) -> str:
    plain = not _RESERVED.fullmatch(name) or (name == "label" and numbered)
    return name if plain else f"{_PREFIX}{name}"


def _is_numbering(arrays: Sequence[Any]) -> bool:
    """Whether these can be the numbers that a file gives its elements: whole, none twice."""
    if any(a is None or np.asarray(a).dtype.kind not in "iu" for a in arrays):
        return False
    found = [_plain(a) for a in arrays]
    if not found or any(a.ndim != 1 for a in found):
        return False
    numbers = np.concatenate(found)
    return distinct(numbers).size == numbers.size


def _block(source: FileMesh, k: int, numbered: bool) -> Block:
    block = source.cells[k]
    if block.type.startswith(("polygon", "polyhedron")):
        raise MeshprepError(
            f"holds cells of type '{block.type}', which are not supported: "
            "split them into triangles, tetrahedra or the like"
        )
    nodes = np.asarray(block.data)
    if nodes.ndim != 2:
        raise MeshprepError(
            f"gives cells of type '{block.type}' as numbers of shape {nodes.shape}: "
            "write a row a cell"
        )
    tags, data = {}, {}
    for name, values in _values(source, k, len(nodes)):
        group = group_of_array(name)
        if group is not None and _is_group(values):
            if values.any():
                tags[group] = values.astype(np.int64)
        else:
            data[_name_in_memory(name, numbered)] = values
    return Block(_ALIAS.get(block.type, block.type), nodes, tags=tags, data=data)


def _values(source: FileMesh, k: int, n: int) -> Iterator[tuple[str, NDArray]]:
    """The values of a block of ``n`` cells by name; MED gives some on other types alone."""
    for name, blocks in source.cell_data.items():
        if len(blocks) != len(source.cells):
            raise MeshprepError(f"values '{name}' do not fit the blocks of cells")
        if blocks[k] is None:
            continue
        values = _plain(blocks[k])
        if values.shape[:1] != (n,):
            raise MeshprepError(
                f"values '{name}' are of shape {values.shape} on {n} cells: the file is damaged"
            )
        yield name, values


def _plain(values: Any) -> NDArray:
    """An array in native byte order, with one axis where rows have one component."""
    out = np.asarray(values)
    if out.dtype.byteorder not in "=|":
        out = out.astype(out.dtype.newbyteorder("="))
    return out[:, 0] if out.ndim == 2 and out.shape[1] == 1 else out


def _is_group(values: NDArray) -> bool:
    """Whether these can be group numbers: integers, or floating numbers that are whole."""
    if values.ndim != 1:
        return False
    small = bool((np.abs(values) < _MOST_GROUP).all()) if values.dtype.kind in "fu" else True
    whole = values.dtype.kind != "f" or bool((values == np.round(values)).all())
    return values.dtype.kind in "iuf" and small and whole


def _node_data(
    data: Mapping[str, Any], families: Mapping[int, Sequence[str]]
) -> tuple[list[Dat], list[Tag]]:
    dats, tags = [], []
    names = {int(number): BETWEEN.join(n) for number, n in families.items()}
    for name, raw in data.items():
        values = _plain(raw)
        group = group_of_array(name)
        if group is not None and _is_group(values):
            ids = values.astype(np.int64)
            named = names if group == "point_tags" else {}
            if ids.any() or named:
                tags.append(Tag.from_ids(group, "nodes", ids, named))
        else:
            dats.append(Dat(_name_in_memory(name, _is_numbering([raw])), "nodes", values))
    return dats, tags


def _names(source: FileMesh, blocks: Sequence[Block]) -> dict[tuple[str, int], dict[int, str]]:
    """Names of groups: from ``field_data`` (name: number, dimension) and from MED's families."""
    out: dict[tuple[str, int], dict[int, str]] = {}
    tags = {name for b in blocks for name in b.tags}
    for tag in tags & {"physical", "netgen:index"}:
        for name, value in source.field_data.items():
            number, dim = _number_and_dim(value)
            # meshio makes such names up where a Netgen mesh has none.
            if dim is not None and not re.fullmatch(r"cd\d_\d+", name):
                out.setdefault((tag, dim), {})[number] = name
    families = {number: BETWEEN.join(names) for number, names in source.cell_tags.items()}
    for tag, by_number in (source.group_names | {"cell_tags": families}).items():
        out |= {(tag, dim): by_number for dim in range(4)}
    return out


def _number_and_dim(value: Any) -> tuple[int, int | None]:
    array = np.asarray(value)
    if array.shape != (2,) or array.dtype.kind not in "iu":
        return 0, None
    return int(array[0]), int(array[1])


def _extras(source: FileMesh, unread: Sequence[str]) -> dict[str, Any]:
    """Field data and notes of the file, which hold no index."""
    extras: dict[str, Any] = {}
    named = {n for n, v in source.field_data.items() if _number_and_dim(v)[1] is not None}
    rest = {n: v for n, v in source.field_data.items() if n not in named}
    # in formats without names of groups none of these is one
    rest |= source.whole_values
    if rest:
        extras[FIELD_DATA] = {name: np.asarray(value) for name, value in rest.items()}
    times = source.times
    if len(times) > 1:
        extras[TIME] = {f"{i}: {time:g}": time for i, time in enumerate(times, 1)}
    elif times[0]:
        extras[TIME] = {f"{times[0]:g}": times[0]}
    notes = {MED_FIELDS: source.fields, MED_MESH: source.about, VTU_ARRAYS: source.arrays}
    extras |= {key: found for key, found in notes.items() if found}
    if unread:
        extras["unread"] = tuple(dict.fromkeys(unread))
    return extras


def _empty_sets(source: FileMesh) -> list[str]:
    nodes = source.point_sets.items()
    empty = [f"set '{name}' without nodes" for name, index in nodes if not np.size(index)]
    return empty + [
        f"set '{name}' without cells"
        for name, blocks in source.cell_sets.items()
        if name != _BOUNDS and not any(index is not None and len(index) for index in blocks)
    ]


def _point_sets(source: FileMesh) -> list[IndexList]:
    numbers, out = source.set_numbers, []
    for name, index in source.point_sets.items():
        attrs: dict[str, Any] = {"kind": "point_set"}
        attrs |= {"number": numbers[name]} if name in numbers else {}
        nodes: NDArray[Any] = np.asarray(index).reshape(-1).astype(np.int64)
        out += [IndexList(name, "nodes", nodes, attrs)] if nodes.size else []
    return out


def _side_sets(source: FileMesh, places: Sequence[CellRange]) -> Iterator[IndexList]:
    """One list a set and type of cell: cells, the side of each, and its place in the whole set."""
    of = np.repeat(np.arange(len(places)), [p.stop - p.start for p in places])
    row = np.concatenate([np.arange(p.start, p.stop) for p in places])
    for name, (number, elements, sides) in source.side_sets.items():
        for s in dict.fromkeys(p.set for p in places):
            own = [i for i, p in enumerate(places) if p.set == s]
            at = np.flatnonzero(np.isin(of[elements], own))
            attrs = {"kind": "side_set", "number": number, "sides": sides[at], "at": at}
            if at.size:
                yield IndexList(name, s, as_indices(row[elements[at]], name), attrs)


def _cell_sets(source: FileMesh, places: Sequence[CellRange]) -> list[IndexList]:
    """One list a set and type of cell, counted along the merged set of that type."""
    out = []
    for name, blocks in source.cell_sets.items():
        if name == _BOUNDS:
            continue
        if len(blocks) != len(places):
            raise MeshprepError(f"the cell set '{name}' does not fit the blocks of cells")
        parts: dict[str, list[NDArray]] = {}
        for place, index in zip(places, blocks, strict=True):
            if index is not None and len(index):
                parts.setdefault(place.set, []).append(np.asarray(index) + place.start)
        attrs = {"kind": "cell_set"}
        out += [IndexList(name, s, np.concatenate(p), attrs) for s, p in parts.items()]
    return out
