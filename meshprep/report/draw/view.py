"""Pictures of a scene: the plane mesh, a part of it, or the surface of cells and a cut."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.types.maps import Float64s, Int32s, Int64s, UInt8s

from .colours import SHADES
from .raster import CELLS, FACETS, NO_ELEMENT, NODES, OUTSIDE, fill_cells, fill_nearest
from .scene import DrawnCells, Scene

AXES = "xyz"
# Whence a surface is seen: turned about z, then tilted.
TURN, TILT = np.radians(-35.0), np.radians(28.0)
# A cut beside the middle: structured meshes have faces in it.
BESIDE = 1.7e-3
TALLEST = 1.25
MARGIN = 0.01


@dataclass(frozen=True, eq=False)
class Picture:
    """The element that each pixel shows."""

    name: str  # {"mesh", "part", "surface", "cut"}
    # (height, width): ``OUTSIDE`` and ``NO_ELEMENT`` where there is none.
    element: Int32s
    shade: UInt8s  # (height, width): from 0, full light, to ``SHADES - 1``
    axes: tuple[str, ...]  # what runs to the right and up; empty where directions are mixed
    # Limits of the picture, in the mesh's units.
    x: tuple[float, float]
    y: tuple[float, float]
    at: str = ""  # where a cut is, or how much of the mesh a part shows


def draw_views(scene: Scene, width: int = 1000, part: float = 1.0) -> list[Picture]:
    """Draw what there is to see of a scene.

    The mesh is drawn ``width`` pixels wide, at most a quarter taller than that; the surface and a
    cut for cells in space. Of a plane mesh a second picture shows the share ``part`` of the nodes
    in its middle; 1 for none. O(cells + pixels).
    """
    if scene.xyz.shape[1] == 3:
        seen = [_surface(scene, width)]
        return seen if scene.dim == 2 else [*seen, _cut(scene, width)]
    whole = _limits(scene.xyz)
    views = [_flat(scene, whole, width, "mesh")]
    if part < 1:
        box = _middle(scene.xyz, part)
        share = float(np.max(np.ptp(box, axis=0) / np.ptp(whole, axis=0)))
        views.append(_flat(scene, box, width, "part", f"{100 * share:.2g} % of its width"))
    return views


@dataclass(frozen=True)
class _Frame:
    """From places in the mesh to pixels."""

    low: tuple[float, float]
    scale: float
    width: int
    height: int

    def pixels(self, xy: Float64s) -> Float64s:
        across = (xy[..., 0] - self.low[0]) * self.scale
        return np.stack([across, self.height - (xy[..., 1] - self.low[1]) * self.scale], axis=-1)

    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Those of the picture, in the mesh's units: across, and up."""
        (x, y), scale = self.low, self.scale
        return (x, x + self.width / scale), (y, y + self.height / scale)

    def blank(self) -> Int32s:
        return np.full((self.height, self.width), OUTSIDE, np.int32)


