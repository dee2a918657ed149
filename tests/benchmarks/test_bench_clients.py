"""The benchmark of the solvers of others: its table, its drivers, and the page that shows them."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The script as a module, with its meshes and its table in a folder of the test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_clients

    monkeypatch.setattr(bench_clients, "RESULTS", tmp_path)
    return bench_clients


def pretend_to_run(monkeypatch, bench, seconds, energy="1.5"):
    """Let each order take its seconds and find an energy; the first turn takes twice as long."""
    turns = {order: iter((2.0, 1.0)) for order in seconds}

    def mesh_in_order(client, method):
        return method

    def run_client(client, python, mesh_file, own_order):
        order = "own" if own_order else mesh_file
        found = "1.5" if order == "none" else energy
        return {
            "result": {"energy": found},
            "seconds": {"whole run": next(turns[order]) * seconds[order]},
        }

    monkeypatch.setattr(bench, "mesh_in_order", mesh_in_order)
    monkeypatch.setattr(bench, "run_client", run_client)


SECONDS = {"none": 6.0, "gps": 3.0, "hilbert": 4.0, "rcm": 2.0, "own": 12.0}


def test_gains_are_of_the_least_seconds_of_each_order(bench, monkeypatch):
    pretend_to_run(monkeypatch, bench, SECONDS)
    (client,) = [one for one in bench.CLIENTS if one.driver == "mfem"]
    (row,) = bench.measure(client, turns=2)
    assert row == {
        "solver": "MFEM",
        "phase": "whole run",
        "mesher, s": 6.0,
        "gps": 2.0,
        "hilbert": 1.5,
        "rcm": 3.0,
        "own": 0.5,
        "same result": True,
    }


def test_another_result_is_told(bench, monkeypatch, capsys):
    pretend_to_run(monkeypatch, bench, SECONDS, energy="1.6")
    (client,) = [one for one in bench.CLIENTS if one.driver == "skfem"]
    (row,) = bench.measure(client, turns=1)
    assert row["own"] is None
    assert not row["same result"]
    assert "'energy': '1.6'" in capsys.readouterr().err


def test_rows_of_solvers_that_did_not_run_stay(bench, tmp_path):
    earlier = [{"solver": "GetDP", "gps": 1.0}, {"solver": "MFEM", "gps": 1.0}]
    (tmp_path / "clients.json").write_text(json.dumps({"rows": earlier}))
    rows = bench.with_earlier_rows([{"solver": "MFEM", "gps": 2.0}])
    assert rows == [{"solver": "MFEM", "gps": 2.0}, {"solver": "GetDP", "gps": 1.0}]


def test_every_driver_is_in_the_catalogue(bench):
    drivers = {path.stem.removeprefix("run_") for path in bench.FOLDER.glob("run_*.py")}
    assert {client.driver for client in bench.CLIENTS} == drivers


def test_the_page_shows_what_was_measured():
    rows = json.loads((BENCHMARKS / "results" / "clients.json").read_text())["rows"]
    measured = {row["solver"]: row for row in rows if row["phase"] == "whole run"}
    assert len(measured) >= 10
    assert all(row["same result"] for row in rows)
    page = (ROOT / "docs" / "worth.md").read_text(encoding="utf-8")
    figure = r"([\d.-]+)"
    of_page = re.findall(
        rf"^\| ([\w+ -]+?) \| [^|]+ \| {figure} \| {figure} \| {figure} \| {figure} \|",
        page,
        re.MULTILINE,
    )
    assert {solver for solver, *_ in of_page} == set(measured)
    for solver, *shown in of_page:
        gains = [measured[solver][order] for order in ("gps", "hilbert", "rcm", "own")]
        assert shown == [f"{gain:.1f}" if gain else "-" for gain in gains], solver
