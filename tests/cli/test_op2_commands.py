"""An OP2 user's way: reorder a grid, run the old program on it, restore its results."""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from meshprep_runtime import Plan

sys.path.insert(0, str(Path(__file__).parents[1] / "io"))
from op2_files import c_mesh, write_hdf5, write_text

BOUNDARY = "pbedge=bedges->nodes pbecell=bedges->cells pedge=edges->nodes"


def edge_sums(table, n, values):
    """What an OP2 program may do with a file: add along edges, in whole numbers."""
    out = np.zeros(n)
    for one, other in table:
        out[one] += values[other]
        out[other] -= values[one]
    return out


def test_the_airfoil_of_op2_is_generated(cli, tmp_path):
    grid, hdf5 = tmp_path / "new_grid.dat", tmp_path / "grid.h5"
    for path in (grid, hdf5):
        assert (
            cli("generate", "airfoil", "--cells", 300, "-o", path, "--option", "j=12")[0]
            == 0
        )
    first, *rest = grid.read_text().splitlines()
    n_nodes, n_cells, n_edges, n_bedges = map(int, first.split())
    assert (n_cells, n_bedges, len(rest)) == (
        288,
        56,
        n_nodes + n_cells + n_edges + n_bedges,
    )
    x = np.array([line.split() for line in rest[:n_nodes]], float)
    cells, edges, bedges = np.split(
        np.array([line.split() for line in rest[n_nodes:]], int),
        [n_cells, n_cells + n_edges],
    )
    with h5py.File(hdf5) as file:
        assert np.array_equal(file["p_x"][()], x)
        assert np.array_equal(file["pcell"][()], cells)
        assert np.array_equal(np.hstack([file["pedge"][()], file["pecell"][()]]), edges)
        table = np.hstack([file[n][()] for n in ("pbedge", "pbecell", "p_bound")])
        assert np.array_equal(table, bedges)
        assert sorted(set(bedges[:, 3].tolist())) == [1, 2]
        sizes = [file[n][0] for n in ("nodes", "cells", "edges", "bedges")]
        assert sizes == [n_nodes, n_cells, n_edges, n_bedges]
        assert file["gm1"].attrs["dim"] == 1
        assert file["qinf"].attrs["type"] == b"double"
        assert file["p_q"][7].tolist() == file["qinf"][()].tolist()
        assert file["qinf"][1] == pytest.approx(0.4733, abs=1e-4)
        assert {n: file[n].shape for n in ("p_qold", "p_res", "p_adt")} == {
            "p_qold": (288, 4),
            "p_res": (288, 4),
            "p_adt": (288, 1),
        }
    # The sum of (dy, -dx) around a cell is zero where edges point out of their first cell.
    dx = x[edges[:, 0]] - x[edges[:, 1]]
    out = np.zeros((n_cells, 2))
    np.add.at(out, edges[:, 2], dx)
    np.subtract.at(out, edges[:, 3], dx)
    np.add.at(out, bedges[:, 2], x[bedges[:, 0]] - x[bedges[:, 1]])
    assert np.abs(out).max() < 1e-12


def test_generate_writes_the_format_that_is_asked_for(cli, fails, tmp_path):
    path = tmp_path / "wing.dat"
    words = ("generate", "airfoil", "--cells", 300, "-o", path, "--format", "medit", "-q")
    code, _, err = cli(*words)
    assert (code, "use --drop (in Python drop=True)" in err, path.exists()) == (
        2,
        True,
        False,
    )
    code, _, err = cli(*words[:-1], "--drop")
    assert code == 0
    assert (
        "dropped, wing.dat is written without it: the names of the groups 'physical'" in err
    )
    assert path.read_text().startswith("MeshVersionFormatted")
    err = fails("generate", "box", "-o", tmp_path / "a.dat", "--format", "no-format")
    assert "format 'no-format' is unknown" in err
    assert cli("generate", "mixed2d", "-o", tmp_path / "a.h5", "--drop", "-q")[0] == 0


