"""Meshlets of 64 vertices and 126 triangles, beside meshoptimizer's, and what the cap costs.

    python benchmarks/bench_meshlets.py [TRIANGLES]

The first table has closed surfaces, each cut by meshoptimizer and by ``meshprep.blocks``. The
second has triangles and tetrahedra: blocks under the cap of points beside those of the largest
size at which plain blocks of equal size happen to fit. Seconds are those of the processor, the
least of several turns. meshoptimizer comes from the wheel ``almeshopt`` (extra ``bench``), the
bunny from ``pymeshfix``; where one of them is not installed, its rows are left out.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_of, report, table
from mesher import mesher_file
from meshlets import meshlets
from numpy.typing import NDArray

import meshprep
from meshprep.partitioning import BlockProblem

# What a meshlet may have.
VERTICES, TRIANGLES = 64, 126
# Caps of the second table: elements, points.
CAPS = {"triangles": ((126, 64),), "tetrahedra": ((256, 64),)}
TURNS = 2
# Elements of the second table, and the bars.
SAMPLE = 40_000
FEWER_VERTICES = 0.98
MORE_BLOCKS = 1.02

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles or tetrahedra, and where their points are."""

    name: str
    cells: NDArray[np.int32]
    points: NDArray[np.float64]


def main(triangles: int = 70_000) -> None:
    """Print and save both tables."""
    packages = ("almeshopt", "pymeshfix")
    absent = [name for name in packages if not find_spec(name)]
    if absent:
        print(f"left out, not installed: {', '.join(absent)}", file=sys.stderr)
    rows = [row for surface in surfaces(triangles) for row in _meshlet_rows(surface)]
    against = [row for kind in CAPS for row in _cap_rows(kind)]
    report("meshlets", rows, caps=against, absent=absent)
    print()
    table(against)


def surfaces(triangles: int) -> Iterator[Surface]:
    """Closed surfaces, and a plane of random points."""
    if find_spec("pymeshfix"):
        yield _bunny()
    for name in ("ball", "skin"):
        yield _surface(name, meshprep.read(mesher_file(f"{name}-triangles", triangles)))
    yield _surface("delaunay2d", mesh_of("delaunay2d", triangles))


def _bunny() -> Surface:
    """The Stanford bunny as pymeshfix brings it."""
    import meshio
    import pymeshfix

    path = Path(pymeshfix.__file__).parent / "examples" / "StanfordBunny.ply"
    mesh = meshio.read(path)
    cells = mesh.cells[0].data.astype(np.int32)
    return Surface("bunny", cells, mesh.points.astype(np.float64))


def _surface(name: str, mesh: meshprep.Mesh) -> Surface:
    points = mesh.coordinates
    assert points is not None
    return Surface(name, mesh.map("cells->nodes").table, points)


def _meshlet_rows(surface: Surface) -> Iterator[Row]:
    """A row for meshoptimizer where it is installed, and ours."""
    peer = None
    if find_spec("almeshopt"):
        problem = BlockProblem(surface.cells, len(surface.points), TRIANGLES)
        turns = [meshlets(problem, surface.points, VERTICES) for _ in range(TURNS)]
        block = turns[0][0].block_of_element
        seconds = min(seconds for _, seconds in turns)
        peer = _row(surface, "meshoptimizer", block, seconds)
        yield peer | {"meshlets %": 0.0, "vertices %": 0.0, "bar": "-"}
    block, seconds = _blocks(surface, TRIANGLES, VERTICES)
    row = _row(surface, "meshprep.blocks", block, seconds)
    yield row | _against(row, peer)


def _against(row: Row, peer: Row | None) -> Row:
    """Meshlets and vertices beside those of meshoptimizer, and whether the bar is met."""
    if peer is None:
        return {"meshlets %": None, "vertices %": None, "bar": "-"}
    meshlet_ratio = row["meshlets"] / peer["meshlets"]
    vertex_ratio = row["vertices"] / peer["vertices"]
    met = meshlet_ratio <= 1.0 and vertex_ratio <= FEWER_VERTICES
    return {
        "meshlets %": round(100 * (meshlet_ratio - 1), 2),
        "vertices %": round(100 * (vertex_ratio - 1), 2),
        "bar": "met" if met else "MISSED",
    }


def _row(surface: Surface, name: str, block: NDArray[np.int32], seconds: float) -> Row:
    points = _points_of_blocks(surface.cells, block)
    return {
        "surface": surface.name,
        "triangles": len(surface.cells),
        "cut by": name,
        "meshlets": len(points),
        "vertices": int(points.sum()),
        "fullest": int(points.max()),
        "seconds": round(seconds, 2),
    }


def _blocks(
    surface: Surface, size: int, most_points: int
) -> tuple[NDArray[np.int32], float]:
    """The block of each element, and the processor time of the fastest turn."""
    seconds = []
    for _ in range(TURNS):
        begin = time.process_time()
        block = meshprep.blocks(
            surface.cells,
            size,
            staged_points=most_points,
            points=surface.points,
        )
        seconds.append(time.process_time() - begin)
    return block, min(seconds)


def _points_of_blocks(
    cells: NDArray[np.int32], block: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The number of different points of each block."""
    n_points = int(cells.max()) + 1
    pair = np.unique(block[:, None].astype(np.int64) * n_points + cells)
    return np.bincount(pair // n_points)


def _cap_rows(kind: str) -> Iterator[Row]:
    """Blocks under caps, beside blocks of the largest size that fit without one."""
    name = "delaunay2d" if kind == "triangles" else "delaunay3d"
    by_mesher = "skin-triangles" if kind == "triangles" else "holes-tetrahedra"
    meshes = (
        _surface(name, mesh_of(name, SAMPLE)),
        _surface(by_mesher, meshprep.read(mesher_file(by_mesher, SAMPLE))),
    )
    for mesh in meshes:
        for size, most_points in CAPS[kind]:
            block, seconds = _blocks(mesh, size, most_points)
            capped = _points_of_blocks(mesh.cells, block)
            equal, fits = _largest_that_fits(mesh, size, most_points)
            ratio = len(capped) / len(fits)
            yield {
                "mesh": mesh.name,
                "elements": len(mesh.cells),
                "most elements, points": f"{size}, {most_points}",
                "blocks": len(capped),
                "fullest": int(capped.max()),
                "seconds": round(seconds, 2),
                "S that fits": equal,
                "its blocks": len(fits),
                "blocks %": round(100 * (ratio - 1), 2),
                "bar": "met" if ratio <= MORE_BLOCKS else "MISSED",
            }


def _largest_that_fits(
    mesh: Surface, size: int, most_points: int
) -> tuple[int, NDArray[np.int64]]:
    """The largest block size whose blocks all have at most so many points, and their points."""
    low, high = 1, size + 1
    best = np.zeros(0, np.int64)
    while high - low > 1:
        middle = (low + high) // 2
        block = meshprep.blocks(mesh.cells, middle, points=mesh.points)
        points = _points_of_blocks(mesh.cells, block)
        if points.max() <= most_points:
            low = middle
            best = points
        else:
            high = middle
    return low, best


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
