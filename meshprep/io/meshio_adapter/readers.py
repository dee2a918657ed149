"""meshio's reading functions, past its front: that one prints and leaves the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import exodus, vtu, xdmf

# Formats whose slow parts are not left to meshio.
OWN: dict[str, Any] = {"vtu": vtu, "xdmf": xdmf}


def reader_of(name: str, path: Path) -> Callable[[Any], Any]:
    """The function that reads this format, from a path or an open file as its entry says."""
    import meshio

    if name == "vtk":
        return meshio.vtk._main.read_buffer
    if name == "ugrid":
        kind = meshio.ugrid._ugrid.determine_file_type(str(path))
        return lambda file: meshio.ugrid._ugrid.read_buffer(file, kind)
    if name in OWN:
        return OWN[name].read
    if name == "exodus":
        return exodus.read
    if name == "medit":
        return _read_medit
    if name == "dolfin-xml":
        return _read_dolfin
    return meshio._helpers.reader_map[name]


def _read_medit(path: str) -> Any:
    """The binary kind shows in its first bytes, not in the name alone."""
    import meshio

    from .harden import opened

    with open(path, "rb") as file:
        binary = int.from_bytes(file.read(4), "little") in (1, 16777216)
    module = meshio.medit._medit
    with opened(Path(path), "rb" if binary else "r") as file:
        return module.read_binary_buffer(file) if binary else module.read_ascii_buffer(file)


def _read_dolfin(path: str) -> Any:
    """The mesh alone: meshio also takes every ``NAME_*.xml`` that happens to lie beside it."""
    import meshio

    points, cells, _ = meshio.dolfin._dolfin._read_mesh(path)
    return meshio.Mesh(points, cells)
