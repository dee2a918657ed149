"""Solvers of others, unchanged: how much faster on a mesh that ``meshprep reorder`` wrote.

``make clients`` installs those that PyPI has. Each solves one case on a mesh of Gmsh, in the order
in which Gmsh numbers it, in three orders of ours and, where a user can ask for it, in the order that
the solver finds itself. Times are seconds of the processor, the least of some turns, in which every
order comes once, so that a busy machine slows all. ``python bench_clients.py NAME ...`` runs some;
the figures of the others stay.
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
from catalogue import CLIENTS, Client  # noqa: E402

METHODS = ("gps", "hilbert", "rcm")
MESHER = "mesher"
OWN = "own"
ENVIRONMENT = Path(__file__).parents[1] / "build" / "clients"
PYTHON = Path(os.environ.get("MESHPREP_CLIENTS", ENVIRONMENT)) / "bin" / "python"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NGS_NUM_THREADS": "1",
}


def mesh_of_gmsh(client: Client) -> Path:
    """The mesh that all orders begin with."""
    path = CACHE / f"client-{client.shape}-{client.cells}.msh"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        maker = FOLDER / "client_meshes.py"
        words = [PYTHON, maker, client.shape, str(client.cells), path]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
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


def run_once(client: Client, mesh_file: Path, own_order: bool) -> dict[str, Any]:
    """What its driver prints: results and seconds."""
    python = str(PYTHON)
    if client.of_system:
        python = "/usr/bin/python3"
    words = [python, str(FOLDER / f"run_{client.driver}.py"), str(mesh_file)]
    if own_order:
        words.append("--own-order")
    done = subprocess.run(
        words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{client.name}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


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
            runs[order].append(run_once(client, mesh_file, own_order))

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
    rows = earlier_rows()
    for client in CLIENTS:
        if arguments.names and client.driver not in arguments.names:
            continue
        try:
            new = measure(client, arguments.turns)
        except RuntimeError as error:
            print(f"{error}: left out; {client.install}", file=sys.stderr)
            continue
        rows = [row for row in rows if row["solver"] != client.name] + new
    report("clients", rows)


def earlier_rows() -> list[dict[str, Any]]:
    """The rows of an earlier run."""
    path = RESULTS / "clients.json"
    if not path.exists():
        return []
    return json.loads(path.read_text())["rows"]


if __name__ == "__main__":
    main()
