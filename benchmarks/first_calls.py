"""What the first call of a loop costs: ``python first_calls.py PLAN LOOP``.

Prints the seconds of processor of a first call, with making the loop, and of a later one. The
folder for machine code is that of ``MESHPREP_CACHE_DIR``; `bench_start.py` begins with none.
"""

# mypy: allow-untyped-defs

import sys
import time
from typing import Any

import numpy as np

from meshprep_runtime import ParLoop, Plan

# Dats that the loop of 37 parameters reads, and as many that it adds to.
N_DATS = 9
READ = [f"q{k}" for k in range(N_DATS)]
ADDED = [f"r{k}" for k in range(N_DATS)]


def flux(xa, xb, qa, qb, ra, rb):
    """Ten lines, such as a flux of shallow water between two cells."""
    dx = xb[0] - xa[0]
    dy = xb[1] - xa[1]
    depth = 0.5 * (qa[0] + qb[0])
    normal = (0.5 * (qa[1] + qb[1]) * dy - 0.5 * (qa[2] + qb[2]) * dx) / depth
    speed = abs(normal) + (9.81 * depth * (dx * dx + dy * dy)) ** 0.5
    for k in range(3):
        f = 0.5 * normal * (qa[k] + qb[k]) - 0.5 * speed * (qb[k] - qa[k])
        ra[k] -= f
        rb[k] += f


def exchange(qa, qb, ra, rb):
    """What one dat gives from a cell to the next."""
    f = qb[0] - qa[0]
    ra[0] += f
    rb[0] -= f
    return f


# fmt: off
def exchange_all(
    q0a, q0b, q1a, q1b, q2a, q2b, q3a, q3b, q4a, q4b, q5a, q5b, q6a, q6b, q7a, q7b, q8a, q8b,
    r0a, r0b, r1a, r1b, r2a, r2b, r3a, r3b, r4a, r4b, r5a, r5b, r6a, r6b, r7a, r7b, r8a, r8b,
    total,
):
    """37 parameters."""
    total[0] += exchange(q0a, q0b, r0a, r0b)
    total[0] += exchange(q1a, q1b, r1a, r1b)
    total[0] += exchange(q2a, q2b, r2a, r2b)
    total[0] += exchange(q3a, q3b, r3a, r3b)
    total[0] += exchange(q4a, q4b, r4a, r4b)
    total[0] += exchange(q5a, q5b, r5a, r5b)
    total[0] += exchange(q6a, q6b, r6a, r6b)
    total[0] += exchange(q7a, q7b, r7a, r7b)
    total[0] += exchange(q8a, q8b, r8a, r8b)
# fmt: on


def _arg(name: str, access: str, dim: int) -> dict[str, object]:
    """A dat at both cells of an edge."""
    return {
        "dat": name,
        "map": "edges->cells",
        "index": [0, 1],
        "access": access,
        "dim": dim,
    }


LOOPS: dict[str, dict[str, Any]] = {
    "flux": {
        "over": "edges",
        "args": [_arg("x", "read", 2), _arg("q", "read", 3), _arg("r", "inc", 3)],
    },
    "exchange": {
        "over": "edges",
        "args": [
            *(_arg(name, "read", 1) for name in READ),
            *(_arg(name, "inc", 1) for name in ADDED),
            {"global": "total", "access": "inc"},
        ],
    },
}
KERNELS: dict[str, Any] = {"flux": flux, "exchange": exchange_all}


def main(plan_file: str, name: str) -> None:
    """Print the seconds of the first call and of a later one."""
    plan = Plan.load(plan_file)
    n_cells = plan.sizes["cells"]
    values = np.random.default_rng(1)
    arrays = {}
    for arg in LOOPS[name]["args"]:
        if "global" in arg:
            arrays[arg["global"]] = np.zeros(1)
        else:
            arrays[arg["dat"]] = 1.0 + values.random((n_cells, arg["dim"]))
    # Load the compiler first: a process pays for that once, whatever it compiles.
    import numba  # noqa: F401

    seconds = []
    loop: Any = None
    for _ in range(2):
        start = time.process_time()
        if loop is None:
            loop = ParLoop(KERNELS[name], plan[name])
        loop(**arrays)
        seconds.append(time.process_time() - start)
    print(*seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
