"""What plain loops feel of an order: the time of three loops under each order of the points.

    python benchmarks/bench_order_loops.py [POINTS ...]

Random points in random order, cut into triangles or tetrahedra. Loops are what a solver without
meshprep compiles: edges gather from both ends and add to both, cells do so for their corners, and
a sparse matrix times a vector. Elements follow their points as for ``--target cpu``, the shuffled
ones stand in random order. Seconds of processor, the least of several rounds; orders by turns.
Beside them the jumps of a cache that is simulated, for loops that move two states of a point.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from common import fastest, report
from jumps import count_jumps
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from meshprep.mesh.incidence import Csr, point_graph
from meshprep.ordering import METHODS, LocalityProblem, figures
from meshprep_runtime import Ordering

SIZES = (10_000, 60_000, 250_000, 1_000_000)
ORDERS = ("shuffled", "gps", "rcm", "sloan", "hilbert")
# Values of a point in the loops over edges and cells, as many as a state of Euler's equations has.
VALUES = 4
# A round runs a loop as often as it takes to reach this many elements.
ELEMENTS_OF_A_ROUND = 4_000_000
ROUNDS = 7


class Cells(NamedTuple):
    """The cells of a mesh, (n_cells, arity), and its points, (n_points, d)."""

    table: NDArray[np.int32]
    points: NDArray[np.float64]


@numba.njit(nogil=True)
def loop_over_edges(
    edges: NDArray[np.int32],
    state: NDArray[np.float64],
    residual: NDArray[np.float64],
    times: int,
) -> None:
    """Each edge adds the difference of its ends to one of them, and takes it from the other."""
    for _ in range(times):
        for e in range(edges.shape[0]):
            a = edges[e, 0]
            b = edges[e, 1]
            for i in range(VALUES):
                flow = 0.5 * (state[a, i] - state[b, i])
                residual[a, i] -= flow
                residual[b, i] += flow


@numba.njit(nogil=True)
def loop_over_cells(
    cells: NDArray[np.int32],
    state: NDArray[np.float64],
    residual: NDArray[np.float64],
    times: int,
) -> None:
    """Each cell adds the mean of its corners to all of them."""
    for _ in range(times):
        for c in range(cells.shape[0]):
            for i in range(VALUES):
                total = 0.0
                for j in range(cells.shape[1]):
                    total += state[cells[c, j], i]
                for j in range(cells.shape[1]):
                    residual[cells[c, j], i] += 0.25 * total


@numba.njit(nogil=True)
def multiply(
    offset: NDArray[np.int64],
    index: NDArray[np.int32],
    values: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    times: int,
) -> None:
    """A sparse matrix in rows times a vector."""
    for _ in range(times):
        for row in range(offset.size - 1):
            total = 0.0
            for k in range(offset[row], offset[row + 1]):
                total += values[k] * x[index[k]]
            y[row] = total


def main(sizes: tuple[int, ...] = SIZES) -> None:
    """Print and save the table."""
    report("order-loops", loops_of_sizes(sizes))


def loops_of_sizes(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """A row for each mesh and order: the times of the loops, over those of the shuffled one."""
    rows = []
    for n_points in sizes:
        for dimension in (2, 3):
            rows += _rows_of_mesh(random_cells(n_points, dimension))
    return rows


def random_cells(n_points: int, dimension: int) -> Cells:
    """Random points in random order, cut into triangles or tetrahedra; cells shuffled."""
    random = np.random.default_rng(1)
    points = random.random((n_points, dimension))
    table = Delaunay(points).simplices.astype(np.int32)
    return Cells(random.permutation(table), points)


def _rows_of_mesh(cells: Cells) -> list[dict[str, Any]]:
    n_points, dimension = cells.points.shape
    problem = LocalityProblem(
        cells.table, n_points, cells.points, target="cpu", block_size=2048
    )
    edges = edges_of(problem.graph)
    rows = []
    works: dict[tuple[str, str], Callable[[], None]] = {}
    for name in ORDERS:
        # Number the points, and let edges and cells follow.
        if name == "shuffled":
            ordering = Ordering.identity(n_points)
            moved_cells = cells.table
            moved_edges = np.random.default_rng(2).permutation(edges)
        else:
            ordering = Ordering.from_new_to_old(METHODS[name].function(problem))
            moved_cells = _following(cells.table, ordering)
            moved_edges = _following(edges, ordering)
        measured = figures(LocalityProblem(moved_cells, n_points, block_size=2048))
        rows.append(
            {
                "mesh": "triangles" if dimension == 2 else "tetrahedra",
                "points": n_points,
                "order": name,
                "bandwidth": measured.bandwidth,
                "lines": measured.lines,
                "jumps, edges": _jumps_of_loop(moved_edges, n_points),
                "jumps, cells": _jumps_of_loop(moved_cells, n_points),
            }
        )
        for loop, run in _loops(moved_edges, moved_cells, n_points):
            works[name, loop] = run

    seconds = fastest(works, ROUNDS, seconds=processor_time)
    for row in rows:
        for name, loop in works:
            if name == row["order"]:
                row[loop] = seconds[name, loop] / seconds["shuffled", loop]
    return rows


def _jumps_of_loop(table: NDArray[np.int32], n_points: int) -> int:
    """Lines that a loop over elements waits for, which reads a state and adds to another."""
    point_bytes = 2 * VALUES * np.dtype(np.float64).itemsize
    return int(count_jumps(table, n_points, point_bytes))


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of processor that this process spends on one run."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def edges_of(graph: Csr) -> NDArray[np.int32]:
    """The edges of a symmetric graph, each once."""
    first = np.repeat(np.arange(graph.n_rows, dtype=np.int32), np.diff(graph.offset))
    once = first < graph.index
    return np.stack([first[once], graph.index[once]], axis=1)


def _following(table: NDArray[np.int32], ordering: Ordering) -> NDArray[np.int32]:
    """Elements in new numbers, in the order in which they follow their points."""
    moved = ordering.old_to_new[table]
    follow = LocalityProblem(moved, ordering.size, target="cpu").follow(moved)
    return moved[follow]


def _loops(
    edges: NDArray[np.int32], cells: NDArray[np.int32], n_points: int
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The loops of a mesh by name, compiled and run once."""
    random = np.random.default_rng(3)
    state = random.random((n_points, VALUES))
    residual = np.zeros_like(state)
    matrix = point_graph(edges, n_points)
    entries = random.random(matrix.index.size)
    x = random.random(n_points)
    y = np.zeros(n_points)
    offset = matrix.offset.astype(np.int64)
    loops: dict[str, tuple[int, Callable[..., None]]] = {
        "edges": (len(edges), partial(loop_over_edges, edges, state, residual)),
        "cells": (len(cells), partial(loop_over_cells, cells, state, residual)),
        "product": (
            matrix.index.size,
            partial(multiply, offset, matrix.index, entries, x, y),
        ),
    }
    for name, (n_elements, loop) in loops.items():
        loop(1)
        yield name, partial(loop, max(1, ELEMENTS_OF_A_ROUND // n_elements))


if __name__ == "__main__":
    main(tuple(int(word) for word in sys.argv[1:]) or SIZES)
