"""Products and sweeps in every store of a matrix on one thread of this CPU, beside scipy.

    python benchmarks/bench_stores.py [DOFS]

Poisson's equation on quads of degree 1 to 4 with 250,000 dofs: milliseconds of processor of a
product, the least of many turns. ``sweeps`` are those of ``ColouredSsor``, forward and backward,
over compressed rows and over the matrices of the elements. The second table has the iterations of
conjugate gradients to 1e-8 on a smaller problem. Every product and sweep is compared with scipy's
or with the other store's.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from bench_gpu_stores import lazy_ellpack
from common import fastest, report, table

import poisson
from meshprep_runtime.matrix import ColouredSsor, Ellpack, Product, cg
from meshprep_runtime.matrix.kernels import MOST_DOFS

DEGREES = (1, 2, 3, 4)
TURNS = 15
COLUMNS = ("CSR", "ELLPACK", "lazy", "elements", "half")
# Dofs of the problems that are solved.
SOLVED = 10_000


def main(dofs: int = 250_000) -> None:
    """Print and save the tables."""
    numba.set_num_threads(1)
    products = [product_row(degree, dofs) for degree in DEGREES]
    table(products)
    solved = [iteration_row(degree, min(SOLVED, dofs)) for degree in DEGREES]
    report("stores", solved, products=products)


def problem_of(degree: int, dofs: int) -> Any:
    """The matrices of a square with so many dofs, in the order of the plan."""
    cells = round(dofs**0.5 / degree)
    _, ordered = poisson.prepared_square(poisson.square(cells, degree))
    return poisson.integrate(ordered)


def product_row(degree: int, dofs: int) -> dict[str, Any]:
    """Milliseconds of a product and of sweeps in each store."""
    problem = problem_of(degree, dofs)
    rows, local = problem.csr(), problem.local()
    A = rows.to_scipy()
    x = np.random.default_rng(0).standard_normal(A.shape[1])
    stores = {
        "CSR": rows,
        "ELLPACK": Ellpack.from_csr(rows),
        "lazy": lazy_ellpack(local),
        "elements": local,
    }
    if local.dofs.shape[1] <= MOST_DOFS:
        stores["half"] = local.half()
    works: dict[str, Callable[[], Any]] = {"scipy": lambda: A @ x}
    y = np.empty(A.shape[0])
    for name, matrix in stores.items():
        product = Product(matrix)
        np.testing.assert_allclose(product @ x, A @ x, atol=1e-10)
        works[name] = partial(product, x, out=y)
    by_rows, by_elements = ColouredSsor(rows), ColouredSsor(local)
    np.testing.assert_allclose(by_elements(x), by_rows(x), rtol=1e-9, atol=1e-9)
    works["sweeps, CSR"] = lambda: by_rows(x)
    works["sweeps, elements"] = lambda: by_elements(x)
    seconds = fastest(works, TURNS, processor_seconds)
    columns = ("scipy", *COLUMNS, "sweeps, CSR", "sweeps, elements")
    ms = {f"{c} ms": 1e3 * seconds[c] if c in seconds else None for c in columns}
    return {"degree": degree, "rows": A.shape[0], "nonzeros": A.nnz} | ms


def iteration_row(degree: int, dofs: int) -> dict[str, Any]:
    """Iterations without a preconditioner, and with sweeps over each store."""
    problem = problem_of(degree, dofs)
    rows, local, load = problem.csr(), problem.local(), problem.load()
    by_rows = ColouredSsor(rows)
    ways = {"none": None, "CSR": by_rows, "elements": ColouredSsor(local)}
    found = {name: cg(Product(rows), load, way).iterations for name, way in ways.items()}
    return {"degree": degree, "rows": load.size, "colours": by_rows.colours} | found


def processor_seconds(work: Callable[[], Any]) -> float:
    """Seconds of this process: a busy machine counts little."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
