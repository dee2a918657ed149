"""miniAero whole, a step of Runge and Kutta: an unchanged mesh beside the plan of it.

    python benchmarks/bench_miniaero.py [CELLS_A_SIDE] [STEPS]

Hexahedra in random order, as their author would run them: one loop after the other, in the order of
the mesh, on one thread; beside them the same loops on the plan, on one thread and on all. Steps
take turns; seconds of a loop are the least of its steps. All must give the same gas.
"""

import sys
from typing import Any

import numba
import numpy as np
from common import mesh_file, report

from meshprep.io import read
from miniaero import MiniAero

STEPS, SIDE = 6, 60


def main(side: int = SIDE, steps: int = STEPS) -> None:
    """Print and save the table."""
    mesh = read(
        mesh_file("box", nx=side, ny=side, nz=side, type="hexahedron", shuffle=True)
    )
    every = numba.config.NUMBA_NUM_THREADS
    unchanged = {"keep_order": True, "strategy": "sequential"}
    flows = {
        "as given": (MiniAero(mesh, **unchanged), 1),
        "one thread": (MiniAero(mesh), 1),
        f"{every} threads": (MiniAero(mesh), every),
    }
    seconds = _least_seconds(flows, steps)
    _check([flow.state for flow, _ in flows.values()])
    first, *ours = flows
    rows = []
    for loop in [*seconds[first], "all"]:
        row: dict[str, Any] = {"loop": loop}
        ms = {name: 1e3 * _of(seconds[name], loop) for name in flows}
        row |= {f"{name}, ms": value for name, value in ms.items()}
        row |= {f"{name}, times": ms[first] / ms[name] for name in ours}
        rows.append(row)
    report("miniaero", rows, cells=side**3, steps=steps)


def _least_seconds(flows: dict[str, Any], steps: int) -> dict[str, dict[str, float]]:
    """The least seconds that a loop took in a step, after one that compiles."""
    least: dict[str, dict[str, float]] = {}
    for step in range(1 + steps):
        for name, (flow, threads) in flows.items():
            numba.set_num_threads(threads)
            flow.program.reset()
            flow.advance(flow.time + 1e-3)
            took = {loop: one.times.seconds for loop, one in flow.loops.items()}
            if step == 0:
                least[name] = dict.fromkeys(took, float("inf"))
                continue
            least[name] = {loop: min(least[name][loop], took[loop]) for loop in took}
    return least


def _of(seconds: dict[str, float], loop: str) -> float:
    return sum(seconds.values()) if loop == "all" else seconds[loop]


def _check(states: list[np.ndarray]) -> None:
    first, *others = states
    for other in others:
        if not np.allclose(first, other, rtol=1e-9, atol=1e-12):
            sys.exit("error: the gas on the plan is another one")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
