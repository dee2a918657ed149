"""OpenFOAM cases: polyMesh with cells of any shape, and what is on its cells, faces and points."""

from ..registry import Format
from .case import case_folder, read

__all__ = ["FORMAT", "case_folder"]

FORMAT = Format(
    "openfoam", (".foam",), read, None, lambda mesh: [], cells=False, folder=case_folder
)
