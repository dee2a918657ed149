"""PNG files of few colours: a palette with transparency, and as few bits a pixel as it needs.

Format: *Portable Network Graphics (PNG) Specification*, W3C Recommendation, sections 5 and 11.
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3


def encode_png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
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
    depth = next(d for d in (1, 2, 4, 8) if len(palette) <= 1 << d)
    rows = _packed(pixels, depth)
    # every row begins with its filter: none, which suits flat colours best
    lines = np.zeros((height, rows.shape[1] + 1), np.uint8)
    lines[:, 1:] = rows
    header = struct.pack(">IIBBBBB", width, height, depth, _INDEXED, 0, 0, 0)
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


def _packed(pixels: NDArray[np.uint8], depth: int) -> NDArray[np.uint8]:
    """Several pixels a byte, the leftmost in the highest bits."""
    per_byte = 8 // depth
    height, width = pixels.shape
    padded = np.zeros((height, -(-width // per_byte) * per_byte), np.uint8)
    padded[:, :width] = pixels
    out = np.zeros((height, padded.shape[1] // per_byte), np.uint8)
    for i in range(per_byte):
        out |= padded[:, i::per_byte] << np.uint8(8 - depth * (i + 1))
    return out


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
