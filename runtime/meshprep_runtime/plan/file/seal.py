"""The seal: the first 512 bytes of a plan file, with the digest of all bytes behind them.

HDF5 leaves these bytes, the *user block*, to the program that writes the file. Any changed
byte is found, also in metadata of HDF5 and in unused bytes, and before HDF5 reads it.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import PlanError, listed

# Bytes of the seal.
SIZE = 512
# The first words of the seals of plans, and of meshes in parts.
FORMAT = "meshprep-plan"
PARTS_FORMAT = "meshprep-parts"
# The version of files of parts.
PARTS_VERSION = 1
# Bytes that are read and hashed at a time.
CHUNK = 1 << 22
# The first bytes of any HDF5 file.
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def write_seal(file: BinaryIO, version: int, kind: str = FORMAT) -> None:
    """Write the seal of an open file whose other bytes are complete. O(bytes)."""
    text = seal_of(file, version, kind)
    file.seek(0)
    file.write(text)


def seal_of(file: BinaryIO, version: int, kind: str = FORMAT) -> bytes:
    """The seal of an open file with this content. O(bytes)."""
    return f"{kind} {version}\nsha256 {_digest(file)}\n".encode().ljust(SIZE, b"\0")


def check_seal(path: Path, versions: Sequence[int]) -> int:
    """The version of a plan file.

    Raises PlanError unless it is one of ``versions`` and the file is unchanged. O(bytes).
    """
    with open(path, "rb") as file:
        start = file.read(SIZE)
        first_line = re.match(rf"{FORMAT} (\d{{1,6}})\n".encode(), start)
        if first_line is None:
            raise PlanError(_fault_without_seal(start))
        version = int(first_line[1])
        if version not in versions:
            raise PlanError(
                f"plan format version {version}, but this meshprep reads version "
                f"{listed(versions)}: "
                "install the meshprep that wrote it, or make the plan anew"
            )
        if start != seal_of(file, version):
            raise PlanError(
                "damaged: its content does not match its checksum: make it anew"
            )
    return version


def seal_parts(path: Path, begin: int, end: int) -> None:
    """Seal a file of parts.

    The slices, from ``begin`` to ``end``, are left out: the sealed bytes hold their
    digests.
    """
    with open(path, "r+b") as file:
        text = _parts_text(_digest(file, begin, end), begin, end)
        file.seek(0)
        file.write(text)


def check_parts_seal(path: Path) -> tuple[int, int]:
    """Where the slices of a file of parts begin and end.

    Raises PlanError where any other byte has changed.
    """
    with open(path, "rb") as file:
        start = file.read(SIZE)
        pattern = (
            rf"{PARTS_FORMAT} (\d{{1,6}})\n"
            r"sha256 \w{64}\n"
            r"slices (\d{1,18}) (\d{1,18})\n"
        )
        lines = re.match(pattern.encode(), start)
        if lines is None:
            raise PlanError(_fault_without_seal(start).replace(".plan.h5", ".parts.h5"))
        # Check the version before anything that depends on it.
        version, begin, end = (int(number) for number in lines.groups())
        if version != PARTS_VERSION:
            raise PlanError(
                f"parts format version {version}, but this meshprep reads version "
                f"{PARTS_VERSION}: install the meshprep that wrote it, or split anew"
            )
        # Check all bytes but the slices, whose digests are in the tables: ranks read only
        # their own.
        size = file.seek(0, 2)
        if not SIZE <= begin <= end <= size:
            raise PlanError(f"cut short: it has {size} bytes: split the mesh anew")
        if start != _parts_text(_digest(file, begin, end), begin, end):
            raise PlanError(
                "damaged: its tables do not match their checksum: split the mesh anew"
            )
    return begin, end


def is_parts(path: Path) -> bool:
    """True for a file that can be read and begins like a file of parts."""
    return _begins_with(path, PARTS_FORMAT)


def is_plan(path: Path) -> bool:
    """True for a file that can be read and begins like a plan."""
    return _begins_with(path, FORMAT)


def _begins_with(path: Path, text: str) -> bool:
    # Do not open a pipe: this would wait for a program that writes to it.
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(len(text)) == text.encode()
    return False


def _parts_text(digest: str, begin: int, end: int) -> bytes:
    text = f"{PARTS_FORMAT} {PARTS_VERSION}\nsha256 {digest}\nslices {begin} {end}\n"
    return text.encode().ljust(SIZE, b"\0")


def _digest(file: BinaryIO, begin: int = SIZE, end: int = SIZE) -> str:
    """SHA-256, in hex, of all bytes behind the seal, without ``begin`` to ``end``."""
    digest = hashlib.sha256()
    file.seek(SIZE)
    left = begin - SIZE
    while left > 0 and (piece := file.read(min(left, CHUNK))):
        digest.update(piece)
        left -= len(piece)
    file.seek(end)
    while piece := file.read(CHUNK):
        digest.update(piece)
    return digest.hexdigest()


def _fault_without_seal(start: bytes) -> str:
    """What is wrong with a file, by its first bytes, which are no seal of a plan."""
    if not start:
        return "is empty: give a .plan.h5 file that meshprep wrote"
    if start.startswith(HDF5_SIGNATURE):
        return "an HDF5 file, but no plan: give a .plan.h5 file that meshprep wrote"
    if start.startswith(PARTS_FORMAT.encode()):
        return "a mesh in parts, or a damaged one: give a .plan.h5 file that meshprep wrote"
    return "no plan, or damaged: give a .plan.h5 file that meshprep wrote"
