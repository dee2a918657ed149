"""``meshprep tune --spmv``: what it times, prints and refuses."""

import json

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, random_array

from meshprep.pipeline.tune.products import read_csr
from meshprep_runtime import Plan
from meshprep_runtime.matrix.products import Product


@pytest.fixture
def matrix(tmp_path):
    found = random_array((60, 60), density=0.1, rng=np.random.default_rng(0), format="csr")
    mmwrite(tmp_path / "a.mtx", found)
    return tmp_path / "a.mtx", found


def test_table_and_json(cli, shows, matrix):
    path, found = matrix
    words = ("tune", path, "--spmv", "--runs", 1, "--threads", 1, "-q")
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert f"a.mtx: 60 rows, {found.nnz} nonzeros" in out
    assert "fastest: Product(matrix, threads=1, piece=" in out
    # 6 a row: the least power of two above the root is 4
    assert "on a GPU, by rule: 2 blocks of 128 threads; threads a row: 4; rows each: 1" in out
    values = json.loads(shows(*words, "--json"))
    assert values["bytes"]["least"] == found.nnz * 12 + 60 * 20
    assert len(values["trials"]) == 7
    assert values["trials"][0]["seconds"] <= values["trials"][-1]["seconds"]


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_the_matrix_of_a_file(tmp_path, symmetry):
    half = np.tril(np.arange(1.0, 26).reshape(5, 5), -1 if symmetry[1] == "k" else 0)
    sign = {"general": 0, "symmetric": 1, "skew-symmetric": -1}[symmetry]
    whole = half + sign * np.tril(half, -1).T
    mmwrite(tmp_path / "a.mtx", coo_array(whole), symmetry=symmetry)
    found = read_csr(tmp_path / "a.mtx")
    np.testing.assert_array_equal(found.to_scipy().toarray(), whole)
    x = np.arange(5.0)
    np.testing.assert_array_equal(Product(found) @ x, whole @ x)


LOOPS = """
[loop.{0}]
over = "cells"
args = [{{ mat = "{1}", rows = "cells->nodes", columns = "cells->nodes", access = "inc" }}]
"""


@pytest.mark.slow
def test_the_matrices_of_a_plan(cli, shows, fails, mesh_file):
    loops, plan = mesh_file.with_name("loops.toml"), mesh_file.with_name("wing.plan.h5")
    loops.write_text(LOOPS.format("stiffness", "K") + LOOPS.format("mass", "M"))
    assert cli("plan", mesh_file, "--loops", loops, "-q")[0] == 0
    words = ("tune", plan, "--spmv", "--runs", 1, "--threads", 1, "-q")
    assert "has 2 matrices" in fails(*words)
    out = shows(*words, "--loop", "mass")
    found = Plan.load(plan).matrices["M"]
    assert f"{found.shape[0]} rows, {found.columns.size} nonzeros" in out
    stores = json.loads(cli("info", plan, "--json")[1])["stores"]
    names = ["csr", "local", "local, half"]
    assert [(s["matrix"], s["store"]) for s in stores] == [(m, n) for m in "KM" for n in names]
    assert stores[0]["bytes"] == found.csr().bytes
    table = out[out.index("stores that the plan can fill") :].splitlines()
    assert [line.split("  ")[0].strip() for line in table if line.startswith(("l", "c"))] == [
        *names
    ]
    values = json.loads(cli(*words, "--loop", "mass", "--json")[1])["stores"]
    assert [s["bytes"] for s in values] == [s["bytes of a product"] for s in stores[3:]]
    assert all(s["seconds"] > 0 for s in values)


def test_what_it_refuses(fails, matrix, mesh_file, tmp_path):
    path, found = matrix
    err = fails("tune", path, "--spmv", "--loop", "K", "-q")
    assert "only matrices of a plan have a loop" in err
    err = fails("tune", path, "--spmv", "--layouts", "aos", "-q")
    assert "--spmv goes without --layouts: it times the product of a matrix" in err
    err = fails("tune", mesh_file, "--spmv", "-q")
    assert "products need a matrix: give a Matrix Market file" in err
    mmwrite(tmp_path / "c.mtx", found * 1j)
    assert "the values are complex" in fails("tune", tmp_path / "c.mtx", "--spmv", "-q")
