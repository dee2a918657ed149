"""Pixels as PNG files of few colours, a fraction of the size of others."""

import io

from meshprep_runtime.types.maps import UInt8s

# Flat colours, and those between them along borders.
COLOURS = 64


def png(pixels: UInt8s) -> bytes:
    """Pixels as the bytes of a PNG file.

    ``pixels`` (height, width, 4) are red, green, blue and opacity.
    """
    from PIL import Image

    image = Image.fromarray(pixels)
    method = Image.Quantize.FASTOCTREE
    # Median cut keeps the colours of large areas as they are, but knows no opacity.
    if (pixels[..., 3] == 255).all():
        image = image.convert("RGB")
        method = Image.Quantize.MEDIANCUT
    image = image.quantize(COLOURS, method=method, dither=Image.Dither.NONE)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
