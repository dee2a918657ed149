"""The five kernels of [S19] on a GPU: strategies, block sizes, layouts, beside what others do.

    python benchmarks/bench_gpu.py --prepare          plans and machine code; needs no GPU
    python benchmarks/bench_gpu.py                    runs, checks and times; makes what is missing
    python benchmarks/bench_gpu.py --emulate          tiny meshes under g++: checks, and no times

Every result is compared with NumPy's in double precision. Times are the device's own, between
events. Useful bytes are those of all dats once, of dats that are read and written twice [S19];
their rate is put beside that of a plain copy on the same device in the same run.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import EXAMPLES, table
from gpu_cases import CASES, ORDERS, Case, expected, input_maps, mesh_of, plan_of
from gpu_cases import values_of as values_of_plan
from gpu_timing import device_or_exit, device_seconds, report_gpu

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, LoopPlan, MeshprepError, ParLoop, Plan
from meshprep_runtime.cuda import (
    COMMITS,
    STRATEGIES,
    CudaProgram,
    DeviceFunction,
    program,
    refusal,
)
from meshprep_runtime.cuda.build import compiled
from meshprep_runtime.cuda.device import Device, use
from meshprep_runtime.tuning.machines import fewer_threads

BUILD = Path(__file__).parent.parent / "build" / "bench-gpu"
SIZES = (128, 256, 512)
SAMPLES = 9
COPY_BYTES = 2**30
TIMES = ("ms", "median ms", "useful GB/s", "share of copy", "with maps")
TOLERANCE = {8: 1e-12, 4: 1e-5}
LAYOUTS = ("aos", "soa")
SLOW = ("hierarchical-collapsed", "hierarchical-unstaged", "shared-atomics")
# Those that several elements a thread are tried with.
FEWER = ("hierarchical", "staged-gather", "block-permute")


@dataclass(frozen=True)
class Way:
    """One row: whose order, which strategy, blocks and layout; ``kernel`` is its language."""

    order: str
    strategy: str
    variant: str | None
    layout: str = "aos"
    commit: str = "colours"
    kernel: str = "python"
    graph: bool = False
    threads: int | None = None

    def loop(self, case: Case, plan: LoopPlan) -> ParLoop:
        """The loop to be called."""
        options: dict[str, Any] = {"strategy": self.strategy, "layout": self.layout}
        options |= {"variant": self.variant, "commit": self.commit, "graph": self.graph}
        options |= {"threads": self.threads}
        return ParLoop(self.function(case), plan, **options)

    def program(self, case: Case, plan: LoopPlan) -> CudaProgram:
        """What the loop runs."""
        return program(
            self.function(case),
            plan,
            self.strategy,
            layout=self.layout,
            variant=self.variant,
            commit=self.commit,
            threads=self.threads,
        )

    def function(self, case: Case) -> Any:
        """The kernel, in Python or CUDA C."""
        if self.kernel == "python":
            return case.kernel
        text = (EXAMPLES / "kernels" / f"{case.program}.cu").read_text(encoding="utf-8")
        return DeviceFunction(case.loop, text)


def ways(case: Case, plans: dict[str, LoopPlan]) -> Iterator[Way]:
    """What matters most first: our best against the peers; then threads, block sizes, layouts."""
    ours = plans["ours"]
    own = ours.default
    able = [s for s in STRATEGIES if refusal(ours.loop, s) is None]
    # Those that a GPU was seen to be slow with come last.
    blocked = [s for s in able if STRATEGIES[s].blocks and s not in SLOW]
    blocked += [s for s in able if s in SLOW]
    for order in ORDERS:
        for strategy in ("hierarchical", "hierarchical-inc"):
            for commit in COMMITS:
                yield Way(order, strategy, plans[order].default, commit=commit)
    for strategy in able:
        if not STRATEGIES[strategy].blocks:
            yield Way("ours", strategy, None)
    yield Way("input", "global-atomics", None)
    for strategy, (name, variant) in product(FEWER, ours.variants.items()):
        for threads in (None, *fewer_threads(variant)):
            yield Way("ours", strategy, name, commit="atomics", threads=threads)
    for layout in LAYOUTS:
        for commit, variant, strategy in product(COMMITS[::-1], ours.variants, blocked):
            if refusal(ours.loop, strategy, commit) is None:
                yield Way("ours", strategy, variant, layout, commit)
    yield Way("ours", "hierarchical", own, graph=True)
    if (EXAMPLES / "kernels" / f"{case.program}.cu").exists():
        yield Way("ours", "hierarchical", own, kernel="cuda")
    for strategy in able:
        if not STRATEGIES[strategy].blocks:
            yield Way("ours", strategy, None, "soa")


def few_ways(case: Case, plans: dict[str, LoopPlan]) -> Iterator[Way]:
    """As many as a run under g++ has time for: one of each kind over all kernels."""
    yield Way("ours", "hierarchical", plans["ours"].default, graph=case.program == "lulesh")
    if case.program == "airfoil":
        yield Way("metis", "hierarchical-inc", plans["metis"].default, "soa", threads=64)
        yield Way("input", "global-atomics", None)


class Bench:
    """Plans, values and expected sums of one kernel, and its rows."""

    def __init__(self, case: Case, device: Device, scale: float, copy: float) -> None:
        self.case, self.device, self.copy = case, device, copy
        full = {order: plan_file(case, order, scale) for order in ORDERS}
        self.orderings = {order: plan.ordering for order, plan in full.items()}
        self.plans = {order: plan[case.loop] for order, plan in full.items()}
        self.values = values_of_plan(self.plans["ours"])
        tables = input_maps(full["ours"])
        self.expected = expected(case, self.plans["ours"], tables, self.values)

    def row(self, way: Way) -> dict[str, Any]:
        """Run, check and time one way."""
        loop, plan = way.loop(self.case, self.plans[way.order]), self.plans[way.order]
        arrays = {
            name: self.device.array(self._there(name, values, way))
            for name, values in self.values.items()
        }
        loop(**arrays)
        error = self._error(arrays, way)
        times = device_seconds(self.device, lambda: loop(**arrays), SAMPLES)
        best, median = min(times), statistics.median(times)
        useful = useful_bytes(plan) / best / 1e9
        variant = None if way.variant is None else plan.variants[way.variant]
        return {
            "loop": self.case.loop,
            "elements": plan.sizes[plan.loop.over],
            "order": way.order,
            "strategy": way.strategy + (", graph" if way.graph else ""),
            "kernel": way.kernel,
            "commit": way.commit if STRATEGIES[way.strategy].blocks else None,
            "block size": None if variant is None else variant.block_size,
            "threads": way.program(self.case, plan).threads,
            "layout": way.layout,
            **self._code(way),
            "ms": 1e3 * best,
            "median ms": 1e3 * median,
            "useful GB/s": useful,
            "share of copy": useful / self.copy,
            "with maps": useful * (1 + map_share(plan)) / self.copy,
            "error": error,
        }

    def _code(self, way: Way) -> dict[str, int | None]:
        """What a thread and a block take."""
        made = way.program(self.case, self.plans[way.order])
        found: dict[str, int | None] = {"registers": None, "spilled": None}
        if not isinstance(self.device, EmulatedDevice):
            code = compiled(made, self.device.arch)
            found = {"registers": code.registers, "spilled": code.spilled}
        return {**found, "shared bytes": made.shared_bytes}

    def _there(self, name: str, values: np.ndarray, way: Way) -> np.ndarray:
        """Values in the numbering of the plan and the layout of the way."""
        plan = self.plans[way.order]
        arg = next(a for a in plan.loop.args if a.name == name)
        rows = plan.loop.over if arg.map is None else plan.maps[arg.map].to_set
        moved = self.orderings[way.order][rows].apply(values)
        return np.ascontiguousarray(
            moved.T if way.layout == "soa" and arg.dim > 1 else moved
        )

    def _error(self, arrays: dict[str, Any], way: Way) -> float:
        """The largest difference from what is expected, over the scale; must be rounding."""
        worst = 0.0
        for name, sums in self.expected.items():
            if name.endswith(" scale"):
                continue
            found = arrays[name].get()
            theirs = self._there(name, sums, way).reshape(found.shape)
            off = float(np.abs(found - theirs).max() / self.expected[f"{name} scale"])
            if not off <= TOLERANCE[found.dtype.itemsize]:
                raise MeshprepError(
                    f"{self.case.loop}, {way}: '{name}' is off by {off:.1e}"
                )
            worst = max(worst, off)
        return worst


def useful_bytes(plan: LoopPlan) -> int:
    """Every dat once, those that are read and written twice [S19]."""
    moved = {}
    for arg in plan.loop.args:
        rows = plan.loop.over if arg.map is None else plan.maps[arg.map].to_set
        twice = arg.access in (Access.INC, Access.RW)
        moved[arg.name] = arg.nbytes * plan.sizes[rows] * (1 + twice)
    return sum(moved.values())


def map_share(plan: LoopPlan) -> float:
    """Bytes of the maps over useful ones."""
    return sum(plan.maps[m].table.nbytes for m in plan.loop.maps) / useful_bytes(plan)


def plan_file(case: Case, order: str, scale: float) -> Plan:
    """The plan, made when its file is not there."""
    path = BUILD / f"{case.loop}-{order}-{scale:g}.plan.h5"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        plan = plan_of(case, mesh_of(case, scale), order, SIZES if order == "ours" else ())
        plan.save(path, overwrite=True)
        print(f"{path.name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return Plan.load(path)


def precompile(
    case: Case, plans: dict[str, LoopPlan], asked: Sequence[Way], arch: str
) -> None:
    """Machine code of all ways, on all cores; what is known costs nothing."""

    def one(way: Way) -> None:
        made = way.program(case, plans[way.order])
        for part in (made, *made.then):
            compiled(part, arch)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, asked))


def copy_bandwidth(device: Device, nbytes: int = COPY_BYTES) -> float:
    """GB/s of a plain copy on the device, read and written counted, the best of ten."""
    source, to = (device.upload(np.zeros(nbytes, np.uint8)) for _ in range(2))
    times = []
    for _ in range(10):
        start = device.mark()
        device.copy(to, source, nbytes)
        times.append(device.seconds(start, device.mark()))
    return 2 * nbytes / min(times) / 1e9


def run(
    device: Device, scale: float, minutes: float, chosen: str, emulated: bool
) -> Iterator[dict[str, Any]]:
    """The rows of all kernels; when time is up, those that matter least are left out."""
    end = time.monotonic() + 60 * minutes
    copy = copy_bandwidth(device, 2**16 if emulated else COPY_BYTES)
    left: list[str] = []
    cases = [case for case in CASES if chosen in case.loop]
    for i, case in enumerate(cases):
        bench = Bench(case, device, scale, copy)
        # Time is shared out evenly among the kernels that are still to come.
        until = time.monotonic() + (end - time.monotonic()) / (len(cases) - i)
        asked = list(dict.fromkeys((few_ways if emulated else ways)(case, bench.plans)))
        for j, way in enumerate(asked):
            if time.monotonic() > until:
                left.append(f"{case.loop}: {len(asked) - j} of {len(asked)}")
                break
            yield bench.row(way)
    if left:
        print(
            f"left out, for {minutes:g} minutes were up: {'; '.join(left)}", file=sys.stderr
        )


def tables(
    device: Device, scale: float, seconds: float
) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """The table, whose rows are made when they are asked for, in so many seconds."""
    emulated = isinstance(device, EmulatedDevice)
    yield "rows", run(device, scale, seconds / 60, "", emulated)


def verdicts(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What was aimed at, kernel by kernel, in words."""
    lines = []
    for case in CASES:
        mine = [r for r in rows if r["loop"] == case.loop]
        ours = [r for r in mine if r["order"] == "ours" and r["block size"]]
        if not ours:
            continue
        best = min(ours, key=lambda r: r["ms"])
        lines.append(
            f"{case.loop}: {best['share of copy']:.2f} of copy bandwidth (aim {case.aim:.2f}) by "
            f"{best['strategy']}, blocks of {best['block size']} by {best['threads']} threads, "
            f"{best['layout']}" + "".join(_against(mine, best))
        )
    return lines


