"""Assembly of linear tetrahedra from a plan, beside scikit-fem and scipy.

The stiffness matrix of the Laplacian on shuffled Delaunay tetrahedra. ``coloured`` and ``two-step``
compute the matrices of the elements, too, as scikit-fem does; ``batch`` only adds them up, as
``coo_array.tocsr`` does. The last rows multiply: by rows, by the matrices of the elements, half of
them, and by a loop that stores no matrix. All are on the mesh in the plan's order, and the fastest
of several runs counts. MB are predicted, for caches that keep what cells share; GB/s are these over
what was measured.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numba
import numpy as np
import scipy.sparse
import skfem
from common import best, fastest, mesh_of, report, table
from skfem.models.poisson import laplace

from meshprep import to_skfem
from meshprep.loops.requests import LoopRequest
from meshprep.metrics.product_traffic import store_bytes
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import LoopPlan, ParLoop
from meshprep_runtime.matrix import Assembly, BatchSums, LocalMatrices, Product

MAP = "cells->nodes"
# Of a loop that finds out which form is the fastest.
CALLS = 40
# Name, store and strategy of what the plan assembles.
WAYS = (
    ("coloured", "csr", "hierarchical"),
    ("two-step", "csr", "two-step"),
    ("local", "local", "two-step"),
)
# The bars: how many times faster assembly is to be.
BARS = {"scikit-fem": 10.0, "coo_array.tocsr": 5.0}


def stiffness(a: Any, b: Any, c: Any, d: Any, K: Any) -> None:
    """The Laplacian on one linear tetrahedron, corners in any order."""
    x1, y1, z1 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    x2, y2, z2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    x3, y3, z3 = d[0] - a[0], d[1] - a[1], d[2] - a[2]
    # the gradients of the last three basis functions, times the determinant
    u1, v1, w1 = y2 * z3 - z2 * y3, z2 * x3 - x2 * z3, x2 * y3 - y2 * x3
    u2, v2, w2 = y3 * z1 - z3 * y1, z3 * x1 - x3 * z1, x3 * y1 - y3 * x1
    u3, v3, w3 = y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2
    det = x1 * u1 + y1 * v1 + z1 * w1
    f = 1.0 / (6.0 * abs(det))
    u, v, w = (
        (-u1 - u2 - u3, u1, u2, u3),
        (-v1 - v2 - v3, v1, v2, v3),
        (-w1 - w2 - w3, w1, w2, w3),
    )
    for i in range(4):
        for j in range(4):
            K[4 * i + j] += f * (u[i] * u[j] + v[i] * v[j] + w[i] * w[j])


def multiply(
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    p: Any,
    q: Any,
    r: Any,
    s: Any,
    w: Any,
    x: Any,
    y: Any,
    z: Any,
) -> None:
    """The same times the values p, q, r, s at the corners, added to w, x, y, z; nothing stored."""
    x1, y1, z1 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    x2, y2, z2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    x3, y3, z3 = d[0] - a[0], d[1] - a[1], d[2] - a[2]
    u1, v1, w1 = y2 * z3 - z2 * y3, z2 * x3 - x2 * z3, x2 * y3 - y2 * x3
    u2, v2, w2 = y3 * z1 - z3 * y1, z3 * x1 - x3 * z1, x3 * y1 - y3 * x1
    u3, v3, w3 = y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2
    f = 1.0 / (6.0 * abs(x1 * u1 + y1 * v1 + z1 * w1))
    k, m, n = q[0] - p[0], r[0] - p[0], s[0] - p[0]
    gu, gv, gw = (
        k * u1 + m * u2 + n * u3,
        k * v1 + m * v2 + n * v3,
        k * w1 + m * w2 + n * w3,
    )
    k1, k2, k3 = (
        f * (gu * u1 + gv * v1 + gw * w1),
        f * (gu * u2 + gv * v2 + gw * w2),
        f * (gu * u3 + gv * v3 + gw * w3),
    )
    w[0] -= k1 + k2 + k3
    x[0] += k1
    y[0] += k2
    z[0] += k3


def main(cells: int = 1_000_000) -> None:
    """Print and save the table."""
    args = [
        {"dat": "x", "map": MAP, "dim": 3},
        {"mat": "K", "rows": MAP, "columns": MAP, "access": "inc"},
    ]
    vectors = [{"dat": "u", "map": MAP}, {"dat": "y", "map": MAP, "access": "inc"}]
    loops = {"stiffness": args, "multiply": [args[0], *vectors]}
    requests = [
        LoopRequest(n, {"over": "cells", "args": a}, "bench") for n, a in loops.items()
    ]
    done = prepare(mesh_of("delaunay3d", cells), requests, Options(target="cpu"))
    plan, x = done.plan["stiffness"], np.ascontiguousarray(done.mesh.coordinates)
    basis = skfem.Basis(to_skfem(done.mesh), skfem.ElementTetP1())
    wanted = laplace.assemble(basis)
    local = Assembly(stiffness, plan, store="local")(x=x)
    rows = [*_from_plan(plan, x, wanted), *_others(plan, local, basis)]
    seconds = {(r["assembly"], r["threads"]): r["ms"] for r in rows}
    for row in rows:
        other = "coo_array.tocsr" if row["assembly"] == "batch" else "scikit-fem"
        row["against"] = other
        row["times"] = seconds[other, 1] / row["ms"]
        row["bar"] = BARS[other] if row["assembly"] in ("batch", "coloured") else None
        row["MB"] = None if (moved := row.pop("bytes", None)) is None else moved / 1e6
        row["GB/s"] = None if moved is None else 1e-6 * moved / row["ms"]
    sizes = {"cells": len(local.dofs), "nonzeros": plan.matrices["K"].columns.size}
    products = [*_products(plan, done.plan["multiply"], local, x)]
    report("fem", rows, sizes=sizes, products=products)
    table(products)


def _products(
    plan: LoopPlan, free: LoopPlan, local: LocalMatrices, x: np.ndarray
) -> Iterator[dict[str, Any]]:
    """The same product by every way, in turns."""
    u = np.random.default_rng(0).standard_normal(local.n_rows)
    made = Assembly(stiffness, plan)(x=x)
    wanted = made.to_scipy() @ u
    loop, y = ParLoop(multiply, free), np.zeros_like(u)
    stored = {"rows": Product(made), "half of the matrices": Product(local.half(), plan)}
    ways: dict[str, Callable[[], Any]] = {
        n: partial(p, u, out=y) for n, p in stored.items()
    }
    ways["no matrix"] = partial(loop, x=x, u=u, y=y)
    for threads in range(1, min(2, numba.config.NUMBA_NUM_THREADS) + 1):
        numba.set_num_threads(threads)
        for name, run in ways.items():
            y[:] = 0
            run()
            off = float(np.abs(y - wanted).max() / np.abs(wanted).max())
            if off > 1e-12:
                raise SystemExit(f"error: the product by {name} is off by {off:.1e}")
        for _ in range(CALLS):
            ways["no matrix"]()
        seconds = fastest(ways, 30)
        yield from (
            {"product by": name, "threads": threads, "ms": 1e3 * s}
            for name, s in seconds.items()
        )


def _row(
    name: str, threads: int, run: Callable[[], Any], error: float | None
) -> dict[str, Any]:
    return {"assembly": name, "threads": threads, "ms": 1e3 * best(run), "error": error}


def _from_plan(plan: LoopPlan, x: np.ndarray, wanted: Any) -> list[dict[str, Any]]:
    rows, most = [], max(abs(wanted.data))
    moved = {one.store: one.assembly for one in store_bytes(plan.matrices["K"], 8, [plan])}
    for name, store, strategy in WAYS:
        assemble, bits = Assembly(stiffness, plan, store=store, strategy=strategy), set()
        for threads in range(1, min(2, numba.config.NUMBA_NUM_THREADS) + 1):
            numba.set_num_threads(threads)
            made = assemble(x=x)
            bits.add(made.values.tobytes())
            error = abs(made.to_scipy() - wanted).max() / most
            row = _row(name, threads, lambda assemble=assemble: assemble(x=x), error)
            # two steps to a matrix that is added up are not in the formulas
            rows.append(row | {"bytes": None if name == "two-step" else moved[store]})
        if len(bits) > 1:
            raise SystemExit(f"{name}: the bits depend on the number of threads")
    return rows


def _others(plan: LoopPlan, local: Any, basis: Any) -> list[dict[str, Any]]:
    matrix, n = plan.matrices["K"], local.n_rows
    i, j = np.divmod(np.arange(16), 4)
    pair = (local.dofs[:, i].ravel(), local.dofs[:, j].ravel())
    entries = local.values.ravel()
    sums = BatchSums(matrix.place["stiffness"], matrix.columns.size)
    return [
        _row("batch", 1, lambda: sums(entries), None),
        _row(
            "coo_array.tocsr",
            1,
            lambda: scipy.sparse.coo_array((entries, pair), (n, n)).tocsr(),
            None,
        ),
        _row("scikit-fem", 1, lambda: laplace.assemble(basis), None),
    ]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
