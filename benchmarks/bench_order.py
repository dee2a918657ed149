"""Orderings of the points of a million cells against scipy's reverse Cuthill-McKee.

Bar: GPS within 3 times scipy's RCM, on the same graph.
"""

from __future__ import annotations

from common import best, mesh_of, report

from meshprep.geometry import centroids
from meshprep.reorder import METHODS, LocalityProblem
from meshprep.reorder.envelope import envelope
from meshprep_runtime import Ordering


def main() -> None:
    """Print and save the table."""
    rows = []
    for kind in ("delaunay2d", "delaunay3d"):
        mesh = mesh_of(kind, 1_000_000)
        shuffled = mesh.map("cells->nodes").table
        xyz = centroids(mesh, "nodes")
        order = METHODS["rcm"].function(LocalityProblem(shuffled, len(xyz), xyz))
        ordered = Ordering.from_new_to_old(order)
        cases = {"shuffled": (shuffled, xyz), "ordered": (ordered.old_to_new[shuffled], xyz[order])}
        for state, (table, points) in cases.items():
            rows += _case(f"{kind} {state}", LocalityProblem(table, len(points), points))
    report("order", rows)


def _case(name: str, problem: LocalityProblem) -> list[dict[str, object]]:
    _ = problem.graph  # every method gets the same graph for nothing
    peer = best(lambda: METHODS["rcm"].function(problem))
    rows = []
    for method in ("rcm", "gps", "hilbert"):
        function = METHODS[method].function
        new_to_old = function(problem)
        seconds = peer if method == "rcm" else best(lambda f=function: f(problem))
        inverse = Ordering.from_new_to_old(new_to_old).old_to_new
        found = envelope(problem.table, inverse)
        rows.append(
            {
                "points of": name,
                "method": method,
                "seconds": seconds,
                "against scipy RCM": seconds / peer,
                "bandwidth": found.bandwidth,
                "profile": f"{found.profile:.4g}",
            }
        )
    return rows


if __name__ == "__main__":
    main()
