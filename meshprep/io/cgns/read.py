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
from ..format.reduce import with_used_names
from ..guard import guarded
from ..su2 import group_numbers
from .elements import FACETS, ElementSection, Lists, read_section
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

_AXES = ["CoordinateX", "CoordinateY", "CoordinateZ"]
_SOLUTIONS = ("FlowSolution_t", "DiscreteData_t")
_POINTS = ("PointList", "PointRange", "ElementList", "ElementRange")
_OF_SECTIONS = {
    "ElementRange",
    "ElementConnectivity",
    "ElementStartOffset",
    "ParentElements",
    "ParentElementsPosition",
    "ParentData",
}
_INDEX = ("IndexArray_t", "IndexRange_t", "Rind_t")


@dataclass(eq=False)
class _Piece:
    """Elements of one type, or facets or cells of a polyhedral mesh, stored in a zone."""

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
    # Elements of conditions and regions with values, in the order of these: by kind and
    # name.
    ordered: dict[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)
    data: dict[str, NDArray[Any]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    @property
    def top(self) -> list[_Piece]:
        """The pieces of the highest dimension."""
        dim = max(p.dim for p in self.pieces)
        return [p for p in self.pieces if p.dim == dim]

    @property
    def n_cells(self) -> int:
        """How many elements of the highest dimension there are."""
        return sum(p.numbers.size for p in self.top)


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
) -> tuple[list[_Zone], list[str]]:
    """The zones of a base, regions of their names where they are several; what is lost.

    The base is left with one zone that holds what is not read of all of them.
    """
    zones = [_zone(node, dim, sections) for node in base.having("Zone_t")]
    _lose_doubles(zones)
    unread: list[str] = []
    sizes: set[int] = set()
    for zone in zones:
        unread += [f"{text} of zone '{zone.node.name}'" for text in zone.unread]
        sizes |= _sizes(zone)
        if len(zones) > 1:
            every = np.concatenate([p.numbers for p in zone.top])
            zone.groups.setdefault(REGION, {}).setdefault(zone.node.name, every)

    # What is not read comes back, unless it would have to follow the new order.
    others = []
    for child in base.children:
        if child.label == "Zone_t":
            continue
        if _follows(child, sizes):
            unread.append(f"'{child.name}' of base '{base.name}'")
        else:
            others.append(child)
    base.children = [*others, merged(*base.having("Zone_t"))]
    return zones, unread


def _pieces_of_zones(zones: Sequence[_Zone]) -> list[tuple[int, _Piece]]:
    """The pieces of all zones, each with the number of its zone, from 0."""
    pieces = []
    for k, zone in enumerate(zones):
        pieces += [(k, piece) for piece in zone.pieces]
    return pieces


def _names_with_values(zones: Sequence[_Zone]) -> list[tuple[str, str]]:
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


def _zone(node: Node, dim: int, sections: list[str]) -> _Zone:
    where = f"zone '{node.name}'"
    # A zone without a type is structured.
    kind = next((c.text for c in node.having("ZoneType_t")), "Structured")
    if kind != "Unstructured":
        raise MeshprepError(
            f"{where} is structured: convert it to cells of their own first (in ParaView "
            "by the filter Clean to Grid, saved as .vtu)"
        )
    # An unstructured zone has three sizes: nodes, cells of the highest dimension, and
    # nodes of the border, which may be 0.
    size = node.integers()
    if size.size != 3:
        raise MeshprepError(f"{where} must have three sizes: the file is damaged")
    zone = _Zone(node, _zone_coordinates(node, int(size[0]), where))
    zone.pieces = _pieces_of_zone(node=node, zone=zone, dim=dim, names=sections)
    if not zone.pieces:
        raise MeshprepError(f"{where} has no elements: leave it out")
    # Read what refers to the elements: values, boundary conditions and regions.
    _solutions(zone, zone.n_cells)
    referred = _conditions_with_regions(zone)
    for boundary in node.having("ZoneBC_t"):
        for one in boundary.having("BC_t"):
            _boundary_condition(zone, one, has_region=one.name in referred)
    for region in node.having("ZoneSubRegion_t"):
        if region.get("PointList") or region.get("PointRange"):
            _region(zone, region)
    _prune(zone, _sizes(zone))
    return zone


def _sizes(zone: _Zone) -> set[int]:
    """How many nodes, cells and elements there are, and elements of each piece."""
    of_pieces = [p.numbers.size for p in zone.pieces]
    return {len(zone.points), zone.n_cells, sum(of_pieces), *of_pieces}


