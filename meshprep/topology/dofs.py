"""Dofs of Lagrange elements as a derived set, shared by cells where their points coincide."""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, Float64s, Int32s, Int64s

from ..mesh import Dat, ElementSet, Mesh, SetMap
from ..mesh.cells import CellShape
from ..mesh.geometry import CENTROID
from .facets import fill_cell_facets, find_facets, select
from .layout import Layout, layout_of, local_corners

_NAME = re.compile(r"([^>]+)->dofs([1-4])")


def dofs_degree(name: str) -> int | None:
    """The degree of a map ``SET->dofs1`` to ``SET->dofs4``; None for other names."""
    found = _NAME.fullmatch(name)
    return int(found[2]) if found else None


def derive_dofs(mesh: Mesh, name: str) -> Mesh:
    """Add the set of dofs, the maps ``name`` to it from cells of all types, and their places.

    Dofs of vertices come first, by their nodes, then those of edges and of faces, by first
    appearance (cell, local edge or face), then those inside, by cells. So each has one number,
    whichever cell it is reached from. The local order is that of :func:`lattice.local_points`.
    Raises MeshprepError for other cells, and where the set exists without the map.
    """
    layout, degree = layout_of(mesh), dofs_degree(name) or 1
    target = name.partition("->")[2]
    names = [f"{part.name}->{target}" for part in layout.parts]
    _check(mesh, layout, name, names)
    tables, size = _tables(layout, degree)
    maps = [
        SetMap(n, part.name, target, table)
        for n, part, table in zip(names, layout.parts, tables, strict=True)
    ]
    dats = []
    if mesh.coordinates is not None:
        where = np.empty((size, mesh.coordinates.shape[1]))
        for part, table in zip(layout.parts, tables, strict=True):
            corners = mesh.coordinates[part.table[:, : part.shape.n_corners]]
            # Where the dofs of some cells lie, by their corners (cells, n_corners, d)
            for k, point in enumerate(local_points(part.shape, degree) / degree):
                weights = _weights(part.shape, point)
                where[table[:, k]] = sum(w * corners[:, c] for c, w in enumerate(weights))
        dats = [Dat(CENTROID, target, where)]
    return mesh.with_(sets=[ElementSet(target, size)], maps=maps, dats=dats)


def _check(mesh: Mesh, layout: Layout, name: str, names: list[str]) -> None:
    target = name.partition("->")[2]
    shapes = [p.shape.name for p in layout.parts]
    if any(shape not in REFERENCE for shape in shapes):
        raise MeshprepError(
            f"map '{name}': dofs are for cells that are {', '.join(REFERENCE)}, not "
            f"{', '.join(shapes)}"
        )
    if name not in names:
        choice = " and ".join(f"'{n}'" for n in names)
        raise MeshprepError(f"this mesh cannot give map '{name}': use {choice}")
    if target in mesh.sets:
        raise MeshprepError(f"map '{name}' cannot be added: the mesh has a set '{target}' already")


def _tables(layout: Layout, degree: int) -> tuple[list[Int32s], int]:
    """The maps of all types of cells, and the number of dofs."""
    used = np.zeros(layout.n_nodes, np.bool_)
    for part in layout.parts:
        used[part.table[:, : part.shape.n_corners]] = True
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    base = int(np.count_nonzero(used))
    columns = [[number[part.table[:, : part.shape.n_corners]]] for part in layout.parts]
    for dim in range(1, layout.dim):
        for arity in layout.arities(dim):
            base = _shared(layout, dim, degree, base, columns, arity)
    for part, found in zip(layout.parts, columns, strict=True):
        inside = len(local_points(part.shape, degree)) - sum(c.shape[1] for c in found)
        _check_size(base + len(part.table) * inside, layout)
        first = base + inside * np.arange(len(part.table))
        found.append((first[:, None] + np.arange(inside)).astype(np.int32))
        base += len(part.table) * inside
    return [np.hstack(found) for found in columns], base


def _shared(
    layout: Layout, dim: int, degree: int, base: int, columns: list[list[Int32s]], arity: int
) -> int:
    """Append the dofs on edges or faces with ``arity`` corners; the number of dofs then."""
    numbers = numbers_in_frames(arity, degree)
    count = numbers.shape[1]
    if not count:
        return base
    facets = find_facets(layout.entity_parts(dim, arity), arity, layout.n_nodes)
    chosen = select(facets, "all")
    _check_size(base + chosen.size * count, layout)
    most = max(len(local_corners(p.shape, dim)) for p in layout.parts)
    of_cell = np.empty((layout.n_cells, most), np.int32)
    fill_cell_facets(chosen, 0, of_cell)
    for part, found in zip(layout.parts, columns, strict=True):
        rows = of_cell[part.start : part.start + len(part.table)]
        for k, ends in enumerate(local_corners(part.shape, dim)):
            if len(ends) == arity:
                own = numbers[frame_of(part.table[:, list(ends)])]
                found.append(np.int32(base) + rows[:, k, None] * np.int32(count) + own)
    return base + chosen.size * count


