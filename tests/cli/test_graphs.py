"""Sparse matrices and METIS graphs from file to file: orders, blocks, and the graph itself."""

import json

import numpy as np
import pytest
from scipy.io import mmread, mmwrite
from scipy.sparse import coo_array

from meshprep_runtime import Plan


@pytest.fixture
def matrix(tmp_path):
    """A symmetric matrix of a shuffled grid of 12 by 10 points, with values and a diagonal."""
    number = np.random.default_rng(5).permutation(120).reshape(12, 10)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], 1)
    pairs = np.sort(np.vstack([across, down]), axis=1)
    row, column = np.r_[pairs[:, 1], number.ravel()], np.r_[pairs[:, 0], number.ravel()]
    values = np.random.default_rng(6).standard_normal(row.size)
    path = tmp_path / "grid.mtx"
    mmwrite(
        path, coo_array((values, (row, column)), shape=(120, 120)), symmetry="symmetric"
    )
    return path


def bandwidth(a):
    row, column = np.nonzero(a)
    return int(np.abs(row - column).max())


def test_a_matrix_its_order_and_its_blocks(cli, matrix, tmp_path):
    words = ("--target", "cpu", "--method", "gps", "--block-size", 50, "--json", "-q")
    perm, part = tmp_path / "grid.perm", tmp_path / "grid.part"
    code, out, err = cli("reorder", matrix, *words, "--permutation", perm, "--blocks", part)
    assert (code, err) == (0, "")
    new = np.loadtxt(perm, dtype=int)
    old, moved = (mmread(p, spmatrix=False).toarray() for p in (matrix, _beside(matrix)))
    assert np.array_equal(moved[np.ix_(new, new)], old)
    found = json.loads(out)["metrics"]["locality"]
    assert found["before"]["bandwidth"] == bandwidth(old)
    assert found["final"]["bandwidth"] == bandwidth(moved)
    # No order of a grid of 12 by 10 is narrower than 10.
    assert 10 <= bandwidth(moved) <= 12
    blocks = np.loadtxt(part, dtype=int)
    assert np.bincount(blocks).tolist() == [50] * 6 + [38]


def _beside(path):
    return path.with_name(f"{path.stem}-reordered{path.suffix}")


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize("ending", ["mtx", "graph"])
def test_the_plan_fits_both_files(target, ending, cli, matrix, tmp_path):
    source = tmp_path / f"g.{ending}"
    first = ("reorder", matrix, "-o", source, "--drop", "--force", "--method", "none")
    assert cli(*first, "--target", "cpu", "-q")[0] == 0
    assert cli("reorder", source, "--target", target, "--method", "rcm", "-q")[0] == 0
    for mesh in (source, _beside(source)):
        code, out, err = cli("check", tmp_path / "g.plan.h5", "--mesh", mesh, "-q")
        assert (code, err) == (0, ""), mesh
        assert f"right and fits {mesh}" in out


def test_edges_that_move_alone_do_not_make_the_plan_wrong(cli, tmp_path):
    path = tmp_path / "chain.mtx"
    ends = np.array([[3, 2], [1, 0], [2, 1]])
    mmwrite(
        path, coo_array((np.ones(3), tuple(ends.T)), shape=(4, 4)), symmetry="symmetric"
    )
    assert cli("reorder", path, "--target", "cpu", "-q")[0] == 0
    plan = Plan.load(tmp_path / "chain.plan.h5")
    assert plan.ordering["vertices"].is_identity
    assert plan.ordering["edges"].new_to_old.tolist() == [1, 2, 0]
    for mesh in (path, _beside(path)):
        assert cli("check", tmp_path / "chain.plan.h5", "--mesh", mesh, "-q")[0] == 0


def test_vectors_as_arrays_of_numpy(shows, matrix, tmp_path):
    perm, part = tmp_path / "p.npy", tmp_path / "b.npy"
    out = shows("reorder", matrix, "--permutation", perm, "--blocks", part, "-q")
    assert f"{perm} and {part}" in out
    plan = Plan.load(tmp_path / "grid.plan.h5")
    assert np.array_equal(np.load(perm), plan.ordering["vertices"].old_to_new)
    offset = plan["edges->vertices"].variant().block_offset
    block = np.searchsorted(offset, plan.ordering["edges"].old_to_new, side="right") - 1
    assert np.array_equal(np.load(part), block)


def test_blocks_of_a_mesh_that_keeps_its_order(cli, mesh_file, tmp_path):
    assert cli("plan", mesh_file, "--blocks", tmp_path / "b.txt", "-q")[0] == 0
    plan = Plan.load(tmp_path / "wing.plan.h5")
    blocks = np.loadtxt(tmp_path / "b.txt", dtype=int)
    sizes = np.diff(plan["edges->cells"].variant().block_offset)
    assert np.array_equal(np.bincount(blocks), sizes)


def test_vectors_are_refused_before_any_work(fails, matrix, tmp_path):
    err = fails("reorder", matrix, "--permutation", tmp_path / "p.docx", "-q")
    assert "p.docx: cannot tell what to write: use one of .txt .perm .part .npy" in err
    (tmp_path / "p.perm").write_text("mine")
    assert "exists already" in fails(
        "reorder", matrix, "--permutation", tmp_path / "p.perm", "-q"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["grid.mtx", "p.perm"]


def test_a_rectangular_matrix_is_refused(fails, tmp_path):
    mmwrite(tmp_path / "a.mtx", coo_array((np.ones(2), ([0, 1], [2, 0])), shape=(2, 3)))
    err = fails("reorder", tmp_path / "a.mtx", "-q")
    assert "a.mtx: the matrix has 2 rows and 3 columns" in err
