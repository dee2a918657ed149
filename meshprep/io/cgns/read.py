"""Reading CGNS files: unstructured zones of one base, by the labels of their nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import as_indices, offsets_of, ranges

from ...mesh import Dat, ElementSet, IndexList, Mesh, SetMap
from ...mesh.assemble import Block, GroupTable, assemble, merge_data, merge_tags
from ...mesh.cells import shape_of
from ..meshio_adapter.harden import guarded
from ..reduce import with_used_names
from ..su2 import group_numbers
from .elements import FACETS, ElementSection, Lists, read_section
from .groups import BC, NOTES, REGION, SECTION, CgnsNotes, sections_are_groups, table
from .tree import Node, load, merged

_AXES = ["CoordinateX", "CoordinateY", "CoordinateZ"]
_SOLUTIONS = ("FlowSolution_t", "DiscreteData_t")
_POINTS = ("PointList", "PointRange", "ElementList", "ElementRange")
_OF_SECTIONS = {
    *("ElementRange", "ElementConnectivity", "ElementStartOffset"),
    *("ParentElements", "ParentElementsPosition", "ParentData"),
}
_INDEX = ("IndexArray_t", "IndexRange_t", "Rind_t")
# Arrays of no more numbers than this are no values of nodes or cells.
_SMALL = 8


@dataclass(eq=False)
class _Piece:
    """Elements of one type, or facets or cells of a mesh of polyhedra, as they stand in a zone."""

    kind: str  # the type, or the set
    dim: int
    numbers: NDArray[np.int64]  # of the elements, ascending
    section: NDArray[np.integer] | int  # places in the list of names of sections
    nodes: NDArray[np.int64] | None = None  # (n, k)
    polygons: Lists | None = None
    cells: NDArray[np.int64] | None = None  # (n, 1 or 2): of a facet
    tags: dict[str, NDArray[np.int64] | GroupTable] = field(default_factory=dict)
    data: dict[str, NDArray[Any]] = field(default_factory=dict)  # by solution, \0 and name


@dataclass(eq=False)
class _Zone:
    """A zone, its points and elements, and which elements each group has."""

    node: Node
    points: NDArray[np.float64]
    pieces: list[_Piece] = field(default_factory=list)
    groups: dict[str, dict[str, NDArray[np.int64]]] = field(default_factory=dict)
    lists: dict[str, NDArray[np.int64]] = field(default_factory=dict)  # of nodes, by name
    data: dict[str, NDArray[Any]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    @property
    def top(self) -> list[_Piece]:
        """The pieces of the highest dimension."""
        dim = max(p.dim for p in self.pieces)
        return [p for p in self.pieces if p.dim == dim]


def read(path: Path) -> Mesh:
    """Read a CGNS file; zones come one after the other, elements section by section.

    Raises MeshprepError for ADF files, links, structured zones, cubic solids and damaged trees.
    """
    root = load(path)
    with guarded("not a readable CGNS file"):
        return _mesh(root)


def _mesh(root: Node) -> Mesh:
    version = next(root.having("CGNSLibraryVersion_t"), None)
    number = np.ravel(0.0 if version is None or version.data is None else version.data)
    if number.size and 2.95 < number[0] < 3.05:
        raise MeshprepError(
            "is of version 3.0, in which types of elements had other numbers: rewrite it by  "
            "cgnsupdate old.cgns new.cgns  (of the CGNS tools)"
        )
    root.children = [c for c in root.children if c is not version]
    bases = [b for b in root.having("CGNSBase_t") if any(b.having("Zone_t"))]
    if not bases:
        raise MeshprepError("there is no zone in it: not a readable CGNS file")
    dims = [int(b.integers(2)[0]) for b in bases]
    base, dim = bases[dims.index(max(dims))], max(dims)
    unread = [f"base '{b.name}'" for b in bases if b is not base]
    root.children = [c for c in root.children if c is base or c not in bases]
    sections: list[str] = []
    zones = [_zone(node, dim, sections) for node in base.having("Zone_t")]
    unread += [f"{text} of zone '{z.node.name}'" for z in zones for text in z.unread]
    for zone in zones if len(zones) > 1 else ():
        every = np.concatenate([p.numbers for p in zone.top])
        zone.groups.setdefault(REGION, {}).setdefault(zone.node.name, every)
    others = [c for c in base.children if c.label != "Zone_t"]
    base.children = [*others, merged(*base.having("Zone_t"))]
    names = _tag(zones, sections)
    bare = [p for z in zones for p in z.pieces if SECTION not in p.tags]
    untagged = {p.kind: sections[np.ravel(p.section)[0]] for p in bare}
    extras: dict[str, Any] = {NOTES: CgnsNotes(tuple(root.children), tuple(sections), untagged)}
    extras |= {"unread": tuple(unread)} if unread else {}
    width = max(z.points.shape[1] for z in zones)
    points = np.concatenate(
        [np.pad(z.points, ((0, 0), (0, width - z.points.shape[1]))) for z in zones]
    )
    blocks = [Block("vertex", np.empty((len(z.points), 1), np.int8), data=z.data) for z in zones]
    lists, dats = _lists(zones), merge_data("nodes", blocks)
    tag_names = {(tag, d): named for tag, named in names.items() for d in range(4)}
    if any(p.polygons is not None for z in zones for p in z.pieces):
        mesh = _polyhedral(zones, points, dats, lists, tag_names, extras)
    else:
        at = offsets_of([len(z.points) for z in zones]).tolist()
        blocks = [
            Block(p.kind, np.asarray(p.nodes) + start, tags=p.tags, data=p.data)
            for z, start in zip(zones, at, strict=False)
            for p in z.pieces
        ]
        more: dict[str, Any] = {"dats": dats, "lists": lists, "extras": extras}
        mesh, _ = assemble(points, blocks, tag_names=tag_names, **more)
    tags = map(with_used_names, mesh.tags)
    return replace(mesh, tags=tuple(tags), dats=tuple(map(_named_by_solution, mesh.dats)))


def _named_by_solution(dat: Dat) -> Dat:
    solution, mark, name = dat.name.partition("\0")
    if not mark:
        return dat
    name = "data:coordinates" if (name, dat.set) == ("coordinates", "nodes") else name
    return replace(dat, name=name, attrs={"solution": solution})


def _zone(node: Node, dim: int, sections: list[str]) -> _Zone:
    where = f"zone '{node.name}'"
    kind = next((c.text for c in node.having("ZoneType_t")), "Structured")
    if kind != "Unstructured":
        raise MeshprepError(
            f"{where} is structured: convert it to cells of their own first (in ParaView by the "
            "filter Clean to Grid, saved as .vtu)"
        )
    size = node.integers()
    if size.size != 3:
        raise MeshprepError(f"{where} must have three sizes: the file is damaged")
    zone = _Zone(node, _points(node, int(size[0]), where))
    zone.pieces = _pieces(node, zone, dim, sections)
    if not zone.pieces:
        raise MeshprepError(f"{where} has no elements: leave it out")
    counted = sum(p.numbers.size for p in zone.top)
    sizes = {len(zone.points), counted, sum(p.numbers.size for p in zone.pieces)}
    _solutions(zone, counted)
    for boundary in node.having("ZoneBC_t"):
        for one in boundary.having("BC_t"):
            _boundary_condition(zone, one)
    for region in node.having("ZoneSubRegion_t"):
        if region.get("PointList") or region.get("PointRange"):
            _region(zone, region)
    _prune(zone, sizes)
    return zone


def _points(node: Node, n: int, where: str) -> NDArray[np.float64]:
    grids = list(node.having("GridCoordinates_t"))
    grid = next((g for g in grids if g.name == "GridCoordinates"), grids[0] if grids else None)
    arrays = {a.name: a for a in grid.having("DataArray_t")} if grid else {}
    axes = [arrays[name] for name in _AXES if name in arrays]
    if len(axes) < 2 or {a.name for a in axes} != arrays.keys() or not axes[1].name.endswith("Y"):
        found = ", ".join(arrays) or "none"
        raise MeshprepError(
            f"{where} has the coordinates {found}: write CoordinateX, CoordinateY and CoordinateZ"
        )
    for array in axes:
        if array.data is None or array.data.dtype.kind != "f" or array.data.size != n:
            raise MeshprepError(
                f"'{array.name}' of {where} must hold {n} floating numbers: the file is damaged"
            )
    points = np.column_stack([np.asarray(a.data, np.float64).ravel() for a in axes])
    for array in axes:
        array.data = None
    return points


def _pieces(node: Node, zone: _Zone, dim: int, names: list[str]) -> list[_Piece]:
    """The elements of a zone by section and type; what is read leaves the tree."""
    found = [(read_section(s, len(zone.points)), s) for s in node.having("Elements_t")]
    found.sort(key=lambda pair: pair[0].start)
    read = [section for section, _ in found]
    for one, other in pairwise(read):
        if one.start + one.size > other.start:
            raise MeshprepError(
                f"sections '{one.name}' and '{other.name}' have the same element "
                f"{other.start}: the file is damaged"
            )
    for section, old in found:
        if old.get("ParentElements") or old.get("ParentData"):
            if section.polygons is not None and not any(s.polyhedra for s in read):
                raise MeshprepError(
                    f"section '{section.name}' has the faces of cells that have no section of "
                    "their own: write NFACE_n"
                )
            zone.unread += [f"the parents of section '{section.name}'"] if section.cells else []
        old.children = [c for c in old.children if c.name not in _OF_SECTIONS]
        old.data = None
        if section.name not in names:
            names.append(section.name)
    if any(s.polyhedra for s in read):
        return _facets_and_cells(read, dim, names)
    return [piece for section in read for piece in _cells(section, names)]


def _cells(section: ElementSection, names: list[str]) -> Iterator[_Piece]:
    cells, place = section.cells, names.index(section.name)
    if section.polygons is not None:
        counts = np.diff(section.polygons.offset)
        if not np.isin(counts, (3, 4)).all():
            raise MeshprepError(
                f"section '{section.name}' has polygons of up to {counts.max()} corners without "
                "the cells beside them: split them into triangles, or write NFACE_n"
            )
        kinds = [(n, t) for n, t in ((3, "triangle"), (4, "quad")) if (counts == n).any()]
        filled = section.polygons.filled()
        cells = [(t, r := np.flatnonzero(counts == n), filled[r, :n]) for n, t in kinds]
    for cell_type, rows, nodes in cells:
        yield _Piece(cell_type, shape_of(cell_type).dim, section.numbers[rows], place, nodes)


def _facets_and_cells(read: Sequence[ElementSection], dim: int, names: list[str]) -> list[_Piece]:
    """Facets of two cells, those of one, and the cells of NGON_n and NFACE_n sections."""
    other = [s.name for s in read if s.cells]
    if other:
        raise MeshprepError(
            f"has polyhedra beside cells of known types ({', '.join(other)}): "
            "write all as one of the two"
        )
    faces = [s for s in read if s.polygons is not None]
    cells = [s for s in read if s.polyhedra is not None]
    polygons = _joined([s.polygons for s in faces if s.polygons])
    numbers = np.concatenate([s.numbers for s in faces] or [np.zeros(0, np.int64)])
    places = [names.index(s.name) for s in faces]
    in_section = np.repeat(places, [s.size for s in faces])
    cell_numbers = np.concatenate([s.numbers for s in cells])
    parents = _from_cells(_joined([s.polyhedra for s in cells if s.polyhedra]), numbers)
    turned = parents[:, 0] < 0
    parents[turned] = parents[turned, ::-1]
    polygons = _turned(polygons, turned)
    for row in np.flatnonzero(parents[:, 0] < 0)[:1]:
        raise MeshprepError(f"face {numbers[row]} is of no cell: remove it")
    inner = parents[:, 1] >= 0
    out = []
    for kind, rows, width in zip(FACETS, (inner, ~inner), (2, 1), strict=True):
        chosen = np.flatnonzero(rows)
        lists = _chosen(polygons, chosen)
        piece = _Piece(kind, dim - 1, numbers[chosen], in_section[chosen], polygons=lists)
        piece.cells = parents[chosen, :width]
        out += [piece] if chosen.size else []
    which = np.repeat([names.index(s.name) for s in cells], [s.size for s in cells])
    return [*out, _Piece("cells", dim, cell_numbers, which)]


def _from_cells(lists: Lists, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells from 0 on both sides of each face, by the faces of each cell: outward ones first."""
    cell = np.repeat(np.arange(lists.offset.size - 1), np.diff(lists.offset))
    named = np.abs(lists.values)
    face = np.searchsorted(numbers, named).clip(max=max(numbers.size - 1, 0))
    if not numbers.size or (numbers[face] != named).any():
        raise MeshprepError("a cell of NFACE_n names a face that is not there: the file is damaged")
    counts = np.bincount(face, minlength=numbers.size)
    for row in np.flatnonzero((counts > 2) | (counts == 0))[:1]:
        raise MeshprepError(f"face {numbers[row]} is of {counts[row]} cells, must be of 1 or 2")
    rows = np.lexsort((lists.values < 0, face))
    first = np.cumsum(counts) - counts
    parents = np.full((numbers.size, 2), -1)
    parents[:, 0] = cell[rows[first]]
    both = counts == 2
    parents[both, 1] = cell[rows[first[both] + 1]]
    inward = ~both & (lists.values[rows[first]] < 0)
    parents[inward] = parents[inward, ::-1]
    return parents


