"""Colours for blocks that people with any colour vision can tell apart."""

import numpy as np

from meshprep_runtime.types.maps import distinct, offsets_of

from ...kernels import Int32s, Int64s, UInt8s, kernel
from .raster import NO_ELEMENT, OUTSIDE

# Paul Tol, "Colour schemes", scheme "light" (pale fills that stay apart for the colour-blind).
LIGHT = ("77aadd", "ee8866", "eedd88", "ffaabb", "44bb99", "99ddff", "bbcc33")
# Eight places of "cividis" (Nunez, Anderton, Renslow 2018): for numbers that have an order.
CIVIDIS = ("00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369")
CIVIDIS_END = ("e1cc55", "fee838")
PALE = "b8bcc2"
SHADES = 4


def rgba(colours: tuple[str, ...]) -> UInt8s:
    """Colours as rows of a palette, opaque."""
    return np.array([[*bytes.fromhex(c), 255] for c in colours], np.uint8)


def ramp(count: int) -> UInt8s:
    """``count`` colours for numbers in order, from dark to light."""
    known = rgba(CIVIDIS + CIVIDIS_END).astype(float)
    at = np.linspace(0, len(known) - 1, count)
    columns = [np.interp(at, np.arange(len(known)), known[:, i]) for i in range(4)]
    return np.stack(columns, axis=1).round().astype(np.uint8)


def categories(count: int) -> UInt8s:
    """``count`` colours that are told apart: the light ones, or a ramp where there are too few."""
    return rgba(LIGHT[:count]) if count <= len(LIGHT) else ramp(min(count, 48))


def apart(image: Int32s, n_groups: int) -> UInt8s:
    """One of the light colours for every group, another than its neighbours' in the picture.

    Greedy in the order of first appearance; where a group has neighbours of every colour, it gets
    the one that fewest of them have. O(pixels + neighbours).
    """
    pairs = distinct(
        np.concatenate([_beside(image[:, :-1], image[:, 1:]), _beside(image[:-1], image[1:])])
    )
    first, second = pairs >> 32, pairs & 0xFFFFFFFF
    order = np.argsort(np.concatenate([first, second]), kind="stable")
    neighbour = np.concatenate([second, first])[order]
    count = np.bincount(np.concatenate([first, second]), minlength=n_groups)
    offset = offsets_of(count)
    return _greedy(offset, neighbour.astype(np.int64), len(LIGHT))


def _beside(a: Int32s, b: Int32s) -> Int64s:
    """Pairs of groups in neighbouring pixels, the lower in the higher half of the bits."""
    different = (a != b) & (a >= 0) & (b >= 0)
    low, high = np.minimum(a, b)[different], np.maximum(a, b)[different]
    return low.astype(np.int64) << 32 | high.astype(np.int64)


@kernel
def _greedy(offset: Int64s, neighbour: Int64s, n_colours: int) -> UInt8s:
    colour = np.full(offset.size - 1, 255, np.uint8)
    used = np.zeros(n_colours, np.int64)
    for group in range(offset.size - 1):
        seen = np.zeros(n_colours, np.int64)
        for i in range(offset[group], offset[group + 1]):
            if colour[neighbour[i]] != 255:
                seen[colour[neighbour[i]]] += 1
        best = 0
        for c in range(1, n_colours):
            # of colours that serve alike the one used least, so that none takes over
            if seen[c] < seen[best] or (seen[c] == seen[best] and used[c] < used[best]):
                best = c
        colour[group] = best
        used[best] += 1
    return colour


def shaded(colours: UInt8s) -> UInt8s:
    """Every colour in ``SHADES`` steps from full to dark: rows ``SHADES * i + step``."""
    light = np.linspace(1.0, 0.62, SHADES)
    out = np.repeat(colours.astype(float), SHADES, axis=0)
    out[:, :3] *= np.tile(light, len(colours))[:, None]
    return out.round().astype(np.uint8)


def outside_and_pale() -> UInt8s:
    """The two colours that stand before all others: nothing, and no element of the loop."""
    return np.concatenate([np.zeros((1, 4), np.uint8), rgba((PALE,))])


def special(image: Int32s) -> UInt8s:
    """Rows of :func:`outside_and_pale` for the pixels without an element; 255 for the others."""
    out = np.full(image.shape, 255, np.uint8)
    out[image == OUTSIDE] = 0
    out[image == NO_ELEMENT] = 1
    return out
