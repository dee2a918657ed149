"""Writing CGNS files: zones, sections and the rest of the tree as the file had them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import offsets_of

from ...mesh import Mesh
from .elements import NFACE, NGON, Lists, section_node, write_section
from .groups import BC, REGION, SECTION
from .layout import CgnsLayout, Chunk, facets_of, laid_out, notes_of, zone_of
from .tree import Node, drop_values, merged, save, text

# Where values without a solution of their own go, and what CGNS calls the place.
_SOLUTION = {"nodes": ("NodeData", "Vertex"), "cells": ("CellData", "CellCenter")}
_LARGEST = 2**31 - 1


def write(mesh: Mesh, path: Path) -> None:
    """Write a CGNS file of version 3.4, which all later readers know, too."""
    layout = laid_out(mesh)
    roots = [merged(n) for n in notes_of(layout.mesh).nodes]
    base = next(
        (r for r in roots if r.label == "CGNSBase_t" and any(r.having("Zone_t"))), None
    )
    if base is None:
        base = Node("Base", "CGNSBase_t")
        roots.append(base)
    points = layout.mesh.coordinates
    assert points is not None
    # A base states the dimension of its cells and that of space.
    base.data = np.array([max(layout.levels.values()), points.shape[1]], np.int32)
    zone = merged(zone_of(layout.mesh))
    base.children = [*(c for c in base.children if c.label != "Zone_t"), zone]
    _fill_zone(zone, layout)
    save(roots, path)


def _fill_zone(zone: Node, layout: CgnsLayout) -> None:
    """Put the elements, nodes, groups and values into the zone; empty places leave."""
    mesh = layout.mesh
    chunks = layout.chunks
    # Numbers take 64 bits where some table has more entries than 32 bits can count.
    entries = [m.table.size + m.size for m in mesh.maps.values()]
    integer: type[np.int32 | np.int64] = np.int32
    if 2 * sum(entries) > _LARGEST:
        integer = np.int64
    # Write the sizes, the coordinates and the elements section by section.
    top = max(layout.levels.values())
    cells = [c for c in chunks if layout.levels[c.set] == top]
    sizes = [mesh.size("nodes"), sum(c.rows.stop - c.rows.start for c in cells), 0]
    zone.data = np.array(sizes, integer)[:, None]
    zone.find("ZoneType", "ZoneType_t").data = text("", "", "Unstructured").data
    points = mesh.coordinates
    assert points is not None
    grid = next(zone.having("GridCoordinates_t"), None)
    grid = grid or zone.find("GridCoordinates", "GridCoordinates_t")
    for axis, values in zip("XYZ", points.T, strict=False):
        grid.find(f"Coordinate{axis}", "DataArray_t").data = np.ascontiguousarray(values)
    first = offsets_of([c.rows.stop - c.rows.start for c in chunks]) + 1
    for section in _section_nodes(
        layout=layout, chunks=chunks, first=first, integer=integer
    ):
        old = zone.find(section.name, "Elements_t")
        old.data = section.data
        old.children = section.children + old.children
    # Write the groups: conditions, regions, and lists of nodes.
    for name, conditions in layout.content[BC].items():
        node = _condition(zone, name)
        numbers = _element_numbers_of_group(
            layout=layout, key=(BC, name), node=node, found=conditions, first=first
        )
        _point(
            node=node,
            numbers=numbers,
            location=_location(layout, conditions),
            integer=integer,
        )
    for name, conditions in layout.content[REGION].items():
        node = _group(zone, name, "ZoneSubRegion_t")
        node.data = np.array([max(layout.levels[s] for s, _ in conditions)], np.int32)
        numbers = _element_numbers_of_group(
            layout=layout, key=(REGION, name), node=node, found=conditions, first=first
        )
        _point(
            node=node,
            numbers=numbers,
            location=_location(layout, conditions),
            integer=integer,
        )
    for one in (i for i in mesh.lists if i.set == "nodes"):
        _point(
            node=_condition(zone, one.name),
            numbers=one.index + 1,
            location="Vertex",
            integer=integer,
        )
    _put_values(zone, layout, cells)
    _take_out_empty(zone)


def _section_nodes(
    layout: CgnsLayout, chunks: list[Chunk], first: NDArray[np.int64], integer: type
) -> Iterable[Node]:
    # Facets of polyhedra are NGON_n, the cells NFACE_n; other sections are of one type, or
    # MIXED.
    words = layout.groups[SECTION].names
    facets = facets_of(layout.mesh)
    for section in dict.fromkeys(c.section for c in chunks):
        rows = [i for i, c in enumerate(chunks) if c.section == section]
        section_chunks = [chunks[i] for i in rows]
        number = int(first[rows[0]])
        if not facets:
            cells = [(c, layout.mesh.cell_map(c.set).table[c.rows]) for c in section_chunks]
            tables = [(str(layout.mesh.sets[c.set].cell_type), t) for c, t in cells]
            yield write_section(
                name=words[section], first=number, cells=tables, integer=integer
            )
        elif section_chunks[0].set == "cells":
            lists = _polyhedra(
                layout=layout, chunks=chunks, first=first, rows=section_chunks[0].rows
            )
            size = lists.offset.size - 1
            values = lists.values, lists.offset
            yield section_node(words[section], NFACE, number, size, *values, integer)
        else:
            # what makes a cell its number
            i = next(i for i, c in enumerate(chunks) if c.set == "cells")
            shift = int(first[i]) - chunks[i].rows.start
            yield _polygons(
                layout=layout,
                own=section_chunks,
                name=words[section],
                number=number,
                shift=shift,
                integer=integer,
            )


def _polygons(
    layout: CgnsLayout,
    own: list[Chunk],
    name: str,
    number: int,
    shift: int,
    integer: type,
) -> Node:
    """Facets with the cells on both sides."""
    lists = []
    parents = []
    for c in own:
        lists.append(Lists.unfilled(layout.mesh.map(f"{c.set}->nodes").table[c.rows]))
        cells = layout.mesh.map(f"{c.set}->cells").table[c.rows].astype(np.int64) + shift
        parents.append(np.pad(cells, ((0, 0), (0, 2 - cells.shape[1]))))
    values = np.concatenate([one.values for one in lists]) + 1
    offset = offsets_of(np.concatenate([np.diff(one.offset) for one in lists]))
    node = section_node(
        name=name,
        kind=NGON,
        first=number,
        size=offset.size - 1,
        values=values,
        offset=offset,
        integer=integer,
    )
    # ParentElements has the numbers of the two cells of each face, first that out of which
    # the face looks; 0 is none. All first cells stand before all second ones.
    beside: NDArray[Any] = np.concatenate(parents).T.astype(integer, order="C")
    node.children.append(Node("ParentElements", "DataArray_t", beside))
    return node


def _polyhedra(
    layout: CgnsLayout, chunks: list[Chunk], first: NDArray[np.int64], rows: slice
) -> Lists:
    """The facets of each cell; those that look into it have a minus."""
    cell = []
    face = []
    for c, number in zip(chunks, first.tolist(), strict=False):
        if c.set == "cells":
            continue
        numbers = np.arange(number, number + c.rows.stop - c.rows.start)
        # The first cell of a face is the one out of which it looks.
        for column, sign in zip(
            layout.mesh.map(f"{c.set}->cells").table[c.rows].T, (1, -1), strict=False
        ):
            cell.append(column.astype(np.int64))
            face.append(sign * numbers)
    cell_of_face = np.concatenate(cell)
    values = np.concatenate(face)
    inside = (rows.start <= cell_of_face) & (cell_of_face < rows.stop)
    cell_of_face = cell_of_face[inside] - rows.start
    values = values[inside]
    # List the faces of a cell by their numbers.
    order = np.lexsort((np.abs(values), cell_of_face))
    return Lists(
        offsets_of(np.bincount(cell_of_face, minlength=rows.stop - rows.start)),
        values[order],
    )


def _group(parent: Node, name: str, label: str) -> Node:
    """The node of a group, behind those of its kind that are filled already."""
    node = next((c for c in parent.having(label) if c.name == name), Node(name, label))
    parent.children = [*(c for c in parent.children if c is not node), node]
    return node


def _condition(zone: Node, name: str) -> Node:
    node = _group(zone.find("ZoneBC", "ZoneBC_t"), name, "BC_t")
    if node.data is None:
        node.data = text("", "", "UserDefined").data
    return node


def _element_numbers_of_group(
    layout: CgnsLayout,
    key: tuple[str, str],
    node: Node,
    found: list[tuple[str, NDArray[np.int64]]],
    first: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The numbers of the elements of a group: ascending, or in the order of its values."""
    lists = layout.ordered.get(key)
    if lists is None:
        if key in notes_of(layout.mesh).valued:
            drop_values(node)
        numbers = [
            _numbers_in_zone(name=name, element=element, chunks=layout.chunks, first=first)
            for name, element in found
        ]
        return np.sort(np.concatenate(numbers))
    numbers = [
        _numbers_in_zone(name=i.set, element=i.index, chunks=layout.chunks, first=first)
        for i in lists
    ]
    at = np.concatenate([i.attrs["at"] for i in lists])
    return np.concatenate(numbers)[np.argsort(at)]