def _joined(lists: Sequence[Lists]) -> Lists:
    counts = np.concatenate([np.diff(one.offset) for one in lists])
    return Lists(offsets_of(counts), np.concatenate([one.values for one in lists]))


def _chosen(lists: Lists, rows: NDArray[np.int64]) -> Lists:
    counts = np.diff(lists.offset)[rows]
    return Lists(offsets_of(counts), lists.values[ranges(lists.offset[rows], counts)])


def _turned(lists: Lists, flagged: NDArray[np.bool_]) -> Lists:
    """With the values of some lists in the opposite order."""
    if not flagged.any():
        return lists
    counts = np.diff(lists.offset)
    at = np.arange(lists.values.size)
    mirrored = np.repeat(lists.offset[:-1] + lists.offset[1:] - 1, counts) - at
    return Lists(lists.offset, lists.values[np.where(np.repeat(flagged, counts), mirrored, at)])


def _solutions(zone: _Zone, n_cells: int) -> None:
    """Values of nodes and cells; they leave the tree."""
    # where the cells of each piece stand among all cells by their numbers
    every = np.sort(np.concatenate([p.numbers for p in zone.top]))
    ranks = [np.searchsorted(every, p.numbers) for p in zone.top]
    for solution in list(zone.node.having(*_SOLUTIONS)):
        location = next((c.text for c in solution.having("GridLocation_t")), "Vertex")
        size = {"Vertex": len(zone.points), "CellCenter": n_cells}.get(location, -1)
        arrays = list(solution.having("DataArray_t"))
        whole = not any(n.label in _INDEX for n in solution.walk())
        fits = all(
            a.data is not None and a.data.size == size and a.data.dtype.itemsize > 1 for a in arrays
        )
        if not whole or not fits:
            zone.unread.append(f"solution '{solution.name}' ({location})")
            zone.node.children.remove(solution)
            continue
        for array in arrays:
            values, key = np.ravel(array.data), f"{solution.name}\0{array.name}"  # type: ignore[arg-type]
            if location == "Vertex":
                zone.data[key] = values
            else:
                for piece, rank in zip(zone.top, ranks, strict=True):
                    piece.data[key] = values[rank]
            array.data = None


