"""Fields written by all ranks, each a slice, beside gathering them on rank 0, which writes alone.

    python benchmarks/bench_fields.py [CELLS] [DIM] [RANKS,RANKS...]

A field of 64 values a cell, 100 MB, under MPI. Both ways take turns, five times, and end when the
bytes are on the disk. Seconds are the least from the first rank's start to the last one's end;
memory is what the fullest rank allocates meanwhile (bar: on four ranks below half of what rank 0
needs alone). Both files must hold the same arrays.
"""

import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_file, report, run_on_ranks

WORKER, TURNS = "--rank", 5


def main(cells: int = 200_000, dim: int = 64, ranks: tuple[int, ...] = (1, 2, 4)) -> None:
    """Print and save the table."""
    mesh = mesh_file("delaunay2d", cells=cells)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "square.parts.h5"
        _split(mesh, parts, ranks)
        for k in ranks:
            found = json.loads(run_on_ranks(k, __file__, WORKER, parts, dim)[2])
            alone, together = found["alone"], found["together"]
            row = {
                "ranks": k,
                "MB": found["bytes"] / 1e6,
                "rank 0 alone, s": alone["seconds"],
                "all ranks, s": together["seconds"],
                "times": alone["seconds"] / together["seconds"],
                "memory of rank 0 alone, MB": alone["memory"] / 1e6,
                "of all, the fullest, MB": together["memory"] / 1e6,
            }
            rows.append(row)
    report("fields", rows)


def _split(mesh: Path, parts: Path, ranks: tuple[int, ...]) -> None:
    from meshprep.distribute.job.run import SplitJob, run
    from meshprep.loops.requests import LoopRequest

    arguments = [
        {"dat": "t", "map": "edges->cells", "access": "read"},
        {"dat": "r", "map": "edges->cells", "access": "inc"},
    ]
    request = LoopRequest("flux", {"over": "edges", "args": arguments}, "flux")
    run(SplitJob(mesh, parts, ranks, (request,)))


def worker(parts: Path, dim: int) -> None:
    """Write both ways on one rank; the first one prints."""
    from meshprep_runtime import DistributedPlan

    plan = DistributedPlan.load(parts)
    numbers = plan.numbers("cells")
    field = plan.dat("cells", dim, values=np.sqrt(numbers[:, None] + np.arange(float(dim))))
    paths = {"alone": parts.with_name("alone.h5"), "together": parts.with_name("all.h5")}
    works = {
        "alone": lambda: _write_alone(plan, field, paths["alone"]),
        "together": lambda: plan.write_fields(
            paths["together"], {"q": field}, overwrite=True
        ),
    }
    seconds = {name: float("inf") for name in works}
    for _ in range(TURNS):
        for name, work in works.items():
            seconds[name] = min(seconds[name], _slowest(plan, work))
    memory = {name: _fullest(plan, work) for name, work in works.items()}
    if plan.comm.rank == 0:
        _compare(*paths.values())
        found: dict[str, Any] = {"bytes": plan.sizes["cells"] * dim * 8}
        for name in works:
            found[name] = {"seconds": seconds[name], "memory": memory[name]}
        sys.stdout.write(json.dumps(found))


def _write_alone(plan: Any, field: Any, path: Path) -> None:
    """All values on rank 0, which writes them."""
    import h5py

    values = plan.fetch(field)
    if values is not None:
        with h5py.File(path, "w") as file:
            file["q"] = values
        with open(path, "r+b") as written:
            os.fsync(written.fileno())


def _slowest(plan: Any, work: Callable[[], None]) -> float:
    """Seconds until the last rank has ended."""
    plan.comm.Barrier()
    start = time.perf_counter()
    work()
    plan.comm.Barrier()
    return time.perf_counter() - start


def _fullest(plan: Any, work: Callable[[], None]) -> int:
    """The most bytes that a rank allocates."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    most: int = max(plan.comm.allgather(peak))
    return most


def _compare(first: Path, second: Path) -> None:
    import h5py

    with h5py.File(first) as alone, h5py.File(second) as together:
        if not np.array_equal(alone["q"][:], together["q"][:]):
            sys.exit("error: the files differ")


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        worker(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        given = [int(word) for word in sys.argv[1:3]]
        counts = [tuple(map(int, word.split(","))) for word in sys.argv[3:4]]
        main(*given, *counts)
