"""What the five kernels execute on GPUs, the registers of a thread, and what it spills.

First the instructions (PTX for sm_90) that an element's thread executes in blocks of 256 by colour,
AoS, in all and by kind, and those that warps issue for an element. Then the registers of a thread,
by architecture, for blocks of 256 by colour; on sm_90 also for blocks of 512, for atomics between
blocks, and with f4 in place of f8 or f8 in place of f4. Last the most bytes that a thread spills in
any of these, and the occupancy of the first on sm_90.

    python benchmarks/bench_registers.py [kernel [strategy]]

No GPU is needed: the kernels are compiled from Python for each architecture. The text depends on
the loop and the size of a thread block, not on the mesh, so that small meshes do. The file is
written after each kernel; all of them take ten minutes.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from common import EXAMPLES, report
from executed import KINDS, OTHER, executed

from kernels import airfoil, bookleaf, lulesh, miniaero, volna
from meshprep.io.generate import generate
from meshprep.loops.requests import read_requests
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import LoopPlan
from meshprep_runtime.cuda import COMMITS, STRATEGIES, CudaProgram, program, refusal
from meshprep_runtime.cuda.build import compile_program
from meshprep_runtime.cuda.occupancy import occupancy

QUADS = {"nx": 24, "ny": 24, "type": "quad"}
HEXAHEDRA = {"nx": 8, "ny": 8, "nz": 8, "type": "hexahedron"}
KERNELS = {
    "airfoil": airfoil.res_calc,
    "volna": volna.space_discretization,
    "bookleaf": bookleaf.getacc_scatter,
    "lulesh": lulesh.integrate_stress,
    "miniaero": miniaero.compute_face_flux,
}
MESHES: dict[str, tuple[str, dict[str, Any]]] = {
    "airfoil": ("box", QUADS),
    "volna": ("delaunay2d", {"cells": 600}),
    "bookleaf": ("box", QUADS),
    "lulesh": ("box", HEXAHEDRA),
    "miniaero": ("box", HEXAHEDRA),
}
THREADS, MANY = 256, 512
OTHER_FLOAT = {"f4": "f8", "f8": "f4"}
COLOURS, ATOMICS = COMMITS


def main(chosen: str = "", strategies: str = "") -> None:
    """Print and save the table."""
    rows: list[dict[str, Any]] = []
    for name, kernel in KERNELS.items():
        if chosen not in name:
            continue
        plans = plans_of(name, MESHES[name], (THREADS, MANY))
        rows += [
            {"kernel": name, "strategy": strategy, "layout": layout}
            | _row(kernel, plans, strategy, layout)
            for strategy in STRATEGIES
            if strategies in strategy
            for layout in ("aos", "soa")
        ]
        report("registers", rows)


def plans_of(
    name: str, mesh: tuple[str, dict[str, Any]], sizes: Sequence[int]
) -> dict[int, LoopPlan]:
    """The plan of a kernel's loop on a generated mesh, by block size."""
    requests = read_requests(EXAMPLES / "kernels" / f"{name}.toml")
    made = generate(mesh[0], **mesh[1])
    plans = {n: prepare(made, requests, Options(block_size=n)).plan for n in sizes}
    return {n: plan[KERNELS[name].__name__] for n, plan in plans.items()}


def _row(
    kernel: Callable[..., None], plans: dict[int, LoopPlan], strategy: str, layout: str
) -> dict[str, Any]:
    """Counts, registers, and the most that any of the programs spills."""

    def text(plan: LoopPlan, threads: int = THREADS, commit: str = COLOURS) -> CudaProgram:
        return program(
            kernel, plan, strategy, layout=layout, commit=commit, threads=threads
        )

    plan = plans[THREADS]
    usual = text(plan)
    made = {f"sm_{version}": usual for version in (75, 80, 90)}
    made["sm_90, 512"] = text(plans[MANY], MANY)
    blocks = STRATEGIES[strategy].blocks
    if blocks and refusal(plan.loop, strategy, ATOMICS) is None:
        made["sm_90, atomics"] = text(plan, commit=ATOMICS)
    made["sm_90, other float"] = text(_in_other_float(plan))
    row = _counts(usual) if layout == "aos" else {}
    spilled = 0
    for column, one in made.items():
        found = [compile_program(step, column[:5]) for step in (one, *one.then)]
        row[column] = found[0].registers
        spilled = max(spilled, *(code.spilled for code in found))
    fits = occupancy("sm_90", usual.threads, usual.shared_bytes, row["sm_90"])
    return row | {"spilled": spilled, "occupancy": fits.share}


def _in_other_float(plan: LoopPlan) -> LoopPlan:
    args = (replace(a, dtype=OTHER_FLOAT.get(a.dtype, a.dtype)) for a in plan.loop.args)
    return replace(plan, loop=replace(plan.loop, args=tuple(args)))


def values_for(made: CudaProgram) -> dict[str, np.ndarray]:
    """Values of every array of a program, from 1 to 2."""
    rng = np.random.default_rng(0)
    return {s.name: (1 + rng.random(s.shape)).astype(s.dtype) for s in made.slots}


def _counts(made: CudaProgram) -> dict[str, Any]:
    """Instructions of an element, in all, for its share of a warp, and by kind."""
    found = executed(made, **values_for(made))
    kinds = {kind: found.threads.get(kind, 0.0) for kind in (*KINDS, OTHER)}
    return {"instructions": found.total, "issued": found.warps, **kinds}


if __name__ == "__main__":
    main(*sys.argv[1:3])
