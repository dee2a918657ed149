"""Sparse products on this CPU: CSR beside scipy, local matrices beside CSR, what orders give.

GB/s are of the least bytes by formula: values and columns once, x and y once.
Everything that is compared takes turns, and the fastest of the turns counts. In its turn each runs
twice, and the second time counts, as in a solver: a second thread that sleeps must be woken first.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
import scipy.sparse as sparse
from common import csr_product_bytes, fastest, report, table, timed
from quad_products import QuadElement, against_lma

import poisson
from meshprep.io.generate import generate
from meshprep.io.graphs.common import graph_mesh
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime.cuda.build import compile_program
from meshprep_runtime.matrix import CsrMatrix
from meshprep_runtime.matrix.cuda_products import (
    csr_program,
    local_program,
    sweep_program,
)
from meshprep_runtime.matrix.cuda_text import CsrThreads
from meshprep_runtime.matrix.kernels import MOST_DOFS
from meshprep_runtime.matrix.products import Product

TURNS = 25


def main(scale: float = 1.0) -> None:
    """Print the tables and save them."""
    products = [_against_scipy(name, made) for name, made in matrices(scale).items()]
    print("CSR beside scipy")
    table(products)
    local = [_against_csr(degree, scale) for degree in (1, 2, 3, 4)]
    print("\nLocal matrices beside CSR, Poisson on quads")
    table(local)
    orders = [_shuffled(kind, scale) for kind in ("delaunay2d", "delaunay3d")]
    print("\nShuffled and reordered")
    report("spmv", orders, products=products, local=local)
    print("\nRegisters of a thread on GPUs, f8")
    report("spmv-registers", registers())


def _awake(work: Callable[[], Any]) -> float:
    """Seconds of a run after one that wakes the threads."""
    work()
    return timed(work)


def matrices(scale: float) -> dict[str, sparse.csr_array]:
    """Patterns of the kinds that the rule was trained on, with values by chance."""
    rng = np.random.default_rng(0)
    n, side = round(4e5 * scale), round(108 * scale ** (1 / 3))
    with_giants, without = dc1_like(rng, n)
    found = {
        "4 a row": neighbours(round((0.2 * n) ** 0.5)),
        "7-point stencil": stencil(side),
        "P1, tetrahedra": mesh_matrix("delaunay3d", n),
        "Q1, hexahedra": box_matrix(round((n / 2) ** (1 / 3))),
        "Q1, elasticity": sparse.kron(
            box_matrix(round((n / 15) ** (1 / 3))), np.ones((3, 3))
        ),
        "power law": power_law(rng, n),
        "circuit": circuit(rng, n // 2),
        "two giant rows": with_giants,
        "the same without": without,
    }
    for p in (1, 2, 3, 4):
        cells = round((n / 4) ** 0.5 / p)
        found[f"quads of degree {p}"] = (
            poisson.integrate(poisson.square(cells, p)).csr().to_scipy()
        )
    return {name: with_values(rng, one) for name, one in found.items()}


def with_values(rng: np.random.Generator, pattern: sparse.csr_array) -> sparse.csr_array:
    """The pattern with values by chance, and 4-byte indices."""
    made = sparse.csr_array(pattern)
    made.sort_indices()
    index = (made.indices.astype(np.int32), made.indptr.astype(np.int32))
    return sparse.csr_array((rng.standard_normal(made.nnz), *index), shape=made.shape)


def neighbours(side: int) -> sparse.csr_array:
    """The four neighbours of a point on a torus."""
    one = sparse.eye_array(side)
    ring = sparse.diags_array([np.ones(side - 1)] * 2, offsets=[-1, 1]).tolil()
    ring[0, -1] = ring[-1, 0] = 1
    return sparse.csr_array(sparse.kron(ring, one) + sparse.kron(one, ring))


def stencil(side: int) -> sparse.csr_array:
    """A point and its six neighbours on a cube."""
    line = sparse.diags_array([np.ones(side)] * 3, offsets=[-1, 0, 1], shape=(side, side))
    one = sparse.eye_array(side)
    parts = [(line, one, one), (one, line, one), (one, one, line)]
    total = sum(sparse.kron(sparse.kron(a, b), c) for a, b, c in parts)
    return sparse.csr_array(total)


def pattern_of(points: np.ndarray, n: int) -> sparse.csr_array:
    """Points that share an element."""
    elements, k = points.shape
    first = np.arange(0, points.size + 1, k)
    touches = sparse.csr_array((np.ones(points.size), points.ravel(), first), (elements, n))
    return sparse.csr_array(touches.T @ touches)


def mesh_matrix(kind: str, cells: int) -> sparse.csr_array:
    """P1 elements on a Delaunay mesh in its own, shuffled order."""
    mesh = generate(kind, cells=cells * (6 if kind == "delaunay3d" else 2), seed=1)
    return pattern_of(mesh.maps["cells->nodes"].table, mesh.size("nodes"))


def box_matrix(side: int) -> sparse.csr_array:
    """27 a row."""
    line = sparse.diags_array([np.ones(side)] * 3, offsets=[-1, 0, 1], shape=(side, side))
    return sparse.csr_array(sparse.kron(sparse.kron(line, line), line))


def power_law(rng: np.random.Generator, n: int) -> sparse.csr_array:
    """Most rows have a few entries, some thousands."""
    lengths = np.minimum((rng.pareto(1.6, n) + 1) * 1.3, 5000).astype(np.int64)
    row = np.repeat(np.arange(n), lengths)
    return sparse.csr_array(
        (np.ones(row.size), (row, rng.integers(0, n, row.size))), (n, n)
    )


def circuit(rng: np.random.Generator, n: int) -> sparse.csr_array:
    """Few neighbours near by, some anywhere, and a few nets that hundreds of points share."""
    near, far = np.arange(2 * n) // 2, rng.integers(0, n, n // 2)
    nets = rng.integers(0, n, n // 2000 + 1)[rng.integers(0, n // 2000 + 1, n // 4)]
    row = np.concatenate([near, far, rng.integers(0, n, n // 4)])
    column = np.concatenate(
        [near + rng.integers(1, 30, 2 * n), rng.integers(0, n, n // 2), nets]
    )
    half = sparse.coo_array((np.ones(row.size), (row, np.minimum(column, n - 1))), (n, n))
    return sparse.csr_array(half + half.T + sparse.eye_array(n))


def dc1_like(rng: np.random.Generator, n: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    """6.5 a row near the diagonal, with and without two rows of n and n / 2.4 entries."""
    row = np.repeat(np.arange(n), 6)
    column = np.clip(row + rng.integers(-50, 50, row.size), 0, n - 1)
    giant = np.concatenate([np.full(n, 11), np.full(round(n / 2.4), n // 2)])
    at = np.concatenate([np.arange(n), rng.integers(0, n, round(n / 2.4))])
    without = sparse.csr_array((np.ones(row.size), (row, column)), (n, n))
    rows, columns = np.append(row, giant), np.append(column, at)
    return sparse.csr_array((np.ones(rows.size), (rows, columns)), (n, n)), without


def csr(made: sparse.csr_array) -> CsrMatrix:
    """The arrays of scipy's matrix."""
    return CsrMatrix(made.indptr, made.indices, made.data)