def _limits(xy: Float64s) -> Float64s:
    """Low and high corner, a little outside."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    size = high - low
    size = np.where(size > 0, size, np.max(size) * 0.05 or 1.0)
    size = np.maximum(size, _least(xy))
    return np.array([low - MARGIN * size, high + MARGIN * size])


def _least(xy: Float64s) -> float:
    """The least width of a picture: its pixels must be different numbers."""
    return max(1e-10 * float(np.abs(xy).max()), 1e-290)


def _middle(xy: Float64s, share: float) -> Float64s:
    """A square about the node in the middle that holds this share of the nodes."""
    centre = np.median(xy, axis=0)
    reach = np.quantile(np.abs(xy - centre).max(axis=1), share)
    reach = max(float(reach), _least(xy))
    return np.array([centre - reach, centre + reach])


def _frame(box: Float64s, width: int) -> _Frame:
    size, middle = box[1] - box[0], (box[0] + box[1]) / 2
    size[0] = max(size[0], size[1] / TALLEST)
    scale = float(width / size[0])
    x, y = (middle - size / 2).tolist()
    return _Frame((x, y), scale, width, max(1, round(float(size[1] * scale))))


def _flat(scene: Scene, box: Float64s, width: int, name: str, at: str = "") -> Picture:
    frame = _frame(box, width)
    out, xy = frame.blank(), frame.pixels(scene.xyz)
    for cells in scene.cells:
        first = cells.first
        if scene.kind == CELLS and first < 0:
            own = np.full_like(cells.corners, NO_ELEMENT)
            fill_cells(xy, cells.corners, own, 1, 0, out)
            continue
        fill_cells(xy, cells.corners, cells.owner, scene.kind, first, out)
    blank = np.zeros(out.shape, np.uint8)
    return Picture(name, out, blank, ("x", "y"), *frame.limits(), at)


def _surface(scene: Scene, width: int) -> Picture:
    corners, owner = surface(scene)
    seen = corners @ _eye().T
    frame = _frame(_limits(seen.reshape(-1, 3)[:, :2]), width)
    placed = np.concatenate([frame.pixels(seen[..., :2]), seen[..., 2:]], axis=2)
    out, near = frame.blank(), frame.blank()
    fill_nearest(np.ascontiguousarray(placed), owner, out, near)
    steps = _light(seen)
    shade = np.where(near >= 0, steps[near], 0).astype(np.uint8)
    return Picture("surface", out, shade, (), *frame.limits())


def _eye() -> Float64s:
    """Rows: to the right, up, and towards the eye."""
    right = np.array([np.cos(TURN), -np.sin(TURN), 0.0])
    ahead = np.array([np.sin(TURN), np.cos(TURN), 0.0])
    up = np.sin(TILT) * ahead + np.array([0.0, 0.0, np.cos(TILT)])
    toward = -np.cos(TILT) * ahead + np.array([0.0, 0.0, np.sin(TILT)])
    return np.stack([right, up, toward])


def _light(seen: Float64s) -> UInt8s:
    """How dark each triangle is; the light comes over the left shoulder."""
    normal = np.cross(seen[:, 1] - seen[:, 0], seen[:, 2] - seen[:, 0])
    length = np.linalg.norm(normal, axis=1)
    light = np.array([-0.35, 0.8, 0.5]) / np.linalg.norm([-0.35, 0.8, 0.5])
    facing = np.abs(normal @ light) / np.where(length > 0, length, 1)
    return np.minimum(SHADES * (1 - facing), SHADES - 1).astype(np.uint8)


def _cut(scene: Scene, width: int) -> Picture:
    """Across the shortest direction, where half the nodes lie on either side."""
    size = np.ptp(scene.xyz, axis=0)
    axis = 2 - int(np.argmin(size[::-1]))
    value = float(np.median(scene.xyz[:, axis]) + BESIDE * size[axis])
    others = [i for i in range(3) if i != axis]
    corners, owner = cut(scene, axis, value)
    frame = _frame(_limits(scene.xyz[:, others]), width)
    placed = np.zeros_like(corners)
    placed[..., :2] = frame.pixels(corners[..., others])
    out = frame.blank()
    fill_nearest(placed, owner, out, frame.blank())
    axes = (AXES[others[0]], AXES[others[1]])
    blank = np.zeros(out.shape, np.uint8)
    at = f"{AXES[axis]} = {value:.4g}"
    return Picture("cut", out, blank, axes, *frame.limits(), at)


Triangles = tuple[Float64s, Int32s]


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


def _tetrahedra(scene: Scene, cells: DrawnCells, met: Int64s) -> Iterator[Triangles]:
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
    chosen: Int64s,
    side: int,
    ends: tuple[int, int],
    *,
    inside: bool,
) -> Int32s | None:
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
    scene: Scene, a: Int32s, b: Int32s, owner: Int32s | None
) -> Iterator[tuple[tuple[Float64s, Float64s], Int32s]]:
    """The edge from a to b with its element, or its two halves with a node each."""
    start, end = scene.xyz[a], scene.xyz[b]
    if owner is not None:
        yield (start, end), owner
        return
    yield (start, (start + end) / 2), a
    yield ((start + end) / 2, end), b


def _slice(corners: Float64s, owner: Int32s, axis: int, value: float) -> Iterator[Triangles]:
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


def _crossing(corners: Float64s, height: Float64s, i: int, j: int) -> Float64s:
    """Where the edge from corner i to corner j has height 0."""
    share = height[:, i] / (height[:, i] - height[:, j])
    return corners[:, i] + share[:, None] * (corners[:, j] - corners[:, i])
