"""scikit-fem's meshes in and out: named boundaries and subdomains follow the numbering."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, import_package

from ..mesh import IndexList, Mesh
from ..mesh.assemble import Block, assemble
from ..mesh.cells import shape_of

CLASS = "skfem:class"
BOUNDARY, INSIDE, SUBDOMAIN = "skfem:boundary", "skfem:inside", "skfem:subdomain"
TYPES = {
    **{"MeshLine1": "line", "MeshTri1": "triangle", "MeshQuad1": "quad"},
    **{"MeshTet1": "tetra", "MeshHex1": "hexahedron", "MeshWedge1": "wedge"},
}
# Node k of a hexahedron in the order of VTK is scikit-fem's node HEX[k].
HEX = (0, 3, 6, 2, 1, 5, 7, 4)
_ARRAYS = ("doflocs", "t", "_boundaries", "_subdomains", "elem")


def from_skfem(source: Any) -> Mesh:
    """The mesh that a scikit-fem mesh of first order holds.

    Parameters
    ----------
    source : skfem.MeshLine, MeshTri, MeshQuad, MeshTet, MeshHex or MeshWedge1
        It is not changed. Boundaries, oriented ones too, and subdomains come along.

    Returns
    -------
    Mesh

    Raises
    ------
    MeshprepError
        For other classes of mesh, and where ``read`` would refuse a file.
    """
    from .validate import validate

    name = type(source).__name__
    if name not in TYPES:
        raise MeshprepError(
            f"a scikit-fem mesh of class {name} is not supported: use one of {', '.join(TYPES)}, "
            "or make a meshprep.Mesh of tables such as Basis.element_dofs"
        )
    points = np.asarray(source.p, dtype=np.float64).T
    if points.shape[1] == 1:
        points = np.pad(points, ((0, 0), (0, 1)))
    cells = np.asarray(source.t).T
    if name == "MeshHex1":
        cells = cells[:, HEX]
    settings = {f.name: getattr(source, f.name) for f in fields(source) if f.name not in _ARRAYS}
    extras = {CLASS: (type(source), settings)}
    parts = (source.subdomains or {}).items()
    inside = [IndexList(n, "cells", np.asarray(c), {"kind": SUBDOMAIN}) for n, c in parts]
    lists = [*_boundary_lists(source), *inside]
    mesh, _ = assemble(
        np.ascontiguousarray(points), [Block(TYPES[name], cells)], lists=lists, extras=extras
    )
    validate(mesh)
    return mesh


def _boundary_lists(source: Any) -> Iterator[IndexList]:
    for name, found in (source.boundaries or {}).items():
        facets = np.asarray(found)
        yield IndexList(name, "nodes", source.facets[:, facets].T, {"kind": BOUNDARY})
        if getattr(found, "ori", None) is not None:
            # The side of a facet is told by the cell on it.
            cells = source.f2t[np.asarray(found.ori), facets]
            yield IndexList(name, "cells", cells, {"kind": INSIDE})


def to_skfem(mesh: Mesh) -> Any:
    """The scikit-fem mesh of a mesh with cells of one type of first order, in its order.

    Parameters
    ----------
    mesh : Mesh
        From ``from_skfem``, or from a file: groups of its cells become subdomains, those of
        lower cells boundaries, under their names (``physical:3`` where they have none).

    Returns
    -------
    skfem.Mesh
        Facets and edges are numbered by scikit-fem itself, from the new order. A triangle's nodes
        ascend, as scikit-fem has it.

    Raises
    ------
    MeshprepError
        For several types of cells, or types that scikit-fem has no mesh of first order for.
    MissingPackageError
        Where scikit-fem is not installed.
    """
    kind = mesh.sets["cells"].cell_type if "cells" in mesh.sets else None
    if kind not in TYPES.values() or mesh.coordinates is None:
        raise MeshprepError(
            f"scikit-fem takes cells of one type of first order ({', '.join(TYPES.values())}), "
            f"not {kind or 'several types'}"
        )
    made_of, settings = mesh.extras.get(CLASS) or (_class_of(str(kind)), {})
    cells = mesh.cell_map("cells").table
    if kind == "hexahedron":
        cells = cells[:, np.argsort(HEX)]
    points, dim = mesh.coordinates, shape_of(str(kind)).dim
    # flat where the coordinates beyond the dimension of the cells are all zero
    points = points if points[:, dim:].any() else points[:, :dim]
    made = made_of(
        doflocs=np.ascontiguousarray(points.T), t=np.ascontiguousarray(cells.T), **settings
    )
    boundaries = dict(_boundaries(mesh, made))
    subdomains = dict(_subdomains(mesh))
    made._boundaries, made._subdomains = boundaries or None, subdomains or None
    return made


def _class_of(kind: str) -> Any:
    message = "package scikit-fem is needed: install it with  pip install scikit-fem"
    skfem = import_package("skfem", message)
    return getattr(skfem, next(name for name, t in TYPES.items() if t == kind))


def _boundaries(mesh: Mesh, made: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    from skfem.generic_utils import OrientedBoundary

    inside = {i.name: i.index for i in mesh.lists if i.attrs.get("kind") == INSIDE}
    wanted = {i.name: i.index for i in mesh.lists if i.attrs.get("kind") == BOUNDARY}
    dim = shape_of(str(mesh.sets["cells"].cell_type)).dim
    lower = [s for s in mesh.cell_sets if shape_of(str(s.cell_type)).dim == dim - 1]
    for s in lower:
        for name, rows in _groups(mesh, s.name):
            wanted[name] = mesh.cell_map(s.name).table[rows]
    if not wanted:
        return
    found = np.split(
        _find_rows(made.facets.T, np.concatenate([*wanted.values()])),
        np.cumsum([len(rows) for rows in wanted.values()])[:-1],
    )
    for name, facets in zip(wanted, found, strict=True):
        if name in inside:
            other = made.f2t[1, facets] == inside[name]
            facets = OrientedBoundary(facets, other.astype(np.int64))
        yield name, facets


def _subdomains(mesh: Mesh) -> Iterator[tuple[str, NDArray[Any]]]:
    for i in mesh.lists:
        if i.attrs.get("kind") == SUBDOMAIN:
            yield i.name, np.array(i.index)
    yield from _groups(mesh, "cells")


def _groups(mesh: Mesh, set_name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each group of a set: its name, and the elements in it."""
    for t in mesh.tags:
        if t.set != set_name:
            continue
        for group in np.unique(t.group_id).tolist():
            rows = [r for r in range(t.group_offset.size - 1) if group in t.groups(r)]
            name = t.names.get(group, f"{t.name}:{group}")
            yield name, np.flatnonzero(np.isin(t.values, rows)).astype(np.int32)


def _find_rows(table: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int32]:
    """Where each of these rows stands in a table, whatever the order inside rows. O(n log n)."""
    from .validate import first_equal

    both = np.sort(np.concatenate([table, rows]), axis=1)
    # The row of the table is the first of those that are equal.
    found = first_equal(both)[len(table) :]
    if found.size and found.max() >= len(table):
        raise MeshprepError("a boundary has a facet that no cell has")
    return found.astype(np.int32)
