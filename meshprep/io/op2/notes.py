"""What is kept of an OP2 file beside sets, maps and dats, so that it can be written again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...mesh import Mesh

NOTES = "op2:file"
CONSTANTS = "constants"
# What the file does not say and was found, as it would be declared.
INFERRED = "op2:inferred"
ORIGINAL_ID = "original_id"


@dataclass(frozen=True)
class Op2Notes:
    """Where everything stood.

    Parameters
    ----------
    sets, maps : mapping of name to path
    dats : mapping of (set, name) to path
    base : int
        The index that stands for the first element.
    rest : bytes
        An HDF5 file with everything else, and an empty dataset of the same type and attributes
        for each map and dat.
    """

    sets: Mapping[str, str]
    maps: Mapping[str, str]
    dats: Mapping[tuple[str, str], str]
    base: int
    rest: bytes


def notes_of(mesh: Mesh) -> Op2Notes:
    """The notes of a mesh; empty ones where it came from elsewhere."""
    found = mesh.extras.get(NOTES)
    return found if isinstance(found, Op2Notes) else Op2Notes({}, {}, {}, 0, b"")
