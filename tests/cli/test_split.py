"""``meshprep split``, and what ``check``, ``info`` and ``report`` say of its file."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from meshprep import io
from meshprep.distribute.halos import increments
from meshprep.io.generate import generate
from meshprep.mesh.original import with_type_order


@pytest.fixture
def parts_file(cli, mesh_file):
    words = ("--parts", "2,4", "--loop", "edges:cells", "--block-size", 64, "-q")
    assert cli("split", mesh_file, *words)[0] == 0
    return mesh_file.with_name("wing.parts.h5")


def test_info_knows_plans_and_parts_of_any_name(cli, parts_file):
    assert cli("plan", parts_file.with_name("wing.msh"), "-q")[0] == 0
    for kind in ("plan", "parts"):
        other = parts_file.with_name(f"wing.{kind}.h5").rename(
            parts_file.with_name(f"{kind}.h5")
        )
        code, out, _ = cli("info", other, "--json")
        assert (code, json.loads(out)["kind"]) == (0, kind)


def test_split_prints_the_halo_table_and_writes_one_file(shows, fails, mesh_file):
    out = shows("split", mesh_file, "--parts", "2,3", "--full")
    assert "% copies" in out
    assert "edges->cells" in out
    assert f"wrote {mesh_file.with_name('wing.parts.h5')}" in out
    assert "use --force" in fails("split", mesh_file, "--parts", "2")


def test_more_parts_than_elements_and_small_ones(cli, fails, mesh_file):
    cells = io.read(mesh_file).sizes["cells"]
    err = fails("split", mesh_file, "--parts", cells + 1, "-q")
    assert (
        f"has {cells:,} cells, too few for {cells + 1:,} parts: ask for {cells:,} at most"
        in err
    )
    assert not mesh_file.with_name("wing.parts.h5").exists()
    few, many = cells // 20, cells // 20 + 1
    code, _, err = cli("split", mesh_file, "--parts", f"{few},{many}")
    assert code == 0
    assert f"{many:,} parts have {cells / many:.1f} cells each on average" in err
    assert f"{few:,} parts have" not in err


def test_figures_as_json_are_those_of_the_report(cli, mesh_file, monkeypatch):
    words = ("split", mesh_file, "--parts", "2,4", "--json")
    for way, why in (("auto", "saves messages"), ("exec", "asked for")):
        table = cli(*words[:-1], "--increments", way, "--force")[1]
        assert re.findall(rf"  exec  +{why}  ", table) == [f"  exec  {why}  "] * 2
    monkeypatch.setattr(increments, "EXCHANGE", 0)
    made = json.loads(cli(*words, "--force")[1])
    path = mesh_file.with_name("wing.parts.h5")
    assert made["written"] == [str(path)]
    kept = json.loads(cli("report", path, "--json")[1])
    assert kept["splits"] == made["splits"]
    two, four = made["splits"]
    assert (two["parts"], four["parts"]) == (2, 4)
    assert two["neighbours"] == 1
    assert 0 < two["halo"] < four["halo"] < 0.5
    cost = two["increments"]["edges->cells"]
    assert (cost["increments"], cost["why"]) == ("reverse", "fewer bytes")
    assert cost["exchanges"] == 2
    # an f8 that is sent and added, against two that an edge reads and writes again
    assert cost["reverse_bytes"] < cost["exec_bytes"] == 32 * cost["elements"]


def test_exec_halos_are_counted_element_by_element(cli, fails, parts_file):
    two = json.loads(cli("report", parts_file, "--json")[1])["splits"][0]
    edges, cells = two["sets"]["edges"], two["sets"]["cells"]
    assert edges["exec"] == two["increments"]["edges->cells"]["elements"]
    assert edges["owned"] - edges["core"] <= edges["exec"]
    assert cells["exec"] == 0 < cells["halo"]
    assert cells["owned"] == sum((cells["least owned"], cells["most owned"]))
    err = fails("report", parts_file, "--html", parts_file.with_name("page.html"))
    assert "--html, --picture and --vtu are for plans" in err


def test_check_proves_a_file_and_finds_damage(cli, fails, parts_file, mesh_file):
    code, out, _ = cli("check", parts_file, "--mesh", mesh_file, "-q")
    assert (code, "right and fits" in out, "(2 and 4 parts)" in out) == (0, True, True)
    assert cli("check", parts_file, "--parts", 4, "-q")[0] == 0
    assert "is split into 2 and 4 parts, not 3" in fails(
        "check", parts_file, "--parts", 3, "-q"
    )
    data = bytearray(parts_file.read_bytes())
    data[-1] ^= 1
    parts_file.write_bytes(data)
    assert "does not match its checksum" in fails("check", parts_file, "-q")


def test_check_finds_the_order_of_cell_types_that_was_split(cli, shows, tmp_path):
    mesh, split, other = (tmp_path / name for name in ("a.msh", "a.parts.h5", "a.med"))
    one = generate("mixed2d", nx=6, ny=6)
    turned = with_type_order(one, ["triangle", "quad"])
    # MED files have quads first, writers go by the order of the sets
    sets = sorted(turned.sets.values(), key=lambda s: s.name == "quad")
    io.write(replace(turned, sets=sets), mesh)
    io.write(io.read(mesh), other, drop=True)
    assert cli("split", mesh, "--parts", 2, "-q")[0] == 0
    assert cli("check", split, "--mesh", mesh, "-q")[1].endswith("(2 parts)\n")
    out = shows("check", split, "--mesh", other, "-q")
    assert (
        "the split numbers the cells by type as triangle, quad, the file as quad, tri"
        in out
    )


def test_info_lists_splits_sets_and_loops(cli, parts_file):
    found = json.loads(cli("info", parts_file, "--json")[1])
    assert [one["parts"] for one in found["splits"]] == [2, 4]
    assert found["loops"] == [
        {"loop": "edges->cells", "over": "edges", "increments": "exec", "variants": "s64"}
    ]
    assert found["bytes"] == parts_file.stat().st_size


def test_info_names_the_columns_of_splits_as_split_does(cli, mesh_file):
    made = cli("split", mesh_file, "--parts", "2,3")[1].splitlines()
    shown = cli("info", mesh_file.with_name("wing.parts.h5"))[1].splitlines()
    halos = made[made.index("halos") + 1 :][:3]
    splits = shown[shown.index("splits") + 1 :][:3]
    for row, other in zip(halos, splits, strict=True):
        columns = re.split(r"  +", row)
        assert re.split(r"  +", other)[: len(columns)] == columns
    assert re.split(r"  +", splits[0])[-2:] == ["bytes, mean", "bytes, most"]


def test_a_number_of_parts_is_added_to_a_file(cli, fails, parts_file):
    assert cli("split", parts_file, "--parts", 3, "-q")[0] == 0
    found = json.loads(cli("info", parts_file, "--json")[1])
    assert [one["parts"] for one in found["splits"]] == [2, 3, 4]
    assert "allow overwriting it by --force" in fails(
        "split", parts_file, "--parts", 3, "-q"
    )
    assert cli("split", parts_file, "--parts", 3, "--force", "-q")[0] == 0


def test_parts_from_a_file_and_shares(cli, mesh_file):
    cells = json.loads(cli("info", mesh_file, "--json")[1])["sets"]
    n = next(one["elements"] for one in cells if one["set"] == "cells")
    own = mesh_file.with_name("own.npy")
    np.save(own, np.arange(n) * 2 // n)
    assert cli("split", mesh_file, "--parts", 2, "--cut", f"file:{own}", "-q")[0] == 0
    words = ("--parts", 2, "--weights", "3,1", "--json", "--force")
    split = json.loads(cli("split", mesh_file, *words)[1])["splits"][0]
    owned = split["sets"]["cells"]
    assert owned["most owned"] / n == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--parts", "two"), "--parts 'two' must be numbers"),
        (("--parts", "0"), "from 1"),
        (("--parts", "2", "--increments", "both"), "increments 'both' is unknown"),
        (
            ("--parts", "2", "--slices", "--cut", "metis"),
            "cut 'metis' needs the whole mesh",
        ),
    ],
)
def test_wrong_words_are_named(fails, mesh_file, words, message):
    assert message in fails("split", mesh_file, *words, "-q")
    assert not mesh_file.with_name("wing.parts.h5").exists()


def test_dry_run_writes_nothing(cli, mesh_file):
    op2 = mesh_file.with_name("op2.h5")
    code, out, _ = cli("split", mesh_file, "--parts", "2,4", "--dry-run", "--op2", op2)
    assert (code, "would split" in out) == (0, True)
    written = [mesh_file.with_name("wing.parts.h5"), op2]
    assert out.splitlines()[1:] == [f"would write {path}" for path in written]
    assert not op2.exists()
    assert not mesh_file.with_name("wing.parts.h5").exists()


def test_processes_that_do_not_know_of_each_other_are_refused(
    fails, mesh_file, monkeypatch
):
    monkeypatch.setenv("PMI_SIZE", "2")
    err = fails("split", mesh_file, "--parts", "2", "-q")
    assert "mpiexec -n R python -m mpi4py -m meshprep_cli.main" in err
    assert not mesh_file.with_name("wing.parts.h5").exists()