def _conditions_with_regions(zone: _Zone) -> set[str]:
    """The conditions whose lists are used by regions with values.

    Regions that use the list of another node are left out.
    """
    out = set()
    for region in list(zone.node.having("ZoneSubRegion_t")):
        if region.get("PointList") or region.get("PointRange"):
            continue
        # A region has a list of its own, or the name of a condition or connectivity whose
        # list it shares.
        name = region.get("BCRegionName")
        conditions = []
        for node in zone.node.having("ZoneBC_t"):
            conditions += [condition.name for condition in node.having("BC_t")]
        if name is not None and name.text in conditions:
            out.add(name.text)
        elif any(n.label == "DataArray_t" for n in region.walk()):
            zone.unread.append(f"region '{region.name}', which goes by another list")
            zone.node.children.remove(region)
    return out


def _zone_coordinates(node: Node, n: int, where: str) -> NDArray[np.float64]:
    # A moving grid has several sets of coordinates; GridCoordinates is the name of the
    # first.
    grids = list(node.having("GridCoordinates_t"))
    grid = next(
        (g for g in grids if g.name == "GridCoordinates"), grids[0] if grids else None
    )
    if grid:
        arrays = {a.name: a for a in grid.having("DataArray_t")}
    else:
        arrays = {}
    axes = [arrays[name] for name in _AXES if name in arrays]
    if (
        len(axes) < 2
        or {a.name for a in axes} != arrays.keys()
        or not axes[1].name.endswith("Y")
    ):
        found = ", ".join(arrays) or "none"
        raise MeshprepError(
            f"{where} has the coordinates {found}: write CoordinateX, CoordinateY and "
            "CoordinateZ"
        )
    for array in axes:
        if array.data is None or array.data.dtype.kind != "f" or array.data.size != n:
            raise MeshprepError(
                f"'{array.name}' of {where} must hold {n} floating numbers: the file is "
                "damaged"
            )
    points = np.column_stack([np.asarray(a.data, np.float64).ravel() for a in axes])
    for array in axes:
        array.data = None
    return points


def _pieces_of_zone(node: Node, zone: _Zone, dim: int, names: list[str]) -> list[_Piece]:
    """The elements of a zone by section and type; what is read leaves the tree."""
    sections = [(read_section(s, len(zone.points)), s) for s in node.having("Elements_t")]
    sections.sort(key=lambda pair: pair[0].start)
    # Numbers of elements go through all sections, which must not overlap.
    read = [section for section, _ in sections]
    for one, other in pairwise(read):
        if one.start + one.size > other.start:
            raise MeshprepError(
                f"sections '{one.name}' and '{other.name}' have the same element "
                f"{other.start}: the file is damaged"
            )
    # Leave of each section what is not read and need not follow the new order.
    for section, old in sections:
        if old.get("ParentElements") or old.get("ParentData"):
            if section.polygons is not None and not any(s.polyhedra for s in read):
                raise MeshprepError(
                    f"section '{section.name}' has the faces of cells that have no section "
                    "of their own: write NFACE_n"
                )
            zone.unread += (
                [f"the parents of section '{section.name}'"] if section.cells else []
            )
        kept = [c for c in old.children if c.name not in _OF_SECTIONS]
        moving = [c for c in kept if _follows(c, {section.size})]
        zone.unread += [f"'{c.name}' of section '{section.name}'" for c in moving]
        old.children = [c for c in kept if c not in moving]
        old.data = None
        if section.name not in names:
            names.append(section.name)
    # Polyhedra are made of the faces of other sections.
    if any(s.polyhedra for s in read):
        return _facets_and_cells(read, dim, names)
    pieces: list[_Piece] = []
    for section in read:
        pieces += _polyhedral_cells(section, names)
    return pieces


def _polyhedral_cells(section: ElementSection, names: list[str]) -> Iterator[_Piece]:
    cells = section.cells
    index_of_section = names.index(section.name)
    if section.polygons is not None:
        # Without cells of their own, polygons of three and four corners are the triangles
        # and quads of a mesh of surfaces.
        counts = np.diff(section.polygons.offset)
        if not np.isin(counts, (3, 4)).all():
            raise MeshprepError(
                f"section '{section.name}' has polygons of up to {counts.max()} corners "
                "without the cells beside them: split them into triangles, or write NFACE_n"
            )
        kinds = [(n, t) for n, t in ((3, "triangle"), (4, "quad")) if (counts == n).any()]
        filled = section.polygons.filled()
        cells = [(t, r := np.flatnonzero(counts == n), filled[r, :n]) for n, t in kinds]
    for cell_type, rows, nodes in cells:
        yield _Piece(
            kind=cell_type,
            dim=shape_of(cell_type).dim,
            numbers=section.numbers[rows],
            section=index_of_section,
            nodes=nodes,
        )


