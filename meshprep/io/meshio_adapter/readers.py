"""meshio's reading functions, past its front: that one prints and leaves the interpreter."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import abaqus, exodus, exodus_write, med, vtk, vtu, xdmf


def write_nastran(path: str, mesh: Any) -> None:
    """Lines as rods: the bars that meshio makes of them lack what tells how they lie."""
    import meshio

    meshio.nastran.write(path, mesh)
    cards = Path(path).read_text().replace("\nCBAR", "\nCROD")
    Path(path).write_text(cards)


# Formats that are not left to meshio alone.
READERS: dict[str, Callable[[Any], Any]] = {
    **{"abaqus": abaqus.read, "exodus": exodus.read, "med": med.read},
    **{"vtk": vtk.read, "vtu": vtu.read, "xdmf": xdmf.read},
}
WRITERS: dict[str, Callable[..., None]] = {
    **{"abaqus": abaqus.write, "exodus": exodus_write.write, "med": med.write},
    **{"vtk": vtk.write, "vtu": vtu.write, "xdmf": xdmf.write},
    "nastran": write_nastran,
}


def reader_of(name: str, path: Path) -> Callable[[Any], Any]:
    """The function that reads this format, from a path or an open file as its entry says."""
    import meshio

    if name == "ugrid":
        return partial(_read_ugrid, path)
    if name in READERS:
        return READERS[name]
    if name == "medit":
        return _read_medit
    if name == "dolfin-xml":
        return _read_dolfin
    return meshio._helpers.reader_map[name]


def _read_ugrid(path: Path, file: Any) -> Any:
    """With the digits that a text has: meshio takes them in single precision."""
    import meshio

    kind = meshio.ugrid._ugrid.determine_file_type(str(path))
    text = kind["type"] == "ascii"
    kind = kind | {"float_type": "f8", "int_type": "i8"} if text else kind
    mesh = meshio.ugrid._ugrid.read_buffer(file, kind)
    rest = len(file.read().split()) if text else 0
    mesh.left_out = [f"{rest} numbers after the cells"] if rest else []
    return mesh


def _read_medit(path: str) -> Any:
    """The binary kind shows in its first bytes, not in the name alone.

    Texts have the digits that they have, whatever precision they are meant for.
    """
    from ctypes import c_double

    import meshio

    from .harden import opened

    with open(path, "rb") as file:
        binary = int.from_bytes(file.read(4), "little") in (1, 16777216)
    module = meshio.medit._medit
    module.c_float = c_double
    with opened(Path(path), "rb" if binary else "r") as file:
        return module.read_binary_buffer(file) if binary else module.read_ascii_buffer(file)


def _read_dolfin(path: str) -> Any:
    """The mesh alone: meshio also takes every ``NAME_*.xml`` that happens to lie beside it."""
    import meshio

    points, cells, _ = meshio.dolfin._dolfin._read_mesh(path)
    return meshio.Mesh(points, cells)
