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
    "MeshLine1": "line",
    "MeshTri1": "triangle",
    "MeshQuad1": "quad",
    "MeshTet1": "tetra",
    "MeshHex1": "hexahedron",
    "MeshWedge1": "wedge",
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
            f"a scikit-fem mesh of class {name} is not supported: use one of "
            f"{', '.join(TYPES)}, or make a meshprep.Mesh of tables such as "
            "Basis.element_dofs"
        )
    # Turn rows into columns, and the corners of hexahedra into VTK's order.
    points = np.asarray(source.p, dtype=np.float64).T
    if points.shape[1] == 1:
        points = np.pad(points, ((0, 0), (0, 1)))
    cells = np.asarray(source.t).T
    if name == "MeshHex1":
        cells = cells[:, HEX]
    # Keep the class and its settings, for the way back.
    settings = {
        f.name: getattr(source, f.name) for f in fields(source) if f.name not in _ARRAYS
    }
    extras = {CLASS: (type(source), settings)}
    parts = (source.subdomains or {}).items()
    inside = [
        IndexList(name=n, set="cells", index=np.asarray(c), attrs={"kind": SUBDOMAIN})
        for n, c in parts
    ]
    lists = [*_boundary_lists(source), *inside]
    mesh, _ = assemble(
        points=np.ascontiguousarray(points),
        blocks=[Block(TYPES[name], cells)],
        lists=lists,
        extras=extras,
    )
    validate(mesh)
    return mesh


def _boundary_lists(source: Any) -> Iterator[IndexList]:
    for name, boundary in (source.boundaries or {}).items():
        facets = np.asarray(boundary)
        yield IndexList(
            name=name,
            set="nodes",
            index=source.facets[:, facets].T,
            attrs={"kind": BOUNDARY},
        )
        if getattr(boundary, "ori", None) is not None:
            # The side of a facet is told by the cell on it.
            cells = source.f2t[np.asarray(boundary.ori), facets]
            yield IndexList(name=name, set="cells", index=cells, attrs={"kind": INSIDE})


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
        Facets and edges are numbered by scikit-fem itself, from the new order. A triangle's
        nodes ascend, as scikit-fem has it.

    Raises
    ------
    MeshprepError
        For several types of cells, or types that scikit-fem has no mesh of first order for.
    MissingPackageError
        Where scikit-fem is not installed.
    """
    if "cells" in mesh.sets:
        kind = mesh.sets["cells"].cell_type
    else:
        kind = None
    if kind not in TYPES.values() or mesh.coordinates is None:
        raise MeshprepError(
            "scikit-fem takes cells of one type of first order "
            f"({', '.join(TYPES.values())}), "
            f"not {kind or 'several types'}"
        )
    made_of, settings = mesh.extras.get(CLASS) or (_class_of(str(kind)), {})
    # Turn rows into columns again, and VTK's order of corners into scikit-fem's.
    cells = mesh.cell_map("cells").table
    if kind == "hexahedron":
        cells = cells[:, np.argsort(HEX)]
    points = mesh.coordinates
    dim = shape_of(str(kind)).dim
    # flat where the coordinates beyond the dimension of the cells are all zero
    if points[:, dim:].any():
        points = points
    else:
        points = points[:, :dim]
    skfem_mesh = made_of(
        doflocs=np.ascontiguousarray(points.T), t=np.ascontiguousarray(cells.T), **settings
    )
    boundaries = dict(_boundaries(mesh, skfem_mesh))
    subdomains = dict(_subdomains(mesh))
    skfem_mesh._boundaries = boundaries or None
    skfem_mesh._subdomains = subdomains or None
    return skfem_mesh


def _class_of(kind: str) -> Any:
    message = "package scikit-fem is needed: install it with  pip install scikit-fem"
    skfem = import_package("skfem", message)
    return getattr(skfem, next(name for name, t in TYPES.items() if t == kind))


def _boundaries(mesh: Mesh, made: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    from skfem.generic_utils import OrientedBoundary

    # scikit-fem numbers facets anew: find those of each boundary by their nodes.
    inside = {i.name: i.index for i in mesh.lists if i.attrs.get("kind") == INSIDE}
    facets_by_name = {
        i.name: i.index for i in mesh.lists if i.attrs.get("kind") == BOUNDARY
    }
    dim = shape_of(str(mesh.sets["cells"].cell_type)).dim
    lower = [s for s in mesh.cell_sets if shape_of(str(s.cell_type)).dim == dim - 1]
    for s in lower:
        for name, rows in _elements_by_group(mesh, s.name):
            facets_by_name[name] = mesh.cell_map(s.name).table[rows]
    if not facets_by_name:
        return
    found = np.split(
        _index_of_rows(made.facets.T, np.concatenate([*facets_by_name.values()])),
        np.cumsum([len(rows) for rows in facets_by_name.values()])[:-1],
    )
    for name, facets in zip(facets_by_name, found, strict=True):
        if name in inside:
            # The orientation is 1 where the cell on the wanted side is the second one of
            # the facet.
            other = made.f2t[1, facets] == inside[name]
            facets = OrientedBoundary(facets, other.astype(np.int64))
        yield name, facets


def _subdomains(mesh: Mesh) -> Iterator[tuple[str, NDArray[Any]]]:
    for i in mesh.lists:
        if i.attrs.get("kind") == SUBDOMAIN:
            yield i.name, np.array(i.index)
    yield from _elements_by_group(mesh, "cells")


def _elements_by_group(mesh: Mesh, set_name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each group of a set: its name, and the elements in it."""
    for t in mesh.tags:
        if t.set != set_name:
            continue
        for group in np.unique(t.group_id).tolist():
            rows = [r for r in range(t.group_offset.size - 1) if group in t.groups(r)]
            name = t.names.get(group, f"{t.name}:{group}")
            yield name, np.flatnonzero(np.isin(t.values, rows)).astype(np.int32)


def _index_of_rows(table: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int32]:
    """The index of each of these rows in a table, for any order within rows. O(n log n)."""
    from .validate import first_equal

    both = np.sort(np.concatenate([table, rows]), axis=1)
    # The row of the table is the first of those that are equal.
    found = first_equal(both)[len(table) :]
    if found.size and found.max() >= len(table):
        raise MeshprepError("a boundary has a facet that no cell has")
    return found.astype(np.int32)
