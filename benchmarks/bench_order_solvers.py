"""What an order of the points is worth to a finite-element solver, for each order and its peers.

    python benchmarks/bench_order_solvers.py [SCALE]

Linear and quadratic elements on triangles and tetrahedra of Gmsh, whose own numbers are what all is
divided by: below one is better. Assembly looks for each entry in its row; the product is SciPy's;
``ilu-cg`` is SciPy's ``spilu`` and then its ``cg``, together. The Cholesky factor is that of the
matrix as it is numbered, counted without computing it. Cells follow their points, under the orders
of others, too. Factorisations are of a mesh with fewer cells. Processor time, the least of several
rounds by turns. SCALE multiplies the cells.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from bench_order_loops import processor_time
from common import fastest, report
from jumps import count_jumps
from lagrange import assemble, cholesky_entries, pattern_of, reference_integrals
from numpy.typing import NDArray
from order_peers import PeerCase, TimedOrder, installed_peers, mesher_case
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg, spilu

from meshprep.ordering import METHODS, LocalityProblem, figures
from meshprep_runtime import Ordering

# Shape, cells of the loops, and cells of the factorisations of linear and quadratic elements.
SHAPES = (
    ("airfoil-triangles", 160_000, (20_000, 5_000)),
    ("holes-tetrahedra", 80_000, (12_000, 2_500)),
)
ROUNDS = 5
ROUNDS_OF_FACTORISATIONS = 1
# Entries that a round of products passes.
ENTRIES_OF_A_ROUND = 10_000_000
# Entries of the factors that are this small beside their column are left out.
DROP = 0.01
# What the incomplete factors may have for each entry of the matrix; more than they come to.
MOST_FILL = 50
TOLERANCE = 1e-8
MOST_ITERATIONS = 500


class Numbered(NamedTuple):
    """A mesh under an order, and the matrix of its form.

    ``values`` is a seeded vector, the same at each point under every order.
    """

    cells: NDArray[np.int32]
    points: NDArray[np.float64]
    matrix: csr_array
    values: NDArray[np.float64]


def main(scale: float = 1.0) -> None:
    """Print and save the table."""
    rows = []
    peers, absent = installed_peers()
    for shape, loop_cells, factor_cells in SHAPES:
        for order in (1, 2):
            loops = mesher_case(shape, int(scale * loop_cells), order)
            factors = mesher_case(shape, int(scale * factor_cells[order - 1]), order)
            rows += rows_of_case(loops, factors, peers)
    report("order-solvers", rows, absent=absent)


def rows_of_case(
    loops: PeerCase, factors: PeerCase, peers: dict[str, Callable[[PeerCase], TimedOrder]]
) -> list[dict[str, Any]]:
    """A row for each order of a mesh; ``factors`` is the same with fewer cells."""
    rows = _loops(loops, peers)
    of_factors = _factorisations(factors, peers)
    for name, row in rows.items():
        row |= of_factors[name]
    return list(rows.values())


def _loops(
    case: PeerCase, peers: dict[str, Callable[[PeerCase], TimedOrder]]
) -> dict[str, dict[str, Any]]:
    """Figures of each order, its time, and those of assembly and products, by its name."""
    rows: dict[str, dict[str, Any]] = {}
    works: dict[tuple[str, str], Callable[[], Any]] = {}
    integrals = reference_integrals(case.dimension, case.order)
    for name, order in _orders(case, peers).items():
        numbered = _under(case, name, order.new_to_old, integrals)
        matrix = numbered.matrix
        shape = LocalityProblem(numbered.cells, len(numbered.points), block_size=2048)
        measured = figures(shape)
        rows[name] = {
            "mesh": f"{case.shape.partition('-')[2]} P{case.order}",
            "points": len(numbered.points),
            "order": name,
            "order s": order.seconds,
            "bandwidth": measured.bandwidth,
            "profile": measured.profile,
            "lines": measured.lines,
            "jumps": count_jumps(
                numbered.cells, len(numbered.points), assembled_bytes(matrix)
            ),
        }
        works[name, "assembly"] = partial(
            assemble,
            numbered.cells,
            numbered.points,
            case.dimension,
            *integrals,
            matrix.indptr,
            matrix.indices,
            np.empty(matrix.nnz),
        )
        works[name, "product"] = partial(_multiply, matrix, numbered.values)

    seconds = fastest(works, ROUNDS, seconds=processor_time)
    for name, row in rows.items():
        for task in ("assembly", "product"):
            row[task] = seconds[name, task] / seconds["mesher", task]
    return rows


def assembled_bytes(matrix: csr_array) -> int:
    """Bytes that assembly moves for a point: its row, and its place."""
    of_entry = matrix.data.itemsize + matrix.indices.itemsize
    return of_entry * (matrix.nnz // matrix.shape[0]) + 3 * matrix.data.itemsize


def _factorisations(
    case: PeerCase, peers: dict[str, Callable[[PeerCase], TimedOrder]]
) -> dict[str, dict[str, Any]]:
    """Fill of complete factors, and time and iterations with incomplete ones, by the order."""
    rows: dict[str, dict[str, Any]] = {}
    works: dict[str, Callable[[], Any]] = {}
    integrals = reference_integrals(case.dimension, case.order)
    for name, order in _orders(case, peers).items():
        numbered = _under(case, name, order.new_to_old, integrals)
        matrix = numbered.matrix
        entries, products = cholesky_entries(matrix.indptr, matrix.indices)
        works[name] = partial(solve, matrix, numbered.values)
        rows[name] = {
            "points of factors": len(numbered.points),
            "iterations": solve(matrix, numbered.values),
            "fill": 2 * entries / (matrix.nnz + matrix.shape[0]),
            "products": products,
        }

    seconds = fastest(works, ROUNDS_OF_FACTORISATIONS, seconds=processor_time)
    for name, row in rows.items():
        row["ilu-cg"] = seconds[name] / seconds["mesher"]
        row["factor"] = row["fill"] / rows["mesher"]["fill"]
    return rows


def _orders(
    case: PeerCase, peers: dict[str, Callable[[PeerCase], TimedOrder]]
) -> dict[str, TimedOrder]:
    """The mesher's order, a shuffled one, ours and those of the peers, by name."""
    n_points = case.problem.n_points
    shuffled = np.random.default_rng(1).permutation(n_points)
    orders = {
        "mesher": TimedOrder(np.arange(n_points), 0.0),
        "shuffled": TimedOrder(shuffled, 0.0),
    }
    for name in METHODS:
        if name != "none":
            orders[name] = order_of_ours(case.problem, name)
    for name, function in peers.items():
        orders[name] = function(case)
    return orders