def test_hdf5_there_and_back(cli, tmp_path):
    path = tmp_path / "grid.h5"
    write_hdf5(path, c_mesh(8, 6))
    code, out, err = cli("reorder", path, "--block-size", 32)
    assert code == 0, err
    assert "found by sizes and ranges" in err
    assert "pedge=edges->nodes" in err
    new = tmp_path / "grid-reordered.h5"
    plan = Plan.load(tmp_path / "grid.plan.h5")
    cells = plan.ordering["cells"]
    with h5py.File(path) as a, h5py.File(new) as b:
        q = [np.round(1000 * f["p_q"][:, 0]) for f in (a, b)]
        sums = [
            edge_sums(f["pecell"][()], cells.size, v)
            for f, v in zip((a, b), q, strict=True)
        ]
        assert b["original_id_cells"][()].tolist() == cells.new_to_old.tolist()
    assert np.array_equal(sums[1], cells.apply(sums[0]))
    for mesh in (path, new):
        code, out, err = cli("check", tmp_path / "grid.plan.h5", "--mesh", mesh, "-q")
        assert (code, err) == (0, "")
    # The program's result: it knows no original_id, and writes its sums as a dat of its own.
    result = tmp_path / "out.h5"
    with h5py.File(new) as b, h5py.File(result, "w") as file:
        for name in ("nodes", "cells", "pecell", "pbedge", "p_q"):
            b.copy(name, file)
        file["sums"] = sums[1]
    code, out, err = cli("restore", tmp_path / "grid.plan.h5", result, "--json")
    assert code == 0, err
    places = {m["name"]: m["place"] for m in json.loads(out)[0]["moved"]}
    assert places["pbedge"] == "bedges->nodes"
    with h5py.File(tmp_path / "out-restored.h5") as file, h5py.File(path) as old:
        assert np.array_equal(file["sums"][()], sums[0])
        for name in ("pecell", "pbedge", "p_q"):
            assert file[name][()].tobytes() == old[name][()].tobytes()


def test_the_text_grid_keeps_its_format_and_its_plan(cli, tmp_path):
    path = tmp_path / "new_grid.dat"
    write_text(path, c_mesh(8, 6))
    code, _, err = cli("reorder", path, "--loop", "edges->cells", "--block-size", 32, "-q")
    assert (code, err) == (0, "")
    head = [
        (tmp_path / n).read_text().split()[:4]
        for n in (path.name, "new_grid-reordered.dat")
    ]
    assert head[0] == head[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "new_grid-reordered.dat",
        "new_grid.dat",
        "new_grid.plan.h5",
    ]
    plan = tmp_path / "new_grid.plan.h5"
    assert cli("check", plan, "--mesh", tmp_path / "new_grid-reordered.dat", "-q")[0] == 0
    assert cli("restore", plan, tmp_path / "new_grid-reordered.dat")[0] == 0
    back = tmp_path / "new_grid-reordered-restored.dat"
    assert back.read_text().split() == path.read_text().split()


def test_declarations_on_the_command_line_and_in_toml(cli, shows, fails, tmp_path):
    path = tmp_path / "grid.h5"
    write_hdf5(path, c_mesh(8, 6))
    shows("loops", path, "--sets", BOUNDARY, "-o", tmp_path / "l.toml")
    assert cli("loops", path, "-o", tmp_path / "l.toml")[0] == 2
    code, out, _ = cli("info", path, "--sets", BOUNDARY, "--json")
    assert {m["map"] for m in json.loads(out)["maps"]} >= {"edges->nodes", "bedges->cells"}
    code, out, err = cli("reorder", path, "--loops", tmp_path / "l.toml", "--dry-run", "-q")
    assert (code, err) == (0, "")
    assert "over_edges" in out
    assert "there is no set 'walls'" in fails("info", path, "--sets", "pedge=edges->walls")


@pytest.mark.parametrize("ids", [True, False])
def test_original_ids_can_be_left_out(cli, mesh_file, ids):
    assert cli("reorder", mesh_file, "-q", *([] if ids else ["--no-ids"]))[0] == 0
    out = cli("info", mesh_file.with_name("wing-reordered.msh"))[1]
    assert ("\noriginal_id" in out) == ids


def test_the_first_ids_stay_when_a_mesh_is_reordered_again(cli, mesh_file):
    from meshprep import io

    folder = mesh_file.parent
    assert cli("reorder", mesh_file, "-q")[0] == 0
    again = folder / "wing-reordered.msh"
    assert cli("reorder", again, "-q", "--method", "hilbert")[0] == 0
    new = io.read(folder / "wing-reordered-reordered.msh")
    old = io.read(mesh_file)
    for name in ("nodes", "cells"):
        back = new.dat("original_id", name).values
        assert sorted(back.tolist()) == list(range(old.size(name)))
        if name == "nodes":
            assert np.array_equal(new.coordinates, old.coordinates[back])
