"""Products on two ranks: an exchange hidden behind rows, and several products with one exchange.

    python benchmarks/bench_rank_products.py [MOST_ROWS]

Linear triangles between random points, from 1,000 rows to ``MOST_ROWS`` (a million). ``overlap``
and ``one exchange`` have how many times as fast these are as products with the exchange first, by
the fastest of many turns on the slower rank; ``takes`` is what PartProduct and PartPowers chose by
their own measurement. All ways must give the same bits.

In the first table two processes run under ``mpiexec``, one thread each, on this machine. A message
arrives by MPI, and then at the earliest ``LATENCIES`` after it was asked for: 0 is the memory of
this machine, 20 us a fast network, 200 us a slow one. In the second table both ranks are in one
process, and messages take the same times: ranks take turns, so that a product has the work of both,
but a busy machine spoils no turn by letting one rank wait for the other.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_file, report, run_on_ranks, table

from meshprep_runtime.program.exchange import TAG

WORKER, RANKS, MAP = "--rank", 2, "cells->nodes"
# Seconds that a message takes at least.
LATENCIES = (0.0, 20e-6, 200e-6)
COUNT = 4
# Turns of a measurement, and the rows that all of them may have together.
MOST_TURNS, ROWS_OF_TURNS = 3000, 3e7


class DelayedRequest:
    """A request that is done at the earliest some time after it was made."""

    def __init__(self, request: Any, due: float) -> None:
        self.request = request
        self.due = due

    def Test(self) -> bool:
        """True where it is done; MPI goes on with all messages."""
        is_done = self.request.Test()
        return is_done and time.perf_counter() >= self.due

    def Testall(self, requests: "Sequence[DelayedRequest]") -> bool:
        """True where all are done."""
        is_done = self.request.Testall([one.request for one in requests])
        return is_done and time.perf_counter() >= max(one.due for one in requests)


class DelayedComm:
    """A communicator of mpi4py whose messages between two ranks take some time."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.latency = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def Irecv(self, buffer: Any, source: int, tag: int) -> Any:
        """Receive; values of dats not before the latency is over."""
        request = self._comm.Irecv(buffer, source, tag)
        if tag != TAG:
            return request
        return DelayedRequest(request, time.perf_counter() + self.latency)

    def Isend(self, buffer: Any, dest: int, tag: int) -> Any:
        """Send; the sender does not wait."""
        request = self._comm.Isend(buffer, dest, tag)
        if tag != TAG:
            return request
        return DelayedRequest(request, 0.0)


def main(most: int = 1_000_000) -> None:
    """Print and save the tables."""
    under_mpi: list[dict[str, Any]] = []
    in_process: list[dict[str, Any]] = []
    size = 1000
    while size <= most:
        with tempfile.TemporaryDirectory() as folder:
            parts = Path(folder) / "square.parts.h5"
            split(mesh_file("delaunay2d", cells=2 * size), parts)
            under_mpi += json.loads(run_on_ranks(RANKS, __file__, WORKER, parts)[2])
            in_process += rows_in_process(parts)
        size *= 10
    report("rank_products", under_mpi, in_process=in_process)
    table(in_process)


def split(mesh: Path, parts: Path) -> None:
    """Two parts of a mesh, with a loop that adds a matrix of ones for each triangle."""
    from meshprep.distribute.job.run import SplitJob, run
    from meshprep.loops.requests import LoopRequest

    args = [{"mat": "K", "rows": MAP, "columns": MAP, "access": "inc"}]
    request = LoopRequest("ones", {"over": "cells", "args": args}, "bench")
    run(SplitJob(mesh, parts, (RANKS,), (request,)))


def ones(K: Any) -> None:
    """The matrix of a triangle."""
    for k in range(9):
        K[k] += 1.0


def rows_in_process(parts: Path) -> list[dict[str, Any]]:
    """The rows of the second table for one mesh."""
    from meshprep_runtime import DistributedPlan, run_ranks

    rows = []
    for latency in LATENCIES:

        def main(comm: Any, latency: float = latency) -> dict[str, Any]:
            return row_of(DistributedPlan.load(parts, comm), latency)

        rows.append(run_ranks(RANKS, main, delay=latency)[0])
    return rows


def worker(parts: Path) -> None:
    """Run on one rank; the first one prints."""
    from meshprep_runtime import DistributedPlan

    plan = DistributedPlan.load(parts)
    # All messages of the plan, and of what is made of it, go through this.
    plan.ranks.comm = DelayedComm(plan.ranks.comm)
    rows = []
    for latency in LATENCIES:
        plan.ranks.comm.latency = latency
        rows.append(row_of(plan, latency))
    if plan.comm.rank == 0:
        sys.stdout.write(json.dumps(rows))


def row_of(plan: Any, latency: float) -> dict[str, Any]:
    """Times of all ways, and what is chosen; all ranks together."""
    from meshprep_runtime.matrix import PartAssembly, PartPowers, PartProduct

    matrix = PartAssembly(ones, plan, "ones")()
    # Powers of it stay small.
    matrix = replace(matrix, values=matrix.values / 40)
    x = np.ones(matrix.shape[0])
    in_order, overlapped, product = (
        PartProduct(matrix, plan, "nodes", overlap=overlap)
        for overlap in (False, True, None)
    )
    each, rings, powers = (
        PartPowers(matrix, plan, "nodes", COUNT, one_exchange=one)
        for one in (False, True, None)
    )
    np.testing.assert_array_equal(overlapped(x), in_order(x))
    np.testing.assert_array_equal(rings(x), each(x))
    ways = {
        "product": lambda: in_order(x),
        "overlapped": lambda: overlapped(x),
        "each": lambda: each(x),
        "rings": lambda: rings(x),
    }
    us = {name: 1e6 * seconds for name, seconds in fastest_on_ranks(plan, ways).items()}
    # The share of rows that a rank computes beside its own.
    computed = plan.comm.allgather((sum(rings.ends[:-1]), COUNT * rings.ends[0]))
    done, owned = (sum(of) for of in zip(*computed, strict=True))
    return {
        "rows": plan.sizes["nodes"],
        "latency us": 1e6 * latency,
        "product us": us["product"],
        "overlap": us["product"] / us["overlapped"],
        "takes overlap": product.overlap,
        f"{COUNT} products us": us["each"],
        "one exchange": us["each"] / us["rings"],
        "takes one exchange": powers.one_exchange,
        "rows again": done / owned - 1,
    }


def fastest_on_ranks(plan: Any, ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of each way on the slower rank, the fastest of many turns."""
    turns = round(min(MOST_TURNS, max(10, ROWS_OF_TURNS / plan.sizes["nodes"])))
    seconds = np.empty((turns, len(ways)))
    for turn in seconds:
        for i, work in enumerate(ways.values()):
            plan.comm.Barrier()
            start = time.perf_counter()
            work()
            turn[i] = time.perf_counter() - start
    slower = np.max(plan.comm.allgather(seconds), axis=0).min(axis=0)
    return dict(zip(ways, slower.tolist(), strict=True))


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        worker(Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:2]))
