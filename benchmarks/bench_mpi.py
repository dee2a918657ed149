"""Airfoil whole on ranks under MPI: seconds of its loops, waits, and messages.

    python benchmarks/bench_mpi.py [CELLS] [ITERATIONS] [RANKS,RANKS...]

``CELLS`` is 720,000 and the ranks are 1 and 2, one thread each. A row has the sum over the loops of
their least time in an iteration, on the slowest rank (bar: at most 27 ms on 2 ranks on two cores,
and 1.6 times one rank), the mean wait for messages after core elements have run beside that of an
exchange that waits at once (bar: below 0.2 of it), and what is executed twice. The residual must
be that of one rank in six digits.

On one machine messages take no time that core elements could hide. So a second table has two ranks
of one process whose messages take some milliseconds: the wait after core elements beside that of an
exchange that waits at once.

Ranks are started by ``mpiexec`` (or ``mpiexec.hydra`` of the wheel of MPICH).
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import EXAMPLES, mesh_file, report, run_on_ranks, table

WORKER, WAITS = "--rank", 200
# Milliseconds that messages take in the second table, and the calls of res_calc that are timed.
DELAYS, DELAYED_CALLS = (0.5, 1.0, 2.0), 40


def main(
    cells: int = 720_000, iterations: int = 200, ranks: tuple[int, ...] = (1, 2)
) -> None:
    """Print and save the table."""
    mesh = mesh_file("airfoil", cells=cells)
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "airfoil.parts.h5"
        split(mesh, parts, ranks)
        words = (__file__, WORKER, parts, iterations)
        found = {k: json.loads(run_on_ranks(k, *words)[2]) for k in ranks}
        delayed = _delayed(parts)
    one = found[ranks[0]]
    rows = []
    for k, told in found.items():
        if told["rms"] != one["rms"]:
            sys.exit(f"error: the residual on {k} ranks is {told['rms']}, not {one['rms']}")
        ms = {name: 1e3 * seconds for name, seconds in told["least"].items()}
        rows.append(
            {
                "ranks": k,
                **{f"{name} ms": value for name, value in ms.items()},
                "all ms": sum(ms.values()),
                "times one": sum(one["least"].values()) / sum(told["least"].values()),
                "wait us": 1e6 * told["wait"],
                "at once us": 1e6 * told["blocking"],
                "edges twice": told["edges_twice"],
                "messages": told["messages"],
                "kB": told["bytes"] / 1e3,
                "rms": told["rms"],
            }
        )
    report("mpi", rows, delayed=delayed)
    table(delayed)


def split(
    mesh: Path,
    parts: Path,
    ranks: tuple[int, ...],
    block_size: int = 4096,
    target: str = "cpu",
) -> None:
    """Parts of a mesh for each number of ranks, with the loops of Airfoil."""
    from meshprep.distribute.job.run import SplitJob, run
    from meshprep.distribute.job.split import SplitOptions
    from meshprep.loops.options import Options
    from meshprep.loops.requests import read_requests

    requests = read_requests(EXAMPLES / "kernels" / "airfoil.toml")
    options = Options(block_size=block_size, target=target)
    run(SplitJob(mesh, parts, ranks, requests, SplitOptions(), options))


def worker(parts: Path, iterations: int) -> None:
    """Run on one rank; the first one prints."""
    from airfoil import Airfoil
    from meshprep_runtime import DistributedPlan

    plan = DistributedPlan.load(parts)
    flow = Airfoil.on_ranks(plan)
    steps = flow.steps(iterations)
    # The first iteration compiles.
    rms = next(steps)
    flow.reset()
    least = dict.fromkeys(flow.seconds, float("inf"))
    wait, messages, sent = 0.0, 0, 0
    for value in steps:
        rms = value
        slowest = [max(of) for of in zip(*_every(plan.comm, flow.seconds), strict=True)]
        least = {n: min(least[n], s) for n, s in zip(least, slowest, strict=True)}
        edges = flow.loops["res_calc"].times
        wait, messages, sent = (
            wait + edges.wait,
            messages + edges.messages,
            sent + edges.sent_bytes,
        )
        flow.reset()
    calls = 2 * max(iterations - 1, 1)
    own = {
        "wait": wait / calls,
        "blocking": _blocking(plan, flow),
        "messages": messages / calls,
        "bytes": sent / calls,
        "edges_twice": plan.set_part("edges").exec,
    }
    every = plan.comm.allgather(own)
    if plan.comm.rank == 0:
        mean = {k: sum(one[k] for one in every) / len(every) for k in ("wait", "blocking")}
        total = {
            k: sum(one[k] for one in every) for k in ("messages", "bytes", "edges_twice")
        }
        sys.stdout.write(json.dumps({"least": least, "rms": f"{rms:.5e}", **mean, **total}))


def _delayed(parts: Path) -> list[dict[str, float]]:
    """The wait of two ranks in this process, for each time that a message takes."""
    from airfoil import Airfoil
    from meshprep_runtime import DistributedPlan, run_ranks

    def rank_waits(comm: Any) -> tuple[float, float]:
        plan = DistributedPlan.load(parts, comm)
        flow = Airfoil.on_ranks(plan)
        steps = flow.steps(1 + DELAYED_CALLS // 2)
        next(steps)
        flow.reset()
        for _ in steps:
            pass
        return flow.loops["res_calc"].times.wait / DELAYED_CALLS, _blocking(plan, flow, 20)

    rows = []
    for ms in DELAYS:
        waits = run_ranks(2, rank_waits, delay=1e-3 * ms)
        after, at_once = (1e3 * sum(of) / len(of) for of in zip(*waits, strict=True))
        rows.append(
            {
                "message ms": ms,
                "wait ms": after,
                "at once ms": at_once,
                "ratio": after / at_once,
            }
        )
    return rows


def _every(comm: Any, seconds: dict[str, float]) -> list[list[float]]:
    found: list[list[float]] = comm.allgather(list(seconds.values()))
    return found


def _blocking(plan: Any, flow: Any, times: int = WAITS) -> float:
    """Mean seconds of the wait for the same messages when nothing is computed meanwhile."""
    from meshprep_runtime.program.dat import EXEC, HALO

    q, adt = (flow._given["res_calc"][name] for name in ("q", "adt"))
    total = 0.0
    for _ in range(times):
        plan.comm.Barrier()
        transfer = plan.messages.start([(q, (EXEC, HALO)), (adt, (EXEC, HALO))])
        start = time.perf_counter()
        transfer.finish()
        total += time.perf_counter() - start
    return total / times


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        worker(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        given = [int(word) for word in sys.argv[1:3]]
        counts = [tuple(map(int, word.split(","))) for word in sys.argv[3:4]]
        main(*given, *counts)