def _boundary_condition(zone: _Zone, node: Node) -> None:
    location = next((c.text for c in node.having("GridLocation_t")), "Vertex")
    found = [c for c in node.children if c.name in _POINTS]
    if not found:
        return
    numbers = _numbers(found[0])
    if location == "Vertex" and found[0].name.startswith("Point"):
        for bad in numbers[(numbers < 1) | (numbers > len(zone.points))][:1]:
            where = f"node {bad} of {len(zone.points)}"
            raise MeshprepError(f"'{node.name}' names {where}: the file is damaged")
        zone.lists[node.name] = numbers - 1
    else:
        zone.groups.setdefault(BC, {})[node.name] = numbers
    _keep(zone, node, numbers.size, f"boundary condition '{node.name}'")


def _region(zone: _Zone, node: Node) -> None:
    location = next((c.text for c in node.having("GridLocation_t")), "Vertex")
    if location == "Vertex":
        zone.unread.append(f"region '{node.name}' of nodes")
        zone.node.children.remove(node)
        return
    numbers = _numbers(next(c for c in node.children if c.name in _POINTS))
    zone.groups.setdefault(REGION, {})[node.name] = numbers
    _keep(zone, node, numbers.size, f"region '{node.name}'")


def _numbers(node: Node) -> NDArray[np.int64]:
    """The numbers of a list or a range."""
    if node.name.endswith("List"):
        return node.integers()
    first, last = node.integers(2).tolist()
    return np.arange(first, last + 1)


