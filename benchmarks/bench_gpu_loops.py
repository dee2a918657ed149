"""What a GPU makes of light loops, and of sums in a fixed order.

    python benchmarks/bench_gpu_loops.py [--size N] [--only NAME]
    python benchmarks/bench_gpu_loops.py --prepare [--arch sm_90]
    python benchmarks/bench_gpu_loops.py --emulate --size 300

The second makes plans and machine code beforehand, without a GPU. The third runs under g++ and
shows no times.

Two tables. The loops of `make bench-loops`: plain atomics beside blocks that commit by colours
and by atomics. Sums at the points of a mesh: a loop in a fixed order beside ``index_add_`` of
PyTorch and ``at[].add`` of JAX, where these are installed, on the plan's numbers and on those of
the mesh. Every sum is compared with that of a CPU, and launches are replayed as a graph.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_loops import CASES, Case, inc, mesh_of_case, read, values_for
from common import table
from gpu_cases import input_maps
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu

from meshprep import Options, prepare
from meshprep_runtime import LoopPlan, ParLoop, Plan
from meshprep_runtime.cuda import COMMITS, program
from meshprep_runtime.cuda.build import compiled
from meshprep_runtime.cuda.device import Device, use

BUILD = Path(__file__).parent.parent / "build" / "bench-gpu-loops"
SAMPLES = 7
# What "auto" may take for loops that add.
AUTO = ("hierarchical", "hierarchical-inc")
TOLERANCE = {"f4": 1e-4, "f8": 1e-11, "i4": 0.0}
Row = dict[str, Any]


def plan_of(name: str, size: int) -> Plan:
    """The loop of a case in blocks for a GPU, from its file once it is there."""
    case = LOOPS[name]
    if max(a["dim"] for a in case.args) > 8:
        size //= 10
    path = BUILD / f"{name.replace(' ', '-')}-{size}.plan.h5"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        loops = {"loop": {"over": case.over, "args": case.args}}
        prepare(mesh_of_case(case.mesh, size), loops, Options()).plan.save(path)
    return Plan.load(path)


def ways(plan: LoopPlan) -> list[tuple[str, str]]:
    """Strategies and commits; a loop that adds through no map has one."""
    more = [("auto", commit) for commit in COMMITS] if plan.loop.conflict_columns else []
    return [("global-atomics", COMMITS[0]), *more]


def prepare_all(size: int, arch: str) -> None:
    """Plans, the loops of the CPU and machine code, so that a run spends its time on the GPU."""
    for name, case in LOOPS.items():
        plan = plan_of(name, size)["loop"]
        ParLoop(case.kernel, plan, strategy="sequential")(**values_for(plan))
        for strategy, commit in ways(plan):
            for word in AUTO if strategy == "auto" else (strategy,):
                compiled(program(case.kernel, plan, word, commit=commit), arch)


def seconds_of(device: Device, work: Callable[[], Any]) -> float:
    """Seconds of a call, the best of several samples."""
    work()
    return min(device_seconds(device, work, SAMPLES))


def check_arrays(
    plan: LoopPlan, found: dict[str, Any], wanted: dict[str, Any], who: str
) -> None:
    """Raise MeshprepError where a dat differs from that of the CPU."""
    for arg in plan.loop.args:
        if arg.access.value != "read":
            values = np.asarray(wanted[arg.name], float)
            given = np.asarray(found[arg.name].get(), float)
            check_off(given, values, TOLERANCE[arg.dtype], f"{who}: '{arg.name}'")


def loop_rows(device: Device, size: int, only: str) -> Iterator[dict[str, Any]]:
    """A row for each loop and way."""
    for name, case in CASES.items():
        if only not in name:
            continue
        plan = plan_of(name, size)["loop"]
        host = values_for(plan)
        given = {key: values.copy() for key, values in host.items()}
        ParLoop(case.kernel, plan, strategy="sequential")(**host)
        first = None
        for strategy, commit in ways(plan):
            loop = ParLoop(case.kernel, plan, strategy=strategy, commit=commit, graph=True)
            arrays = {key: device.array(values) for key, values in given.items()}
            loop(**arrays)
            check_arrays(plan, arrays, host, f"{name}, {strategy}, {commit}")
            seconds = seconds_of(device, partial(loop, **arrays))
            first = seconds if first is None else first
            yield {
                "loop": name,
                "elements": plan.sizes[case.over],
                "strategy": loop.on_gpu.strategy,
                "commit": None if strategy != "auto" else commit,
                "us": 1e6 * seconds,
                "atomics / it": first / seconds,
            }


def two(v, a, b):
    a[0] += v[0]
    b[0] += v[1]


def four(v, a, b, c, d):
    a[0] += v[0]
    b[0] += v[1]
    c[0] += v[2]
    d[0] += v[3]


SUMS = {
    "edges of triangles": Case(two, "edges", [read("v", dim=2), inc("s", "edges->cells")]),
    "tetrahedra": Case(
        four, "cells", [read("v", dim=4), inc("s", "cells->nodes")], mesh="delaunay3d"
    ),
}


LOOPS = CASES | SUMS


def sum_rows(device: Device, size: int) -> Iterator[dict[str, Any]]:
    """Our loop by colours, in blocks and by atomics; peers on the plan's numbers and the mesh's."""
    for name, case in SUMS.items():
        full = plan_of(name, size)
        plan, key = full["loop"], str(case.args[1]["map"])
        values = values_for(plan)["v"]
        n = plan.sizes[plan.maps[key].to_set]
        wanted = np.bincount(plan.maps[key].table.ravel(), values.ravel(), n)
        row = {"sums": name, "values": values.size}
        for strategy, commit in ways(plan):
            loop = ParLoop(case.kernel, plan, strategy=strategy, commit=commit, graph=True)
            given = {"v": device.array(values), "s": device.array(np.zeros(n))}
            loop(**given)
            check_off(given["s"].get().ravel(), wanted, TOLERANCE["f8"], name)
            seconds = seconds_of(device, partial(loop, **given))
            same = strategy == "auto" and commit == "colours"
            way = f"{loop.on_gpu.strategy}{f' {commit}' if strategy == 'auto' else ''}"
            yield {**row, "way": way, "same bits": same, "us": 1e6 * seconds}
        moved = full.ordering[case.over].restore(values)
        there = input_maps(full)[key]
        for order, index, given_values in (
            ("plan", plan.maps[key].table, values),
            ("mesh", there, moved),
        ):
            for peer in (torch_sums, jax_sums):
                for way, same, made in peer(index.ravel(), given_values.ravel(), n):
                    off = full.ordering[plan.maps[key].to_set].restore(wanted)
                    check_off(made.sums(), wanted if order == "plan" else off, 1e-11, way)
                    seconds = wall_seconds(made)
                    yield {
                        **row,
                        "way": f"{way}, {order}",
                        "same bits": same,
                        "us": 1e6 * seconds,
                    }


@dataclass(frozen=True)
class Peer:
    """A sum of another library: one more call, waiting for it, and the sums of one from zero."""

    work: Callable[[], Any]
    wait: Callable[[], Any]
    sums: Callable[[], Any]


def wall_seconds(peer: Peer, calls: int = 50) -> float:
    """Seconds of a call by the clock, of many that are queued at once."""
    times = []
    for _ in range(SAMPLES):
        peer.wait()
        start = time.perf_counter()
        for _ in range(calls):
            peer.work()
        peer.wait()
        times.append((time.perf_counter() - start) / calls)
    return min(times)


def torch_sums(
    index: np.ndarray, values: np.ndarray, n: int
) -> Iterator[tuple[str, bool, Peer]]:
    """PyTorch's, by atomics and as it does where results must be the same in every run."""
    try:
        import torch
    except ImportError:
        return
    on = "cuda" if torch.cuda.is_available() else "cpu"
    there = [torch.as_tensor(a, device=on) for a in (index.astype(np.int64), values)]
    wait = torch.cuda.synchronize if on == "cuda" else int
    for same in (False, True):
        torch.use_deterministic_algorithms(same)
        out = torch.zeros(n, dtype=there[1].dtype, device=on)
        once = torch.zeros_like(out).index_add_(0, *there).cpu().numpy()
        yield (
            f"torch index_add_{', deterministic' if same else ''}",
            same,
            Peer(partial(out.index_add_, 0, *there), wait, lambda once=once: once),
        )
    torch.use_deterministic_algorithms(False)


