"""Where the elements of a set lie: cells, their sides and corners, in a mesh with coordinates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from ...mesh.cells import SHAPES, CellShape, shape_of
from ...topology.facets import Facets, fill_cell_facets, find_facets, select
from ...topology.layout import FACE_TYPES, local_corners
from ...topology.slots import Part
from .raster import CELLS, FACETS, NODES

# Elements are edges of cells in space; sides of plane cells are FACETS.
EDGES = 3


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """The cells of one shape.

    Parameters
    ----------
    shape : CellShape
    corners : (n, k) int32
    first : int
        Element number of the first cell where elements are cells; -1 where these are none.
    owner : (n, m) int32
        The element on each side (``FACETS``) or edge (``EDGES``) of each cell, -1 where none is;
        of no columns for other kinds.
    exterior : (n, m) bool
        In space, the faces that no other cell has; of no columns in the plane.
    """

    shape: CellShape
    corners: NDArray[np.int32]
    first: int
    owner: NDArray[np.int32]
    exterior: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scene:
    """Elements of one set, numbered as in the mesh, where they can be drawn.

    Parameters
    ----------
    xyz : (n, 2 or 3) float64
        Two columns where the mesh is plane.
    dim : {2, 3}
        Of the cells; cells of dimension 2 with three columns form a curved surface.
    kind : {CELLS, FACETS, NODES, EDGES}
    cells : tuple of DrawnCells
    """

    xyz: NDArray[np.float64]
    dim: int
    kind: int
    cells: tuple[DrawnCells, ...]


def place(mesh: Mesh, over: str, maps: Collection[str] = ()) -> Scene:
    """Find where the elements of a set lie.

    Parameters
    ----------
    mesh : Mesh
        With coordinates. Sets that it does not hold are those :func:`~meshprep.derive` makes.
    over : str
    maps : collection of str
        Maps that were asked for when the set was derived: they tell whether ``edges`` and
        ``faces`` are the interior ones.

    Raises
    ------
    MeshprepError
        Where the elements cannot be placed; the message says what is missing.

    O(cells).
    """
    parts = _parts(mesh, over)
    dim = parts[0].shape.dim
    xyz = _plane(_coordinates(mesh, over), dim)
    kind = _kind(mesh, over, dim)
    owner: Sequence[NDArray[np.int32]] = [np.empty((len(p.corners), 0), np.int32) for p in parts]
    exterior: Sequence[NDArray[np.bool_]] = [np.empty((len(p.corners), 0), bool) for p in parts]
    facets = _facets(parts, dim - 1, mesh) if dim == 3 or kind == FACETS else {}
    if kind in (FACETS, EDGES):
        found = facets if kind == FACETS else _facets(parts, 1, mesh)
        own_dim = dim - 1 if kind == FACETS else 1
        if over in mesh.sets:
            owner = _given(mesh, over, parts, own_dim)
        else:
            owner = _derived(found, parts, own_dim, over, maps, dim)
    if dim == 3:
        exterior = [rows >= 0 for rows in _numbers(facets, parts, 2, "boundary")]
    cells = tuple(
        DrawnCells(
            p.shape, p.corners, _first(over, p) if kind == CELLS else -1, owner[i], exterior[i]
        )
        for i, p in enumerate(parts)
    )
    return Scene(xyz, dim, kind, cells)


@dataclass(frozen=True, eq=False)
class _Part:
    """Cells of one shape, of high order or not, by their corners."""

    name: str
    shape: CellShape
    corners: NDArray[np.int32]
    start: int


def _parts(mesh: Mesh, over: str) -> list[_Part]:
    cells = mesh.sets.get("cells")
    names = () if cells is None else cells.parts or (cells.name,)
    if not names or any(f"{n}->nodes" not in mesh.maps for n in names):
        raise MeshprepError(f"the mesh has no map cells->nodes, so '{over}' cannot be drawn")
    parts, start = [], 0
    for name in names:
        table = mesh.cell_map(name).table
        shape = _shape(mesh, name, table.shape[1])
        parts.append(_Part(name, shape, table[:, : shape.n_corners], start))
        start += len(table)
    if parts[0].shape.dim < 2:
        raise MeshprepError(f"cells of dimension {parts[0].shape.dim} are not drawn")
    return parts


def _shape(mesh: Mesh, name: str, columns: int) -> CellShape:
    """The shape of the cells; plane cells of unknown type are polygons, corner after corner."""
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


def _coordinates(mesh: Mesh, over: str) -> NDArray[np.float64]:
    xyz = mesh.coordinates
    if xyz is None or xyz.shape[1] < 2 or not len(xyz):
        raise MeshprepError(f"the mesh has no coordinates, so '{over}' cannot be drawn")
    if not np.isfinite(xyz).all():
        raise MeshprepError("coordinates that are no numbers cannot be drawn")
    return np.ascontiguousarray(xyz, np.float64)


def _plane(xyz: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
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


def _first(over: str, part: _Part) -> int:
    """Element number of the first cell of a part; -1 where the elements are those of another."""
    if over == "cells":
        return part.start
    return 0 if over == part.name else -1


def _entity_parts(parts: Sequence[_Part], dim: int, arity: int) -> list[Part]:
    found = []
    for p in parts:
        kept = [(i, c) for i, c in enumerate(local_corners(p.shape, dim)) if len(c) == arity]
        found.append(Part(p.corners, [c for _, c in kept], [i for i, _ in kept], p.start))
    return found


def _facets(parts: Sequence[_Part], dim: int, mesh: Mesh) -> dict[int, Facets]:
    """The unique facets of each number of corners."""
    arities = sorted({len(c) for p in parts for c in local_corners(p.shape, dim)})
    n_nodes = mesh.size("nodes")
    return {a: find_facets(_entity_parts(parts, dim, a), a, n_nodes) for a in arities}


def _derived(
    facets: dict[int, Facets],
    parts: Sequence[_Part],
    dim: int,
    over: str,
    maps: Collection[str],
    cell_dim: int,
) -> list[NDArray[np.int32]]:
    """The number of each side's element, as :func:`~meshprep.derive` numbers the set."""
    entity = over.removeprefix("boundary_")
    which = "boundary" if over != entity else "all"
    if which == "all" and dim == cell_dim - 1 and f"{entity}->cells" in maps:
        which = "interior"
    alone = {f"{name}_faces": arity for arity, name in FACE_TYPES.items()}.get(entity)
    wanted = facets if alone is None else {alone: facets[alone]}
    return _numbers(wanted, parts, dim, which)