def registers() -> list[dict[str, Any]]:
    """Of every kernel, compiled without a GPU; the text does not depend on the matrix."""
    rows = with_values(np.random.default_rng(0), box_matrix(6))
    programs = {
        f"CSR, {c} threads a row": csr_program(csr(rows), CsrThreads(128, c, 1))
        for c in (1, 2, 4, 8, 16, 32)
    }
    colour, inverse = np.arange(rows.shape[0]), 1 / rows.diagonal()
    programs["coloured sweep"] = sweep_program(csr(rows), colour, inverse, backward=False)
    for degree in (1, 2, 3, 4):
        prepared, ordered = poisson.prepared_square(poisson.square(8, degree), 128, "gpu")
        local = poisson.integrate(ordered).local()
        plan = prepared.plan[poisson.CELLS_TO_DOFS]
        for name, store in (("local", local), ("half", local.half())):
            programs[f"{name} matrices, degree {degree}"] = local_program(store, plan).then[
                0
            ]
    found = []
    for name, program in programs.items():
        code = {arch: compile_program(program, arch) for arch in ("sm_80", "sm_90")}
        found.append(
            {"kernel": name}
            | {arch: one.registers for arch, one in code.items()}
            | {f"spilled, {arch}": one.spilled for arch, one in code.items()}
        )
    return found


