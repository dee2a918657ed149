"""The benchmark of orders in solvers: matrices that are right, fill as an elimination makes it."""

import json
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.spatial import Delaunay

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The script as a module, with its meshes and its table in a folder of the test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_order_solvers
    import common
    import mesher

    monkeypatch.setattr(mesher, "CACHE", tmp_path)
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    return bench_order_solvers


def second_order(corners, points):
    """Cells with the middles of their sides as Gmsh counts them, and all points."""
    import lagrange

    number = {}
    rows = []
    for cell in corners.tolist():
        sides = lagrange.MIDDLES[corners.shape[1] - 1]
        ends = [tuple(sorted((cell[a], cell[b]))) for a, b in sides]
        for side in ends:
            number.setdefault(side, len(points) + len(number))
        rows.append(cell + [number[side] for side in ends])
    middles = [points[list(side)].mean(axis=0) for side in number]
    return np.array(rows, np.int32), np.concatenate([points, middles])


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("order", [1, 2])
def test_the_form_of_a_polynomial_is_its_integral(bench, dimension, order):
    """On the unit square and cube, whose corners are points: exact for the element's degree."""
    import lagrange

    corners = np.indices((2,) * dimension).reshape(dimension, -1).T
    inside = np.random.default_rng(dimension).random((20, dimension))
    plane = np.concatenate([corners, inside])
    cells = Delaunay(plane).simplices.astype(np.int32)
    points = np.zeros((len(plane), 3))
    points[:, :dimension] = plane
    if order == 2:
        cells, points = second_order(cells, points)
    matrix = lagrange.pattern_of(cells, len(points))
    lagrange.assemble(
        cells,
        points,
        dimension,
        *lagrange.reference_integrals(dimension, order),
        matrix.indptr,
        matrix.indices,
        matrix.data,
    )
    assert abs(matrix - matrix.T).max() < 1e-13
    x, y = points[:, 0], points[:, 1]
    u = 1 + x + 2 * y
    # The integral of its square, and of the square of its gradient.
    assert u @ matrix @ u == pytest.approx(6 + 2 / 3 + 5, rel=1e-12)
    if order == 2:
        v = x * y
        assert v @ matrix @ v == pytest.approx(1 / 9 + 2 / 3, rel=1e-12)


def eliminated(graph, n):
    """Entries of the factor, and the sum of the squares of the columns, by elimination."""
    graph = graph.copy()
    counts = []
    for vertex in range(n):
        later = list(graph[vertex])
        counts.append(1 + len(later))
        graph.add_edges_from(combinations(later, 2))
        graph.remove_node(vertex)
    return sum(counts), sum(count**2 for count in counts)


@pytest.mark.parametrize("seed", range(6))
def test_fill_is_that_of_an_elimination(bench, seed):
    import lagrange

    graph = nx.gnm_random_graph(40, 30 + 15 * seed, seed=seed)
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(40), format="csr")
    matrix.setdiag(1)
    matrix = matrix.tocsr()
    found = lagrange.cholesky_entries(matrix.indptr, matrix.indices)
    assert found == eliminated(graph, 40)


def test_a_solution_is_found_or_said_to_be_missing(bench, monkeypatch):
    import lagrange

    number = np.arange(400).reshape(20, 20)
    a, b, c, d = (
        x.ravel()
        for x in (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1])
    )
    cells = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    cells = cells.astype(np.int32)
    x, y = np.divmod(np.arange(400), 20)
    points = np.stack([x, y, 0 * x], axis=1) / 20
    matrix = lagrange.pattern_of(cells, 400)
    integrals = lagrange.reference_integrals(2, 1)
    lagrange.assemble(
        cells, points, 2, *integrals, matrix.indptr, matrix.indices, matrix.data
    )
    solution = np.random.default_rng(7).random(400)
    assert 1 < bench.solve(matrix, solution) < 60
    monkeypatch.setattr(bench, "MOST_ITERATIONS", 1)
    assert bench.solve(matrix, solution) is None


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gmsh") is None, reason="needs gmsh (extra bench)")
def test_every_order_and_peer_has_a_row(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "SHAPES", (("holes-tetrahedra", 3000, (1500, 1000)),))
    # Times are not looked at.
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "ENTRIES_OF_A_ROUND", 1)
    bench.main()
    found = json.loads((tmp_path / "order-solvers.json").read_text())
    names = ["mesher", "shuffled", *(name for name in bench.METHODS if name != "none")]
    names += bench.installed_peers()[0]
    assert "Gmsh RCMK" in names
    for mesh in ("tetrahedra P1", "tetrahedra P2"):
        rows = {row["order"]: row for row in found["rows"] if row["mesh"] == mesh}
        assert list(rows) == names
        assert rows["mesher"]["factor"] == rows["mesher"]["assembly"] == 1
        assert rows["gps"]["bandwidth"] < rows["shuffled"]["bandwidth"] / 2
        assert rows["gps"]["factor"] < rows["shuffled"]["factor"]