def _numbers(
    facets: dict[int, Facets], parts: Sequence[_Part], dim: int, which: str
) -> list[NDArray[np.int32]]:
    """For every side of every cell its number among those of one kind, -1 where it is of none."""
    n_cells = sum(len(p.corners) for p in parts)
    most = max(len(local_corners(p.shape, dim)) for p in parts)
    table = np.full((n_cells, most), -1, np.int32)
    base = 0
    for found in facets.values():
        chosen = select(found, which)
        own = table if base == 0 else np.full_like(table, -1)
        fill_cell_facets(chosen, 0, own)
        if base:
            np.copyto(table, own + np.int32(base), where=own >= 0)
        base += chosen.size
    return _by_part(table, parts, dim)


def _given(mesh: Mesh, over: str, parts: Sequence[_Part], dim: int) -> list[NDArray[np.int32]]:
    """The rows of a set of the mesh that stand on each side, matched by their nodes."""
    rows = mesh.map(f"{over}->nodes").table
    cell_type = mesh.sets[over].cell_type
    rows = rows if cell_type is None else rows[:, : shape_of(cell_type).n_corners]
    arity = rows.shape[1]
    if not any(len(c) == arity for p in parts for c in local_corners(p.shape, dim)):
        raise MeshprepError(f"the elements of '{over}' are no sides of cells: they are not drawn")
    n_cells = sum(len(p.corners) for p in parts)
    own = Part(np.ascontiguousarray(rows), [tuple(range(arity))], [0], n_cells)
    facets = find_facets([*_entity_parts(parts, dim, arity), own], arity, mesh.size("nodes"))
    most = max(len(local_corners(p.shape, dim)) for p in parts)
    side = np.full((n_cells + len(rows), most), -1, np.int32)
    fill_cell_facets(select(facets, "all"), 0, side)
    element = np.full(facets.count.size, -1, np.int32)
    element[side[n_cells:, 0]] = np.arange(len(rows), dtype=np.int32)
    found = np.where(side[:n_cells] >= 0, element[side[:n_cells]], np.int32(-1))
    return _by_part(found, parts, dim)


def _by_part(table: NDArray[np.int32], parts: Sequence[_Part], dim: int) -> list[NDArray[np.int32]]:
    return [
        table[p.start : p.start + len(p.corners), : len(local_corners(p.shape, dim))] for p in parts
    ]
