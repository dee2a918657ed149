"""What every mesh must satisfy, whatever file it came from; linear time and little memory."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..kernels.parallel import at_once, each, pieces
from ..mesh import ElementSet, Mesh
from ..mesh.cells import shape_of
from ..topology import unattached
from .duplicates import first_duplicate, hash_cells


def validate(mesh: Mesh, dimension: int | None = None) -> None:
    """Raise MeshprepError unless loops can run over this mesh.

    Coordinates are finite; there are cells; no cell names a node twice; no two cells of the
    highest dimension have the same nodes; every lower cell but a vertex is a face or an edge of a
    cell of the highest dimension. Indices were checked when the mesh was made. Expected O(size).

    ``dimension``, which must be the highest there is or 0 for it, accepts lower cells that are no
    face or edge: loops run over the cells of this dimension, the others are carried along.
    """
    cells = [s for s in mesh.cell_sets if s.size and shape_of(str(s.cell_type)).dim > 0]
    if not cells:
        raise MeshprepError("there are no cells: the file needs lines, faces or volumes to work on")
    highest = max(shape_of(str(s.cell_type)).dim for s in cells)
    if dimension not in (None, 0, highest):
        raise MeshprepError(
            f"dimension {dimension} was asked for, but the highest cells are of dimension "
            f"{highest}: leave --dimension (in Python dimension) out or use {highest}"
        )
    loose = [] if dimension is not None else [lambda: _check_attached(mesh, cells, highest)]
    at_once(
        lambda: _check_coordinates(mesh), lambda: _check_repetitions(mesh, cells, highest), *loose
    )


def _check_repetitions(mesh: Mesh, cells: Sequence[ElementSet], highest: int) -> None:
    hashes = {s.name: _check_repeated(mesh, s) for s in cells}
    for s in cells:
        if shape_of(str(s.cell_type)).dim == highest:
            _check_duplicates(mesh, s, hashes[s.name])


def _check_coordinates(mesh: Mesh) -> None:
    points = mesh.coordinates
    if points is None or (good := np.isfinite(points)).all():
        return
    bad = int(np.argmin(good.all(axis=1)))
    place = " ".join(f"{x:g}" for x in points[bad])
    raise MeshprepError(f"node {bad + 1} has the coordinates {place}: they must be finite numbers")


def _check_repeated(mesh: Mesh, cells: ElementSet) -> NDArray[np.uint64]:
    table = mesh.cell_map(cells.name).table
    hashes = np.empty(len(table), dtype=np.uint64)
    shares = pieces(len(table))
    found = each(hash_cells, [(table[a:b], hashes[a:b]) for a, b in shares])
    for (begin, _), (row, column) in zip(shares, found, strict=True):
        if row >= 0:
            raise MeshprepError(
                f"cell {begin + row + 1} of set '{cells.name}' names node "
                f"{table[begin + row, column] + 1} twice: "
                "degenerate cells are not supported, remove them or split them into other types"
            )
    return hashes


def _check_duplicates(mesh: Mesh, cells: ElementSet, hashes: NDArray[np.uint64]) -> None:
    table = mesh.cell_map(cells.name).table
    first, second = first_duplicate(table, hashes)
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
        f"face or edge of a cell of dimension {highest}: use --dimension {highest} (in Python "
        f"dimension={highest}) to run over those cells and carry the others along, or split the "
        "file"
    )
