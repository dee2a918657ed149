"""Meshes of boxes: structured, of cells of one type or several; Delaunay, of random points.

Sides are tagged; what other generators share, too: shuffling, checking sizes.
"""

from collections.abc import Mapping
from itertools import count
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT
from meshprep_runtime.types.ordering import Ordering

from ...kernels.arithmetic import power
from ...mesh import Mesh
from ...mesh.assemble import Block, assemble
from ...mesh.cells import SHAPES
from ...topology import derivable, derive

# Group numbers 1, 2, ... of the low and high end of each axis.
SIDES = {
    2: ("left", "right", "bottom", "top"),
    3: ("left", "right", "front", "back", "bottom", "top"),
}
# The group of all cells, which programs want that know cells by their groups; behind the
# sides.
DOMAIN = {2: {5: "domain"}, 3: {7: "domain"}}
_FACET_TYPES = {2: "line", 3: "triangle", 4: "quad"}

Tables = Mapping[str, NDArray[np.integer]]


def box_mesh(points: NDArray[np.float64], tables: Tables) -> Mesh:
    """A mesh that fills a box, with the cells of its sides, all in groups of ``physical``.

    Nodes on a side have exactly the side's coordinate.
    """
    dim = points.shape[1]
    cells = [
        Block(t, np.asarray(rows, np.int32), tags=whole(len(rows), DOMAIN[dim]))
        for t, rows in tables.items()
        if len(rows)
    ]
    mesh = assemble(points, cells)[0]
    wanted = [
        n for n in derivable(mesh) if n.startswith("boundary_") and n.endswith("->nodes")
    ]
    closed = derive(mesh, wanted)
    boundary = [_tagged(points, closed.map(n).table) for n in wanted]
    sides = dict(enumerate(SIDES[dim], start=1))
    names = {("physical", dim - 1): sides, ("physical", dim): DOMAIN[dim]}
    return assemble(points, [*boundary, *cells], tag_names=names)[0]


def whole(n: int, named: Mapping[int, str]) -> dict[str, NDArray[np.int64]]:
    """The tag that puts ``n`` cells into the one group of a table of names."""
    return {"physical": np.full(n, next(iter(named)))}


def _tagged(points: NDArray[np.float64], facets: NDArray[np.int32]) -> Block:
    """The facets whose nodes are all on one side, with that side's number."""
    side = np.zeros(len(facets), np.int64)
    for axis in range(points.shape[1]):
        value = points[:, axis]
        for end, limit in enumerate((value.min(), value.max())):
            side[(value == limit)[facets].all(axis=1)] = 2 * axis + end + 1
    kept = side > 0
    return Block(_FACET_TYPES[facets.shape[1]], facets[kept], tags={"physical": side[kept]})


def shuffled(mesh: Mesh, shuffle: bool, seed: int) -> Mesh:
    """The mesh, with nodes and cells of each dimension in random order if ``shuffle``."""
    if not shuffle:
        return mesh
    random = np.random.default_rng(seed)
    names = ["nodes", *(s.name for s in mesh.cell_sets)]
    return mesh.renumber(
        {n: Ordering.from_new_to_old(random.permutation(mesh.size(n)), n) for n in names}
    )


def check_count(name: str, value: int, least: int) -> None:
    """Raise MeshprepError unless ``least <= value <= 2^31 - 1``."""
    if not least <= value <= INDEX_LIMIT:
        raise MeshprepError(f"{name} is {value}, must be within {least}..{INDEX_LIMIT}")


_HEX_FACES = SHAPES["hexahedron"].faces
# Corners of the cells that a square or cube is cut into; 8 is the cube's centre. Every face
# of a cube that is cut in two is cut from its lowest corner to its highest, so that
# neighbours agree.
_PATTERNS: dict[str, tuple[tuple[int, ...], ...]] = {
    "quad": ((0, 1, 2, 3),),
    "triangle": ((0, 1, 2), (0, 2, 3)),
    "hexahedron": (tuple(range(8)),),
    "wedge": ((0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7)),
    "tetra": (
        (0, 1, 2, 6),
        (0, 2, 3, 6),
        (0, 3, 7, 6),
        (0, 7, 4, 6),
        (0, 4, 5, 6),
        (0, 5, 1, 6),
    ),
    "pyramid": tuple((*face[::-1], 8) for face in _HEX_FACES),
}
# From a cube's quad on the left to cubes of tetrahedra on all other sides.
_LEFT = (0, 4, 7, 3)
_OTHERS = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (3, 7, 6, 2))
_BRIDGE = {
    "pyramid": ((*_LEFT[::-1], 8),),
    "tetra": tuple(t for p, q, r, s in _OTHERS for t in ((p, r, q, 8), (p, s, r, 8))),
}


