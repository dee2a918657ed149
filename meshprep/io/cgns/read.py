"""Reading CGNS files: unstructured zones of one base, by the labels of their nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import as_indices, offsets_of

from ...mesh import Dat, ElementSet, IndexList, Mesh, SetMap
from ...mesh.assemble import Block, assemble, merge_data, merge_tags
from ..format.reduce import with_used_names
from ..guard import guarded
from ..su2 import group_numbers
from .elements import Lists
from .groups import (
    BC,
    NOTES,
    ORDER,
    REGION,
    SECTION,
    CgnsNotes,
    sections_are_groups,
    table,
)
from .tree import Node, drop_values, load, merged
from .zones import (
    POINTS,
    CgnsPiece,
    CgnsZone,
    concatenate_lists,
    follows_mesh,
    read_zone,
    sizes_of_zone,
)


def read(path: Path) -> Mesh:
    """Read a CGNS file; zones come one after the other, elements section by section.

    Raises MeshprepError for ADF files, links, structured zones, cubic solids and damaged
    trees.
    """
    root = load(path)
    with guarded("not a readable CGNS file"):
        return _mesh_of_tree(root)


def _take_version(root: Node) -> None:
    """Take the version out of the tree; refuse 3.0, which numbered the types otherwise."""
    version = next(root.having("CGNSLibraryVersion_t"), None)
    number = np.ravel(0.0 if version is None or version.data is None else version.data)
    if number.size and 2.95 < number[0] < 3.05:
        raise MeshprepError(
            "is of version 3.0, in which types of elements had other numbers: rewrite it "
            "by  cgnsupdate old.cgns new.cgns  (of the CGNS tools)"
        )
    root.children = [c for c in root.children if c is not version]


def _mesh_of_tree(root: Node) -> Mesh:
    """The mesh of all zones, one after the other; what is read leaves the tree."""
    # The mesh is in the base of the highest dimension.
    _take_version(root)
    bases = [b for b in root.having("CGNSBase_t") if any(b.having("Zone_t"))]
    if not bases:
        raise MeshprepError("there is no zone in it: not a readable CGNS file")
    dims = [int(b.integers(2)[0]) for b in bases]
    base = bases[dims.index(max(dims))]
    dim = max(dims)
    unread = [f"base '{b.name}'" for b in bases if b is not base]
    root.children = [c for c in root.children if c is base or c not in bases]

    # Its zones become one mesh.
    sections: list[str] = []
    zones, unread_of_zones = _zones_of_base(base, dim, sections)
    unread += unread_of_zones
    names = _tag_pieces(zones, sections)
    pieces = _pieces_of_zones(zones)
    untagged = {}
    for _, piece in pieces:
        if SECTION not in piece.tags:
            untagged[piece.kind] = sections[np.ravel(piece.section)[0]]
    valued = tuple(dict.fromkeys(_names_with_values(zones)))
    extras: dict[str, Any] = {
        NOTES: CgnsNotes(
            nodes=tuple(root.children),
            order=tuple(sections),
            sections=untagged,
            valued=valued,
        )
    }
    extras |= {"unread": tuple(unread)} if unread else {}

    # Nodes of all zones, those of a plane zone with zeros beside others in space.
    width = max(z.points.shape[1] for z in zones)
    points = np.concatenate(
        [np.pad(z.points, ((0, 0), (0, width - z.points.shape[1]))) for z in zones]
    )
    blocks = [
        Block("vertex", np.empty((len(z.points), 1), np.int8), data=z.data) for z in zones
    ]
    lists = _lists_of_conditions(zones)
    dats = merge_data("nodes", blocks)
    tag_names: dict[tuple[str, int], dict[int, str]] = {}
    for tag, named in names.items():
        tag_names |= {(tag, level): named for level in range(4)}

    # Polyhedra are sets and maps, all other elements cells of known types.
    if any(piece.polygons is not None for _, piece in pieces):
        mesh = _polyhedral(
            zones=zones,
            points=points,
            dats=dats,
            lists=lists,
            tag_names=tag_names,
            extras=extras,
        )
        mesh = replace(mesh, lists=(*mesh.lists, *_ordered_lists(_starts_of_kinds(zones))))
    else:
        first_point = offsets_of([len(z.points) for z in zones]).tolist()
        blocks = [
            Block(
                cell_type=p.kind,
                nodes=np.asarray(p.nodes) + first_point[k],
                tags=p.tags,
                data=p.data,
            )
            for k, p in pieces
        ]
        mesh, places = assemble(
            points=points,
            blocks=blocks,
            tag_names=tag_names,
            dats=dats,
            lists=lists,
            extras=extras,
        )
        starts = [
            (zones[k], p, place.set, place.start)
            for (k, p), place in zip(pieces, places, strict=True)
        ]
        mesh = replace(mesh, lists=(*mesh.lists, *_ordered_lists(starts)))
    tags = map(with_used_names, mesh.tags)
    return replace(mesh, tags=tuple(tags), dats=tuple(map(_named_by_solution, mesh.dats)))


def _zones_of_base(
    base: Node, dim: int, sections: list[str]
) -> tuple[list[CgnsZone], list[str]]:
    """The zones of a base, regions of their names where they are several; what is lost.

    The base is left with one zone that holds what is not read of all of them.
    """
    zones = [read_zone(node, dim, sections) for node in base.having("Zone_t")]
    _lose_doubles(zones)
    unread: list[str] = []
    sizes: set[int] = set()
    for zone in zones:
        unread += [f"{text} of zone '{zone.node.name}'" for text in zone.unread]
        sizes |= sizes_of_zone(zone)
        if len(zones) > 1:
            every = np.concatenate([p.numbers for p in zone.top])
            zone.groups.setdefault(REGION, {}).setdefault(zone.node.name, every)

    # What is not read comes back, unless it would have to follow the new order.
    others = []
    for child in base.children:
        if child.label == "Zone_t":
            continue
        if follows_mesh(child, sizes):
            unread.append(f"'{child.name}' of base '{base.name}'")
        else:
            others.append(child)
    base.children = [*others, merged(*base.having("Zone_t"))]
    return zones, unread


def _pieces_of_zones(zones: Sequence[CgnsZone]) -> list[tuple[int, CgnsPiece]]:
    """The pieces of all zones, each with the number of its zone, from 0."""
    pieces = []
    for k, zone in enumerate(zones):
        pieces += [(k, piece) for piece in zone.pieces]
    return pieces


def _names_with_values(zones: Sequence[CgnsZone]) -> list[tuple[str, str]]:
    """Kinds and names of the lists that have values beside them, zone by zone."""
    names: list[tuple[str, str]] = []
    for zone in zones:
        names += zone.ordered
    return names


def _named_by_solution(dat: Dat) -> Dat:
    solution, mark, name = dat.name.partition("\0")
    if not mark:
        return dat
    if (name, dat.set) == ("coordinates", "nodes"):
        name = "data:coordinates"
    return replace(dat, name=name, attrs={"solution": solution})


def _lose_doubles(zones: Sequence[CgnsZone]) -> None:
    """Name what a zone says otherwise than one before it, as zones become one.

    Values beside lists of one name leave all zones: the lists become one.
    """
    names = _names_with_values(zones)
    for key in {key for key in names if names.count(key) > 1}:
        for zone in zones:
            zone.ordered.pop(key, None)
            for node in zone.node.walk():
                if node.name == key[1] and node.label in ("BC_t", "ZoneSubRegion_t"):
                    zone.unread.append(f"the values of '{key[1]}'")
                    drop_values(node)
    values_by_name: dict[str, NDArray[Any]] = {}
    for zone in zones:
        for path, node in _paths(zone.node, ""):
            data = node.data
            if data is None or node.name in POINTS:
                continue
            before = values_by_name.setdefault(path, data)
            if not np.array_equal(before, data):
                zone.unread.append(f"'{path[1:]}', of which another zone has another")


def _paths(node: Node, above: str) -> Iterator[tuple[str, Node]]:
    """Everything below a node with its path from there."""
    for child in node.children:
        path = f"{above}/{child.name}"
        yield path, child
        yield from _paths(child, path)


def _starts_of_kinds(
    zones: Sequence[CgnsZone],
) -> list[tuple[CgnsZone, CgnsPiece, str, int]]:
    """The pieces with their set, and where they begin in it, where each kind is a set."""
    filled: dict[str, int] = {}
    out = []
    for zone in zones:
        for piece in zone.pieces:
            start = filled.get(piece.kind, 0)
            out.append((zone, piece, piece.kind, start))
            filled[piece.kind] = start + piece.numbers.size
    return out


def _ordered_lists(
    starts: Sequence[tuple[CgnsZone, CgnsPiece, str, int]],
) -> list[IndexList]:
    """The elements of conditions and regions with values, by set, in the values' order."""
    parts: dict[tuple[str, str, str], list[tuple[NDArray, NDArray, int]]] = {}
    for zone, piece, set_name, start in starts:
        for (kind, name), numbers in zone.ordered.items() if piece.numbers.size else ():
            place = np.searchsorted(piece.numbers, numbers).clip(max=piece.numbers.size - 1)
            positions = np.flatnonzero(piece.numbers[place] == numbers)
            if positions.size:
                pieces_of_list = parts.setdefault((kind, name, set_name), [])
                pieces_of_list.append((start + place[positions], positions, numbers.size))
    out = []
    for (kind, name, set_name), pieces_of_list in parts.items():
        index = np.concatenate([rows for rows, _, _ in pieces_of_list])
        positions = np.concatenate([places for _, places, _ in pieces_of_list])
        # Pieces come in the order of the mesh: bring their elements back into the order
        # of the list.
        by_place = np.argsort(positions)
        attrs = {
            "kind": ORDER,
            "of": kind,
            "at": positions[by_place],
            "whole": pieces_of_list[0][2],
        }
        out.append(IndexList(name=name, set=set_name, index=index[by_place], attrs=attrs))
    return out