def _against_scipy(name: str, made: sparse.csr_array) -> dict[str, Any]:
    threads = numba.get_num_threads()
    matrix, x = csr(made), np.ones(made.shape[1])
    one, all_of_them, y = (
        Product(matrix, threads=1),
        Product(matrix),
        np.empty(made.shape[0]),
    )
    works: dict[str, Callable[[], Any]] = {"scipy": lambda: made @ x}
    works |= {"one": lambda: one(x, out=y), "all": lambda: all_of_them(x, out=y)}
    found = fastest(works, TURNS, _awake)
    least = csr_product_bytes(made.shape[0], made.nnz, 8)
    return {
        "matrix": name,
        "rows": made.shape[0],
        "nonzeros": made.nnz,
        "scipy, ms": 1e3 * found["scipy"],
        "1 thread, ms": 1e3 * found["one"],
        f"{threads} threads, ms": 1e3 * found["all"],
        "scipy / 1": found["scipy"] / found["one"],
        f"1 / {threads}": found["one"] / found["all"],
        "GB/s, 1": 1e-9 * least / found["one"],
        f"GB/s, {threads}": 1e-9 * least / found["all"],
    }


def _against_csr(degree: int, scale: float) -> dict[str, Any]:
    """Equal rows for all degrees; the local matrices in the order of the plan."""
    cells = round((2.5e5 * scale) ** 0.5 / degree)
    prepared, ordered = poisson.prepared_square(poisson.square(cells, degree))
    problem = poisson.integrate(ordered)
    plan, local = prepared.plan[poisson.CELLS_TO_DOFS], problem.local()
    stores = {
        "csr": Product(problem.csr()),
        "local": Product(local, plan),
    }
    # Half of larger matrices is not multiplied on a processor.
    if local.dofs.shape[1] <= MOST_DOFS:
        stores["half"] = Product(local.half(), plan)
    x, y = np.ones(local.n_rows), np.empty(local.n_rows)
    works = {name: partial(product, x, out=y) for name, product in stores.items()}
    found = fastest(works, TURNS, _awake)
    return {
        "degree": degree,
        "rows": local.n_rows,
        "CSR, ms": 1e3 * found["csr"],
        "local, ms": 1e3 * found["local"],
        "half, ms": 1e3 * found["half"] if "half" in found else None,
        "CSR / local": found["csr"] / found["local"],
        "predicted": against_lma(degree, "csr", 8),
        "with x in caches": _cached(degree),
        "CSR / half": found["csr"] / found["half"] if "half" in found else None,
    }


def _cached(degree: int) -> float:
    """Bytes of CSR over those of local matrices where every value of x and y is moved once."""
    element = QuadElement(degree)
    rows = 2 * element.rows * 8
    by_rows = csr_product_bytes(element.rows, element.nonzeros, 8)
    return by_rows / (element.dofs**2 * 8 + element.dofs * 4 + rows)


def _shuffled(kind: str, scale: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    before = with_values(rng, mesh_matrix(kind, round(5e5 * scale)))
    made = sparse.coo_array(before)
    keep = made.coords[0] >= made.coords[1]
    pairs = np.column_stack([one[keep] for one in made.coords])
    graph = graph_mesh(before.shape[0], pairs)
    order = prepare(graph, (), Options(method="rcm", target="cpu")).plan.ordering[
        "vertices"
    ]
    new = order.new_to_old
    after = with_values(rng, before[new][:, new])
    x = np.ones(before.shape[1])
    products = {"before": Product(csr(before)), "after": Product(csr(after))}
    works = {name: partial(one, x) for name, one in products.items()}
    found = fastest(works, TURNS, _awake)
    return {
        "mesh": kind,
        "rows": before.shape[0],
        "nonzeros": before.nnz,
        "shuffled, ms": 1e3 * found["before"],
        "reordered, ms": 1e3 * found["after"],
        "gain": found["before"] / found["after"],
    }


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
