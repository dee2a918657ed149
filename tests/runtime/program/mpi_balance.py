"""Run by mpiexec on two ranks: mpi_balance.py TIMINGS SLOW PARTS [SLOW PARTS ...].

An edge takes rank 0 SLOW seconds and rank 1 one. Writes TIMINGS with SLOW in its name. The clock
shows the work that the elements have noted, so that any machine measures the same.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from meshprep_runtime import Access, Arg, DistributedPlan, Loop, Program

CALLS = 8
FLUX = Loop(
    "flux",
    "edges",
    (
        Arg("t", Access.READ, 1, "f8", "edges->cells", (0, 1)),
        Arg("r", Access.INC, 1, "f8", "edges->cells", (0, 1)),
        Arg("spent", Access.INC, 1, "f8"),
        Arg("work", Access.READ, 1, "f8", is_global=True),
    ),
)


def flux(t1, t2, r1, r2, spent, work):
    r1[0] += t2[0] - t1[0]
    r2[0] -= t2[0] - t1[0]
    spent[0] += work[0]


def timed(slow, parts):
    """What a program on these parts takes."""
    plan = DistributedPlan.load(parts)
    program = Program(plan)
    loop = program.loop(flux, "flux", strategy="sequential")
    given = {name: program.dat("cells") for name in ("t", "r")}
    given["spent"] = program.dat("edges")
    given["work"] = np.array([slow if plan.comm.rank == 0 else 1.0])
    time.perf_counter = lambda: float(given["spent"].stored.sum())
    for _ in range(CALLS):
        loop(**given)
    return program.timings().to_json()


def main(path, *words):
    for slow, parts in zip(words[::2], words[1::2], strict=True):
        found = timed(float(slow), parts)
        path.with_name(f"{path.name}{slow}").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
