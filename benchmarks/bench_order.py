"""Orders of points: cost against scipy's reverse Cuthill-McKee, growth with size, and quality.

The last table is what plain loops feel of an order (bench_order_loops.py).

Bars: one call from the arrays of 400,000 triangles to orders in 0.15 s; GPS on a million points of
triangles within 2 times scipy's RCM; a star and a path of a million points and a complete graph of
3,000 within a second each.

``python benchmarks/bench_order.py [FOLDER] [LARGEST]``: FOLDER holds Matrix Market graphs and
their figures in ref.csv (generated graphs without one), LARGEST is the most points.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench_order_loops import SIZES, loops_of_sizes
from common import best, mesh_of, report
from order_graphs import (
    as_problem,
    reference,
    scipy_rcm,
    shapes,
    strips,
    synthetic,
    triangles,
)

import meshprep
from meshprep.mesh.geometry import centroids
from meshprep.mesh.incidence import Csr, point_graph
from meshprep.ordering import METHODS, LocalityProblem, figures
from meshprep.topology import derive
from meshprep_runtime import Ordering

METHOD_NAMES = [name for name in METHODS if name != "none"]
BY_GRAPH = [name for name in METHOD_NAMES if not METHODS[name].needs_coordinates]


def main(folder: Path | None = None, largest: int = 10_000_000) -> None:
    """Print and save the tables."""
    report("order", [row for case in _meshes() for row in _methods(*case)])
    report("order-arrays", _arrays())
    report("order-growth", _growth(largest))
    report("order-shapes", _shapes())
    report("order-quality", _quality(folder))
    sizes = tuple(size for size in SIZES if size <= largest)
    report("order-loops", loops_of_sizes(sizes))


def _meshes() -> list[tuple[str, LocalityProblem]]:
    cases = []
    for kind in ("delaunay2d", "delaunay3d"):
        mesh = mesh_of(kind, 1_000_000)
        table, xyz = mesh.map("cells->nodes").table, centroids(mesh, "nodes")
        assert xyz is not None
        cases.append((f"{kind} shuffled", LocalityProblem(table, len(xyz), xyz)))
        rcm = Ordering.from_new_to_old(METHODS["rcm"].function(cases[-1][1]))
        ordered = LocalityProblem(rcm.old_to_new[table], len(xyz), rcm.apply(xyz))
        cases.append((f"{kind} ordered", ordered))
    return cases


def _arrays() -> list[dict[str, Any]]:
    """One call from arrays to orders, beside scipy's order of the same points alone."""
    mesh = derive(mesh_of("delaunay2d", 400_000), ["edges->cells"])
    cells, points = mesh.map("cells->nodes").table, mesh.coordinates
    assert points is not None
    graph, sides = (
        point_graph(cells, len(points)),
        _beside(mesh.map("edges->cells").table, cells),
    )
    ways: dict[str, Callable[[], Any]] = {
        "scipy RCM, of a graph that is there": lambda: scipy_rcm(graph),
        "order(cells, points)": lambda: meshprep.order(cells, points),
        "order(cells, points, neighbours)": lambda: meshprep.order(cells, points, sides),
        "prepare": lambda: meshprep.prepare(mesh, ["edges->cells"], target="cpu"),
    }
    return [
        {"way, 400,000 triangles": name, "seconds": best(way)} for name, way in ways.items()
    ]