def _tag_pieces(
    zones: Sequence[CgnsZone], sections: Sequence[str]
) -> dict[str, dict[int, str]]:
    """Give the pieces their tags; returns the names of the groups."""
    names: dict[str, dict[int, str]] = {}
    for kind in (BC, REGION):
        listed: dict[str, None] = {}
        for zone in zones:
            listed |= dict.fromkeys(zone.groups.get(kind, {}))
        # Groups of one name are one in all zones.
        numbers = group_numbers(list(listed))
        names[kind] = {i: n for n, i in numbers.items() if str(i) != n}
        for zone in zones:
            _tag_groups(
                zone=zone,
                kind=kind,
                groups=zone.groups.get(kind, {}),
                numbers=numbers,
                order=list(numbers.values()),
            )
    # Sections are groups where their names say more than the types of their elements do.
    pieces = [piece for _, piece in _pieces_of_zones(zones)]
    highest = max(p.dim for p in pieces)
    numbers = group_numbers(sections)
    names[SECTION] = {i: n for n, i in numbers.items() if str(i) != n}
    ids = np.array([numbers[s] for s in sections])
    for dim in {p.dim for p in pieces}:
        level = [p for p in pieces if p.dim == dim]
        used: dict[str, set[str]] = {}
        for p in level:
            used.setdefault(p.kind, set()).update(sections[i] for i in np.unique(p.section))
        bare = not any(BC in p.tags for p in level)
        if sections_are_groups(used, top=dim == highest, bare=bare):
            for p in level:
                p.tags[SECTION] = np.broadcast_to(ids[p.section], p.numbers.shape)
    return names


