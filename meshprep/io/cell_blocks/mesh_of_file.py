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
    group_of_array,
)
from ..format.reduce import with_used_names, without_counts
from .file_mesh import FileMesh

# Arrays of these names would be taken for something else: they have a prefix more in
# memory.
_PREFIX = "data:"
_RESERVED = re.compile(rf"({_PREFIX})*(coordinates|label)")
# meshio's names for types that come under several names.
_ALIAS = {"tetra4": "tetra"}
# Numbers from here on are no groups, which have 64 bits with a sign.
_MOST_GROUP = 2.0**63
# What meshio keeps among sets of cells, though it names entities of Gmsh's geometry.
_BOUNDS = "gmsh:bounding_entities"


def mesh_of_file(source: FileMesh) -> Mesh:
    """Build a Mesh: blocks merged by type, integers of groups as tags, sets as index lists.

    ``extras["unread"]`` keeps for writing what the reader left out.
    """
    points = np.asarray(source.points)
    if points.ndim != 2 or points.shape[1] not in (1, 2, 3):
        raise MeshprepError(
            f"the points have the shape {points.shape}, must be (n, 2) or (n, 3)"
        )
    if points.shape[1] == 1:
        points = np.pad(points, ((0, 0), (0, 1)))
    numbered = _is_numbering(source.cell_data.get("label", ()))
    blocks = [_block_of_cells(source, k, numbered) for k in range(len(source.cells))]
    dats, tags = _dats_and_tags_of_nodes(source.point_data, source.point_tags)
    extras = _notes_without_indices(
        source, [*source.left_out, *_names_of_lost_sets(source)]
    )
    mesh, places = assemble(
        points=np.ascontiguousarray(points, dtype=np.float64),
        blocks=blocks,
        tag_names=_names_of_groups(source, blocks),
        dats=dats,
        extras=extras,
    )
    lists = [
        *_point_sets(source),
        *_lists_of_cell_sets(source, places),
        *_lists_of_side_sets(source, places),
    ]
    # some formats list the names of all cells together
    shared = ("cell_tags", "exodus:block")
    held = (t for t in mesh.tags if t.group_id.size or t.names)
    named_tags = (with_used_names(t) if t.name in shared else t for t in held)
    # values of a later time step say so
    named = ((d, *d.name.partition("\0")) for d in mesh.dats)
    values = (replace(d, name=n, attrs={STEP: int(s)}) if s else d for d, n, _, s in named)
    with_parts = (*values, *_merge_part_values(source, places))
    made = replace(mesh, dats=with_parts, tags=(*named_tags, *tags), lists=tuple(lists))
    if source.numbered:
        return without_counts(made)
    return made


def name_in_file(name: str) -> str:
    """The name of an array in a file, by that of its values in memory."""
    if _RESERVED.fullmatch(name):
        return name.removeprefix(_PREFIX)
    return name


def _name_in_memory(name: str, numbered: bool) -> str:
    plain = not _RESERVED.fullmatch(name) or (name == "label" and numbered)
    if plain:
        return name
    return f"{_PREFIX}{name}"


def _is_numbering(arrays: Sequence[Any]) -> bool:
    """Whether these can be the numbers of elements in a file: whole and distinct."""
    if any(a is None or np.asarray(a).dtype.kind not in "iu" for a in arrays):
        return False
    found = [_native_array(a) for a in arrays]
    if not found or any(a.ndim != 1 for a in found):
        return False
    numbers = np.concatenate(found)
    return distinct(numbers).size == numbers.size


def _block_of_cells(source: FileMesh, k: int, numbered: bool) -> Block:
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
    tags = {}
    data = {}
    # Files have groups as arrays of whole numbers of certain names; all 0 is no group.
    for name, values in _values_of_block(source, k, len(nodes)):
        group = group_of_array(name)
        if group is not None and _is_group(values):
            if values.any():
                tags[group] = values.astype(np.int64)
        else:
            data[_name_in_memory(name, numbered)] = values
    return Block(
        cell_type=_ALIAS.get(block.type, block.type), nodes=nodes, tags=tags, data=data
    )


def _values_of_block(source: FileMesh, k: int, n: int) -> Iterator[tuple[str, NDArray]]:
    """The values of a block of ``n`` cells by name; MED gives some on other types alone."""
    for name, blocks in source.cell_data.items():
        if len(blocks) != len(source.cells):
            raise MeshprepError(f"values '{name}' do not fit the blocks of cells")
        if blocks[k] is None:
            continue
        values = _native_array(blocks[k])
        if values.shape[:1] != (n,):
            raise MeshprepError(
                f"values '{name}' are of shape {values.shape} on {n} cells: the file is "
                "damaged"
            )
        yield name, values


def _native_array(values: Any) -> NDArray:
    """An array in native byte order, with one axis where rows have one component."""
    out = np.asarray(values)
    if out.dtype.byteorder not in "=|":
        out = out.astype(out.dtype.newbyteorder("="))
    if out.ndim == 2 and out.shape[1] == 1:
        return out[:, 0]
    return out


def _is_group(values: NDArray) -> bool:
    """Whether these can be group numbers: integers, or floating numbers that are whole."""
    if values.ndim != 1:
        return False
    if values.dtype.kind in "fu":
        small = bool((np.abs(values) < _MOST_GROUP).all())
    else:
        small = True
    whole = values.dtype.kind != "f" or bool((values == np.round(values)).all())
    return values.dtype.kind in "iuf" and small and whole