def _against(rows: Sequence[dict[str, Any]], best: dict[str, Any]) -> Iterator[str]:
    peers = {
        "METIS blocks": [r for r in rows if r["order"] == "metis"],
        "the input order": [r for r in rows if r["order"] == "input"],
        "global colouring": [r for r in rows if r["strategy"] == "global-colouring"],
        "atomics": [
            r for r in rows if (r["order"], r["strategy"]) == ("ours", "global-atomics")
        ],
    }
    for name, found in peers.items():
        if found:
            yield f"; {min(r['ms'] for r in found) / best['ms']:.2f} times {name}"


def prepare_all(scale: float, arch: str, chosen: str) -> None:
    """Plans and machine code, for a run that is to spend its time on the GPU."""
    for case in CASES:
        if chosen in case.loop:
            plans = {order: plan_file(case, order, scale)[case.loop] for order in ORDERS}
            precompile(case, plans, list(dict.fromkeys(ways(case, plans))), arch)
            print(f"{case.loop}: ready for {arch}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the paper's elements"
    )
    parser.add_argument("--loop", default="", help="only loops with this in their names")
    parser.add_argument(
        "--minutes", type=float, default=4.0, help="for running, on the GPU"
    )
    parser.add_argument(
        "--prepare", action="store_true", help="plans and machine code only"
    )
    parser.add_argument("--arch", default="sm_90", help="of the GPU to prepare for")
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    given = parser.parse_args(arguments)
    # Machine code lies beside the plans, so that both can be taken to the GPU together.
    os.environ.setdefault("MESHPREP_CACHE_DIR", str(BUILD / "cache"))
    if given.prepare:
        prepare_all(given.scale, given.arch, given.loop)
        return
    device = device_or_exit(given.emulate)
    if not given.emulate:
        # Not counted: it can be done beforehand, without a GPU.
        prepare_all(given.scale, device.arch, given.loop)
    with use(device):
        rows = list(run(device, given.scale, given.minutes, given.loop, given.emulate))
    words = verdicts(rows)
    if given.emulate:
        # Times of g++ say nothing.
        table([row | dict.fromkeys(TIMES) for row in rows])
        return
    report_gpu("", device, rows, verdicts=words)
    print("\n".join(words))


if __name__ == "__main__":
    main()