def _tag_groups(
    zone: CgnsZone,
    kind: str,
    groups: Mapping[str, NDArray[np.int64]],
    numbers: Mapping[str, int],
    order: Sequence[int],
) -> None:
    """Put the elements of each group into it, whatever piece they are in."""
    if not groups:
        return
    # Look every element up by its number in the zone.
    piece_numbers = np.concatenate([p.numbers for p in zone.pieces])
    by_number = np.argsort(piece_numbers)
    group_numbers = np.concatenate(list(groups.values()))
    at = np.searchsorted(piece_numbers[by_number], group_numbers).clip(
        max=piece_numbers.size - 1
    )
    element_row = by_number[at]
    missing = np.flatnonzero(piece_numbers[element_row] != group_numbers)
    if missing.size:
        i = missing[0]
        ends = np.cumsum([g.size for g in groups.values()])
        name = list(groups)[int(np.searchsorted(ends, i, side="right"))]
        raise MeshprepError(
            f"'{name}' of zone '{zone.node.name}' names element {group_numbers[i]}, which "
            "is in no section: the file is damaged"
        )
    # Give each piece its part of the pairs of element and group.
    group = np.repeat([numbers[name] for name in groups], [g.size for g in groups.values()])
    ends = offsets_of([p.numbers.size for p in zone.pieces]).tolist()
    for p, (begin, end) in zip(zone.pieces, pairwise(ends), strict=True):
        inside = (begin <= element_row) & (element_row < end)
        if inside.any():
            p.tags[kind] = table(
                n=end - begin,
                element=element_row[inside] - begin,
                group=group[inside],
                order=order,
            )


