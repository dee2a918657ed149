"""meshio's mesh objects in and out, without a file between."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh
from .registry import FIELD_DATA, Capabilities, Values

if TYPE_CHECKING:
    from .meshio_adapter.file_mesh import FileMesh


def from_meshio(source: Any, dimension: int | None = None) -> Mesh:
    """The mesh that a ``meshio.Mesh`` holds; its blocks are merged by type of cell.

    Parameters
    ----------
    source : meshio.Mesh
        Points, cells, point and cell data, sets and field data; it is not changed.
    dimension : int, optional
        Accepts loose cells of a lower dimension than this; loops run over cells of this one.

    Returns
    -------
    Mesh
        With arrays of its own.

    Raises
    ------
    MeshprepError
        For cells that are not supported, and where ``read`` would refuse a file.
    """
    from .meshio_adapter.harden import guarded
    from .meshio_adapter.incoming import convert
    from .validate import validate

    with guarded("not a mesh that meshprep can hold"):
        mesh = _with_own_arrays(convert(of_meshio(source)))
    validate(mesh, dimension)
    return mesh


def of_meshio(source: Any) -> "FileMesh":
    """What a ``meshio.Mesh`` holds."""
    from .meshio_adapter.file_mesh import Cells, FileMesh

    made = FileMesh(source.points, [Cells(block.type, block.data) for block in source.cells])
    for key in ("point_data", "cell_data", "field_data", "point_sets", "cell_sets"):
        setattr(made, key, dict(getattr(source, key)))
    made.left_out = list(source.info) if isinstance(source.info, dict) else []
    made.left_out += ["periodic pairs of nodes"] if source.gmsh_periodic else []
    return made


def _with_own_arrays(mesh: Mesh) -> Mesh:
    """The mesh, which does not change when somebody writes to the arrays that it was made of."""
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
        Leave out what meshio has no place for: all but the first of several groups of a cell,
        index lists of pairs, a second time step.

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
    from .meshio_adapter.outgoing import as_meshio, convert
    from .reduce import reduce

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
    kept, lost = reduce(mesh, capabilities)
    if lost and not drop:
        raise MeshprepError(f"meshio has no place for {'; '.join(lost)}: say drop=True to go on")
    made = as_meshio(convert(kept, capabilities))
    made.field_data |= dict(mesh.extras.get(FIELD_DATA, {}))
    return made
