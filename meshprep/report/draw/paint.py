"""From the elements that pixels show to colours."""

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Bools, Int32s, UInt8s

from .colours import LIGHT, SHADES, apart, categories, outside_and_pale, rgba, shaded, special
from .view import Picture

# Outlines are drawn where they darken no larger share of the mesh.
MOST_OUTLINED = 0.12


@dataclass(frozen=True, eq=False)
class Painted:
    """A picture in colours."""

    pixels: UInt8s  # (height, width): rows of the palette
    palette: UInt8s  # (k, 4)

    def png(self) -> bytes:
        """The picture as a PNG file; transparent outside the mesh."""
        return encode_png(self.pixels, self.palette)

    def on(self, colour: tuple[int, int, int]) -> "Painted":
        """On a background of one colour."""
        palette = self.palette.copy()
        palette[0] = (*colour, 255)
        return Painted(self.pixels, palette)


def by_group(picture: Picture, group: Int32s, n_groups: int) -> Painted:
    """Elements by ``group``, such as blocks: neighbours differ, larger ones are outlined."""
    shown = _looked_up(picture, group)
    return _painted(picture, shown, apart(shown, n_groups), rgba(LIGHT), outlined=shown)


def by_number(
    picture: Picture, number: Int32s, count: int, outline: Int32s | None = None
) -> Painted:
    """Numbers 0 to ``count - 1`` in colours told apart, or a ramp; ``outline`` has borders."""
    shown = _looked_up(picture, number)
    colours = categories(count)
    row = np.arange(count) * len(colours) // max(count, 1)
    edges = None if outline is None else _looked_up(picture, outline)
    return _painted(picture, shown, row.astype(np.uint8), colours, outlined=edges)


def _looked_up(picture: Picture, values: Int32s) -> Int32s:
    seen = picture.element
    if not values.size:
        return seen
    return np.where(seen >= 0, values[np.maximum(seen, 0)], seen).astype(np.int32)


def _painted(
    picture: Picture, shown: Int32s, colour: UInt8s, colours: UInt8s, outlined: Int32s | None
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


def count_shown(image: Int32s) -> int:
    """How many different elements or groups a picture shows. O(pixels + their largest number)."""
    # as far as -2 for pixels without an element
    seen = np.zeros(int(image.max(initial=0)) + 3, bool)
    seen[image + 2] = True
    return int(seen[2:].sum())


def _borders(groups: Int32s) -> Bools:
    """Pixels whose right or lower neighbour shows another group."""
    out = np.zeros(groups.shape, bool)
    out[:, :-1] |= groups[:, :-1] != groups[:, 1:]
    out[:-1] |= groups[:-1] != groups[1:]
    return out


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3


def encode_png(pixels: UInt8s, palette: UInt8s) -> bytes:
    """A picture as the bytes of a PNG file.

    ``pixels`` are rows of the palette, from the top; ``palette`` (k, 4) has red, green, blue and
    opacity, at most 256 rows. Raises MeshprepError for an empty picture, and a palette that is too
    long or too short. O(pixels).
    """
    height, width = pixels.shape
    if not pixels.size or not int(pixels.max()) < len(palette) <= 256:
        raise MeshprepError(
            f"a picture of {width} x {height} pixels with {len(palette)} colours cannot be "
            "written: give at least one pixel, at most 256 colours, and all that are used"
        )
    # every row begins with its filter: none, which suits flat colours best
    lines = np.zeros((height, width + 1), np.uint8)
    lines[:, 1:] = pixels
    header = struct.pack(">IIBBBBB", width, height, 8, _INDEXED, 0, 0, 0)
    return b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", np.ascontiguousarray(palette[:, :3]).tobytes()),
            _chunk(b"tRNS", np.ascontiguousarray(palette[:, 3]).tobytes()),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 7)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