def order_of_ours(problem: LocalityProblem, name: str) -> TimedOrder:
    """The order of a method of ours, without the time of its first call, which compiles."""
    new_to_old = METHODS[name].function(problem)
    begun = time.process_time()
    METHODS[name].function(replace(problem))
    return TimedOrder(new_to_old, time.process_time() - begun)


def _under(
    case: PeerCase,
    name: str,
    new_to_old: NDArray[np.integer],
    integrals: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Numbered:
    """The mesh under an order, and its matrix, assembled."""
    problem = case.problem
    ordering = Ordering.from_new_to_old(new_to_old)
    cells = ordering.old_to_new[problem.table]
    # The mesher's cells stay where they are, shuffled ones are shuffled, others follow.
    if name == "shuffled":
        cells = np.random.default_rng(2).permutation(cells)
    elif name != "mesher":
        cells = cells[problem.follow(cells)]
    points = ordering.apply(problem.coordinates)
    matrix = pattern_of(cells, problem.n_points)
    assemble(
        cells,
        points,
        case.dimension,
        *integrals,
        matrix.indptr,
        matrix.indices,
        matrix.data,
    )
    values = np.random.default_rng(3).random(problem.n_points)
    return Numbered(cells, points, matrix, ordering.apply(values))


def _multiply(matrix: csr_array, values: NDArray[np.float64]) -> None:
    for _ in range(max(1, ENTRIES_OF_A_ROUND // matrix.nnz)):
        matrix @ values


def solve(matrix: csr_array, solution: NDArray[np.float64]) -> int | None:
    """Find the solution from its product with the matrix; returns the iterations of ``cg``.

    None where they do not converge: incomplete factors with pivots are not symmetric.
    """
    right = matrix @ solution
    factors = spilu(
        matrix.tocsc(),
        drop_tol=DROP,
        drop_rule="basic",
        fill_factor=MOST_FILL,
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    iterations = 0

    def count(_: NDArray[np.float64]) -> None:
        nonlocal iterations
        iterations += 1

    preconditioner = LinearOperator(matrix.shape, factors.solve)
    found, failed = cg(
        matrix,
        right,
        rtol=TOLERANCE,
        maxiter=MOST_ITERATIONS,
        M=preconditioner,
        callback=count,
    )
    if failed:
        return None
    assert abs(found - solution).max() < 1e-3
    return iterations


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
