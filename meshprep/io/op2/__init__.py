"""OP2's HDF5 meshes: sets, maps and dats under their own names [G12 section 2].

The file says neither which sets a map connects nor which set a dat is on: :mod:`infer`
finds it from row counts and index ranges, and asks where that leaves a choice. What is no
set, map or dat (constants, groups, links, attributes) is kept as an HDF5 image and written
back as it was.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...mesh import Mesh
from ..declared import declared
from ..format import Format
from .layout import declarations, losses, reduced

__all__ = ["FORMAT"]


def _read_op2(
    path: Path, sets: Mapping[str, str] | Iterable[str] | str | None = None
) -> Mesh:
    # Imported here, since h5py is not needed to print a command's help.
    from .read import read

    return read(path, declared(sets))


def _write_op2(mesh: Mesh, path: Path) -> None:
    from .write import write

    write(mesh, path)


FORMAT = Format(
    read=_read_op2,
    write=_write_op2,
    losses=losses,
    reduce=reduced,
    cells=False,
    extras=("constants",),
    read_options={"sets": None},
    again=declarations,
)
