"""Airfoil's iteration as one kernel, a tile a thread block: what it takes and moves on a GPU.

No GPU is needed: registers are the compiler's word, sectors are counted from the schedule, and
beside them stand those that the plan predicts for the loops alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from common import report

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "examples"))

from airfoil import KERNELS, LOOPS, prepared_airfoil  # noqa: E402
from meshprep.loops.chains import ChainCall, ChainRequest  # noqa: E402
from meshprep.pipeline.chains import plan_chains  # noqa: E402
from meshprep_runtime import Plan  # noqa: E402
from meshprep_runtime.cuda import DeviceFunction  # noqa: E402
from meshprep_runtime.cuda.nvrtc import compile_program  # noqa: E402
from meshprep_runtime.program.chains.gpu_program import sectors, tiled_program  # noqa: E402
from meshprep_runtime.program.chains.inspect import with_maps  # noqa: E402

CHAIN = (LOOPS[0], *LOOPS[1:], *LOOPS[1:])
DROPPED, ZERO = ("qold", "adt"), ("res",)
SIZES = (64, 128, 256, 512)
# The most shared memory that a thread block may have.
DEVICES = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}
THREADS = 256


def main(cells: int = 60_000) -> None:
    """Print and save the table."""
    plan = prepared_airfoil(cells, block_size=256, target="gpu").plan
    report("gpu_tiles", [_row(plan, size, arch) for size in SIZES for arch in DEVICES])


def _row(plan: Plan, size: int, arch: str) -> dict[str, Any]:
    calls = tuple(ChainCall(name, {}) for name in CHAIN)
    request = ChainRequest("iteration", calls, DROPPED, ZERO, size, "bench")
    (chain,) = plan_chains(plan, [request]).values()
    tiles = with_maps(chain.tiles, plan.maps, plan.sizes)
    text = (KERNELS / "airfoil.cu").read_text(encoding="utf-8")
    functions = {name: DeviceFunction(name, text) for name in LOOPS}
    most = DEVICES[arch]
    program = tiled_program(tiles, functions, plan.maps, threads=THREADS, shared_bytes=most)
    made = compile_program(program, arch)
    cells = plan.sizes["cells"]
    return {
        "tile size": size,
        "arch": arch,
        "tiles": tiles.n_tiles,
        "redundancy": tiles.redundancy(plan.sizes),
        "shared bytes": program.shared_bytes,
        "scratch": ", ".join(sorted(program.sizes)),
        "registers": made.registers,
        "spilled": made.spilled,
        "sectors a cell": sectors(tiles, plan.maps) / cells,
        "sectors a cell, loops": sum(_predicted(plan, name) for name in CHAIN) / cells,
    }


def _predicted(plan: Plan, name: str) -> int:
    """Sectors of a call of a loop alone."""
    variants = plan.metrics.loops[name].variants
    return variants[plan[name].default].after.traffic["aos"].total


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
