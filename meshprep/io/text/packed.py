"""Bounded unpacking: a few packed megabytes can hold gigabytes."""

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

from meshprep_runtime.errors import MeshprepError

from .quoting import quoted

# The most regular meshes are packed into a tenth by zlib, into a 28th by LZMA; and this
# many bytes are never too many.
_MOST_PACKED = 50
_HARMLESS = 1 << 26
# Values of this many bytes for each element of a mesh may all be zero.
_BYTES_OF_ELEMENT = 1024
_PIECE = 1 << 20
# Memory that unpacking LZMA may take.
_MEMORY = 1 << 28

# Gives the bytes of a packed block, one more than so many at most, and whether that is the
# end.
Unpack = Callable[[memoryview | bytes, int], tuple[bytes, bool]]
# What packed files that are damaged raise.
DAMAGED = (zlib.error, EOFError, gzip.BadGzipFile)


def check_unpacked(what: str, n_bytes: int, packed: int, elements: int = 0) -> None:
    """Raise MeshprepError where so many bytes cannot be meant by so few packed ones.

    ``what`` begins the message; ``elements`` are those of a mesh, known from elsewhere,
    that have values among the bytes.
    """
    most = max(_HARMLESS, _MOST_PACKED * packed, _BYTES_OF_ELEMENT * elements)
    if n_bytes > most:
        raise MeshprepError(
            f"{what} has more than {most >> 20} MiB in {packed} packed bytes, more than a "
            "mesh can have: unpack it yourself if it is right, else write it again"
        )


def read_gz(path: Path, what: str, elements: int = 0) -> bytearray:
    """The bytes of a ``.gz`` file; raises MeshprepError if too many or damaged."""
    packed = path.stat().st_size
    unpacked = bytearray()
    try:
        with gzip.open(path) as file:
            while piece := file.read(_PIECE):
                unpacked += piece
                check_unpacked(
                    what=what, n_bytes=len(unpacked), packed=packed, elements=elements
                )
    except DAMAGED as error:
        raise MeshprepError(
            f"{what} cannot be unpacked ({error}): write it again"
        ) from None
    return unpacked


def _unpack_zlib(data: memoryview | bytes, n: int) -> tuple[bytes, bool]:
    unpacker = zlib.decompressobj()
    return unpacker.decompress(data, n + 1), unpacker.eof


def _unpack_lzma(data: memoryview | bytes, n: int) -> tuple[bytes, bool]:
    unpacker = lzma.LZMADecompressor(memlimit=_MEMORY)
    return unpacker.decompress(data, n + 1), unpacker.eof


def _unpack_lz4(data: memoryview | bytes, n: int) -> tuple[bytes, bool]:
    # a package that few files need
    from lz4.block import decompress

    return decompress(bytes(data), uncompressed_size=n), True


# By the name that VTK gives the packer.
_PACKERS: dict[str, Unpack] = {
    "vtkZLibDataCompressor": _unpack_zlib,
    "vtkLZMADataCompressor": _unpack_lzma,
    "vtkLZ4DataCompressor": _unpack_lz4,
}


def packer(name: str) -> Unpack:
    """What unpacks the blocks of a VTU file; raises MeshprepError for an unknown packer."""
    if name not in _PACKERS:
        raise MeshprepError(
            f"is packed by {quoted(name)}, which is not known: save it with ZLib"
        )
    return _PACKERS[name]


def unpack_block(unpack: Unpack, data: memoryview | bytes, n: int) -> bytes:
    """The ``n`` bytes that a block must have; raises MeshprepError for any other number."""
    try:
        unpacked, ended = unpack(data, n)
    except ImportError:
        raise
    except Exception as error:
        # each packer has errors of its own
        raise MeshprepError(
            f"a packed block is damaged ({error}): write it again"
        ) from None
    if len(unpacked) != n or not ended:
        raise MeshprepError(
            f"a packed block does not hold the {n} bytes that are declared: the file is "
            "damaged"
        )
    return unpacked
