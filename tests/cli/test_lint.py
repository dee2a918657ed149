"""``meshprep lint``: findings with file and line, exit codes, and a file that is never run."""

import json
from pathlib import Path

import pytest
from pages import blocks

import meshprep
from meshprep.io.generate import generate

LOOPS = """
[loop.flux]
over = "edges"
args = [
  { dat = "t", map = "edges->cells", access = "read" },
  { dat = "r", map = "edges->cells", access = "inc" },
]
"""
KERNEL = """
raise SystemExit("this file must not run")
N = 1

def flux(t1, t2, r1, r2):
    f = t2[0] - t1[0]
    r1[0] += f
    if f > 1e6:
        r2[{index}] {sets} f
"""
EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loops.toml").write_text(LOOPS)

    def write(index="0", sets="-="):
        Path("k.py").write_text(KERNEL.format(index=index, sets=sets))

    return write


def test_a_right_kernel_and_wrong_ones(cli, files):
    words = ("lint", "k.py:flux", "--loops", "loops.toml")
    files()
    assert cli(*words)[:2] == (0, "no path through flux is against loop 'flux'\n")
    assert cli(*words, "-q")[:2] == (0, "")
    files(sets="=")
    code, out, _ = cli(*words)
    first, last = out.splitlines()
    assert code == 1
    assert first.startswith(
        "wrong: k.py:9: argument 'r', index 1: sets a row that is only add"
    )
    assert last == "flux is not as loop 'flux' says: 1 finding"
    files(index="N")
    code, out, _ = cli(*words, "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    assert "reaches component 1 of a row of dim 1" in json.loads(out)["findings"][0]


def test_a_mesh_tells_the_columns(cli, files):
    files()
    meshprep.write(generate("delaunay2d", cells=60), "wing.msh")
    words = ("lint", "k.py:flux", "--loops", "loops.toml", "--mesh", "wing.msh")
    assert cli(*words)[0] == 0
    Path("loops.toml").write_text(LOOPS.replace("edges->cells", "edges->cells->nodes", 1))
    assert "has 4 parameters, but the loop 8 rows" in cli(*words)[1]


TUPLES = """\
def flux(t, r):
    f = t[1][0] - t[0][0]
    r[0][0] SIGN f
    first, second = r
    second[0] -= f
"""
TWO_ARGS = """\
[loop.flux]
over = "edges"
args = [
  { dat = "t", map = "edges->cells", access = "read" },
  { dat = "r", map = "edges->cells", access = "inc" },
]
"""


def test_tuples_of_rows_need_the_number_of_columns(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    meshprep.write(generate("delaunay2d", cells=60), "wing.msh")
    Path("loops.toml").write_text(TWO_ARGS)
    Path("k.py").write_text(TUPLES.replace("SIGN", "="))
    words = ("lint", "k.py:flux", "--loops", "loops.toml")
    code, _, said = cli(*words)
    assert code == 2
    assert (
        "takes 't' as a tuple of rows, and only a mesh tells how many: give --mesh" in said
    )
    wrong = "wrong: k.py:3: argument 'r', index 0: sets a row that is only added to"
    code, out, _ = cli(*words, "--mesh", "wing.msh")
    assert code == 1
    assert out.startswith(wrong)
    # The same, where the loop names the columns.
    with_index = TWO_ARGS.replace("access", "index = [0, 1], access")
    Path("loops.toml").write_text(with_index)
    assert cli(*words)[1].startswith(wrong)
    Path("k.py").write_text(TUPLES.replace("SIGN", "+="))
    assert cli(*words)[0] == 0


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("k.py", "must read FILE.py:function"),
        ("none.py:f", "none.py: does not exist"),
        ("k.py:f", "k.py has no function 'f'"),
        ("bad.py:f", "bad.py: cannot be read as Python"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_line(fails, files, kernel, said):
    files()
    Path("bad.py").write_text("def f(:")
    assert said in fails("lint", kernel, "--loops", "loops.toml")


@pytest.mark.parametrize("program", ["jacobi", "airfoil", "volna"])
def test_the_kernels_of_the_examples_pass(cli, program):
    loops = meshprep.read_requests(EXAMPLES / f"{program}.toml")
    for request in loops:
        kernel = f"{EXAMPLES / program}.py:{request.name}"
        words = ("lint", kernel, "--loops", EXAMPLES / f"{program}.toml")
        assert cli(*words)[:2] == (
            0,
            f"no path through {request.name} is against loop '{request.name}'\n",
        )


def test_the_command_of_the_page(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parents[1])
    (line,) = [
        line
        for block in blocks("solvers/runtime.md", "sh")
        for line in block.splitlines()
        if line.startswith("meshprep lint")
    ]
    assert cli(*line.split()[1:])[0] == 0
