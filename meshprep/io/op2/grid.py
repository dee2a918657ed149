"""Airfoil's text grid, ``new_grid.dat``: nodes, quadrilaterals, edges, boundary edges.

A line of four counts (nodes, cells, edges, boundary edges); a line ``x y`` a node; four
nodes a cell; ``node node cell cell`` an edge; ``node node cell bound`` a boundary edge.
From 0.
"""

import re
from pathlib import Path

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int64s, as_indices

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ..format import Format
from ..format.reduce import other_losses

DECIMALS = "op2-grid:decimals"
SETS = ("nodes", "cells", "edges", "bedges")
MAPS = {
    "cells->nodes": 4,
    "edges->nodes": 2,
    "edges->cells": 2,
    "bedges->nodes": 2,
    "bedges->cells": 1,
}
# Bytes of the first lines, which tell whether this is a file of another kind.
_BEGINNING = 1 << 12
# Lines that are put into text at once.
_ROWS_AT_ONCE = 1 << 16
# Powers of ten up to this one, and whole numbers up to 2^53, are exact doubles.
_MOST_DECIMALS = 17


def _read_grid(path: Path) -> Mesh:
    # Imported here, since numba takes longer to import than a command to print its help.
    from ..text.cursor import Cursor

    data = np.fromfile(path, dtype=np.uint8)
    if re.match(rb"\s*[^\s\d+-]", data[:_BEGINNING].tobytes()):
        raise MeshprepError(
            "begins with no count: this is no grid of Airfoil; name another format by "
            "--format (in Python format=), such as nastran or abaqus"
        )
    cursor = Cursor(path, data)
    counts = cursor.ints(
        4, what="counts of nodes, cells, edges and boundary edges"
    ).tolist()
    if min(counts) < 0:
        raise cursor.error(f"the counts {counts} must not be negative: repair the file", 0)
    n_nodes, n_cells, n_edges, n_bedges = counts
    # Read the rows of each kind; the first ones tell how many decimals to write again.
    start = cursor.pos
    _, points = cursor.rows(n_nodes, 0, 2, what="nodes")
    first = cursor.data[start : start + 256].tobytes()
    cells, edges, bedges = (
        cursor.rows(n, 4, 0, what=what)[0]
        for n, what in (
            (n_cells, "cells"),
            (n_edges, "edges"),
            (n_bedges, "boundary edges"),
        )
    )
    if cursor.data[cursor.pos :].tobytes().strip():
        raise cursor.error("there is more in the file than its first line says: repair it")
    if not np.isfinite(points).all():
        bad = int(np.argmin(np.isfinite(points).all(axis=1)))
        raise MeshprepError(f"node {bad + 1} has coordinates that are no finite numbers")
    return _mesh_of_grid(
        points=points,
        cells=cells,
        edges=edges,
        bedges=bedges,
        decimals=_decimals(first, points),
    )


def _mesh_of_grid(
    points: Float64s, cells: Int64s, edges: Int64s, bedges: Int64s, decimals: int
) -> Mesh:
    # A row of an edge is its two nodes and the cells on both sides; one of a boundary
    # edge has one cell and the kind of the boundary.
    sizes = (len(points), len(cells), len(edges), len(bedges))
    tables = (cells, edges[:, :2], edges[:, 2:], bedges[:, :2], bedges[:, 2:3])
    ends = [m.split("->") for m in MAPS]
    maps = [
        SetMap(
            name=f"{a}->{b}", from_set=a, to_set=b, table=as_indices(t, f"map '{a}->{b}'")
        )
        for (a, b), t in zip(ends, tables, strict=True)
    ]
    bound = Dat("bound", "bedges", as_indices(bedges[:, 3], "bound"))
    dats = [Dat("coordinates", "nodes", points), bound]
    sets = [ElementSet(name, n) for name, n in zip(SETS, sizes, strict=True)]
    return Mesh(sets=sets, maps=maps, dats=dats, extras={DECIMALS: decimals})


