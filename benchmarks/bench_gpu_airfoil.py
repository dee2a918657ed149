"""Airfoil whole on a GPU: the time of each loop by the device's clock, residuals beside OP2's.

    python benchmarks/bench_gpu_airfoil.py [cells [iterations]]

Launched one by one, then as a CUDA graph a loop, then a whole iteration as one graph, whose
residual stays on the GPU until it is asked for. On 720,000 cells the residuals must be those that
OP2's own program prints, to its six digits.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from bench_airfoil import LOOPS, OP2, Airfoil, prepared_airfoil
from gpu_timing import device_or_exit, report_gpu

from airfoil import KERNELS, bound, coordinates, start
from meshprep.pipeline.steps import Prepared
from meshprep_runtime import MeshprepError, ParLoop
from meshprep_runtime.cuda import COMMITS, DeviceFunction
from meshprep_runtime.cuda.device import Device, import_cupy, use

CELLS, ITERATIONS, BLOCK_SIZE = 720_000, 1000, 256


def main(cells: int = CELLS, iterations: int = ITERATIONS) -> None:
    """Print and save the table."""
    device = device_or_exit()
    with use(device):
        found = {name: list(rows) for name, rows in tables(device, cells, iterations)}
    report_gpu("-airfoil", device, **found)


def tables(
    device: Device, cells: int, iterations: int
) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """The table, whose rows are made when they are asked for."""
    yield "rows", run_rows(device, cells, iterations)


def run_rows(device: Device, cells: int, iterations: int) -> Iterator[dict[str, Any]]:
    """One graph an iteration first, then launches and a graph a loop."""
    prepared = prepared_airfoil(cells, BLOCK_SIZE, "gpu")
    for commit in COMMITS:
        name = f"one graph, commit {commit}"
        found, residuals = _run_graph(prepared, device, iterations, commit)
        yield from _told(name, found, residuals, cells)
    for graph in (False, True):
        name = "graphs" if graph else "launches"
        found, residuals = _run(prepared, device, iterations, graph)
        yield from _told(name, found, residuals, cells)


def _told(
    name: str, found: list[dict[str, Any]], residuals: dict[int, str], cells: int
) -> Iterator[dict[str, Any]]:
    """The rows of one way to run, once its residuals are those of OP2."""
    print(f"{name}: {', '.join(f'{i} {rms}' for i, rms in residuals.items())}")
    if cells == CELLS and any(rms != OP2[i] for i, rms in residuals.items()):
        raise MeshprepError(f"{name}: residuals differ from OP2's: {OP2}")
    for row in found:
        yield {"as": name, **row, "rms": [*residuals.values()][-1]}


def _run(
    prepared: Prepared, device: Device, iterations: int, graph: bool
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """A row for each loop and one for all, and the residuals where OP2 prints its own."""
    flow = Airfoil(prepared, device=device, graph=graph)
    steps = flow.steps(iterations)
    # The first iteration compiles.
    values = [next(steps)]
    flow.reset()
    start = time.perf_counter()
    values += list(steps)
    wall = time.perf_counter() - start
    counted = max(iterations - 1, 1)
    calls = {name: counted * (1 if name == "save_soln" else 2) for name in LOOPS}
    rows: list[dict[str, Any]] = [
        {
            "loop": name,
            "strategy": flow.loops[name].par_loop.on_gpu.strategy,
            "us a call": 1e6 * flow.seconds[name] / calls[name],
            "ms an iteration": 1e3 * flow.seconds[name] / counted,
        }
        for name in LOOPS
    ]
    for name, seconds in (("all", sum(flow.seconds.values())), ("all, wall clock", wall)):
        rows.append(
            {"loop": name, "strategy": None, "ms an iteration": 1e3 * seconds / counted}
        )
    at = [i for i in OP2 if i <= iterations] or [iterations]
    assert np.isfinite(values).all()
    return rows, {i: f"{values[i - 1]:.5e}" for i in at}


def _run_graph(
    prepared: Prepared, device: Device, iterations: int, commit: str
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """A row for an iteration that is recorded once and replayed, and its residuals."""
    cupy = import_cupy()
    cells = prepared.plan.sizes["cells"]
    dats = start(cells, coordinates(prepared), bound(prepared)) | {"rms": np.zeros(1)}
    arrays = {name: device.array(values) for name, values in dats.items()}
    text = (KERNELS / "airfoil.cu").read_text(encoding="utf-8")
    loops = [
        ParLoop(DeviceFunction(name, text), prepared.plan[name], commit=commit)
        for name in LOOPS
    ]
    given = [{a.name: arrays[a.name] for a in loop.loop.args} for loop in loops]

    def iteration() -> None:
        loops[0](**given[0])
        for _ in range(2):
            arrays["rms"].fill(0)
            for loop, own in zip(loops[1:], given[1:], strict=True):
                loop(**own)

    with cupy.cuda.Stream(non_blocking=True) as stream:
        # Compiles; what is done for the first time cannot be recorded.
        iteration()
        stream.begin_capture()
        iteration()
        graph = stream.end_capture()
        for name, values in dats.items():
            arrays[name].set(values)
        found, begin = {}, time.perf_counter()
        first = stream.record()
        for i in range(1, iterations + 1):
            graph.launch(stream)
            if i in OP2 or (i == iterations and not found):
                found[i] = f"{np.sqrt(float(arrays['rms'].get()[0]) / cells):.5e}"
        seconds = device.seconds(first, stream.record())
        wall = time.perf_counter() - begin
    rows = [
        {"loop": name, "strategy": None, "ms an iteration": 1e3 * passed / iterations}
        for name, passed in (("all", seconds), ("all, wall clock", wall))
    ]
    return rows, found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
