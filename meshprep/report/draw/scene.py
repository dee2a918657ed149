"""Where the elements of a set lie: cells, their sides and corners, in a mesh with coordinates."""

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
from .raster import CELLS, FACETS, NODES

# Elements are edges of cells in space; sides of plane cells are FACETS.
EDGES = 3


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """The cells of one shape."""

    shape: CellShape
    corners: Int32s  # (n, k)
    first: int  # element number of the first cell where elements are cells; -1 where these are none
    # (n, m): the element on each side (``FACETS``) or edge (``EDGES``) of each cell, -1 where none
    # is; of no columns for other kinds.
    owner: Int32s
    # (n, m): in space, the faces that no other cell has; of no columns in the plane.
    exterior: Bools


@dataclass(frozen=True, eq=False)
class Scene:
    """Elements of one set, numbered as in the mesh, where they can be drawn."""

    xyz: Float64s  # (n, 2 or 3): two columns where the mesh is plane
    dim: int  # {2, 3}: of the cells; cells of dimension 2 with three columns form a curved surface
    kind: int  # {CELLS, FACETS, NODES, EDGES}
    cells: tuple[DrawnCells, ...]


def place(mesh: Mesh, over: str, maps: Collection[str] = ()) -> Scene:
    """Find where the elements of a set lie.

    Sets that the mesh does not hold are those :func:`~meshprep.derive` makes; ``maps`` that were
    asked for then tell whether ``edges`` and ``faces`` are the interior ones. Raises MeshprepError
    where the elements cannot be placed; the message says what is missing. O(cells).
    """
    xyz = _coordinates(mesh, over)
    layout = _layout(mesh, over)
    xyz = _plane(xyz, layout.dim)
    kind = _kind(mesh, over, layout.dim)
    owner: Sequence[Int32s] = [np.empty((len(p.table), 0), np.int32) for p in layout.parts]
    exterior: Sequence[Bools] = [np.empty((len(p.table), 0), bool) for p in layout.parts]
    if kind in (FACETS, EDGES):
        dim = layout.dim - 1 if kind == FACETS else 1
        own = _given if over in mesh.sets else _derived
        owner = own(layout, dim, over, mesh, maps)
    if layout.dim == 3:
        exterior = [rows >= 0 for rows in _numbers(layout, 2, "boundary")]
    cells = tuple(
        DrawnCells(
            p.shape,
            p.table[:, : p.shape.n_corners],
            _first(over, p) if kind == CELLS else -1,
            owner[i],
            exterior[i],
        )
        for i, p in enumerate(layout.parts)
    )
    return Scene(xyz, layout.dim, kind, cells)


def _layout(mesh: Mesh, over: str) -> Layout:
    """The cells; plane ones of unknown type are polygons, corner after corner."""
    cells = mesh.sets.get("cells")
    names = () if cells is None else cells.parts or (cells.name,)
    if not names or any(f"{n}->nodes" not in mesh.maps for n in names):
        raise MeshprepError(f"the mesh has no map cells->nodes, so '{over}' cannot be drawn")
    parts, start = [], 0
    for name in names:
        table = mesh.cell_map(name).table
        parts.append(CellPart(name, _shape(mesh, name, table.shape[1]), table, start))
        start += len(table)
    dim = parts[0].shape.dim
    if dim < 2:
        raise MeshprepError(f"cells of dimension {dim} are not drawn")
    return Layout(tuple(parts), dim, mesh.size("nodes"))


def _shape(mesh: Mesh, name: str, columns: int) -> CellShape:
    cell_type = mesh.sets[name].cell_type
    if cell_type is not None:
        return shape_of(cell_type)
    xyz = mesh.coordinates
    if columns in (3, 4) and xyz is not None and _plane(xyz, 2).shape[1] == 2:
        return SHAPES[{3: "triangle", 4: "quad"}[columns]]
    raise MeshprepError(
        f"set '{name}' does not say of which type its cells are, so they are not drawn: give the "
        "mesh in a format that does, such as .msh or .vtu"
    )


def _coordinates(mesh: Mesh, over: str) -> Float64s:
    xyz = mesh.coordinates
    if xyz is None or xyz.shape[1] < 2 or not len(xyz):
        raise MeshprepError(
            f"the mesh has no coordinates, so '{over}' cannot be drawn: of an HDF5 file, name them "
            "when the plan is made, by --sets coordinates=NAME"
        )
    if not np.isfinite(xyz).all():
        raise MeshprepError("coordinates that are no numbers cannot be drawn")
    return np.ascontiguousarray(xyz, np.float64)