def jax_sums(
    index: np.ndarray, values: np.ndarray, n: int
) -> Iterator[tuple[str, bool, Peer]]:
    """JAX's, compiled."""
    # Else it takes three quarters of the memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    i, v, zeros = (jax.device_put(a) for a in (index, values, np.zeros(n)))
    add = jax.jit(lambda s, i, v: s.at[i].add(v))
    once = np.asarray(add(zeros, i, v))
    work = partial(add, zeros, i, v)
    yield (
        "jax at[].add",
        False,
        Peer(work, lambda: work().block_until_ready(), lambda: once),
    )


def tables(
    device: Device, size: int, only: str = ""
) -> Iterator[tuple[str, Iterator[Row]]]:
    """Both tables, whose rows are made when they are asked for."""
    yield "rows", loop_rows(device, size, only)
    yield "sums", sum_rows(device, size)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=2_000_000, help="elements of a loop")
    parser.add_argument("--only", default="", help="loops with this in their names")
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    parser.add_argument(
        "--prepare", action="store_true", help="plans and machine code only"
    )
    parser.add_argument("--arch", default="sm_90", help="of the GPU to prepare for")
    given = parser.parse_args(arguments)
    # Machine code lies beside the plans, so that both can be taken to the GPU together.
    os.environ.setdefault("MESHPREP_CACHE_DIR", str(BUILD / "cache"))
    if given.prepare:
        prepare_all(given.size, given.arch)
        return
    device = device_or_exit(given.emulate)
    with use(device):
        made = tables(device, given.size, given.only)
        found = {name: list(rows) for name, rows in made}
    if given.emulate:
        # Times of g++ say nothing.
        for rows in found.values():
            table(
                [row | dict.fromkeys(row.keys() & {"us", "atomics / it"}) for row in rows]
            )
        return
    table(found["sums"])
    report_gpu("-loops", device, **found)


if __name__ == "__main__":
    main()
