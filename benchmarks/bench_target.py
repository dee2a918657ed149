"""What an order is worth to a loop: one Airfoil-like loop, run from plans for either target.

The flux loop of Airfoil reads two nodes and two cells of an edge and increments both cells. It is
run edge by edge, as an unchanged solver does, and as the runtime runs it by default.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import fastest, mesh_of, report

from meshprep import Options, prepare
from meshprep.loops.requests import LoopRequest
from meshprep.mesh import Mesh
from meshprep_runtime import Ordering, ParLoop

CELLS, ROUNDS = 720_000, 30
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
    cases = [_case(mesh, *case) for case in CASES]
    works = {
        (i, name): run for i, (_, runs) in enumerate(cases) for name, run in runs.items()
    }
    rows = [row for row, _ in cases]
    for (i, name), seconds in fastest(works, ROUNDS).items():
        rows[i][name] = 1000 * seconds
    report("target", rows)


def _shuffled(mesh: Mesh) -> Mesh:
    random = np.random.default_rng(1)
    return mesh.renumber(
        {
            n: Ordering.from_new_to_old(random.permutation(mesh.size(n)))
            for n in ("nodes", "cells")
        }
    )


def _case(
    mesh: Mesh, name: str, method: str, target: str
) -> tuple[dict[str, Any], dict[str, Callable[[], None]]]:
    """The figures of one plan, and its loop under two strategies, compiled."""
    request = LoopRequest("flux", {"over": "edges", "args": ARGS}, "benchmark")
    plan = prepare(mesh, [request], Options(method=method, target=target)).plan
    random = np.random.default_rng(2)
    x, q = (random.random((plan.sizes[s], d)) for s, d in (("nodes", 2), ("cells", 4)))
    arrays = {"x": x, "q": q, "res": np.zeros_like(q)}
    runs = {
        f"{strategy}, ms": partial(ParLoop(flux, plan["flux"], strategy=strategy), **arrays)
        for strategy in ("sequential", "auto")
    }
    row: dict[str, Any] = {"order": name} | dict.fromkeys(runs)
    order = plan.metrics.orders[0].final
    (sides,) = plan.metrics.sides()
    return row | {
        "bandwidth": order.bandwidth,
        "profile": f"{order.profile:.4g}",
        "block size": sides.after.block_size,
        "reuse": sides.after.reuse,
        "thread colours": sides.after.thread_colours.mean,
        "block colours": sides.after.block_colours,
    }, runs


if __name__ == "__main__":
    main()
