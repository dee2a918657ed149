"""What goes through the library meshio: files of Netgen, MED's layout, its objects."""

import re
from pathlib import Path
from typing import Any, BinaryIO

from meshprep_runtime.errors import MeshprepError

from ..mesh.cells import shape_of
from .cell_blocks import Cells, FileMesh, read_only_format


def of_meshio(source: Any) -> FileMesh:
    """What a ``meshio.Mesh`` holds."""
    converted = FileMesh(
        source.points, [Cells(block.type, block.data) for block in source.cells]
    )
    for key in ("point_data", "cell_data", "field_data", "point_sets", "cell_sets"):
        setattr(converted, key, dict(getattr(source, key)))
    if isinstance(source.info, dict):
        converted.left_out = list(source.info)
    else:
        converted.left_out = []
    converted.left_out += ["periodic pairs of nodes"] if source.gmsh_periodic else []
    return converted


def as_meshio(mesh: FileMesh) -> Any:
    """The ``meshio.Mesh`` of what it has a place for."""
    import meshio

    blocks = []
    for cells in mesh.cells:
        # meshio makes no block of some types that its formats have: they are set afterwards
        block = meshio.CellBlock("vertex", cells.data)
        block.type = cells.type
        block.dim = shape_of(cells.type).dim
        blocks.append(block)
    names = ("point_data", "cell_data", "field_data", "point_sets", "cell_sets")
    return meshio.Mesh(mesh.points, blocks, **{key: getattr(mesh, key) for key in names})


def write_med(mesh: FileMesh, file: BinaryIO) -> None:
    """Write a mesh in MED's layout, under the name ``mesh``, with one step."""
    import meshio

    meshio.med.write(file, as_meshio(mesh))


def read_netgen(path: Path) -> FileMesh:
    """A mesh of Netgen, as text."""
    _check_counts(path, rb"(?m)^[a-z]\w*[ \t]*\r?\n[ \t]*(\d+)[ \t]*\r?$")
    return _read_by_meshio("netgen", path)


def _check_counts(path: Path, pattern: bytes) -> None:
    """Refuse files that declare more than they can hold, before memory is made for it."""
    data = path.read_bytes()
    if (most := max(map(int, re.findall(pattern, data)), default=0)) > len(data):
        raise MeshprepError(f"declares {most} items in {len(data)} bytes")


def _read_by_meshio(name: str, path: Path) -> FileMesh:
    import meshio

    return of_meshio(meshio.read(path, file_format=name))


NETGEN = read_only_format(read_netgen)
