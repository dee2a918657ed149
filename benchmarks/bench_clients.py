"""Solvers of others, unchanged: how much faster on a mesh that ``meshprep reorder`` wrote.

``make clients`` installs those that PyPI has. Each solves one case on a mesh of Gmsh, in the order
in which Gmsh numbers it, in three orders of ours and, where a user can ask for it, in the order
that the solver finds itself. Times are seconds of the processor, the least of some turns, in which
every order comes once, so that a busy machine slows all. ``python bench_clients.py NAME ...`` runs
some; the figures of the others stay.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import CACHE, RESULTS, program, report

FOLDER = Path(__file__).parent / "clients"
sys.path.append(str(FOLDER))
from catalogue import (  # noqa: E402
    CLIENTS,
    Client,
    ClientError,
    make_gmsh_mesh,
    run_client,
)

METHODS = ("gps", "hilbert", "rcm")
MESHER = "mesher"
OWN = "own"
ENVIRONMENT = Path(__file__).parents[1] / "build" / "clients"
PYTHON = Path(os.environ.get("MESHPREP_CLIENTS", ENVIRONMENT)) / "bin" / "python"


def mesh_of_gmsh(client: Client) -> Path:
    """The mesh that all orders begin with."""
    path = CACHE / f"client-{client.shape}-{client.cells}.msh"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        make_gmsh_mesh(PYTHON, shape=client.shape, cells=client.cells, path=path)
    return path


def mesh_in_order(client: Client, method: str) -> Path:
    """The mesh as the solver opens it, in the mesher's order (``none``) or in one of ours."""
    source = mesh_of_gmsh(client)
    if method == "none" and client.ending == source.suffix:
        return source
    path = source.with_name(f"{source.stem}-{method}{client.ending}")
    if not path.exists():
        words = [program(), "reorder", source, "-o", path, "--method", method]
        words += ["--target", "cpu", "--order-only", "--drop", "--quiet"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return path


def measure(client: Client, turns: int) -> list[dict[str, Any]]:
    """A row for each phase: seconds in the mesher's order, and how many times as fast in others."""
    cases = {MESHER: (mesh_in_order(client, "none"), False)}
    for method in METHODS:
        cases[method] = (mesh_in_order(client, method), False)
    if client.own_order:
        cases[OWN] = (mesh_in_order(client, "none"), True)
    runs: dict[str, list[dict[str, Any]]] = {order: [] for order in cases}
    for _ in range(turns):
        for order, (mesh_file, own_order) in cases.items():
            runs[order].append(run_client(client, PYTHON, mesh_file, own_order))

    # Every run must print the same figures as the first in the mesher's order.
    results = {
        order: [run["result"] for run in of_order] for order, of_order in runs.items()
    }
    expected = results[MESHER][0]
    same = all(result == expected for of_order in results.values() for result in of_order)
    rows = []
    for phase in runs[MESHER][0]["seconds"]:
        least = {
            order: min(run["seconds"][phase] for run in of_order)
            for order, of_order in runs.items()
        }
        row: dict[str, Any] = {"solver": client.name, "phase": phase}
        row["mesher, s"] = least[MESHER]
        for order in (*METHODS, OWN):
            row[order] = least[MESHER] / least[order] if order in least else None
        row["same result"] = same
        rows.append(row)
    if not same:
        print(f"{client.name}: {results}", file=sys.stderr)
    return rows


def main() -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="solvers, default: all that are here")
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    for client in CLIENTS:
        if arguments.names and client.driver not in arguments.names:
            continue
        try:
            rows = measure(client, arguments.turns)
        except ClientError as error:
            last_line = str(error).splitlines()[-1]
            print(f"{client.name} left out: {last_line}: {client.install}", file=sys.stderr)
            continue
        # Kept at once: all together take an hour.
        report("clients", with_earlier_rows(rows))


def with_earlier_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """These rows and those that an earlier run has of other solvers, in the catalogue's order."""
    rows_of = {client.name: [] for client in CLIENTS}
    path = RESULTS / "clients.json"
    if path.exists():
        for row in json.loads(path.read_text())["rows"]:
            rows_of.setdefault(row["solver"], []).append(row)
    solver = rows[0]["solver"]
    rows_of[solver] = rows
    return [row for of_solver in rows_of.values() for row in of_solver]


if __name__ == "__main__":
    main()
