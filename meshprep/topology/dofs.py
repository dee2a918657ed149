"""Dofs of Lagrange elements as a derived set: cells share those whose points coincide."""

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
    match = _NAME.fullmatch(name)
    if match:
        return int(match[2])
    return None


def derive_dofs(mesh: Mesh, name: str) -> Mesh:
    """Add the set of dofs, the maps to it from cells of all types, and their places.

    Dofs of vertices come first, by their nodes, then those of edges and of faces, by first
    appearance (cell, local edge or face), then those inside, by cells. So each has one
    number, whichever cell it is reached from. The local order is that of
    :func:`local_points`. Raises MeshprepError for other cells, and where the set
    exists without the map.
    """
    # Number the dofs: a map from the cells of each type.
    layout = layout_of(mesh)
    degree = dofs_degree(name) or 1
    target = name.partition("->")[2]
    names = [f"{part.name}->{target}" for part in layout.parts]
    _check_dofs(mesh=mesh, layout=layout, name=name, names=names)
    tables, size = _tables_of_dofs(layout, degree)
    maps = [
        SetMap(name=n, from_set=part.name, to_set=target, table=table)
        for n, part, table in zip(names, layout.parts, tables, strict=True)
    ]

    # Place each local point of all cells at a weighted mean of their corners.
    dats = []
    if mesh.coordinates is not None:
        dof_coordinates = np.empty((size, mesh.coordinates.shape[1]))
        for part, table in zip(layout.parts, tables, strict=True):
            corners = mesh.coordinates[part.table[:, : part.shape.n_corners]]
            # The lattice has whole numbers: measure it in edges of the cell.
            reference_points = local_points(part.shape, degree) / degree
            for k, point in enumerate(reference_points):
                weights = _weights(part.shape, point)
                weighted_corners = (w * corners[:, c] for c, w in enumerate(weights))
                dof_coordinates[table[:, k]] = sum(weighted_corners)
        dats = [Dat(CENTROID, target, dof_coordinates)]
    return mesh.with_(sets=[ElementSet(target, size)], maps=maps, dats=dats)


def _check_dofs(
    mesh: Mesh,
    layout: Layout,
    name: str,
    names: list[str],
) -> None:
    """Raise MeshprepError where the mesh cannot have these dofs."""
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
        raise MeshprepError(
            f"map '{name}' cannot be added: the mesh has a set '{target}' already"
        )


def _tables_of_dofs(layout: Layout, degree: int) -> tuple[list[Int32s], int]:
    """The maps of all types of cells, and the number of dofs."""
    # Number the dofs of vertices: nodes that are corners, in their order.
    corners = [part.table[:, : part.shape.n_corners] for part in layout.parts]
    is_corner = np.zeros(layout.n_nodes, np.bool_)
    for corners_of_part in corners:
        is_corner[corners_of_part] = True
    number = np.cumsum(is_corner, dtype=np.int32) - np.int32(1)
    base = int(np.count_nonzero(is_corner))
    columns = [[number[corners_of_part]] for corners_of_part in corners]

    # Number the dofs of edges, then of faces.
    for dim in range(1, layout.dim):
        for arity in layout.arities(dim):
            base = _append_shared_dofs(
                layout=layout,
                dim=dim,
                degree=degree,
                base=base,
                columns=columns,
                arity=arity,
            )

    # Number the dofs inside cells, cell by cell: no other cell has them.
    for part, of_part in zip(layout.parts, columns, strict=True):
        n_cells = len(part.table)
        n_shared = sum(piece.shape[1] for piece in of_part)
        n_inside = len(local_points(part.shape, degree)) - n_shared
        _check_size(base + n_cells * n_inside, layout)
        first = base + n_inside * np.arange(n_cells)
        inside = first[:, None] + np.arange(n_inside)
        of_part.append(inside.astype(np.int32))
        base += n_cells * n_inside
    return [np.hstack(of_part) for of_part in columns], base


def _append_shared_dofs(
    layout: Layout,
    dim: int,
    degree: int,
    base: int,
    columns: list[list[Int32s]],
    arity: int,
) -> int:
    """Append the dofs on edges or faces with ``arity`` corners to ``columns``.

    ``base`` is the number of dofs before; gives the number after.
    """
    # Dofs on an edge or face, the same for each.
    number_in_frame = numbers_in_frames(arity, degree)
    count = number_in_frame.shape[1]
    if not count:
        return base

    # Number the edges or faces, and list those of each cell.
    entities = find_facets(layout.entity_parts(dim, arity), arity, layout.n_nodes)
    chosen = select(entities, "all")
    _check_size(base + chosen.size * count, layout)
    entities_of_cell = [len(local_corners(p.shape, dim)) for p in layout.parts]
    most_of_a_cell = max(entities_of_cell)
    entity_of_cell = np.empty((layout.n_cells, most_of_a_cell), np.int32)
    fill_cell_facets(chosen, 0, entity_of_cell)

    # Entity f has the dofs from base + f * count on, in the order of its frame, on which
    # the cells around it agree.
    for part, of_part in zip(layout.parts, columns, strict=True):
        entity = entity_of_cell[part.start : part.start + len(part.table)]
        for k, corners in enumerate(local_corners(part.shape, dim)):
            if len(corners) == arity:
                frame = frame_of(part.table[:, list(corners)])
                first = np.int32(base) + entity[:, k, None] * np.int32(count)
                of_part.append(first + number_in_frame[frame])
    return base + chosen.size * count