def box(nx: int, ny: int, nz: int, type: str, shuffle: bool, seed: int) -> Mesh:
    """``nx`` by ``ny`` (by ``nz``) squares or cubes, each split into cells of ``type``."""
    if type not in _PATTERNS:
        raise MeshprepError(f"type '{type}' is unknown: choose {', '.join(_PATTERNS)}")
    points, corners = _grid((nx, ny, nz)[: SHAPES[type].dim])
    if type == "pyramid":
        points, corners = _with_centres(points, corners)
    return shuffled(box_mesh(points, {type: _cut_corners(corners, type)}), shuffle, seed)


def mixed2d(nx: int, ny: int, shuffle: bool, seed: int) -> Mesh:
    """Quads in the left half, pairs of triangles in the right half."""
    check_count("nx", nx, 2)
    points, corners = _grid((nx, ny))
    left = np.arange(len(corners)) % nx < nx // 2
    tables = {
        "quad": _cut_corners(corners[left], "quad"),
        "triangle": _cut_corners(corners[~left], "triangle"),
    }
    return shuffled(box_mesh(points, tables), shuffle, seed)


def mixed3d(nx: int, ny: int, nz: int, shuffle: bool, seed: int) -> Mesh:
    """Wedges, hexahedra, pyramids, tetrahedra, from left to right; conforming."""
    check_count("nx", nx, 4)
    points, corners = _grid((nx, ny, nz))
    column = np.arange(len(corners)) % nx
    hexes = (nx - 1) // 3
    bridge = nx - 1 - (nx - 1) // 3
    zones = np.searchsorted([hexes, bridge, bridge + 1], column, side="right")
    wedge, hexa, middle, tetra = (corners[zones == z] for z in range(4))
    points, middle = _with_centres(points, middle)
    tables = {
        "wedge": _cut_corners(wedge, "wedge"),
        "hexahedron": hexa,
        "pyramid": _apply(middle, _BRIDGE["pyramid"]),
        "tetra": np.concatenate(
            [_apply(middle, _BRIDGE["tetra"]), _cut_corners(tetra, "tetra")]
        ),
    }
    return shuffled(box_mesh(points, tables), shuffle, seed)


