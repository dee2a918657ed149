"""The first 512 bytes of a plan file: what it is, and the digest of every byte that follows.

HDF5 leaves a *user block* before its own data to whoever writes the file. No flipped byte goes
unseen, HDF5's own metadata and unused bytes included, and damage is found before HDF5 sees it.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import PlanError, listed

SIZE = 512
FORMAT = "meshprep-plan"
PARTS_FORMAT, PARTS_VERSION = "meshprep-parts", 1
_CHUNK = 1 << 22
_HDF5 = b"\x89HDF\r\n\x1a\n"


def write_seal(file: BinaryIO, version: int, kind: str = FORMAT) -> None:
    """Write the seal into the first bytes of an open file that is otherwise complete. O(bytes)."""
    text = seal_of(file, version, kind)
    file.seek(0)
    file.write(text)


def seal_of(file: BinaryIO, version: int, kind: str = FORMAT) -> bytes:
    """The seal of an open file with this content. O(bytes)."""
    return f"{kind} {version}\nsha256 {_digest(file)}\n".encode().ljust(SIZE, b"\0")


def check_seal(path: Path, versions: Sequence[int]) -> int:
    """The version of a plan file; PlanError unless it is one of these and unchanged. O(bytes)."""
    with open(path, "rb") as file:
        start = file.read(SIZE)
        found = re.match(rf"{FORMAT} (\d{{1,6}})\n".encode(), start)
        if found is None:
            raise PlanError(_what_is_it(start))
        version = int(found[1])
        if version not in versions:
            raise PlanError(
                f"plan format version {version}, but this meshprep reads version "
                f"{listed(versions)}: "
                "install the meshprep that wrote it, or make the plan anew"
            )
        if start != seal_of(file, version):
            raise PlanError("damaged: its content does not match its checksum: make it anew")
    return version


def seal_parts(path: Path, begin: int, end: int) -> None:
    """Seal a file of parts but its slices, ``begin`` to ``end``, whose digests are sealed."""
    with open(path, "r+b") as file:
        text = _parts_text(_digest(file, begin, end), begin, end)
        file.seek(0)
        file.write(text)


def check_parts_seal(path: Path) -> tuple[int, int]:
    """Where the slices of a file of parts begin and end; PlanError if others changed."""
    with open(path, "rb") as file:
        start = file.read(SIZE)
        lines = rf"{PARTS_FORMAT} (\d{{1,6}})\nsha256 \w{{64}}\nslices (\d{{1,18}}) (\d{{1,18}})\n"
        found = re.match(lines.encode(), start)
        if found is None:
            raise PlanError(_what_is_it(start).replace(".plan.h5", ".parts.h5"))
        version, begin, end = (int(number) for number in found.groups())
        if version != PARTS_VERSION:
            raise PlanError(
                f"parts format version {version}, but this meshprep reads version "
                f"{PARTS_VERSION}: install the meshprep that wrote it, or split anew"
            )
        size = file.seek(0, 2)
        if not SIZE <= begin <= end <= size:
            raise PlanError(f"cut short: it has {size} bytes: split the mesh anew")
        if start != _parts_text(_digest(file, begin, end), begin, end):
            raise PlanError("damaged: its tables do not match their checksum: split the mesh anew")
    return begin, end


def is_parts(path: Path) -> bool:
    """True for a file that can be read and begins as one of parts does."""
    return _begins(path, PARTS_FORMAT)


def is_plan(path: Path) -> bool:
    """True for a file that can be read and begins as a plan does."""
    return _begins(path, FORMAT)


def _begins(path: Path, text: str) -> bool:
    # a pipe is never opened: it would wait for a writer
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(len(text)) == text.encode()
    return False


def _parts_text(digest: str, begin: int, end: int) -> bytes:
    text = f"{PARTS_FORMAT} {PARTS_VERSION}\nsha256 {digest}\nslices {begin} {end}\n"
    return text.encode().ljust(SIZE, b"\0")


def _digest(file: BinaryIO, begin: int = SIZE, end: int = SIZE) -> str:
    """SHA-256, in hex, of everything behind the seal but ``begin`` to ``end``."""
    file.seek(SIZE)
    found, left = hashlib.sha256(), begin - SIZE
    while left > 0 and (piece := file.read(min(left, _CHUNK))):
        found.update(piece)
        left -= len(piece)
    file.seek(end)
    while piece := file.read(_CHUNK):
        found.update(piece)
    return found.hexdigest()


def _what_is_it(start: bytes) -> str:
    if not start:
        return "is empty: give a .plan.h5 file that meshprep wrote"
    if start.startswith(_HDF5):
        return "an HDF5 file, but no plan: give a .plan.h5 file that meshprep wrote"
    if start.startswith(PARTS_FORMAT.encode()):
        return "a mesh in parts, or a damaged one: give a .plan.h5 file that meshprep wrote"
    return "no plan, or damaged: give a .plan.h5 file that meshprep wrote"
