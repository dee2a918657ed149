"""Without pymetis, as on Windows: all but METIS works, and what is done instead is said."""

import json
import sys

import numpy as np
import pytest

from meshprep import Options, prepare
from meshprep.distribute.job.split import SplitOptions
from meshprep.io.generate import generate
from meshprep.partitioning import BlockProblem, partition
from meshprep_cli.main import main
from meshprep_runtime.errors import MissingPackageError

INSTALL = "needs METIS: pip install pymetis"
KERNEL = """
def add(a, b):
    a[0] += 1.0
    b[0] += 2.0
"""


@pytest.fixture(autouse=True)
def _no_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)


@pytest.fixture(scope="module")
def mesh_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("wing") / "wing.msh"
    assert main(["generate", "delaunay2d", "--cells", "300", "-o", str(path), "-q"]) == 0
    return path


@pytest.fixture
def run(capsys):
    """``run(*words)``: the exit code, and what the program printed as results and beside them."""

    def call(*words):
        code = main([*map(str, words)])
        return code, *capsys.readouterr()

    return call


def test_the_partitioner_says_what_to_install():
    problem = BlockProblem(np.array([[0, 1], [1, 2]], dtype=np.int32), 3, 2)
    with pytest.raises(
        MissingPackageError, match=f"partitioner 'metis' {INSTALL}.*choose blocks"
    ):
        partition(problem, "metis")
    with pytest.raises(
        MissingPackageError, match=f"cut 'metis' {INSTALL}.*choose annealed"
    ):
        SplitOptions("metis")


def test_prepare_makes_blocks_of_its_own():
    mesh = generate("delaunay2d", cells=200)
    loop = prepare(mesh, ["edges->cells"]).plan["edges->cells"]
    assert loop.variants[loop.default].partitioner == "blocks"
    with pytest.raises(MissingPackageError, match=INSTALL):
        prepare(mesh, ["edges->cells"], Options(partition="metis"))


def test_commands_that_need_no_metis_run(run, mesh_file, tmp_path):
    plan = tmp_path / "wing.plan.h5"
    assert (
        run("reorder", mesh_file, "-o", tmp_path / "new.msh", "--plan", plan, "-q")[0] == 0
    )
    assert run("check", plan, "-q")[0] == 0
    code, _, said = run(
        "plan", mesh_file, "-o", plan, "--force", "--partition", "metis", "-q"
    )
    assert (code, said.count("\n")) == (2, 1)
    assert INSTALL in said
    assert run("report", plan, "--json")[0] == 0
    kernels = tmp_path / "add_kernels.py"
    kernels.write_text(KERNEL)
    short = ("--runs", 1, "--strategies", "sequential", "--layouts", "aos", "-q")
    code, _, said = run("tune", plan, "--kernel", f"{kernels}:add", *short)
    assert code == 0, said


@pytest.mark.parametrize("how", [(), ("--slices",)])
def test_a_file_of_parts_is_cut_in_another_way_that_is_named(run, mesh_file, tmp_path, how):
    file = tmp_path / "wing.parts.h5"
    code, out, said = run("split", mesh_file, "--parts", 4, "-o", file)
    assert (code, "annealed" in out, "METIS" in said) == (0, True, False)
    cut = "refined" if how else "annealed"
    code, out, said = run("split", file, "--parts", 3, *how)
    assert code == 0, said
    assert cut in out
    assert ("METIS is not installed: cut 'annealed'" in said) == (not how)
    assert run("check", file, "--mesh", mesh_file, "-q")[0] == 0
    (three, _) = json.loads(run("report", file, "--json")[1])["splits"]
    # each part has about a third of the cells
    assert three["sets"]["cells"]["most owned"] <= 1.1 * three["sets"]["cells"]["owned"] / 3


def test_split_by_metis_is_refused(run, mesh_file, tmp_path):
    code, _, said = run("split", mesh_file, "--parts", 2, "--cut", "metis", "-q")
    assert (code, INSTALL in said) == (2, True)
    assert not mesh_file.with_name("wing.parts.h5").exists()


def test_a_sweep_leaves_metis_out_and_says_so_once(run, mesh_file):
    words = ("sweep", mesh_file, "--block-sizes", "64,128")
    code, out, said = run(*words)
    assert code == 0
    assert out.startswith("Best: ")
    (line,) = [line for line in said.splitlines() if INSTALL in line]
    assert "no plan gps metis s64 and gps metis s128: " in line
    code, out, said = run(*words, "--partitioners", "metis", "-q")
    assert (code, out) == (2, "")
    assert "no plan could be made" in said
