"""meshio's mesh objects in and out, without a file between."""

from dataclasses import replace
from typing import Any

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh
from .format import Capabilities, Values
from .format.names import FIELD_DATA


def from_meshio(source: Any, dimension: int | None = None) -> Mesh:
    """The mesh that a ``meshio.Mesh`` holds; its blocks are merged by type of cell.

    Parameters
    ----------
    source : meshio.Mesh
        Points, cells, point and cell data, sets and field data; it is not changed.
    dimension : int, optional
        Accepts loose cells of a lower dimension than this; loops run over cells of this
        one.

    Returns
    -------
    Mesh
        With arrays of its own.

    Raises
    ------
    MeshprepError
        For cells that are not supported, and where ``read`` would refuse a file.
    """
    from .cell_blocks.mesh_of_file import mesh_of_file
    from .guard import guarded
    from .meshio_formats import of_meshio
    from .validate import validate

    with guarded("not a mesh that meshprep can hold"):
        mesh = _with_own_arrays(mesh_of_file(of_meshio(source)))
    validate(mesh, dimension)
    return mesh


def _with_own_arrays(mesh: Mesh) -> Mesh:
    """The mesh, with copies of the arrays, which later changes do not reach."""
    maps = {name: replace(m, table=m.table.copy()) for name, m in mesh.maps.items()}
    return replace(
        mesh, maps=maps, dats=tuple(replace(d, values=d.values.copy()) for d in mesh.dats)
    )


def to_meshio(mesh: Mesh, *, drop: bool = False) -> Any:
    """The ``meshio.Mesh`` of a mesh, in its order, with one block a type of cell.

    Parameters
    ----------
    mesh : Mesh
    drop : bool
        Leave out what meshio has no place for: all but the first of several groups of a
        cell, index lists of pairs, a second time step.

    Returns
    -------
    meshio.Mesh
        With arrays of its own. Groups are ``cell_data`` of whole numbers (``gmsh:physical``
        for the tag ``physical``) and their names ``field_data``.

    Raises
    ------
    MeshprepError
        That names what would be lost, unless ``drop``.
    """
    from .cell_blocks.file_of_mesh import file_of_mesh
    from .format.reduce import reduce
    from .meshio_formats import as_meshio

    capabilities = Capabilities(
        tuple(dict.fromkeys(str(s.cell_type) for s in mesh.cell_sets)),
        node_values=Values(),
        cell_values=Values(),
        tag="*",
        node_tag="*",
        group_names=True,
        lists=("point_set", "cell_set"),
        plane=True,
    )
    writable, lost = reduce(mesh, capabilities)
    if lost and not drop:
        raise MeshprepError(
            f"meshio has no place for {'; '.join(lost)}: say drop=True to go on"
        )
    made = as_meshio(file_of_mesh(writable, capabilities))
    made.field_data |= dict(mesh.extras.get(FIELD_DATA, {}))
    return made