def _check_size(size: int, layout: Layout) -> None:
    if size > INDEX_LIMIT:
        raise MeshprepError(f"{layout.n_cells} cells have more than 2^31-1 dofs: split the mesh")


def _weights(shape: CellShape, point: Float64s) -> Float64s:
    """What each corner counts at a point of the reference cell."""
    if shape.n_corners == shape.dim + 1:
        return np.concatenate([[1 - point.sum()], point])
    ends = np.array(REFERENCE[shape.name])
    return np.prod(np.where(ends == 1, point, 1 - point), axis=1)


def facet_dofs(shape: CellShape, degree: int) -> list[Int64s]:
    """The local dofs that lie on each facet of a cell, its edges and vertices included."""
    points = local_points(shape, degree)
    corners = np.array(REFERENCE[shape.name])
    place = {tuple(p): k for k, p in enumerate(points.tolist())}
    found = []
    for facet in shape.facets:
        pieces = [degree * corners[list(facet)]]
        inner = [c for c in shape.edges if set(c) <= set(facet)] if shape.dim == 3 else []
        pieces += [inner_points(corners[list(c)], degree) for c in (*inner, facet) if len(c) > 1]
        every = np.concatenate(pieces).tolist()
        found.append(np.array(sorted(place[tuple(p)] for p in every)))
    return found


# Points of a Lagrange element are whole numbers from 0 to the degree in reference coordinates:
# corner 0 of a simplex is the origin and corner i the unit vector i - 1; a quad and a hexahedron
# are the unit square and cube in VTK's order.
_SQUARE = ((0, 0), (1, 0), (1, 1), (0, 1))
REFERENCE: dict[str, tuple[tuple[int, ...], ...]] = {
    "line": ((0,), (1,)),
    "triangle": ((0, 0), (1, 0), (0, 1)),
    "quad": _SQUARE,
    "tetra": ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "hexahedron": tuple((*corner, z) for z in (0, 1) for corner in _SQUARE),
}
# Shapes by their number of corners, as parts of other shapes.
_FLAT = {2: "line", 3: "triangle", 4: "quad"}


def local_points(shape: CellShape, degree: int) -> Int64s:
    """The points of a cell in the local order of its dofs.

    Vertices come first, then the points of each edge from its first corner to its second, those of
    each face, and those inside; edges and faces as :class:`CellShape` lists them. ``shape`` is one
    of ``REFERENCE``. Gives (n_local, dim) int64.
    """
    corners = np.array(REFERENCE[shape.name])
    pieces = [degree * corners]
    for dim in range(1, shape.dim):
        pieces += [inner_points(corners[list(c)], degree) for c in local_corners(shape, dim)]
    return np.concatenate([*pieces, inner_points(corners, degree)])


def inner_points(corners: Int64s, degree: int) -> Int64s:
    """Points inside a line, triangle, quad, tetrahedron or hexahedron with these corners.

    The first corner is the origin, the next ones (of a quad: the second and the last; of a
    hexahedron: 1, 3 and 4) the axes; the first axis runs fastest.
    """
    n = len(corners)
    axes = {4: (1, 3), 8: (1, 3, 4)}.get(n, tuple(range(1, n)))
    simplex = n <= 3
    if n == 4 and corners.shape[1] == 3 and _is_tetra(corners):
        axes, simplex = (1, 2, 3), True
    dim = len(axes)
    steps = np.indices((degree - 1,) * dim).reshape(dim, -1)[::-1].T + 1
    if simplex:
        steps = steps[steps.sum(axis=1) < degree]
    directions = corners[list(axes)] - corners[0]
    found: Int64s = degree * corners[0] + steps @ directions
    return found.reshape(-1, corners.shape[1])


def _is_tetra(corners: Int64s) -> bool:
    a, b, c = corners[1:] - corners[0]
    return bool((np.cross(a, b) * c).sum())


def frame_of(corners: Int32s) -> Int64s:
    """The frame that cells with a common edge or face agree on, a number for each row of corners.

    It starts at the lowest node and goes to the lower of the two next to it. Number ``2 s`` starts
    at corner ``s`` and goes on to the next one, ``2 s + 1`` goes back.
    """
    arity = corners.shape[1]
    start = np.argmin(corners, axis=1)
    row = np.arange(len(corners))
    after, before = corners[row, (start + 1) % arity], corners[row, start - 1]
    return 2 * start + (before < after)


@cache
def numbers_in_frames(arity: int, degree: int) -> Int32s:
    """The number of every inner point of an edge or face in each of its ``2 * arity`` frames."""
    corners = np.array(REFERENCE[_FLAT[arity]])
    own = _listed(corners, degree)
    tables = []
    for start in range(arity):
        for step in (1, -1):
            seen = _listed(corners[[(start + step * t) % arity for t in range(arity)]], degree)
            tables.append([seen.index(point) for point in own])
    return np.array(tables, np.int32).reshape(2 * arity, len(own))


def _listed(corners: Int64s, degree: int) -> list[Sequence[int]]:
    return [tuple(point) for point in inner_points(corners, degree).tolist()]
