"""CGNS files in HDF5: unstructured zones, by the labels of their nodes [SIDS].

Read here and not through meshio, which reads tetrahedra of fixed names alone, and writes what
CGNS's library does not take.
"""

from pathlib import Path

from ...mesh import Mesh
from ..registry import Format

__all__ = ["FORMAT"]


# Imported within, since h5py is not needed to print a command's help.
def _read(path: Path) -> Mesh:
    from .read import read

    return read(path)


def _write(mesh: Mesh, path: Path) -> None:
    from .write import write

    write(mesh, path)


def _losses(mesh: Mesh, **_options: object) -> list[str]:
    from .layout import laid_out

    return laid_out(mesh).lost


def _reduced(mesh: Mesh) -> Mesh:
    from .layout import laid_out

    return laid_out(mesh).mesh


FORMAT = Format("cgns", (".cgns",), _read, _write, _losses, reduce=_reduced)
