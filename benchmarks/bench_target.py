"""What an order is worth to a loop: one Airfoil-like loop, run from plans for either target.

The flux loop of Airfoil reads two nodes and two cells of an edge and increments both cells. It is
run edge by edge, as an unchanged solver does, and block by block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import best, mesh_of, report

from meshprep import Options, prepare
from meshprep.loops import LoopRequest
from meshprep.mesh import Mesh
from meshprep_runtime import Ordering, ParLoop

CELLS = 720_000
ARGS = [
    {"dat": "x", "map": "edges->nodes", "dim": 2, "access": "read"},
    {"dat": "q", "map": "edges->cells", "dim": 4, "access": "read"},
    {"dat": "res", "map": "edges->cells", "dim": 4, "access": "inc"},
]
# name, method, target; every plan is cut for its target
CASES = (
    ("shuffled", "none", "cpu"),
    ("cpu, gps", "gps", "cpu"),
    ("cpu, rcm", "rcm", "cpu"),
    ("cpu, hilbert", "hilbert", "cpu"),
    ("gpu, gps", "gps", "gpu"),
)


def flux(x1, x2, q1, q2, r1, r2):
    """A flux through an edge from the states of both sides."""
    dx, dy = x2[0] - x1[0], x2[1] - x1[1]
    for i in range(4):
        f = 0.5 * (dx * (q1[i] + q2[i]) - dy * (q1[i] - q2[i]))
        r1[i] += f
        r2[i] -= f


def main() -> None:
    """Print and save the table."""
    mesh = _shuffled(mesh_of("airfoil", CELLS))
    report("target", [_row(mesh, *case) for case in CASES])


def _shuffled(mesh: Mesh) -> Mesh:
    random = np.random.default_rng(1)
    return mesh.renumber(
        {n: Ordering.from_new_to_old(random.permutation(mesh.size(n))) for n in ("nodes", "cells")}
    )


def _row(mesh: Mesh, name: str, method: str, target: str) -> dict[str, Any]:
    request = LoopRequest("flux", {"over": "edges", "args": ARGS}, "benchmark")
    plan = prepare(mesh, [request], Options(method=method, target=target)).plan
    locality = plan.metrics["locality"]["final"]
    ((_, sides),) = plan.metrics["loops"]["flux"].items()
    x = np.random.default_rng(2).random((plan.sizes["nodes"], 2))
    q = np.random.default_rng(3).random((plan.sizes["cells"], 4))
    res = np.zeros_like(q)
    row = {"order": name, "applied": plan.metrics["locality"]["applied"]}
    for strategy in ("sequential", "hierarchical"):
        loop = ParLoop(flux, plan["flux"], strategy=strategy)
        row[f"{strategy}, ms"] = best(lambda run=loop: run(x=x, q=q, res=res), 7) * 1000
    return row | {
        "bandwidth": locality["bandwidth"],
        "profile": f"{locality['profile']:.4g}",
        "lines": locality["lines"],
        "block size": sides["after"]["block_size"],
        "reuse": sides["after"]["reuse"],
        "thread colours": sides["after"]["thread_colours"]["mean"],
        "block colours": sides["after"]["block_colours"],
    }


if __name__ == "__main__":
    main()
