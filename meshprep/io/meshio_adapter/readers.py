"""meshio's reading functions, past its front: that one prints and leaves the interpreter."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError

from . import exodus, med, vtk, vtu, xdmf
from .checks import NASTRAN_START, nastran_bulk, nastran_numbers
from .harden import opened
from .numbers import NUMBERS
from .own import meshio
from .table import Entry

# Characters of a field in Nastran's cards of cells, and in the large ones of nodes.
_SMALL, _LARGE = 8, 16


class _Bulk:
    """A deck that begins with its nodes and elements, as if it said so."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._head = [f"{NASTRAN_START.decode()}\n"]

    def readline(self) -> str:
        """The next line; raises EOFError as the file does."""
        return self._head.pop() if self._head else str(self._file.readline())

    def read(self, *size: int) -> str:
        """The next characters."""
        return str(self._file.read(*size))


def _read_nastran(file: Any) -> Any:
    told = NASTRAN_START in Path(file.name).read_bytes()
    try:
        mesh = meshio.nastran.read(file if told else _Bulk(file))
    except KeyError as error:
        raise MeshprepError(
            f"a cell has node {error.args[0]}, which is not there: numbers have at most {_SMALL} "
            "characters in small fields, write longer ones with commas between them"
        ) from error
    systems = mesh.point_data.get("nastran:ref")
    if systems is not None and len(systems) < len(mesh.points):
        # meshio leaves out blank fields, which stand for 0
        if systems.any():
            raise MeshprepError("field CP is blank for some nodes: write its number, or 0, for all")
        del mesh.point_data["nastran:ref"]
    nodes, elements = nastran_numbers(nastran_bulk(Path(file.name)))
    ends = np.cumsum([len(block.data) for block in mesh.cells])
    mesh.numbered = len(nodes) == len(mesh.points) and len(elements) == sum(map(len, mesh.cells))
    if not mesh.numbered:
        mesh.left_out = ["numbers of nodes and elements"]
        return mesh
    mesh.point_data[NUMBERS] = np.array(nodes)
    mesh.cell_data[NUMBERS] = np.split(np.array(elements), ends[:-1])
    return mesh


def write_nastran(path: str, mesh: Any) -> None:
    """Lines as rods: the bars that meshio makes of them lack what tells how they lie."""
    for ids in mesh.cell_data.get("nastran:ref", ()):
        _check_width(ids, _SMALL)
    _check_width(mesh.point_data.get("nastran:ref", ()), _LARGE)
    meshio.nastran.write(path, mesh)
    cards = Path(path).read_text(encoding="utf-8").replace("\nCBAR", "\nCROD")
    Path(path).write_text(cards, encoding="utf-8")


def _check_width(numbers: Any, characters: int) -> None:
    """Refuse numbers that would run into the next field."""
    for number in (np.min(numbers, initial=0), np.max(numbers, initial=0)):
        if len(str(number)) > characters:
            raise MeshprepError(
                f"group {number} of 'nastran:ref' has more than the {characters} characters of a "
                "field: give the group a smaller number, or use another format"
            )


# Formats that are not left to meshio alone.
WRITERS: dict[str, Callable[..., None]] = {
    **{"exodus": exodus.write, "med": med.write, "nastran": write_nastran},
    **{"vtk": vtk.write, "vtu": vtu.write, "xdmf": xdmf.write},
}


def run_reader(entry: Entry, path: Path) -> Any:
    """The ``meshio.Mesh`` of a file, which is opened where the format's entry says so."""
    reader = READERS.get(entry.name) or meshio._helpers.reader_map[entry.name]
    if entry.mode is None:
        return reader(str(path))
    with opened(path, entry.mode) as file:
        return reader(file)


def _read_ugrid(file: Any) -> Any:
    """With the digits that a text has: meshio takes them in single precision."""
    kind = meshio.ugrid._ugrid.determine_file_type(str(file.name))
    text = kind["type"] == "ascii"
    kind = kind | {"float_type": "f8", "int_type": "i8"} if text else kind
    mesh = meshio.ugrid._ugrid.read_buffer(file, kind)
    rest = len(file.read().split()) if text else 0
    mesh.left_out = [f"{rest} numbers after the cells"] if rest else []
    return mesh


def _read_medit(path: str) -> Any:
    """The binary kind shows in its first bytes, not in the name alone."""
    with open(path, "rb") as file:
        binary = int.from_bytes(file.read(4), "little") in (1, 16777216)
    module = meshio.medit._medit
    with opened(Path(path), "rb" if binary else "r") as file:
        return module.read_binary_buffer(file) if binary else module.read_ascii_buffer(file)


READERS: dict[str, Callable[[Any], Any]] = {
    **{"exodus": exodus.read, "med": med.read},
    **{"medit": _read_medit, "nastran": _read_nastran, "ugrid": _read_ugrid},
    **{"vtk": vtk.read, "vtu": vtu.read, "xdmf": xdmf.read},
}
