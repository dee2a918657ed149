"""A zone of a CGNS file: its points and elements, and the lists and values beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of, ranges

from ...mesh.assemble import GroupTable
from ...mesh.cells import shape_of
from .elements import FACETS, ElementSection, Lists, read_section
from .groups import BC, REGION
from .tree import Node

_AXES = ["CoordinateX", "CoordinateY", "CoordinateZ"]
_SOLUTIONS = ("FlowSolution_t", "DiscreteData_t")
POINTS = ("PointList", "PointRange", "ElementList", "ElementRange")
_OF_SECTIONS = {
    "ElementRange",
    "ElementConnectivity",
    "ElementStartOffset",
    "ParentElements",
    "ParentElementsPosition",
    "ParentData",
}
_INDEX = ("IndexArray_t", "IndexRange_t", "Rind_t")
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


@dataclass(eq=False)
class CgnsPiece:
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
class CgnsZone:
    """A zone, its points and elements, and which elements each group has."""

    node: Node
    points: NDArray[np.float64]
    pieces: list[CgnsPiece] = field(default_factory=list)
    groups: dict[str, dict[str, NDArray[np.int64]]] = field(default_factory=dict)
    lists: dict[str, NDArray[np.int64]] = field(default_factory=dict)  # of nodes, by name
    # Elements of conditions and regions with values, in the order of these: by kind and
    # name.
    ordered: dict[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)
    data: dict[str, NDArray[Any]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    @property
    def top(self) -> list[CgnsPiece]:
        """The pieces of the highest dimension."""
        dim = max(p.dim for p in self.pieces)
        return [p for p in self.pieces if p.dim == dim]

    @property
    def n_cells(self) -> int:
        """How many elements of the highest dimension there are."""
        return sum(p.numbers.size for p in self.top)


def read_zone(node: Node, dim: int, sections: list[str]) -> CgnsZone:
    """Read an unstructured zone; what is read leaves the tree.

    ``dim`` is the dimension of its cells; names of its sections are added to ``sections``.
    Raises MeshprepError for a structured zone, and for one that is damaged or empty.
    """
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
    zone = CgnsZone(node, _zone_coordinates(node, int(size[0]), where))
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
    _prune(zone, sizes_of_zone(zone))
    return zone


def sizes_of_zone(zone: CgnsZone) -> set[int]:
    """How many nodes, cells and elements there are, and elements of each piece."""
    of_pieces = [p.numbers.size for p in zone.pieces]
    return {len(zone.points), zone.n_cells, sum(of_pieces), *of_pieces}


def _conditions_with_regions(zone: CgnsZone) -> set[str]:
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


def _pieces_of_zone(
    node: Node, zone: CgnsZone, dim: int, names: list[str]
) -> list[CgnsPiece]:
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
        moving = [c for c in kept if follows_mesh(c, {section.size})]
        zone.unread += [f"'{c.name}' of section '{section.name}'" for c in moving]
        old.children = [c for c in kept if c not in moving]
        old.data = None
        if section.name not in names:
            names.append(section.name)
    # Polyhedra are made of the faces of other sections.
    if any(s.polyhedra for s in read):
        return _facets_and_cells(read, dim, names)
    pieces: list[CgnsPiece] = []
    for section in read:
        pieces += _polyhedral_cells(section, names)
    return pieces


def _polyhedral_cells(section: ElementSection, names: list[str]) -> Iterator[CgnsPiece]:
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
        yield CgnsPiece(
            kind=cell_type,
            dim=shape_of(cell_type).dim,
            numbers=section.numbers[rows],
            section=index_of_section,
            nodes=nodes,
        )


def _facets_and_cells(
    read: Sequence[ElementSection], dim: int, names: list[str]
) -> list[CgnsPiece]:
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
    polygons = concatenate_lists([s.polygons for s in faces if s.polygons])
    numbers = np.concatenate([s.numbers for s in faces] or [np.zeros(0, np.int64)])
    places = [names.index(s.name) for s in faces]
    in_section = np.repeat(places, [s.size for s in faces])
    cell_numbers = np.concatenate([s.numbers for s in cells])
    parents = _from_cells(
        concatenate_lists([s.polyhedra for s in cells if s.polyhedra]), numbers
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
        piece = CgnsPiece(
            kind=kind,
            dim=dim - 1,
            numbers=numbers[chosen],
            section=in_section[chosen],
            polygons=lists,
        )
        piece.cells = parents[chosen, :width]
        out += [piece] if chosen.size else []
    which = np.repeat([names.index(s.name) for s in cells], [s.size for s in cells])
    return [*out, CgnsPiece(kind="cells", dim=dim, numbers=cell_numbers, section=which)]


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


def concatenate_lists(lists: Sequence[Lists]) -> Lists:
    """One list of the entries of several, one after the other."""
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


def _solutions(zone: CgnsZone, n_cells: int) -> None:
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


def _boundary_condition(zone: CgnsZone, node: Node, *, has_region: bool) -> None:
    location = next((c.text for c in node.having("GridLocation_t")), "Vertex")
    point_lists = [c for c in node.children if c.name in POINTS]
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


def _region(zone: CgnsZone, node: Node) -> None:
    location = next((c.text for c in node.having("GridLocation_t")), "Vertex")
    if location == "Vertex":
        zone.unread.append(f"region '{node.name}' of nodes")
        zone.node.children.remove(node)
        return
    numbers = _numbers_of_range(next(c for c in node.children if c.name in POINTS))
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


def _keep_beside_list(zone: CgnsZone, node: Node, count: int, where: str) -> bool:
    """Keep in the tree only what stands beside a list of this size.

    An empty list marks the place of the removed one.

    Returns whether that has values for each entry, which keep the order of the list. What
    has a list of its own, and values of another number, leave the tree.
    """
    nodes_left = [
        c for c in node.children if c.name not in POINTS and c.label != "GridLocation_t"
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


def _array_size(node: Node) -> int:
    """How many numbers a node holds; 0 where it holds text or nothing."""
    if node.data is None or node.data.dtype.itemsize == 1:
        return 0
    return node.data.size


def follows_mesh(node: Node, sizes: set[int]) -> bool:
    """Whether something there may be numbers or values of elements."""
    if node.label in _FREE:
        return False
    several = {size for size in sizes if size > 1}
    return any(n.label in _INDEX or _array_size(n) in several for n in node.walk())


def _prune(zone: CgnsZone, sizes: set[int]) -> None:
    """Take out of the tree what would have to follow the mesh, and is not read."""
    read = ("ZoneType_t", "ZoneBC_t", "ZoneSubRegion_t", *_SOLUTIONS)
    grids = list(zone.node.having("GridCoordinates_t"))
    for child in list(zone.node.children):
        moving = any(n.label == "DataArray_t" and n.data is not None for n in child.walk())
        if child.label in read or (child in grids and not moving):
            continue
        if child in grids or follows_mesh(child, sizes):
            zone.unread.append(f"'{child.name}'")
            zone.node.children.remove(child)