def _facets_and_cells(
    read: Sequence[ElementSection], dim: int, names: list[str]
) -> list[_Piece]:
    """Facets of two cells, those of one, and the cells of NGON_n and NFACE_n sections."""
    other = [s.name for s in read if s.cells]
    if other:
        raise MeshprepError(
            f"has polyhedra beside cells of known types ({', '.join(other)}): "
            "write all as one of the two"
        )
    # Put the faces of all sections together, and find the two cells of each.
    faces = [s for s in read if s.polygons is not None]
    cells = [s for s in read if s.polyhedra is not None]
    polygons = _concatenate_lists([s.polygons for s in faces if s.polygons])
    numbers = np.concatenate([s.numbers for s in faces] or [np.zeros(0, np.int64)])
    places = [names.index(s.name) for s in faces]
    in_section = np.repeat(places, [s.size for s in faces])
    cell_numbers = np.concatenate([s.numbers for s in cells])
    parents = _from_cells(
        _concatenate_lists([s.polyhedra for s in cells if s.polyhedra]), numbers
    )
    # The first cell is the one that the face looks out of; border faces turn to have one.
    turned = parents[:, 0] < 0
    parents[turned] = parents[turned, ::-1]
    polygons = _turned(polygons, turned)
    orphans = np.flatnonzero(parents[:, 0] < 0)
    if orphans.size:
        raise MeshprepError(f"face {numbers[orphans[0]]} is of no cell: remove it")
    # Faces of two cells are one set, those of one cell another.
    inner = parents[:, 1] >= 0
    out = []
    for kind, rows, width in zip(FACETS, (inner, ~inner), (2, 1), strict=True):
        chosen = np.flatnonzero(rows)
        lists = _chosen(polygons, chosen)
        piece = _Piece(
            kind=kind,
            dim=dim - 1,
            numbers=numbers[chosen],
            section=in_section[chosen],
            polygons=lists,
        )
        piece.cells = parents[chosen, :width]
        out += [piece] if chosen.size else []
    which = np.repeat([names.index(s.name) for s in cells], [s.size for s in cells])
    return [*out, _Piece(kind="cells", dim=dim, numbers=cell_numbers, section=which)]


