"""What every mesh must satisfy, whatever file it came from; linear time and little memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..cells import shape_of
from ..mesh import ElementSet, Mesh
from ..topology import unattached


def validate(mesh: Mesh, dimension: int | None = None) -> None:
    """Raise MeshprepError unless loops can run over this mesh.

    Coordinates are finite; there are cells; no cell names a node twice; no two cells of the
    highest dimension have the same nodes; every lower cell but a vertex is a face or an edge of a
    cell of the highest dimension. Indices were checked when the mesh was made. Expected O(size).

    Parameters
    ----------
    mesh : Mesh
    dimension : int, optional
        Accepts lower cells that are no face or edge: loops run over the cells of this dimension,
        the others are carried along. Must be the highest there is.
    """
    cells = [s for s in mesh.cell_sets if s.size and shape_of(str(s.cell_type)).dim > 0]
    if not cells:
        raise MeshprepError("there are no cells: the file needs lines, faces or volumes to work on")
    _check_coordinates(mesh)
    highest = max(shape_of(str(s.cell_type)).dim for s in cells)
    if dimension is not None and dimension != highest:
        raise MeshprepError(
            f"dimension {dimension} was asked for, but the highest cells are of dimension "
            f"{highest}: leave --dimension out or use {highest}"
        )
    for s in cells:
        _check_repeated(mesh, s)
    for s in cells:
        if shape_of(str(s.cell_type)).dim == highest:
            _check_duplicates(mesh, s)
    if dimension is None:
        _check_attached(mesh, cells, highest)


def _check_coordinates(mesh: Mesh) -> None:
    points = mesh.coordinates
    if points is None:
        return
    bad = _first_not_finite(points)
    if bad >= 0:
        place = " ".join(f"{x:g}" for x in points[bad])
        raise MeshprepError(
            f"node {bad + 1} has the coordinates {place}: they must be finite numbers"
        )


def _check_repeated(mesh: Mesh, cells: ElementSet) -> None:
    table = mesh.cell_map(cells.name).table
    row, column = _first_repeated(table)
    if row >= 0:
        raise MeshprepError(
            f"cell {row + 1} of set '{cells.name}' names node {table[row, column] + 1} twice: "
            "degenerate cells are not supported, remove them or split them into other types"
        )


def _check_duplicates(mesh: Mesh, cells: ElementSet) -> None:
    table = mesh.cell_map(cells.name).table
    first, second = _first_duplicate(table)
    if first >= 0:
        nodes = " ".join(str(n + 1) for n in np.sort(table[first])[:8])
        raise MeshprepError(
            f"cells {first + 1} and {second + 1} of set '{cells.name}' have the same nodes "
            f"({nodes}): remove one"
        )


def _check_attached(mesh: Mesh, cells: Sequence[ElementSet], highest: int) -> None:
    if all(shape_of(str(s.cell_type)).dim == highest for s in cells):
        return
    loose = {name: rows for name, rows in unattached(mesh).items() if rows.size}
    if not loose:
        return
    name, rows = next(iter(loose.items()))
    count = sum(r.size for r in loose.values())
    raise MeshprepError(
        f"{count} lower-dimension cells (the first: cell {rows[0] + 1} of set '{name}') are no "
        f"face or edge of a cell of dimension {highest}: use --dimension {highest} to run over "
        f"those cells and carry the others along, or split the file"
    )


@njit(cache=True)
def _first_not_finite(points: NDArray[np.float64]) -> int:
    n, dim = points.shape
    for i in range(n):
        for j in range(dim):
            if not np.isfinite(points[i, j]):
                return i
    return -1


@njit(cache=True)
def _first_repeated(table: NDArray[np.int32]) -> tuple[int, int]:
    n, k = table.shape
    for i in range(n):
        for a in range(1, k):
            for b in range(a):
                if table[i, a] == table[i, b]:
                    return i, a
    return -1, -1


def _first_duplicate(table: NDArray[np.int32]) -> tuple[int, int]:
    """The first cell whose nodes an earlier cell has, after that one; (-1, -1) if there is none."""
    bits = max(4, int(2 * len(table)).bit_length())
    first, second = _find_duplicate(table, bits)
    return int(first), int(second)


@njit(cache=True)
def _find_duplicate(table: NDArray[np.int32], bits: int) -> tuple[int, int]:
    # Open addressing on a sum of mixed node numbers, which does not depend on their order.
    n, k = table.shape
    mask = np.uint64((1 << bits) - 1)
    slots = np.full(1 << bits, -1, np.int32)
    key = np.empty(n, np.uint64)
    for i in range(n):
        total = np.uint64(0)
        for j in range(k):
            total += _mix(np.uint64(table[i, j]))
        key[i] = total
        at = _mix(total) & mask
        while slots[at] >= 0:
            other = slots[at]
            if key[other] == total and _same_nodes(table, other, i):
                return other, i
            at = (at + np.uint64(1)) & mask
        slots[at] = i
    return -1, -1


@njit(cache=True)
def _mix(x: np.uint64) -> np.uint64:
    # Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014: the finaliser.
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def _same_nodes(table: NDArray[np.int32], first: int, second: int) -> bool:
    # Nodes inside a cell are distinct by now, so that one inclusion is enough.
    k = table.shape[1]
    for a in range(k):
        found = False
        for b in range(k):
            if table[first, a] == table[second, b]:
                found = True
                break
        if not found:
            return False
    return True
