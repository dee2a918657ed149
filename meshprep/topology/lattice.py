"""The points of a Lagrange element: vertices, then edges, faces and the inside, each evenly spaced.

Points are whole numbers from 0 to the degree in the coordinates of the reference cell: corner 0 of
a simplex is the origin and corner ``i`` the unit vector ``i - 1``; a quad and a hexahedron are the
unit square and cube in VTK's order.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..mesh.cells import CellShape
from .layout import local_corners

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


def local_points(shape: CellShape, degree: int) -> NDArray[np.int64]:
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


def inner_points(corners: NDArray[np.int64], degree: int) -> NDArray[np.int64]:
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
    found: NDArray[np.int64] = degree * corners[0] + steps @ directions
    return found.reshape(-1, corners.shape[1])


def _is_tetra(corners: NDArray[np.int64]) -> bool:
    a, b, c = corners[1:] - corners[0]
    return bool((np.cross(a, b) * c).sum())


def frame_of(corners: NDArray[np.int32]) -> NDArray[np.int64]:
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
def numbers_in_frames(arity: int, degree: int) -> NDArray[np.int32]:
    """The number of every inner point of an edge or face in each of its ``2 * arity`` frames."""
    corners = np.array(REFERENCE[_FLAT[arity]])
    own = _listed(corners, degree)
    tables = []
    for start in range(arity):
        for step in (1, -1):
            seen = _listed(corners[[(start + step * t) % arity for t in range(arity)]], degree)
            tables.append([seen.index(point) for point in own])
    return np.array(tables, np.int32).reshape(2 * arity, len(own))


def _listed(corners: NDArray[np.int64], degree: int) -> list[Sequence[int]]:
    return [tuple(point) for point in inner_points(corners, degree).tolist()]
