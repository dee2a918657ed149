"""Pictures of the documentation as PNG files of few colours, a fraction of the size."""

import numpy as np

from meshprep.report.draw import encode_png

COLOURS = 64


def few_colours(seen: np.ndarray) -> bytes:
    """A PNG of few colours: the commonest, and for the other pixels the nearest of them."""
    packed = seen @ [65536, 256, 1]
    values, inverse, count = np.unique(packed, return_inverse=True, return_counts=True)
    rgb = np.stack([values >> 16, values >> 8 & 255, values & 255], axis=1)
    kept: list[int] = []
    for i in np.argsort(-count):
        # a colour close to one that is kept would be wasted on the edges of letters
        if not kept or np.abs(rgb[kept] - rgb[i]).sum(axis=1).min() > 18:
            kept.append(int(i))
        if len(kept) == COLOURS:
            break
    nearest = np.abs(rgb[:, None] - rgb[kept][None]).sum(axis=2).argmin(axis=1)
    palette = np.column_stack([rgb[kept], np.full(len(kept), 255)]).astype(np.uint8)
    return encode_png(nearest[inverse].reshape(seen.shape[:2]).astype(np.uint8), palette)
