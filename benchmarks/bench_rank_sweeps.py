"""Coloured sweeps on ranks: the iterations of one rank, and what a call takes.

    python benchmarks/bench_rank_sweeps.py [CELLS]

The Laplacian and a small multiple of the identity on linear triangles between random points (4,000
cells), on 1 to 4 ranks of one process: iterations of conjugate gradients to 1e-8 without a
preconditioner, with Jacobi's, with sweeps over the rows of a rank alone, and with ``PartSsor``,
whose colours go over the borders of the parts; colours; and milliseconds of processor of a call and
of a product, all ranks together.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_file, report

from meshprep.distribute.job.run import SplitJob, run
from meshprep.io import read
from meshprep.loops.requests import LoopRequest
from meshprep_runtime import DistributedPlan, run_ranks
from meshprep_runtime.matrix import (
    ColouredSsor,
    CsrMatrix,
    Jacobi,
    PartAssembly,
    PartProduct,
    PartSsor,
    cg,
    dot_on,
)

MAP = "cells->nodes"
RANKS = (1, 2, 4)
TURNS = 5


def stiffness(a: Any, b: Any, c: Any, K: Any) -> None:
    """The Laplacian on a triangle, and a little of the identity."""
    bx, by, cx, cy = b[0] - a[0], b[1] - a[1], c[0] - a[0], c[1] - a[1]
    det = bx * cy - by * cx
    gx = (by - cy) / det, cy / det, -by / det
    gy = (cx - bx) / det, -cx / det, bx / det
    for i in range(3):
        K[4 * i] += 1e-4
        for j in range(3):
            K[3 * i + j] += 0.5 * abs(det) * (gx[i] * gx[j] + gy[i] * gy[j])


def main(cells: int = 4_000) -> None:
    """Print and save the table."""
    args = [
        {"dat": "x", "map": MAP, "dim": 2},
        {"mat": "K", "rows": MAP, "columns": MAP, "access": "inc"},
    ]
    request = LoopRequest("stiffness", {"over": "cells", "args": args}, "bench")
    mesh = mesh_file("delaunay2d", cells=cells)
    x = read(mesh).coordinates[:, :2]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "square.parts.h5"
        run(SplitJob(mesh, parts, RANKS, (request,)))
        for ranks in RANKS:

            def solve(comm: Any) -> dict[str, Any]:
                return on_rank(DistributedPlan.load(parts, comm), x)

            found = run_ranks(ranks, solve)
            ms = [sum(one.pop(key) for one in found) for key in ("sweeps ms", "product ms")]
            rows.append(
                {"ranks": ranks}
                | found[0]
                | {"sweeps ms": ms[0], "product ms": ms[1], "ratio": ms[0] / ms[1]}
            )
    report("rank_sweeps", rows)


def on_rank(plan: Any, x: np.ndarray) -> dict[str, Any]:
    """Iterations and times of one rank."""
    own = x[plan.numbers("nodes")]
    matrix = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2, values=own))
    load = np.sin(9 * own[:, 0] / np.ptp(x)) + own[:, 1] / np.ptp(x)
    product = PartProduct(matrix, plan, "nodes", overlap=False)
    sweeps = PartSsor(matrix, plan, "nodes")
    ways = {
        "none": None,
        "Jacobi": Jacobi(matrix),
        "own rows": ColouredSsor(own_rows(matrix)),
        "sweeps": sweeps,
    }
    dot = dot_on(plan)
    iterations = {
        name: cg(product, load, way, dot=dot).iterations for name, way in ways.items()
    }
    return {
        "rows": plan.sizes["nodes"],
        "colours": sweeps.colours,
        **iterations,
        "sweeps ms": 1e3 * least_of(plan, lambda: sweeps(load)),
        "product ms": 1e3 * least_of(plan, lambda: product(load)),
    }


def own_rows(matrix: CsrMatrix) -> CsrMatrix:
    """The rows of a rank without the columns of other ranks."""
    own = CsrMatrix.from_scipy(matrix.to_scipy()[:, : matrix.shape[0]])
    return replace(own, n_columns=None)


def least_of(plan: Any, work: Callable[[], Any]) -> float:
    """Seconds of this thread, the least of several calls."""
    seconds = []
    for _ in range(TURNS):
        plan.comm.Barrier()
        start = time.thread_time()
        work()
        seconds.append(time.thread_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
