"""Airfoil's res_calc on the CPU, every strategy, beside C; and what an order is worth.

The C loop is compiled by ``gcc -O3 -march=native`` and runs on one thread over the mesh as it is
generated. All variants take turns, so that a busy machine slows all of them; the fastest of the
turns counts.
"""

import ctypes
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from common import EXAMPLES, c_library, fastest, report

from kernels.airfoil import FREE_STREAM, res_calc
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import read_requests
from meshprep.mesh import Mesh
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import LoopPlan, ParLoop

TURNS = 80


@dataclass(frozen=True)
class Case:
    """One row: its order, strategy and threads, and the work of one turn."""

    order: str
    strategy: str
    threads: int
    run: Callable[[], None]


def main(cells: int = 720_000) -> None:
    """Print and save the table."""
    generated = generate("airfoil", cells=cells)
    shuffled = generate("airfoil", cells=cells, shuffle=True, seed=1)
    asked = [
        r
        for r in read_requests(EXAMPLES / "kernels" / "airfoil.toml")
        if r.name == "res_calc"
    ]
    start = time.perf_counter()
    prepared = prepare(shuffled, asked, Options(block_size=4096, target="cpu"))
    seconds = time.perf_counter() - start
    plan = prepared.plan["res_calc"]
    in_file, unordered = _bare(generated, asked), _bare(shuffled, asked)
    cases = [
        Case("generated", "C, gcc -O3", 1, _c_loop(in_file)),
        _case("generated", in_file, "sequential", 1),
        _case("shuffled", unordered, "sequential", 1),
        _case("reordered", plan, "sequential", 1),
        _case("reordered", plan, "sequential", 1, fastmath=True),
    ]
    for strategy in (
        "ordered",
        "hierarchical",
        "block-permute",
        "global-colouring",
        "full-permute",
        "two-step",
    ):
        cases += [
            _case("reordered", plan, strategy, t)
            for t in (1, numba.config.NUMBA_NUM_THREADS)
        ]
    report("cpu", _rows(cases, seconds))


def _bare(mesh: Mesh, asked: Any) -> LoopPlan:
    """The loop over a mesh as it stands, without blocks."""
    full, specs = plan_request_maps(mesh, asked)
    loop = specs[0].loop
    sizes = full.sizes
    return LoopPlan(loop, sizes, {name: full.map(name) for name in loop.maps}, {}, "")


def _arrays(plan: LoopPlan) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    n = plan.sizes["cells"]
    q = FREE_STREAM * (1 + 0.1 * rng.random((n, 4)))
    x = rng.random((plan.sizes["nodes"], 2))
    return {"x": x, "q": q, "adt": 0.1 + rng.random(n), "res": np.zeros((n, 4))}


def _case(
    order: str, plan: LoopPlan, strategy: str, threads: int, fastmath: bool = False
) -> Case:
    loop, arrays = (
        ParLoop(res_calc, plan, strategy=strategy, fastmath=fastmath),
        _arrays(plan),
    )

    def run() -> None:
        numba.set_num_threads(threads)
        loop(**arrays)

    run()
    return Case(order, strategy + (", fastmath" if fastmath else ""), threads, run)


def _c_loop(plan: LoopPlan) -> Callable[[], None]:
    function = c_library("airfoil.c").res_calc
    a = _arrays(plan)
    used = [plan.maps[m].table for m in ("edges->nodes", "edges->cells")]
    used += [a[name] for name in ("x", "q", "adt", "res")]
    n = ctypes.c_long(plan.sizes["edges"])

    def run() -> None:
        # Addresses do not keep arrays alive; this function does.
        function(n, *(ctypes.c_void_p(u.ctypes.data) for u in used))

    _check(plan, run, a)
    return run


def _check(plan: LoopPlan, run: Callable[[], None], arrays: dict[str, np.ndarray]) -> None:
    """The C loop must compute what the kernel does."""
    run()
    expected = {**arrays, "res": np.zeros_like(arrays["res"])}
    ParLoop(res_calc, plan, strategy="sequential")(**expected)
    np.testing.assert_allclose(arrays["res"], expected["res"], rtol=1e-11, atol=1e-11)


def _rows(cases: list[Case], seconds: float) -> list[dict[str, Any]]:
    best = fastest({c: c.run for c in cases}, TURNS)
    c_loop, before = best[cases[0]], best[cases[2]]
    return [
        {
            "order": c.order,
            "strategy": c.strategy,
            "threads": c.threads,
            "ms": 1e3 * b,
            "speed against C": c_loop / b,
            "against shuffled": before / b,
            "calls to repay": seconds / (before - b) if c.order == "reordered" else None,
        }
        for c, b in best.items()
    ]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