def _keep(zone: _Zone, node: Node, count: int, where: str) -> None:
    """Leave in the tree what does not go by the list; an empty one stands for the list."""
    kept = [c for c in node.children if c.name not in _POINTS and c.label != "GridLocation_t"]
    for child in list(kept):
        if _follows(child, {count}):
            zone.unread.append(f"'{child.name}' of {where}")
            kept.remove(child)
    node.children = [*kept, Node("PointList", "IndexArray_t")]


def _follows(node: Node, sizes: set[int]) -> bool:
    """Whether something there may be numbers or values of elements."""
    large = {size for size in sizes if size > _SMALL}
    return any(
        n.label in _INDEX or (n.data is not None and n.data.size in large) for n in node.walk()
    )


def _prune(zone: _Zone, sizes: set[int]) -> None:
    """Take out of the tree what would have to follow the mesh, and is not read."""
    read = ("ZoneType_t", "ZoneBC_t", "ZoneSubRegion_t", *_SOLUTIONS)
    grids = list(zone.node.having("GridCoordinates_t"))
    for child in list(zone.node.children):
        moving = any(n.label == "DataArray_t" and n.data is not None for n in child.walk())
        if child.label in read or (child in grids and not moving):
            continue
        if child in grids or _follows(child, sizes):
            zone.unread.append(f"'{child.name}'")
            zone.node.children.remove(child)


