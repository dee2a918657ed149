"""Loops on a machine that others use: threads against one, idle and beside two busy processes.

A loop adds to both cells of every edge, in Python and in C++ (busy_calls.cpp), in the blocks that a
plan has by default. It runs on as many threads as it takes, on one, and as a plain loop; all take
turns, call by call. Medians count, with the middle half of the calls in brackets. Bar: beside two
busy processes a call on threads takes at most 2.2 times as long as one on one thread.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from common import EXAMPLES, mesh_of, report

from meshprep import Options, prepare
from meshprep_runtime import LoopPlan, ParLoop, Plan
from meshprep_runtime.cpu.pool import SETTLED, thread_count

# Delaunay triangles of 12,000 and 759,000 edges.
CELLS = (8_000, 506_000)
BUSY = (0, 2)
SECONDS, BAR = 6.0, 2.2
ARGS = [
    {"dat": "t", "map": "edges->cells", "access": "read"},
    {"dat": "r", "map": "edges->cells", "access": "inc"},
]
LOOPS = {"flux": {"over": "edges", "args": ARGS}}


def flux(t1, t2, r1, r2):
    """The body for one edge."""
    f = t2[0] - t1[0]
    r1[0] += f
    r2[0] -= f


@numba.njit
def plain_flux(table, t, r):
    """The loop of a solver without meshprep."""
    for e in range(table.shape[0]):
        a, b = table[e]
        f = t[b] - t[a]
        r[a] += f
        r[b] -= f


def main(seconds: float = SECONDS) -> None:
    """Print and save the table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = _program(Path(folder))
        for cells in CELLS:
            path = Path(folder) / f"{cells}.plan.h5"
            prepare(mesh_of("delaunay2d", cells), LOOPS, Options()).plan.save(path)
            plan = Plan.load(path)
            for busy in BUSY:
                with busy_processes(busy):
                    found = {
                        "Python": _in_python(plan, seconds),
                        "C++": _in_cpp(program, path, seconds),
                    }
                rows += [_row(name, plan, busy, took) for name, took in found.items()]
    report("busy", rows, threads=thread_count())


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Other processes that never rest."""
    words = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _in_python(plan: Plan, seconds: float) -> dict[str, list[float]]:
    """Microseconds of each call of each way."""
    table = plan.maps["edges->cells"].table
    t = np.random.default_rng(1).random(plan.ordering["cells"].size)
    r = np.zeros_like(t)
    works = {
        "threads": _loop(plan["flux"], t, r),
        "one": _loop(plan["flux"], t, r, strategy="sequential"),
        "plain": lambda: plain_flux(table, t, r),
    }
    for work in works.values():
        for _ in range(1 + SETTLED):
            work()
    took: dict[str, list[float]] = {name: [] for name in works}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, work in works.items():
            for _ in range(40 if len(table) < 50_000 else 8):
                start = time.perf_counter()
                work()
                took[name].append(1e6 * (time.perf_counter() - start))
    return took


def _loop(plan: LoopPlan, t: Any, r: Any, **options: str) -> Callable[[], None]:
    loop = ParLoop(flux, plan, **options)
    return lambda: loop(t=t, r=r)


def _program(folder: Path) -> Path:
    program, main = folder / "busy_calls", Path(__file__).with_name("busy_calls.cpp")
    words = [
        "make",
        "-s",
        "-C",
        str(EXAMPLES / "cpp"),
        f"PROGRAM={program}",
        f"MAIN={main}",
    ]
    subprocess.run(words, check=True)
    return program


def _in_cpp(program: Path, plan: Path, seconds: float) -> dict[str, list[float]]:
    words = [str(program), str(plan), str(seconds)]
    lines = subprocess.check_output(words, text=True).splitlines()
    return {name: [*map(float, took)] for name, *took in map(str.split, lines)}


def _row(
    name: str, plan: Plan, busy: int, took: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    quartiles = {way: np.quantile(calls, (0.25, 0.5, 0.75)) for way, calls in took.items()}
    middle = {way: float(q[1]) for way, q in quartiles.items()}
    shown = {
        f"{way}, us": f"{q[1]:.0f} ({q[0]:.0f} to {q[2]:.0f})"
        for way, q in quartiles.items()
    }
    return {
        "language": name,
        "edges": plan.maps["edges->cells"].table.shape[0],
        "busy": busy,
        **shown,
        "threads / one": middle["threads"] / middle["one"],
        "bar": BAR if busy else None,
        "threads / plain": middle["threads"] / middle["plain"],
        "fastest, us": min(took["threads"]),
    }


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
