"""Where the elements of a set lie in a mesh: cells, their sides, or nodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Bools, Float64s, Int32s

from ...mesh import Mesh
from ...mesh.cells import SHAPES, CellShape, shape_of
from ...topology.facets import fill_cell_facets, find_facets, select
from ...topology.layout import FACE_TYPES, CellPart, Layout, local_corners
from ...topology.names import are_between_cells
from ...topology.slots import Part

# Kinds of elements. Sides of plane cells are FACETS; EDGES are those of cells in space.
CELLS = 0
FACETS = 1
NODES = 2
EDGES = 3


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """The cells of one shape."""

    shape: CellShape
    corners: Int32s  # (n, k)
    # The element number of the first cell, where elements are cells; else -1.
    first: int
    # (n, m): the element on each side (``FACETS``) or edge (``EDGES``) of each cell, or -1;
    # no columns for other kinds.
    owner: Int32s
    # (n, m): in space, the faces that no other cell has; no columns in the plane.
    exterior: Bools


@dataclass(frozen=True, eq=False)
class Scene:
    """Elements of one set, numbered as in the mesh, where they can be drawn."""

    xyz: Float64s  # (n, 2 or 3): two columns where the mesh is plane
    dim: int  # of the cells, 2 or 3; 2 with three columns is a curved surface
    kind: int  # {CELLS, FACETS, NODES, EDGES}
    cells: tuple[DrawnCells, ...]


def place(mesh: Mesh, over: str, maps: Collection[str] = ()) -> Scene:
    """Find where the elements of a set lie.

    Sets that the mesh does not hold are those :func:`~meshprep.derive` makes; ``maps`` that
    were asked for then tell whether ``edges`` and ``faces`` are the interior ones. Raises
    MeshprepError where the elements cannot be placed; the message says what is missing.
    O(cells).
    """
    xyz = _coordinates(mesh, over)
    layout = _layout(mesh, over)
    xyz = _plane(xyz, layout.dim)
    kind = _kind(mesh, over, layout.dim)
    # Elements on sides of cells, for each part of the cells.
    owner: Sequence[Int32s] = [np.empty((len(p.table), 0), np.int32) for p in layout.parts]
    if kind in (FACETS, EDGES):
        dim = layout.dim - 1 if kind == FACETS else 1
        if over in mesh.sets:
            owner = _owners_by_nodes(layout, dim, over, mesh)
        else:
            owner = _owners_as_derived(layout, dim, over, maps)
    # Faces of the surface.
    exterior: Sequence[Bools] = [np.empty((len(p.table), 0), bool) for p in layout.parts]
    if layout.dim == 3:
        exterior = [rows >= 0 for rows in _numbers_of_sides(layout, 2, "boundary")]
    cells = tuple(
        DrawnCells(
            shape=p.shape,
            corners=p.table[:, : p.shape.n_corners],
            first=_first_element(over, p) if kind == CELLS else -1,
            owner=owner[i],
            exterior=exterior[i],
        )
        for i, p in enumerate(layout.parts)
    )
    return Scene(xyz=xyz, dim=layout.dim, kind=kind, cells=cells)


def _layout(mesh: Mesh, over: str) -> Layout:
    """The cells; plane cells of unknown type are polygons, corner after corner."""
    # Cells of several types are sets of their own, parts of the set of cells.
    cells = mesh.sets.get("cells")
    names: tuple[str, ...] = ()
    if cells is not None:
        names = cells.parts or (cells.name,)
    if not names or any(f"{n}->nodes" not in mesh.maps for n in names):
        raise MeshprepError(
            f"the mesh has no map cells->nodes, so '{over}' cannot be drawn"
        )
    # Number the cells of all types one after another.
    parts = []
    start = 0
    for name in names:
        table = mesh.cell_map(name).table
        parts.append(
            CellPart(
                name=name,
                shape=_shape(mesh, name, table.shape[1]),
                table=table,
                start=start,
            )
        )
        start += len(table)
    dim = parts[0].shape.dim
    if dim < 2:
        raise MeshprepError(f"cells of dimension {dim} are not drawn")
    return Layout(tuple(parts), dim, mesh.size("nodes"))


def _shape(mesh: Mesh, name: str, columns: int) -> CellShape:
    """The shape of the cells of a set; triangles and quads in a plane need no type."""
    cell_type = mesh.sets[name].cell_type
    if cell_type is not None:
        return shape_of(cell_type)
    # Four nodes may be a quad or a tetrahedron in space, but only a quad in a plane.
    xyz = mesh.coordinates
    if columns in (3, 4) and xyz is not None and _plane(xyz, 2).shape[1] == 2:
        return SHAPES[{3: "triangle", 4: "quad"}[columns]]
    raise MeshprepError(
        f"set '{name}' does not say of which type its cells are, so they are not drawn: "
        "give the mesh in a format that does, such as .msh or .vtu"
    )


def _coordinates(mesh: Mesh, over: str) -> Float64s:
    """The coordinates; raises MeshprepError unless they are finite and have two columns."""
    xyz = mesh.coordinates
    if xyz is None or xyz.shape[1] < 2 or not len(xyz):
        raise MeshprepError(
            f"the mesh has no coordinates, so '{over}' cannot be drawn: of an HDF5 file, "
            "name them when the plan is made, by --sets coordinates=NAME"
        )
    if not np.isfinite(xyz).all():
        raise MeshprepError("coordinates that are no numbers cannot be drawn")
    return np.ascontiguousarray(xyz, np.float64)


def _plane(xyz: Float64s, dim: int) -> Float64s:
    """Coordinates without the third column, where cells are plane and it is one value."""
    if dim == 2 and xyz.shape[1] == 3 and np.ptp(xyz[:, 2]) == 0:
        return np.ascontiguousarray(xyz[:, :2])
    return xyz


def _kind(mesh: Mesh, over: str, dim: int) -> int:
    """Whether elements are cells, facets, nodes or edges, by their names and maps."""
    cells = mesh.sets["cells"]
    if over == "nodes":
        return NODES
    if over in ("cells", *cells.parts):
        return CELLS
    # Other sets of the mesh are edges or facets, by the length of their rows.
    if over in mesh.sets:
        if f"{over}->nodes" not in mesh.maps:
            raise MeshprepError(
                f"the mesh has no map {over}->nodes, so '{over}' cannot be drawn"
            )
        if dim == 3 and mesh.map(f"{over}->nodes").arity == 2:
            return EDGES
        return FACETS
    # Sets that the loop derived are known by their names alone.
    if over.endswith("edges"):
        if dim == 3:
            return EDGES
        return FACETS
    if over.endswith("faces") and dim == 3:
        return FACETS
    raise MeshprepError(f"the mesh does not tell where the elements of '{over}' lie")


def _first_element(over: str, part: CellPart) -> int:
    """The element number of the first cell of a part; -1 where none of its cells is one."""
    if over == "cells":
        return part.start
    if over == part.name:
        return 0
    return -1


def _owners_as_derived(
    layout: Layout, dim: int, over: str, maps: Collection[str]
) -> list[Int32s]:
    """The element on each side, as :func:`~meshprep.derive` numbers the set."""
    entity = over.removeprefix("boundary_")
    which = "boundary" if over != entity else "all"
    if dim == layout.dim - 1 and are_between_cells(over, maps):
        which = "interior"
    # A set of faces of one type has one number of corners.
    arity_of_set = {f"{name}_faces": arity for arity, name in FACE_TYPES.items()}
    arities = None
    if entity in arity_of_set:
        arities = (arity_of_set[entity],)
    return _numbers_of_sides(layout=layout, dim=dim, which=which, arities=arities)


def _numbers_of_sides(
    layout: Layout, dim: int, which: str, arities: Sequence[int] | None = None
) -> list[Int32s]:
    """The number of each side of every cell among those of one kind; -1 for others."""
    table = np.full((layout.n_cells, _most(layout, dim)), -1, np.int32)
    # Sides of each arity are numbered behind those of the one before.
    base = 0
    for arity in arities or layout.arities(dim):
        facets = find_facets(layout.entity_parts(dim, arity), arity, layout.n_nodes)
        chosen = select(facets, which)
        number = np.full_like(table, -1)
        fill_cell_facets(chosen, 0, number)
        np.copyto(table, number + np.int32(base), where=number >= 0)
        base += chosen.size
    return _by_part(table, layout, dim)


def _owners_by_nodes(layout: Layout, dim: int, over: str, mesh: Mesh) -> list[Int32s]:
    """The element of a set of the mesh on each side, matched by their nodes."""
    # Corners alone are compared: sides of higher order have further nodes.
    rows = mesh.map(f"{over}->nodes").table
    cell_type = mesh.sets[over].cell_type
    if cell_type is not None:
        rows = rows[:, : shape_of(cell_type).n_corners]
    arity = rows.shape[1]
    n_cells = layout.n_cells
    if arity not in layout.arities(dim):
        raise MeshprepError(
            f"the elements of '{over}' are no sides of cells: they are not drawn"
        )
    # Match the elements with the sides of cells, as if they were cells with one side.
    elements = Part(
        table=np.ascontiguousarray(rows),
        local=[tuple(range(arity))],
        column=[0],
        cell_start=n_cells,
    )
    parts = [*layout.entity_parts(dim, arity), elements]
    facets = find_facets(parts, arity, layout.n_nodes)
    most_sides = _most(layout, dim)
    side = np.full((n_cells + len(rows), most_sides), -1, np.int32)
    fill_cell_facets(select(facets, "all"), 0, side)
    # The element that has a facet owns the sides of cells at it.
    element = np.full(facets.n_cells.size, -1, np.int32)
    element[side[n_cells:, 0]] = np.arange(len(rows), dtype=np.int32)
    side_of_cell = side[:n_cells]
    owner = np.where(side_of_cell >= 0, element[side_of_cell], np.int32(-1))
    return _by_part(owner, layout, dim)


def _most(layout: Layout, dim: int) -> int:
    """The most sides of this dimension that a cell has."""
    return max(len(local_corners(p.shape, dim)) for p in layout.parts)


def _by_part(table: Int32s, layout: Layout, dim: int) -> list[Int32s]:
    """The rows of each part of the cells, with as many columns as its cells have sides."""
    return [
        table[p.start : p.start + len(p.table), : len(local_corners(p.shape, dim))]
        for p in layout.parts
    ]
