"""Views of a scene as triangles: the plane mesh, a part, a surface, a cut."""

from dataclasses import dataclass

import numpy as np

from meshprep_runtime.types.maps import Float64s, Int32s

from .pieces import (
    CROWDED,
    NO_ELEMENT,
    Pieces,
    concatenate,
    cut,
    fans_of_cells,
    pixels_of_cells,
    surface,
)
from .scene import Scene

AXES = "xyz"
# Direction from which a surface is seen: turned about z, then tilted.
TURN = np.radians(-35.0)
TILT = np.radians(28.0)
# Distance of a cut from the middle, where structured meshes have faces, over the size.
BESIDE = 1.7e-3
# Most height of a picture over its width.
TALLEST = 1.25
# Room on each side of the mesh, over its size.
MARGIN = 0.01
# Where the lamp is, over the left shoulder: to the right, up, and towards the eye.
LAMP = np.array([-0.5, 0.6, 0.65]) / np.linalg.norm([-0.5, 0.6, 0.65])
# Brightness of a triangle that faces away from the lamp, and what the lamp adds.
LEAST_LIGHT = 0.55
LAMP_LIGHT = 0.55


@dataclass(frozen=True, eq=False)
class View:
    """What a picture shows: triangles, of which later ones hide earlier ones."""

    name: str  # {"mesh", "part", "surface", "cut"}
    # Corners (n, 3, 2) from the lower left of the picture, whose width is 1.
    pieces: Pieces
    light: Float64s  # (n,): brightness of each triangle, up to 1
    height: float  # of the picture, whose width is 1
    axes: tuple[str, ...]  # the axes to the right and up; none where directions are mixed
    # Limits of the picture, in the mesh's units.
    x: tuple[float, float]
    y: tuple[float, float]
    at: str = ""  # where a cut is, or how much of the mesh a part shows

    def count_elements(self) -> int:
        """How many different elements are drawn. O(triangles)."""
        element = self.pieces.element
        return int(np.unique(element[element != NO_ELEMENT]).size)


def views_of(scene: Scene, width: int = 1000, part: float = 1.0) -> list[View]:
    """The views of a scene: the plane mesh; for cells in space the surface and a cut.

    Pictures will be ``width`` pixels wide, at most a quarter taller than that. Of a plane
    mesh a second picture shows the share ``part`` of the nodes in its middle; 1 for none.
    O(cells).
    """
    # In space the surface hides what lies inside: show a cut, too.
    if scene.xyz.shape[1] == 3:
        views = [_surface_view(scene)]
        if scene.dim == 3:
            views.append(_cut_view(scene))
        return views
    # A large plane mesh is shown whole, and a part of it near enough to see cells.
    whole = _limits(scene.xyz)
    views = [_flat_view(scene=scene, box=whole, width=width, name="mesh")]
    if part < 1:
        box = _middle(scene.xyz, part)
        width_of_part = np.ptp(box, axis=0)
        width_of_whole = np.ptp(whole, axis=0)
        share = float(np.max(width_of_part / width_of_whole))
        views.append(
            _flat_view(
                scene=scene,
                box=box,
                width=width,
                name="part",
                at=f"{100 * share:.2g} % of its width",
            )
        )
    return views


@dataclass(frozen=True)
class _Frame:
    """The rectangle of a picture in the mesh."""

    low: tuple[float, float]  # lower left corner
    width: float
    height: float

    def placed(self, xy: Float64s) -> Float64s:
        """Places in the mesh as places in the picture, whose width is 1."""
        return (xy - np.array(self.low)) / self.width

    def view(
        self,
        name: str,
        pieces: Pieces,
        light: Float64s,
        axes: tuple[str, ...] = (),
        at: str = "",
    ) -> View:
        """The view of pieces whose corners are places in the picture."""
        x, y = self.low
        return View(
            name=name,
            pieces=pieces,
            light=light,
            height=self.height / self.width,
            axes=axes,
            x=(x, x + self.width),
            y=(y, y + self.height),
            at=at,
        )


def _limits(xy: Float64s) -> Float64s:
    """The low and the high corner of a picture of these places, with a margin."""
    low = xy.min(axis=0)
    high = xy.max(axis=0)
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


def _frame(box: Float64s) -> _Frame:
    """The frame about a box, widened where that is too tall."""
    size = box[1] - box[0]
    middle = (box[0] + box[1]) / 2
    size[0] = max(size[0], size[1] / TALLEST)
    x, y = (middle - size / 2).tolist()
    return _Frame(low=(x, y), width=float(size[0]), height=float(size[1]))