def _lists_of_conditions(zones: Sequence[CgnsZone]) -> list[IndexList]:
    start = offsets_of([len(z.points) for z in zones]).tolist()
    rows_by_set: dict[str, list[NDArray[np.int64]]] = {}
    for zone, at in zip(zones, start, strict=False):
        for name, index in zone.lists.items():
            rows_by_set.setdefault(name, []).append(index + at)
    attrs = {"kind": "point_set"}
    return [
        IndexList(name=n, set="nodes", index=np.concatenate(i), attrs=attrs)
        for n, i in rows_by_set.items()
    ]


def _polyhedral(
    zones: Sequence[CgnsZone],
    points: NDArray[np.float64],
    dats: Iterable[Dat],
    lists: Iterable[IndexList],
    tag_names: Mapping[tuple[str, int], Mapping[int, str]],
    extras: Mapping[str, Any],
) -> Mesh:
    """The sets and maps: facets to their cells and to their nodes.

    A facet with fewer nodes repeats its last one.
    """
    first_node = offsets_of([len(z.points) for z in zones]).tolist()
    first_cell = offsets_of([zone.n_cells for zone in zones]).tolist()
    sets = [ElementSet("nodes", len(points))]
    maps = []
    all_dats = [*dats, Dat("coordinates", "nodes", points)]
    tags = []
    # Facets of two cells, those of one and the cells are a set each, through all zones.
    pieces_by_kind: dict[str, list[tuple[int, CgnsPiece]]] = {}
    for k, piece in _pieces_of_zones(zones):
        pieces_by_kind.setdefault(piece.kind, []).append((k, piece))
    for kind, pieces_of_kind in pieces_by_kind.items():
        pieces = [p for _, p in pieces_of_kind]
        sets.append(ElementSet(kind, sum(p.numbers.size for p in pieces)))
        if kind != "cells":
            if any(p.polygons is None for p in pieces):
                raise MeshprepError(
                    "has zones of polyhedra and of other cells: write one file each"
                )
            # Nodes and cells of a zone follow those of the zones before it.
            polygon_lists = [
                Lists(p.polygons.offset, p.polygons.values + first_node[k])
                for k, p in pieces_of_kind
                if p.polygons
            ]
            polygons = concatenate_lists(polygon_lists)
            beside = np.concatenate(
                [np.asarray(p.cells) + first_cell[k] for k, p in pieces_of_kind]
            )
            tables = {"cells": beside, "nodes": polygons.filled()}
            maps += [
                SetMap(
                    name=f"{kind}->{to}",
                    from_set=kind,
                    to_set=to,
                    table=as_indices(t, kind),
                )
                for to, t in tables.items()
            ]
        blocks = [
            Block(cell_type="vertex", nodes=p.numbers[:, None], tags=p.tags, data=p.data)
            for p in pieces
        ]
        all_dats += merge_data(kind, blocks)
        tags += merge_tags(name=kind, group=blocks, dim=pieces[0].dim, tag_names=tag_names)
    return Mesh(
        sets=sets,
        maps=maps,
        dats=all_dats,
        tags=tags,
        lists=lists,
        extras=extras,
    )
