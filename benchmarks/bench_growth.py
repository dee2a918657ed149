"""How the cost of `blocks` grows with the mesh, what a shuffled input costs, and the memory.

    python benchmarks/bench_growth.py [LARGEST]

Airfoil's edges->cells from 100,000 edges to ``LARGEST`` (10,000,000), S = 448, each in a process
of its own: the bytes an element above what held the map and the places before, then, in a process
that keeps freed memory as the commands do, seconds of the locality order and of the blocks, for the
mesh as it was made and with all cells and edges shuffled. The last row is the whole command on
Airfoil 2400x1200 from file to files.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import best, mesh_file, program, report, run_process

from meshprep.io.generate import generate
from meshprep.kernels.parallel import keep_freed, take
from meshprep.mesh.geometry import centroids
from meshprep.mesh.incidence import renumber_table
from meshprep.ordering import LocalityProblem, from_set_order, locality_order
from meshprep.partitioning import BlockProblem, partition
from meshprep.topology import derive

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
SIZE = 448
COMMAND = "meshprep reorder s"


def main(largest: int = SIZES[-1]) -> None:
    """Print and save the table."""
    rows = []
    for edges in SIZES:
        if edges <= largest:
            _, _, out = run_process(sys.executable, __file__, "one", edges)
            rows.append(json.loads(out) | {COMMAND: None})
            print(out, file=sys.stderr)
    rows.append(_whole_command())
    report("growth", rows)


def one(edges: int) -> None:
    """Print the figures of one size as JSON."""
    j = round((edges / 4) ** 0.5)
    mesh = derive(generate("airfoil", i=round(2 * j / 3), j=j), ["edges->cells"])
    points, where = centroids(mesh, "cells"), centroids(mesh, "edges")
    table = mesh.map("edges->cells").table
    assert points is not None
    assert where is not None
    begin = _prepared(table[:50_000] % 5000, points[:5000], where[:50_000])
    partition(begin, "blocks", {})
    taken = _bytes(table, points, where)
    keep_freed()
    given = _costs(table, points, where)
    random = np.random.default_rng(1)
    rows, number = (
        random.permutation(len(table)),
        random.permutation(len(points)).astype(np.int32),
    )
    moved = np.empty_like(points)
    moved[number] = points
    shuffled = _costs(np.ascontiguousarray(number[table[rows]]), moved, where[rows])
    print(
        json.dumps(
            {
                "elements": len(table),
                "locality s": round(given[0], 3),
                "blocks s": round(given[1], 3),
                "blocks us an element": round(1e6 * given[1] / len(table), 3),
                "shuffled s": round(sum(shuffled), 3),
                "shuffled / ordered": round(sum(shuffled) / sum(given), 2),
                "bytes an element": round(taken, 1),
            }
        )
    )


def _bytes(table, points, where) -> float:
    """Bytes an element that blocks take at their peak."""
    problem = _prepared(table, points, where)
    before = _resident()
    _reset_peak()
    partition(problem, "blocks", {})
    return (_peak() - before) / len(table)


def _costs(table, points, where) -> tuple[float, float]:
    """Seconds of the order and of the blocks."""
    problem = _prepared(table, points, where)
    order = best(lambda: _prepared(table, points, where), 2)
    return order, best(lambda: partition(problem, "blocks", {}), 2)


def _prepared(table, points, where) -> BlockProblem:
    """The problem in a locality order, made by what the pipeline makes it with."""
    number = locality_order(LocalityProblem(table, len(points), points), "hilbert").ordering
    moved = renumber_table(table, None, number.old_to_new)
    rows = from_set_order(moved)
    moved = renumber_table(moved, rows, None)
    return BlockProblem(moved, len(points), SIZE, coordinates=take(where, rows))


def _resident() -> int:
    return _status("VmRSS:")


def _peak() -> int:
    return _status("VmHWM:")


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def _whole_command() -> dict[str, object]:
    """``meshprep reorder`` on the mesh of [S19] table 2, from file to files."""
    path = mesh_file("airfoil", i=800, j=1200)
    with tempfile.TemporaryDirectory() as folder:
        words = [program(), "reorder", path, "-q", "--force", "--loop", "edges->cells"]
        words += ["--block-size", SIZE, "-o", Path(folder, "a.msh")]
        words += ["--plan", Path(folder, "a.plan.h5")]
        seconds = min(run_process(*words)[0] for _ in range(2))
    return {"elements": 5_757_200, COMMAND: round(seconds, 2)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(int(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:2]))
