"""The C-mesh around a NACA0012 airfoil: the standard benchmark of OP2 [G12, R14, S19]."""

import math

import numpy as np
from numpy.typing import NDArray

from ...kernels.arithmetic import cosine_and_sine
from ...mesh import Mesh
from ...mesh.assemble import Block, assemble
from .box import check_count, shuffled, whole

WALL, FARFIELD = 1, 2
FLUID = {3: "fluid"}
# Half-width and height of the mesh, and the point inside the nose that the mesh wraps
# around, in the plane where the square root has unfolded it.
_EXTENT = 3.0
_FOCUS = 0.0077
_THICKNESS = (-0.127125232, -0.357907906, 0.291984971, -0.105174696)


def airfoil(cells: int, i: int, j: int, shuffle: bool, seed: int) -> Mesh:
    """Quads in a C around NACA0012: ``3 i`` along the C by ``j`` away from it.

    The two sides of the wake cut are one line of nodes here: ``i + 1`` nodes fewer than
    OP2's file, where they stand twice at the same place, and the cells across the cut are
    neighbours by their nodes. So the derived ``edges->cells`` has OP2's edges, ``3 i (j -
    1) + (3 i - 1) j + i``, and the boundary ``2 j + 4 i``. Cells are anticlockwise: with
    (dx, dy) from node 0 to node 1 of a derived edge, (dy, -dx) points out of cell 0; OP2's
    kernels take (dx, dy) the other way round, so they want the columns of ``edges->nodes``
    as ``index = [1, 0]``.

    ``cells`` is approximate (720,000 and 2,880,000 are OP2's two meshes); ``i`` and ``j``
    are exact counts in place of it, 0 to choose ``j = 1.5 i``.
    """
    i, j = _counts(cells, i, j)
    check_count("the number of nodes", (3 * i + 1) * (j + 1), 1)
    point = _node_positions(i, j)
    # number of node (column, row) at [row, column], one for both sides of the wake cut
    node = np.arange((j + 1) * (3 * i + 1), dtype=np.int32).reshape(j + 1, 3 * i + 1)
    node[1:] -= i + 1
    node[0, 2 * i :] = np.arange(i, -1, -1)
    corners = (node[:-1, :-1], node[:-1, 1:], node[1:, 1:], node[1:, :-1])
    quads = np.column_stack([c.reshape(-1) for c in corners])
    lines, bound = _boundary(node, i)
    blocks = [
        Block("line", lines, tags={"physical": bound}),
        Block("quad", quads, tags=whole(len(quads), FLUID)),
    ]
    names = {("physical", 1): {WALL: "wall", FARFIELD: "farfield"}, ("physical", 2): FLUID}
    # The copies of the wake's nodes come last in the first row.
    kept = np.concatenate([point[0, : 2 * i], point[1:].reshape(-1, 2)])
    mesh = assemble(kept, blocks, tag_names=names)[0]
    return shuffled(mesh, shuffle, seed)


def _counts(cells: int, i: int, j: int) -> tuple[int, int]:
    """The counts asked for, or those of about ``cells`` cells with j = 1.5 i."""
    if not i:
        check_count("cells", cells, 1)
        i = max(3, round(cells / (3 * j) if j else math.sqrt(cells / 4.5)))
    # Fewer than three cells around the airfoil would meet each other at its tail.
    check_count("i", i, 3)
    return i, j or round(1.5 * i)


def _node_positions(i: int, j: int) -> NDArray[np.float64]:
    """Node positions, ``(j + 1, 3 i + 1, 2)``: squared complex numbers on lines."""
    x = np.linspace(-_EXTENT, _EXTENT, 3 * i + 1)
    base = np.zeros(x.size)
    on_wall = slice(i + 1, 2 * i)
    base[on_wall] = _inner_wall(x[on_wall])
    rise = np.arange(j + 1)[:, None] / j
    y = base + (_EXTENT - base) * rise
    return np.stack([x * x - y * y, 2 * x * y], axis=2)


def _inner_wall(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The airfoil in the square-root plane, where it is nearly a parabola, at these x."""
    sine = np.array(
        [cosine_and_sine(angle)[1] for angle in np.linspace(0, math.pi / 2, 100)]
    )
    chord = sine * sine
    series = np.zeros(chord.size)
    for coefficient in _THICKNESS[::-1]:
        series = (series + coefficient) * chord
    thickness = 0.594689181 * (0.298222773 * np.sqrt(chord) + series)
    thickness[-1] = 0
    # the complex square root; the larger of its parts has no difference of near numbers
    ahead = chord - _FOCUS
    length = np.sqrt(ahead * ahead + thickness * thickness)
    larger = np.sqrt((length + np.abs(ahead)) / 2)
    smaller = thickness / (2 * larger)
    along, off = np.where(ahead > 0, (larger, smaller), (smaller, larger))
    knots = np.concatenate([-along[::-1], along[1:]])
    return _spline(knots, np.concatenate([off[::-1], off[1:]]), x)


def _spline(
    knots: NDArray[np.float64], values: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The not-a-knot cubic spline through values at knots, at some x."""
    step = np.diff(knots)
    rise = np.diff(values) / np.diff(knots)
    # tridiagonal equations for the slopes at the knots; at the ends the first two and the
    # last two pieces are one cubic
    before = np.concatenate([[0.0], step[1:], [step[-2] + step[-1]]])
    diagonal = np.concatenate([[step[1]], 2 * (step[:-1] + step[1:]), [step[-2]]])
    behind = np.concatenate([[step[0] + step[1]], step[:-1], [0.0]])
    right = np.concatenate(
        [[0.0], 3 * (step[1:] * rise[:-1] + step[:-1] * rise[1:]), [0.0]]
    )
    for end, (near, far) in {0: (0, 1), -1: (-1, -2)}.items():
        h = step[near]
        g = step[near] + step[far]
        right[end] = ((h + 2 * g) * step[far] * rise[near] + h * h * rise[far]) / g
    for k in range(1, knots.size):
        share = before[k] / diagonal[k - 1]
        diagonal[k] -= share * behind[k - 1]
        right[k] -= share * right[k - 1]
    slope = right / diagonal
    for k in range(knots.size - 2, -1, -1):
        slope[k] = (right[k] - behind[k] * slope[k + 1]) / diagonal[k]
    interval = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, step.size - 1)
    off = x - knots[interval]
    h = step[interval]
    turn = slope[interval] + slope[interval + 1] - 2 * rise[interval]
    bend = rise[interval] - slope[interval] - turn
    return values[interval] + off * (slope[interval] + off / h * (bend + off / h * turn))


def _boundary(
    node: NDArray[np.int32], i: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Lines with the mesh on their left, wall then far field, and their groups."""
    outer = np.concatenate([node[:, -1], node[-1, -2::-1], node[-2::-1, 0]])
    wall = node[0, i : 2 * i + 1]
    lines = [np.column_stack([chain[:-1], chain[1:]]) for chain in (wall, outer)]
    bound = np.repeat([WALL, FARFIELD], [len(part) for part in lines])
    return np.concatenate(lines), bound
