"""Cells as all of VTK's files have them, and arrays by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count
from ..cell_blocks.file_mesh import Cells, FileMesh
from ..text.quoting import quoted

# Cells by VTK's number.
_TYPES = {
    1: "vertex",
    3: "line",
    5: "triangle",
    9: "quad",
    10: "tetra",
    12: "hexahedron",
    13: "wedge",
    14: "pyramid",
    21: "line3",
    22: "triangle6",
    23: "quad8",
    24: "tetra10",
    25: "hexahedron20",
    26: "wedge15",
    27: "pyramid13",
    28: "quad9",
    29: "hexahedron27",
    30: "quad6",
    31: "wedge12",
    32: "wedge18",
    33: "hexahedron24",
    34: "triangle7",
    35: "line4",
    37: "pyramid19",
    68: "VTK_LAGRANGE_CURVE",
    69: "VTK_LAGRANGE_TRIANGLE",
    70: "VTK_LAGRANGE_QUADRILATERAL",
    71: "VTK_LAGRANGE_TETRAHEDRON",
    72: "VTK_LAGRANGE_HEXAHEDRON",
    73: "VTK_LAGRANGE_WEDGE",
    74: "VTK_LAGRANGE_PYRAMID",
    75: "VTK_BEZIER_CURVE",
    76: "VTK_BEZIER_TRIANGLE",
    77: "VTK_BEZIER_QUADRILATERAL",
    78: "VTK_BEZIER_TETRAHEDRON",
    79: "VTK_BEZIER_HEXAHEDRON",
    80: "VTK_BEZIER_WEDGE",
    81: "VTK_BEZIER_PYRAMID",
}
CELL_TYPES = tuple(_TYPES.values())
_NUMBER = {name: number for number, name in _TYPES.items()}
# What VTK calls cells that no mesh of ours has.
_UNSUPPORTED = {
    2: "a set of points",
    4: "a line through several points",
    6: "a strip of triangles",
    7: "a polygon",
    15: "a pentagonal prism",
    16: "a hexagonal prism",
    36: "a quadratic polygon",
    41: "a convex set of points",
    42: "a polyhedron",
}
_LAST_ROW = [0, 1, 3, 2]
_TWO_LAST_ROWS = [0, 1, 3, 2, 4, 5, 7, 6]
# By number and nodes: cells that are plain ones of another number, and the order of their
# nodes.
_PLAIN = {
    (2, 1): (1, [0]),
    (4, 2): (3, [0, 1]),
    (6, 3): (5, [0, 1, 2]),
    (7, 3): (5, [0, 1, 2]),
    (7, 4): (9, [0, 1, 2, 3]),
    (8, 4): (9, _LAST_ROW),
    (11, 8): (12, _TWO_LAST_ROWS),
}
# VTK has wedges the other way round.
_WEDGE = [0, 2, 1, 3, 5, 4]


def cells_of(
    connectivity: NDArray[Any],
    stop: NDArray[Any],
    types: NDArray[Any],
    data: Mapping[str, NDArray],
) -> tuple[list[Cells], dict[str, list[NDArray]]]:
    """Blocks of cells, one for each type and size, and values on them. O(n).

    Raises MeshprepError where the arrays do not fit each other, or types are not known.
    """
    stop = stop.astype(np.int64)
    _check_offsets(connectivity=connectivity, stop=stop, types=types, data=data)
    # Cells of VTK stand in any order of types: put those of one type and size into a
    # block, by first appearance.
    size = np.diff(stop, prepend=0)
    connectivity, types = _as_plain(
        connectivity=connectivity, stop=stop, size=size, types=types.astype(np.int64)
    )
    kinds, first, of = np.unique(
        types << 32 | (size & 0xFFFFFFFF), return_index=True, return_inverse=True
    )
    cells = []
    rows = [np.flatnonzero(of == k) for k in np.argsort(first)]
    for block_rows in rows:
        number = int(types[block_rows[0]])
        n = int(size[block_rows[0]])
        if number not in _TYPES:
            raise _unsupported(int(block_rows[0]), number, n)
        name = _TYPES[number]
        check_node_count(f"cell {block_rows[0] + 1}", name, n)
        nodes = connectivity
        if len(kinds) > 1:
            nodes = connectivity[stop[block_rows, None] + np.arange(-n, 0)]
        table = nodes.reshape(-1, n)
        cells.append(Cells(name, table[:, _WEDGE] if name == "wedge" else table))
    data_of_blocks = {}
    for name, values in data.items():
        data_of_blocks[name] = [values[block_rows] for block_rows in rows]
    return cells, data_of_blocks


def _check_offsets(
    connectivity: NDArray[Any],
    stop: NDArray[np.int64],
    types: NDArray[Any],
    data: Mapping[str, NDArray],
) -> None:
    end = int(stop[-1]) if stop.size else 0
    if len(stop) != len(types) or end != len(connectivity):
        raise MeshprepError(
            f"its cells have {end} nodes together, but {len(connectivity)} are given: "
            "the file is truncated or damaged"
        )
    for name, values in data.items():
        if len(values) != len(types):
            raise MeshprepError(
                f"values {quoted(name)} are {len(values)}, but there are {len(types)} "
                "cells: the file is truncated or damaged"
            )


def _as_plain(
    connectivity: NDArray[Any],
    stop: NDArray[np.int64],
    size: NDArray[np.int64],
    types: NDArray[np.int64],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The nodes and types with simplified ones replaced: pixels become quads, and so on."""
    special = np.isin(types, [number for number, _ in _PLAIN])
    if not special.any():
        return connectivity, types
    connectivity = connectivity.copy()
    types = types.copy()
    for (number, n), (plain, order) in _PLAIN.items():
        own = np.flatnonzero(special & (types == number) & (size == n))
        at = stop[own, None] + np.arange(-n, 0)
        connectivity[at] = connectivity[at[:, order]]
        types[own] = plain
        special[own] = False
    return connectivity, types


def _unsupported(row: int, number: int, n: int) -> MeshprepError:
    what = _UNSUPPORTED.get(number, "not known")
    return MeshprepError(
        f"cell {row + 1} is of VTK's type {number} ({what}) with {n} nodes, which is not "
        "supported: split such cells, for example by ParaView's filter Triangulate or "
        "Tetrahedralize"
    )


def tables_of(mesh: FileMesh) -> list[NDArray[Any]]:
    """The nodes of the cells of each block, in VTK's order."""
    return [c.data[:, _WEDGE] if c.type == "wedge" else c.data for c in mesh.cells]


def arrays_of(mesh: FileMesh) -> dict[str, NDArray[Any]]:
    """Connectivity, ends and types of the cells."""
    tables = tables_of(mesh)
    counts = [len(table) for table in tables]
    stop = np.cumsum(np.repeat([table.shape[1] for table in tables], counts))
    kinds = np.array([_NUMBER[c.type] for c in mesh.cells], np.uint8)
    connectivity = np.concatenate([table.reshape(-1) for table in tables])
    return {
        "connectivity": connectivity,
        "offsets": stop,
        "types": np.repeat(kinds, counts),
    }


def whole_data(mesh: FileMesh) -> dict[str, NDArray[Any]]:
    """Values of all cells, one block after the other."""
    return {name: np.concatenate(blocks) for name, blocks in mesh.cell_data.items()}


def put(arrays: dict[str, NDArray], name: str, values: NDArray) -> None:
    """Add an array; raises MeshprepError where there is one of that name."""
    if name in arrays:
        raise MeshprepError(f"has several arrays of one name, {quoted(name)}: rename them")
    arrays[name] = values
