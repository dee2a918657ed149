"""What a GPU has to settle first: the rate of f8 atomics, and staged blocks against atomics.

    python benchmarks/bench_gpu_first.py [--cells N]
    python benchmarks/bench_gpu_first.py --emulate     tiny meshes under g++, and no times

The first table has the atomic additions of a nanosecond, on points that are near and far from each
other. The second has Airfoil's res_calc in four orders: times of atomics and of every strategy in
blocks. Sums are compared with those of the first way, to rounding. Launches are replayed as a
graph, so that Python's part of a call does not count.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from common import EXAMPLES, table
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import read_requests
from meshprep.staging.build_variant import baseline_variant
from meshprep_runtime import Access, Arg, Loop, LoopPlan, ParLoop, SetMap
from meshprep_runtime.cuda import COMMITS, STRATEGIES, DeviceFunction, refusal
from meshprep_runtime.cuda.device import Device, use

BLOCK_SIZE = 256
ORDERS = ("blocks", "gps", "input", "shuffled")
WITHOUT_BLOCKS = ("global-atomics", "global-colouring", "two-step")
SAMPLES, TOLERANCE = 7, 1e-11
ADD = DeviceFunction(
    "add",
    """\
__device__ void add(double* a, double* b) {
  for (int k = 0; k < 4; ++k) { a[k] += 1.0; b[k] -= 1.0; }
}
""",
)


def plan_of(order: str, cells: int) -> LoopPlan:
    """The loop in our blocks, in the order of GPS, or as generated or shuffled."""
    mesh = generate("airfoil", cells=cells, shuffle=order == "shuffled")
    request = next(
        r
        for r in read_requests(EXAMPLES / "kernels" / "airfoil.toml")
        if r.name == "res_calc"
    )
    if order in ("blocks", "gps"):
        target = "gpu" if order == "blocks" else "cpu"
        options = Options(block_size=BLOCK_SIZE, target=target)
        return prepare(mesh, [request], options).plan["res_calc"]
    full, (spec,) = plan_request_maps(mesh, [request])
    sizes = {name: s.size for name, s in full.sets.items()}
    maps = {name: full.map(name) for name in spec.loop.maps}
    variant = baseline_variant(spec.loop, maps, sizes, BLOCK_SIZE)
    return LoopPlan(spec.loop, sizes, maps, {variant.name: variant}, variant.name)


def rate_rows(device: Device, elements: int) -> Iterator[dict[str, Any]]:
    """Additions to neighbours along a line, and to points by chance."""
    at = np.arange(elements)
    tables = {"near": np.column_stack([at, at + 1])}
    tables["by chance"] = np.random.default_rng(0).integers(0, elements, (elements, 2))
    for name, points in tables.items():
        plan = _line(points)
        sums = device.array(np.zeros((elements + 1, 4)))
        loop = ParLoop(ADD, plan, strategy="global-atomics", graph=True)
        seconds = _time(device, partial(loop, sums=sums))
        yield {
            "points": name,
            "atomics": 8 * elements,
            "us": 1e6 * seconds,
            "a ns": 8 * elements / seconds / 1e9,
        }


def order_rows(device: Device, cells: int) -> Iterator[dict[str, Any]]:
    """Atomics, colours of the whole set and all strategies in blocks, order by order."""
    text = (EXAMPLES / "kernels" / "airfoil.cu").read_text(encoding="utf-8")
    for order in ORDERS:
        plan = plan_of(order, cells)
        rng = np.random.default_rng(0)
        shapes = {
            a.name: (plan.sizes[plan.maps[str(a.map)].to_set], a.dim)
            for a in plan.loop.args
        }
        values = {name: 1 + rng.random(shape) for name, shape in shapes.items()}
        wanted: np.ndarray | None = None
        for strategy, commit in ways(plan):
            res_calc, options = (
                DeviceFunction("res_calc", text),
                {"commit": commit, "graph": True},
            )
            loop = ParLoop(res_calc, plan, strategy=strategy, **options)
            arrays = {name: device.array(v) for name, v in values.items()}
            loop(**arrays)
            found = arrays["res"].get()
            wanted = found if wanted is None else wanted
            where = f"res_calc, {order}, {strategy}, commit {commit}: 'res'"
            check_off(found, wanted, TOLERANCE, where)
            seconds = _time(device, partial(loop, **arrays))
            yield {
                "order": order,
                "strategy": strategy,
                "commit": commit if STRATEGIES[strategy].blocks else None,
                "us": 1e6 * seconds,
            }


def tables(device: Device, cells: int) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """Both tables, whose rows are made when they are asked for."""
    yield "rates", rate_rows(device, 2 * cells)
    yield "rows", order_rows(device, cells)


def ways(plan: LoopPlan) -> list[tuple[str, str]]:
    """Strategies and commits, atomics first."""
    blocks = [(s, c) for s in STRATEGIES if STRATEGIES[s].blocks for c in COMMITS]
    able = [(s, c) for s, c in blocks if refusal(plan.loop, s, c) is None]
    return [*((s, COMMITS[0]) for s in WITHOUT_BLOCKS), *able]


def _line(points: np.ndarray) -> LoopPlan:
    n = len(points)
    maps = {"lines->points": SetMap("lines->points", "lines", "points", points)}
    loop = Loop(
        "add", "lines", (Arg("sums", Access.INC, 4, "f8", "lines->points", (0, 1)),)
    )
    sizes = {"lines": n, "points": n + 1}
    blocks = baseline_variant(loop, maps, sizes, 32)
    return LoopPlan(loop, sizes, maps, {blocks.name: blocks}, blocks.name)


def _time(device: Device, work: Callable[[], None]) -> float:
    """Seconds of a call, the best of several samples; the first call makes the graph."""
    work()
    return min(device_seconds(device, work, SAMPLES))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    given = parser.parse_args(arguments)
    device = device_or_exit(given.emulate)
    with use(device):
        found = {name: list(rows) for name, rows in tables(device, given.cells)}
    if given.emulate:
        # Times of g++ say nothing.
        table([row | {"us": None, "a ns": None} for row in found["rates"]])
        table([row | {"us": None} for row in found["rows"]])
        return
    table(found["rates"])
    report_gpu("-first", device, **found)


if __name__ == "__main__":
    main()