def _from_cells(lists: Lists, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cells from 0 on both sides of each face, from the faces of each cell.

    The cell for which the face points outward comes first.
    """
    # A face in the list of a cell is named by its number in the zone, with a minus where
    # its normal points into the cell.
    cell = np.repeat(np.arange(lists.offset.size - 1), np.diff(lists.offset))
    named = np.abs(lists.values)
    face = np.searchsorted(numbers, named).clip(max=max(numbers.size - 1, 0))
    if not numbers.size or (numbers[face] != named).any():
        raise MeshprepError(
            "a cell of NFACE_n names a face that is not there: the file is damaged"
        )
    counts = np.bincount(face, minlength=numbers.size)
    wrong = np.flatnonzero((counts > 2) | (counts == 0))
    if wrong.size:
        row = wrong[0]
        raise MeshprepError(
            f"face {numbers[row]} is of {counts[row]} cells, must be of 1 or 2"
        )
    # Sort the uses of each face, the one without a minus first.
    rows = np.lexsort((lists.values < 0, face))
    first = np.cumsum(counts) - counts
    parents = np.full((numbers.size, 2), -1)
    parents[:, 0] = cell[rows[first]]
    both = counts == 2
    parents[both, 1] = cell[rows[first[both] + 1]]
    # The only cell of a face that points inward is its second one.
    inward = ~both & (lists.values[rows[first]] < 0)
    parents[inward] = parents[inward, ::-1]
    return parents


def _concatenate_lists(lists: Sequence[Lists]) -> Lists:
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
    return Lists(
        lists.offset, lists.values[np.where(np.repeat(flagged, counts), mirrored, at)]
    )


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
            a.data is not None and a.data.size == size and a.data.dtype.itemsize > 1
            for a in arrays
        )
        if not whole or not fits:
            zone.unread.append(f"solution '{solution.name}' ({location})")
            zone.node.children.remove(solution)
            continue
        for array in arrays:
            # Values of cells stand by the numbers of the elements, whatever their
            # sections.
            values = np.ravel(array.data)  # type: ignore[arg-type]
            key = f"{solution.name}\0{array.name}"
            if location == "Vertex":
                zone.data[key] = values
            else:
                for piece, rank in zip(zone.top, ranks, strict=True):
                    piece.data[key] = values[rank]
            array.data = None


def _boundary_condition(zone: _Zone, node: Node, *, has_region: bool) -> None:
    location = next((c.text for c in node.having("GridLocation_t")), "Vertex")
    point_lists = [c for c in node.children if c.name in _POINTS]
    if not point_lists:
        return
    numbers = _numbers_of_range(point_lists[0])
    where = f"boundary condition '{node.name}'"
    valued = (
        _keep_beside_list(zone=zone, node=node, count=numbers.size, where=where)
        or has_region
    )
    # PointList numbers nodes where the grid location is Vertex, which is the default,
    # else elements; ElementList of older files always numbers elements.
    if location == "Vertex" and point_lists[0].name.startswith("Point"):
        wrong = numbers[(numbers < 1) | (numbers > len(zone.points))]
        if wrong.size:
            raise MeshprepError(
                f"'{node.name}' names node {wrong[0]} of {len(zone.points)}: "
                "the file is damaged"
            )
        # a list of nodes keeps its order, with values or without
        zone.lists[node.name] = numbers - 1
        return
    zone.groups.setdefault(BC, {})[node.name] = numbers
    if valued:
        zone.ordered[BC, node.name] = numbers


def _region(zone: _Zone, node: Node) -> None:
    location = next((c.text for c in node.having("GridLocation_t")), "Vertex")
    if location == "Vertex":
        zone.unread.append(f"region '{node.name}' of nodes")
        zone.node.children.remove(node)
        return
    numbers = _numbers_of_range(next(c for c in node.children if c.name in _POINTS))
    zone.groups.setdefault(REGION, {})[node.name] = numbers
    if _keep_beside_list(
        zone=zone, node=node, count=numbers.size, where=f"region '{node.name}'"
    ):
        zone.ordered[REGION, node.name] = numbers


def _numbers_of_range(node: Node) -> NDArray[np.int64]:
    """The numbers of a list or a range."""
    if node.name.endswith("List"):
        return node.integers()
    # A range is its first and last number, both included.
    first, last = node.integers(2).tolist()
    return np.arange(first, last + 1)


def _keep_beside_list(zone: _Zone, node: Node, count: int, where: str) -> bool:
    """Keep in the tree only what stands beside a list of this size.

    An empty list marks the place of the removed one.

    Returns whether that has values for each entry, which keep the order of the list. What
    has a list of its own, and values of another number, leave the tree.
    """
    nodes_left = [
        c for c in node.children if c.name not in _POINTS and c.label != "GridLocation_t"
    ]
    valued = False
    count = max(count, 1)
    for child in list(nodes_left):
        listed = any(n.label in _INDEX for n in child.walk())
        counts = {_array_size(n) for n in child.walk()} - {0}
        fits = all(size == 1 or size % count == 0 for size in counts)
        if listed or (child.label in _BY_LIST and not fits):
            zone.unread.append(f"'{child.name}' of {where}")
            nodes_left.remove(child)
        else:
            valued = valued or any(size > 1 and size % count == 0 for size in counts)
    node.children = [*nodes_left, Node("PointList", "IndexArray_t")]
    return valued


# Whose arrays have one value, or one for each entry of the list.
_BY_LIST = ("BCDataSet_t", "DataArray_t")
# What never goes by nodes or elements: by time, by step of a solver, or by nothing.
_FREE = (
    "BaseIterativeData_t",
    "ConvergenceHistory_t",
    "DataClass_t",
    "Descriptor_t",
    "DimensionalUnits_t",
    "Family_t",
    "FlowEquationSet_t",
    "Gravity_t",
    "IntegralData_t",
    "ReferenceState_t",
    "RotatingCoordinates_t",
    "ZoneIterativeData_t",
)


def _array_size(node: Node) -> int:
    """How many numbers a node holds; 0 where it holds text or nothing."""
    if node.data is None or node.data.dtype.itemsize == 1:
        return 0
    return node.data.size


def _follows(node: Node, sizes: set[int]) -> bool:
    """Whether something there may be numbers or values of elements."""
    if node.label in _FREE:
        return False
    several = {size for size in sizes if size > 1}
    return any(n.label in _INDEX or _array_size(n) in several for n in node.walk())


def _lose_doubles(zones: Sequence[_Zone]) -> None:
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
            if data is None or node.name in _POINTS:
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


def _starts_of_kinds(zones: Sequence[_Zone]) -> list[tuple[_Zone, _Piece, str, int]]:
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
    starts: Sequence[tuple[_Zone, _Piece, str, int]],
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


def _tag_pieces(
    zones: Sequence[_Zone], sections: Sequence[str]
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
    zone: _Zone,
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


def _lists_of_conditions(zones: Sequence[_Zone]) -> list[IndexList]:
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
    zones: Sequence[_Zone],
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
    pieces_by_kind: dict[str, list[tuple[int, _Piece]]] = {}
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
            polygons = _concatenate_lists(polygon_lists)
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