def _flat_view(scene: Scene, box: Float64s, width: int, name: str, at: str = "") -> View:
    """A picture of a plane mesh inside a box."""
    # Place the mesh in the picture: its width is 1.
    frame = _frame(box)
    xy = frame.placed(scene.xyz)
    # Leave out cells beside the picture.
    boxes = [_boxes(xy, cells.corners) for cells in scene.cells]
    top = frame.height / frame.width
    drawn = [
        np.flatnonzero((high >= 0).all(axis=1) & (low <= (1, top)).all(axis=1))
        for low, high in boxes
    ]
    crowded = sum(chosen.size for chosen in drawn) > CROWDED
    gathered: list[Pieces] = []
    for cells, (low, high), chosen in zip(scene.cells, boxes, drawn, strict=True):
        large = np.ones(chosen.size, bool)
        if crowded:
            extent = np.max(high - low, axis=1)
            large = extent[chosen] > 1 / width
        gathered += fans_of_cells(
            scene=scene, xyz=xy, cells=cells, chosen=chosen[large], whole=crowded
        )
        # Of cells smaller than a pixel one stands for all in its pixel.
        small = chosen[~large]
        middle = (low[small] + high[small]) / 2
        gathered += pixels_of_cells(
            scene=scene, cells=cells, chosen=small, places=middle, width=width
        )
    pieces = concatenate(gathered, dims=2)
    return frame.view(
        name=name,
        pieces=pieces,
        light=np.ones(pieces.element.size),
        axes=("x", "y"),
        at=at,
    )


def _boxes(xy: Float64s, corners: Int32s) -> tuple[Float64s, Float64s]:
    """The low and the high corner of a box about each cell."""
    low = xy[corners[:, 0]]
    high = low
    # A corner of all cells at a time: numpy is slow along short axes.
    for column in corners.T[1:]:
        low = np.minimum(low, xy[column])
        high = np.maximum(high, xy[column])
    return low, high


def _surface_view(scene: Scene) -> View:
    """The outside of the mesh, seen from above and from one side, with shades."""
    eye = _eye()
    pieces = surface(scene, toward=eye[2])
    # To the right, up, and towards the eye.
    turned = pieces.corners @ eye.T
    frame = _frame(_limits(turned.reshape(-1, 3)[:, :2]))
    light = _light(turned)
    # What is nearer to the eye is drawn later.
    order = np.argsort(turned[..., 2].mean(axis=1), kind="stable")
    flat = Pieces(frame.placed(turned[..., :2]), pieces.element, pieces.nodes)
    return frame.view(name="surface", pieces=flat.chosen(order), light=light[order])


def _eye() -> Float64s:
    """Rows: to the right, up, and towards the eye."""
    right = np.array([np.cos(TURN), -np.sin(TURN), 0.0])
    ahead = np.array([np.sin(TURN), np.cos(TURN), 0.0])
    up = np.sin(TILT) * ahead + np.array([0.0, 0.0, np.cos(TILT)])
    toward = -np.cos(TILT) * ahead + np.array([0.0, 0.0, np.sin(TILT)])
    return np.stack([right, up, toward])


def _light(corners: Float64s) -> Float64s:
    """The brightness of each triangle, from ``LEAST_LIGHT`` to 1."""
    first_edge = corners[:, 1] - corners[:, 0]
    second_edge = corners[:, 2] - corners[:, 0]
    normal = np.cross(first_edge, second_edge)
    length = np.linalg.norm(normal, axis=1)
    facing = np.abs(normal @ LAMP) / np.where(length > 0, length, 1)
    return np.minimum(LEAST_LIGHT + LAMP_LIGHT * facing, 1)


def _cut_view(scene: Scene) -> View:
    """A cut across the shortest direction, with half the nodes on either side."""
    # Of equally short directions take the last, which is height in most meshes.
    size = np.ptp(scene.xyz, axis=0)
    axis = 2 - int(np.argmin(size[::-1]))
    # Cut beside the middle, where symmetric meshes have a layer of nodes.
    value = float(np.median(scene.xyz[:, axis]) + BESIDE * size[axis])
    others = [i for i in range(3) if i != axis]
    pieces = cut(scene, axis, value)
    frame = _frame(_limits(scene.xyz[:, others]))
    placed = frame.placed(pieces.corners[..., others])
    return frame.view(
        name="cut",
        pieces=Pieces(placed, pieces.element, pieces.nodes),
        light=np.ones(pieces.element.size),
        axes=(AXES[others[0]], AXES[others[1]]),
        at=f"{AXES[axis]} = {value:.4g}",
    )
