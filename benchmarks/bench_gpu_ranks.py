"""Airfoil on ranks that share a GPU: what exchanges through the host cost.

    python benchmarks/bench_gpu_ranks.py [cells [iterations]]
    python benchmarks/bench_gpu_ranks.py --emulate [cells [iterations]]    under g++, and no times

One, two and four ranks of one process, a part each, on one GPU: they take turns, so that more
ranks have the same work and their messages. A row has the clock's milliseconds of an iteration on
the slowest rank, those that res_calc waited for messages, and what was sent. Residuals must be
those of one rank in six digits.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_mpi import split
from common import mesh_file, table
from gpu_timing import device_or_exit, report_gpu

from airfoil import Airfoil
from meshprep_runtime import DistributedPlan, MeshprepError, run_ranks
from meshprep_runtime.cuda.device import Device, use

RANKS = (1, 2, 4)
CELLS, ITERATIONS = 720_000, 50
Row = dict[str, Any]


def rows(device: Device, cells: int, iterations: int) -> Iterator[Row]:
    """A row for each number of ranks."""
    mesh = mesh_file("airfoil", cells=cells)
    residual = None
    with tempfile.TemporaryDirectory() as folder:
        for ranks in RANKS:
            parts = Path(folder) / f"{ranks}.parts.h5"
            split(mesh, parts, (ranks,), block_size=256, target="gpu")
            told = run_ranks(
                ranks, lambda comm, file=parts: _rank(file, comm, device, iterations)
            )
            if residual is None:
                residual = told[0]["rms"]
            if told[0]["rms"] != residual:
                raise MeshprepError(
                    f"the residual on {ranks} ranks is {told[0]['rms']}, not {residual}"
                )
            yield {
                "ranks": ranks,
                "cells": cells,
                "ms an iteration": max(one["ms"] for one in told),
                "res_calc waits ms": max(one["wait"] for one in told),
                "messages": sum(one["messages"] for one in told),
                "kB": sum(one["kB"] for one in told),
                "rms": residual,
            }


def _rank(parts: Path, comm: Any, device: Device, iterations: int) -> Row:
    """What one rank measures."""
    with use(device):
        flow = Airfoil.on_ranks(DistributedPlan.load(parts, comm), device=device)
        steps = flow.steps(1 + iterations)
        # The first iteration compiles.
        next(steps)
        flow.reset()
        start = time.perf_counter()
        (*_, rms) = steps
        device.wait(device.stream())
        seconds = time.perf_counter() - start
        edges = flow.loops["res_calc"].times
        return {
            "ms": 1e3 * seconds / iterations,
            "wait": 1e3 * edges.wait / iterations,
            "messages": edges.messages / iterations,
            "kB": edges.sent_bytes / 1e3 / iterations,
            "rms": f"{rms:.5e}",
        }


def tables(
    device: Device, cells: int, iterations: int
) -> Iterator[tuple[str, Iterator[Row]]]:
    """The table, whose rows are made when they are asked for."""
    yield "rows", rows(device, cells, iterations)


def main(*words: str) -> None:
    """Print and save the table."""
    emulate = "--emulate" in words
    numbers = [int(word) for word in words if word.isdigit()]
    cells, iterations = [*numbers, *(CELLS, ITERATIONS)[len(numbers) :]]
    device = device_or_exit(emulate)
    found = {name: list(made) for name, made in tables(device, cells, iterations)}
    if emulate:
        # Times of g++ say nothing.
        times = ("ms an iteration", "res_calc waits ms")
        table([row | dict.fromkeys(times) for row in found["rows"]])
        return
    report_gpu("-ranks", device, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
