"""Triangles of the elements of a scene: of plane cells, of a surface, of a cut."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.types.maps import Float64s, Int32s, Int64s

from .scene import CELLS, FACETS, NODES, DrawnCells, Scene

# Cells of a picture beyond which each shows one element: their sides are smaller than
# pixels.
CROWDED = 200_000
# No element of the loop.
NO_ELEMENT = -1


@dataclass(frozen=True, eq=False)
class Pieces:
    """Triangles, or tetrahedra before a cut, that each show one element."""

    corners: Float64s  # (n, k, dims)
    element: Int32s  # (n,): ``NO_ELEMENT`` where there is none
    # (n, 3): nodes of the mesh at each piece; pieces that share one are neighbours.
    nodes: Int32s

    def chosen(self, which: Int64s) -> "Pieces":
        """Some of the pieces, in this order."""
        return Pieces(self.corners[which], self.element[which], self.nodes[which])


def surface(scene: Scene, toward: Float64s) -> Pieces:
    """The outer faces towards the eye, or the cells where they form a curved surface.

    ``toward`` is the direction in which the eye is. Where elements are sides of cells, but
    not the outer ones (a loop over interior faces), a triangle shows the first element of
    its cell.
    """
    crowded = sum(len(cells.corners) for cells in scene.cells) > CROWDED
    gathered: list[Pieces] = []
    for cells in scene.cells:
        if scene.dim == 2:
            gathered += fans_of_cells(
                scene=scene,
                xyz=scene.xyz,
                cells=cells,
                chosen=np.arange(len(cells.corners)),
                whole=crowded,
            )
        else:
            gathered += _outside(scene, cells, toward)
    return concatenate(gathered, dims=3)


def cut(scene: Scene, axis: int, value: float) -> Pieces:
    """The cells where the plane ``x[axis] = value`` meets them.

    Each cell is cut into tetrahedra between its middle, the middle of a face and an edge of
    that face; these belong to the cell, the face, the edge or the nodes.
    """
    gathered: list[Pieces] = []
    for cells in scene.cells:
        height = scene.xyz[cells.corners, axis]
        reaches_below = height.min(axis=1) < value
        reaches_above = height.max(axis=1) > value
        met = np.flatnonzero(reaches_below & reaches_above)
        for tetrahedra in _tetrahedra(scene, cells, met):
            gathered += _slice(tetrahedra, axis, value)
    return concatenate(gathered, dims=3)


def concatenate(gathered: list[Pieces], dims: int) -> Pieces:
    """All triangles; none where nothing is to be drawn."""
    nothing = Pieces(
        corners=np.empty((0, 3, dims)),
        element=np.empty(0, np.int32),
        nodes=np.empty((0, 3), np.int32),
    )
    gathered = [*gathered, nothing]
    return Pieces(
        corners=np.concatenate([pieces.corners for pieces in gathered]),
        element=np.concatenate([pieces.element for pieces in gathered]).astype(np.int32),
        nodes=np.concatenate([pieces.nodes for pieces in gathered]),
    )


def fans_of_cells(
    scene: Scene, xyz: Float64s, cells: DrawnCells, chosen: Int64s, *, whole: bool
) -> Iterator[Pieces]:
    """Triangles of cells of a plane or a curved surface.

    With ``whole`` a cell shows one of its elements; else each of its sides or corners does.
    """
    nodes = cells.corners[chosen]
    n_sides = nodes.shape[1]
    # A cell of one element: triangles between its first corner and the other sides.
    if whole or scene.kind == CELLS:
        element = _first_of_cell(scene, cells, chosen)
        for j in range(1, n_sides - 1):
            fan = nodes[:, [0, j, j + 1]]
            yield Pieces(xyz[fan], element, fan)
        return
    # Others: triangles between its middle and each side.
    middle = xyz[nodes].mean(axis=1)
    for j in range(n_sides):
        k = (j + 1) % n_sides
        owner = _owner(scene=scene, cells=cells, chosen=chosen, side=j, ends=(j, k))
        yield from _beside_edges(
            xyz=xyz, middles=[middle], start=nodes[:, j], end=nodes[:, k], owner=owner
        )


def pixels_of_cells(
    scene: Scene, cells: DrawnCells, chosen: Int64s, places: Float64s, width: int
) -> Iterator[Pieces]:
    """Squares as large as a pixel, each for the first of the cells with places in it.

    A picture is 1 wide, and has ``width`` pixels.
    """
    pixel = np.floor(places * width).astype(np.int64)
    first = np.unique(pixel[:, 1] << 32 | pixel[:, 0] + 1, return_index=True)[1]
    corner = pixel[first] / width
    element = _first_of_cell(scene, cells, chosen[first])
    nodes = cells.corners[chosen[first], :3]
    for half in (((0, 0), (1, 0), (1, 1)), ((0, 0), (1, 1), (0, 1))):
        yield Pieces(corner[:, None] + np.array(half) / width, element, nodes)


def _outside(scene: Scene, cells: DrawnCells, toward: Float64s) -> Iterator[Pieces]:
    """Triangles of each outer face that looks towards the eye."""
    xyz = scene.xyz
    for f, local in enumerate(cells.shape.faces):
        chosen = np.flatnonzero(cells.exterior[:, f])
        corners = xyz[cells.corners[chosen]]
        face = corners[:, local]
        middle = face.mean(axis=1)
        # Orders of corners differ between files, so the middle of the cell tells what is
        # inside.
        normal = np.cross(face[:, 1] - face[:, 0], face[:, -1] - face[:, 0])
        outward = np.sum(normal * (middle - corners.mean(axis=1)), axis=1)
        looks = np.sign(normal @ toward) * np.sign(outward) >= 0
        chosen = chosen[looks]
        middle = middle[looks]
        nodes = cells.corners[chosen][:, local]
        for j in range(len(local)):
            k = (j + 1) % len(local)
            owner = _owner(
                scene=scene,
                cells=cells,
                chosen=chosen,
                side=f,
                ends=(local[j], local[k]),
            )
            if owner is not None and scene.kind == FACETS:
                # An outer side that is no element shows the first one of its cell.
                first = _first_of_cell(scene, cells, chosen)
                owner = np.where(owner == NO_ELEMENT, first, owner)
            yield from _beside_edges(
                xyz=xyz, middles=[middle], start=nodes[:, j], end=nodes[:, k], owner=owner
            )


def _tetrahedra(scene: Scene, cells: DrawnCells, met: Int64s) -> Iterator[Pieces]:
    """The tetrahedra of some cells."""
    # Each edge of a face, the middle of the face and that of the cell span one.
    nodes = cells.corners[met]
    centre = scene.xyz[nodes].mean(axis=1)
    for f, local in enumerate(cells.shape.faces):
        middle = scene.xyz[nodes[:, local]].mean(axis=1)
        for j in range(len(local)):
            a = local[j]
            b = local[(j + 1) % len(local)]
            owner = _owner(scene=scene, cells=cells, chosen=met, side=f, ends=(a, b))
            yield from _beside_edges(
                xyz=scene.xyz,
                middles=[centre, middle],
                start=nodes[:, a],
                end=nodes[:, b],
                owner=owner,
            )


def _owner(
    scene: Scene, cells: DrawnCells, chosen: Int64s, side: int, ends: tuple[int, int]
) -> Int32s | None:
    """The element of one piece of each chosen cell; None where nodes are elements."""
    if scene.kind == NODES:
        return None
    if scene.kind == CELLS:
        return _first_of_cell(scene, cells, chosen)
    if scene.kind == FACETS:
        return cells.owner[chosen, side]
    # An edge is told by its two ends, whichever comes first.
    edges = [set(edge) for edge in cells.shape.edges]
    return cells.owner[chosen, edges.index(set(ends))]


def _first_of_cell(scene: Scene, cells: DrawnCells, chosen: Int64s) -> Int32s:
    """An element of each chosen cell: itself, or the first on its sides or corners."""
    if scene.kind == NODES:
        return cells.corners[chosen, 0]
    if scene.kind == CELLS:
        if cells.first < 0:
            return np.full(chosen.size, NO_ELEMENT, np.int32)
        return (chosen + cells.first).astype(np.int32)
    # Sides without an element are passed over.
    owner = cells.owner[chosen]
    first = np.argmax(owner != NO_ELEMENT, axis=1)
    return owner[np.arange(chosen.size), first]


def _beside_edges(
    xyz: Float64s, middles: list[Float64s], start: Int32s, end: Int32s, owner: Int32s | None
) -> Iterator[Pieces]:
    """Pieces between middles and edges, or halves of these where nodes are elements."""
    nodes = np.stack([start, end, end], axis=1)
    if owner is not None:
        yield Pieces(np.stack([*middles, xyz[start], xyz[end]], axis=1), owner, nodes)
        return
    half = (xyz[start] + xyz[end]) / 2
    yield Pieces(np.stack([*middles, xyz[start], half], axis=1), start, nodes)
    yield Pieces(np.stack([*middles, half, xyz[end]], axis=1), end, nodes)


# By the number of corners below a plane: the edges of a tetrahedron that the plane cuts, as
# triangles. Corners are sorted by height.
CUT_EDGES = {
    1: (((0, 1), (0, 2), (0, 3)),),
    2: (((0, 2), (0, 3), (1, 3)), ((0, 2), (1, 3), (1, 2))),
    3: (((3, 0), (3, 1), (3, 2)),),
}


def _slice(tetrahedra: Pieces, axis: int, value: float) -> Iterator[Pieces]:
    """Triangles where tetrahedra meet a plane: one or two of each."""
    # Sort the corners by their height above the plane: the count below then tells the case.
    height = tetrahedra.corners[:, :, axis] - value
    order = np.argsort(height, axis=1)
    corners = np.take_along_axis(tetrahedra.corners, order[:, :, None], axis=1)
    height = np.take_along_axis(height, order, axis=1)
    n_below = (height < 0).sum(axis=1)
    # One or three corners below give a triangle, two give a quadrilateral, as two.
    for count, triangles in CUT_EDGES.items():
        met = n_below == count
        for edges in triangles:
            # Corners of the triangle are where edges cross the plane.
            points = [
                _crossing(corners=corners[met], height=height[met], i=i, j=j)
                for i, j in edges
            ]
            yield Pieces(
                corners=np.stack(points, axis=1),
                element=tetrahedra.element[met],
                nodes=tetrahedra.nodes[met],
            )


def _crossing(corners: Float64s, height: Float64s, i: int, j: int) -> Float64s:
    """Where the edge from corner i to corner j has height 0."""
    start = corners[:, i]
    end = corners[:, j]
    share = height[:, i] / (height[:, i] - height[:, j])
    return start + share[:, None] * (end - start)
