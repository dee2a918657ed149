"""What the five kernels execute on GPUs, the registers of a thread, and what it spills.

First the instructions (PTX for sm_90) that an element's thread executes in blocks of 256 by colour,
in all and by kind, and those that warps issue for an element. Then columns are an architecture and
the threads of a block, then the most bytes that a thread spills with that many threads, on any
architecture, with blocks by colour or with atomics.

    python benchmarks/bench_registers.py [kernel [strategy]]

No GPU is needed: the kernels are compiled from Python for each architecture. The text depends on
the loop and the size of a thread block, not on the mesh, so that small meshes do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import report

from kernels import airfoil, bookleaf, lulesh, miniaero, volna
from meshprep.io.generate import generate
from meshprep.loops import read_requests
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import LoopPlan
from meshprep_runtime.cuda import COMMITS, STRATEGIES, CudaProgram, program, refusal
from meshprep_runtime.cuda.check.counts import KINDS, OTHER, executed
from meshprep_runtime.cuda.nvrtc import compile_program

FOLDER = Path(__file__).parent.parent / "examples" / "kernels"
QUADS = {"nx": 24, "ny": 24, "type": "quad"}
HEXAHEDRA = {"nx": 8, "ny": 8, "nz": 8, "type": "hexahedron"}
CASES: tuple[tuple[str, Callable[..., None], str, dict[str, Any]], ...] = (
    ("airfoil", airfoil.res_calc, "box", QUADS),
    ("volna", volna.space_discretization, "delaunay2d", {"cells": 600}),
    ("bookleaf", bookleaf.getacc_scatter, "box", QUADS),
    ("lulesh", lulesh.integrate_stress, "box", HEXAHEDRA),
    ("miniaero", miniaero.compute_face_flux, "box", HEXAHEDRA),
)
DEVICES = ("sm_75", "sm_80", "sm_90")
THREADS = (256, 384, 512)


def main(chosen: str = "", strategies: str = "") -> None:
    """Print and save the table."""
    rows = []
    for name, kernel, kind, size in (case for case in CASES if chosen in case[0]):
        requests = read_requests(FOLDER / f"{name}.toml")
        plans = {
            n: prepare(generate(kind, **size), requests, Options(block_size=n)).plan[
                kernel.__name__
            ]
            for n in THREADS
        }
        rows += [
            _row(name, kernel, plans, strategy, layout)
            for strategy in STRATEGIES
            if strategies in strategy
            for layout in ("aos", "soa")
        ]
    report("registers", rows)


def _row(
    name: str,
    kernel: Callable[..., None],
    plans: dict[int, LoopPlan],
    strategy: str,
    layout: str,
) -> dict[str, Any]:
    """Counts and registers by colour, and the most that any commit and kernel spills."""
    row: dict[str, Any] = {"kernel": name, "strategy": strategy, "layout": layout}
    spilled = dict.fromkeys(THREADS, 0)
    for threads, plan in plans.items():
        for commit in _commits(plan, strategy):
            made = program(kernel, plan, strategy, layout=layout, commit=commit, threads=threads)
            if commit == COMMITS[0] and threads == THREADS[0]:
                row |= _counts(made)
            for arch in DEVICES:
                found = [compile_program(one, arch) for one in (made, *made.then)]
                spilled[threads] = max(spilled[threads], *(code.spilled for code in found))
                if commit == "colours" and (threads == THREADS[0] or arch == DEVICES[-1]):
                    row[f"{arch}, {threads}"] = found[0].registers
    return row | {f"spilled, {threads}": most for threads, most in spilled.items()}


def _commits(plan: LoopPlan, strategy: str) -> list[str]:
    able = COMMITS if STRATEGIES[strategy].blocks else COMMITS[:1]
    return [commit for commit in able if refusal(plan.loop, strategy, commit) is None]


def _counts(made: CudaProgram) -> dict[str, Any]:
    """Instructions of an element, in all, for its share of a warp, and by kind."""
    rng = np.random.default_rng(0)
    values = {s.name: (1 + rng.random(s.shape)).astype(s.dtype) for s in made.slots}
    found = executed(made, **values)
    kinds = {kind: found.threads.get(kind, 0.0) for kind in (*KINDS, OTHER)}
    return {"instructions": found.total, "issued": found.warps, **kinds}


if __name__ == "__main__":
    main(*sys.argv[1:3])