def _decimals(first: bytes, points: Float64s) -> int:
    """Digits behind the point, if all coordinates are whole numbers of them; else -1."""
    found = re.match(rb"\s*[-+]?\d*\.(\d*)\s", first)
    if found:
        digits = len(found[1])
    else:
        digits = -1
    if not 0 <= digits <= _MOST_DECIMALS:
        return -1
    # Decimals can be written again where every coordinate reads back the same from them.
    whole = np.rint(points * 10.0**digits)
    exact = np.abs(whole) < 2.0**53
    if (exact & (whole / 10.0**digits == points)).all():
        return digits
    return -1


def _write_grid(mesh: Mesh, path: Path) -> None:
    from ..text.tokens import ASCII
    from ..text.writer import NumberWriter

    writable = _reduce_to_grid(mesh)
    points = writable.coordinates
    bound = writable.dat("bound", "bedges")
    assert points is not None
    assert bound is not None
    table = {name: writable.maps[name].table for name in MAPS}
    with path.open("wb") as file:
        sink = NumberWriter(file, ASCII)
        sink.ints(writable.size(name) for name in SETS)
        # Nodes in as many decimals as they were read in, then cells, edges and boundary
        # edges.
        digits = writable.extras[DECIMALS]
        if digits < 0:
            line = "%r %r\n"
        else:
            line = f"%.{digits}f %.{digits}f\n"
        for start in range(0, len(points), _ROWS_AT_ONCE):
            part = points[start : start + _ROWS_AT_ONCE]
            sink.text(line * len(part) % tuple(part.ravel().tolist()))
        sink.rows(table["cells->nodes"])
        sink.rows(np.hstack([table["edges->nodes"], table["edges->cells"]]))
        ends = (table["bedges->nodes"], table["bedges->cells"], bound.values[:, None])
        sink.rows(np.hstack(ends))


def _losses_of_grid(mesh: Mesh, **_options: object) -> list[str]:
    _reduce_to_grid(mesh)
    kept_dats = (("coordinates", "nodes"), ("bound", "bedges"))
    return other_losses(
        mesh=mesh,
        sets=SETS,
        maps=[*MAPS],
        refusal=lambda d: None if (d.name, d.set) in kept_dats else "",
    )


def _reduce_to_grid(mesh: Mesh) -> Mesh:
    """The mesh as the file keeps it; raises MeshprepError where a part of it is missing."""
    # The file has a place for these sets and maps alone, and none can be left out.
    problems = [f"set '{s}'" for s in SETS if s not in mesh.sets]
    problems += [
        f"map '{m}' of arity {arity}"
        for m, arity in MAPS.items()
        if m not in mesh.maps or mesh.maps[m].arity != arity
    ]
    points = mesh.coordinates
    bound = mesh.dat("bound", "bedges")
    if points is None or points.shape[1] != 2:
        problems.append("two coordinates a node")
    if bound is None or bound.values.dtype.kind not in "iu" or bound.values[:1].size > 1:
        problems.append("whole numbers 'bound' on 'bedges'")
    if problems:
        raise MeshprepError(
            f"a grid of Airfoil needs {', '.join(problems)}: use another format"
        )
    assert points is not None
    assert bound is not None
    flat = Dat("bound", "bedges", bound.values.reshape(-1).astype(np.int32))
    digits = mesh.extras.get(DECIMALS, -1)
    sets = [ElementSet(name, mesh.size(name)) for name in SETS]
    dats = [Dat("coordinates", "nodes", points.astype(np.float64, copy=False)), flat]
    return Mesh(
        sets=sets, maps=[mesh.maps[m] for m in MAPS], dats=dats, extras={DECIMALS: digits}
    )


FORMAT = Format(
    read=_read_grid,
    write=_write_grid,
    losses=_losses_of_grid,
    reduce=_reduce_to_grid,
    cells=False,
)
