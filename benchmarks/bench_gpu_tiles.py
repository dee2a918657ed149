"""Airfoil's iteration as one kernel, a tile a thread block: what it takes and moves on a GPU.

Registers are the compiler's word, sectors are counted from the schedule, and beside them stand
those that the plan predicts for the loops alone: no GPU is needed for that. Where there is one, an
iteration is run, compared with the CPU's, and timed.
"""

import sys
from typing import Any

import numpy as np
from common import report
from gpu_timing import device_seconds

from airfoil import KERNELS, LOOPS, Airfoil, bound, coordinates, prepared_airfoil, start
from meshprep.loops.chains import ChainCall, ChainRequest
from meshprep.pipeline.chains import plan_chains
from meshprep.pipeline.steps import Prepared
from meshprep_runtime import MeshprepError, Plan
from meshprep_runtime.cuda import CudaProgram, DeviceFunction
from meshprep_runtime.cuda.device import current
from meshprep_runtime.cuda.nvrtc import compile_program
from meshprep_runtime.cuda.protocols import Device
from meshprep_runtime.plan.chains.tiles import TilePlan
from meshprep_runtime.program.chains.gpu_program import buffers, sectors, tiled_program
from meshprep_runtime.program.chains.inspect import with_maps

CHAIN = (LOOPS[0], *LOOPS[1:], *LOOPS[1:])
DROPPED, ZERO = ("qold", "adt"), ("res",)
SIZES = (64, 128, 256, 512)
# The most shared memory that a thread block may have.
DEVICES = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}
THREADS = 256


def main(cells: int = 60_000) -> None:
    """Print and save the table."""
    prepared = prepared_airfoil(cells, block_size=256, target="gpu")
    try:
        device: Device | None = current()
    except MeshprepError:
        device = None
    archs = [a for a in DEVICES if device is None or a == device.arch]
    report("gpu_tiles", [_row(prepared, size, arch, device) for size in SIZES for arch in archs])


def _row(prepared: Prepared, size: int, arch: str, device: Device | None) -> dict[str, Any]:
    plan = prepared.plan
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
        "us": None if device is None else 1e6 * _seconds(prepared, tiles, program, device),
    }


def _seconds(prepared: Prepared, tiles: TilePlan, program: CudaProgram, device: Device) -> float:
    """Seconds of an iteration from the flow at rest, which is compared with the CPU's."""
    given = start(prepared.plan.sizes["cells"], coordinates(prepared), bound(prepared))
    arrays = buffers(program, tiles, given)
    there = {name: device.upload(a) for name, a in (dict(program.arrays) | arrays).items()}
    numbers = {name: memory.pointer for name, memory in there.items()}
    numbers |= dict(program.sizes) | {"first": 0}
    places = [numbers[p.name] for p in program.parameters]
    call = device.load(program).prepare(tiles.n_tiles, places)
    device.run([call])
    # Dats have the numbers in which the chain first meets them: q is 0.
    after = np.empty_like(arrays["n0"])
    device.read(there["n0"], after)
    flow = Airfoil(prepared, "sequential")
    next(flow.steps(1))
    np.testing.assert_allclose(after, flow.dats["q"].ravel(), rtol=1e-11, atol=1e-12)
    return min(device_seconds(device, lambda: device.run([call]), 10))


def _predicted(plan: Plan, name: str) -> int:
    """Sectors of a call of a loop alone."""
    variants = plan.metrics.loops[name].variants
    return variants[plan[name].default].after.traffic["aos"].total


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
