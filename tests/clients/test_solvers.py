"""Solvers of others solve on a mesh that ``meshprep reorder`` wrote, and print the same.

These are the drivers of ``make bench-clients``, on small meshes. Programs of Debian are asked where
they are installed.
"""

import importlib.util
import shutil
from functools import cache
from pathlib import Path

import pytest
from client_programs import PACKAGES
from test_clients import PYTHON, skip

from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.pipeline.workflow import Job, run

pytestmark = pytest.mark.slow

CATALOGUE = Path(__file__).parents[2] / "benchmarks" / "clients" / "catalogue.py"
CELLS = 2_000


def load_catalogue():
    """The table of the benchmark, which is no package."""
    spec = importlib.util.spec_from_file_location("catalogue", CATALOGUE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


catalogue = load_catalogue()
CLIENTS = {client.driver: client for client in catalogue.CLIENTS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the meshes of Gmsh and those in our orders are."""
    if not PYTHON.exists():
        skip("programs of others are not here: make clients")
    return tmp_path_factory.mktemp("solvers")


@cache
def mesh_in_order(folder: Path, shape: str, ending: str, method: str) -> Path:
    """A mesh of Gmsh as the main command writes it for a solver that stays as it is."""
    source = folder / f"{shape}.msh"
    if not source.exists():
        catalogue.make_gmsh_mesh(PYTHON, shape=shape, cells=CELLS, path=source)
    if method == "none" and ending == ".msh":
        return source
    output = folder / f"{shape}-{method}{ending}"
    options = Options(method=method, target="cpu")
    run(Job(MeshSource(source), output, plan=None, options=options, drop=True))
    return output


def result_of(client, mesh_file: Path, own_order: bool = False) -> dict:
    """What a solver finds; skips where it is not installed."""
    if client.command and shutil.which(client.command) is None:
        pytest.skip(f"{client.command} is not here: make clients says how to get it")
    try:
        return catalogue.run_client(client, PYTHON, mesh_file, own_order)["result"]
    except catalogue.ClientError as error:
        last_line = str(error).splitlines()[-1]
        if "ModuleNotFoundError" not in last_line:
            raise
        reason = f"{last_line}: make clients says how to get {client.name}"
        if client.driver in PACKAGES:
            skip(reason)
        pytest.skip(reason)


@pytest.mark.parametrize("driver", CLIENTS)
def test_a_solver_finds_the_same_in_our_order(driver, folder):
    client = CLIENTS[driver]
    expected = result_of(client, mesh_in_order(folder, client.shape, client.ending, "none"))
    assert len(expected) >= 2
    assert all(float(value) for value in expected.values())
    ours = mesh_in_order(folder, client.shape, client.ending, "gps")
    assert result_of(client, ours) == expected


@pytest.mark.parametrize("driver", [one for one in CLIENTS if CLIENTS[one].own_order])
def test_the_order_of_the_solver_changes_no_result(driver, folder):
    client = CLIENTS[driver]
    mesh_file = mesh_in_order(folder, client.shape, client.ending, "none")
    own_order = result_of(client, mesh_file, own_order=True)
    assert own_order == result_of(client, mesh_file)