def _beside(pairs: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The cell beyond each side, in any order of the sides; -1 where there is none."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    first = np.searchsorted(both[:, 0], np.arange(len(cells)))
    sides = np.full(cells.shape, -1, np.int32)
    sides[both[:, 0], np.arange(len(both)) - first[both[:, 0]]] = both[:, 1]
    return sides


def _methods(name: str, problem: LocalityProblem) -> list[dict[str, Any]]:
    graph = problem.graph  # every method gets the same graph for nothing
    peer = best(lambda: scipy_rcm(graph))
    rows = [_row(name, "scipy RCM", problem, peer, peer, scipy_rcm(graph))]
    for method in METHOD_NAMES:
        function = METHODS[method].function
        seconds = best(lambda f=function: f(problem))
        rows.append(_row(name, method, problem, seconds, peer, function(problem)))
    return rows


def _row(
    name: str,
    method: str,
    problem: LocalityProblem,
    seconds: float,
    peer: float,
    new_to_old: np.ndarray,
) -> dict[str, Any]:
    found = figures(problem, Ordering.from_new_to_old(new_to_old).old_to_new)
    return {
        "points of": name,
        "method": method,
        "seconds": seconds,
        "against scipy RCM": seconds / peer,
        "bandwidth": found.bandwidth,
        "profile": f"{found.profile:.4g}",
        "rms wavefront": found.rms_wavefront,
        "lines, runs of 256": found.lines,
    }


def _growth(largest: int) -> list[dict[str, Any]]:
    rows = []
    for n in (10**4, 10**5, 10**6, 10**7):
        if n > largest:
            break
        for shuffled in (False, True):
            problem = triangles(n, shuffled=shuffled)
            how = "shuffled" if shuffled else "row by row"
            rows.append(_nanoseconds(f"triangles {how}", problem, max(3, 3 * 10**6 // n)))
    rows.append(_nanoseconds("strip shuffled", strips(10**6, 1), 5))
    rows.append(_nanoseconds("100,000 strips shuffled", strips(10**6, 10**5), 5))
    return rows


def _nanoseconds(name: str, problem: LocalityProblem, times: int) -> dict[str, Any]:
    graph, n = problem.graph, problem.n_points
    row: dict[str, Any] = {"graph": name, "points": n}
    row["scipy RCM, ns a point"] = best(lambda: scipy_rcm(graph), times) / n * 1e9
    for method in BY_GRAPH:
        seconds = best(lambda m=method: METHODS[m].function(problem), times)
        row[f"{method}, ns a point"] = seconds / n * 1e9
    return row


def _shapes() -> list[dict[str, Any]]:
    rows = []
    for name, problem in shapes():
        row: dict[str, Any] = {"graph": name, "edges": problem.graph.index.size // 2}
        for method in BY_GRAPH:
            row[f"{method}, s"] = best(lambda m=method, p=problem: METHODS[m].function(p))
        rows.append(row)
    return rows


def _quality(folder: Path | None) -> list[dict[str, Any]]:
    rows = []
    graphs = synthetic() if folder is None else reference(folder)
    for name, graph, told in graphs:
        ours = {
            m: _both_ways(graph, METHODS[m].function(as_problem(graph))) for m in BY_GRAPH
        }
        peer = _both_ways(graph, scipy_rcm(graph))
        row = {"graph": name, "bandwidth scipy RCM": peer[0]}
        if told:
            row |= {"a GPS of 1976": int(told["refGPS_bw"]), "bound": int(told["bw_lower"])}
        row |= {m: value[0] for m, value in ours.items()}
        best_rcm = min(peer[1], int(told["GLRCM_prof"]) if told else peer[1])
        row |= {"profile best RCM": best_rcm} | {f"{m} ": v[1] for m, v in ours.items()}
        rows.append(row)
    return rows


def _both_ways(graph: Csr, new_to_old: np.ndarray) -> tuple[int, int]:
    """Bandwidth, and the smaller profile of the order and of its reverse."""
    place = Ordering.from_new_to_old(new_to_old).old_to_new
    problem, reverse = as_problem(graph), (place.size - 1 - place).astype(np.int32)
    there, back = figures(problem, place), figures(problem, reverse)
    return there.bandwidth, min(there.profile, back.profile)


if __name__ == "__main__":
    folders = [Path(word) for word in sys.argv[1:] if not word.isdigit()]
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(*folders[:1] or [None], *sizes[:1])
