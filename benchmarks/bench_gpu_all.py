"""All that a GPU has to settle, by one clock: what is worth most comes first.

    python benchmarks/bench_gpu_all.py [--budget 720] [--only PART,PART]
    python benchmarks/bench_gpu_all.py --prepare [--arch sm_90]    machine code; needs no GPU
    python benchmarks/bench_gpu_all.py --emulate                   tiny, under g++, and no times

Each part is one of the ``bench_gpu_*.py`` beside this file, with a share of the budget; what it
leaves goes to the parts after it. Its JSON is written after every row. At the end a table says what
ran, what was cut and what was left out; the exit status is 1 where a part failed.

``--prepare`` runs the parts under g++ on tiny meshes and compiles their texts, which do not depend
on the mesh, into ``build/bench-gpu/cache``: take that folder along, and a run compiles nothing, if
it has the same compilers. ``make prepare-gpu`` compiles meshprep's own kernels for a family of
processors, too, as ``make bench-gpu`` wants them.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import bench_gpu
import bench_gpu_airfoil
import bench_gpu_batches
import bench_gpu_first
import bench_gpu_forms
import bench_gpu_loops
import bench_gpu_ranks
import bench_gpu_spmv
import bench_gpu_stores
import bench_gpu_stress
from common import save, table
from gpu_schedule import Clock, Outcome, Part, Tables, run_parts
from gpu_timing import about_gpu, device_or_exit, file_name

from meshprep_cuda_check.emulated import EmulatedDevice, EmulatedKernel
from meshprep_runtime.cuda import CudaProgram
from meshprep_runtime.cuda.build import compiled
from meshprep_runtime.cuda.device import Device, use

BUDGET = 720.0
# Columns with one of these words are times, or follow from times, as ratios do.
TIMES = {
    "us",
    "ms",
    "ns",
    "GB/s",
    "copy",
    "maps",
    "/",
    "fastest",
    "trials",
    "found",
    "best",
}


class PreparingDevice(EmulatedDevice):
    """Runs under g++ what it also compiles for a GPU."""

    def __init__(self, arch: str) -> None:
        super().__init__()
        self.arch = arch

    def load(self, program: CudaProgram) -> EmulatedKernel:
        """Compile for the GPU, then load for g++."""
        compiled(program, self.arch)
        return super().load(program)


def parts_of(device: Device, arch: str, small: bool) -> list[Part]:
    """The parts, the most worthy first, with their seconds of a whole run.

    ``small`` ones have a few elements, so that g++ runs them in minutes.
    """

    def part(name: str, seconds: float, tables: Any, *sizes: Any) -> Part:
        return Part(name, seconds, lambda allotted: tables(device, *sizes))

    parts = [
        part("stress", 160, bench_gpu_stress.tables, 6 if small else 128, arch),
        part("loops", 150, bench_gpu_loops.tables, 200 if small else 500_000),
        part("forms", 50, bench_gpu_forms.tables, 100 if small else 1_000_000, arch),
        part("stores", 80, bench_gpu_stores.tables, 0.0005 if small else 1.0),
        part("batches", 40, bench_gpu_batches.tables, 50 if small else 2_000_000, arch),
        part("ranks", 50, bench_gpu_ranks.tables, *((300, 1) if small else (720_000, 50))),
        part("first", 50, bench_gpu_first.tables, 150 if small else 720_000),
    ]
    # These need CuPy itself, and what it calls.
    if not isinstance(device, EmulatedDevice):
        parts += [
            part("airfoil", 30, bench_gpu_airfoil.tables, 720_000, 1000),
            part("spmv", 30, bench_gpu_spmv.tables, 1.0),
        ]
    kernels = partial(bench_gpu.tables, device, 0.0003 if small else 0.2)
    return [*parts, Part("kernels", 80, kernels)]


def chosen_parts(parts: Sequence[Part], words: str) -> list[Part]:
    """The parts of these names; all of them without names. Ends the program for others."""
    names = [word for word in words.split(",") if word]
    known = [part.name for part in parts]
    for name in names:
        if name not in known:
            sys.exit(f"error: part '{name}' is unknown: choose of {', '.join(known)}")
    return [part for part in parts if not names or part.name in names]


def save_part(device: Device, part: Part, tables: Tables, state: str) -> None:
    """Write the file of a part."""
    tables = dict(tables)
    rows = tables.pop("rows", [])
    about = {"gpu": about_gpu(device), "state": state}
    save(file_name(f"-{part.name}", device), rows, **about, **tables)


def show_part(part: Part, tables: Tables, state: str, hide_times: bool = False) -> None:
    """Print the tables of a part that has ended."""
    print(f"\n{part.name}: {state}")
    for rows in tables.values():
        if rows and hide_times:
            rows = [_without_times(row) for row in rows]
        if rows:
            table(rows)


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose times are left out: those of g++ say nothing."""
    return {
        name: None if TIMES & set(name.split()) else value for name, value in row.items()
    }


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for each part: what ran, in which time, and why it is not whole."""
    return [
        {
            "part": outcome.part,
            "state": outcome.state,
            "rows": outcome.rows,
            "seconds": round(outcome.seconds, 1),
            "of": round(outcome.allotted, 1),
            "note": outcome.note,
        }
        for outcome in outcomes
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts, and say what ran."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--budget", type=float, help=f"seconds of all parts; {BUDGET:g} on a GPU"
    )
    parser.add_argument("--only", default="", help="parts, with commas between them")
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    parser.add_argument("--prepare", action="store_true", help="machine code only")
    parser.add_argument("--arch", default="sm_90", help="of the GPU to prepare for")
    given = parser.parse_args(arguments)
    # Plans and machine code lie together, so that both can be taken to the GPU.
    os.environ.setdefault("MESHPREP_CACHE_DIR", str(bench_gpu.BUILD / "cache"))
    if given.prepare:
        device: Device = PreparingDevice(given.arch)
    else:
        device = device_or_exit(given.emulate)
    on_gpu = not isinstance(device, EmulatedDevice)
    # Only a card's time is short.
    budget = given.budget or (BUDGET if on_gpu else math.inf)
    clock = Clock(budget)
    arch = device.arch if on_gpu or given.prepare else ""
    parts = chosen_parts(parts_of(device, arch, small=not on_gpu), given.only)

    def keep(part: Part, tables: Tables, state: str) -> None:
        if on_gpu:
            save_part(device, part, tables, state)

    with use(device):
        outcomes = run_parts(parts, clock, keep, partial(show_part, hide_times=not on_gpu))
    rows = summary(outcomes)
    print()
    table(rows)
    if on_gpu:
        save(file_name("-run", device), rows, gpu=about_gpu(device), budget=budget)
    if any(outcome.state == "failed" for outcome in outcomes):
        sys.exit(1)


if __name__ == "__main__":
    main()
