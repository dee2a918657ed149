"""The matrices of affine elements as tensor contractions: a thread an element, or batches [K11].

    python benchmarks/bench_gpu_batches.py [elements]
    python benchmarks/bench_gpu_batches.py --emulate [elements]      under g++, and no times

``K_e[i] = sum_k R[i, k] G_e[k]``, the Laplacian on tetrahedra: nine numbers of the geometry of an
element, and a reference tensor of its degree. In our loop a thread has an element. In batches a
thread has an entry: its row of R stays in registers, ``concurrent`` elements at a time go through a
block, ``batch`` in all, and entries are stored as they are found or at the end. Results are
compared with NumPy's. Registers and warps of a multiprocessor are the compiler's, for sm_90 where
there is no GPU.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from bench_gpu import copy_bandwidth
from common import table
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu, taken
from numpy.typing import NDArray

from meshprep.mesh.cells import SHAPES
from meshprep.topology.dofs import local_points
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, Arg, Loop, LoopPlan
from meshprep_runtime.cuda import CudaProgram, DeviceFunction, program
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.device import Device, use
from meshprep_runtime.cuda.executor import Launcher
from meshprep_runtime.cuda.programs import Launch
from meshprep_runtime.cuda.source.parameters import Parameter
from meshprep_runtime.matrix.cuda_text import kernel_text

SAMPLES, COPY_BYTES, GEOMETRY = 7, 2**30, 9


def reference(degree: int) -> NDArray[np.float64]:
    """The integrals of ``d_b phi_i d_c phi_j`` on the unit tetrahedron, a row for each (i, j)."""
    powers = np.array([p for p in np.ndindex(*[degree + 1] * 3) if sum(p) <= degree])
    at = local_points(SHAPES["tetra"], degree) / degree
    nodal = np.linalg.inv(np.prod(at[:, None] ** powers, axis=2))
    slopes = []
    for b in range(3):
        lower = powers - np.eye(3, dtype=int)[b]
        slopes.append((powers[:, b, None] * nodal, np.maximum(lower, 0)))
    n = len(powers)
    found = np.empty((n, n, 3, 3))
    for b, (left, p) in enumerate(slopes):
        for c, (right, q) in enumerate(slopes):
            found[:, :, b, c] = left.T @ _integral(p[:, None] + q) @ right
    return found.reshape(n * n, GEOMETRY)


def _integral(powers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of monomials, over the unit tetrahedron: a! b! c! / (a + b + c + 3)!."""
    factorial = np.cumprod([1.0, *range(1, 12)])
    found: NDArray[np.float64] = (
        factorial[powers].prod(axis=-1) / factorial[powers.sum(-1) + 3]
    )
    return found


def loop_of(n: int, tensor: NDArray[np.float64]) -> LoopPlan:
    """A direct loop over the elements."""
    args = (Arg("g", Access.READ, GEOMETRY), Arg("k", Access.WRITE, len(tensor)))
    return LoopPlan(Loop("contract", "cells", args), {"cells": n}, {}, {}, "")


def by_element(plan: LoopPlan, tensor: NDArray[np.float64], layout: str) -> CudaProgram:
    """A thread an element, all written out."""
    lines = [
        f"  k[{i}] = "
        + " + ".join(f"{v:.17g} * g[{j}]" for j, v in enumerate(row) if v)
        + ";"
        for i, row in enumerate(tensor)
    ]
    head = "__device__ void contract(const double* g, double* k) {"
    text = "\n".join([head, *lines, "}"])
    return program(DeviceFunction("contract", text), plan, "global-atomics", layout=layout)


