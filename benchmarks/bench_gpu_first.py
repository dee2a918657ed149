"""What a GPU has to settle first: the rate of f8 atomics, and staged blocks against atomics.

    python benchmarks/bench_gpu_first.py [--cells N] [--only-measured]
    python benchmarks/bench_gpu_first.py --emulate     tiny meshes under g++, and no times

The first table has the atomic additions of a nanosecond, on points that are near and far from each
other, beside the range that predictions assume. The second has Airfoil's
res_calc in four orders: predicted and measured times of atomics and of every strategy in blocks.
Sums are compared with those of the first way, to rounding. Launches are replayed as a graph, so
that Python's part of a call does not count. Predictions of a large mesh take minutes of a
processor; --only-measured leaves them out.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from common import EXAMPLES, report, table
from memory_cases import plan_of

from meshprep.metrics.occupancy import DEVICES
from meshprep.metrics.ranking import Way, predicted_seconds
from meshprep.pipeline.variants import baseline_variant
from meshprep_runtime import Access, Arg, Loop, LoopPlan, MeshprepError, ParLoop, SetMap
from meshprep_runtime.cuda import COMMITS, STRATEGIES, DeviceFunction, refusal
from meshprep_runtime.cuda.check.emulated import EmulatedDevice
from meshprep_runtime.cuda.device import current, use
from meshprep_runtime.cuda.protocols import Device

ORDERS = ("blocks", "gps", "input", "shuffled")
WITHOUT_BLOCKS = ("global-atomics", "global-colouring", "two-step")
SAMPLES, SAMPLE_SECONDS, TOLERANCE = 7, 0.002, 1e-11
ADD = DeviceFunction(
    "add",
    """\
__device__ void add(double* a, double* b) {
  for (int k = 0; k < 4; ++k) { a[k] += 1.0; b[k] -= 1.0; }
}
""",
)


def rate_rows(device: Device, elements: int) -> Iterator[dict[str, Any]]:
    """Additions to neighbours along a line, and to points by chance."""
    at = np.arange(elements)
    tables = {"near": np.column_stack([at, at + 1])}
    tables["by chance"] = np.random.default_rng(0).integers(0, elements, (elements, 2))
    for name, points in tables.items():
        plan = _line(points)
        sums = device.array(np.zeros((elements + 1, 4)))
        loop = ParLoop(ADD, plan, strategy="global-atomics", graph=True)
        seconds = _time(device, loop, {"sums": sums})
        yield {
            "points": name,
            "atomics": 8 * elements,
            "assumed a ns": "{:g} to {:g}".format(*_limits(device).atomics),
            "us": 1e6 * seconds,
            "a ns": 8 * elements / seconds / 1e9,
        }


def order_rows(device: Device, cells: int, predict: bool) -> Iterator[dict[str, Any]]:
    """Atomics, colours of the whole set and all strategies in blocks, order by order."""
    text = (EXAMPLES / "kernels" / "airfoil.cu").read_text(encoding="utf-8")
    for order in ORDERS:
        plan = plan_of(order, cells)
        rng = np.random.default_rng(0)
        shapes = {a.name: (plan.sizes[plan.maps[str(a.map)].to_set], a.dim) for a in plan.loop.args}
        values = {name: 1 + rng.random(shape) for name, shape in shapes.items()}
        wanted: np.ndarray | None = None
        for strategy, commit in ways(plan):
            res_calc, options = DeviceFunction("res_calc", text), {"commit": commit, "graph": True}
            loop = ParLoop(res_calc, plan, strategy=strategy, **options)
            arrays = {name: device.array(v) for name, v in values.items()}
            loop(**arrays)
            found = arrays["res"].get()
            wanted = found if wanted is None else wanted
            _check(found, wanted, f"{order}, {strategy}, commit {commit}")
            seconds = _time(device, loop, arrays)
            yield {
                "order": order,
                "strategy": strategy,
                "commit": commit if STRATEGIES[strategy].blocks else None,
                "predicted us": _predicted(device, plan, strategy, commit) if predict else None,
                "us": 1e6 * seconds,
            }


def _predicted(device: Device, plan: LoopPlan, strategy: str, commit: str) -> str:
    way = Way(strategy, plan.variant(), commit)
    told = predicted_seconds(plan, way, _limits(device)) or (0.0, 0.0)
    return f"{1e6 * told[0]:.1f} to {1e6 * told[1]:.1f}"


def ways(plan: LoopPlan) -> list[tuple[str, str]]:
    """Strategies and commits, atomics first."""
    blocks = [(s, c) for s in STRATEGIES if STRATEGIES[s].blocks for c in COMMITS]
    able = [(s, c) for s, c in blocks if refusal(plan.loop, s, c) is None]
    return [*((s, COMMITS[0]) for s in WITHOUT_BLOCKS), *able]


def _line(points: np.ndarray) -> LoopPlan:
    n = len(points)
    maps = {"lines->points": SetMap("lines->points", "lines", "points", points)}
    loop = Loop("add", "lines", (Arg("sums", Access.INC, 4, "f8", "lines->points", (0, 1)),))
    sizes = {"lines": n, "points": n + 1}
    blocks = baseline_variant(loop, maps, sizes, 32)
    return LoopPlan(loop, sizes, maps, {blocks.name: blocks}, blocks.name)


def _limits(device: Device) -> Any:
    """Of the device, where its name has that of one that is known; else of an H100."""
    return next((found for name, found in DEVICES.items() if name in device.name), DEVICES["H100"])


def _check(found: np.ndarray, wanted: np.ndarray, where: str) -> None:
    off = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if not off <= TOLERANCE:
        raise MeshprepError(f"res_calc, {where}: 'res' is off by {off:.1e}")


def _time(device: Device, loop: ParLoop, arrays: dict[str, Any]) -> float:
    """Seconds of a call by the device's clock, the best of several samples."""

    def sample(calls: int) -> float:
        start = device.mark()
        for _ in range(calls):
            loop(**arrays)
        return device.seconds(start, device.mark()) / calls

    loop(**arrays)
    calls = 1 + int(SAMPLE_SECONDS / max(sample(1), 1e-7))
    return min(sample(calls) for _ in range(SAMPLES))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--only-measured", action="store_true", help="without predictions")
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    given = parser.parse_args(arguments)
    try:
        device: Device = EmulatedDevice() if given.emulate else current()
    except MeshprepError as error:
        sys.exit(f"error: this needs a GPU, or --emulate: {error}")
    with use(device):
        rates = list(rate_rows(device, 2 * given.cells))
        orders = list(order_rows(device, given.cells, not given.only_measured))
    if given.emulate:
        # Times of g++ say nothing.
        table([row | {"us": None, "a ns": None} for row in rates])
        table([row | {"us": None} for row in orders])
        return
    name = device.name.lower().replace(" ", "-")
    table(rates)
    report(f"gpu-first-{name}", orders, rates=rates)


if __name__ == "__main__":
    main()
