"""Reuse against thread colours, as in Figures 20 and 21 of [S19], on structured meshes.

A line of elements has few thread colours and little reuse, a brick much of both; METIS gives what
it gives, and ``blocks`` the most reuse.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import report

from meshprep.colouring import colour_blocks, colour_threads
from meshprep.io.generate import generate
from meshprep.mesh import Mesh
from meshprep.mesh.geometry import centroids
from meshprep.partitioning import BlockProblem, Blocks, blocks_of, loads, partition
from meshprep.topology import derive


@dataclass(frozen=True)
class Case:
    """A loop over a structured mesh, its block size, and shapes of its own to try."""

    name: str
    mesh: Mesh
    loop: str
    block_size: int
    shapes: tuple[str, ...]


def main() -> None:
    """Print and save the table."""
    rows: list[dict[str, Any]] = []
    for case in _cases():
        rows += _rows(case)
    report("tradeoff", rows)


def _cases() -> list[Case]:
    hexes = generate("box", nx=70, ny=70, nz=70, type="hexahedron")
    small = generate("box", nx=50, ny=50, nz=50, type="hexahedron")
    quads = generate("box", nx=600, ny=400, type="quad")
    return [
        Case("hexes 70^3", hexes, "cells->nodes", 320, ("70x1x1", "70x4x1", "10x8x4")),
        Case("hexes 50^3", small, "faces->cells", 384, ("50x1x1", "50x2x1", "8x4x4")),
        Case("quads 600x400", quads, "edges->cells", 448, ("200x1", "50x4", "20x11")),
    ]


def _rows(case: Case) -> list[dict[str, Any]]:
    mesh = derive(case.mesh, [case.loop])
    from_set, _, to_set = case.loop.partition("->")
    problem = BlockProblem(
        mesh.map(case.loop).table,
        mesh.size(to_set),
        case.block_size,
        coordinates=centroids(mesh, from_set),
    )
    return [_row(case, problem, name, options) for name, options in _ways(case)]


def _ways(case: Case) -> list[tuple[str, Mapping[str, Any]]]:
    ways: list[tuple[str, Mapping[str, Any]]] = [("contiguous", {})]
    ways += [(shape, {}) for shape in case.shapes]
    ways += [
        ("metis", {}),
        ("metis", {"graph": "conflict", "tolerance": 1.001, "improve": False}),
    ]
    ways.append(("blocks", {}))
    return ways


def _row(
    case: Case, problem: BlockProblem, name: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    start = time.perf_counter()
    blocks = _tiles(problem, name) if "x" in name else partition(problem, name, options)
    seconds = time.perf_counter() - start
    table = problem.table[blocks.new_to_old]
    threads = colour_threads(table, problem.n_points, blocks.block_offset)
    launches = colour_blocks(table, problem.n_points, blocks.block_offset)
    sizes = np.diff(blocks.block_offset)
    return {
        "mesh": case.name,
        "loop": case.loop,
        "S": case.block_size,
        "partition": " ".join([name, *(f"{k}={v}" for k, v in options.items())]),
        "reuse": table.size / loads(table, problem.n_points, blocks.block_offset),
        "thread colours": float(threads.count.mean()),
        "bound": float(threads.bound.mean()),
        "block colours": launches.count,
        "blocks": blocks.n_blocks,
        "mean size": float(sizes.mean()),
        "largest": int(sizes.max()),
        "seconds": seconds,
    }


def _tiles(problem: BlockProblem, shape: str) -> Blocks:
    """Blocks of so many sites along each axis; facets of all directions share a site."""
    assert problem.coordinates is not None
    lines = [
        np.unique(axis.round(9), return_inverse=True)[1] for axis in problem.coordinates.T
    ]
    facets = problem.table.shape[1] == 2
    sizes = [int(size) for size in shape.split("x")]
    tile = [
        (axis // 2 if facets else axis) // s for axis, s in zip(lines, sizes, strict=False)
    ]
    number = np.ravel_multi_index(tile[::-1], [int(axis.max()) + 1 for axis in tile[::-1]])
    return blocks_of(number, int(number.max()) + 1, keep_numbers=True)


if __name__ == "__main__":
    main()