def _tag(zones: Sequence[_Zone], sections: Sequence[str]) -> dict[str, dict[int, str]]:
    """Give the pieces their tags; returns the names of the groups."""
    names: dict[str, dict[int, str]] = {}
    for kind in (BC, REGION):
        listed = list(dict.fromkeys(n for z in zones for n in z.groups.get(kind, {})))
        numbers = group_numbers(listed)
        names[kind] = {i: n for n, i in numbers.items() if str(i) != n}
        for zone in zones:
            _tag_groups(zone, kind, zone.groups.get(kind, {}), numbers, list(numbers.values()))
    pieces = [p for z in zones for p in z.pieces]
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
    zone: _Zone,
    kind: str,
    groups: Mapping[str, NDArray[np.int64]],
    numbers: Mapping[str, int],
    order: Sequence[int],
) -> None:
    """Put the elements of each group into it, whatever piece they are in."""
    if not groups:
        return
    every = np.concatenate([p.numbers for p in zone.pieces])
    by_number = np.argsort(every)
    wanted = np.concatenate(list(groups.values()))
    at = np.searchsorted(every[by_number], wanted).clip(max=every.size - 1)
    place = by_number[at]
    for i in np.flatnonzero(every[place] != wanted)[:1]:
        ends = np.cumsum([g.size for g in groups.values()])
        name = list(groups)[int(np.searchsorted(ends, i, side="right"))]
        raise MeshprepError(
            f"'{name}' of zone '{zone.node.name}' names element {wanted[i]}, which is in no "
            "section: the file is damaged"
        )
    group = np.repeat([numbers[name] for name in groups], [g.size for g in groups.values()])
    ends = offsets_of([p.numbers.size for p in zone.pieces]).tolist()
    for p, (begin, end) in zip(zone.pieces, pairwise(ends), strict=True):
        inside = (begin <= place) & (place < end)
        if inside.any():
            p.tags[kind] = table(end - begin, place[inside] - begin, group[inside], order)


def _lists(zones: Sequence[_Zone]) -> list[IndexList]:
    start = offsets_of([len(z.points) for z in zones]).tolist()
    found: dict[str, list[NDArray[np.int64]]] = {}
    for zone, at in zip(zones, start, strict=False):
        for name, index in zone.lists.items():
            found.setdefault(name, []).append(index + at)
    attrs = {"kind": "point_set"}
    return [IndexList(n, "nodes", np.concatenate(i), attrs) for n, i in found.items()]


def _polyhedral(
    zones: Sequence[_Zone],
    points: NDArray[np.float64],
    dats: Iterable[Dat],
    lists: Iterable[IndexList],
    tag_names: Mapping[tuple[str, int], Mapping[int, str]],
    extras: Mapping[str, Any],
) -> Mesh:
    """Sets and maps: facets to their cells, and to their nodes, of which the last repeats."""
    nodes = offsets_of([len(z.points) for z in zones]).tolist()
    cells = offsets_of([sum(p.numbers.size for p in z.top) for z in zones]).tolist()
    sets, maps = [ElementSet("nodes", len(points))], []
    found, tags = [*dats, Dat("coordinates", "nodes", points)], []
    for kind in dict.fromkeys(p.kind for z in zones for p in z.pieces):
        own = [(i, p) for i, z in enumerate(zones) for p in z.pieces if p.kind == kind]
        pieces = [p for _, p in own]
        sets.append(ElementSet(kind, sum(p.numbers.size for p in pieces)))
        if kind != "cells":
            if any(p.polygons is None for p in pieces):
                raise MeshprepError(
                    "has zones of polyhedra and of other cells: write one file each"
                )
            listed = [(i, p.polygons) for i, p in own if p.polygons]
            polygons = _joined([Lists(one.offset, one.values + nodes[i]) for i, one in listed])
            beside = np.concatenate([np.asarray(p.cells) + cells[i] for i, p in own])
            tables = {"cells": beside, "nodes": polygons.filled()}
            maps += [
                SetMap(f"{kind}->{to}", kind, to, as_indices(t, kind)) for to, t in tables.items()
            ]
        blocks = [Block("vertex", p.numbers[:, None], tags=p.tags, data=p.data) for p in pieces]
        found += merge_data(kind, blocks)
        tags += merge_tags(kind, blocks, pieces[0].dim, tag_names)
    return Mesh(sets, maps, found, tags, lists, extras)
