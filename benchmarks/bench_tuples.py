"""Kernels of cells with many corners: a parameter for each corner, or for all corners.

    python benchmarks/bench_tuples.py [CELLS]

Each corner of a cell pulls at the middle of the cell. A kernel with a parameter for each row calls
a function for each corner; one with a parameter for each argument has a loop over the corners. Both
run in the order of one plan, in turns, and the least processor time of each counts. Registers are
those of a thread on a GPU, compiled without one.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_numpy import processor_time
from common import fastest, report

from meshprep import prepare
from meshprep.io.generate import generate
from meshprep_runtime import LoopPlan, ParLoop
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.build import compile_program

TURNS = 15
# Calls in which a ParLoop finds its form.
CALLS = 40


def pull(x, middle, weight, f):
    """What one corner gets."""
    f[0] += weight[0] * (middle[0] - x[0])
    f[1] += weight[0] * (middle[1] - x[1])
    f[2] += weight[0] * (middle[2] - x[2])


def hexahedron_by_row(
    x0, x1, x2, x3, x4, x5, x6, x7, weight, f0, f1, f2, f3, f4, f5, f6, f7
):
    """A parameter for each of eight corners."""
    middle = (
        0.125 * (x0[0] + x1[0] + x2[0] + x3[0] + x4[0] + x5[0] + x6[0] + x7[0]),
        0.125 * (x0[1] + x1[1] + x2[1] + x3[1] + x4[1] + x5[1] + x6[1] + x7[1]),
        0.125 * (x0[2] + x1[2] + x2[2] + x3[2] + x4[2] + x5[2] + x6[2] + x7[2]),
    )
    pull(x0, middle, weight, f0)
    pull(x1, middle, weight, f1)
    pull(x2, middle, weight, f2)
    pull(x3, middle, weight, f3)
    pull(x4, middle, weight, f4)
    pull(x5, middle, weight, f5)
    pull(x6, middle, weight, f6)
    pull(x7, middle, weight, f7)


def tetrahedron_by_row(x0, x1, x2, x3, weight, f0, f1, f2, f3):
    """A parameter for each of four corners."""
    middle = (
        0.25 * (x0[0] + x1[0] + x2[0] + x3[0]),
        0.25 * (x0[1] + x1[1] + x2[1] + x3[1]),
        0.25 * (x0[2] + x1[2] + x2[2] + x3[2]),
    )
    pull(x0, middle, weight, f0)
    pull(x1, middle, weight, f1)
    pull(x2, middle, weight, f2)
    pull(x3, middle, weight, f3)


def hexahedron_by_argument(x, weight, f):
    """The tuples of eight rows."""
    mx = 0.0
    my = 0.0
    mz = 0.0
    for corner in range(8):
        mx += 0.125 * x[corner][0]
        my += 0.125 * x[corner][1]
        mz += 0.125 * x[corner][2]
    for corner in range(8):
        pull(x[corner], (mx, my, mz), weight, f[corner])


def tetrahedron_by_argument(x, weight, f):
    """The tuples of four rows."""
    mx = 0.0
    my = 0.0
    mz = 0.0
    for corner in range(4):
        mx += 0.25 * x[corner][0]
        my += 0.25 * x[corner][1]
        mz += 0.25 * x[corner][2]
    for corner in range(4):
        pull(x[corner], (mx, my, mz), weight, f[corner])


def main(cells: int = 110_000) -> None:
    """Print and save the table."""
    side = round(cells ** (1 / 3))
    hexahedra = generate("box", nx=side, ny=side, nz=side)
    tetrahedra = generate("delaunay3d", cells=cells)
    rows = [
        _row("hexahedra", hexahedra, hexahedron_by_row, hexahedron_by_argument, 8),
        _row("tetrahedra", tetrahedra, tetrahedron_by_row, tetrahedron_by_argument, 4),
    ]
    report("tuples", rows, cells=cells)


def _row(
    name: str,
    mesh: Any,
    by_row: Callable[..., None],
    by_argument: Callable[..., None],
    corners: int,
) -> dict[str, Any]:
    """The times of both kernels on a mesh, and their registers."""
    at_corners = {"map": "cells->nodes", "index": [*range(corners)], "dim": 3}
    loop = {
        "over": "cells",
        "args": [
            {"dat": "x", "access": "read", **at_corners},
            {"dat": "weight", "access": "read"},
            {"dat": "f", "access": "inc", **at_corners},
        ],
    }
    plan = prepare(mesh, {"pull": loop}).plan["pull"]
    rng = np.random.default_rng(1)
    x = rng.random((plan.sizes["nodes"], 3))
    weight = rng.random(plan.sizes["cells"])
    calls = {kernel: _call(kernel, plan, x, weight) for kernel in (by_row, by_argument)}
    seconds = fastest(calls, TURNS, processor_time)
    return {
        "cells": name,
        "by row, ms": 1e3 * seconds[by_row],
        "by argument, ms": 1e3 * seconds[by_argument],
        "by row / by argument": seconds[by_row] / seconds[by_argument],
        "registers by row": _registers(by_row, plan),
        "registers by argument": _registers(by_argument, plan),
    }


def _call(
    kernel: Callable[..., None], plan: LoopPlan, x: np.ndarray, weight: np.ndarray
) -> Callable[[], None]:
    """A call of the kernel's loop, which has found its form."""
    loop = ParLoop(kernel, plan)
    f = np.zeros_like(x)
    for _ in range(CALLS):
        loop(x=x, weight=weight, f=f)
    return lambda: loop(x=x, weight=weight, f=f)


def _registers(kernel: Callable[..., None], plan: LoopPlan) -> int:
    """Registers of a thread on a GPU."""
    return compile_program(program(kernel, plan)).registers


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
