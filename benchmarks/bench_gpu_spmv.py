"""Products of sparse matrices on a GPU beside cuSPARSE's: CSR by the fixed rule and by search.

    python benchmarks/bench_gpu_spmv.py [scale]

Times are the device's own; launches, cuSPARSE's too, are replayed as a graph, and of its two
algorithms for rows the better one counts. The least bytes are those of values and columns, of x and
of y once. Every product is compared with scipy's.
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import cusparse
import numpy as np
from bench_gpu import copy_bandwidth
from bench_gpu_stores import COOPS, SAMPLES, TOLERANCE, seconds_of
from bench_spmv import csr, matrices
from common import csr_product_bytes
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu
from scipy import sparse

from meshprep_runtime.cuda.device import Device, import_cupy
from meshprep_runtime.matrix.cuda_products import csr_program
from meshprep_runtime.matrix.cuda_text import CsrThreads


def main(scale: float = 1.0) -> None:
    """Print and save the table."""
    device = device_or_exit()
    found = {name: list(rows) for name, rows in tables(device, scale)}
    report_gpu("-spmv", device, **found)


def tables(device: Device, scale: float) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """The table, whose rows are made when they are asked for."""
    copy = copy_bandwidth(device)
    made = matrices(scale)
    yield "rows", (_row(device, copy, name, one) for name, one in made.items())


def _row(device: Device, copy: float, name: str, made: sparse.csr_array) -> dict[str, Any]:
    x = np.random.default_rng(1).standard_normal(made.shape[1])
    found = dict(_products(device, made, x))
    best = min((way for way in found if way != "rule"), key=found.__getitem__)
    peer = _peer(device, made, x)
    least = csr_product_bytes(made.shape[0], made.nnz, made.dtype.itemsize)
    return {
        "matrix": name,
        "rows": made.shape[0],
        "nonzeros": made.nnz,
        "cuSPARSE us": 1e6 * peer,
        "rule us": 1e6 * found["rule"],
        "best us": 1e6 * found[best],
        "threads a row": best,
        "cuSPARSE / rule": peer / found["rule"],
        "cuSPARSE / best": peer / found[best],
        "best, share of copy": least / found[best] / 1e9 / copy,
    }


def _products(
    device: Device, made: sparse.csr_array, x: np.ndarray
) -> Iterator[tuple[str, float]]:
    matrix, wanted = csr(made), made @ x
    programs = {str(k): csr_program(matrix, CsrThreads(128, k, 1)) for k in COOPS}
    for name, program in ({"rule": csr_program(matrix)} | programs).items():
        yield name, seconds_of(device, program, x, matrix.values, wanted)


def _peer(device: Device, made: sparse.csr_array, x: np.ndarray) -> float:
    """The better of its two algorithms for rows, each recorded as a graph."""
    cupy = import_cupy()
    rows = (made.data, made.indices.astype(np.int32), made.indptr.astype(np.int32))
    parts, there = tuple(cupy.asarray(a) for a in rows), cupy.asarray(x)
    y, wanted, times = cupy.zeros(made.shape[0]), made @ x, []
    cupy.cuda.Stream.null.synchronize()
    for algorithm in cusparse.ALGORITHMS:
        with cupy.cuda.Stream(non_blocking=True) as stream:
            work = cusparse.product(parts, there, y, algorithm, stream.ptr)
            # What is done for the first time cannot be recorded.
            work()
            stream.begin_capture()
            work()
            graph = stream.end_capture()
            y.fill(7.0)
            graph.launch(stream)
            check_off(y.get(), wanted, TOLERANCE, "a product")
            times += device_seconds(device, partial(graph.launch, stream), SAMPLES)
    return min(times)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