def _dats_and_tags_of_nodes(
    data: Mapping[str, Any], families: Mapping[int, Sequence[str]]
) -> tuple[list[Dat], list[Tag]]:
    dats = []
    tags = []
    names = {int(number): BETWEEN.join(n) for number, n in families.items()}
    for name, raw in data.items():
        values = _native_array(raw)
        group = group_of_array(name)
        if group is not None and _is_group(values):
            ids = values.astype(np.int64)
            if group == "point_tags":
                names_of_tag = names
            else:
                names_of_tag = {}
            if ids.any() or names_of_tag:
                tags.append(
                    Tag.from_ids(name=group, set="nodes", ids=ids, names=names_of_tag)
                )
        else:
            dats.append(Dat(_name_in_memory(name, _is_numbering([raw])), "nodes", values))
    return dats, tags


def _names_of_groups(
    source: FileMesh, blocks: Sequence[Block]
) -> dict[tuple[str, int], dict[int, str]]:
    """Names of groups from ``field_data`` (name: number, dimension) and MED's families."""
    out: dict[tuple[str, int], dict[int, str]] = {}
    tags = set().union(*(block.tags for block in blocks))
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


def _notes_without_indices(source: FileMesh, unread: Sequence[str]) -> dict[str, Any]:
    """Field data and notes of the file, which hold no index."""
    extras: dict[str, Any] = {}
    named = {n for n, v in source.field_data.items() if _number_and_dim(v)[1] is not None}
    values_of_mesh = {n: v for n, v in source.field_data.items() if n not in named}
    # in formats without names of groups none of these is one
    values_of_mesh |= source.whole_values
    if values_of_mesh:
        extras[FIELD_DATA] = {
            name: np.asarray(value) for name, value in values_of_mesh.items()
        }
    times = source.times
    if len(times) > 1:
        extras[TIME] = {f"{i}: {time:g}": time for i, time in enumerate(times, 1)}
    elif times[0]:
        extras[TIME] = {f"{times[0]:g}": times[0]}
    notes = {
        MED_FIELDS: source.fields,
        MED_MESH: source.about,
        VTK_ARRAYS: source.arrays,
        LOOKUP_TABLES: source.tables,
        XDMF_GRID: source.grid,
        EXODUS_NOTES: source.about_exodus,
        STEP_DATA: source.whole_steps,
    }
    extras |= {key: found for key, found in notes.items() if found}
    if unread:
        extras["unread"] = tuple(dict.fromkeys(unread))
    return extras


def _names_of_lost_sets(source: FileMesh) -> list[str]:
    lost = []
    for name, index in source.point_sets.items():
        if not np.size(index):
            lost.append(f"set '{name}' without nodes")
    for name, blocks in source.cell_sets.items():
        has_cells = any(index is not None and len(index) for index in blocks)
        if name != _BOUNDS and not has_cells:
            lost.append(f"set '{name}' without cells")
    return lost


def _point_sets(source: FileMesh) -> list[IndexList]:
    out = []
    for name, index in source.point_sets.items():
        attrs = {"kind": "point_set"} | source.set_attrs.get(name, {})
        nodes: NDArray[Any] = np.asarray(index).reshape(-1).astype(np.int64)
        if nodes.size:
            out.append(IndexList(name=name, set="nodes", index=nodes, attrs=attrs))
    return out


def _merge_part_values(source: FileMesh, places: Sequence[CellRange]) -> Iterator[Dat]:
    """Values of parts of the mesh, those of one set together, in the order of its cells."""
    parts_by_name: dict[tuple[str, str, str], list[tuple[NDArray, NDArray]]] = {}
    for part in source.parts:
        place = places[part.block]
        key = (part.grid, part.name, place.set)
        rows = part.rows + place.start
        parts_by_name.setdefault(key, []).append((rows, _native_array(part.values)))
    for (grid, name, set_name), pieces in parts_by_name.items():
        # A part may name the cells of a set in any order, but each once.
        rows = np.concatenate([index for index, _ in pieces])
        values = np.concatenate([some for _, some in pieces])
        order = np.argsort(rows)
        if (np.diff(rows[order]) == 0).any():
            raise MeshprepError(f"grid '{grid}' has a cell twice: take one out")
        size = sum(p.stop - p.start for p in places if p.set == set_name)
        if rows.size == size:
            index = None
        else:
            index = as_indices(rows[order], name)
        memory = _name_in_memory(name, numbered=False)
        yield Dat(
            name=memory, set=set_name, values=values[order], index=index, attrs={GRID: grid}
        )


def _lists_of_side_sets(
    source: FileMesh, places: Sequence[CellRange]
) -> Iterator[IndexList]:
    """One list for each side set and type of cell: cells, sides, positions in the set.

    ``whole`` is how many entries the set has; what stands beside them is in the order of
    all.
    """
    # A side set counts elements through all blocks: find the block of each, and its row
    # in the set.
    of = np.repeat(np.arange(len(places)), [p.stop - p.start for p in places])
    row = np.concatenate([np.arange(p.start, p.stop) for p in places])
    for name, side_set in source.side_sets.items():
        elements = side_set.elements
        for s in dict.fromkeys(p.set for p in places):
            own = [i for i, p in enumerate(places) if p.set == s]
            positions = np.flatnonzero(np.isin(of[elements], own))
            attrs = {
                "kind": "side_set",
                "sides": side_set.sides[positions],
                "at": positions,
                "whole": elements.size,
            }
            if positions.size:
                index = as_indices(row[elements[positions]], name)
                yield IndexList(name=name, set=s, index=index, attrs=attrs | side_set.attrs)


def _lists_of_cell_sets(source: FileMesh, places: Sequence[CellRange]) -> list[IndexList]:
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
        out += [
            IndexList(name=name, set=s, index=np.concatenate(p), attrs=attrs)
            for s, p in parts.items()
        ]
    return out
