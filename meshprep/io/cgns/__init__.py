"""CGNS files in HDF5: unstructured zones, by the labels of their nodes."""

from pathlib import Path

from ...mesh import Mesh
from ..registry import Format

__all__ = ["FORMAT"]


def _read(path: Path) -> Mesh:
    # Imported here, since h5py is not needed to print a command's help.
    from .read import read

    return read(path)


FORMAT = Format("cgns", (".cgns",), _read, None, lambda mesh: [])