def _check_size(size: int, layout: Layout) -> None:
    """Raise MeshprepError for more dofs than an index of 32 bits can number."""
    if size > INDEX_LIMIT:
        raise MeshprepError(
            f"{layout.n_cells} cells have more than 2^31-1 dofs: split the mesh"
        )


def _weights(shape: CellShape, point: Float64s) -> Float64s:
    """The weight of each corner at a point of the reference cell.

    These are the shape functions of first degree.
    """
    # Simplices: barycentric coordinates.
    if shape.n_corners == shape.dim + 1:
        return np.concatenate([[1 - point.sum()], point])
    # Lines, quads and hexahedra: a product of linear functions along the axes.
    corners = np.array(REFERENCE[shape.name])
    along_axes = np.where(corners == 1, point, 1 - point)
    return np.prod(along_axes, axis=1)


def facet_dofs(shape: CellShape, degree: int) -> list[Int64s]:
    """The local dofs that lie on each facet of a cell, its edges and vertices included."""
    # Lattice points have whole numbers in units of 1 / degree: they compare exactly.
    points = local_points(shape, degree)
    corners = np.array(REFERENCE[shape.name])
    local_dof = {tuple(p): k for k, p in enumerate(points.tolist())}
    dofs_of_facets = []
    for facet in shape.facets:
        # The points of its vertices, of its edges, and inside it.
        pieces = [degree * corners[list(facet)]]
        edges = []
        if shape.dim == 3:
            edges = [edge for edge in shape.edges if set(edge) <= set(facet)]
        entities = [entity for entity in (*edges, facet) if len(entity) > 1]
        pieces += [inner_points(corners[list(entity)], degree) for entity in entities]
        points_on_facet = np.concatenate(pieces).tolist()
        dofs = sorted(local_dof[tuple(point)] for point in points_on_facet)
        dofs_of_facets.append(np.array(dofs))
    return dofs_of_facets


# Points of a Lagrange element are whole numbers from 0 to the degree in reference
# coordinates: corner 0 of a simplex is the origin and corner i the unit vector i - 1; a
# quad and a hexahedron are the unit square and cube in VTK's order.
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

    Vertices come first, then the points of each edge from its first corner to its second,
    those of each face, and those inside; edges and faces as :class:`CellShape` lists them.
    ``shape`` is one of ``REFERENCE``. Gives (n_local, dim) int64.
    """
    corners = np.array(REFERENCE[shape.name])
    pieces = [degree * corners]
    for dim in range(1, shape.dim):
        pieces += [
            inner_points(corners[list(c)], degree) for c in local_corners(shape, dim)
        ]
    return np.concatenate([*pieces, inner_points(corners, degree)])


def inner_points(corners: Int64s, degree: int) -> Int64s:
    """Points inside a line, triangle, quad, tetrahedron or hexahedron with these corners.

    The first corner is the origin, the next ones (of a quad: the second and the last; of a
    hexahedron: 1, 3 and 4) the axes; the first axis runs fastest.
    """
    # The corners at the ends of the axes.
    n = len(corners)
    axes: tuple[int, ...]
    if n == 8:
        axes = (1, 3, 4)
    elif n == 4 and not _is_tetra(corners):
        axes = (1, 3)
    else:
        axes = tuple(range(1, n))

    # Steps along the axes, 1 to degree - 1 each; inside a simplex their sum is below the
    # degree, too.
    dim = len(axes)
    last_axis_fastest = np.indices((degree - 1,) * dim).reshape(dim, -1)
    steps = last_axis_fastest[::-1].T + 1
    is_simplex = n == dim + 1
    if is_simplex:
        steps = steps[steps.sum(axis=1) < degree]

    directions = corners[list(axes)] - corners[0]
    points: Int64s = degree * corners[0] + steps @ directions
    return points.reshape(-1, corners.shape[1])


def _is_tetra(corners: Int64s) -> bool:
    """Whether four corners span a volume; those of a quad lie in a plane."""
    if corners.shape[1] < 3:
        return False
    a, b, c = corners[1:] - corners[0]
    return bool((np.cross(a, b) * c).sum())


def frame_of(corners: Int32s) -> Int64s:
    """The frame of each row of corners, on which cells with a common edge or face agree.

    It starts at the lowest node and goes to the lower of the two next to it. Frame ``2 s``
    starts at corner ``s`` and goes on to the next corner, ``2 s + 1`` goes back.
    """
    arity = corners.shape[1]
    start = np.argmin(corners, axis=1)
    row = np.arange(len(corners))
    after = corners[row, (start + 1) % arity]
    before = corners[row, start - 1]
    return 2 * start + (before < after)


@cache
def numbers_in_frames(arity: int, degree: int) -> Int32s:
    """The numbers of the inner points of an edge or face in each of its frames.

    Gives (2 arity, n_points): in row ``f``, the place that each point, as the cell lists
    them, has among the points that frame ``f`` lists (:func:`frame_of`).
    """
    corners = np.array(REFERENCE[_FLAT[arity]])
    points = _inner_points_listed(corners, degree)
    numbers = []
    for start in range(arity):
        for step in (1, -1):
            turned = [(start + step * t) % arity for t in range(arity)]
            in_frame = _inner_points_listed(corners[turned], degree)
            numbers.append([in_frame.index(point) for point in points])
    return np.array(numbers, np.int32).reshape(2 * arity, len(points))


def _inner_points_listed(corners: Int64s, degree: int) -> list[Sequence[int]]:
    return [tuple(point) for point in inner_points(corners, degree).tolist()]
