"""Pictures of a scene: the plane mesh, a part of it, or the surface of cells and a cut."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .colours import SHADES
from .raster import CELLS, NO_ELEMENT, OUTSIDE, fill_cells, fill_nearest
from .scene import Scene
from .solid import cut, surface

AXES = "xyz"
# Whence a surface is seen: turned about z, then tilted.
TURN, TILT = np.radians(-35.0), np.radians(28.0)
# A cut beside the middle: structured meshes have faces in it.
BESIDE = 1.7e-3
TALLEST = 1.25
# A plane mesh that is longer than so many times its other side is drawn stretched across.
LONGEST = 12.0
MARGIN = 0.01


@dataclass(frozen=True, eq=False)
class Picture:
    """The element that each pixel shows."""

    name: str  # {"mesh", "part", "surface", "cut"}
    # (height, width): ``OUTSIDE`` and ``NO_ELEMENT`` where there is none.
    element: NDArray[np.int32]
    shade: NDArray[np.uint8]  # (height, width): from 0, full light, to ``SHADES - 1``
    axes: tuple[str, ...]  # what runs to the right and up; empty where directions are mixed
    # Limits of the picture, in the mesh's units.
    x: tuple[float, float]
    y: tuple[float, float]
    at: str = ""  # where a cut is, or how much of the mesh a part shows
    # (float, float): how many times longer than true a thin mesh is drawn to the right and up.
    stretch: tuple[float, float] = (1.0, 1.0)


def draw_views(scene: Scene, width: int = 1000, part: float = 1.0) -> list[Picture]:
    """Draw what there is to see of a scene.

    The mesh is drawn ``width`` pixels wide, at most a quarter taller than that; the surface and a
    cut for cells in space. Of a plane mesh a second picture shows the share ``part`` of the nodes
    in its middle; 1 for none. Plane views of what is more than 12 times as long as wide are
    stretched. O(cells + pixels).
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
    scale: tuple[float, float]
    width: int
    height: int

    def pixels(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty((*xy.shape[:-1], 2))
        out[..., 0] = (xy[..., 0] - self.low[0]) * self.scale[0]
        out[..., 1] = self.height - (xy[..., 1] - self.low[1]) * self.scale[1]
        return out

    @property
    def x(self) -> tuple[float, float]:
        return self.low[0], self.low[0] + self.width / self.scale[0]

    @property
    def y(self) -> tuple[float, float]:
        return self.low[1], self.low[1] + self.height / self.scale[1]

    @property
    def stretch(self) -> tuple[float, float]:
        least = min(self.scale)
        return self.scale[0] / least, self.scale[1] / least

    def blank(self) -> NDArray[np.int32]:
        return np.full((self.height, self.width), OUTSIDE, np.int32)


def _limits(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Low and high corner, a little outside."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    size = high - low
    size = np.where(size > 0, size, np.max(size) * 0.05 or 1.0)
    size = np.maximum(size, _least(xy))
    return np.array([low - MARGIN * size, high + MARGIN * size])


def _least(xy: NDArray[np.float64]) -> float:
    """The least width of a picture: its pixels must be different numbers."""
    return max(1e-10 * float(np.abs(xy).max()), 1e-290)


def _middle(xy: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """A square about the node in the middle that holds this share of the nodes."""
    centre = np.median(xy, axis=0)
    reach = np.quantile(np.abs(xy - centre).max(axis=1), share)
    reach = max(float(reach), _least(xy))
    return np.array([centre - reach, centre + reach])


def _frame(box: NDArray[np.float64], width: int) -> _Frame:
    size = box[1] - box[0]
    stretch = np.maximum(1.0, np.max(size) / LONGEST / size)
    drawn = size * stretch
    if drawn[1] > TALLEST * drawn[0]:
        drawn = np.array([drawn[1] / TALLEST, drawn[1]])
        middle = (box[0] + box[1]) / 2
        box = np.array([middle - drawn / stretch / 2, middle + drawn / stretch / 2])
    scale = width / drawn[0] * stretch
    height = max(1, round(drawn[1] * width / drawn[0]))
    low = float(box[0, 0]), float(box[0, 1])
    return _Frame(low, (float(scale[0]), float(scale[1])), width, height)


def _flat(scene: Scene, box: NDArray[np.float64], width: int, name: str, at: str = "") -> Picture:
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
    return Picture(name, out, blank, ("x", "y"), frame.x, frame.y, at, frame.stretch)


def _surface(scene: Scene, width: int) -> Picture:
    corners, owner = surface(scene)
    seen = corners @ _eye().T
    frame = _frame(_limits(seen.reshape(-1, 3)[:, :2]), width)
    placed = np.concatenate([frame.pixels(seen[..., :2]), seen[..., 2:]], axis=2)
    out, near = frame.blank(), frame.blank()
    fill_nearest(np.ascontiguousarray(placed), owner, out, near)
    steps = _light(seen)
    shade = np.where(near >= 0, steps[near], 0).astype(np.uint8)
    return Picture("surface", out, shade, (), frame.x, frame.y)


def _eye() -> NDArray[np.float64]:
    """Rows: to the right, up, and towards the eye."""
    right = np.array([np.cos(TURN), -np.sin(TURN), 0.0])
    ahead = np.array([np.sin(TURN), np.cos(TURN), 0.0])
    up = np.sin(TILT) * ahead + np.array([0.0, 0.0, np.cos(TILT)])
    toward = -np.cos(TILT) * ahead + np.array([0.0, 0.0, np.sin(TILT)])
    return np.stack([right, up, toward])


def _light(seen: NDArray[np.float64]) -> NDArray[np.uint8]:
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
    return Picture("cut", out, blank, axes, frame.x, frame.y, at, frame.stretch)
