"""Mesh files read by slices: what they hold, found by one process, and rows for every process."""

from collections.abc import Mapping
from pathlib import Path

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input

from ..declared import declared
from ..front import FORMATS, named
from ..registry import find
from .model import SlicedMesh

__all__ = ["SLICED", "SlicedMesh", "scan"]

# Formats whose rows lie in the file as they are needed.
SLICED = ("gmsh", "op2")


def scan(
    path: Path, format: str | None = None, sets: Mapping[str, str] | None = None
) -> SlicedMesh:
    """What a mesh file holds, for one process, which may send it to others.

    Without ``format`` the ending of the name tells it; ``sets`` says what datasets are where the
    file does not. O(bytes) time, piece by piece: the hash of the mesh needs every row in turn.
    Raises MeshprepError as :func:`meshprep.io.read`, and for formats that are not read by slices.
    """
    with named(path):
        check_input(path)
        name = find(FORMATS, path, format).name
        if name not in SLICED:
            raise MeshprepError(
                f"format '{name}' is not read by slices, only {' and '.join(SLICED)}: "
                "write the mesh in one of these, or leave --slices out"
            )
        if sets and name != "op2":
            raise MeshprepError(f"format '{name}' says itself what it holds: leave --sets out")
        if name == "gmsh":
            from .gmsh import scan_gmsh

            return scan_gmsh(path)
        from .hdf5 import scan_op2

        return scan_op2(path, declared(sets))
