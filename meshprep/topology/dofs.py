"""Dofs of Lagrange elements as a derived set, shared by cells where their points coincide."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import INDEX_LIMIT

from ..mesh import Dat, ElementSet, Mesh, SetMap
from ..mesh.cells import CellShape
from ..mesh.geometry import CENTROID
from .facets import fill_cell_facets, find_facets, select
from .lattice import REFERENCE, frame_of, inner_points, local_points, numbers_in_frames
from .layout import Layout, layout_of, local_corners

_NAME = re.compile(r"cells->dofs([1-4])")


def dofs_degree(name: str) -> int | None:
    """The degree of a map ``cells->dofs1`` to ``cells->dofs4``; None for other names."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def derive_dofs(mesh: Mesh, name: str) -> Mesh:
    """Add the set of dofs, the map to it from the cells, and where the dofs lie.

    Dofs of vertices come first, by their nodes, then those of edges and of faces, by first
    appearance (cell, local edge or face), then those inside, by cells. So each has one number,
    whichever cell it is reached from. The local order is that of :func:`lattice.local_points`.

    Parameters
    ----------
    mesh : Mesh
        With cells of one type: lines, triangles, quads, tetrahedra or hexahedra of any order.
    name : str
        One that :func:`dofs_degree` knows.

    Returns
    -------
    Mesh

    Raises
    ------
    MeshprepError
        For other cells, and where the set exists without the map.
    """
    layout, degree = layout_of(mesh), dofs_degree(name) or 1
    shape, target = _shape(layout, name), name.partition("->")[2]
    if target in mesh.sets:
        raise MeshprepError(f"map '{name}' cannot be added: the mesh has a set '{target}' already")
    table, size = _table(layout, shape, degree)
    dats = []
    if mesh.coordinates is not None:
        corners = mesh.coordinates[layout.parts[0].table[:, : shape.n_corners]]
        dats = [Dat(CENTROID, target, _positions(shape, degree, corners, table, size))]
    made = SetMap(name, "cells", target, table)
    return mesh.with_(sets=[ElementSet(target, size)], maps=[made], dats=dats)


def _shape(layout: Layout, name: str) -> CellShape:
    shapes = [p.shape for p in layout.parts]
    if len(shapes) > 1 or shapes[0].name not in REFERENCE:
        found = ", ".join(s.name for s in shapes)
        raise MeshprepError(
            f"map '{name}': dofs are for cells of one type, {', '.join(REFERENCE)}, not {found}"
        )
    return shapes[0]


def _table(layout: Layout, shape: CellShape, degree: int) -> tuple[NDArray[np.int32], int]:
    """The map, and the number of dofs."""
    part = layout.parts[0]
    corners = part.table[:, : shape.n_corners]
    used = np.zeros(layout.n_nodes, np.bool_)
    used[corners] = True
    table = np.empty((len(corners), len(local_points(shape, degree))), np.int32)
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    table[:, : shape.n_corners] = number[corners]
    column, base = shape.n_corners, int(np.count_nonzero(used))
    for dim in range(1, shape.dim):
        local = local_corners(shape, dim)
        numbers = numbers_in_frames(len(local[0]), degree)
        count = numbers.shape[1]
        if not count:
            continue
        facets = find_facets(layout.entity_parts(dim, len(local[0])), len(local[0]), layout.n_nodes)
        chosen = select(facets, "all")
        _check_size(base + chosen.size * count, layout)
        of_cell = np.empty((len(corners), len(local)), np.int32)
        fill_cell_facets(chosen, 0, of_cell)
        for k, ends in enumerate(local):
            own = numbers[frame_of(corners[:, list(ends)])]
            table[:, column : column + count] = base + of_cell[:, k, None] * count + own
            column += count
        base += chosen.size * count
    inside = table.shape[1] - column
    _check_size(base + len(corners) * inside, layout)
    first = base + inside * np.arange(len(corners))
    table[:, column:] = first[:, None] + np.arange(inside)
    return table, base + len(corners) * inside


def _check_size(size: int, layout: Layout) -> None:
    if size > INDEX_LIMIT:
        raise MeshprepError(f"{layout.n_cells} cells have more than 2^31-1 dofs: split the mesh")


def _positions(
    shape: CellShape,
    degree: int,
    corners: NDArray[np.float64],
    table: NDArray[np.int32],
    size: int,
) -> NDArray[np.float64]:
    """Where each dof lies, by the corners (cells, n_corners, d) of one of its cells."""
    where = np.empty((size, corners.shape[2]))
    for k, point in enumerate(local_points(shape, degree) / degree):
        where[table[:, k]] = np.einsum("c,ecd->ed", _weights(shape, point), corners)
    return where


def _weights(shape: CellShape, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each corner counts at a point of the reference cell."""
    if shape.n_corners == shape.dim + 1:
        return np.concatenate([[1 - point.sum()], point])
    ends = np.array(REFERENCE[shape.name])
    return np.prod(np.where(ends == 1, point, 1 - point), axis=1)


def facet_dofs(shape: CellShape, degree: int) -> list[NDArray[np.int64]]:
    """The local dofs that lie on each facet of a cell, its edges and vertices included."""
    points = local_points(shape, degree)
    corners = np.array(REFERENCE[shape.name])
    place = {tuple(p): k for k, p in enumerate(points.tolist())}
    found = []
    for facet in shape.facets:
        pieces = [degree * corners[list(facet)]]
        inner = [c for c in shape.edges if set(c) <= set(facet)] if shape.dim == 3 else []
        pieces += [inner_points(corners[list(c)], degree) for c in (*inner, facet) if len(c) > 1]
        every = np.concatenate(pieces).tolist()
        found.append(np.array(sorted(place[tuple(p)] for p in every)))
    return found
