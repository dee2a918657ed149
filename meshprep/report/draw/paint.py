"""From the elements that pixels show to colours."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .colours import LIGHT, SHADES, apart, categories, outside_and_pale, rgba, shaded, special
from .png import encode_png
from .view import Picture

# Outlines are drawn where they darken no larger share of the mesh.
MOST_OUTLINED = 0.12


@dataclass(frozen=True, eq=False)
class Painted:
    """A picture in colours."""

    pixels: NDArray[np.uint8]  # (height, width): rows of the palette
    palette: NDArray[np.uint8]  # (k, 4)

    def png(self) -> bytes:
        """The picture as a PNG file; transparent outside the mesh."""
        return encode_png(self.pixels, self.palette)

    def on(self, colour: tuple[int, int, int]) -> "Painted":
        """On a background of one colour."""
        palette = self.palette.copy()
        palette[0] = (*colour, 255)
        return Painted(self.pixels, palette)


def by_group(picture: Picture, group: NDArray[np.int32], n_groups: int) -> Painted:
    """Groups of elements, such as blocks: neighbours differ in colour, larger ones are outlined.

    ``group`` has each element's, numbered as in the picture.
    """
    shown = _looked_up(picture, group)
    return _painted(picture, shown, apart(shown, n_groups), rgba(LIGHT), outlined=shown)


def by_number(
    picture: Picture,
    number: NDArray[np.int32],
    count: int,
    outline: NDArray[np.int32] | None = None,
) -> Painted:
    """Numbers 0 to ``count - 1``: colours that are told apart, or a ramp where they are many.

    ``outline`` are groups whose borders are drawn.
    """
    shown = _looked_up(picture, number)
    colours = categories(count)
    row = np.arange(count) * len(colours) // max(count, 1)
    edges = None if outline is None else _looked_up(picture, outline)
    return _painted(picture, shown, row.astype(np.uint8), colours, outlined=edges)


def _looked_up(picture: Picture, values: NDArray[np.int32]) -> NDArray[np.int32]:
    seen = picture.element
    if not values.size:
        return seen
    return np.where(seen >= 0, values[np.maximum(seen, 0)], seen).astype(np.int32)


def _painted(
    picture: Picture,
    shown: NDArray[np.int32],
    colour: NDArray[np.uint8],
    colours: NDArray[np.uint8],
    outlined: NDArray[np.int32] | None,
) -> Painted:
    pixels = special(shown)
    inside = pixels == 255
    shade = picture.shade.copy()
    borders = None if outlined is None else _borders(outlined)
    if borders is not None and borders[inside].sum() < MOST_OUTLINED * inside.sum():
        shade[borders] = SHADES - 1
    first = len(outside_and_pale())
    pixels[inside] = first + SHADES * colour[shown[inside]] + shade[inside]
    return Painted(pixels, np.concatenate([outside_and_pale(), shaded(colours)]))


def count_shown(image: NDArray[np.int32]) -> int:
    """How many different elements or groups a picture shows. O(pixels + their largest number)."""
    # as far as -2 for pixels without an element
    seen = np.zeros(int(image.max(initial=0)) + 3, bool)
    seen[image + 2] = True
    return int(seen[2:].sum())


def _borders(groups: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Pixels whose right or lower neighbour shows another group."""
    out = np.zeros(groups.shape, bool)
    out[:, :-1] |= groups[:, :-1] != groups[:, 1:]
    out[:-1] |= groups[:-1] != groups[1:]
    return out
