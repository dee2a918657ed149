"""Structured boxes, split into cells of one type or of several."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from ...mesh.cells import SHAPES
from .common import box_mesh, check_count, shuffled

_HEX_FACES = SHAPES["hexahedron"].faces
# Corners of the cells that a square or cube is cut into; 8 is the cube's centre. Every face of a
# cube that is cut in two is cut from its lowest corner to its highest, so that neighbours agree.
_PATTERNS: dict[str, tuple[tuple[int, ...], ...]] = {
    "quad": ((0, 1, 2, 3),),
    "triangle": ((0, 1, 2), (0, 2, 3)),
    "hexahedron": (tuple(range(8)),),
    "wedge": ((0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7)),
    "tetra": (
        *((0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6)),
        *((0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6)),
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
    return shuffled(box_mesh(points, {type: _cut(corners, type)}), shuffle, seed)


def mixed2d(nx: int, ny: int, shuffle: bool, seed: int) -> Mesh:
    """Quads in the left half, pairs of triangles in the right half."""
    check_count("nx", nx, 2)
    points, corners = _grid((nx, ny))
    left = np.arange(len(corners)) % nx < nx // 2
    tables = {"quad": _cut(corners[left], "quad"), "triangle": _cut(corners[~left], "triangle")}
    return shuffled(box_mesh(points, tables), shuffle, seed)


def mixed3d(nx: int, ny: int, nz: int, shuffle: bool, seed: int) -> Mesh:
    """From left to right: wedges, hexahedra, one layer of pyramids, tetrahedra; conforming."""
    check_count("nx", nx, 4)
    points, corners = _grid((nx, ny, nz))
    column = np.arange(len(corners)) % nx
    hexes, bridge = (nx - 1) // 3, nx - 1 - (nx - 1) // 3
    zones = np.searchsorted([hexes, bridge, bridge + 1], column, side="right")
    wedge, hexa, middle, tetra = (corners[zones == z] for z in range(4))
    points, middle = _with_centres(points, middle)
    tables = {
        "wedge": _cut(wedge, "wedge"),
        "hexahedron": hexa,
        "pyramid": _apply(middle, _BRIDGE["pyramid"]),
        "tetra": np.concatenate([_apply(middle, _BRIDGE["tetra"]), _cut(tetra, "tetra")]),
    }
    return shuffled(box_mesh(points, tables), shuffle, seed)


def _grid(counts: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Nodes of the unit square or cube, x fastest, and the corners of each part, in VTK's order."""
    for name, count in zip(("nx", "ny", "nz"), counts, strict=False):
        check_count(name, count, 1)
    n_nodes = int(np.prod([c + 1 for c in counts], dtype=object))
    check_count("the number of nodes", n_nodes, 1)
    axes = [np.linspace(0, 1, c + 1) for c in counts]
    mesh = np.meshgrid(*axes[::-1], indexing="ij")
    points = np.column_stack([m.reshape(-1) for m in mesh[::-1]])
    node = np.arange(n_nodes).reshape([c + 1 for c in counts[::-1]])
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    steps = [(0, *s) for s in square] + [(1, *s) for s in square]
    chosen = [s[-len(counts) :] for s in (steps if len(counts) == 3 else steps[:4])]
    parts = [_shifted(node, step) for step in chosen]
    return points, np.column_stack(parts)


def _shifted(node: NDArray[np.int64], step: tuple[int, ...]) -> NDArray[np.int64]:
    ranges = tuple(slice(s, n - 1 + s) for s, n in zip(step, node.shape, strict=True))
    return node[ranges].reshape(-1)


def _with_centres(
    points: NDArray[np.float64], corners: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Add a node in the middle of each cube, as its corner 8."""
    centre = len(points) + np.arange(len(corners))
    middle = sum(points[column] for column in corners.T) / 8
    return np.concatenate([points, middle]), np.column_stack([corners, centre])


def _cut(corners: NDArray[np.int64], cell_type: str) -> NDArray[np.int64]:
    return _apply(corners, _PATTERNS[cell_type])


def _apply(corners: NDArray[np.int64], pattern: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    """The cells of a pattern in every square or cube, those of one side by side."""
    rows = np.asarray(pattern)
    return corners[:, rows].reshape(-1, rows.shape[1])
