"""Products on a GPU in every store of a matrix, and the threads that a product finds by itself.

    python benchmarks/bench_gpu_stores.py [--scale S]
    python benchmarks/bench_gpu_stores.py --emulate --scale 0.001    under g++, and no times

The first table has quads of degree 1 to 4 with the same number of dofs: compressed rows, ELLPACK,
lazy ELLPACK, where nothing is added up, and the matrices of the elements, whole and half. Launches
are replayed as a graph.

The second table has the matrices of ``bench_spmv.py``: what the fixed rule takes, what the first
calls of a product find, in how many trials, and the best of 1 to 32 threads a row. Every product is
compared with scipy's.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from bench_spmv import csr, matrices
from common import table
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu
from scipy import sparse

from meshprep_runtime.cuda import CudaProgram
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.device import Device, use
from meshprep_runtime.cuda.executor import Launcher
from meshprep_runtime.matrix import CsrMatrix, Ellpack, LocalMatrices, Product, to_gpu
from meshprep_runtime.matrix.cuda_products import (
    csr_program,
    ellpack_program,
    local_program,
)
from meshprep_runtime.matrix.cuda_text import CsrThreads
from poisson import CELLS_TO_DOFS, integrate, prepared_square, square

COOPS = (1, 2, 4, 8, 16, 32)
DEGREES = (1, 2, 3, 4)
SAMPLES, TOLERANCE = 5, 1e-12


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    given = parser.parse_args(arguments)
    device = device_or_exit(given.emulate)
    with use(device):
        found = {name: list(rows) for name, rows in tables(device, given.scale)}
    if given.emulate:
        # Times of g++ say nothing.
        for rows in found.values():
            table([without_times(row) for row in rows])
        return
    table(found["searches"])
    report_gpu("-stores", device, **found)


def tables(device: Device, scale: float) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """Both tables, whose rows are made when they are asked for."""
    side = round(500 * scale**0.5)
    yield "rows", (store_row(device, degree, side) for degree in DEGREES)
    made = matrices(scale)
    yield "searches", (search_row(device, name, one) for name, one in made.items())


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose times, and what follows from them, are left out."""
    of_times = ("fastest", "threads found", "best threads", "trials")
    shown = {}
    for key, value in row.items():
        is_time = key.endswith(" us") or "/" in key or key in of_times
        shown[key] = None if is_time else value
    return shown


def store_row(device: Device, degree: int, side: int) -> dict[str, Any]:
    """Quads of one degree, ``side`` dofs along a side, in every store [R14 Table 3.1]."""
    prepared, ordered = prepared_square(square(side // degree, degree), 256, "gpu")
    problem, plan = integrate(ordered), prepared.plan[CELLS_TO_DOFS]
    rows, local = problem.csr(), problem.local()
    padded, lazy = Ellpack.from_csr(rows), lazy_ellpack(local)
    programs = {
        "CSR": (csr_program(rows), rows.values),
        "ELLPACK": (ellpack_program(padded), padded.values),
        "lazy": (ellpack_program(lazy), lazy.values),
        "elements": (local_program(local, plan), None),
        "half": (local_program(local.half(), plan), None),
    }
    made = rows.to_scipy()
    x = np.random.default_rng(1).standard_normal(made.shape[1])
    us = {
        name: 1e6 * seconds_of(device, program, x, values, made @ x)
        for name, (program, values) in programs.items()
    }
    fastest = min(us, key=us.__getitem__)
    return {
        "degree": degree,
        "dofs": x.size,
        **{f"{name} us": value for name, value in us.items()},
        "fastest": fastest,
        "CSR / it": us["CSR"] / us[fastest],
    }


def lazy_ellpack(local: LocalMatrices) -> Ellpack:
    """The entries of all elements side by side in their rows, as an assembly leaves them."""
    n = local.dofs.shape[1]
    row = np.repeat(local.dofs, n, axis=1).reshape(-1)
    column = np.tile(local.dofs, n).reshape(-1)
    kept = np.flatnonzero((row >= 0) & (column >= 0))
    order = kept[np.argsort(row[kept], kind="stable")]
    lengths = np.bincount(row[order], minlength=local.n_rows)
    row_ptr = np.append(0, np.cumsum(lengths))
    values = local.values.reshape(-1)[order]
    return Ellpack.from_csr(CsrMatrix(row_ptr, column[order], values))


def search_row(device: Device, name: str, made: sparse.csr_array) -> dict[str, Any]:
    """The threads that a product finds, beside the rule's and the best of all."""
    matrix = csr(made)
    x = np.random.default_rng(1).standard_normal(made.shape[1])
    wanted = made @ x
    x_there = device.array(x)
    product = Product(to_gpu(matrix))
    trials = -1
    while not matrix.tuned:
        check_off((product @ x_there).get(), wanted, TOLERANCE, "a trial")
        trials += 1
    (tuned,) = matrix.tuned
    ways = {f"{coop}": CsrThreads(128, coop, 1) for coop in COOPS}
    ways["found"] = CsrThreads(tuned.block_size, tuned.coop, tuned.repeat)
    us = {"rule": 1e6 * seconds_of(device, csr_program(matrix), x, matrix.values, wanted)}
    for way, threads in ways.items():
        program = csr_program(matrix, threads)
        us[way] = 1e6 * seconds_of(device, program, x, matrix.values, wanted)
    best = min(map(str, COOPS), key=us.__getitem__)
    return {
        "matrix": name,
        "nonzeros": made.nnz,
        "trials": trials,
        "threads found": f"{tuned.coop} x {tuned.repeat}",
        "best threads": best,
        "rule us": us["rule"],
        "found us": us["found"],
        "best us": us[best],
        "rule / found": us["rule"] / us["found"],
        "best / found": us[best] / us["found"],
    }


def seconds_of(
    device: Device,
    program: CudaProgram,
    x: np.ndarray,
    values: np.ndarray | None,
    wanted: np.ndarray,
) -> float:
    """Seconds of a product, replayed as a graph; it must be right."""
    launcher = Launcher(program, device, graph=True)
    given = {"x": x, "y": np.full(wanted.size, 7.0)}
    if values is not None:
        given["values"] = values.reshape(-1)
    arrays = {name: device.array(array) for name, array in given.items()}
    bound = DeviceBinder(program.loop, program.slots)(arrays, device)
    launcher(bound)
    check_off(arrays["y"].get(), wanted, TOLERANCE, "a product")
    return min(device_seconds(device, partial(launcher, bound), SAMPLES))


if __name__ == "__main__":
    main()