def _numbers_in_zone(
    name: str,
    element: NDArray[np.integer],
    chunks: list[Chunk],
    first: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The numbers in a zone of these elements of a set."""
    # A set may be cut over several sections, each with numbers of its own.
    places = [i for i, c in enumerate(chunks) if c.set == name]
    starts = np.array([chunks[i].rows.start for i in places])
    at = np.searchsorted(starts, element, side="right") - 1
    return element - starts[at] + first[places][at]


def _location(layout: CgnsLayout, found: list[tuple[str, NDArray[np.int64]]]) -> str:
    dim = max(layout.levels[name] for name, _ in found)
    if dim == max(layout.levels.values()):
        return "CellCenter"
    if dim == 1:
        return "EdgeCenter"
    return "FaceCenter"


def _point(node: Node, numbers: NDArray[Any], location: str, integer: type) -> None:
    """Give a group its elements, as a range where they are one."""
    in_range = numbers.size == numbers[-1] - numbers[0] + 1 and bool(
        (np.diff(numbers) == 1).all()
    )
    listed = numbers[[0, -1]] if in_range else numbers
    if in_range:
        name, label = ("PointRange", "IndexRange_t")
    else:
        name, label = ("PointList", "IndexArray_t")
    points = Node(name, label, np.ascontiguousarray(listed.astype(integer)[:, None]))
    kept = [c for c in node.children if c.label != "IndexArray_t"]
    node.children = [text("GridLocation", "GridLocation_t", location), points, *kept]


def _put_values(zone: Node, layout: CgnsLayout, cells: list[Chunk]) -> None:
    """Values of nodes, and of cells in the order of their numbers."""
    top = [c.set for c in cells]
    for dat in layout.mesh.dats:
        of_nodes = dat.set == "nodes"
        if (dat.name, dat.set) == ("coordinates", "nodes") or (
            not of_nodes and dat.set != top[0]
        ):
            continue
        values = dat.values
        if not of_nodes:
            # Values of cells are one array for all sections, by the numbers of the
            # elements.
            same = {
                other.set: other
                for other in layout.mesh.dats
                if other.name == dat.name
                and other.attrs.get("solution") == dat.attrs.get("solution")
            }
            values = np.concatenate([same[c.set].values[c.rows] for c in cells])
        default, location = _SOLUTION["nodes" if of_nodes else "cells"]
        solution = _solution(zone, str(dat.attrs.get("solution", default)), location)
        solution.find(dat.name, "DataArray_t").data = np.ascontiguousarray(values)


def _solution(zone: Node, name: str, location: str) -> Node:
    """The solution of that name and location; a node of another kind gets a neighbour."""
    while (node := zone.get(name)) is not None:
        at = next((c.text for c in node.having("GridLocation_t")), "Vertex")
        if node.label in ("FlowSolution_t", "DiscreteData_t") and at == location:
            return node
        name += "_"
    node = zone.find(name, "FlowSolution_t")
    node.children.append(text("GridLocation", "GridLocation_t", location))
    return node


def _take_out_empty(node: Node) -> None:
    """Take out places of sections, groups and values that nothing was put into."""
    for child in list(node.children):
        _take_out_empty(child)
        solution = child.label in ("FlowSolution_t", "DiscreteData_t")
        holds = {
            "Elements_t": child.data is not None,
            "DataArray_t": child.data is not None,
            "ZoneBC_t": any(child.having("BC_t")),
            "BC_t": not any(c.data is None for c in child.having("IndexArray_t")),
            "ZoneSubRegion_t": not any(
                c.data is None for c in child.having("IndexArray_t")
            ),
        }.get(child.label, not solution or any(child.having("DataArray_t")))
        if not holds:
            node.children.remove(child)
