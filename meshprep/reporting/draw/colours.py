"""Colours for blocks that people with any colour vision can tell apart."""

import numpy as np

from meshprep_runtime.types.maps import offsets_of

from ...colouring import colour_blocks
from ...kernels import Float64s, Int32s, Int64s
from .pieces import NO_ELEMENT, Pieces
from .view import View

# Paul Tol, "Colour schemes", scheme "light" (pale fills that stay apart for the
# colour-blind).
LIGHT = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#44bb99", "#99ddff", "#bbcc33")
# What is none of the elements that a loop runs over.
PALE = "#b8bcc2"


def by_group(view: View, group: Int32s, n_groups: int) -> Float64s:
    """Triangles coloured by the ``group`` of their elements, such as blocks.

    Neighbours differ where seven colours are enough. ``group`` (n_elements,). Returns red,
    green and blue of each triangle, ``(n, 3)``, from 0 to 1.
    """
    colour = apart(view.pieces, group, n_groups)
    return _painted(view, colour[group], palette_of(len(LIGHT)))


def by_number(view: View, number: Int32s, count: int) -> Float64s:
    """Triangles coloured by the ``number`` of their elements, from 0 to ``count - 1``."""
    return _painted(view, number, palette_of(count))


def palette_of(count: int) -> Float64s:
    """``count`` colours (count, 3): light ones, or for many a ramp from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba_array

    if count <= len(LIGHT):
        colours = to_rgba_array(LIGHT[:count])
    else:
        colours = colormaps["cividis"](np.linspace(0, 1, count))
    return np.asarray(colours[:, :3])


def apart(pieces: Pieces, group: Int32s, n_groups: int) -> Int64s:
    """One of the light colours for every group, another than its neighbours have."""
    drawn = pieces.element != NO_ELEMENT
    group_of_piece = group[pieces.element[drawn]]
    nodes = pieces.nodes[drawn]
    # Groups that share a node conflict, as blocks do that write to it.
    order = np.argsort(group_of_piece, kind="stable")
    offset = offsets_of(np.bincount(group_of_piece, minlength=n_groups))
    n_nodes = int(nodes.max(initial=-1)) + 1
    colours = colour_blocks(np.ascontiguousarray(nodes[order]), n_nodes, offset)
    # Groups that are scattered need more colours than eyes can tell apart.
    colour = np.empty(n_groups, np.int64)
    colour[colours.order] = np.repeat(np.arange(colours.count), np.diff(colours.offset))
    return colour % len(LIGHT)


def _painted(view: View, row: Int32s | Int64s, palette: Float64s) -> Float64s:
    """The colour of each triangle in its light, from a row of the palette an element."""
    from matplotlib.colors import to_rgb

    # Number -1, of no element, takes the last row.
    palette = np.concatenate([palette, [to_rgb(PALE)]])
    rows = np.append(row, len(palette) - 1)
    element = view.pieces.element
    return palette[rows[element]] * view.light[:, None]
