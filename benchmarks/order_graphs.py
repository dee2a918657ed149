"""Graphs for the benchmark of orders: meshes, hard shapes, and files of reference graphs."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.io
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import Delaunay

from meshprep.mesh.incidence import Csr, point_graph
from meshprep.ordering import LocalityProblem


def triangles(n_points: int, *, shuffled: bool = False) -> LocalityProblem:
    """About ``n_points`` points of a square cut into triangles, row by row or shuffled."""
    side = int(n_points**0.5)
    c = np.arange(side * side, dtype=np.int32).reshape(side, side)
    a, b, d, e = (x.ravel() for x in (c[:-1, :-1], c[:-1, 1:], c[1:, 1:], c[1:, :-1]))
    table = np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, e], 1)])
    if shuffled:
        table = np.random.default_rng(1).permutation(side * side).astype(np.int32)[table]
    return LocalityProblem(table, side * side)


def strips(n_points: int, n_components: int) -> LocalityProblem:
    """Strips of triangles, all of one length, under shuffled numbers."""
    length = n_points // n_components
    first = np.arange(n_components)[:, None] * length + np.arange(length - 2)
    number = np.random.default_rng(2).permutation(n_components * length).astype(np.int32)
    table = number[first.reshape(-1, 1) + np.arange(3)]
    return LocalityProblem(table, n_components * length)


def shapes() -> Iterator[tuple[str, LocalityProblem]]:
    """A star and a path of a million points, a complete graph of 3,000."""
    n = 1_000_000
    number = np.random.default_rng(3).permutation(n).astype(np.int32)
    yield "star of 1,000,000", LocalityProblem(np.stack([0 * number[1:], number[1:]], 1), n)
    yield "path of 1,000,000", LocalityProblem(np.stack([number[:-1], number[1:]], 1), n)
    yield "complete, 3,000", LocalityProblem(np.arange(3000, dtype=np.int32)[None, :], 3000)


def synthetic() -> Iterator[tuple[str, Csr, None]]:
    """Small graphs of several kinds, under random numbers, where no files are given."""
    random = np.random.default_rng(4)
    for side in (12, 30):
        problem = triangles(side * side, shuffled=True)
        yield f"triangles {side}x{side}", problem.graph, None
    for n in (200, 1000, 3000):
        for d in (2, 3):
            cells = Delaunay(random.random((n, d))).simplices.astype(np.int32)
            yield f"Delaunay {d}-D, {n}", point_graph(cells, n), None
        parent = np.array([random.integers(max(0, i - 40), i) for i in range(1, n)])
        extra = random.integers(0, n, (n // 4, 2))
        edges = np.vstack([np.stack([np.arange(1, n), parent], 1), extra])
        number = random.permutation(n)
        yield f"network, {n}", point_graph(number[edges].astype(np.int32), n), None


def reference(folder: Path) -> Iterator[tuple[str, Csr, dict[str, str]]]:
    """Matrix Market files with the figures of other programs in ``ref.csv``."""
    with open(folder / "ref.csv") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        m = csr_matrix(scipy.io.mmread(folder / f"{row['matrix']}.mtx"))
        pairs = np.stack((m + m.T).nonzero(), 1).astype(np.int32)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        yield row["matrix"], point_graph(pairs, m.shape[0]), row


def as_problem(graph: Csr) -> LocalityProblem:
    """A graph as a map from its edges to their ends."""
    ends = np.repeat(np.arange(graph.n_rows, dtype=np.int32), np.diff(graph.offset))
    return LocalityProblem(np.stack([ends, graph.index], 1), graph.n_rows)


def scipy_rcm(graph: Csr) -> NDArray[np.int32]:
    """The peer: scipy's reverse Cuthill-McKee."""
    n = graph.n_rows
    matrix = csr_matrix(
        (np.ones(graph.index.size, np.int8), graph.index, graph.offset), (n, n)
    )
    return reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int32)
