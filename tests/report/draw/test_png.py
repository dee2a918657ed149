"""PNG files, read back by a decoder of a few lines and by matplotlib."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meshprep.report.draw import encode_png
from meshprep_runtime.errors import MeshprepError


def decode(data):
    """The colours of an indexed picture without filters, a byte a pixel."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        (found,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert found == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    rgb = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
    alpha = np.frombuffer(chunks[b"tRNS"], np.uint8)
    return np.column_stack([rgb, alpha])[lines[:, 1 : 1 + width]]


@settings(deadline=None)
@given(
    st.integers(1, 256).flatmap(
        lambda k: st.tuples(
            hnp.arrays(
                np.uint8,
                st.tuples(st.integers(1, 9), st.integers(1, 19)),
                elements=st.integers(0, k - 1),
            ),
            hnp.arrays(np.uint8, (k, 4)),
        )
    )
)
def test_pictures_come_back(both):
    pixels, palette = both
    assert (decode(encode_png(pixels, palette)) == palette[pixels]).all()


def test_another_reader_sees_the_same():
    plt = pytest.importorskip("matplotlib.pyplot")
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) % 5
    palette = np.random.default_rng(1).integers(0, 256, (5, 4), dtype=np.uint8)
    palette[:, 3] = 255
    seen = plt.imread(io.BytesIO(encode_png(pixels, palette)))
    assert (np.round(seen * 255).astype(np.uint8)[..., :3] == palette[pixels][..., :3]).all()


@pytest.mark.parametrize(("shape", "colours"), [((0, 3), 2), ((2, 2), 300), ((2, 2), 1)])
def test_what_cannot_be_written_is_refused(shape, colours):
    pixels = np.ones(shape, np.uint8)
    with pytest.raises(MeshprepError, match="cannot be written"):
        encode_png(pixels, np.zeros((colours, 4), np.uint8))