def _plane(xyz: Float64s, dim: int) -> Float64s:
    """Without the third column where cells are plane and it is one value."""
    if dim == 2 and xyz.shape[1] == 3 and np.ptp(xyz[:, 2]) == 0:
        return np.ascontiguousarray(xyz[:, :2])
    return xyz


def _kind(mesh: Mesh, over: str, dim: int) -> int:
    cells = mesh.sets["cells"]
    if over == "nodes":
        return NODES
    if over in ("cells", *cells.parts):
        return CELLS
    if over in mesh.sets:
        if f"{over}->nodes" not in mesh.maps:
            raise MeshprepError(f"the mesh has no map {over}->nodes, so '{over}' cannot be drawn")
        return EDGES if dim == 3 and mesh.map(f"{over}->nodes").arity == 2 else FACETS
    if over.endswith("edges"):
        return EDGES if dim == 3 else FACETS
    if over.endswith("faces") and dim == 3:
        return FACETS
    raise MeshprepError(f"the mesh does not tell where the elements of '{over}' lie")


def _first(over: str, part: CellPart) -> int:
    """Element number of the first cell of a part; -1 where the elements are those of another."""
    if over == "cells":
        return part.start
    return 0 if over == part.name else -1


def _derived(
    layout: Layout, dim: int, over: str, mesh: Mesh, maps: Collection[str]
) -> list[Int32s]:
    """The number of each side's element, as :func:`~meshprep.derive` numbers the set."""
    entity = over.removeprefix("boundary_")
    which = "boundary" if over != entity else "all"
    if dim == layout.dim - 1 and are_between_cells(over, maps):
        which = "interior"
    alone = {f"{name}_faces": arity for arity, name in FACE_TYPES.items()}.get(entity)
    return _numbers(layout, dim, which, None if alone is None else (alone,))


def _numbers(
    layout: Layout, dim: int, which: str, arities: Sequence[int] | None = None
) -> list[Int32s]:
    """For every side of every cell its number among those of one kind, -1 where it is of none."""
    table = np.full((layout.n_cells, _most(layout, dim)), -1, np.int32)
    base = 0
    for arity in arities or layout.arities(dim):
        found = find_facets(layout.entity_parts(dim, arity), arity, layout.n_nodes)
        chosen = select(found, which)
        own = np.full_like(table, -1)
        fill_cell_facets(chosen, 0, own)
        np.copyto(table, own + np.int32(base), where=own >= 0)
        base += chosen.size
    return _by_part(table, layout, dim)


def _given(layout: Layout, dim: int, over: str, mesh: Mesh, maps: Collection[str]) -> list[Int32s]:
    """The rows of a set of the mesh that stand on each side, matched by their nodes."""
    rows = mesh.map(f"{over}->nodes").table
    cell_type = mesh.sets[over].cell_type
    rows = rows if cell_type is None else rows[:, : shape_of(cell_type).n_corners]
    arity, n_cells = rows.shape[1], layout.n_cells
    if arity not in layout.arities(dim):
        raise MeshprepError(f"the elements of '{over}' are no sides of cells: they are not drawn")
    own = Part(np.ascontiguousarray(rows), [tuple(range(arity))], [0], n_cells)
    facets = find_facets([*layout.entity_parts(dim, arity), own], arity, layout.n_nodes)
    side = np.full((n_cells + len(rows), _most(layout, dim)), -1, np.int32)
    fill_cell_facets(select(facets, "all"), 0, side)
    element = np.full(facets.n_cells.size, -1, np.int32)
    element[side[n_cells:, 0]] = np.arange(len(rows), dtype=np.int32)
    found = np.where(side[:n_cells] >= 0, element[side[:n_cells]], np.int32(-1))
    return _by_part(found, layout, dim)


def _most(layout: Layout, dim: int) -> int:
    """The most sides of this dimension that a cell has."""
    return max(len(local_corners(p.shape, dim)) for p in layout.parts)


def _by_part(table: Int32s, layout: Layout, dim: int) -> list[Int32s]:
    return [
        table[p.start : p.start + len(p.table), : len(local_corners(p.shape, dim))]
        for p in layout.parts
    ]