def _grid(counts: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Nodes of the unit square or cube, x fastest, and corners of its parts as in VTK."""
    for name, each in zip(("nx", "ny", "nz"), counts, strict=False):
        check_count(name, each, 1)
    n_nodes = int(np.prod([c + 1 for c in counts], dtype=object))
    check_count("the number of nodes", n_nodes, 1)
    axes = [np.linspace(0, 1, c + 1) for c in counts]
    mesh = np.meshgrid(*axes[::-1], indexing="ij")
    points = np.column_stack([m.reshape(-1) for m in mesh[::-1]])
    node = np.arange(n_nodes).reshape([c + 1 for c in counts[::-1]])
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    steps = [(0, *s) for s in square] + [(1, *s) for s in square]
    chosen = [s[-len(counts) :] for s in (steps if len(counts) == 3 else steps[:4])]
    # A corner of all parts is the grid of nodes without its first or last layers.
    corners = []
    for start in chosen:
        part = tuple(slice(s, s + n) for s, n in zip(start, counts[::-1], strict=True))
        corners.append(node[part].reshape(-1))
    return points, np.column_stack(corners)


def _with_centres(
    points: NDArray[np.float64], corners: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Add a node in the middle of each cube, as its corner 8."""
    centre = len(points) + np.arange(len(corners))
    middle = sum(points[column] for column in corners.T) / 8
    return np.concatenate([points, middle]), np.column_stack([corners, centre])


def _cut_corners(corners: NDArray[np.int64], cell_type: str) -> NDArray[np.int64]:
    return _apply(corners, _PATTERNS[cell_type])


def _apply(
    corners: NDArray[np.int64], pattern: tuple[tuple[int, ...], ...]
) -> NDArray[np.int64]:
    """The cells of a pattern in every square or cube, those of one side by side."""
    rows = np.asarray(pattern)
    return corners[:, rows].reshape(-1, rows.shape[1])


def delaunay2d(cells: int, seed: int, shuffle: bool) -> Mesh:
    """Triangles in the unit square, ``cells`` of them give or take a few."""
    check_count("cells", cells, 2)
    random = np.random.default_rng(seed)
    side = round(sqrt(cells / 2) / 2)
    # By Euler's formula: triangles = 2 inner nodes + nodes on the boundary - 2.
    inner = max(0, (cells - (4 * side + 4) + 2) // 2)
    points = _box_points(random=random, dim=2, inner=inner, side=side)
    return _triangulate(points, shuffle, seed)


def delaunay3d(cells: int, seed: int, shuffle: bool) -> Mesh:
    """Tetrahedra in the unit cube, about ``cells`` of them."""
    check_count("cells", cells, 6)
    random = np.random.default_rng(seed)
    side = round(power(cells / 6.77, 1 / 3) / 2)
    # A random point brings 6.77 tetrahedra inside, about half as many on the boundary.
    inner = max(0, round((cells - 3.5 * (6 * side**2 + 12 * side)) / 6.77))
    points = _box_points(random=random, dim=3, inner=inner, side=side)
    return _triangulate(points, shuffle, seed)


def _box_points(
    random: np.random.Generator, dim: int, inner: int, side: int
) -> NDArray[np.float64]:
    """Random points inside, ``side`` a direction on sides and edges, and the corners."""
    pieces = [random.random((inner, dim))]
    # Each axis is free (2), at its low end (0) or at its high end (1).
    for place in np.ndindex(*[3] * dim):
        free = [axis for axis in range(dim) if place[axis] == 2]
        if len(free) < dim:
            points = np.empty((side ** len(free), dim))
            points[:] = place
            points[:, free] = random.random((len(points), len(free)))
            pieces.append(points)
    return np.concatenate(pieces)


def _triangulate(points: NDArray[np.float64], shuffle: bool, seed: int) -> Mesh:
    # Imported here, since it takes longer than other meshes take to make.
    from scipy.spatial import Delaunay

    points = points[_spatial_order(points)]
    cells = Delaunay(points).simplices
    volume = _volume(points, cells)
    # Four points of one side make a cell without volume.
    cells = cells[volume != 0]
    volume = volume[volume != 0]
    # Swap two nodes of each cell that is inside out.
    cells[volume < 0, :2] = cells[volume < 0, 1::-1]
    # Nodes that no cell has left with the flat cells: number the others anew.
    used = np.zeros(len(points), np.bool_)
    used[cells] = True
    cells = (np.cumsum(used) - 1)[cells]
    if not shuffle:
        cells = cells[np.argsort(cells.min(axis=1), kind="stable")]
    kind = {3: "triangle", 4: "tetra"}[cells.shape[1]]
    return shuffled(box_mesh(points[used], {kind: cells}), shuffle, seed)


def _spatial_order(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Points row by row, one or two a square of a grid, so that unshuffled means local."""
    dim = points.shape[1]
    # the fewest rows whose squares, or cubes, are as many as the points
    rows = next(k for k in count(1) if k**dim >= len(points))
    strips = [(points[:, axis] * rows).astype(np.int64) for axis in range(1, dim)]
    return np.lexsort([points[:, 0], *strips])


def _volume(points: NDArray[np.float64], cells: NDArray[np.integer]) -> NDArray[np.float64]:
    """Twice the area or six times the volume; exactly 0 in a plane across an axis."""
    a, *rest = (points[column] for column in cells.T)
    edges = [b - a for b in rest]
    if len(edges) == 2:
        (x1, y1), (x2, y2) = (e.T for e in edges)
        return x1 * y2 - x2 * y1
    x, y, z = (edges[0] * np.cross(edges[1], edges[2])).T
    return x + y + z
