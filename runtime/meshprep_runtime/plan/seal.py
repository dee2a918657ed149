"""The first 512 bytes of a plan file: what it is, and the digest of every byte that follows.

HDF5 leaves a *user block* before its own data to whoever writes the file. No flipped byte goes
unseen, HDF5's own metadata and unused bytes included, and damage is found before HDF5 sees it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..errors import PlanError

SIZE = 512
FORMAT = "meshprep-plan"
_CHUNK = 1 << 22
_HDF5 = b"\x89HDF\r\n\x1a\n"


def seal(path: Path, version: int) -> None:
    """Write the seal into the first bytes of a file that is otherwise complete. O(bytes)."""
    with open(path, "r+b") as file:
        text = _text(version, _digest(file))
        file.seek(0)
        file.write(text)


def check_seal(path: Path, versions: Sequence[int]) -> int:
    """The version of a plan file; PlanError unless it is one of these, whole and unchanged.

    O(bytes).
    """
    with open(path, "rb") as file:
        start = file.read(SIZE)
        found = re.match(rf"{FORMAT} (\d{{1,6}})\n".encode(), start)
        if found is None:
            raise PlanError(_what_is_it(start))
        version = int(found[1])
        if version not in versions:
            raise PlanError(
                f"plan format version {version}, but this meshprep reads version "
                f"{' and '.join(map(str, versions))}: "
                "install the meshprep that wrote it, or make the plan anew"
            )
        if start != _text(version, _digest(file)):
            raise PlanError("damaged: its content does not match its checksum: make it anew")
    return version


def _text(version: int, digest: str) -> bytes:
    return f"{FORMAT} {version}\nsha256 {digest}\n".encode().ljust(SIZE, b"\0")


def _digest(file: BinaryIO) -> str:
    """SHA-256, in hex, of everything behind the seal."""
    file.seek(SIZE)
    found = hashlib.sha256()
    while piece := file.read(_CHUNK):
        found.update(piece)
    return found.hexdigest()


def _what_is_it(start: bytes) -> str:
    if not start:
        return "is empty: give a .plan.h5 file that meshprep wrote"
    if start.startswith(_HDF5):
        return "an HDF5 file, but no plan: give a .plan.h5 file that meshprep wrote"
    return "no plan, or damaged: give a .plan.h5 file that meshprep wrote"
