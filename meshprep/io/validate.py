"""What every mesh must satisfy, whatever its format; linear time and little memory."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..kernels import Int32s, Int64s, UInt64s, kernel
from ..kernels.parallel import at_once, each, pieces
from ..mesh import ElementSet, Mesh
from ..mesh.cells import shape_of
from ..topology import unattached


def validate(mesh: Mesh, dimension: int | None = None, *, overlaid: bool = False) -> None:
    """Raise MeshprepError unless loops can run over this mesh.

    Coordinates are finite; there are cells; no cell names a node twice; no two cells of the
    highest dimension have the same nodes; every lower cell but a vertex is a face or an
    edge of a cell of the highest dimension. Indices were checked when the mesh was made.
    Expected O(size).

    ``dimension``, which must be the highest there is or 0 for it, accepts lower cells that
    are no face or edge: loops run over the cells of this dimension, the others are carried
    along. ``overlaid`` accepts cells of the same nodes.
    """
    cells = [s for s in mesh.cell_sets if s.size and shape_of(str(s.cell_type)).dim > 0]
    if not cells:
        raise MeshprepError(
            "there are no cells: the file needs lines, faces or volumes to work on"
        )
    # Loops run over the cells of the highest dimension; lower ones are their borders.
    highest = max(shape_of(str(s.cell_type)).dim for s in cells)
    if dimension not in (None, 0, highest):
        raise MeshprepError(
            f"dimension {dimension} was asked for, but the highest cells are of dimension "
            f"{highest}: leave --dimension (in Python dimension) out or use {highest}"
        )
    if dimension is not None:
        loose = []
    else:
        loose = [lambda: _check_attached(mesh, cells, highest)]
    at_once(
        lambda: _check_coordinates(mesh),
        lambda: _check_repetitions(
            mesh=mesh, cells=cells, highest=highest, overlaid=overlaid
        ),
        *loose,
    )


def _check_repetitions(
    mesh: Mesh, cells: Sequence[ElementSet], highest: int, *, overlaid: bool
) -> None:
    hashes = {s.name: _check_repeated(mesh, s) for s in cells}
    for s in cells:
        if shape_of(str(s.cell_type)).dim == highest and not overlaid:
            _check_duplicates(mesh, s, hashes[s.name])


def _check_coordinates(mesh: Mesh) -> None:
    points = mesh.coordinates
    if points is None or (good := np.isfinite(points)).all():
        return
    bad = int(np.argmin(good.all(axis=1)))
    place = " ".join(f"{x:g}" for x in points[bad])
    raise MeshprepError(
        f"node {bad + 1} has the coordinates {place}: they must be finite numbers"
    )


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
                "degenerate cells are not supported, remove them or split them into other "
                "types"
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
        f"{count} lower-dimension cells (the first: cell {rows[0] + 1} of set '{name}') "
        "are no face or edge of a cell of dimension "
        f"{highest}: use --dimension {highest} (in "
        "Python "
        f"dimension={highest}) to run over those cells and carry the others along, or "
        "split the file"
    )


@kernel
def hash_cells(table: Int32s, hashes: UInt64s) -> tuple[int, int]:
    """Fill in a number for every row; returns where a row first repeats a node.

    Row and column, or (-1, -1). The numbers do not depend on the order of the nodes; they
    are good where no row repeats one. O(size).
    """
    for i in range(len(table)):
        total = np.uint64(0)
        for a in range(table.shape[1]):
            node = table[i, a]
            for b in range(a):
                if table[i, b] == node:
                    return i, a
            mixed = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
            total += (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes[i] = total
    return -1, -1


def first_duplicate(table: Int32s, hashes: UInt64s) -> tuple[int, int]:
    """The first cell after that one with the nodes of an earlier cell; (-1, -1) if none.

    No row of ``table`` may repeat a node; ``hashes`` are from :func:`hash_cells`. O(n log
    n) on numbers; only cells that share theirs with another one are looked at closely.
    """
    ordered = np.sort(hashes)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    if shared.size:
        rows = np.flatnonzero(np.isin(hashes, shared))
    else:
        rows = np.empty(0, np.int64)
    first = rows[first_equal(np.sort(table[rows], axis=1))]
    again = np.flatnonzero(first != rows)[:1]
    if again.size:
        return (int(first[again[0]]), int(rows[again[0]]))
    return (-1, -1)


def first_equal(rows: NDArray[np.integer]) -> Int64s:
    """For each row of a table the first equal row, which may be itself. O(n log n)."""
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64)
    key = rows.astype(np.uint64) @ factors
    order = np.argsort(key, kind="stable")
    same = np.zeros(len(rows), dtype=bool)
    same[1:] = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    if not np.array_equal(same[1:], key[order[1:]] == key[order[:-1]]):
        # Different rows have one key, by a chance of one in many millions.
        order = np.lexsort(rows.T)
        same[1:] = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    start = np.maximum.accumulate(np.where(same, 0, np.arange(len(rows))))
    first = np.empty(len(rows), dtype=np.int64)
    first[order] = order[start]
    return first
