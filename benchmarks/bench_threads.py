"""The five kernels with one, two and four elements a thread: what a thread executes and takes.

AoS, one launch with atomics between blocks, on sm_90. Instructions are PTX that an element
executes, and what warps issue for it, counted as in bench_registers; barriers are those that its
warp meets. Loads are staged points an element.

    python benchmarks/bench_threads.py [kernel]

No GPU is needed: meshes have some 20,000 elements, so that blocks are full, and run under g++.
"""

import sys
from collections.abc import Callable
from typing import Any

from bench_registers import KERNELS, plans_of, values_for
from common import report
from executed import executed

from meshprep_runtime import LoopPlan
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.build import compile_program

QUADS = {"nx": 100, "ny": 100, "type": "quad"}
HEXAHEDRA = {"nx": 24, "ny": 24, "nz": 24, "type": "hexahedron"}
MESHES: dict[str, tuple[str, dict[str, Any]]] = {
    "airfoil": ("box", QUADS),
    "volna": ("delaunay2d", {"cells": 13000}),
    "bookleaf": ("box", {**QUADS, "nx": 200}),
    "lulesh": ("box", HEXAHEDRA),
    "miniaero": ("box", {**HEXAHEDRA, "nx": 12}),
}
# Elements of a block, and of a thread.
FEW = ((256, 1), (512, 2), (512, 4))
SHAPES = {
    "hierarchical": ((128, 1), (256, 2), (512, 1), *FEW),
    "staged-gather": FEW,
    "block-permute": FEW,
}
ARCH = "sm_90"


def main(chosen: str = "") -> None:
    """Print and save the table."""
    rows: list[dict[str, Any]] = []
    for name, kernel in KERNELS.items():
        if chosen not in name:
            continue
        plans = plans_of(name, MESHES[name], (128, 256, 512))
        rows += [
            {
                "kernel": name,
                "strategy": strategy,
                **_row(kernel, plans[n], strategy, n // many),
            }
            for strategy, shapes in SHAPES.items()
            for n, many in sorted(shapes)
        ]
        report("threads", rows)


def _row(
    kernel: Callable[..., None], plan: LoopPlan, strategy: str, threads: int
) -> dict[str, Any]:
    variant = plan.variant()
    made = program(kernel, plan, strategy, commit="atomics", threads=threads)
    counted, code = executed(made, ARCH, **values_for(made)), compile_program(made, ARCH)
    n = plan.sizes[plan.loop.over]
    return {
        "elements": n,
        "block": variant.block_size,
        "threads": made.threads,
        "loads": sum(s.points.size for s in variant.staging.values()) / n,
        "instructions": counted.total,
        "issued": counted.warps,
        "barriers": counted.threads.get("barrier", 0.0),
        "registers": code.registers,
        "spilled": code.spilled,
        "shared bytes": made.shared_bytes,
    }


if __name__ == "__main__":
    main(*sys.argv[1:2])
