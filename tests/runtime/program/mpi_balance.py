"""Run by mpiexec on two ranks: mpi_balance.py TIMINGS SLOW PARTS [SLOW PARTS ...].

Rank 0 does SLOW times the work of rank 1 for each edge. Writes TIMINGS with SLOW in its name.
Seconds are those of the processor: where others take it, all the same is measured.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from meshprep_runtime import Access, Arg, DistributedPlan, Loop, Program

WORK, CALLS = 1000, 8
FLUX = Loop(
    "flux",
    "edges",
    (
        Arg("t", Access.READ, 1, "f8", "edges->cells", (0, 1)),
        Arg("r", Access.INC, 1, "f8", "edges->cells", (0, 1)),
        Arg("work", Access.READ, 1, "i8", is_global=True),
    ),
)


def flux(t1, t2, r1, r2, work):
    f = t2[0] - t1[0]
    for _ in range(work[0]):
        f = 0.5 * f + 0.25
    r1[0] += f
    r2[0] -= f


def timed(slow, parts):
    """What a program on these parts takes."""
    plan = DistributedPlan.load(parts)
    program = Program(plan)
    loop = program.loop(flux, "flux", strategy="sequential")
    given = {name: program.dat("cells") for name in ("t", "r")}
    given["work"] = np.array([round(WORK * slow) if plan.comm.rank == 0 else WORK])
    loop(**given)
    program.reset()
    for _ in range(CALLS):
        loop(**given)
    return program.timings().to_json()


def main(path, *words):
    time.perf_counter = time.thread_time
    for slow, parts in zip(words[::2], words[1::2], strict=True):
        found = timed(float(slow), parts)
        path.with_name(f"{path.name}{slow}").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
