"""Three forms of integration on a GPU: matrices of quads of degree 1 to 4 [R14 Algorithms 2-4].

    python benchmarks/bench_gpu_forms.py [dofs]
    python benchmarks/bench_gpu_forms.py --emulate [dofs]      under g++, and no times

The texts of ``examples/quads.py``: a thread has an element, whose matrix is added to a row of its
own, as the store of local matrices keeps it; rows lie one after the other, or entry after entry.
Every degree has as many dofs. Results are compared with NumPy's. Registers and warps of a
multiprocessor are the compiler's, for sm_90 where there is no GPU.
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from bench_gpu import COPY_BYTES, copy_bandwidth, useful_bytes
from common import table
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu, taken
from numpy.typing import NDArray

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import LoopPlan
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.device import Device, use
from meshprep_runtime.cuda.executor import Launcher
from quads import FORMS, gradients, laplacian, quadrature

DEGREES = (1, 2, 3, 4)
DOFS, SAMPLES, TOLERANCE = 1_000_000, 7, 1e-11
# Elements that NumPy works on at a time.
CHUNK = 20_000
Row = dict[str, Any]


def plan_of(degree: int, dofs: int) -> tuple[LoopPlan, NDArray[np.float64]]:
    """The loop over quads with about so many dofs, and places of nodes, off a grid's."""
    side = max(1, round(dofs**0.5 / degree))
    args = [
        {"dat": "x", "map": "cells->nodes", "dim": 2, "access": "read"},
        {"dat": "K", "dim": (degree + 1) ** 4, "access": "inc"},
    ]
    mesh = generate("box", nx=side, ny=side, type="quad")
    loops = {"laplacian": {"over": "cells", "args": args}}
    made = prepare(mesh, loops, Options(block_size=256))
    on_grid = made.mesh.coordinates[:, :2] * side
    moved = np.random.default_rng(0).uniform(-0.2, 0.2, on_grid.shape)
    return made.plan["laplacian"], on_grid + moved


def matrices(corners: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """The matrices of quads from their corners (cells, 4, 2), a row each."""
    s, t, weight = quadrature(degree)
    slopes = gradients(degree, np.stack([s, t], axis=1))
    a, b, c, d = corners.transpose(1, 0, 2)[:, :, None]
    # The two columns of the Jacobian at all points: (cells, points, 2).
    along_s = (1 - t)[:, None] * (b - a) + t[:, None] * (c - d)
    along_t = (1 - s)[:, None] * (d - a) + s[:, None] * (c - b)
    jacobian = np.stack([along_s, along_t], axis=-1)
    physical = np.einsum("qni,eqij->eqnj", slopes, np.linalg.inv(jacobian))
    scale = weight * np.abs(np.linalg.det(jacobian))
    made = np.einsum("eq,eqnk,eqmk->enm", scale, physical, physical)
    return made.reshape(len(corners), -1)


def expected(plan: LoopPlan, x: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """The matrices of all elements of a plan."""
    corners = x[plan.maps["cells->nodes"].table]
    chunks = [
        matrices(corners[start : start + CHUNK], degree)
        for start in range(0, len(corners), CHUNK)
    ]
    return np.concatenate(chunks)


def rows(device: Device, dofs: int, copy: float, arch: str) -> Iterator[Row]:
    """Run, check, compile and time; the cheapest degree comes first."""
    for degree in DEGREES:
        plan, x = plan_of(degree, dofs)
        wanted = expected(plan, x, degree)
        for form in FORMS:
            for layout in ("aos", "soa"):
                made = program(
                    laplacian(degree, form), plan, "global-atomics", layout={"K": layout}
                )
                launcher = Launcher(made, device, graph=True)
                shape = made.slots[1].shape
                arrays = {"x": device.array(x), "K": device.array(np.zeros(shape))}
                bound = DeviceBinder(made.loop, made.slots)(arrays, device)
                launcher(bound)
                found = arrays["K"].get()
                found = found if layout == "aos" else found.T
                check_off(found, wanted, TOLERANCE, f"degree {degree}, {form}, {layout}")
                seconds = min(device_seconds(device, partial(launcher, bound), SAMPLES))
                share = useful_bytes(plan) / seconds / 1e9 / copy if copy else None
                yield {
                    "degree": degree,
                    "form": form,
                    "layout": layout,
                    "elements": plan.sizes["cells"],
                    **taken(made, arch),
                    "us": 1e6 * seconds,
                    "share of copy": share,
                }


def tables(device: Device, dofs: int, arch: str) -> Iterator[tuple[str, Iterator[Row]]]:
    """The table, whose rows are made when they are asked for."""
    copy = 0.0 if isinstance(device, EmulatedDevice) else copy_bandwidth(device, COPY_BYTES)
    yield "rows", rows(device, dofs, copy, arch)


def main(*words: str) -> None:
    """Print and save the table."""
    emulate = "--emulate" in words
    dofs = next((int(w) for w in words if w.isdigit()), 200 if emulate else DOFS)
    device = device_or_exit(emulate)
    with use(device):
        arch = "sm_90" if emulate else device.arch
        found = {name: list(of_table) for name, of_table in tables(device, dofs, arch)}
    if emulate:
        # Times of g++ say nothing.
        table([row | {"us": None} for row in found["rows"]])
        return
    report_gpu("-forms", device, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
