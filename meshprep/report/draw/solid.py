"""Cells in space as triangles: what their surface shows, and what a plane cut through them does."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .raster import CELLS, FACETS, NO_ELEMENT, NODES
from .scene import DrawnCells, Scene

Triangles = tuple[NDArray[np.float64], NDArray[np.int32]]


def surface(scene: Scene) -> Triangles:
    """The outside of the cells, or the cells themselves where they form a curved surface.

    Gives triangles (n, 3, 3) and the element of each. Where sides have elements but those outside
    have not (a loop over the interior faces), it is the first of their cell.
    """
    pieces = [piece for cells in scene.cells for piece in _outside(scene, cells)]
    return _joined(pieces)


def cut(scene: Scene, axis: int, value: float) -> Triangles:
    """The cells where the plane ``x[axis] = value`` meets them.

    Each cell is cut into tetrahedra between its middle, the middle of a face and an edge of that
    face; these belong to the cell, the face, the edge or the nodes. Gives triangles as
    :func:`surface` does.
    """
    pieces: list[Triangles] = []
    for cells in scene.cells:
        at = scene.xyz[cells.corners, axis]
        met = np.flatnonzero((at.min(axis=1) < value) & (at.max(axis=1) > value))
        for corners, owner in _tetrahedra(scene, cells, met):
            pieces += _slice(corners, owner, axis, value)
    return _joined(pieces)


def _joined(pieces: list[Triangles]) -> Triangles:
    if not pieces:
        return np.empty((0, 3, 3)), np.empty(0, np.int32)
    corners, owner = zip(*pieces, strict=True)
    return np.concatenate(corners), np.concatenate(owner).astype(np.int32)


def _outside(scene: Scene, cells: DrawnCells) -> Iterator[Triangles]:
    """Triangles between the middle of each outer face and its edges."""
    curved = scene.dim == 2
    faces = [tuple(range(cells.shape.n_corners))] if curved else list(cells.shape.faces)
    for f, local in enumerate(faces):
        chosen = np.arange(len(cells.corners)) if curved else np.flatnonzero(cells.exterior[:, f])
        nodes = cells.corners[chosen][:, local]
        middle = scene.xyz[nodes].mean(axis=1)
        for j in range(len(local)):
            k = (j + 1) % len(local)
            side = j if curved else f
            owner = _owner(scene, cells, chosen, side, (local[j], local[k]), inside=False)
            for ends, own in _halves(scene, nodes[:, j], nodes[:, k], owner):
                yield np.stack([middle, *ends], axis=1), own


def _tetrahedra(scene: Scene, cells: DrawnCells, met: NDArray[np.int64]) -> Iterator[Triangles]:
    nodes = cells.corners[met]
    centre = scene.xyz[nodes].mean(axis=1)
    for f, local in enumerate(cells.shape.faces):
        middle = scene.xyz[nodes[:, local]].mean(axis=1)
        for j in range(len(local)):
            a, b = local[j], local[(j + 1) % len(local)]
            owner = _owner(scene, cells, met, f, (a, b), inside=True)
            for ends, own in _halves(scene, nodes[:, a], nodes[:, b], owner):
                yield np.stack([centre, middle, *ends], axis=1), own


def _owner(
    scene: Scene,
    cells: DrawnCells,
    chosen: NDArray[np.int64],
    side: int,
    ends: tuple[int, int],
    *,
    inside: bool,
) -> NDArray[np.int32] | None:
    """The elements of one piece of each chosen cell; None where its nodes are the elements."""
    if scene.kind == NODES:
        return None
    if scene.kind == CELLS:
        own = chosen + cells.first if cells.first >= 0 else np.full(chosen.size, NO_ELEMENT)
        return own.astype(np.int32)
    if scene.kind == FACETS:
        own = cells.owner[chosen, side]
        if not inside:
            first = np.argmax(cells.owner[chosen] >= 0, axis=1)
            own = np.where(own >= 0, own, cells.owner[chosen, first])
    else:
        pairs = [set(e) for e in cells.shape.edges]
        own = cells.owner[chosen, pairs.index(set(ends))]
    return np.where(own >= 0, own, NO_ELEMENT).astype(np.int32)


def _halves(
    scene: Scene, a: NDArray[np.int32], b: NDArray[np.int32], owner: NDArray[np.int32] | None
) -> Iterator[tuple[tuple[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int32]]]:
    """The edge from a to b with its element, or its two halves with a node each."""
    start, end = scene.xyz[a], scene.xyz[b]
    if owner is not None:
        yield (start, end), owner
        return
    yield (start, (start + end) / 2), a
    yield ((start + end) / 2, end), b


def _slice(
    corners: NDArray[np.float64], owner: NDArray[np.int32], axis: int, value: float
) -> Iterator[Triangles]:
    """Triangles where tetrahedra ``(n, 4, 3)`` meet a plane: one or two of each."""
    height = corners[:, :, axis] - value
    order = np.argsort(height, axis=1)
    corners = np.take_along_axis(corners, order[:, :, None], axis=1)
    height = np.take_along_axis(height, order, axis=1)
    below = (height < 0).sum(axis=1)
    for count, paths in (
        (1, (((0, 1), (0, 2), (0, 3)),)),
        (2, (((0, 2), (0, 3), (1, 3)), ((0, 2), (1, 3), (1, 2)))),
        (3, (((3, 0), (3, 1), (3, 2)),)),
    ):
        these = below == count
        for path in paths:
            points = [_crossing(corners[these], height[these], i, j) for i, j in path]
            yield np.stack(points, axis=1), owner[these]


def _crossing(
    corners: NDArray[np.float64], height: NDArray[np.float64], i: int, j: int
) -> NDArray[np.float64]:
    """Where the edge from corner i to corner j has height 0."""
    share = height[:, i] / (height[:, i] - height[:, j])
    return corners[:, i] + share[:, None] * (corners[:, j] - corners[:, i])
