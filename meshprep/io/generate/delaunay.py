"""Truly unstructured meshes: Delaunay triangulations of random points in a box."""

from itertools import count
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ...kernels.arithmetic import power
from ...mesh import Mesh
from .common import box_mesh, check_count, shuffled


def delaunay2d(cells: int, seed: int, shuffle: bool) -> Mesh:
    """Triangles in the unit square, ``cells`` of them give or take a few."""
    check_count("cells", cells, 2)
    random = np.random.default_rng(seed)
    side = round(sqrt(cells / 2) / 2)
    # By Euler's formula: triangles = 2 inner nodes + nodes on the boundary - 2.
    inner = max(0, (cells - (4 * side + 4) + 2) // 2)
    points = _box_points(random, 2, inner, side)
    return _triangulate(points, shuffle, seed)


def delaunay3d(cells: int, seed: int, shuffle: bool) -> Mesh:
    """Tetrahedra in the unit cube, about ``cells`` of them."""
    check_count("cells", cells, 6)
    random = np.random.default_rng(seed)
    side = round(power(cells / 6.77, 1 / 3) / 2)
    # A random point brings 6.77 tetrahedra inside, about half as many on the boundary.
    inner = max(0, round((cells - 3.5 * (6 * side**2 + 12 * side)) / 6.77))
    points = _box_points(random, 3, inner, side)
    return _triangulate(points, shuffle, seed)


def _box_points(
    random: np.random.Generator, dim: int, inner: int, side: int
) -> NDArray[np.float64]:
    """Random points inside, ``side`` a direction on the sides and edges, and the corners."""
    found = [random.random((inner, dim))]
    # Each axis is free (2), at its low end (0) or at its high end (1).
    for place in np.ndindex(*[3] * dim):
        free = [axis for axis in range(dim) if place[axis] == 2]
        if len(free) < dim:
            points = np.empty((side ** len(free), dim))
            points[:] = place
            points[:, free] = random.random((len(points), len(free)))
            found.append(points)
    return np.concatenate(found)


def _triangulate(points: NDArray[np.float64], shuffle: bool, seed: int) -> Mesh:
    # Imported here, since it takes longer than other meshes take to make.
    from scipy.spatial import Delaunay

    points = points[_spatial_order(points)]
    cells = Delaunay(points).simplices
    volume = _volume(points, cells)
    # Four points of one side make a cell without volume.
    cells, volume = cells[volume != 0], volume[volume != 0]
    cells[volume < 0, :2] = cells[volume < 0, 1::-1]
    used = np.zeros(len(points), np.bool_)
    used[cells] = True
    cells = (np.cumsum(used) - 1)[cells]
    if not shuffle:
        cells = cells[np.argsort(cells.min(axis=1), kind="stable")]
    kind = {3: "triangle", 4: "tetra"}[cells.shape[1]]
    return shuffled(box_mesh(points[used], {kind: cells}), shuffle, seed)


def _spatial_order(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Row by row of a grid with one or two points a square, so that unshuffled means local."""
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
