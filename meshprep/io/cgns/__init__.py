"""CGNS files in HDF5: unstructured zones, by the labels of their nodes [SIDS].

Read here and not through meshio, which reads tetrahedra of fixed names alone, and writes
what CGNS's library does not take.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh
from ..format import Format
from ..format.reduce import groups_by_tag

__all__ = ["FORMAT"]


# Imported within, since h5py is not needed to print a command's help.
def _read_cgns(path: Path) -> Mesh:
    from .read import read

    return read(path)


def _write_cgns(mesh: Mesh, path: Path) -> None:
    from .write import write

    write(mesh, path)


def _losses_of_cgns(mesh: Mesh, **_options: object) -> list[str]:
    from .layout import laid_out

    return laid_out(mesh).lost


def _reduce_to_cgns(mesh: Mesh) -> Mesh:
    from .layout import laid_out

    return laid_out(mesh).mesh


def _section_of_cell(mesh: Mesh) -> Mapping[str, NDArray[np.integer]]:
    from .groups import SECTION

    return groups_by_tag(mesh, SECTION)


FORMAT = Format(
    read=_read_cgns,
    write=_write_cgns,
    losses=_losses_of_cgns,
    reduce=_reduce_to_cgns,
    groups=_section_of_cell,
)
