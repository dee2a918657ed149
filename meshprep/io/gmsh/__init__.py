"""Gmsh meshes: MSH 2.2 and 4.1, text and binary.

What a mesh from such a file holds, besides the sets of cells: the tags ``entity``,
``physical`` (with names) and ``partition``; the dat ``label``, where nodes or cells have
numbers other than 1, 2, 3, ...; in MSH 4.1 the dats ``gmsh:entity_dim`` and
``gmsh:entity_tag`` on the nodes, and ``gmsh:parametric`` where nodes have such coordinates;
a list ``gmsh:periodic`` of (slave, master) nodes for each periodic link; values of nodes
and elements as dats, their headers in ``attrs``; ``extras["gmsh"]``: version, mode, the
table of entities, names of groups without cells, and sections that hold no numbers of nodes
or elements; ``extras["unread"]``: what was left out, such as ghost cells and values at the
nodes of cells.

Nodes of MSH 4.1 that are numbered 1 to n in any order stand by their numbers, since such a
file has them entity by entity.

Cells of second order stand in VTK's order in memory (``tetra10``, ``hexahedron20``,
``hexahedron27``, ``wedge15``, ``wedge18``, ``pyramid13``), all others in Gmsh's. MSH 2
repeats an element for each of its groups; such copies are one cell in memory.

Writing keeps the order of the mesh, that of nodes in their numbers. What had to be made up
for Gmsh (entities where cells have none, or where those of one entity differ in their
groups) is noted in a section ``$Meshprep``, which Gmsh ignores, so that reading gives the
mesh as it was.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh
from ..format import Format
from .layout import losses, target

__all__ = ["FORMAT", "losses", "read", "write"]


def read(path: Path) -> Mesh:
    """Read a Gmsh mesh, see :func:`meshprep.io.gmsh.read.read_file`."""
    # Imported here, since numba takes longer to import than a command to print its help.
    from .read import read_file

    return read_file(Path(path))


def write(
    mesh: Mesh, path: Path, *, version: str | None = None, binary: bool | None = None
) -> None:
    """Write a Gmsh mesh, see :func:`meshprep.io.gmsh.write.write_file`."""
    from .write import write_file

    write_file(mesh, Path(path), version=version, binary=binary)


def _entity_of_cell(mesh: Mesh) -> Mapping[str, NDArray[np.integer]]:
    """The entity of each cell, see :func:`meshprep.io.gmsh.write.cell_groups`."""
    from .write import cell_groups

    return cell_groups(mesh)


def _breaks(mesh: Mesh, sets: Sequence[str]) -> str:
    """meshio cuts values of cells where it has no cells yet; one type alone is not cut."""
    several = sum(s.size > 0 for s in mesh.cell_sets) > 1
    if target(mesh, None, None)[0] != "2.2" or not several or not set(sets) - {"nodes"}:
        return ""
    return "meshio reads no MSH 2.2 file that has values on cells of several types"


FORMAT = Format(
    read=read,
    write=write,
    losses=losses,
    options={"version": None, "binary": None},
    groups=_entity_of_cell,
    breaks=_breaks,
)
