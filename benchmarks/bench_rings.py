"""Several products with one exchange beside one exchange each, on two ranks under MPI.

    python benchmarks/bench_rings.py [MOST_ROWS]

``MOST_ROWS`` is a million. Linear triangles between random points, 10^3 rows to so many, and 1 to 4
products: the fastest of many turns, on the slower rank. ``rows again`` is the share of rows that a
rank computes beside its own.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_file, report, run_on_ranks

WORKER, RANKS, MAP = "--rank", 2, "cells->nodes"
PRODUCTS = (1, 2, 3, 4)
# Turns of a measurement, and the rows that all of them may have together.
MOST_TURNS, ROWS_OF_TURNS = 400, 4e7


def main(most: float = 1e6) -> None:
    """Print and save the table."""
    rows: list[dict[str, Any]] = []
    size = 1000
    while size <= most:
        with tempfile.TemporaryDirectory() as folder:
            parts = Path(folder) / "square.parts.h5"
            _split(mesh_file("delaunay2d", cells=2 * size), parts)
            rows += json.loads(run_on_ranks(RANKS, __file__, WORKER, parts)[2])
        size *= 10
    report("rings", rows)


def _split(mesh: Path, parts: Path) -> None:
    from meshprep.distribute.job import SplitJob, run
    from meshprep.loops import LoopRequest

    args = [{"mat": "K", "rows": MAP, "columns": MAP, "access": "inc"}]
    request = LoopRequest("ones", {"over": "cells", "args": args}, "bench")
    run(SplitJob(mesh, parts, (RANKS,), (request,)))


def ones(K: Any) -> None:
    """The matrix of a triangle."""
    for k in range(9):
        K[k] += 1.0


def worker(parts: Path) -> None:
    """Run on one rank; the first one prints."""
    from meshprep_runtime import DistributedPlan
    from meshprep_runtime.matrix import PartAssembly, PartPowers, PartProduct

    plan = DistributedPlan.load(parts)
    matrix = PartAssembly(ones, plan, "ones")()
    # powers of it stay small
    matrix = replace(matrix, values=matrix.values / 40)
    product, x = PartProduct(matrix, plan, "nodes"), np.ones(matrix.shape[0])
    rows = []
    for count in PRODUCTS:
        powers = PartPowers(matrix, plan, "nodes", count)
        found = _fastest(plan, lambda k=count: _one_by_one(product, x, k), lambda p=powers: p(x))
        again = plan.comm.allgather((sum(powers.ends[:-1]), powers.ends[0]))
        own = count * sum(owned for _, owned in again)
        rows.append(
            {
                "rows": plan.sizes["nodes"],
                "products": count,
                "exchange each, us": 1e6 * found[0],
                "one exchange, us": 1e6 * found[1],
                "times": found[0] / found[1],
                "rows again": sum(done for done, _ in again) / own - 1,
            }
        )
    if plan.comm.rank == 0:
        sys.stdout.write(json.dumps(rows))


def _one_by_one(product: Any, x: np.ndarray, count: int) -> list[np.ndarray]:
    found = [product(x)]
    for _ in range(count - 1):
        found.append(product(found[-1]))
    return found


def _fastest(plan: Any, *works: Callable[[], list[np.ndarray]]) -> list[float]:
    """Seconds of each on the slower rank, in turns; both must give the same."""
    first, second = (work() for work in works)
    np.testing.assert_allclose(second, first, rtol=1e-12)
    turns = round(min(MOST_TURNS, max(10, ROWS_OF_TURNS / plan.sizes["nodes"])))
    times = np.empty((turns, len(works)))
    for turn in times:
        for i, work in enumerate(works):
            plan.comm.Barrier()
            start = time.perf_counter()
            work()
            turn[i] = time.perf_counter() - start
    slower = np.max(plan.comm.allgather(times), axis=0)
    fastest: list[float] = slower.min(axis=0).tolist()
    return fastest


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        worker(Path(sys.argv[2]))
    else:
        main(*map(float, sys.argv[1:2]))