def by_entry(
    made: CudaProgram,
    tensor: NDArray[np.float64],
    batch: int,
    concurrent: int,
    interleaved: bool,
) -> CudaProgram:
    """A thread an entry, of ``concurrent`` elements at a time."""
    entries, n = len(tensor), made.slots[0].shape[0]
    threads = -(-entries * concurrent // 32) * 32
    rounds = batch // concurrent
    store = f"if (first + b < elements) s1[(first + b) * {entries} + entry] = "
    each = [
        f"    const int b = r * {concurrent} + c;",
        "    double sum = 0;",
        f"    for (int k = 0; k < {GEOMETRY}; ++k) sum += row[k] * g[{GEOMETRY} * b + k];",
        f"    {store}sum;" if interleaved else "    sums[r] = sum;",
    ]
    rounds_of = ["#pragma unroll", f"  for (int r = 0; r < {rounds}; ++r) {{"]
    last = [
        *rounds_of,
        f"    const int b = r * {concurrent} + c;",
        f"    {store}sums[r];",
        "  }",
    ]
    body = [
        f"MP_SHARED(double, g, 0, {batch * GEOMETRY});",
        f"const int entry = MP_THREAD % {entries}, c = MP_THREAD / {entries};",
        f"const Index first = (Index)MP_BLOCK * {batch};",
        f"for (int i = MP_THREAD; i < {batch * GEOMETRY}; i += MP_THREADS)",
        f"  g[i] = first + i / {GEOMETRY} < elements ? s0[first * {GEOMETRY} + i] : 0;",
        "MP_BARRIER();",
        f"if (c < {concurrent}) {{",
        f"  double row[{GEOMETRY}];",
        f"  for (int k = 0; k < {GEOMETRY}; ++k) row[k] = tensor[entry * {GEOMETRY} + k];",
        *([] if interleaved else [f"  double sums[{rounds}];"]),
        *rounds_of,
        *each,
        "  }",
        *([] if interleaved else last),
        "}",
    ]
    listed = (Parameter("tensor", "in", "double"), Parameter("s0", "in", "double"))
    listed += (Parameter("s1", "out", "double"), Parameter("elements", "size"))
    text = kernel_text(
        name="contract_batches",
        most_threads=threads,
        slots=("g", "k"),
        parameters=[p.text for p in listed],
        body=body,
    )
    return replace(
        made,
        name="contract_batches",
        text=text,
        parameters=listed,
        arrays={"tensor": tensor.reshape(-1)},
        sizes={"elements": n},
        threads=threads,
        shared_bytes=8 * batch * GEOMETRY,
        launches=(Launch(-(-n // batch), 0, n, 0),),
        alignment=(8, 8),
    )


def programs(
    n: int, tensor: NDArray[np.float64]
) -> Iterator[tuple[dict[str, Any], str, CudaProgram]]:
    """What is compared: its description, the layout of its arrays, and the program."""
    plan = loop_of(n, tensor)
    for layout in ("aos", "soa"):
        yield (
            {"a thread has": "an element", "layout": layout},
            layout,
            by_element(plan, tensor, layout),
        )
    made = by_element(plan, tensor, "aos")
    most = max(1, 256 // len(tensor))
    for concurrent, rounds in ((1, 8), (most, 2), (most, 8)):
        for interleaved in (True, False):
            about = {"a thread has": "an entry", "layout": "aos", "concurrent": concurrent}
            about |= {
                "batch": concurrent * rounds,
                "stores": "at once" if interleaved else "last",
            }
            yield (
                about,
                "aos",
                by_entry(made, tensor, concurrent * rounds, concurrent, interleaved),
            )


def rows(device: Device, n: int, copy: float, arch: str) -> Iterator[dict[str, Any]]:
    """Run, check, compile and time."""
    geometry = np.random.default_rng(0).standard_normal((n, GEOMETRY))
    for degree in (1, 2):
        tensor = reference(degree)
        wanted = geometry @ tensor.T
        for about, layout, made in programs(n, tensor):
            there = geometry if layout == "aos" else np.ascontiguousarray(geometry.T)
            shape = made.slots[1].shape
            arrays = {"g": device.array(there), "k": device.array(np.full(shape, 7.0))}
            launcher = Launcher(made, device, graph=True)
            given = DeviceBinder(made.loop, made.slots)(arrays, device)
            launcher(given)
            found = arrays["k"].get()
            check_off(found if layout == "aos" else found.T, wanted, 1e-13, str(about))
            seconds = min(device_seconds(device, partial(launcher, given), SAMPLES))
            nbytes = 8 * (GEOMETRY + len(tensor))
            share = nbytes * n / seconds / 1e9 / copy if copy else None
            yield {
                "degree": degree,
                **{"concurrent": None, "batch": None, "stores": None},
                **about,
                "bytes an element": nbytes,
                **taken(made, arch),
                "us": 1e6 * seconds,
                "share of copy": share,
            }


def tables(
    device: Device, n: int, arch: str
) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """The table, whose rows are made when they are asked for."""
    copy = 0.0 if isinstance(device, EmulatedDevice) else copy_bandwidth(device, COPY_BYTES)
    yield "rows", rows(device, n, copy, arch)


def main(*words: str) -> None:
    """Print and save the table."""
    emulate = "--emulate" in words
    n = next((int(w) for w in words if w.isdigit()), 300 if emulate else 2_000_000)
    device = device_or_exit(emulate)
    with use(device):
        arch = "sm_90" if emulate else device.arch
        found = {name: list(made) for name, made in tables(device, n, arch)}
    if emulate:
        table([row | {"us": None} for row in found["rows"]])
        return
    report_gpu("-batches", device, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
